//! Checkpoints: an aggregation that was saved and restored emits the same flushes as one that was not.

use model::{Kind, Now};
use proptest::prelude::*;

use super::rig::{Rig, at, canonical, good_hash, idle, plan};
use crate::aggregate::checkpoint::{LastFlush, NotRestored, Restored, Slice, Window, peek};
use crate::aggregate::{AggregatePlan, Aggregator, FlushAlign, KeyFlushPlan, SeriesExpiry, Tick};

const ID: u64 = 0x5eed;

/// The whole state, saved in slices of `series`.
fn saved(aggregator: &mut Aggregator, now: Now, series: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(aggregator.save_begin(ID, 7, now, &mut bytes), "no sweep is under way");
    while aggregator.save_slice(series, &mut bytes) == Slice::More {}
    bytes
}

impl Rig {
    fn restore(&mut self, bytes: &[u8], emitted_s: Option<u64>, ms: u64) -> Result<Restored, NotRestored> {
        let hash = self.hash;
        self.aggregator.restore(
            bytes,
            LastFlush { label_s: emitted_s, number: None },
            at(ms),
            |kind, raw, out| canonical(hash, kind, raw, out),
        )
    }
}

/// A rig that starts at `ms` from the saved `bytes`.
fn restored(plan: AggregatePlan, bytes: &[u8], emitted_s: Option<u64>, ms: u64) -> (Rig, Restored) {
    let mut rig = Rig::new(plan.clone());
    rig.aggregator = Aggregator::new(plan, at(ms));
    let restored = rig.restore(bytes, emitted_s, ms).expect("a valid saved state");
    (rig, restored)
}

/// Small limits, so that few samples cause sketches and estimates.
fn small() -> AggregatePlan {
    AggregatePlan {
        percentiles: vec![(90.0, "90".into()), (-50.0, "-50".into())],
        timer_exact_max: 4,
        set_exact_max: 3,
        set_members: true,
        timer_weights: true,
        ..plan()
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Kind, name, whether the raw key is an alias, value, sample rate of a half, delta.
    Add(usize, u8, bool, i8, bool, bool),
    Tick(usize, u64),
    SelfMetric(u8),
    Delete(usize, u8),
}

fn steps(max: usize) -> impl Strategy<Value = Vec<Step>> {
    let add = (0..4usize, 0u8..9, any::<bool>(), -9i8..10, any::<bool>(), any::<bool>());
    let step = prop_oneof![
        14 => add.prop_map(|(kind, name, other, value, half, delta)| Step::Add(kind, name, other, value, half, delta)),
        6 => (1usize..9, 0u64..900).prop_map(|(budget, ms)| Step::Tick(budget, ms)),
        1 => (0u8..3).prop_map(Step::SelfMetric),
        1 => (0..4usize, 0u8..9).prop_map(|(kind, name)| Step::Delete(kind, name)),
    ];
    prop::collection::vec(step, 0..max)
}

fn apply(rig: &mut Rig, step: &Step, ms: &mut u64) {
    match step {
        Step::Add(kind, name, other, value, half, delta) => {
            let stem = if name.is_multiple_of(4) { "packets_received" } else { "a/b" };
            let stem = if *other { stem.to_owned() } else { stem.replace('/', "-") };
            let word = ["c", "g", "ms", "s"][*kind];
            let sign = if *kind == 1 && *delta && *value >= 0 { "+" } else { "" };
            let value = if *kind == 1 && !*delta { value.unsigned_abs() as i16 } else { (*value).into() };
            let rate = if *half { "|@0.5" } else { "" };
            let tags = if name.is_multiple_of(3) { "|#y,x" } else { "" };
            rig.add(*ms, &format!("{stem}{name}:{sign}{value}|{word}{rate}{tags}"));
        }
        Step::Tick(budget, wait) => {
            *ms += wait;
            rig.tick(*ms, *budget);
        }
        Step::SelfMetric(name) => {
            let Rig { aggregator, emitted, .. } = rig;
            let emit = |info: &model::FlushInfo, flushed: model::Flushed<'_>| {
                emitted.push(super::rig::text(info, &flushed));
            };
            aggregator.add_self_metric(Kind::Counter, &format!("packets_received{name}"), 3.0, emit);
        }
        Step::Delete(kind, name) => {
            let form = format!("a-b{name}{}", if name.is_multiple_of(3) { ";x,y" } else { "" });
            rig.aggregator.delete(Kind::ALL[*kind], form.as_bytes());
        }
    }
}

