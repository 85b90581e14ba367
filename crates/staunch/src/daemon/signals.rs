//! What asks the daemon from outside to stop or to reload: signals, or what Windows has instead. `staunch top` ends with
//! any of them.

use std::io;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Deliver what there is and end.
    Stop {
        /// What asked for it.
        signal: &'static str,
    },
    /// Read the config file anew.
    Reload,
    /// Say more in the log, or no more.
    Debug,
}

/// The daemon's signals, taken from the moment that this exists.
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
            more: None,
        })
    }

    /// Takes SIGUSR1 and SIGQUIT too.
    ///
    /// # Errors
    /// When the system has no room for them.
    pub fn and_the_originals(self) -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let more = (signal(SignalKind::user_defined1())?, signal(SignalKind::quit())?);
        Ok(Signals { more: Some(more), ..self })
    }

    /// The next request. Cancel-safe: one that is not taken now is taken by the next call.
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

/// The signals to stop alone, for somebody beside the daemon's main task.
#[cfg(unix)]
#[derive(Debug)]
pub struct Stops {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    /// SIGQUIT, where it is a signal to stop, as for carbon-c-relay.
    quit: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Stops {
    /// Hears them from now on, beside everybody else who does.
    ///
    /// # Errors
    /// When the system has no room for them.
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
        // Of two that wait the one that ends most daemons is the first.
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = quit => "SIGQUIT",
        }
    }
}

/// Ctrl-C and Ctrl-Break alone, for somebody beside the daemon's main task. The service manager ends by itself what does
/// not stop.
#[cfg(windows)]
#[derive(Debug)]
pub struct Stops {
    interrupt: tokio::signal::windows::CtrlC,
    end: tokio::signal::windows::CtrlBreak,
}

#[cfg(windows)]
impl Stops {
    /// Hears them from now on, beside everybody else who does.
    ///
    /// # Errors
    /// When the system refuses.
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

    /// Those that only carbon-c-relay has: none here.
    ///
    /// # Errors
    /// Never.
    pub fn and_the_originals(self) -> io::Result<Signals> {
        Ok(self)
    }

    /// The next request. Cancel-safe: one that is not taken now is taken by the next call.
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

/// Asks the daemon of this process to stop, from any thread, also before it has started.
#[cfg(windows)]
pub fn stop_service() {
    SERVICE_STOP.notify_one();
}
