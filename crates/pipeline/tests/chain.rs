//! Relays that feed relays, and outputs that several nodes feed: which lines leave, and the account of each edge.

#[allow(dead_code, reason = "other tests use the rest of it")]
mod world;

use std::collections::BTreeMap;

use model::{AckWhen, Now, OutputId, RecordSum, SECOND_NS, SourceId, Span};
use pipeline::{Kept, Scratch, merge_plans};
use world::{START, World, plan_of};

const SOURCE: &str = "[sources.points]\ntype = \"graphite\"\n";

/// A relay with one cluster for each node that it sends to, of the same name.
fn relay(name: &str, from: &str, nodes: &[&str], rules: &str) -> String {
    let clusters = nodes
        .iter()
        .map(|node| format!("[transforms.{name}.clusters.{node}]\ntype = \"forward\"\nto = [\"{node}\"]\n"));
    format!("[transforms.{name}]\ntype = \"relay\"\nfrom = [{from}]\n{}{rules}", clusters.collect::<String>())
}

fn rule(text: &str, name: &str) -> String {
    format!("[[transforms.{name}.rules]]\n{text}\n")
}

fn output(name: &str, from: &str) -> String {
    format!("[outputs.{name}]\ntype = \"graphite\"\nfrom = [{from}]\nto = [\"tcp://10.0.0.1:2003\"]\n")
}

/// Lines by output, in the order in which they left.
fn arrived(world: &mut World) -> BTreeMap<String, Vec<String>> {
    world.shard.close_blocks(START, &mut world.routed);
    let mut arrived: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (output, block) in world.routed.blocks.drain(..) {
        let name = world.plan.outputs[output.index()].name.clone();
        let text = String::from_utf8_lossy(&block.bytes).into_owned();
        arrived.entry(name).or_default().extend(text.lines().map(str::to_owned));
    }
    arrived
}

fn want(table: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    table.iter().map(|(name, these)| ((*name).to_owned(), lines(these))).collect()
}

fn edge(world: &World, to: &str, from: &str) -> RecordSum {
    let sum = world.accounts.edge(to, from).expect("there is such an edge").sum(0);
    assert!(sum.holds(), "{from} -> {to}: {sum:?}");
    sum
}

fn source(world: &World) -> RecordSum {
    let sum = world.accounts.source(SourceId(0)).sum(0);
    assert!(sum.holds(), "{sum:?}");
    sum
}

fn after(s: u64) -> Now {
    START.plus_ns(s * SECOND_NS)
}

/// Three relays in a row, of which the source also feeds the second, and an output that all of them feed.
fn row() -> String {
    [
        SOURCE.to_owned(),
        relay(
            "one",
            "\"points\"",
            &["two", "o"],
            &[
                rule("match = \"^old\"\ninto = \"new\"", "one"),
                rule("match = \"^both\"\nto = [\"two\", \"o\"]\nstop = true", "one"),
                rule("match = \"^new\"\nto = \"two\"\nstop = true", "one"),
                rule("match = \"^direct\"\nto = \"o\"", "one"),
            ]
            .concat(),
        ),
        relay(
            "two",
            "\"one\"",
            &["three"],
            &[
                rule("match = \"^new\\\\.drop\"\nto = \"blackhole\"", "two"),
                rule("match = \"^new\\\\.x\"\ninto = \"newer.x\"", "two"),
                rule("match = \"*\"\nto = \"three\"", "two"),
            ]
            .concat(),
        ),
        relay("three", "\"two\"", &["o"], &rule("match = \"^(newer|both)\"\nto = \"o\"", "three")),
        output("o", "\"one\", \"three\""),
    ]
    .concat()
}

#[test]
fn points_pass_relays_in_a_row_and_each_edge_counts_how_they_ended() {
    let mut world = World::new(plan_of(&row()), 1);
    world.send("old.x;t=v 1 5\nold.drop 1 5\nold.none 1 5\nboth.y 2.50 5\ndirect.z 1 5\nnobody 1 5\n", START);
    let lines: &[&str] = &["newer.x;t=v 1 5", "both.y 2.50 5", "both.y 2.50 5", "direct.z 1 5"];
    assert_eq!(arrived(&mut world), want(&[("o", lines)]));
    let first = edge(&world, "one", "points");
    assert_eq!((first.received, first.routed, first.filtered), (6, 5, 1), "sent on, to a relay or an output");
    let second = edge(&world, "two", "one");
    assert_eq!((second.received, second.routed, second.filtered), (4, 3, 1));
    let third = edge(&world, "three", "two");
    assert_eq!((third.received, third.routed, third.filtered), (3, 2, 1));
    // A record that further relays send nowhere has gone nowhere.
    let source = source(&world);
    assert_eq!((source.received, source.routed, source.filtered), (6, 3, 3));
    let points: Vec<u64> = world.shard.relays().map(|relay| relay.figures.points).collect();
    assert_eq!(points, [6, 4, 3]);
    // Remembered names take the same routes.
    world.send("old.x;t=v 1 5\nboth.y 2.50 5\n", START);
    assert_eq!(arrived(&mut world), want(&[("o", &lines[..3])]));
}

