//! Labels and ends of windows when the wall clock steps.

use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn at(mono_ms: u64, wall_ms: u64) -> Now {
    Now { mono_ns: mono_ms * MS, wall_ns: wall_ms * MS }
}

/// Runs `windows` windows on time and without a step: (due in ms since the start, label, elapsed).
fn run(align: FlushAlign, window_ms: u64, wall_ms: u64, windows: usize) -> Vec<(u64, u64, f64)> {
    let start = at(5_000, wall_ms);
    let mut clock = Clock::new(align, window_ms, start);
    (0..windows)
        .map(|_| {
            let due = clock.due_ns();
            let info = clock.close(start.plus_ns(due - start.mono_ns));
            ((due - start.mono_ns) / MS, info.time_s, info.elapsed_s)
        })
        .collect()
}

#[test]
fn slots_are_where_the_spec_puts_them() {
    use FlushAlign::{Interval, Start, Wall};
    // The start second is rounded: 1003.4 s to 1003, 1003.6 s to 1004.
    assert_eq!(run(Start, 10_000, 1_003_400, 2), [(9_600, 1013, 9.6), (19_600, 1023, 10.0)]);
    assert_eq!(run(Start, 10_000, 1_003_600, 2), [(10_400, 1014, 10.4), (20_400, 1024, 10.0)]);
    assert_eq!(run(Wall, 10_000, 1_003_400, 2), [(6_600, 1010, 6.6), (16_600, 1020, 10.0)]);
    assert_eq!(run(Wall, 10_000, 1_010_000, 1), [(10_000, 1020, 10.0)]);
    assert_eq!(run(Interval, 10_000, 1_003_900, 2), [(10_000, 1013, 10.0), (20_000, 1023, 10.0)]);
    // Several flushes share a second when the window is shorter; halves round up.
    let labels: Vec<u64> = run(Start, 500, 7_000, 4).iter().map(|window| window.1).collect();
    assert_eq!(labels, [8, 8, 9, 9]);
}

#[test]
fn a_restart_neither_repeats_nor_skips_a_slot() {
    // Stopped in the slot of 1070. (started at, label of the previous instance) -> first label here.
    for (start_ms, before, first) in [
        (1_069_200, 1070, 1080),
        (1_071_000, 1070, 1080),
        (1_085_000, 1070, 1090),
        (1_069_200, 1060, 1070),
        (1_069_200, 9_999, 1070),
    ] {
        let mut clock = Clock::new(FlushAlign::Wall, 10_000, at(0, start_ms));
        clock.resume(before, at(0, start_ms));
        let due_ms = clock.due_ns() / MS;
        assert_eq!(clock.close(at(due_ms, start_ms + due_ms)).time_s, first, "{start_ms} {before}");
        assert_eq!(due_ms + start_ms, first * 1000, "{start_ms} {before}");
    }
}

#[test]
fn a_late_flush_skips_slots_as_node_does() {
    let start = at(0, 1_000_000);
    for (align, late_ms, label, next_due_ms) in [
        (FlushAlign::Start, 4_000, 1010, 20_000),
        (FlushAlign::Start, 6_000, 1010, 30_000),
        (FlushAlign::Start, 14_000, 1020, 30_000),
        (FlushAlign::Wall, 6_000, 1010, 20_000),
        (FlushAlign::Wall, 26_000, 1030, 40_000),
        (FlushAlign::Interval, 6_000, 1010, 20_000),
        (FlushAlign::Interval, 26_000, 1010, 40_000),
    ] {
        let mut clock = Clock::new(align, 10_000, start);
        let info = clock.close(start.plus_ns((10_000 + late_ms) * MS));
        assert_eq!((info.time_s, info.window_s), (label, 10.0), "{align:?} late by {late_ms}");
        assert_eq!(clock.due_ns(), next_due_ms * MS, "{align:?} late by {late_ms}");
    }
}

