//! A running daemon: what the start makes, and what a reload, a hot restart and the stop change.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::admin::ServedPorts;
use crate::daemon::hot_restart::Control;
use crate::daemon::listeners::Listeners;
use crate::daemon::reload::opening::Opening;
use crate::daemon::shared::Shared;
use sys::data_dir::DataDir;

/// The parts of a running daemon for reload and stop.
pub(crate) struct Running {
    pub(crate) shared: Arc<Shared>,
    pub(crate) listeners: Listeners,
    pub(crate) outputs: JoinSet<()>,
    /// Threads that sync queues on disk.
    pub(crate) syncs: JoinSet<()>,
    /// The data directory, if it is needed.
    pub(crate) data_dir: Option<Arc<DataDir>>,
    /// Health checks of endpoints.
    pub(crate) checks: JoinSet<()>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) ports: ServedPorts,
    /// Files and sockets that a reload opens on its own thread.
    pub(crate) opening: Opening,
    /// The control socket for hot restarts.
    pub(crate) control: Option<Control>,
    pub(crate) worker: std::thread::JoinHandle<()>,
    /// The intake makers of paused connections; empty while all are served.
    pub(crate) makers: Vec<pipeline::IntakeMaker>,
}
