//! The state of an aggregation, through a reload that changes its options, and into another process.

mod world;

use config::plan::Plan;
use model::{Now, SECOND_NS, SourceId};
use pipeline::{Kept, SavedState};
use process::aggregate::checkpoint::{LastFlush, Slice, Window};
use world::{START, World, plan_of};

fn plan(dialect: &str, options: &str) -> Plan {
    let text = format!(
        "[sources.s]\ntype = \"statsd\"\ndialect = \"{dialect}\"\n\
         [transforms.t]\ntype = \"aggregate\"\nfrom = [\"s\"]\nself_counters = \"none\"\n{options}\n\
         [outputs.o]\ntype = \"graphite\"\nfrom = [\"t\"]\nto = [\"tcp://127.0.0.1:2003\"]\n"
    );
    plan_of(&text)
}

impl World {
    /// User lines of a last flush at `now`, without our own metrics, sorted.
    fn stopped(&mut self, now: Now) -> Vec<String> {
        self.shard.stop(now, &mut self.routed);
        self.lines()
    }

    fn lines(&mut self) -> Vec<String> {
        let text = self.text();
        let mut lines: Vec<String> =
            text.lines().filter(|line| !line.contains("statsd.")).map(str::to_owned).collect();
        lines.sort();
        lines
    }

    fn value(lines: &[String], name: &str) -> Option<String> {
        let line = lines.iter().find(|line| line.split(' ').next() == Some(name))?;
        line.split(' ').nth(1).map(str::to_owned)
    }
}

/// All kinds, sampled and tagged, with names that are normalized; many members and many values.
fn traffic() -> String {
    let mut lines = String::from(
        "hits:3|c\nhits:1|c|@0.1\na b/c:2|c|#z:1,y:2\nload:70|g\nload:+7|g\nfew:5|ms\nfew:7|ms|@0.5\nsize:1|h\n\
         lag:2|d|@0.25\nusers:a|s\nusers:b|s\n",
    );
    for at in 0..30 {
        lines += &format!("crowd:m{at}|s\nmany:{at}.5|ms\n");
    }
    lines
}

fn export(world: &mut World, now: Now) -> SavedState {
    let mut states = world.shard.export(&Kept::of(&world.plan), 7, now, &mut world.routed);
    assert_eq!(states.len(), 1);
    states.remove(0)
}

#[test]
fn an_export_is_no_checkpoint() {
    let mut world = World::new(plan("union", ""), 1);
    world.send("hits:1|c", START);
    assert!(world.shard.is_changed("t"));
    export(&mut world, START);
    assert!(world.shard.is_changed("t"), "the next checkpoint has it");
    assert!(world.shard.save_begin("t", 1, 1, START, &mut Vec::new()));
    assert!(world.shard.is_changed("t"), "a checkpoint that does not come to its end");
    while world.shard.save_slice("t", 100, &mut Vec::new()) == Slice::More {}
    assert!(!world.shard.is_changed("t"));
    export(&mut world, START);
    assert!(!world.shard.is_changed("t"));
}

const SMALL: &str = "max_exact_timer_values = 8\nmax_exact_set_members = 8\nset_members = true";

#[test]
fn another_process_continues_where_this_one_ended() {
    for dialect in ["union", "dogstatsd"] {
        let plan = || plan(dialect, SMALL);
        let (mut one, mut other) = (World::new(plan(), 1), World::new(plan(), 99));
        one.send(&traffic(), START);
        let later = START.plus_ns(2 * SECOND_NS);
        let state = export(&mut one, later);
        assert_eq!(one.lines(), [""; 0], "no window is closed");
        let restored = other.shard.import("t", &state.bytes, LastFlush::default(), later);
        let restored = restored.expect("it has that aggregation").expect("it is saved state");
        assert_eq!(
            (restored.window, restored.damaged, restored.dropped_series_max),
            (Window::Continued, 0, 0)
        );
        assert_eq!(other.shard.figures()[0].figures.series_total(), restored.series);
        // The same spellings find the same series, whatever the hashes of the process.
        for world in [&mut one, &mut other] {
            world.send(&traffic(), later);
        }
        let end = START.plus_ns(5 * SECOND_NS);
        let (mut one, mut other) = (one.stopped(end), other.stopped(end));
        // Members after the switch from exact to estimated have the same hashes, since the seed was exported.
        assert_eq!(World::value(&other, "stats_counts.hits").as_deref(), Some("26"), "{dialect}");
        one.dedup();
        other.dedup();
        assert_eq!(one, other, "{dialect}");
    }
}