#[test]
fn acknowledgements_wait_for_the_outputs_of_all_relays() {
    let blocking = output("o", "\"one\", \"three\"") + "queue = { when_full = \"block\" }\n";
    let text = row().replace(&output("o", "\"one\", \"three\""), &blocking);
    let world = World::new(plan_of(&text), 1);
    assert_eq!(world.shard.reached(SourceId(0)), [OutputId(0)], "once, however many ways lead there");
    assert_eq!(world.shard.blocking(SourceId(0)), [OutputId(0)]);
    assert!(world.shard.multiplies(SourceId(0)) && world.shard.keeps(SourceId(0), AckWhen::Delivered));
    // The third relay's sums are not copies of a line any more.
    let sums = rule(
        "match = \"^a\"\ncompute = { sum = \"s\" }\nevery = \"10s\"\nexpire = \"20s\"\nto = \"o\"",
        "three",
    );
    let world = World::new(plan_of(&row().replace("[outputs.o]", &format!("{sums}[outputs.o]"))), 1);
    assert!(!world.shard.keeps(SourceId(0), AckWhen::Delivered));
    assert!(world.shard.keeps(SourceId(0), AckWhen::Accepted));
}

#[test]
fn a_point_visits_a_limited_number_of_relays() {
    // Each relay sends two copies to the next one: without a limit the tenth would get 1024.
    let mut text = SOURCE.to_owned();
    for at in 0..12 {
        let (name, next) = (format!("r{at}"), if at == 11 { "o".to_owned() } else { format!("r{}", at + 1) });
        let from = if at == 0 { "\"points\"".to_owned() } else { format!("\"r{}\"", at - 1) };
        let both = [rule(&format!("to = \"{next}\""), &name), rule(&format!("to = \"{next}\""), &name)];
        text += &relay(&name, &from, &[&next], &both.concat());
    }
    text += &output("o", "\"r11\"");
    let mut world = World::new(plan_of(&text), 1);
    world.send("a 1 5\nb 1 5\n", START);
    let visits: u64 = world.shard.relays().skip(1).map(|relay| relay.figures.points).sum();
    assert_eq!(visits, 2 * 128);
    // 2 + 4 + … + 64 are 126: two reach the seventh relay after the first, and further copies of these and others
    // exceed the limit.
    let of_last = world.shard.relays().nth(7).expect("it is there").figures.points;
    assert_eq!(of_last, 2 * 2);
    let refused: u64 = world.shard.relays().map(|relay| relay.figures.copies_refused).sum();
    assert_eq!(refused, 2 * (126 + 4));
    assert_eq!(arrived(&mut world), BTreeMap::new());
    for at in 1..12 {
        edge(&world, &format!("r{at}"), &format!("r{}", at - 1));
    }
    assert_eq!((source(&world).filtered, source(&world).dropped), (0, 2), "too_many_copies");
}

/// A relay that sums over ten seconds, and one after it that sums the results over a minute.
fn sums(first: &str) -> String {
    let compute = |name: &str, every: u32| {
        format!(
            "match = \"^{first}\"\ncompute = {{ sum = \"{name}\" }}\nevery = \"{every}s\"\nexpire = \"{}s\"",
            every + 10
        )
    };
    let second =
        "match = \"^sums\"\ncompute = { sum = \"minute\" }\nevery = \"60s\"\nexpire = \"90s\"\nto = \"o\"";
    [
        SOURCE.to_owned(),
        relay("one", "\"points\"", &["two"], &rule(&format!("{}\nto = \"two\"", compute("sums", 10)), "one")),
        relay("two", "\"one\"", &["o"], &rule(second, "two")),
        output("o", "\"two\""),
    ]
    .concat()
}

