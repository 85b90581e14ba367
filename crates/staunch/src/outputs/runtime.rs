//! The thread of senders that encrypt or compress: the work that they do for each byte would delay the connections and the other
//! senders, which are on `main`. It starts with the first such output.
//!
//! Not here: encryption and compression themselves (`wrapping`).

use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::daemon::KEEP_THREADS;

/// The thread, once it is needed.
#[derive(Debug, Default)]
pub struct SenderThread(Mutex<Option<Started>>);

#[derive(Debug)]
struct Started {
    runtime: Handle,
    /// Dropped with this: then the thread ends.
    _end: oneshot::Sender<()>,
}

impl SenderThread {
    /// Where tasks of such senders run.
    ///
    /// # Errors
    /// When the system has no thread or no descriptors for it.
    pub fn runtime(&self) -> io::Result<Handle> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(started) = &*started {
            return Ok(started.runtime.clone());
        }
        let new = start()?;
        let runtime = new.runtime.clone();
        *started = Some(new);
        Ok(runtime)
    }
}

fn start() -> io::Result<Started> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().thread_keep_alive(KEEP_THREADS).build()?;
    let handle = runtime.handle().clone();
    // As on `main`: one thread for names is there from now on, and where the system has none the runtime would panic.
    std::thread::Builder::new().spawn(|| ())?;
    runtime.spawn_blocking(|| ());
    let (end, ended) = oneshot::channel::<()>();
    std::thread::Builder::new().name("senders".into()).spawn(move || {
        // The sender is dropped, not used: that is the news.
        let _ended = runtime.block_on(ended);
        runtime.shutdown_background();
    })?;
    Ok(Started { runtime: handle, _end: end })
}

#[test]
fn senders_that_encrypt_share_one_thread() {
    let senders = SenderThread::default();
    let name = || {
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        let runtime = senders.runtime().expect("a thread is free");
        runtime.spawn(async move { send.send(std::thread::current().name().map(str::to_owned)) });
        (receive.recv().expect("the task runs"), runtime.id())
    };
    let (first, again) = (name(), name());
    assert_eq!((first.0.as_deref(), first.1), (Some("senders"), again.1));
}
