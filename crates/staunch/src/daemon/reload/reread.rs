//! Reads the config file again, concurrently with the daemon's main task: a file system that hangs, or a name server,
//! must not delay a stop.
//!
//! Not here: the reload itself (`reload`), reading of files (`cli`).

use std::sync::Arc;

use config::plan::Plan;
use tokio::task::{JoinHandle, spawn_blocking};

/// Reads the plan again: from the same file, by the same rules. The error is a complete text for people. It may resolve
/// names, so it runs on its own thread.
pub type Reread = Arc<dyn Fn() -> Result<Plan, String> + Send + Sync>;

/// At most one reading at a time. Requests meanwhile cause one more, because the file may have changed.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Rereading {
    under_way: Option<JoinHandle<Result<Plan, String>>>,
    again: bool,
}

impl Rereading {
    /// Begins, or notes that the file must be read once more. True when it begins.
    pub(in crate::daemon) fn begin(&mut self, reread: &Reread) -> bool {
        if self.under_way.is_some() {
            if !std::mem::replace(&mut self.again, true) {
                tracing::info!(
                    "the configuration is still being read, and will be read once more after that"
                );
            }
            return false;
        }
        let reread = Arc::clone(reread);
        self.under_way = Some(spawn_blocking(move || reread()));
        true
    }

    /// The plan, or the errors. Waits forever while nothing is read. Cancel-safe.
    pub(in crate::daemon) async fn done(&mut self) -> Result<Plan, String> {
        let Some(under_way) = &mut self.under_way else { return std::future::pending().await };
        let read =
            under_way.await.unwrap_or_else(|_panicked| Err("reading the configuration failed".to_owned()));
        self.under_way = None;
        read
    }

    /// True, once, when the file must be read once more.
    pub(in crate::daemon) fn take_again(&mut self) -> bool {
        std::mem::take(&mut self.again)
    }
}

#[test]
fn requests_during_a_reading_cause_one_more() {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::sync::{Mutex, mpsc};

    let (go, gone) = mpsc::channel::<()>();
    let (gone, count) = (Mutex::new(gone), Arc::new(AtomicU64::new(0)));
    let reread: Reread = {
        let count = Arc::clone(&count);
        Arc::new(move || {
            let _sent = gone.lock().expect("nobody panics").recv();
            Err(format!("reading {}", count.fetch_add(1, Relaxed)))
        })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let mut rereading = Rereading::default();
        for _ in 0..3 {
            rereading.begin(&reread);
        }
        drop(go);
        assert_eq!(rereading.done().await.err().as_deref(), Some("reading 0"));
        assert!(rereading.take_again() && !rereading.take_again());
        rereading.begin(&reread);
        assert_eq!(rereading.done().await.err().as_deref(), Some("reading 1"));
        assert!(!rereading.take_again());
    });
    assert_eq!(count.load(Relaxed), 2);
}
