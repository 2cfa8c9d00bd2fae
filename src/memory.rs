//! The machine's memory, where it tells. Seen by every module, sees none.

/// What may be used, in bytes: COVARY_MEMORY, else what the machine or the container has left, where they say so.
pub fn available() -> Option<usize> {
    let number = |file: &str| std::fs::read_to_string(file).ok()?.trim().parse::<usize>().ok();
    if let Some(asked) = std::env::var("COVARY_MEMORY").ok().and_then(|v| v.parse().ok()) {
        return Some(asked);
    }
    let machine = status("/proc/meminfo", "MemAvailable:");
    let container = number("/sys/fs/cgroup/memory.max")
        .map(|most| most.saturating_sub(number("/sys/fs/cgroup/memory.current").unwrap_or(0)));
    machine.into_iter().chain(container).min()
}

/// The most memory this process ever held, in bytes; nought where the system does not tell.
pub fn peak() -> usize {
    status("/proc/self/status", "VmHWM:").unwrap_or(0)
}

/// Gives freed memory back to the system where the allocator would keep it: many fits one after another leave it in
/// pieces, which add up.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: a function of the C library that is there wherever its allocator is, from any thread at any time.
        unsafe { malloc_trim(0) };
    }
}

fn status(file: &str, key: &str) -> Option<usize> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(key))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<usize>().ok()? * 1024)
}