#[test]
fn small_steps_of_the_wall_clock_neither_repeat_nor_skip_a_slot() {
    for (align, step_ms, next_label, next_wait_ms) in [
        (FlushAlign::Wall, 300, 10_020, 9_700),
        (FlushAlign::Wall, -300, 10_020, 10_300),
        (FlushAlign::Wall, -4_000, 10_020, 14_000),
        (FlushAlign::Wall, -10_000, 10_020, 20_000),
        (FlushAlign::Wall, -20_000, 10_020, 20_000),
        (FlushAlign::Wall, 3_600_000, 13_620, 10_000),
        (FlushAlign::Wall, -20_001, 9_990, 1),
        (FlushAlign::Wall, -3_600_000, 6_420, 10_000),
        (FlushAlign::Start, -300, 10_020, 10_300),
    ] {
        let mut clock = Clock::new(align, 10_000, at(0, 10_000_000));
        let wall = |mono_ms: u64| (mono_ms + 10_000_000).saturating_add_signed(step_ms);
        // The step falls into the first window: its label is that of the end that was set before.
        let first = clock.close(at(10_000, wall(10_000)));
        assert_eq!(first.time_s, 10_010, "{align:?} {step_ms}");
        let due_ms = clock.due_ns() / MS;
        assert_eq!(due_ms - 10_000, next_wait_ms, "{align:?} {step_ms}");
        assert_eq!(clock.close(at(due_ms, wall(due_ms))).time_s, next_label, "{align:?} {step_ms}");
    }
    let mut driven = Driven::new(FlushAlign::Interval);
    assert_eq!(driven.labels(2), [10, 20]);
    driven.step_s(-15);
    assert_eq!(driven.labels(3), [21, 25, 35], "no label is used twice");
}

/// A clock that is called on time, while the wall clock steps.
struct Driven {
    clock: Clock,
    now: Now,
}

impl Driven {
    fn new(align: FlushAlign) -> Driven {
        Driven::of(align, 10_000)
    }

    fn of(align: FlushAlign, window_ms: u64) -> Driven {
        let now = at(0, 1_700_000_000_000);
        Driven { clock: Clock::new(align, window_ms, now), now }
    }

    fn step_s(&mut self, step_s: i64) {
        self.now.wall_ns = self.now.wall_ns.saturating_add_signed(step_s * 1_000_000_000);
    }

    /// The next `windows` labels, as seconds since the start on a clock that does not step.
    fn labels(&mut self, windows: usize) -> Vec<i64> {
        let label = |_| {
            self.now = self.now.plus_ns(self.clock.due_ns() - self.now.mono_ns);
            self.clock.close(self.now).time_s as i64 - 1_700_000_000
        };
        (0..windows).map(label).collect()
    }
}

#[test]
fn labels_follow_a_clock_that_jumps_and_returns() {
    const DAY_S: i64 = 86_400;
    for align in [FlushAlign::Wall, FlushAlign::Start, FlushAlign::Interval] {
        for away_s in [DAY_S, -DAY_S, 365 * DAY_S, -365 * DAY_S, 3_600, -3_600] {
            let mut driven = Driven::new(align);
            assert_eq!(driven.labels(2), [10, 20], "{align:?} {away_s}");
            driven.step_s(away_s);
            // The end of the open window was set before; `interval` has none.
            let first = if align == FlushAlign::Interval { 30 + away_s } else { 30 };
            assert_eq!(driven.labels(3), [first, 40 + away_s, 50 + away_s], "{align:?} {away_s}");
            driven.step_s(-away_s);
            let first = if align == FlushAlign::Interval { 60 } else { 60 + away_s };
            assert_eq!(driven.labels(3), [first, 70, 80], "{align:?} {away_s}");
            let ClockFigures { jumps_ahead, jumps_back, mislabelled, .. } = driven.clock.figures();
            // After a jump back it is not known yet which time was wrong: labels ahead of the clock count too.
            let ahead = match align {
                _ if away_s > 0 => 0,
                FlushAlign::Interval => 2,
                _ => 3,
            };
            assert_eq!((jumps_ahead, jumps_back, mislabelled), (1, 1, 3 + ahead), "{align:?} {away_s}");
        }
    }
}

#[test]
fn a_jump_that_returns_within_a_window_changes_nothing() {
    let mut driven = Driven::new(FlushAlign::Wall);
    driven.labels(1);
    driven.step_s(86_400);
    driven.now = driven.now.plus_ns(2_000 * MS);
    driven.step_s(-86_400);
    assert_eq!(driven.labels(3), [20, 30, 40]);
    assert_eq!(driven.clock.figures(), ClockFigures::default());
}

