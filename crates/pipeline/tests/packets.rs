//! Packet outputs at the border of the pipeline: unchanged, line by line, and sharded over a cluster.

use std::collections::BTreeMap;

use config::diagnostic::Source;
use config::plan::{ClusterPlan, LinesPlan, OutputKind, Plan};
use deliver::queue::BlockEncoding;
use model::{Dropped, Filtered, Now, OutputId, SECOND_NS, SourceId, Span};
use pipeline::{Accounts, BLOCK_BYTES, Routed, Scratch, Shard, merge_plans};
use process::glob::Glob;
use process::sharding::{KeyForm, RingReplicas, Sharding};
use process::stage::StagePlan;
use wire::statsd::rewrite::{AggregateEncoding, Form, NegativeGauges, RewritePlan, TimerType};

const START: Now = Now { mono_ns: 1, wall_ns: 1_000_000_000 * SECOND_NS };

/// A source, an aggregation, and UDP outputs `o/10.0.0.N:8125` of the source.
fn plan(endpoints: usize) -> Plan {
    let to: Vec<String> = (1..=endpoints).map(|n| format!("\"udp://10.0.0.{n}:8125\"")).collect();
    let text = format!(
        "[sources.s]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\", \"tcp://127.0.0.1:0\"]\n\
         [transforms.t]\ntype = \"aggregate\"\nfrom = [\"s\"]\nstats_prefix = \"\"\n\
         [outputs.o]\ntype = \"udp\"\nfrom = [\"s\"]\nto = [{}]\n",
        to.join(", ")
    );
    let (plan, diagnostics) = config::check(Source { name: "t.toml", text: &text }, config::Format::Toml);
    plan.unwrap_or_else(|| panic!("{diagnostics:?}"))
}

fn lines_plan(packet_bytes_max: usize) -> LinesPlan {
    LinesPlan {
        stage: StagePlan::default(),
        rewrite: RewritePlan::default(),
        packet_bytes_max,
        flush_delay_ms: 100,
        aggregates: AggregateEncoding {
            names: RewritePlan::default(),
            negative_gauges: NegativeGauges::ZeroFirst,
            timer_type: TimerType::Timer,
            packed: true,
            zero_counters: false,
            times: false,
            line_bytes_max: 1000,
        },
    }
}

fn set_lines(plan: &mut Plan, output: usize, lines: LinesPlan) {
    if let OutputKind::Packets(packets) = &mut plan.outputs[output].kind {
        packets.lines = Some(Box::new(lines));
    }
}

fn as_cluster(mut plan: Plan) -> Plan {
    for output in 0..plan.outputs.len() {
        set_lines(&mut plan, output, lines_plan(0));
    }
    let labels = plan.outputs.iter().map(|output| output.name.trim_start_matches("o/").to_owned());
    plan.clusters = vec![ClusterPlan {
        name: "o".into(),
        sharding: Sharding::StatsdNode(RingReplicas::One),
        key: KeyForm::Node,
        labels: labels.collect(),
        members: (0..plan.outputs.len() as u16).map(OutputId).collect(),
    }];
    plan
}

struct World {
    plan: Plan,
    accounts: Accounts,
    shard: Shard,
    routed: Routed,
    now: Now,
}

impl World {
    fn new(plan: Plan) -> World {
        let accounts = Accounts::default().carried_to(&plan);
        let shard = Shard::new(&plan, &accounts, 7, START);
        World { plan, accounts, shard, routed: Routed::default(), now: START }
    }

    fn send(&mut self, packet: &[u8]) {
        let mut intake = self.shard.intakes(&self.plan, SourceId(0), &self.accounts).make();
        let spans = [Span::new(0, packet.len())];
        self.shard.push(
            intake.datagrams(packet, &spans, self.now, &mut Scratch::default()),
            self.now,
            &mut self.routed,
        );
    }

    fn reload(&mut self, plan: &Plan) {
        let plan = merge_plans(&self.plan, plan);
        self.accounts = self.accounts.carried_to(&plan);
        self.shard.reconfigure(&plan, &self.accounts, self.now, &mut self.routed);
        self.plan = plan;
    }

