//! Threads with a runtime for work that would delay the connections and senders on `main`: senders that encrypt or compress, and
//! subscribers to Riemann's events. Each starts with the first of them.
//!
//! Not here: encryption and compression (`stream::wrapping`), subscribers (`sources::subscribers`).

use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How long idle threads for blocking work are kept: as long as the process runs.
pub(crate) const KEEP_THREADS: std::time::Duration = std::time::Duration::from_secs(100 * 365 * 24 * 3600);

/// A thread, once it is needed.
#[derive(Debug)]
pub struct SideThread {
    name: &'static str,
    started: Mutex<Option<Started>>,
}

/// The threads of a daemon.
#[derive(Debug)]
pub struct SideThreads {
    /// Senders with TLS or compression.
    pub senders: SideThread,
    /// Subscribers to Riemann's events.
    pub subscribers: SideThread,
}

impl Default for SideThreads {
    fn default() -> SideThreads {
        SideThreads { senders: SideThread::new("senders"), subscribers: SideThread::new("subscribers") }
    }
}

#[derive(Debug)]
struct Started {
    runtime: Handle,
    /// Dropping it ends the thread.
    _end: oneshot::Sender<()>,
}

impl SideThread {
    /// A thread of that name.
    pub fn new(name: &'static str) -> SideThread {
        SideThread { name, started: Mutex::new(None) }
    }

    /// The runtime for its tasks.
    ///
    /// # Errors
    /// When the system has no thread or no descriptors left.
    pub fn runtime(&self) -> io::Result<Handle> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(started) = &*started {
            return Ok(started.runtime.clone());
        }
        let new = start(self.name)?;
        let runtime = new.runtime.clone();
        *started = Some(new);
        Ok(runtime)
    }
}

fn start(name: &str) -> io::Result<Started> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().thread_keep_alive(KEEP_THREADS).build()?;
    let handle = runtime.handle().clone();
    // As on `main`: checks that a thread for name lookups can start, because the runtime would panic otherwise.
    std::thread::Builder::new().spawn(|| ())?;
    runtime.spawn_blocking(|| ());
    let (end, ended) = oneshot::channel::<()>();
    std::thread::Builder::new().name(name.into()).spawn(move || {
        // Dropping the sender is the signal.
        let _ended = runtime.block_on(ended);
        runtime.shutdown_background();
    })?;
    Ok(Started { runtime: handle, _end: end })
}

#[test]
fn senders_that_encrypt_share_one_thread() {
    let senders = SideThread::new("senders");
    let name = || {
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        let runtime = senders.runtime().expect("a thread is free");
        runtime.spawn(async move { send.send(std::thread::current().name().map(str::to_owned)) });
        (receive.recv().expect("the task runs"), runtime.id())
    };
    let (first, again) = (name(), name());
    assert_eq!((first.0.as_deref(), first.1), (Some("senders"), again.1));
}