#[test]
fn labels_follow_a_clock_that_is_corrected_after_the_start() {
    let mut driven = Driven::new(FlushAlign::Wall);
    assert_eq!(driven.labels(3), [10, 20, 30]);
    driven.step_s(-86_400);
    assert_eq!(driven.labels(3), [40, 50 - 86_400, 60 - 86_400]);
    let ClockFigures { jumps_back, mislabelled, .. } = driven.clock.figures();
    assert_eq!((jumps_back, mislabelled), (1, 4), "all windows labelled so far");
}

#[test]
fn an_implausible_label_of_a_previous_instance_is_dropped() {
    // Windows of 10 s: restarts may use up labels 16 windows ahead.
    for (ahead_s, dropped) in [(10, 0), (160, 0), (161, 1), (86_400, 1)] {
        let now = at(0, 1_700_000_000_000);
        let mut clock = Clock::new(FlushAlign::Wall, 10_000, now);
        clock.resume(1_700_000_000 + ahead_s, now);
        assert_eq!(clock.figures().labels_dropped, dropped, "{ahead_s}");
        assert_eq!(clock.labelled_s().is_none(), dropped == 1, "{ahead_s}");
    }
}

#[test]
fn an_open_window_is_not_continued_after_the_clock_was_set_back() {
    // Windows of 2 s; the clock of the previous instance was this many seconds ahead.
    for (ahead_s, want) in [
        (0, Reopening::Continue),
        (4, Reopening::Continue),
        (5, Reopening::Unusable),
        (30, Reopening::Unusable),
    ] {
        let before = Clock::new(FlushAlign::Wall, 2_000, at(7_000, 1_700_000_000_000 + ahead_s * 1000));
        let open = before.open_window(at(7_500, 1_700_000_000_500 + ahead_s * 1000));
        let now = at(0, 1_700_000_000_000);
        let clock = Clock::new(FlushAlign::Wall, 2_000, now);
        assert_eq!(clock.reopening(&open, Some(false), None, now), want, "{ahead_s}");
    }
}

#[test]
fn a_label_of_another_aggregation_only_moves_the_clock_ahead() {
    let now = at(0, 1_700_000_004_000);
    for (label_s, first) in [(0, 10), (10, 20), (30, 40), (161, 170), (165, 10)] {
        let mut clock = Clock::new(FlushAlign::Wall, 10_000, now);
        clock.resume_after_other(1_700_000_000 + label_s, now);
        assert_eq!(clock.close(now).time_s, 1_700_000_000 + first, "{label_s}");
        assert_eq!(clock.figures().labels_dropped, 0, "{label_s}");
    }
}

#[test]
fn interval_windows_of_a_second_absorb_a_small_step_back() {
    let mut driven = Driven::of(FlushAlign::Interval, 1_000);
    assert_eq!(driven.labels(2), [1, 2]);
    driven.step_s(-2);
    assert_eq!(driven.labels(4), [3, 4, 5, 6]);
    let wall_s = |driven: &Driven| (driven.now.wall_ns / SECOND_NS) as i64 - 1_700_000_000;
    assert_eq!(wall_s(&driven), 6, "the second window made up the difference");
}

#[test]
fn an_open_window_stores_its_opening_time_by_the_clock_before_the_jump() {
    for (back_s, want) in [(15, Reopening::Continue), (30, Reopening::Unusable)] {
        let mut driven = Driven::new(FlushAlign::Wall);
        driven.labels(2);
        driven.step_s(-back_s);
        let open = driven.clock.open_window(driven.now);
        let clock = Clock::new(FlushAlign::Wall, 10_000, driven.now);
        assert_eq!(clock.reopening(&open, Some(false), None, driven.now), want, "{back_s}");
    }
}

#[test]
fn a_returning_clock_continues_after_labels_used_by_a_previous_process() {
    // Ended early at 195 s, and restarted with a clock that is ten minutes ahead.
    let now = at(0, 795_100);
    let mut clock = Clock::new(FlushAlign::Wall, 10_000, now);
    clock.resume(200, now);
    // The clock returns at once: one window has a label of the wrong clock.
    let mut now = at(0, 195_100);
    now = now.plus_ns(clock.due_ns());
    assert_eq!(clock.close(now).time_s, 800);
    assert_eq!(clock.close(now.plus_ns(clock.due_ns() - now.mono_ns)).time_s, 210);
}