fn policies() -> impl Strategy<Value = SeriesExpiry> {
    prop_oneof![
        Just(SeriesExpiry::Keep),
        (1u32..4).prop_map(|ttl_windows| SeriesExpiry::Delete { ttl_windows }),
        (1u64..9).prop_map(|seconds| SeriesExpiry::After { seconds }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_aggregation_emits_the_same_as_the_saved_one(
        counters in policies(), gauges in policies(), timers in policies(), sets in policies(),
        align in prop_oneof![Just(FlushAlign::Wall), Just(FlushAlign::Start), Just(FlushAlign::Interval)],
        measured_rates in any::<bool>(),
        before in steps(120), after in steps(120), series in 1usize..7,
    ) {
        let mut plan = AggregatePlan { align, measured_rates, ..small() };
        plan.idle = idle(counters);
        (plan.idle.gauges, plan.idle.timers, plan.idle.sets) = (gauges, timers, sets);
        let mut rig = Rig::new(plan.clone());
        let mut ms = 0;
        for step in &before {
            apply(&mut rig, step, &mut ms);
        }
        // A sweep under way ends first, and no window is overdue.
        while rig.tick(ms, 5) != Tick::Idle {}
        let bytes = saved(&mut rig.aggregator, at(ms), series);
        let (mut other, found) = restored(plan, &bytes, None, ms);
        prop_assert_eq!(found.window, Window::Continued);
        prop_assert_eq!((found.damaged, found.cut_short, found.dropped_series_max), (0, false, 0));
        prop_assert_eq!(other.aggregator.due_ns(), rig.aggregator.due_ns());
        rig.take();
        let mut other_ms = ms;
        for step in after.iter().chain(&[Step::Tick(9, 4000)]) {
            for (rig, ms) in [(&mut rig, &mut ms), (&mut other, &mut other_ms)] {
                apply(rig, step, ms);
                // Sweeps end at once. Otherwise the order in which series were created would decide which of them a
                // sample meets before the sweep, and a sweep would take longer with aliases, which are not saved.
                while matches!(step, Step::Tick(..)) && rig.tick(*ms, 9) != Tick::Idle {}
            }
        }
        for kind in Kind::ALL {
            prop_assert_eq!(rig.aggregator.len(kind), other.aggregator.len(kind), "{:?}", kind);
        }
        let (figures, others) = (rig.aggregator.figures(), other.aggregator.figures());
        prop_assert_eq!(figures.timer_values, others.timer_values);
        prop_assert_eq!(rig.take(), other.take());
    }

    #[test]
    fn changed_bytes_are_detected_or_harmless(
        steps in steps(60), flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..4),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut rig = Rig::new(small());
        let mut ms = 0;
        steps.iter().for_each(|step| apply(&mut rig, step, &mut ms));
        while rig.tick(ms, 5) != Tick::Idle {}
        let bytes = saved(&mut rig.aggregator, at(ms), 3);
        let (_, whole) = restored(small(), &bytes, None, ms);
        let mut broken = bytes.clone();
        for (place, bit) in &flips {
            let place = place.index(broken.len());
            broken[place] ^= 1 << bit;
        }
        if let Some(cut) = cut {
            broken.truncate(cut.index(broken.len()));
        }
        let mut other = Rig::new(small());
        other.aggregator = Aggregator::new(small(), at(ms));
        if let Ok(found) = other.restore(&broken, None, ms) {
            prop_assert!(found.series <= whole.series);
            prop_assert!(found.cut_short || found.series + found.damaged == whole.series);
            prop_assert!(broken == bytes || found.cut_short || found.damaged > 0 || found.series == whole.series);
        }
        other.tick(ms + 2000, 1000);
        other.tick(ms + 2000, 1000);
    }
}

const LINES: &str = "c:3|c\ng:5|g\nt:1|ms\ns:a|s";

#[test]
fn a_window_that_ended_while_no_instance_ran_is_closed_under_its_own_label() {
    for align in [FlushAlign::Wall, FlushAlign::Start, FlushAlign::Interval] {
        let mut rig = Rig::new(AggregatePlan { align, measured_rates: true, ..plan() });
        rig.add(500, LINES);
        let bytes = saved(&mut rig.aggregator, at(900), 2);
        let want = rig.flush(2000);
        let want = (want.info, rig.take());
        let (mut other, found) = restored(rig.aggregator.plan().clone(), &bytes, None, 7_300);
        assert_eq!(found.window, Window::Closed(want.0), "{align:?}");
        assert_eq!(found.last_flush_s, Some(1_000_002), "{align:?}");
        other.add(7_300, "c:100|c\nn:1|c");
        let Tick::Ended(end) = other.tick(7_300, 1000) else { panic!("a sweep was under way") };
        assert_eq!((end.info, other.take()), want, "{align:?}");
        // The next window is the current one on the grid.
        let (due_ms, label) = match align {
            FlushAlign::Wall => (8_000, 8),
            FlushAlign::Start => (10_000, 10),
            FlushAlign::Interval => (9_300, 9),
        };
        assert_eq!(other.aggregator.due_ns(), due_ms * 1_000_000, "{align:?}");
        other.flush(due_ms);
        assert!(other.take().contains(&format!("{label} c c 100.0 ")), "{align:?}");
    }
}

#[test]
fn only_gauges_and_idle_series_are_restored_when_the_window_was_emitted() {
    for align in [FlushAlign::Wall, FlushAlign::Start, FlushAlign::Interval] {
        for (idle_plan, want) in [
            (idle(SeriesExpiry::Keep), "c c 0.0 0.0; g g 5.0; s s 0 ; t t count_ps=0.0 count=0.0"),
            (idle(SeriesExpiry::Delete { ttl_windows: 2 }), "g g 5.0"),
            (
                idle(SeriesExpiry::After { seconds: 4 }),
                "c c 0.0 0.0; g g 5.0; s s 0 ; t t count_ps=0.0 count=0.0",
            ),
            (idle(SeriesExpiry::After { seconds: 3 }), ""),
        ] {
            let mut rig = Rig::new(AggregatePlan { align, idle: idle_plan, ..plan() });
            rig.add(500, LINES);
            let bytes = saved(&mut rig.aggregator, at(900), 2);
            rig.flush(2000);
            rig.take();
            let (mut other, found) = restored(rig.aggregator.plan().clone(), &bytes, Some(1_000_002), 2_200);
            assert_eq!(found.window, Window::LeftOut, "{align:?}");
            let due_ms = other.aggregator.due_ns() / 1_000_000;
            assert_eq!(due_ms, if align == FlushAlign::Interval { 4_200 } else { 4_000 });
            assert_eq!(other.flushed(due_ms), want, "{align:?} {idle_plan:?}");
            assert_eq!(rig.flushed(4_000), want, "as the one that was not killed: {align:?}");
        }
    }
}

#[test]
fn values_of_a_save_with_a_flushed_number_are_left_out_on_any_clock_and_grid() {
    let mut rig = Rig::new(AggregatePlan { align: FlushAlign::Wall, ..plan() });
    rig.add(500, "c:3|c");
    let bytes = saved(&mut rig.aggregator, at(900), 2);
    let number = peek(&bytes).expect("a valid saved state").number;
    let same = rig.aggregator.plan().clone();
    let other = AggregatePlan { window_ms: 5000, ..same.clone() };
    let label_s = Some(1_000_002);
    for (plan, wall_s, last, window) in [
        // (label of the last flush, number of the last flushed save)
        (&same, 1_000_000, (label_s, Some(number)), Window::LeftOut),
        (&same, 900_000, (label_s, Some(number)), Window::LeftOut),
        (&same, 900_000, (label_s, Some(number - 1)), Window::Continued),
        // Its values continued in a window of another grid, whose label is lower.
        (&other, 1_000_001, (Some(1_000_000), Some(number)), Window::LeftOut),
        (&other, 1_000_001, (Some(1_000_000), Some(number - 1)), Window::Continued),
    ] {
        let now = Now { mono_ns: 5, wall_ns: wall_s * model::SECOND_NS };
        let last = LastFlush { label_s: last.0, number: last.1 };
        let mut aggregator = Aggregator::new(plan.clone(), now);
        let found =
            aggregator.restore(&bytes, last, now, |kind, raw, out| canonical(good_hash, kind, raw, out));
        assert_eq!(found.map(|found| found.window), Ok(window), "{wall_s} {last:?}");
    }
}

#[test]
fn an_overdue_window_without_a_sample_is_not_emitted() {
    let mut rig = Rig::new(AggregatePlan { align: FlushAlign::Wall, ..plan() });
    rig.add(500, LINES);
    rig.flush(2000);
    let bytes = saved(&mut rig.aggregator, at(2100), 2);
    let (mut other, found) = restored(rig.aggregator.plan().clone(), &bytes, Some(1_000_002), 7_300);
    assert_eq!((found.window, found.series, found.active), (Window::LeftOut, 4, 0));
    assert_eq!(other.flushed(8_000), "c c 0.0 0.0; g g 5.0; s s 0 ; t t count_ps=0.0 count=0.0");
}

#[test]
fn implausible_labels_and_windows_are_ignored_and_a_new_grid_acts_as_a_reload() {
    let mut rig = Rig::new(AggregatePlan { align: FlushAlign::Wall, ..plan() });
    rig.add(500, "c:3|c");
    let bytes = saved(&mut rig.aggregator, at(900), 2);
    let plan = rig.aggregator.plan().clone();
    let (_, found) = restored(plan.clone(), &bytes, Some(2_000_000), 1_000);
    assert_eq!(found.window, Window::Continued, "a label from the future is ignored");
    let wall_back = Now { mono_ns: 5, wall_ns: 900_000 * model::SECOND_NS };
    let mut other = Aggregator::new(plan.clone(), wall_back);
    let found = other.restore(&bytes, LastFlush::default(), wall_back, |kind, raw, out| {
        canonical(good_hash, kind, raw, out)
    });
    assert_eq!(found.map(|found| found.window), Ok(Window::Continued));
    assert_eq!(other.due_ns(), 5 + 2 * model::SECOND_NS, "the clock was set back: its own next slot");
    let other_window = AggregatePlan { window_ms: 5000, ..plan };
    let (mut other, found) = restored(other_window, &bytes, None, 7_300);
    assert_eq!(found.window, Window::Continued);
    assert_eq!(other.flushed(10_000), "c c 3.0 0.6");
}

#[test]
fn a_restored_estimate_keeps_its_seed() {
    let mut rig = Rig::new(small());
    let members = |from: u32, to: u32| (from..to).map(|at| format!("s:m{at}|s\n")).collect::<String>();
    rig.add(0, &members(0, 1000));
    let bytes = saved(&mut rig.aggregator, at(100), 10);
    let (mut other, _) = restored(small(), &bytes, None, 100);
    other.hash = |kind, name, tags| good_hash(kind, name, tags) ^ 0x1234_5678_9abc_def0;
    other.aggregator = Aggregator::new(small(), at(100));
    other.restore(&bytes, None, 100).expect("a valid saved state");
    rig.add(200, &members(500, 1500));
    other.add(200, &members(500, 1500));
    assert_eq!(
        other.flushed(2000),
        rig.flushed(2000),
        "hashes use the saved seed, not the seed of the process"
    );
}

#[test]
fn restored_series_beyond_series_max_are_dropped_and_counted() {
    let mut rig = Rig::new(small());
    rig.add(0, "a:1|c\nb:1|c\nt:1|ms\nt:2|ms\nt:3|ms|@0.5\ns:x|s");
    let bytes = saved(&mut rig.aggregator, at(100), 10);
    for (series_max, series) in [(4, 4), (3, 3), (2, 2), (0, 0)] {
        let (mut other, found) = restored(AggregatePlan { series_max, ..small() }, &bytes, None, 100);
        assert_eq!((found.series, found.dropped_series_max, found.damaged), (series, 4 - series, 0));
        assert_eq!(other.aggregator.figures().series_total(), series);
        other.flush(2000);
        assert_eq!(other.aggregator.figures().timer_values, 0);
    }
}

#[test]
fn a_save_is_void_after_its_window_and_cannot_begin_during_a_sweep() {
    let mut rig = Rig::new(plan());
    rig.add(0, LINES);
    let mut bytes = Vec::new();
    assert!(rig.aggregator.save_begin(ID, 1, at(100), &mut bytes));
    assert!(rig.aggregator.is_changed(), "the save may never be completed");
    assert_eq!(rig.aggregator.save_slice(2, &mut bytes), Slice::More);
    assert!(rig.aggregator.is_changed());
    assert!(matches!(rig.tick(2000, 1), Tick::Started(_)));
    assert_eq!(rig.aggregator.save_slice(2, &mut bytes), Slice::Void);
    assert!(rig.aggregator.is_changed(), "nothing was saved");
    assert!(!rig.aggregator.save_begin(ID, 2, at(2000), &mut Vec::new()), "a sweep is under way");
    while !matches!(rig.tick(2000, 1), Tick::Ended(_)) {}
    assert!(rig.aggregator.save_begin(ID, 2, at(2000), &mut bytes));
}

#[test]
fn invalid_bytes_are_rejected_with_a_reason() {
    let mut rig = Rig::new(plan());
    rig.add(0, LINES);
    let bytes = saved(&mut rig.aggregator, at(100), 10);
    assert_eq!(peek(&bytes).map(|peeked| peeked.number), Ok(7));
    let mut version = bytes.clone();
    version[8] = 2;
    let mut header = bytes.clone();
    header[40] ^= 1;
    for (bytes, why) in [
        (&b""[..], NotRestored::NotSavedState),
        (b"last-flush", NotRestored::NotSavedState),
        (&version, NotRestored::Version),
        (&header, NotRestored::Header),
        (&bytes[..95], NotRestored::Header),
    ] {
        assert_eq!(rig.restore(bytes, None, 100), Err(why));
    }
}

#[test]
fn busy_names_and_self_metrics_are_restored() {
    let key_flush = Some(KeyFlushPlan { interval_ms: 1000, percent: 100.0, round_up: true });
    let plan = AggregatePlan { key_flush, ..plan() };
    let mut rig = Rig::new(plan.clone());
    b"abca".iter().for_each(|name| rig.aggregator.count_name(&[*name]));
    rig.aggregator.add_self_metric(Kind::Counter, "own", 2.0, |_, _| {});
    rig.add(0, "own:1|g");
    let bytes = saved(&mut rig.aggregator, at(100), 10);
    let mut other = Rig::new(plan);
    other.aggregator.add_self_metric(Kind::Counter, "own", 0.0, |_, _| {});
    other.restore(&bytes, None, 100).expect("a valid saved state");
    other.add(200, "own:1|c");
    other.aggregator.add_self_metric(Kind::Counter, "own", 2.0, |_, _| {});
    let report = other.aggregator.key_flush(at(1500)).expect("it is due");
    assert_eq!(report, [(b"a".to_vec(), 2), (b"b".to_vec(), 1), (b"c".to_vec(), 1)]);
    assert_eq!(other.flushed(2000), "c own 5.0 2.5; g own 1.0");
}
