//! Listing, deletion, reconfiguration, samples with timestamps, self-metrics.

use model::Kind;

use super::rig::{Rig, at, idle, plan};
use crate::aggregate::{AggregatePlan, Current, FlushAlign, SeriesExpiry, Tick, Visit};

/// All series of a kind, in pages of `max`.
fn visit(rig: &Rig, kind: Kind, max: usize) -> Vec<String> {
    let (mut all, mut from) = (Vec::new(), Some(0));
    while let Some(place) = from {
        let before = all.len();
        from = rig.aggregator.visit(kind, place, &mut { max }, |_, series, current| {
            let current = match current {
                Current::Counter(sum) => format!("{sum}"),
                Current::Gauge(value) => format!("{value}"),
                Current::Timer { values, count } => format!("{values:?}/{count}"),
                Current::Set { count, members } => format!("{count} {}", members.escape_ascii()),
            };
            all.push(format!("{}={current}", series.name.escape_ascii()));
            Visit::Next
        });
        assert!(all.len() - before <= max);
    }
    all.sort_unstable();
    all
}

#[test]
fn series_are_shown_in_pages() {
    let mut rig = Rig::new(plan());
    rig.add(0, "a:1|c\nb:2|c|@0.5\nc:3|c\ng:4|g\nt:5|ms\nt:4|ms|@0.5\ns:x|s\ns:y|s\ns:x|s");
    for max in [1, 2, 3, 4] {
        assert_eq!(visit(&rig, Kind::Counter, max), ["a=1", "b=4", "c=3"]);
    }
    assert_eq!(visit(&rig, Kind::Gauge, 9), ["g=4"]);
    assert_eq!(visit(&rig, Kind::Timer, 9), ["t=[5.0, 4.0]/3"]);
    assert_eq!(visit(&rig, Kind::Set, 9), ["s=2 x\\ny"]);
    assert_eq!(rig.aggregator.visit(Kind::Set, usize::MAX, &mut 9, |_, _, _| Visit::Next), None);
}

#[test]
fn a_visit_pauses_on_request_and_when_its_looks_are_used_up() {
    let mut rig = Rig::new(AggregatePlan { idle: idle(SeriesExpiry::Delete { ttl_windows: 1 }), ..plan() });
    rig.add(0, &(0..100).map(|n| format!("c{n}:1|c")).collect::<Vec<_>>().join("\n"));
    let mut shown = 0;
    let next = rig.aggregator.visit(Kind::Counter, 0, &mut 50, |place, _, _| {
        assert_eq!(place, shown);
        shown += 1;
        if shown == 3 { Visit::Pause } else { Visit::Next }
    });
    assert_eq!((shown, next), (3, Some(3)));
    assert_eq!(rig.aggregator.visit(Kind::Counter, 7, &mut 50, |_, _, _| Visit::PauseHere), Some(7));
    // After a flush without samples none of them is visible, but each still costs a look.
    rig.flushed(2000);
    let next = rig.aggregator.visit(Kind::Counter, 0, &mut 30, |_, _, _| panic!("no series is visible"));
    assert_eq!(next, Some(30));
}

#[test]
fn series_are_deleted_a_slice_at_a_time() {
    let mut rig = Rig::new(plan());
    rig.add(0, &(0..100).map(|n| format!("c/{n}:1|c\nd{n}:1|c")).collect::<Vec<_>>().join("\n"));
    let (mut from, mut slices, mut deleted) = (Some(0), 0, 0);
    while let Some(place) = from {
        let before = deleted;
        let is = |form: &[u8]| form.starts_with(b"c-");
        from = rig.aggregator.delete_some(Kind::Counter, place, 30, is, |_| deleted += 1);
        assert!(deleted - before <= 30);
        slices += 1;
    }
    assert_eq!((deleted, slices), (100, 7));
    assert_eq!(visit(&rig, Kind::Counter, 200).len(), 100);
    rig.add(0, "c/1:5|c");
    assert_eq!(visit(&rig, Kind::Counter, 200).len(), 101, "its alias leads to the new series");
}

