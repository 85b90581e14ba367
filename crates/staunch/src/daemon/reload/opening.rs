//! Opens files and sockets for a reload, with a timeout.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::daemon::start::startup;

/// Timeout for files, folders and sockets that a reload opens: that of a start.
const OPENING_MAX: Duration = Duration::from_nanos(startup::WAIT_NS_MAX);

/// Opens files and sockets for a reload on a separate thread, because a file system that hangs must not delay a stop.
/// Late results are closed again, and until then there is no other reload.
#[derive(Debug, Default)]
pub(crate) struct Opening(Arc<()>);

impl Opening {
    /// Runs `open`, and returns its result if it comes in time.
    ///
    /// # Errors
    /// A sentence, when it is late, the daemon stops meanwhile, or an earlier one is not done yet.
    pub(super) async fn in_time<T: Send + 'static>(
        &self,
        open: impl FnOnce() -> T + Send + 'static,
        mut stop_asked: watch::Receiver<bool>,
    ) -> Result<T, String> {
        if Arc::strong_count(&self.0) > 1 {
            return Err("the previous reload still waits for a file or a disk that hangs".to_owned());
        }
        let under_way = Arc::clone(&self.0);
        let opening = spawn_blocking(move || {
            let opened = open();
            drop(under_way);
            opened
        });
        // Cancel-safe: late results are dropped, which closes them.
        tokio::select! {
            opened = opening => opened.map_err(|_panicked| "opening the new listeners and queues failed".to_owned()),
            _ = stop_asked.wait_for(|asked| *asked) => Err("the daemon is stopping".to_owned()),
            () = tokio::time::sleep(OPENING_MAX) => Err(format!(
                "the new listeners and queues could not be opened within {} s, because a file or a disk hangs",
                OPENING_MAX.as_secs()
            )),
        }
    }
}

#[test]
fn a_hanging_open_does_not_delay_a_stop() {
    let (ask, asked) = watch::channel(false);
    let (go, gone) = std::sync::mpsc::sync_channel::<()>(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let opening = Opening::default();
        assert_eq!(opening.in_time(|| 1, asked.clone()).await, Ok(1));
        let mut hangs = std::pin::pin!(opening.in_time(move || gone.recv().is_ok(), asked.clone()));
        assert!(tokio::time::timeout(Duration::from_millis(1), hangs.as_mut()).await.is_err());
        let refused = opening.in_time(|| 2, asked.clone()).await;
        assert!(refused.is_err_and(|why| why.contains("still waits")), "one at a time");
        ask.send_replace(true);
        assert!(hangs.await.is_err_and(|why| why.contains("is stopping")));
        drop(go);
    });
}
