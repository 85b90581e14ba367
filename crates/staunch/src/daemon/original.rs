//! What a compatibility mode adds to the daemon: the log lines, files and signals that scripts of the original expect.
//!
//! Each mode has a folder of its own (`carbon_c_relay`, `carbon`). Not here: command lines and config files.

use crate::admin::accounts::AccountsPage;
use crate::daemon::shared::Shared;

/// A mode's part in the steps of the daemon, in the order in which they come. The default does nothing.
pub trait Original {
    /// Whether the daemon prints its banner as well.
    fn has_banner(&self) -> bool {
        true
    }

    /// Whether SIGUSR1 and SIGQUIT have a meaning.
    fn has_own_signals(&self) -> bool {
        false
    }

    /// Everything is open and running.
    fn started(&mut self, _shared: &Shared) {}

    /// SIGHUP was received.
    fn reload_asked(&self) {}

    /// A reload has ended; true when the new configuration is in force.
    fn reload_ended(&self, _done: bool) {}

    /// SIGUSR1 was received.
    fn debug_asked(&self) {}

    /// Another process goes on after a hot restart, and has written its own id.
    fn succeeded(self: Box<Self>) {}

    /// A signal to stop was received.
    fn stopping(&self, _signal: &str) {}

    /// All listeners are closed.
    fn listeners_closed(&self, _shared: &Shared) {}

    /// The shard has ended its last flush.
    fn worker_stopped(&self, _shared: &Shared) {}

    /// All outputs have ended.
    fn outputs_stopped(&self) {}

    /// These accounts do not change any more.
    fn accounts_closed(&self, _page: &AccountsPage) {}

    /// Everything has ended.
    fn ended(&self) {}
}
