//! Background threads get less processor time than those that serve clients.

/// The niceness of a background thread, up to 19.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the priority of the calling thread, on systems where a thread has one.
pub(super) fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the call takes numbers only; 0 is the calling thread.
        #[allow(unsafe_code)]
        let answer = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
        if answer != 0 {
            let error = std::io::Error::last_os_error();
            tracing::debug!(%error, "a thread in the background keeps its priority");
        }
    }
}