#[test]
fn deleted_series_are_hidden_from_requests_and_outputs() {
    let mut rig = Rig::new(AggregatePlan { idle: idle(SeriesExpiry::Delete { ttl_windows: 1 }), ..plan() });
    rig.add(0, "a.x:1|c\na.y:1|c\na/z:1|c\nab:1|c\na.x:1|g\nt:1|c|#v,u");
    assert!(rig.aggregator.delete(Kind::Counter, b"a.x"));
    assert!(!rig.aggregator.delete(Kind::Counter, b"a.x"));
    assert!(!rig.aggregator.delete(Kind::Timer, b"a.y"));
    assert!(!rig.aggregator.delete(Kind::Counter, b"t"), "with its tags");
    assert!(rig.aggregator.delete(Kind::Counter, b"t;u,v"));
    assert!(rig.aggregator.delete(Kind::Counter, b"a-z"));
    assert_eq!(rig.aggregator.figures().aliases, 0);
    rig.add(0, "a/z:5|c\nt:7|c|#v,u");
    let mut deleted = Vec::new();
    let count = rig.aggregator.delete_prefix(Kind::Counter, b"a.", |name| deleted.push(name.to_vec()));
    assert_eq!((count, deleted), (1, vec![b"a.y".to_vec()]));
    assert_eq!(rig.flushed(2000), "c a-z 5.0 2.5; c ab 1.0 0.5; c t[u,v] 7.0 3.5; g a.x 1.0");
    // After their last flush they are hidden, although a sample may still revive them.
    assert_eq!(visit(&rig, Kind::Counter, 9), [""; 0]);
    assert!(!rig.aggregator.delete(Kind::Counter, b"ab"));
    let figures = rig.aggregator.figures();
    assert_eq!((figures.series(Kind::Counter), figures.deleted), (0, 4));
}

#[test]
fn a_new_plan_keeps_the_state() {
    let mut rig = Rig::new(plan());
    rig.add(0, "c:1|c\ng:5|g\nt:1|ms\ns:1|s");
    rig.aggregator.reconfigure(
        AggregatePlan {
            window_ms: 5000,
            align: FlushAlign::Wall,
            percentiles: Vec::new(),
            timer_aggregates: vec!["sum".into()],
            set_members: true,
            ..plan()
        },
        at(1000),
    );
    rig.add(1500, "c:1|c\ng:+1|g\nt:2|ms\ns:2|s");
    assert_eq!(rig.tick(4999, 9), Tick::Idle);
    assert_eq!(rig.flushed(5000), "c c 2.0 0.4; g g 6.0; s s 2 1\\n2; t t sum=3.0");
    // A new plan in the middle of a sweep: the rest of the sweep goes on.
    rig.add(5500, "c:1|c\ng:+1|g");
    assert!(matches!(rig.tick(10_000, 1), Tick::Started(_)));
    rig.aggregator
        .reconfigure(AggregatePlan { timer_aggregates: vec!["count".into()], ..plan() }, at(10_000));
    while !matches!(rig.tick(10_000, 1), Tick::Ended(_)) {}
    assert_eq!(rig.take(), "10 c c 1.0 0.2\n10 g g 7.0\n10 s s 0 \n10 t t count=0.0");
}

#[test]
fn measured_rates_divide_by_the_elapsed_time() {
    let mut rig = Rig::new(AggregatePlan { measured_rates: true, ..plan() });
    rig.add(0, "c:9|c\nt:1|ms");
    let flushed = rig.flushed(4500);
    assert!(flushed.contains("c c 9.0 2.0"), "{flushed}");
    assert!(flushed.contains("count_ps=0.2222222222222222"), "{flushed}");
}

#[test]
fn samples_with_a_timestamp_are_emitted_at_once() {
    let mut rig = Rig::new(plan());
    let added =
        rig.add(0, "a/b:2|c|@0.5|#y,x|T1000007\ng:3|g|T1000008\nt:1|ms|T1000009\nbig:1e300|c|@1e-9|T1");
    assert_eq!((added.routed, added.aggregated, added.rejected_non_finite), (2, 1, 1));
    assert_eq!(rig.take(), "7 T1000007 counter a-b[x,y] 4.0\n8 T1000008 gauge g 3.0");
    assert_eq!((rig.aggregator.len(Kind::Counter), rig.aggregator.len(Kind::Gauge)), (0, 0));
}

