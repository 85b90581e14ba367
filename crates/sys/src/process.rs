//! CPU affinity, CPU time, memory, limits and signals: of this thread, or of a process by its id.

use std::io;

use super::time;

/// Number of cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The name of the machine; empty where the system does not say.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Binds the calling thread, and the threads and processes that it starts from now on, to core `core` (from 0).
///
/// # Errors
/// When there is no such core, this process may not use it, or the system cannot bind threads.
#[cfg(target_os = "linux")]
pub fn pin_to_core(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the set is an array of integers: all zeros is a valid value. `CPU_SET` stays inside it, as checked.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        set
    };
    // SAFETY: 0 is the calling thread; the set is borrowed for the call, and its size is passed.
    super::handle::checked(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) })?;
    Ok(())
}

/// Binds the calling thread to a core: not supported on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn pin_to_core(_core: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The core that the calling thread runs on now, where the system reports it.
#[cfg(target_os = "linux")]
pub fn core_now() -> Option<usize> {
    // SAFETY: no pointer is passed.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// The core that the calling thread runs on: not reported on this system.
#[cfg(not(target_os = "linux"))]
pub fn core_now() -> Option<usize> {
    None
}

/// Makes `command` run on core `core`, and end when the thread that starts it ends for any reason.
#[cfg(target_os = "linux")]
pub fn on_core(command: &mut std::process::Command, core: usize) -> &mut std::process::Command {
    use std::os::unix::process::CommandExt;
    let in_child = move || {
        pin_to_core(core)?;
        // SAFETY: plain integers, as this option of prctl wants them.
        super::handle::checked(unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)
        })?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls; it takes no lock and no memory.
    unsafe { command.pre_exec(in_child) }
}

/// Raises the soft limit of open files to the hard limit, and returns it. The usual soft limit of 1024 is for programs
/// that use `select`.
///
/// # Errors
/// When a system call fails; the limit is unchanged then.
pub fn raise_open_file_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a valid place to write to.
    super::handle::checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the limit is borrowed for the call.
    super::handle::checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) })?;
    Ok(limit.rlim_cur)
}

/// Makes a write past the file size limit (`ulimit -f`) fail with EFBIG. By default it would end the process (SIGXFSZ).
pub fn ignore_file_size_signal() {
    // SAFETY: no handler is set; that the signal is ignored concerns nobody else in this process. It cannot fail, the
    // signal being one that may be ignored.
    let _before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Blocks SIGHUP and SIGUSR1 until [`unblock_signals`]: they are requests to a daemon, but end a process
/// without handlers. To be called by the main thread before it starts others.
pub fn block_signals() {
    mask_signals(libc::SIG_BLOCK);
}

/// Unblocks them, and delivers those that arrived meanwhile.
pub fn unblock_signals() {
    mask_signals(libc::SIG_UNBLOCK);
}

fn mask_signals(how: libc::c_int) {
    // SAFETY: the set is a plain value that `sigemptyset` makes valid; all calls borrow it. They cannot fail: the signals
    // exist, and `how` is a valid value.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGHUP);
        libc::sigaddset(&mut set, libc::SIGUSR1);
        libc::pthread_sigmask(how, &set, std::ptr::null_mut());
    }
}

/// Asks a process to end (SIGTERM). That it has ended already is not an error.
///
/// # Errors
/// When the process may not be signalled.
pub fn terminate(pid: u32) -> io::Result<()> {
    match signal(pid, libc::SIGTERM) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}

/// True when there is a process `pid`, of any user.
pub fn is_running(pid: u32) -> bool {
    match signal(pid, 0) {
        Ok(()) => true,
        Err(error) => error.raw_os_error() == Some(libc::EPERM),
    }
}

/// Sets the permissions that new files do not get (umask), for the whole process.
pub fn set_umask(mask: u32) {
    // SAFETY: a plain integer; the call cannot fail.
    unsafe { libc::umask((mask & 0o777) as libc::mode_t) };
}

/// Stops a process (SIGSTOP) until it is continued or killed. It stops soon, not at once: see [`is_suspended`].
///
/// # Errors
/// When there is no such process, or it may not be signalled.
pub fn suspend(pid: u32) -> io::Result<()> {
    signal(pid, libc::SIGSTOP)
}

/// True when process `pid` is stopped by a signal.
///
/// # Errors
/// When there is no such process, or the system does not report it.
pub fn is_suspended(pid: u32) -> io::Result<bool> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(text
        .lines()
        .any(|line| line.strip_prefix("State:").is_some_and(|state| state.trim().starts_with('T'))))
}