    /// Packets that have left, by output, and (copies, dropped, filtered) of all accounts so far.
    fn packets(&mut self) -> BTreeMap<u16, Vec<String>> {
        self.shard.close_due(self.now, &mut self.routed);
        self.shard.close_blocks(self.now, &mut self.routed);
        let mut packets: BTreeMap<u16, Vec<String>> = BTreeMap::new();
        for (output, block) in self.routed.blocks.drain(..) {
            let spans: Vec<Span> = match &block.encoding {
                BlockEncoding::Packets(spans) => spans.to_vec(),
                BlockEncoding::Frames(frames) => {
                    let starts = std::iter::once(0).chain(frames.iter().map(|frame| frame.0 as usize));
                    let ends = frames.iter().map(|frame| frame.0 as usize);
                    starts.zip(ends).map(|(from, to)| Span::new(from, to - from)).collect()
                }
                BlockEncoding::Lines => panic!("no output of lines here"),
            };
            let texts = spans.iter().map(|span| String::from_utf8_lossy(span.of(&block.bytes)).into_owned());
            packets.entry(output.0).or_default().extend(texts);
        }
        packets
    }

    fn owner(&mut self, line: &str) -> Option<u16> {
        self.send(line.as_bytes());
        let packets = self.packets();
        assert!(packets.len() <= 1, "{packets:?}");
        packets.keys().next().copied()
    }
}

fn texts(packets: &[&str]) -> Vec<String> {
    packets.iter().map(|packet| (*packet).to_owned()).collect()
}

#[test]
fn packets_go_unchanged_to_every_output() {
    let mut world = World::new(plan(2));
    for packet in [&b"a:1|c\nb:2|c"[..], b"", b"no line at all\n"] {
        world.send(packet);
    }
    let want = texts(&["a:1|c\nb:2|c", "", "no line at all\n"]);
    assert_eq!(world.packets(), BTreeMap::from([(0, want.clone()), (1, want)]));
}

#[test]
fn lines_of_a_stream_are_packets() {
    let mut world = World::new(plan(1));
    let mut intake = world.shard.intakes(&world.plan, SourceId(0), &world.accounts).make();
    for bytes in [&b"a:1|c\n\nb:2"[..], b"|c\n"] {
        world.shard.push(intake.stream(bytes, START, &mut Scratch::default()), START, &mut world.routed);
    }
    assert_eq!(world.packets(), BTreeMap::from([(0, texts(&["a:1|c", "b:2|c"]))]));
    let account = world.accounts.source(SourceId(0));
    assert!(account.sum(0).holds());
    assert_eq!(account.packets.load(std::sync::atomic::Ordering::Relaxed), 2, "reads that gave a line");
}

#[test]
fn lines_are_repacked_until_full_or_due() {
    let mut plan = plan(1);
    set_lines(&mut plan, 0, lines_plan(12));
    let mut world = World::new(plan);
    world.send(b"a:1|c\nb:2|c\n");
    assert_eq!(world.packets(), BTreeMap::new(), "there is room for more");
    world.send(b"c:3|c");
    assert_eq!(world.packets(), BTreeMap::from([(0, texts(&["a:1|c\nb:2|c"]))]));
    let due_ns = world.shard.close_due(world.now, &mut world.routed);
    assert_eq!(due_ns, START.mono_ns + 100_000_000);
    world.now = world.now.plus_ns(100_000_000);
    assert_eq!(world.packets(), BTreeMap::from([(0, texts(&["c:3|c"]))]));
    assert_eq!(world.shard.close_due(world.now, &mut world.routed), u64::MAX);
    // Waiting lines leave before a stop.
    world.send(b"d:4|c");
    world.shard.stop(world.now, &mut world.routed);
    assert_eq!(world.packets(), BTreeMap::from([(0, texts(&["d:4|c"]))]));
}

#[test]
fn a_line_that_unfolds_fills_blocks_of_its_own() {
    let mut plan = plan(1);
    let to = Form { one_value_per_line: true, ..Form::KEEP };
    set_lines(
        &mut plan,
        0,
        LinesPlan { rewrite: RewritePlan { to, ..RewritePlan::default() }, ..lines_plan(1432) },
    );
    let mut world = World::new(plan);
    let line = |name| format!("{}:{}|c", char::to_string(&name).repeat(900), vec!["1"; 100].join(":"));
    world.send("abcdefgh".chars().map(line).collect::<Vec<_>>().join("\n").as_bytes());
    // 100 lines of 905 bytes are more than a block, and each line of the packet is parsed.
    assert_eq!(world.routed.blocks.len(), 8);
    assert!(world.routed.blocks.iter().all(|(_, block)| block.bytes.len() < BLOCK_BYTES + 100 * 905));
    world.now = world.now.plus_ns(SECOND_NS);
    assert_eq!(world.packets()[&0].iter().flat_map(|packet| packet.lines()).count(), 800);
}

