//! Logs losses: when they begin, and then at most once a minute.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use model::{Dropped, SourceId};
use tokio::sync::watch;

use crate::admin::accounts::{self, AccountsPage};
use crate::daemon::shared::Shared;
use sys::clock::Clock;

/// Interval between two checks of the accounts.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Datagrams that the kernel dropped before they were read.
const KERNEL_DROPPED: &str = "kernel_dropped";

/// Checks between two log lines about the same loss.
const LOOKS_BETWEEN: u32 = 60;

/// The name of a loss: (source or output, its name, reason).
type Loss = (&'static str, String, &'static str);

#[derive(Debug, Default)]
struct Logged {
    count: u64,
    looks_ago: u32,
}

/// Logs losses until `stop` turns true. Losses in `before` were logged by the process before a hot restart.
pub async fn losses(shared: Arc<Shared>, mut stop: watch::Receiver<bool>, before: Option<Arc<AccountsPage>>) {
    let before = before.iter().flat_map(|page| counted(page));
    let mut logged: HashMap<Loss, Logged, FixedState> =
        before.map(|(loss, count)| (loss, Logged { count, looks_ago: 0 })).collect();
    loop {
        // Both branches are cancel-safe.
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        for (loss, count) in counted(&accounts::page(&shared, Clock::now())) {
            if let Some(new) = to_log(logged.entry(loss.clone()).or_default(), count) {
                let (what, name, reason) = loss;
                let records = unit(reason, new);
                let first = match reason == Dropped::SeriesMax.word() && what == "source" {
                    true => refused_series(&shared, &name),
                    false => String::new(),
                };
                tracing::warn!(
                    "{what} `{name}`: {new} {records} lost as `{reason}` ({count} in total){first}"
                );
            }
        }
    }
}

/// The first new series that `series_max` rejected at a source.
fn refused_series(shared: &Shared, source: &str) -> String {
    let wiring = shared.wiring.load();
    let at = wiring.plan.sources.iter().position(|plan| plan.name == source);
    let account = at.map(|at| wiring.accounts.source(SourceId(at as u16)));
    account.and_then(|account| account.refused_series()).map_or_else(String::new, |name| {
        format!("; first refused series: {name}   See `staunch explain series_max`.")
    })
}

/// The last log lines: every loss since the start, so that the log of an ended instance has the totals. Losses of the
/// stop itself are counted separately.
pub fn last_words(page: &AccountsPage) {
    for ((what, name, reason), count) in counted(page) {
        if reason != Dropped::Stopped.word() {
            let records = unit(reason, count);
            tracing::warn!("{what} `{name}`: {count} {records} lost as `{reason}` since the start");
        }
    }
}

/// The unit of such a loss: the number of records in an unread datagram is unknown.
fn unit(reason: &str, count: u64) -> &'static str {
    match (reason == KERNEL_DROPPED, count) {
        (true, 1) => "datagram",
        (true, _) => "datagrams",
        (false, 1) => "record",
        (false, _) => "records",
    }
}

/// How many to log now, if any.
fn to_log(logged: &mut Logged, count: u64) -> Option<u64> {
    logged.looks_ago = logged.looks_ago.saturating_add(1);
    let first = logged.count == 0;
    if count == logged.count || (!first && logged.looks_ago < LOOKS_BETWEEN) {
        return None;
    }
    let new = count - logged.count;
    *logged = Logged { count, looks_ago: 0 };
    Some(new)
}

/// All losses except senders' mistakes (`rejected`), which were logged at their first occurrence.
fn counted(page: &AccountsPage) -> Vec<(Loss, u64)> {
    let mut counted = Vec::new();
    for row in &page.sources {
        for family in ["dropped", "internal"] {
            for (reason, count) in row.losses.get(family).into_iter().flatten() {
                counted.push((("source", row.name.clone(), *reason), *count));
            }
        }
        if row.kernel_dropped > 0 {
            counted.push((("source", row.name.clone(), KERNEL_DROPPED), row.kernel_dropped));
        }
    }
    for row in &page.outputs {
        for (reason, count) in row.losses.values().flatten() {
            counted.push((("output", row.name.clone(), *reason), *count));
        }
    }
    counted
}

#[test]
fn a_loss_is_logged_at_once_and_then_once_a_minute() {
    let mut logged = Logged::default();
    assert_eq!(to_log(&mut logged, 0), None);
    assert_eq!(to_log(&mut logged, 5), Some(5));
    assert_eq!(to_log(&mut logged, 5), None);
    let mut reports = Vec::new();
    for look in 1..=120 {
        reports.extend(to_log(&mut logged, 5 + look));
    }
    assert_eq!(reports, [59, 60], "a minute after the first report, the quiet look included");
}
