//! Waiting during a start: for descriptors or memory, or for a failing disk. One timeout for all queues together;
//! SIGTERM is handled meanwhile.
//!
//! Not here: which errors are temporary (each caller decides). A reload waits as long for its files (`reload`).

use std::fmt::Display;
use std::time::Duration;

use deliver::disk_queue::{FAILING_MS_MAX, READ_AGAIN_MS};

use crate::daemon::signals::{Request, Signals};
use sys::clock::Clock;

/// Timeout for all waiting of a start.
pub const WAIT_NS_MAX: u64 = FAILING_MS_MAX * 1_000_000;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(READ_AGAIN_MS);

/// The remaining time of a start, and requests received meanwhile.
#[derive(Debug)]
pub struct Startup<'a> {
    left_ns: u64,
    signals: &'a mut Signals,
    /// The signal to stop, if one was received.
    stopped: Option<&'static str>,
    /// The file must be read once more.
    reload: bool,
}

impl Startup<'_> {
    /// A start that has not waited yet.
    pub fn new(signals: &mut Signals) -> Startup<'_> {
        Startup { left_ns: WAIT_NS_MAX, signals, stopped: None, reload: false }
    }

    /// Requests received while it waited: the signal to stop, and whether a reload was requested.
    pub fn asked(self) -> (Option<&'static str>, bool) {
        (self.stopped, self.reload)
    }

    /// Whether a signal to stop was received.
    pub fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Retries while the error is one that `passes`, and there is time left, including the time of the attempts. Logs
    /// once that `what` is so.
    ///
    /// # Errors
    /// The last one.
    pub async fn retry<T, E: Display>(
        &mut self,
        what: impl Display,
        passes: impl Fn(&E) -> bool,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut result = attempt();
        let mut logged = false;
        let mut since_ns = Clock::mono_ns();
        while let Err(error) = &result {
            if !passes(error) || self.left_ns == 0 {
                break;
            }
            if !logged {
                tracing::warn!("{what}: {error}; retrying");
                logged = true;
            }
            self.pause().await;
            result = attempt();
            let now_ns = Clock::mono_ns();
            self.left_ns = self.left_ns.saturating_sub(now_ns - since_ns);
            since_ns = now_ns;
        }
        result
    }

    /// Waits for a moment; a signal to stop ends all waiting.
    async fn pause(&mut self) {
        let pause = tokio::time::sleep(PAUSE.min(Duration::from_nanos(self.left_ns)));
        tokio::pin!(pause);
        loop {
            // Both branches are cancel-safe: a signal that is not read now is read in the next turn.
            tokio::select! {
                () = &mut pause => return,
                request = self.signals.next() => match request {
                    Request::Stop { signal } => {
                        self.stopped = Some(signal);
                        self.left_ns = 0;
                        return;
                    }
                    Request::Reload => self.reload = true,
                    Request::Debug => {}
                },
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_temporary_errors_are_retried() {
        let mut signals = Signals::take().expect("there is room");
        let mut startup = Startup::new(&mut signals);
        for (passes, want) in [(true, (Ok("note"), 2)), (false, (Err("short"), 1))] {
            let mut tries = 0;
            let second = || {
                tries += 1;
                if tries < 2 { Err("short") } else { Ok("note") }
            };
            let result = startup.retry("it", |_| passes, second).await;
            assert_eq!((result, tries), want);
        }
    }

    #[tokio::test]
    async fn all_waiting_of_a_start_has_one_timeout() {
        let mut signals = Signals::take().expect("there is room");
        let mut startup = Startup::new(&mut signals);
        startup.left_ns = 100_000_000;
        let begin_ns = Clock::mono_ns();
        assert!(startup.retry("the first", |_| true, || Err::<(), _>("no")).await.is_err());
        assert!(Clock::mono_ns() - begin_ns >= 100_000_000);
        let mut tries = 0;
        let counted = || {
            tries += 1;
            Err::<(), _>("no")
        };
        assert!(startup.retry("the second", |_| true, counted).await.is_err());
        assert_eq!(tries, 1);
    }
}
