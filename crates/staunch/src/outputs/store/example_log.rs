//! Lines of the log with one of the points that a store dropped: the counts say how many, these say whose.

use graphite::store::{Example, Refusal, Store};
use model::{CopyOutcome, SECOND_NS};
use pipeline::storing::outcome;

/// Time between two lines about the same reason.
const LOG_EVERY_NS: u64 = 600 * SECOND_NS;

/// When each reason was logged, monotonic.
#[derive(Debug, Default)]
pub(super) struct ExampleLog {
    logged_ns: [Option<u64>; Refusal::COUNT],
}

impl ExampleLog {
    /// Logs a line for each reason with new points that is due.
    pub(super) fn log(&mut self, output: &str, store: &Store, now_ns: u64) {
        for line in self.due(store, now_ns) {
            tracing::warn!("output `{output}`: {line}");
        }
    }

    fn due(&mut self, store: &Store, now_ns: u64) -> Vec<String> {
        let reasons = Refusal::ALL.into_iter().zip(&mut self.logged_ns);
        let due = reasons.filter(|(_, logged_ns)| {
            logged_ns.is_none_or(|logged_ns| now_ns.saturating_sub(logged_ns) >= LOG_EVERY_NS)
        });
        let lines = due.filter_map(|(why, logged_ns)| {
            // Points of series that were removed are dropped by request, or because of a limit of the files: both are logged.
            let CopyOutcome::Dropped(reason) = outcome(why) else { return None };
            let (count, example) = store.take_example(why)?;
            *logged_ns = Some(now_ns);
            Some(line(reason.word(), count, &example))
        });
        lines.collect()
    }
}

fn line(reason: &str, count: u64, example: &Example) -> String {
    let name = client::stdio::shown(&String::from_utf8_lossy(&example.name));
    let cut = if example.is_cut { "…" } else { "" };
    let time = example.time.map(|time| match example.now.saturating_sub(time) {
        age if age < 0 => format!(" at {time}, {} s in the future", age.unsigned_abs()),
        age => format!(" at {time}, {age} s ago"),
    });
    let time = time.unwrap_or_default();
    let (points, first) = if count == 1 { ("point", "") } else { ("points", "the first ") };
    format!("{count} {points} dropped as `{reason}`: {first}`{name}{cut}`{time} (staunch explain {reason})")
}

#[cfg(test)]
mod tests {
    use graphite::store::{Rules, StoreOptions};
    use graphite::whisper::Point;
    use graphite::whisper::rules::{Aggregations, Schemas};

    use super::*;

    #[test]
    fn the_first_point_of_each_reason_is_logged_every_ten_minutes() {
        let schemas = Schemas::new(Vec::new()).expect("no rules are valid");
        let rules = Rules { schemas, aggregations: Aggregations::new(Vec::new()).expect("valid") };
        let store = Store::new(StoreOptions::default(), rules, 7);
        let mut log = ExampleLog::default();
        let now = 1_800_000_000;
        let push = |name: &[u8], time| {
            store.push(name, Point { time, value: 1.0 }, 0, now);
        };
        assert_eq!(log.due(&store, 0), [""; 0]);
        push(b"a.kept", now);
        push(b"a.late", now + 3600);
        push(b"a.later", now + 7200);
        push(b"a..b", now);
        push(b"a.early", 5);
        let want = [
            "1 point dropped as `unsafe_name`: `a..b` at 1800000000, 0 s ago (staunch explain unsafe_name)",
            "2 points dropped as `in_future`: the first `a.late` at 1800003600, 3600 s in the future (staunch explain in_future)",
            "1 point dropped as `before_retention`: `a.early` at 5, 1799999995 s ago (staunch explain before_retention)",
        ];
        assert_eq!(log.due(&store, SECOND_NS), want);
        push(b"b\x1b..", now);
        assert_eq!(log.due(&store, SECOND_NS + LOG_EVERY_NS - 1), [""; 0]);
        push(b"c..", now);
        let again = log.due(&store, SECOND_NS + LOG_EVERY_NS);
        let want = "2 points dropped as `unsafe_name`: the first `b\u{fffd}..` at";
        assert!(matches!(&*again, [line] if line.starts_with(want)), "{again:?}");
    }
}