#[test]
fn unsent_values_that_share_a_name_are_counted() {
    let mut plan = plan(1);
    set_lines(&mut plan, 0, lines_plan(1432));
    plan.outputs[0].from = vec![config::plan::Feed::Transform(model::TransformId(0))];
    let mut world = World::new(plan);
    world.send(format!("{}:{}|ms", "n".repeat(4_000), vec!["1"; 2_000].join(":")).as_bytes());
    world.shard.stop(world.now, &mut world.routed);
    let lines: usize = world.packets()[&0].iter().map(|packet| packet.lines().count()).sum();
    let dropped = world.accounts.output(OutputId(0)).dropped(Dropped::TooBig);
    assert!((256..2_000).contains(&lines) && lines as u64 + dropped == 2_000, "{lines} and {dropped}");
}

#[test]
fn filtered_lines_are_counted_at_their_output_only() {
    let mut plan = plan(2);
    let mut lines = lines_plan(1432);
    lines.stage.deny = vec![Glob::new(b"debug.*").expect("a pattern")];
    lines.stage.series_max = 2;
    lines.rewrite.prefix = "eu.".into();
    set_lines(&mut plan, 1, lines);
    let mut world = World::new(plan);
    world.send(b"a:1|c\ndebug.x:1|c\nbad\nb:2|g|#t:1\nc:1|c\n");
    let first = world.packets();
    assert_eq!(first[&0].len(), 1, "verbatim: {first:?}");
    world.now = world.now.plus_ns(SECOND_NS);
    assert_eq!(world.packets(), BTreeMap::from([(1, texts(&["eu.a:1|c\neu.b:2|g|#t:1"]))]));
    let account = world.accounts.output(OutputId(1));
    let counts = (account.filtered(Filtered::ByName), account.filtered(Filtered::BadLine));
    assert_eq!((counts, account.dropped(Dropped::SeriesMax)), ((1, 1), 1));
    assert!(account.sum(0).holds());
}

#[test]
fn aggregates_go_out_as_samples() {
    let mut plan = plan(1);
    set_lines(&mut plan, 0, lines_plan(1432));
    plan.outputs[0].from = vec![config::plan::Feed::Transform(model::TransformId(0))];
    let mut world = World::new(plan);
    world.send(b"a:1|c\na:2|c\nt:5|ms\nt:4|ms\ng:-3|g\ng:10|g\nu:x|s\nu:x|s");
    world.shard.stop(world.now, &mut world.routed);
    let packets = world.packets();
    let mut lines: Vec<&str> = packets[&0].iter().flat_map(|packet| packet.lines()).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a:3|c", "g:10|g", "t:4:5|ms", "u:x|s"]);
}

#[test]
fn a_cluster_places_lines_as_nodes_proxy_does() {
    // Spec statsd §13, three nodes: (key, last octet, last octet without the second node).
    let table =
        [("", 3, 3), ("a", 3, 3), ("foo", 2, 3), ("gorets", 3, 3), ("a.b.c", 2, 3), ("x;env=prod", 1, 1)];
    let mut world = World::new(as_cluster(plan(3)));
    for (key, all, _) in table {
        assert_eq!(world.owner(&format!("{key}:1|c")), Some(all - 1), "{key}");
    }
    assert!(
        world.shard.set_member_live(OutputId(1), false) && !world.shard.set_member_live(OutputId(1), false)
    );
    for (key, _, without) in table {
        assert_eq!(world.owner(&format!("{key}:1|c")), Some(without - 1), "{key}");
    }
    assert!(world.shard.set_member_live(OutputId(1), true));
    world.send(b"foo:1|c\n\na:1|c|#t:2\nx;env=prod:1|c\n");
    let want = [(0, texts(&["x;env=prod:1|c"])), (1, texts(&["foo:1|c"])), (2, texts(&["a:1|c|#t:2"]))];
    assert_eq!(world.packets(), BTreeMap::from(want), "each line is a packet of its own");
}

