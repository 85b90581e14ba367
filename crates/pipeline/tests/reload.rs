//! What a reload keeps and what it ends, at the border of the pipeline.

mod world;

use config::plan::Plan;
use model::{OutputId, SECOND_NS, SourceId, Span};
use pipeline::{Accounts, Kept, Scratch, merge_plans, predecessor};
use world::{START, World, plan_of};

fn plan(dialect: &str, transform: &str) -> Plan {
    let text = format!(
        "[sources.s]\ntype = \"statsd\"\ndialect = \"{dialect}\"\n\
         [transforms.{transform}]\ntype = \"aggregate\"\nfrom = [\"s\"]\nstats_prefix = \"\"\n\
         [outputs.o]\ntype = \"graphite\"\nfrom = [\"{transform}\"]\nto = [\"tcp://127.0.0.1:2003\"]\n"
    );
    plan_of(&text)
}

impl World {
    /// Lines that have left so far, without time and without our own metrics.
    fn lines(&mut self) -> Vec<String> {
        let text = self.text();
        let kept = text.lines().filter(|line| line.starts_with("stats_counts."));
        kept.filter_map(|line| line.rsplit_once(' ')).map(|(line, _time)| line.to_owned()).collect()
    }
}

#[test]
fn names_are_read_by_the_new_dialect_at_once() {
    let mut world = World::new(plan("etsy", "t"), 7);
    world.send("a b:1|c", START);
    world.reload(plan("perl", "t"));
    world.send("a b:1|c", START);
    world.shard.stop(START, &mut world.routed);
    let mut lines = world.lines();
    lines.sort();
    assert_eq!(lines, ["stats_counts.a-b 1", "stats_counts.a_b 1"]);
    assert!(world.accounts.source(SourceId(0)).sum(0).holds());
}

#[test]
fn a_removed_aggregation_has_its_last_flush() {
    let mut world = World::new(plan("union", "old"), 7);
    world.send("hits:3|c", START);
    world.reload(plan("union", "new"));
    assert_eq!(world.lines(), ["stats_counts.hits 3"]);
    world.send("hits:4|c", START);
    world.shard.stop(START, &mut world.routed);
    assert_eq!(world.lines(), ["stats_counts.hits 4"]);
}

/// In the middle of a window: an endpoint would keep only the later of two points of one second.
#[test]
fn a_renamed_aggregation_continues_after_the_labels_of_the_removed_one() {
    let mut world = World::new(plan("union", "a"), 7);
    let mut labels = Vec::new();
    for name in ["b", "c", "a"] {
        world.send("hits:3|c", START);
        world.reload(plan("union", name));
        let text = world.text();
        let point = text.lines().find(|line| line.starts_with("stats_counts.hits ")).expect("it is flushed");
        labels.push(point.rsplit_once(' ').expect("it has a time").1.parse::<u64>().expect("a number"));
    }
    let start_s = START.wall_ns / SECOND_NS;
    assert_eq!(labels, [start_s + 10, start_s + 20, start_s + 30]);
    // The next instance gets the labels of removed aggregations, and for one that was added again its own.
    let noted: Vec<_> =
        world.shard.last_notes().map(|(name, note)| (name.to_owned(), note.label_s)).collect();
    assert_eq!(noted, [("b".to_owned(), start_s + 20), ("c".to_owned(), start_s + 30)]);
    assert_eq!(world.shard.flushes(), 3);
}

/// A statsd source that an aggregation `a` or `b` takes, and a graphite source that a relay of the other name takes.
fn both_kinds(aggregate: &str, relay: &str) -> Plan {
    let text = format!(
        "[sources.s]\ntype = \"statsd\"\n[sources.p]\ntype = \"graphite\"\n\
         [transforms.{aggregate}]\ntype = \"aggregate\"\nfrom = [\"s\"]\nstats_prefix = \"\"\n\
         [transforms.{relay}]\ntype = \"relay\"\nfrom = [\"p\"]\n\
         clusters.all = {{ type = \"forward\", to = [\"q\"] }}\n\
         [[transforms.{relay}.rules]]\nmatch = '^in'\nevery = \"10s\"\nexpire = \"20s\"\n\
         compute = {{ sum = 'stats_counts.sum' }}\nto = [\"all\"]\n\
         [outputs.o]\ntype = \"graphite\"\nfrom = [\"{aggregate}\"]\nto = [\"tcp://10.0.0.1:2003\"]\n\
         [outputs.q]\ntype = \"graphite\"\nfrom = [\"{relay}\"]\nto = [\"tcp://10.0.0.1:2004\"]\n"
    );
    plan_of(&text)
}

/// The first is an aggregation and the second a relay, and then the other way round.
fn with_both_kinds_full() -> World {
    let mut world = World::new(both_kinds("a", "b"), 7);
    world.send("hits:3|c", START);
    let over_s = START.wall_seconds() - 15;
    world.send_to(SourceId(1), &format!("in 5 {over_s}\n"), START);
    world
}

#[test]
fn a_transform_that_changes_its_type_ends_like_a_removed_one() {
    let mut world = with_both_kinds_full();
    world.reload(both_kinds("b", "a"));
    let mut lines = world.lines();
    lines.sort();
    assert_eq!(lines, ["stats_counts.hits 3", "stats_counts.sum 5.000000"]);
    world.send("hits:4|c", START);
    world.shard.stop(START, &mut world.routed);
    assert_eq!(world.lines(), ["stats_counts.hits 4"]);
    let noted: Vec<_> =
        world.shard.last_notes().map(|(name, note)| (name.to_owned(), note.label_s)).collect();
    let start_s = START.wall_seconds();
    assert_eq!(noted, [("a".to_owned(), start_s + 10), ("b".to_owned(), start_s + 20)]);
}

