//! Messages to the service manager, in systemd's protocol (sd_notify): ready, reloading, stopping, a line of counts,
//! and watchdog messages. Windows' manager gets the states that it knows.
//!
//! A watchdog message is sent only after the shard's thread has answered a call: a daemon whose HTTP works but whose
//! shard hangs is restarted. The call itself proves that the other thread works. Not here: restart policies
//! (`packaging/`). Without `NOTIFY_SOCKET` nothing is sent and no task runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::admin::accounts::{self, AccountsPage};
use crate::daemon::shared::Shared;
use crate::daemon::worker::ShardHandle;
use sys::clock::Clock;

/// Longest time between two lines of counts.
const STATUS_EVERY: Duration = Duration::from_secs(10);

/// Shortest interval of watchdog messages, for any requested one.
const BEAT_EVERY_MIN: Duration = Duration::from_millis(10);

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word<'a> {
    Ready,
    /// The process that the manager watches from now on.
    Main {
        pid: u32,
    },
    /// With the monotonic clock's microseconds, which distinguish this reload from the previous one.
    Reloading {
        mono_us: u64,
    },
    Stopping,
    /// For people: `systemctl status` shows it.
    Status(&'a str),
    Watchdog,
}

/// All listeners are open and the shard runs; also sent after a reload with any result. After a hot restart, the new
/// process reports that it is the service's main process.
pub fn ready(shared: &Shared, main: Option<u32>) {
    let status = status(&accounts::page(shared, Clock::now()));
    let words = [Word::Ready, Word::Status(&status)];
    match main {
        Some(pid) => tell(&[&[Word::Main { pid }], &words[..]].concat()),
        None => tell(&words),
    }
}

/// Process `pid` has replaced this one and is the main process. Sent before this one ends, so that its end is not the
/// service's.
pub fn succeeded_by(pid: u32) {
    tell(&[Word::Main { pid }]);
}

/// A hot restart is in progress. The new process itself reports that it is ready.
pub fn handing_over() {
    tell(&[Word::Status("hot restart: handing over to a new process")]);
}

/// A reload begins.
pub fn reloading() {
    tell(&[Word::Reloading { mono_us: Clock::mono_ns() / 1000 }, Word::Status("reloading")]);
}

/// The daemon flushes, delivers its queues, and ends.
pub fn stopping() {
    tell(&[Word::Stopping, Word::Status("stopping: last flush, then the queues of outputs")]);
}

/// Sends counts and watchdog messages until `stop` turns true or the shard's thread ends. `inherited`: the watchdog
/// interval of the old process.
pub async fn tend(shared: Arc<Shared>, mut stop: watch::Receiver<bool>, inherited: Option<Duration>) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    let watchdog = watchdog().or(inherited);
    let every = beat_every(watchdog);
    let beats = beat(&shared.shard, every, || {
        let page = accounts::page(&shared, Clock::now());
        let status = status(&page);
        let words = [Word::Status(&status), Word::Watchdog];
        tell(if watchdog.is_some() { &words } else { &words[..1] });
    });
    // Both branches are cancel-safe: a cancelled watchdog message is not needed any more.
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => {}
        () = beats => {}
    }
}

/// Calls `alive` every `every`, each time after the shard's thread has answered; ends with that thread.
async fn beat(shard: &ShardHandle, every: Duration, mut alive: impl FnMut()) {
    loop {
        tokio::time::sleep(every).await;
        let mut answer = shard.call(|_worker| ());
        let in_time = tokio::time::timeout(every, &mut answer).await;
        let answered = match in_time {
            Ok(answered) => answered,
            Err(_late) => {
                tracing::error!(
                    "the shard has not answered for {every:?}; the watchdog of the service manager is not notified"
                );
                // One call at a time: a shard that hangs is not called again.
                answer.await
            }
        };
        if answered.is_err() {
            return;
        }
        alive();
    }
}

/// Half of the watchdog interval, as its protocol advises, and often enough for the line of counts.
fn beat_every(watchdog: Option<Duration>) -> Duration {
    watchdog.map_or(STATUS_EVERY, |within| (within / 2).clamp(BEAT_EVERY_MIN, STATUS_EVERY))
}