#[test]
fn a_self_metric_and_a_users_series_of_the_same_name_are_one() {
    for own_first in [true, false] {
        let mut rig = Rig::new(plan());
        let own = |rig: &mut Rig| {
            rig.aggregator.add_self_metric(Kind::Counter, "statsd.bad_lines_seen", 2.0, |_, _| {});
            rig.aggregator.add_self_metric(Kind::Gauge, "statsd.lag", -1.0, |_, _| {});
        };
        if own_first {
            own(&mut rig);
        }
        rig.add(0, "statsd.bad_lines_seen:1|c\nstatsd.lag:+5|g");
        if !own_first {
            own(&mut rig);
        }
        rig.add(0, "statsd.bad_lines_seen:1|c");
        let lag = if own_first { 4.0 } else { -1.0 };
        let want = format!("c statsd.bad_lines_seen 4.0 2.0; g statsd.lag {lag:?}");
        assert_eq!(rig.flushed(2000), want, "own first: {own_first}");
    }
}

#[test]
fn a_self_metric_gauge_can_be_set_in_the_window_that_was_just_closed() {
    let mut rig = Rig::new(AggregatePlan { idle: idle(SeriesExpiry::Delete { ttl_windows: 1 }), ..plan() });
    let closing = |rig: &mut Rig, value: f64| {
        let Rig { aggregator, emitted, .. } = rig;
        let emit = |info: &model::FlushInfo, flushed: model::Flushed<'_>| {
            emitted.push(super::rig::text(info, &flushed));
        };
        aggregator.add_self_metric_closing("lag", value, emit);
    };
    for (window, value) in [(1, 0.0), (2, 7.0)] {
        assert!(matches!(rig.tick(window * 2000, 1), Tick::Started(_)));
        closing(&mut rig, value);
        while !matches!(rig.tick(window * 2000, 1), Tick::Ended(_)) {}
        assert_eq!(rig.take(), format!("{} g lag {value:?}", window * 2));
    }
    // A user's series of that name is shared, and emitted once.
    let mut other = Rig::new(plan());
    other.add(0, "lag:5|g");
    assert!(matches!(other.tick(2000, 1), Tick::Started(_)));
    closing(&mut other, 1.0);
    while !matches!(other.tick(2000, 1), Tick::Ended(_)) {}
    assert_eq!(other.take(), "2 g lag 1.0");
    // It never expires, not even with `Delete`.
    assert_eq!(rig.flushed(6000), "g lag 7.0");
    // Too late for the closed window: it belongs to the next one.
    assert!(matches!(rig.tick(8000, 1), Tick::Started(_)));
    while !matches!(rig.tick(8000, 9), Tick::Ended(_)) {}
    closing(&mut rig, 8.0);
    assert_eq!(rig.take(), "8 g lag 7.0");
    assert_eq!(rig.flushed(10_000), "g lag 8.0");
}

#[test]
fn stopping_emits_the_open_window_and_the_rest_of_the_closed_one() {
    let mut rig = Rig::new(plan());
    rig.add(0, "a:1|c\nb:1|c\nc:1|c");
    assert!(matches!(rig.tick(2000, 1), Tick::Started(_)));
    assert_eq!(rig.tick(2000, 1), Tick::Sweeping);
    rig.add(2500, "c:5|c");
    let Rig { aggregator, emitted, .. } = &mut rig;
    let end = aggregator.flush_all(at(3000), |info, flushed| emitted.push(super::rig::text(info, &flushed)));
    assert_eq!((end.series, end.info.elapsed_s, end.started), (3, 1.0, at(3000)));
    assert_eq!(
        rig.take(),
        "2 c a 1.0 0.5\n2 c b 1.0 0.5\n2 c c 1.0 0.5\n4 c a 0.0 0.0\n4 c b 0.0 0.0\n4 c c 5.0 2.5"
    );
    assert_eq!(rig.aggregator.due_ns(), at(6000).mono_ns);
}