#[test]
fn results_of_aggregation_rules_go_to_further_relays() {
    let mut world = World::new(plan_of(&sums("a")), 1);
    let time = START.wall_seconds();
    world.send(&format!("a.x 1 {}\na.y 2 {}\na.x 4 {}\n", time, time, time - 10), START);
    assert_eq!((source(&world).aggregated, edge(&world, "one", "points").aggregated), (3, 3));
    for s in 0..200 {
        world.shard.tick(after(s), 512, &mut world.routed);
    }
    let lines = arrived(&mut world).remove("o").expect("something left");
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.starts_with("minute 7.000000 "), "{line}");
    let sum = edge(&world, "two", "one");
    assert_eq!((sum.received, sum.aggregated), (2, 2));
}

#[test]
fn the_last_results_of_relays_pass_the_relays_after_them() {
    let mut world = World::new(plan_of(&sums("a")), 1);
    let time = START.wall_seconds() - 100;
    world.send(&format!("a.x 1 {time}\n"), after(0));
    // The window of ten seconds has ended; its result is late for the second relay.
    world.shard.stop(after(200), &mut world.routed);
    let figures: Vec<_> = world.shard.relays().map(|relay| relay.figures).collect();
    assert_eq!(figures[0].results, edge(&world, "two", "one").received);
}

#[test]
fn a_reload_routes_results_to_the_relays_of_the_old_plan_and_keeps_accounts() {
    let mut world = World::new(plan_of(&sums("a")), 1);
    let time = START.wall_seconds();
    world.send(&format!("a.x 1 {time}\na.x 5 {}\n", time - 10), START);
    // The rule of the first relay has changed: its results go to the second, whose rule stays.
    let next = merge_plans(&world.plan, &plan_of(&sums("b")));
    world.reload(next);
    assert_eq!(edge(&world, "two", "one").received, 1, "the window of ten seconds ago is over");
    world.send(&format!("b.x 3 {time}\n"), START);
    for s in 0..200 {
        world.shard.tick(after(s), 512, &mut world.routed);
    }
    assert_eq!(edge(&world, "two", "one").received, 2);
    // The second relay is gone, and with it the edge.
    let text = [
        SOURCE.to_owned(),
        relay("one", "\"points\"", &["o"], &rule("to = \"o\"", "one")),
        output("o", "\"one\""),
    ];
    let next = merge_plans(&world.plan, &plan_of(&text.concat()));
    let _ = arrived(&mut world);
    world.reload(next);
    assert!(world.accounts.edge("two", "one").is_none());
    world.send("z 1 5\n", START);
    assert_eq!(arrived(&mut world).into_values().collect::<Vec<_>>(), [["z 1 5"]]);
}

#[test]
fn a_last_flush_of_one_relay_is_undone_in_the_relays_after_it() {
    let mut world = World::new(plan_of(&sums("a")), 1);
    let time = START.wall_seconds();
    world.send(&format!("a.x 1 {time}\n"), START);
    let held = |world: &mut World| {
        let states = world.shard.export(&Kept::of(&world.plan), 9, START, &mut world.routed);
        (states, world.shard.relays().map(|relay| relay.figures).collect::<Vec<_>>())
    };
    let before = held(&mut world);
    let kept = Kept { relays: vec!["two".into()], ..Kept::default() };
    let undo = world.shard.flush_others(&kept, after(30), &mut world.routed);
    let flushed = held(&mut world);
    assert!(flushed.1[1].points == 1 && flushed != before, "{flushed:?}");
    world.shard.go_back(undo);
    assert_eq!(held(&mut world), before);
}

#[test]
fn any_node_that_gives_points_feeds_one_output() {
    let text = [
        "[sources.points]\ntype = \"graphite\"\n[sources.app]\ntype = \"statsd\"\n".to_owned(),
        "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n".to_owned(),
        relay(
            "one",
            "\"points\", \"stats\"",
            &["two", "o"],
            &rule("match = \"^a\"\nto = [\"two\", \"o\"]", "one"),
        ),
        relay("two", "\"one\", \"points\"", &["o"], &rule("match = \"^a\"\nto = \"o\"", "two")),
        output("o", "\"points\", \"stats\", \"one\", \"two\""),
    ];
    let mut world = World::new(plan_of(&text.concat()), 1);
    let of = |name: &str| world.plan.sources.iter().position(|source| source.name == name);
    let (points, app) = (of("points").expect("points"), of("app").expect("app"));
    world.send_to(SourceId(points as u16), "a 1 5\nb 1 5\n", START);
    let lines = arrived(&mut world).remove("o").expect("something left");
    let number = |line: &str| lines.iter().filter(|one| *one == line).count();
    // From the source, from each relay, and through the second relay those of the first one.
    assert_eq!((number("a 1 5"), number("b 1 5")), (4, 1), "{lines:?}");
    assert_eq!(edge(&world, "two", "points").routed, 1);
    assert_eq!(edge(&world, "two", "one").routed, 1);
    world.send_to(SourceId(app as u16), "a:1|c\n", START);
    world.shard.stop(after(20), &mut world.routed);
    let lines = arrived(&mut world).remove("o").expect("something left");
    assert!(lines.iter().any(|line| line.starts_with("stats")), "{lines:?}");
    assert_eq!(world.shard.reached(SourceId(points as u16)), [OutputId(0)]);
    // When its endpoint is down, lines from the source and the aggregation have no other output.
    world.shard.set_member_live(OutputId(0), false);
    assert!(!world.shard.has_failover(OutputId(0)));
}