#[test]
fn without_live_endpoints_lines_are_counted_at_their_owner() {
    let mut world = World::new(as_cluster(plan(3)));
    for output in 0..3 {
        assert!(world.shard.set_member_live(OutputId(output), false));
    }
    assert_eq!(world.owner("foo:1|c"), None);
    let account = world.accounts.output(OutputId(1));
    assert_eq!(account.dropped(Dropped::NoEndpoint), 1);
    assert!(account.sum(0).holds());
    assert_eq!(world.shard.live_labels(0), [""; 0]);
    assert!(world.shard.set_member_live(OutputId(2), true) && world.shard.set_member_live(OutputId(0), true));
    assert_eq!(
        world.shard.live_labels(0),
        ["10.0.0.3:8125", "10.0.0.1:8125"],
        "in the order of their return"
    );
}

#[test]
fn a_failed_endpoint_stays_failed_across_a_reload() {
    let mut world = World::new(as_cluster(plan(3)));
    assert!(world.shard.set_member_live(OutputId(1), false));
    // A fourth one is added, the first one is removed.
    let mut four = plan(4);
    four.outputs.remove(0);
    world.reload(&as_cluster(four));
    assert_eq!(world.shard.live_labels(0), ["10.0.0.3:8125", "10.0.0.4:8125"]);
    assert!(world.plan.outputs[0].from.is_empty(), "the first one is retired");
    assert_eq!(world.plan.outputs[0].name, "o/10.0.0.1:8125");
}

#[test]
fn the_requested_room_is_enough_for_the_blocks_of_a_batch() {
    let options = [
        "",
        "mode = \"repack\"",
        "mode = \"lines\"",
        "framing = \"frames\"\nmode = \"repack\"\nmax_packet_bytes = \"512B\"",
        "prefix = \"a.very.long.prefix.that.is.longer.than.the.line.itself.\"",
        "tags_add = [\"datacenter:somewhere-far-away\", \"rack:another-tag-that-is-long\"]\nmode = \"lines\"",
        "tag_format = \"graphite\"\nbare_tag_value = \"yes-of-course\"",
        "convert = \"etsy\"\nmode = \"lines\"\nsuffix = \".of.many\"",
        "sample = 0.333333\nmode = \"lines\"",
    ];
    let lines: [&[u8]; 7] = [
        b"k:1|c",
        b"g:-5|g",
        b"t:1:2:3:4:5:6:7:8|ms",
        b"b:1|c|#a,b,c,d",
        b"bad",
        b"x:1|c|@0.5|#k:v",
        b"t;a=b:+1|g",
    ];
    for options in options {
        let text = format!(
            "[sources.a]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\ndialect = \"union\"\n\
             [outputs.o]\ntype = \"tcp\"\nfrom = [\"a\"]\nto = [\"tcp://127.0.0.1:1\"]\n\
             queue = {{ when_full = \"block\" }}\n{options}\n"
        );
        let source = config::diagnostic::Source { name: "test", text: &text };
        let (plan, wrong) = config::check(source, config::Format::Toml);
        let mut world = World::new(plan.unwrap_or_else(|| panic!("{options}: {wrong:?}")));
        assert_eq!(world.shard.blocking(SourceId(0)), [OutputId(0)], "{options}");
        let (mut asked, mut asked_records) = (0, 0);
        for round in 1..=40 {
            // Some 40 KiB, so that the open block at the start of a round decides when one is full.
            let packets: Vec<&[u8]> = (0..round * 97).map(|at| lines[(at + at / 7) % lines.len()]).collect();
            let mut batch = model::PacketBatch::default();
            packets.iter().for_each(|packet| batch.push(packet));
            let mut intake = world.shard.intakes(&world.plan, SourceId(0), &world.accounts).make();
            let batch = intake
                .datagrams(&batch.bytes, &batch.packets, world.now, &mut Scratch::default())
                .into_owned();
            (asked, asked_records) = world.shard.room_for(OutputId(0), &batch);
            world.shard.push(batch, world.now, &mut world.routed);
            if round % 3 == 0 {
                // As in a turn with little work.
                world.shard.close_due(world.now.plus_ns(1 << 40), &mut world.routed);
            }
            let memory: u64 = world.routed.blocks.iter().map(|(_, block)| block.memory_bytes()).sum();
            let records: u64 = world.routed.blocks.drain(..).map(|(_, block)| u64::from(block.copies)).sum();
            assert!(memory <= asked && records <= asked_records, "{options} {round}: {memory} of {asked}");
        }
        assert!(asked > 0 && asked_records > 0, "{options}");
    }
}