#[test]
fn a_label_from_before_a_jump_back_is_not_passed_to_the_next_process() {
    for (back_s, left_s) in [(15, Some(30)), (3_600, None)] {
        let mut driven = Driven::new(FlushAlign::Wall);
        driven.labels(2);
        driven.step_s(-back_s);
        assert_eq!(driven.labels(1), [30]);
        let left = driven.clock.labelled_s().map(|label_s| label_s - 1_700_000_000);
        assert_eq!(left, left_s, "{back_s}");
    }
}

#[test]
fn an_early_end_takes_the_label_of_its_slot() {
    let start = at(0, 1_000_000);
    for (align, label, next_label) in
        [(FlushAlign::Wall, 1010, 1020), (FlushAlign::Start, 1010, 1020), (FlushAlign::Interval, 1004, 1014)]
    {
        let mut clock = Clock::new(align, 10_000, start);
        let info = clock.close(start.plus_ns(4_000 * MS));
        assert_eq!((info.time_s, info.elapsed_s), (label, 4.0), "{align:?}");
        let due = clock.due_ns();
        assert_eq!(clock.close(start.plus_ns(due)).time_s, next_label, "{align:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn labels_strictly_increase_except_at_jumps_back(
        align in prop_oneof![Just(FlushAlign::Wall), Just(FlushAlign::Start), Just(FlushAlign::Interval)],
        window_ms in 1_000u64..30_000,
        start_ms in 1_000_000_000u64..1_000_100_000,
        moves in prop::collection::vec((0u64..40_000, -100_000i64..100_000, 0u8..4, 1_000u64..30_000), 1..60),
    ) {
        let mut now = at(77_000, start_ms);
        let mut clock = Clock::new(align, window_ms, now);
        let (mut last, mut back) = (None, 0);
        for (late_ms, step_ms, what, other_ms) in moves {
            let wait = clock.due_ns().saturating_sub(now.mono_ns);
            match what {
                0 => now = now.plus_ns(wait),
                1 => now = now.plus_ns(wait + late_ms * MS),
                2 => now = now.plus_ns(wait / 2),
                _ => {
                    now = now.plus_ns(wait / 3);
                    clock.follow(align, other_ms, now);
                    now = now.plus_ns(clock.due_ns() - now.mono_ns);
                }
            }
            let before = clock.figures().jumps_back;
            let info = clock.close(now);
            // On a grid, a jump shows in the label of the following window.
            let jumped = clock.figures().jumps_back > if align == FlushAlign::Interval { before } else { back };
            prop_assert!(jumped || last.is_none_or(|last| info.time_s > last), "{last:?} then {info:?}");
            back = before;
            prop_assert!(clock.due_ns() > now.mono_ns);
            last = Some(info.time_s);
            now.wall_ns = now.wall_ns.saturating_add_signed(step_ms * 1_000_000);
        }
    }

    #[test]
    fn two_windows_after_any_step_labels_match_the_wall_clock(
        align in prop_oneof![Just(FlushAlign::Wall), Just(FlushAlign::Start), Just(FlushAlign::Interval)],
        steps in prop::collection::vec((0usize..4, -40_000_000i64..40_000_000, 0u64..10_000), 1..20),
    ) {
        let mut driven = Driven::new(align);
        for (windows, step_s, into_ms) in steps {
            driven.labels(windows);
            let into_ns = (into_ms * MS).min(driven.clock.due_ns() - driven.now.mono_ns);
            driven.now = driven.now.plus_ns(into_ns);
            driven.step_s(step_s >> (into_ms % 25));
        }
        driven.labels(2);
        let wall_s = |now: Now| now.wall_ns as f64 / 1e9 - 1.7e9;
        for _window in 0..3 {
            let label = driven.labels(1)[0];
            prop_assert!((label as f64 - wall_s(driven.now)).abs() <= 1.0, "{label} {:?}", wall_s(driven.now));
        }
    }
}