#[test]
fn another_process_does_not_continue_a_transform_that_changes_its_type() {
    let mut world = with_both_kinds_full();
    let kept = Kept::of(&both_kinds("b", "a"));
    assert_eq!(world.shard.export(&kept, 9, START, &mut world.routed), []);
    let _before = world.shard.flush_others(&kept, START, &mut world.routed);
    let mut lines = world.lines();
    lines.sort();
    assert_eq!(lines, ["stats_counts.hits 3", "stats_counts.sum 5.000000"]);
}

#[test]
fn lines_read_before_a_source_changed_its_type_are_counted_as_filtered() {
    let source = |kind: &str| {
        plan_of(&format!(
            "[sources.s]\ntype = \"{kind}\"\n\
             [outputs.o]\ntype = \"graphite\"\nfrom = [\"s\"]\nto = [\"tcp://10.0.0.1:2003\"]\n"
        ))
    };
    let aggregated = plan("union", "t");
    for (before, after, line) in [
        (&aggregated, &source("graphite"), "hits:3|c"),
        (&source("graphite"), &aggregated, "hits 3 1000000000\n"),
    ] {
        let mut world = World::new(before.clone(), 7);
        let mut intake = world.shard.intakes(&world.plan, SourceId(0), &world.accounts).make();
        let spans = [Span::new(0, line.len())];
        let mut scratch = Scratch::default();
        let batch = intake.datagrams(line.as_bytes(), &spans, START, &mut scratch).into_owned();
        world.reload(merge_plans(before, after));
        world.shard.push(batch, START, &mut world.routed);
        world.shard.stop(START, &mut world.routed);
        assert_eq!(world.lines(), [""; 0]);
        let sum = world.accounts.source(SourceId(0)).sum(0);
        assert!(sum.holds(), "{sum:?}");
        assert_eq!((sum.received, sum.filtered, sum.routed), (1, 1, 0), "{sum:?}");
    }
}

#[test]
fn an_aggregation_that_stays_keeps_its_window() {
    let mut world = World::new(plan("union", "t"), 7);
    world.send("hits:3|c", START);
    world.reload(plan("union", "t"));
    assert_eq!(world.lines(), [""; 0]);
    world.send("hits:4|c", START);
    world.shard.stop(START, &mut world.routed);
    assert_eq!(world.lines(), ["stats_counts.hits 7"]);
}

#[test]
fn members_of_a_cluster_keep_their_outputs() {
    let plan = |ports: &[u16], sharding: &str| {
        let to: Vec<String> = ports.iter().map(|port| format!("\"udp://127.0.0.1:{port}\"")).collect();
        let text = format!(
            "[sources.s]\ntype = \"statsd\"\n[outputs.o]\ntype = \"udp\"\nfrom = [\"s\"]\nto = [{}]\n\
             sharding = \"{sharding}\"\n",
            to.join(", ")
        );
        plan_of(&text)
    };
    let names = |plan: &Plan| -> Vec<String> {
        let members = plan.clusters[0].members.iter();
        members.map(|id| plan.outputs[id.index()].name.clone()).collect()
    };
    let mut laid = plan(&[1, 2, 3], "ketama");
    // One is removed and one is added, in front; then they return in another order.
    for (ports, places) in [(&[4, 2, 3][..], &[3, 1, 2][..]), (&[3, 1], &[2, 4]), (&[4, 2, 3], &[5, 6, 2])] {
        let new = plan(ports, "ketama");
        laid = pipeline::merge_plans(&laid, &new);
        assert_eq!(names(&laid), names(&new), "{ports:?}");
        let at: Vec<usize> = laid.clusters[0].members.iter().map(|id| id.index()).collect();
        assert_eq!(at, places, "{ports:?}");
        let fed = laid.clusters[0].members.iter().all(|id| !laid.outputs[id.index()].from.is_empty());
        assert!(fed, "{ports:?}");
    }
}

#[test]
fn a_queue_on_disk_and_its_account_belong_to_the_name() {
    let with = |outputs: &[(&str, u16, &str)]| -> Plan {
        let mut text = "[sources.s]\ntype = \"statsd\"\n".to_owned();
        for (name, port, kind) in outputs {
            text += &format!(
                "[outputs.{name}]\ntype = \"tcp\"\nfrom = [\"s\"]\nto = [\"tcp://127.0.0.1:{port}\"]\n\
                 queue = {{ kind = \"{kind}\" }}\n"
            );
        }
        plan_of(&text)
    };
    let mut plan = with(&[("a", 1, "disk"), ("b", 1, "memory")]);
    let mut accounts = Accounts::default().carried_to(&plan);
    // (the new file, the predecessor of the last output, its index)
    for (next, earlier, last) in [
        (with(&[("a", 2, "disk"), ("b", 1, "memory")]), Some(0), 2),
        (with(&[("b", 1, "disk")]), Some(0), 2),
        (with(&[("a", 3, "disk")]), Some(2), 3),
        (with(&[("b", 4, "disk")]), None, 4),
        (with(&[("a", 5, "memory")]), None, 5),
    ] {
        plan = merge_plans(&plan, &next);
        accounts = accounts.carried_to(&plan);
        assert_eq!(plan.outputs.len(), last + 1);
        assert_eq!(predecessor(&plan, last), earlier.map(OutputId));
        if let Some(earlier) = earlier {
            let (one, other) = (accounts.output(OutputId(earlier)), accounts.output(OutputId(last as u16)));
            assert!(std::sync::Arc::ptr_eq(one, other));
        }
    }
    assert!(!plan.outputs[1].queue_kind.is_disk(), "a queue that is open stays where it is");
    assert!(plan.outputs[4].queue_kind.is_disk());
}