pub(super) fn signal(pid: u32, signal: libc::c_int) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 1).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: plain integers; a number above 1 names one process, never a group.
    super::handle::checked(unsafe { libc::kill(pid, signal) })?;
    Ok(())
}

/// CPU time of the calling thread so far, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    time::read(libc::CLOCK_THREAD_CPUTIME_ID).expect("a thread that runs has a CPU clock")
}

/// CPU time of all threads of process `pid` so far, in nanoseconds: see [`CpuClock::of_process`].
///
/// # Errors
/// When the process has ended, or the system does not report it.
pub fn process_cpu_ns(pid: u32) -> io::Result<u64> {
    CpuClock::of_process(pid)?.read_ns()
}

/// A CPU clock of one thread or process, readable from any thread.
///
/// User and system time together, from the scheduler's accounting, and so with a finer resolution than the 10 ms of
/// `/proc/PID/stat`.
#[derive(Clone, Copy, Debug)]
pub struct CpuClock {
    #[cfg(target_os = "linux")]
    id: libc::clockid_t,
}

#[cfg(target_os = "linux")]
impl CpuClock {
    /// The clock of the calling thread.
    ///
    /// # Errors
    /// When the system has no such clock.
    pub fn of_this_thread() -> io::Result<CpuClock> {
        let mut id: libc::clockid_t = 0;
        // SAFETY: the calling thread exists; `id` is a valid place to write to. The error is the result.
        match unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut id) } {
            0 => Ok(CpuClock { id }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// The CPU clock of all threads of process `pid`, including ended ones. While a thread runs, its time since the
    /// last tick of its core (some milliseconds) is missing.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn of_process(pid: u32) -> io::Result<CpuClock> {
        let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut id: libc::clockid_t = 0;
        // SAFETY: `id` is a valid place to write to. The error is the result.
        match unsafe { libc::clock_getcpuclockid(pid, &mut id) } {
            0 => Ok(CpuClock { id }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// CPU time so far, in nanoseconds.
    ///
    /// # Errors
    /// When the thread or process has ended.
    pub fn read_ns(self) -> io::Result<u64> {
        time::read(self.id)
    }
}

#[cfg(not(target_os = "linux"))]
impl CpuClock {
    /// The clock of the calling thread: this system has none that other threads can read.
    ///
    /// # Errors
    /// Always.
    pub fn of_this_thread() -> io::Result<CpuClock> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The clock of a process: this system has none.
    ///
    /// # Errors
    /// Always.
    pub fn of_process(_pid: u32) -> io::Result<CpuClock> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// CPU time so far: never called, because no clock exists.
    ///
    /// # Errors
    /// Always.
    pub fn read_ns(self) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident now (`VmRSS`).
    pub resident: u64,
    /// Most that was ever resident (`VmHWM`).
    pub resident_high: u64,
}

/// Limit on files that this process may have open.
///
/// # Errors
/// When the system call fails.
#[cfg(unix)]
pub fn open_file_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a valid place to write to.
    super::handle::checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    Ok(limit.rlim_cur)
}

/// Files that this process has open, from `/proc`.
///
/// # Errors
/// When the system has no such folder.
pub fn open_files() -> io::Result<u64> {
    // One of them is the folder that is read.
    Ok((std::fs::read_dir("/proc/self/fd")?.count() as u64).saturating_sub(1))
}

/// Memory of process `pid`, from `/proc`.
///
/// # Errors
/// When the process has ended, or the system has no such file.
pub fn memory_of(pid: u32) -> io::Result<Memory> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    parse_memory(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// `VmHWM:     1234 kB` and `VmRSS: …` of a status file.
fn parse_memory(text: &str) -> Option<Memory> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
        kilobytes.checked_mul(1024)
    };
    Some(Memory { resident: field("VmRSS:")?, resident_high: field("VmHWM:")? })
}

#[test]
fn memory_is_read_from_a_status_file() {
    let text =
        "Name:\tstaunch\nVmPeak:\t    9000 kB\nVmHWM:\t     812 kB\nVmRSS:\t     640 kB\nThreads:\t3\n";
    assert_eq!(parse_memory(text), Some(Memory { resident: 640 * 1024, resident_high: 812 * 1024 }));
    for bad in ["", "VmRSS:\t1 kB\n", "VmHWM:\tx kB\nVmRSS:\t1 kB\n", "VmHWM:\t1\nVmRSS:\t1\n"] {
        assert_eq!(parse_memory(bad), None, "{bad:?}");
    }
}
