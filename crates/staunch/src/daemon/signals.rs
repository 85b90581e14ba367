//! What asks the daemon from outside to stop or to reload: signals, or what Windows has instead. `staunch top` ends with
//! any of them.

use std::io;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Deliver what there is and end.
    Stop,
    /// Read the config file anew.
    Reload,
}

/// The daemon's signals, taken from the moment that this exists.
#[cfg(unix)]
#[derive(Debug)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Takes SIGTERM, SIGINT and SIGHUP from now on.
    ///
    /// # Errors
    /// When the system has no room for them.
    pub fn take() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next request. Cancel-safe: one that is not taken now is taken by the next call.
    pub async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.terminate.recv() => Request::Stop,
            _ = self.interrupt.recv() => Request::Stop,
            _ = self.hangup.recv() => Request::Reload,
        }
    }
}

/// Ctrl-C, Ctrl-Break and the service manager's stop, from the moment that this exists. Nothing asks for a reload: that is
/// `reload_on_change`.
#[cfg(windows)]
#[derive(Debug)]
pub struct Signals {
    interrupt: tokio::signal::windows::CtrlC,
    end: tokio::signal::windows::CtrlBreak,
}

#[cfg(windows)]
impl Signals {
    /// Takes them from now on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take() -> io::Result<Signals> {
        use tokio::signal::windows::{ctrl_break, ctrl_c};
        Ok(Signals { interrupt: ctrl_c()?, end: ctrl_break()? })
    }

    /// The next request. Cancel-safe: one that is not taken now is taken by the next call.
    pub async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.interrupt.recv() => Request::Stop,
            _ = self.end.recv() => Request::Stop,
            () = SERVICE_STOP.notified() => Request::Stop,
        }
    }
}

/// Told by [`stop_service`].
#[cfg(windows)]
static SERVICE_STOP: tokio::sync::Notify = tokio::sync::Notify::const_new();

/// Asks the daemon of this process to stop, from any thread, also before it has started.
#[cfg(windows)]
pub fn stop_service() {
    SERVICE_STOP.notify_one();
}
