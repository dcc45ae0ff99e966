//! What works in the background gets the processor when clients leave it.

/// How much later than others the calling thread gets its turn, from 0 to 19.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Gives the calling thread a lower priority, where that can be said of a thread.
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