/// One line for people.
fn status(page: &AccountsPage) -> String {
    let received: u64 = page.sources.iter().map(|row| row.sum.received).sum();
    let rejected: u64 = page.sources.iter().map(|row| row.sum.rejected).sum();
    let lost: u64 = page.sources.iter().map(|row| row.sum.dropped + row.sum.internal).sum();
    let dropped: u64 = page.sources.iter().map(|row| row.kernel_dropped).sum();
    let copies = |of: fn(&accounts::OutputRow) -> u64| -> u64 { page.outputs.iter().map(of).sum() };
    let down = page.outputs.iter().filter(|row| row.state == "down").count();
    format!(
        "{received} records received, {rejected} rejected, {lost} lost, {dropped} packets dropped by the kernel; \
         {} copies delivered, {} lost, {} queued; {down} of {} outputs down",
        copies(|row| row.sum.delivered),
        copies(|row| row.sum.lost()),
        copies(|row| row.sum.queued),
        page.outputs.len()
    )
}

/// The service manager's watchdog interval; `None` without a watchdog.
pub fn watchdog() -> Option<Duration> {
    #[cfg(unix)]
    return sd_notify::watchdog_enabled().filter(|within| !within.is_zero());
    #[cfg(not(unix))]
    None
}

/// A missing service manager is not an error. If it does not read its socket, this blocks, as in every program with its
/// own library.
fn tell(words: &[Word<'_>]) {
    #[cfg(unix)]
    {
        use sd_notify::NotifyState;
        let mut state = Vec::with_capacity(words.len() + 1);
        for word in words {
            match *word {
                Word::Ready => state.push(NotifyState::Ready),
                Word::Main { pid } => state.push(NotifyState::MainPid(pid)),
                Word::Reloading { mono_us } => {
                    state.extend([NotifyState::Reloading, NotifyState::MonotonicUsec(i128::from(mono_us))])
                }
                Word::Stopping => state.push(NotifyState::Stopping),
                Word::Status(line) => state.push(NotifyState::Status(line)),
                Word::Watchdog => state.push(NotifyState::Watchdog),
            }
        }
        if let Err(error) = sd_notify::notify(&state) {
            tracing::debug!("cannot notify the service manager ({words:?}): {error}");
        }
    }
    // Windows' manager gets states only.
    #[cfg(windows)]
    for word in words {
        match word {
            Word::Ready => sys::service::running(),
            Word::Stopping => sys::service::stopping(),
            Word::Main { .. } | Word::Reloading { .. } | Word::Status(_) | Word::Watchdog => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use model::{OutputSum, RecordSum};

    use super::*;
    use crate::admin::accounts::{OutputRow, SourceRow};

    #[test]
    fn watchdog_messages_are_sent_at_half_of_the_interval_within_limits() {
        let seconds = |n| Duration::from_secs(n);
        for (watchdog, want) in [
            (None, STATUS_EVERY),
            (Some(seconds(10)), seconds(5)),
            (Some(seconds(3600)), STATUS_EVERY),
            (Some(Duration::from_micros(1)), BEAT_EVERY_MIN),
        ] {
            assert_eq!(beat_every(watchdog), want, "{watchdog:?}");
        }
    }

    #[tokio::test]
    async fn a_shard_that_does_not_answer_stops_the_watchdog_messages() {
        let hangs = ShardHandle::new().expect("a descriptor is free");
        let signs = Cell::new(0);
        let beats = beat(&hangs, Duration::from_millis(1), || signs.set(signs.get() + 1));
        let ended = tokio::time::timeout(Duration::from_millis(200), beats).await;
        assert!(ended.is_err() && signs.get() == 0, "{} signs of life", signs.get());
    }

    #[test]
    fn the_line_of_counts_is_one_line() {
        let source = |received, rejected, dropped, kernel_dropped| SourceRow {
            sum: RecordSum { received, rejected, dropped, ..RecordSum::default() },
            kernel_dropped,
            ..SourceRow::default()
        };
        let output = |state, delivered, refused| OutputRow {
            state,
            sum: OutputSum { delivered, rejected_by_peer: refused, queued: 1, ..OutputSum::default() },
            ..OutputRow::default()
        };
        let page = AccountsPage {
            time_ms: 0,
            sources: vec![source(10, 2, 1, 4), source(5, 0, 0, 0)],
            transforms: Vec::new(),
            outputs: vec![output("up", 7, 0), output("down", 1, 3)],
            ..AccountsPage::default()
        };
        assert_eq!(
            status(&page),
            "15 records received, 2 rejected, 1 lost, 4 packets dropped by the kernel; \
             8 copies delivered, 3 lost, 2 queued; 1 of 2 outputs down"
        );
    }
}
