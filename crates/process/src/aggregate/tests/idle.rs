//! Expiry of idle series: spec statsd §7.8 and §17 A4, all kinds, over four flushes.

use super::rig::{Rig, idle, plan};
use crate::aggregate::{AggregatePlan, ExpiryPlan, SeriesExpiry};

const LINES: &str = "c:1|c\ng:1|g\nt:1|ms\ns:1|s";

/// Samples in the first window only; which kinds each of four flushes emits.
fn kinds_emitted(idle: ExpiryPlan) -> [String; 4] {
    let mut rig = Rig::new(AggregatePlan { idle, ..plan() });
    rig.add(0, LINES);
    [2000, 4000, 6000, 8000].map(|ms| {
        let flushed = rig.flushed(ms);
        flushed.split("; ").filter(|part| !part.is_empty()).map(|part| &part[..1]).collect()
    })
}

const DELETE: SeriesExpiry = SeriesExpiry::Delete { ttl_windows: 1 };

#[test]
fn deletion_by_kind_over_four_flushes() {
    let all = "cgst";
    let keep = idle(SeriesExpiry::Keep);
    let delete = idle(DELETE);
    let ttl = |ttl_windows| ExpiryPlan { gauges: SeriesExpiry::Delete { ttl_windows }, ..delete };
    let after = |seconds| idle(SeriesExpiry::After { seconds });
    let table: &[(&str, ExpiryPlan, [&str; 4])] = &[
        ("default", keep, [all; 4]),
        ("deleteIdleStats", delete, [all, "", "", ""]),
        ("only counters", ExpiryPlan { counters: DELETE, ..keep }, [all, "gst", "gst", "gst"]),
        ("only gauges", ExpiryPlan { gauges: DELETE, ..keep }, [all, "cst", "cst", "cst"]),
        ("only timers", ExpiryPlan { timers: DELETE, ..keep }, [all, "cgs", "cgs", "cgs"]),
        ("only sets", ExpiryPlan { sets: DELETE, ..keep }, [all, "cgt", "cgt", "cgt"]),
        ("all but counters", ExpiryPlan { counters: SeriesExpiry::Keep, ..delete }, [all, "c", "c", "c"]),
        ("all but gauges", ExpiryPlan { gauges: SeriesExpiry::Keep, ..delete }, [all, "g", "g", "g"]),
        ("all but timers", ExpiryPlan { timers: SeriesExpiry::Keep, ..delete }, [all, "t", "t", "t"]),
        ("all but sets", ExpiryPlan { sets: SeriesExpiry::Keep, ..delete }, [all, "s", "s", "s"]),
        ("gaugesMaxTTL 0 is 1", ttl(0), [all, "", "", ""]),
        ("gaugesMaxTTL 2", ttl(2), [all, "g", "", ""]),
        ("gaugesMaxTTL 3", ttl(3), [all, "g", "g", ""]),
        ("after 0 s", after(0), [all, "", "", ""]),
        ("after 4 s", after(4), [all, "", "", ""]),
        ("after 5 s", after(5), [all, all, "", ""]),
        ("after 8 s", after(8), [all, all, all, ""]),
        ("after 9 s", after(9), [all; 4]),
        ("after a time that never comes", after(u64::MAX), [all; 4]),
    ];
    for (what, idle, want) in table {
        assert_eq!(kinds_emitted(*idle), *want, "{what}");
    }
}

#[test]
fn an_update_renews_the_ttl_of_a_gauge_and_a_delta_after_deletion_starts_from_0() {
    let mut rig = Rig::new(AggregatePlan {
        idle: ExpiryPlan { gauges: SeriesExpiry::Delete { ttl_windows: 2 }, ..idle(DELETE) },
        ..plan()
    });
    rig.add(0, "g:5|g");
    assert_eq!(rig.flushed(2000), "g g 5.0");
    rig.add(2500, "g:+1|g");
    assert_eq!(rig.flushed(4000), "g g 6.0");
    assert_eq!(rig.flushed(6000), "g g 6.0");
    assert_eq!(rig.flushed(8000), "");
    rig.add(8500, "g:+1|g");
    assert_eq!(rig.flushed(10_000), "g g 1.0", "6 is forgotten");
}

#[test]
fn counters_in_keep_contains_survive_deletion() {
    for policy in [DELETE, SeriesExpiry::After { seconds: 1 }] {
        let mut rig = Rig::new(AggregatePlan { idle: idle(policy), ..plan() });
        rig.add(0, "my.packets_received.x:1|c\nplain:1|c\npackets_received:1|g");
        assert_eq!(
            rig.flushed(2000),
            "c my.packets_received.x 1.0 0.5; c plain 1.0 0.5; g packets_received 1.0"
        );
        assert_eq!(rig.flushed(4000), "c my.packets_received.x 0.0 0.0", "{policy:?}");
        // A new list takes effect for existing series.
        rig.aggregator.reconfigure(
            AggregatePlan { idle: idle(policy), keep_contains: Vec::new(), ..plan() },
            super::rig::at(4500),
        );
        rig.flushed(6000);
        assert_eq!(rig.flushed(8000), "");
    }
}

#[test]
fn a_sample_for_an_expired_series_before_the_sweep_starts_a_new_series() {
    let mut rig = Rig::new(AggregatePlan { idle: idle(SeriesExpiry::After { seconds: 3 }), ..plan() });
    rig.add(0, "g:5|g");
    rig.flush(2000);
    rig.take();
    assert!(matches!(rig.tick(4000, 1), crate::aggregate::Tick::Started(_)));
    rig.add(4000, "g:+1|g");
    while !matches!(rig.tick(4000, 1), crate::aggregate::Tick::Ended(_)) {}
    assert_eq!(rig.take(), "", "it had expired when the window closed");
    assert_eq!(rig.flushed(6000), "g g 1.0");
}
