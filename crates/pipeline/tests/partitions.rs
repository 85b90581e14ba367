//! An output of several connections: its blocks have one partition each, and a series is always in the same.

use std::collections::BTreeMap;

use config::diagnostic::Source;
use deliver::queue::Block;
use deliver::shared_queue::{PARTITIONS, partition};
use model::{Now, SECOND_NS, SourceId, Span};
use pipeline::{Accounts, Routed, Scratch, Shard};

const START: Now = Now { mono_ns: 1, wall_ns: 1_000_000_000 * SECOND_NS };

/// The blocks of two windows of `series` counters each.
fn blocks(form: &str, connections: u8, series: usize) -> Vec<Block> {
    let text = format!(
        "[sources.s]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [transforms.t]\ntype = \"aggregate\"\nfrom = [\"s\"]\nwindow = \"10s\"\n\
         [outputs.o]\ntype = \"graphite\"\nfrom = [\"t\"]\nto = [\"tcp://127.0.0.1:1\"]\n\
         encoding = \"{form}\"\nconnections = {connections}\n"
    );
    let (plan, diagnostics) = config::check(Source { name: "t.toml", text: &text }, config::Format::Toml);
    let plan = plan.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let accounts = Accounts::default().carried_to(&plan);
    let mut shard = Shard::new(&plan, &accounts, 1, START);
    let mut intake = shard.intakes(&plan, SourceId(0), &accounts).make();
    let mut scratch = Scratch::default();
    let mut routed = Routed::default();
    for window in 0..2 {
        let mut now = START.plus_ns(window * 10 * SECOND_NS);
        for number in 0..series {
            let line = format!("hits.{number}:1|c");
            let spans = [Span::new(0, line.len())];
            let batch = intake.datagrams(line.as_bytes(), &spans, now, &mut scratch);
            shard.push(batch, now, &mut routed);
        }
        now = START.plus_ns((window + 1) * 10 * SECOND_NS);
        while shard.tick(now, 512, &mut routed) <= now.mono_ns {}
    }
    routed.blocks.into_iter().map(|(_, block)| block).collect()
}

#[test]
fn each_block_of_several_connections_is_of_one_partition() {
    for connections in [2, 4, 16] {
        let mut of_name: BTreeMap<String, u8> = BTreeMap::new();
        let blocks = blocks("lines", connections, 3_000);
        let mut points = 0;
        for block in &blocks {
            let of = block.partition.expect("it is of one partition");
            assert!(of < PARTITIONS);
            let text = std::str::from_utf8(&block.bytes).expect("ASCII");
            assert_eq!(text.lines().count(), block.copies as usize);
            for line in text.lines() {
                let name = line.split(' ').next().unwrap_or_default();
                assert_eq!(*of_name.entry(name.to_owned()).or_insert(of), of, "{name}");
                if let Some(series) =
                    name.strip_prefix("stats_counts.").filter(|name| name.starts_with("hits"))
                {
                    assert_eq!(partition(series.as_bytes(), b""), of, "{name}");
                    points += 1;
                }
            }
        }
        assert_eq!(points, 6_000);
    }
}

#[test]
fn blocks_of_one_connection_have_no_partition() {
    for form in ["lines", "pickle"] {
        assert!(blocks(form, 1, 100).iter().all(|block| block.partition.is_none()), "{form}");
    }
}

#[test]
fn pickle_frames_are_divided_too_and_hold_as_many_points() {
    let copies =
        |connections| -> u32 { blocks("pickle", connections, 500).iter().map(|block| block.copies).sum() };
    assert_eq!(copies(4), copies(1));
    assert!(blocks("pickle", 4, 500).iter().all(|block| block.partition.is_some()));
}