#[test]
fn an_export_during_a_flush_emits_the_closed_window_first() {
    let mut world = World::new(plan("union", ""), 1);
    world.send("a:1|c\nb:2|c\nc:3|c", START);
    let due = START.plus_ns(10 * SECOND_NS);
    world.shard.tick(due, 1, &mut world.routed);
    world.shard.tick(due, 1, &mut world.routed);
    world.send("a:10|c", due);
    let state = export(&mut world, due);
    let closed = world.lines();
    for (name, value) in [("a", "1"), ("b", "2"), ("c", "3")] {
        assert_eq!(World::value(&closed, &format!("stats_counts.{name}")).as_deref(), Some(value));
    }
    let mut other = World::new(plan("union", ""), 2);
    other.shard.import("t", &state.bytes, LastFlush::default(), due).expect("there").expect("saved state");
    let open = other.stopped(due);
    assert_eq!(World::value(&open, "stats_counts.a").as_deref(), Some("10"));
    assert_eq!(World::value(&open, "stats_counts.b").as_deref(), Some("0"));
}

#[test]
fn names_with_a_new_spelling_keep_their_values_and_get_no_more() {
    let mut one = World::new(plan("dogstatsd", ""), 1);
    one.send("a b:1|c\nplain:1|c", START);
    let state = export(&mut one, START);
    let mut other = World::new(plan("union", ""), 2);
    other.shard.import("t", &state.bytes, LastFlush::default(), START).expect("there").expect("saved state");
    other.send("a b:4|c\nplain:4|c", START);
    let lines = other.stopped(START);
    assert_eq!(World::value(&lines, "stats_counts.plain").as_deref(), Some("5"));
    // Two series, as after a reload; the output gives both one name.
    let of_both: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("stats_counts.a_b ")).collect();
    assert_eq!(of_both, ["1 1000000010", "4 1000000010"]);
}

#[test]
fn an_unknown_aggregation_is_not_imported() {
    let mut one = World::new(plan("union", ""), 1);
    let state = export(&mut one, START);
    assert!(one.shard.import("other", &state.bytes, LastFlush::default(), START).is_none());
    assert!(matches!(one.shard.import("t", b"no state", LastFlush::default(), START), Some(Err(_))));
}

#[test]
fn every_kind_survives_a_reload_that_changes_every_option() {
    let changes = [
        ("", "percentiles = [50, 99]"),
        ("", "window = \"1h\""),
        ("window = \"1h\"", "window = \"20s\"\nflush_align = \"interval\""),
        ("", "flush_align = \"start\""),
        ("", "expiry = \"delete\""),
        ("", "histograms = [{ name_contains = \"few\", bins = [6, \"inf\"] }]"),
        ("", "timer_weights = false"),
        ("", "timer_rate_ignored = true"),
        ("", "timer_aggregates = [\"sum\", \"count\"]"),
        ("", "measured_rates = true"),
        ("", "max_series = 1"),
        ("", "keep_contains = []"),
        ("", "checkpoint = \"off\""),
        ("", "allow_non_finite = true"),
        ("", "max_exact_timer_values = 8\nmax_exact_set_members = 8"),
        ("max_exact_timer_values = 8\nmax_exact_set_members = 8", ""),
        ("", "key_flush = { interval = \"1m\" }"),
        ("", "self_counters = \"node\""),
    ];
    for (before, after) in changes {
        // `self_counters` is already in the text.
        let of = |options: &str| {
            let text = if options.contains("self_counters") { "" } else { options };
            plan("union", text)
        };
        let mut world = World::new(of(before), 1);
        world.send(&traffic(), START);
        world.reload(of(after));
        world.send("hits:5|c\nload:-7|g\nfew:9|ms\nusers:b|s\nusers:c|s", START);
        let lines = world.stopped(START.plus_ns(SECOND_NS));
        let few_sum = if after.contains("weights") { "21" } else { "28" };
        for (name, value) in [
            ("stats_counts.hits", "18"),
            ("stats.gauges.load", "70"),
            ("stats.sets.users.count", "3"),
            ("stats.timers.few.sum", few_sum),
            ("stats.timers.few.count", "4"),
            ("stats.sets.crowd.count", "30"),
            ("stats.timers.many.count", "30"),
            ("stats.timers.lag.count", "4"),
        ] {
            assert_eq!(World::value(&lines, name).as_deref(), Some(value), "{name}: {before} to {after}");
        }
        let median = World::value(&lines, "stats.timers.few.upper_50");
        assert_eq!(median.is_some(), after.contains("[50, 99]"), "{after}");
        let bins = World::value(&lines, "stats.timers.few.histogram.bin_6");
        assert_eq!(bins.as_deref(), after.contains("bins").then_some("1"), "{after}");
        assert!(world.accounts.source(SourceId(0)).sum(0).holds());
    }
}
