//! The allocator, and how memory is returned to the system
//! (docs/understand/decisions/016-allocator.md).

/// Its name and version, as shown in INFO.
#[cfg(target_os = "linux")]
pub const NAME: &str = "jemalloc-5.3.0";
/// Its name, as shown in INFO.
#[cfg(not(target_os = "linux"))]
pub const NAME: &str = "libc";

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Starts the thread that returns free memory to the system. Call it after opening the store,
/// because a process with more than one thread cannot test TLS files in a child process.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub fn start_background_thread() {
    const BACKGROUND_THREAD: &std::ffi::CStr = c"background_thread";
    let null = std::ptr::null_mut();
    let mut is_wanted = true;
    // SAFETY: the name is one of jemalloc's, ends with a zero byte and is static, and the control
    // reads the `bool` that it gets.
    let failed = unsafe {
        tikv_jemalloc_sys::mallctl(
            BACKGROUND_THREAD.as_ptr(),
            null,
            null.cast(),
            (&raw mut is_wanted).cast(),
            size_of::<bool>(),
        )
    };
    if failed != 0 {
        tracing::warn!("free memory is given back by MEMORY PURGE only (error {failed})");
    }
}

/// Does nothing: the system's allocator has no such thread.
#[cfg(not(target_os = "linux"))]
pub fn start_background_thread() {}

/// Returns free memory to the system now. Otherwise, a thread of the allocator does so over the
/// next ten seconds.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub fn purge() {
    /// `MALLCTL_ARENAS_ALL`: of all arenas.
    const PURGE: &std::ffi::CStr = c"arena.4096.purge";
    let null = std::ptr::null_mut();
    // SAFETY: the name is one of jemalloc's, ends with a zero byte and is static, and this control
    // neither reads nor writes a value.
    let failed = unsafe { tikv_jemalloc_sys::mallctl(PURGE.as_ptr(), null, null.cast(), null, 0) };
    if failed != 0 {
        tracing::warn!("the allocator gives no memory back (error {failed})");
    }
}

/// Does nothing: the system's allocator decides by itself.
#[cfg(not(target_os = "linux"))]
pub fn purge() {}
