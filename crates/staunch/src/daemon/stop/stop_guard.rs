//! A thread that ends the process when a stop does not: at a second signal, and when the time for the stop is long over.
//!
//! The stop itself runs on the daemon's main thread, which a disk may keep: the shard's thread writes to a queue on disk
//! while it has the queue's lock, and every task that asks for that lock waits with it. This thread has a runtime of its
//! own and waits for nobody's lock, so that it hears signals whatever the others wait for.
//! Not here: the stop (`stop`), the other signals (`signals`).

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use config::plan::Plan;
use tokio::sync::watch;

use crate::daemon::shared::Shared;
use crate::daemon::signals::Stops;
use crate::log_stream;
use client::stdio;
use sys::clock::Clock;

/// A signal that comes again within this time is the same order to stop: some send the first one twice, to the process
/// and to its group.
const SAME_STOP_NS: u64 = model::SECOND_NS / 4;

/// How much longer than `stop_timeout` a stop may take before the process ends without it. The steps of the stop have
/// their own bounds within `stop_timeout` and some hundred milliseconds; the rest is for a machine that is very busy.
const LATE_MAX: Duration = Duration::from_secs(5);

/// How much a process that hands over at that moment has in addition to twice `hot_restart_timeout`.
const HANDING_OVER_MAX: Duration = Duration::from_secs(5);

/// How long the last words may take: the log may be on the disk that hangs.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// Exit code of a process that ended without its stop.
const CUT_SHORT: i32 = 1;

/// The way to the thread.
#[derive(Debug)]
pub(in crate::daemon) struct StopGuard {
    shared: Arc<OnceLock<Weak<Shared>>>,
    asked: watch::Receiver<bool>,
}

impl StopGuard {
    /// Starts it. It ends with the process. `quits`: SIGQUIT is a signal to stop as well.
    ///
    /// # Errors
    /// When the system has no thread or descriptor for it.
    pub(in crate::daemon) fn start(plan: &Plan, quits: bool) -> io::Result<StopGuard> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stops = {
            let _inside = runtime.enter();
            Stops::take(quits)?
        };
        let (shared, (ask, asked)) = (Arc::<OnceLock<Weak<Shared>>>::default(), watch::channel(false));
        let its_shared = Arc::clone(&shared);
        let starting = Duration::from_millis(plan.stop_timeout_ms);
        let run = move || {
            let why = runtime.block_on(guard(stops, &ask, || at_most(&its_shared, starting)));
            end(&its_shared, why)
        };
        std::thread::Builder::new().name("stop".into()).spawn(run)?;
        Ok(StopGuard { shared, asked })
    }

    /// The daemon runs: from now on its last words can say what is lost.
    pub(in crate::daemon) fn follow(&self, shared: &Arc<Shared>) {
        // Once in the life of a process.
        let _again = self.shared.set(Arc::downgrade(shared));
    }

    /// Becomes true when a signal to stop has come.
    pub(in crate::daemon) fn asked(&self) -> watch::Receiver<bool> {
        self.asked.clone()
    }
}

/// Waits for a signal, and then for another or for so long. Gives why the process ends now.
async fn guard(mut stops: Stops, ask: &watch::Sender<bool>, at_most: impl Fn() -> Duration) -> String {
    let first = stops.next().await;
    let since_ns = Clock::mono_ns();
    ask.send_replace(true);
    let at_most = at_most();
    let second = async {
        loop {
            let signal = stops.next().await;
            if is_second(first, signal, Clock::mono_ns() - since_ns) {
                return signal;
            }
        }
    };
    // Nobody comes back to what is left of it: the process ends.
    match tokio::time::timeout(at_most, second).await {
        Ok(signal) => format!("caught {signal} again: exiting immediately"),
        Err(_late) => format!(
            "the stop did not finish within {} s of {first}, because a disk or another resource hangs: exiting",
            at_most.as_secs()
        ),
    }
}

/// Whether `signal`, so long after the `first`, is another wish.
fn is_second(first: &str, signal: &str, after_ns: u64) -> bool {
    signal != first || after_ns > SAME_STOP_NS
}

/// How long a stop that begins now may take. `starting`: for one that runs not yet.
fn at_most(shared: &OnceLock<Weak<Shared>>, starting: Duration) -> Duration {
    let Some(shared) = shared.get().and_then(Weak::upgrade) else { return starting + LATE_MAX };
    let plan = Arc::clone(&shared.wiring.load().plan);
    let handing_over = match shared.handing_over.load(Relaxed) {
        true => Duration::from_millis(2 * plan.hot_restart_timeout_ms) + HANDING_OVER_MAX,
        false => Duration::ZERO,
    };
    Duration::from_millis(plan.stop_ms()) + LATE_MAX + handing_over
}

/// Says why and what is lost, as far as that is possible without a wait, and ends the process.
fn end(shared: &Arc<OnceLock<Weak<Shared>>>, why: String) -> ! {
    let (said, saying) = std::sync::mpsc::sync_channel(1);
    let shared = Arc::clone(shared);
    let say = move || {
        let lost = shared.get().and_then(Weak::upgrade).map(|shared| format!("; {}", what_is_lost(&shared)));
        tracing::error!("{why}{}", lost.unwrap_or_default());
        log_stream::finish();
        // Nobody waits any more when that took too long.
        let _late = said.send(());
    };
    if std::thread::Builder::new().name("last words".into()).spawn(say).is_ok() {
        // An error is a wait that was too long: the process ends all the same.
        let _unsaid = saying.recv_timeout(LAST_WORDS_MAX);
    }
    std::process::exit(CUT_SHORT)
}

/// What is lost when the process ends now. Waits for nobody: of a queue that somebody holds there is no number.
pub(in crate::daemon) fn what_is_lost(shared: &Shared) -> String {
    let wiring = shared.wiring.load();
    let (mut lost, mut busy) = (Vec::new(), Vec::new());
    for outlet in &wiring.outlets {
        match outlet.would_lose() {
            Some(0) => {}
            Some(copies) => lost.push(format!("{} of output `{}`", stdio::records(copies), outlet.name)),
            None => busy.push(format!("`{}`", outlet.name)),
        }
    }
    let mut text = "records queued in memory are lost".to_owned();
    if !lost.is_empty() {
        text.push_str(&format!(": {}", lost.join(", ")));
    }
    if !busy.is_empty() {
        text.push_str(&format!(
            "; the number for {} is unknown, because its queue is being written",
            busy.join(", ")
        ));
    }
    if !wiring.outlets.iter().all(|outlet| outlet.is_stopping()) {
        text.push_str("; of open windows only the last checkpoint remains");
    }
    text
}

#[test]
fn the_same_signal_at_once_is_the_same_wish() {
    for (signal, after_ns, want) in [
        ("SIGTERM", 0, false),
        ("SIGTERM", SAME_STOP_NS, false),
        ("SIGTERM", SAME_STOP_NS + 1, true),
        ("SIGINT", 0, true),
    ] {
        assert_eq!(is_second("SIGTERM", signal, after_ns), want, "{signal} after {after_ns} ns");
    }
}
