//! A program under test as a child process: started on its core with its output in a log, its CPU time read, stopped.
//!
//! Not here: the queries to the running program (`server`, `relay`). Invariant: the child ends with the benchmark,
//! however that ends.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::{BenchError, failed};
use sys::clock::Clock;
use sys::{self, CpuClock, Memory};

/// Longest wait for a program to answer after its start, and to end after it was asked to.
const START_WAIT_NS: u64 = 20_000_000_000;
const STOP_WAIT_NS: u64 = 60_000_000_000;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A program that runs. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    clock: CpuClock,
    log: PathBuf,
}

impl Process {
    /// Starts `command` on `core`, or on any core, and calls `answers` until it succeeds.
    ///
    /// # Errors
    /// When it cannot be started, ends at once, or does not answer in time.
    pub(crate) fn start<T>(
        name: &'static str,
        command: Command,
        core: Option<usize>,
        log: PathBuf,
        mut answers: impl FnMut() -> std::io::Result<T>,
    ) -> Result<Process, BenchError> {
        let mut process = Process::spawn(name, command, core, log)?;
        let deadline_ns = Clock::mono_ns() + START_WAIT_NS;
        loop {
            if let Some(status) = process.child.try_wait().map_err(failed("wait for a process"))? {
                return Err(process.not_ready(format!("it ended with {status}")));
            }
            match answers() {
                Ok(_) => return Ok(process),
                Err(error) if Clock::mono_ns() > deadline_ns => {
                    return Err(process.not_ready(error.to_string()));
                }
                Err(_) => thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// Starts `command` and does not wait for it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn spawn(
        name: &'static str,
        mut command: Command,
        core: Option<usize>,
        log: PathBuf,
    ) -> Result<Process, BenchError> {
        let output = File::create(&log).map_err(failed("write a log file"))?;
        let errors = output.try_clone().map_err(failed("write a log file"))?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        #[cfg(target_os = "linux")]
        if let Some(core) = core {
            sys::on_core(&mut command, core);
        }
        let words = format!("{command:?}");
        let start = |cause| BenchError::Start { server: name, command: words.clone(), cause };
        let child = command.spawn().map_err(start)?;
        let clock = CpuClock::of_process(child.id()).map_err(failed("read the CPU time of a process"))?;
        Ok(Process { name, child, clock, log })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of all its threads so far, in nanoseconds.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn cpu_ns(&self) -> Result<u64, BenchError> {
        self.clock.read_ns().map_err(failed("read the CPU time of a process"))
    }

    /// Its memory.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn memory(&self) -> Result<Memory, BenchError> {
        sys::memory_of(self.child.id()).map_err(failed("read the memory of a process"))
    }

    /// Sends SIGTERM and waits for the end. A good daemon delivers its queued data first.
    ///
    /// # Errors
    /// When it does not end in time; it is then killed.
    pub(crate) fn stop(mut self) -> Result<ExitStatus, BenchError> {
        sys::terminate(self.child.id()).map_err(failed("end a process"))?;
        let deadline_ns = Clock::mono_ns() + STOP_WAIT_NS;
        while Clock::mono_ns() < deadline_ns {
            if let Some(status) = self.child.try_wait().map_err(failed("wait for a process"))? {
                return Ok(status);
            }
            thread::sleep(LOOK_EVERY);
        }
        Err(self.not_ready("it does not end after SIGTERM".into()))
    }

    /// The error for a program that does not answer.
    pub(crate) fn not_ready(&self, why: String) -> BenchError {
        BenchError::NotReady { server: self.name, why, log: self.log.clone() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a child that has already ended and been waited for.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ends_at_once_is_reported_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let start = |program: PathBuf| {
            Process::start("staunch", Command::new(program), None, dir.path().join("log"), || {
                Err::<(), _>(std::io::ErrorKind::NotConnected.into())
            })
        };
        let error = start("/bin/false".into()).unwrap_err();
        assert!(matches!(&error, BenchError::NotReady { log, .. } if log.exists()), "{error}");
        let error = start(dir.path().join("no-such-file")).unwrap_err();
        assert!(matches!(error, BenchError::Start { .. }), "{error}");
    }
}