#[test]
fn new_lines_do_not_fail_over_while_a_source_feeds_the_output_too() {
    let text = |from: &str| {
        [
            SOURCE.to_owned(),
            "[transforms.one]\ntype = \"relay\"\nfrom = [\"points\"]\n\
             [transforms.one.clusters.c]\ntype = \"any_of\"\nto = [\"o\", \"p\"]\n\
             [[transforms.one.rules]]\nto = \"c\"\n"
                .to_owned(),
            output("o", from),
            output("p", "\"one\"").replace("10.0.0.1", "10.0.0.2"),
        ]
        .concat()
    };
    for (from, spared) in [("\"one\"", true), ("\"one\", \"points\"", false)] {
        let mut world = World::new(plan_of(&text(from)), 1);
        world.shard.set_member_live(OutputId(0), false);
        assert_eq!(world.shard.has_failover(OutputId(0)), spared, "{from}");
    }
}

#[test]
fn a_batch_is_taken_in_parts_when_a_later_relay_searches_long() {
    let text = [
        SOURCE.to_owned(),
        relay("one", "\"points\"", &["two"], &rule("to = \"two\"", "one")),
        relay("two", "\"one\"", &["o"], &rule("match = ['^(x+)\\1z']\nto = \"o\"", "two")),
        output("o", "\"two\""),
    ];
    let lines: String = (0..100).map(|n| format!("xxz.{n} 1 5\nother.{n} 1 5\n")).collect();
    let mut world = World::new(plan_of(&text.concat()), 1);
    let mut intake = world.shard.intakes(&world.plan, SourceId(0), &world.accounts).make();
    let mut scratch = Scratch::default();
    let spans = [Span::new(0, lines.len())];
    let batch = intake.datagrams(lines.as_bytes(), &spans, START, &mut scratch);
    let (mut parts, mut left) = (0, Some(batch.into_owned()));
    while let Some(batch) = left {
        left = world.shard.push_while(batch, START, &mut world.routed, &mut || false);
        parts += 1;
    }
    assert!(parts > 10, "{parts}");
    assert_eq!(arrived(&mut world)["o"].len(), 100);
    assert_eq!((source(&world).routed, edge(&world, "two", "one").received), (100, 200));
}

#[test]
fn a_batch_of_many_events_is_taken_in_parts_and_none_is_lost() {
    const EVENTS: usize = 12_000;
    let text = "[sources.app]\ntype = \"statsd\"\ndialect = \"dogstatsd\"\n\
                [outputs.o]\ntype = \"event_file\"\nfrom = [\"app\"]\npath = \"events.json\"\n";
    for more in [0, 1, 5] {
        let lines: String = (0..EVENTS).map(|n| format!("_e{{5,1}}:{n:05}|t\n")).collect();
        let mut world = World::new(plan_of(text), 1);
        let mut intake = world.shard.intakes(&world.plan, SourceId(0), &world.accounts).make();
        let mut scratch = Scratch::default();
        let spans = [Span::new(0, lines.len())];
        let batch = intake.datagrams(lines.as_bytes(), &spans, START, &mut scratch);
        let (mut parts, mut left) = (0, Some(batch.into_owned()));
        while let Some(batch) = left {
            let mut slices = 0;
            left = world.shard.push_while(batch, START, &mut world.routed, &mut || {
                slices += 1;
                slices <= more
            });
            parts += 1;
        }
        assert_eq!(parts, 120_usize.div_ceil(more + 1), "a hundred events, and {more} hundred more");
        let events = arrived(&mut world).remove("o").expect("they arrived");
        assert_eq!(events.len(), EVENTS);
        assert!(events[EVENTS - 1].contains("11999"), "{}", events[EVENTS - 1]);
        assert_eq!(source(&world).routed, EVENTS as u64);
    }
}
