//! Requests to stop or reload from outside: signals, or their equivalents on Windows. `staunch top` ends with any of
//! them.

use std::io;

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Deliver the queues and end.
    Stop {
        /// Its signal.
        signal: &'static str,
    },
    /// Read the config file again.
    Reload,
    /// Toggle debug messages.
    Debug,
}

/// The daemon's signals, handled as long as this exists.
#[cfg(unix)]
#[derive(Debug)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    /// SIGUSR1 and SIGQUIT, in carbon-c-relay's compatibility mode.
    more: Option<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)>,
}

#[cfg(unix)]
impl Signals {
    /// Handles SIGTERM, SIGINT and SIGHUP from now on.
    ///
    /// # Errors
    /// When the system cannot register handlers.
    pub fn take() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            more: None,
        })
    }

    /// Also handles SIGUSR1 and SIGQUIT.
    ///
    /// # Errors
    /// When the system cannot register handlers.
    pub fn and_the_originals(self) -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let more = (signal(SignalKind::user_defined1())?, signal(SignalKind::quit())?);
        Ok(Signals { more: Some(more), ..self })
    }

    /// The next request. Cancel-safe: a request that is not read now is returned by the next call.
    pub async fn next(&mut self) -> Request {
        let more = async {
            let Some((debug, quit)) = &mut self.more else { return std::future::pending().await };
            tokio::select! {
                _ = debug.recv() => Request::Debug,
                _ = quit.recv() => Request::Stop { signal: "SIGQUIT" },
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => Request::Stop { signal: "SIGTERM" },
            _ = self.interrupt.recv() => Request::Stop { signal: "SIGINT" },
            _ = self.hangup.recv() => Request::Reload,
            request = more => request,
        }
    }
}

/// Only the signals to stop, for tasks other than the daemon's main task.
#[cfg(unix)]
#[derive(Debug)]
pub struct Stops {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    /// SIGQUIT, if it is a signal to stop, as for carbon-c-relay.
    quit: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Stops {
    /// Handles them from now on, in addition to other handlers.
    ///
    /// # Errors
    /// When the system cannot register handlers.
    pub fn take(quits: bool) -> io::Result<Stops> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Stops {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: quits.then(|| signal(SignalKind::quit())).transpose()?,
        })
    }

    /// The next one, by its name. Cancel-safe.
    pub async fn next(&mut self) -> &'static str {
        let quit = async {
            match &mut self.quit {
                Some(quit) => quit.recv().await,
                None => std::future::pending().await,
            }
        };
        // If two are pending, the more usual one comes first.
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = quit => "SIGQUIT",
        }
    }
}

/// Only Ctrl-C and Ctrl-Break, for tasks other than the daemon's main task. The service manager itself kills services
/// that do not stop.
#[cfg(windows)]
#[derive(Debug)]
pub struct Stops {
    interrupt: tokio::signal::windows::CtrlC,
    end: tokio::signal::windows::CtrlBreak,
}

#[cfg(windows)]
impl Stops {
    /// Handles them from now on, in addition to other handlers.
    ///
    /// # Errors
    /// When the system rejects that.
    pub fn take(_quits: bool) -> io::Result<Stops> {
        use tokio::signal::windows::{ctrl_break, ctrl_c};
        Ok(Stops { interrupt: ctrl_c()?, end: ctrl_break()? })
    }

    /// The next one, by its name. Cancel-safe.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.end.recv() => "Ctrl-Break",
        }
    }
}

/// Ctrl-C, Ctrl-Break and the service manager's stop, handled as long as this exists. There is no request to reload
/// except `reload_on_change`.
#[cfg(windows)]
#[derive(Debug)]
pub struct Signals {
    interrupt: tokio::signal::windows::CtrlC,
    end: tokio::signal::windows::CtrlBreak,
}

#[cfg(windows)]
impl Signals {
    /// Handles them from now on.
    ///
    /// # Errors
    /// When the system rejects that.
    pub fn take() -> io::Result<Signals> {
        use tokio::signal::windows::{ctrl_break, ctrl_c};
        Ok(Signals { interrupt: ctrl_c()?, end: ctrl_break()? })
    }

    /// carbon-c-relay's signals: none on this system.
    ///
    /// # Errors
    /// Never.
    pub fn and_the_originals(self) -> io::Result<Signals> {
        Ok(self)
    }

    /// The next request. Cancel-safe: a request that is not read now is returned by the next call.
    pub async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.interrupt.recv() => Request::Stop { signal: "Ctrl-C" },
            _ = self.end.recv() => Request::Stop { signal: "Ctrl-Break" },
            () = SERVICE_STOP.notified() => Request::Stop { signal: "the service manager's stop" },
        }
    }
}

/// Set by [`stop_service`].
#[cfg(windows)]
static SERVICE_STOP: tokio::sync::Notify = tokio::sync::Notify::const_new();

/// Requests this process's daemon to stop, from any thread, also before it has started.
#[cfg(windows)]
pub fn stop_service() {
    SERVICE_STOP.notify_one();
}
