//! Points at the border of the pipeline: in which blocks their lines leave, and how much room these need.

use std::collections::BTreeMap;

use config::diagnostic::Source;
use config::plan::Plan;
use deliver::queue::{Block, BlockEncoding};
use deliver::shared_queue::partition;
use model::{Dropped, Now, OutputId, SECOND_NS, SourceId, Span};
use pipeline::{Accounts, BLOCK_BYTES, Routed, Scratch, Shard};

const START: Now = Now { mono_ns: 1, wall_ns: 1_000_000_000 * SECOND_NS };

fn plan(output: &str) -> Plan {
    plan_of("", output)
}

fn plan_of(source: &str, output: &str) -> Plan {
    let text = format!(
        "[sources.in]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n{source}\n\
         [outputs.o]\nfrom = [\"in\"]\nto = [\"tcp://127.0.0.1:1\"]\n{output}\n"
    );
    let (plan, wrong) = config::check(Source { name: "t.toml", text: &text }, config::Format::Toml);
    plan.unwrap_or_else(|| panic!("{output}: {wrong:?}"))
}

/// `count` lines of `names` series; some are normalized on the way, so that they are not copied with their neighbours.
fn lines(count: usize, names: usize) -> String {
    let line = |n: usize| {
        let dots = if n.is_multiple_of(7) { ".." } else { "." };
        format!("servers.web{}{dots}requests {n} 1700000000\n", n % names)
    };
    (0..count).map(line).collect()
}

/// Pushes `text` in reads of this many bytes; returns the blocks of each turn.
fn turns(plan: &Plan, text: &str, read_bytes: usize) -> Vec<Vec<Block>> {
    let accounts = Accounts::default().carried_to(plan);
    let mut shard = Shard::new(plan, &accounts, 1, START);
    let mut intake = shard.intakes(plan, SourceId(0), &accounts).make();
    let mut turns = Vec::new();
    for read in text.as_bytes().chunks(read_bytes) {
        let batch = intake.stream(read, START, &mut Scratch::default()).into_owned();
        let (bytes_asked, records_asked) = shard.room_for(OutputId(0), &batch);
        let mut routed = Routed::default();
        shard.push(batch, START, &mut routed);
        if turns.len() % 3 == 0 {
            shard.close_blocks(START, &mut routed);
        }
        let blocks: Vec<Block> = routed.blocks.into_iter().map(|(_, block)| block).collect();
        let bytes: u64 = blocks.iter().map(Block::memory_bytes).sum();
        let records: u64 = blocks.iter().map(|block| u64::from(block.copies)).sum();
        assert!(bytes <= bytes_asked && records <= records_asked, "{bytes} of {bytes_asked}");
        turns.push(blocks);
    }
    let mut routed = Routed::default();
    shard.close_blocks(START, &mut routed);
    turns.push(routed.blocks.into_iter().map(|(_, block)| block).collect());
    let sum = accounts.source(SourceId(0)).sum(0);
    assert!(sum.holds() && sum.routed == text.lines().count() as u64, "{sum:?}");
    turns
}

fn text_of(blocks: &[Block]) -> String {
    blocks.iter().map(|block| String::from_utf8_lossy(&block.bytes).into_owned()).collect()
}

#[test]
fn blocks_hold_whole_lines_in_order_and_are_of_bounded_size() {
    let plan = plan("type = \"graphite\"\nqueue = { when_full = \"block\" }");
    let text = lines(20_000, 300);
    let want = text.replace("..", ".");
    for read_bytes in [1_000, 65_536, 1 << 20] {
        let blocks: Vec<Block> = turns(&plan, &text, read_bytes).into_iter().flatten().collect();
        assert_eq!(text_of(&blocks), want, "reads of {read_bytes}");
        for block in &blocks {
            assert_eq!((&block.encoding, block.partition), (&BlockEncoding::Lines, None));
            assert_eq!(block.copies as usize, block.bytes.iter().filter(|byte| **byte == b'\n').count());
            assert!(block.bytes.len() < BLOCK_BYTES + 100, "{} bytes", block.bytes.len());
        }
    }
}

#[test]
fn several_connections_get_each_series_from_one_partition() {
    let plan = plan("type = \"graphite\"\nconnections = 4\nqueue = { when_full = \"block\" }");
    let text = lines(5_000, 50);
    let mut of_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for block in turns(&plan, &text, 65_536).into_iter().flatten() {
        for line in text_of(std::slice::from_ref(&block)).lines() {
            let name = line.split(' ').next().unwrap_or_default();
            assert_eq!(block.partition, Some(partition(name.as_bytes(), b"")), "{name}");
            of_name.entry(name.to_owned()).or_default().push(line.to_owned());
        }
    }
    let mut want: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.replace("..", ".").lines() {
        want.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default().push(line.to_owned());
    }
    assert_eq!(of_name, want, "each series in order");
}

#[test]
fn blocking_outputs_are_known_and_raw_ones_get_each_line_as_a_packet() {
    for (output, blocking) in [
        ("type = \"graphite\"\nqueue = { when_full = \"block\" }", true),
        ("type = \"graphite\"\nqueue = { when_full = \"drop_oldest\" }", false),
        ("type = \"tcp\"\nqueue = { when_full = \"block\" }", true),
    ] {
        let plan = plan(output);
        let accounts = Accounts::default().carried_to(&plan);
        let shard = Shard::new(&plan, &accounts, 1, START);
        assert_eq!(shard.blocking(SourceId(0)).len(), usize::from(blocking), "{output}");
        assert_eq!(shard.reached(SourceId(0)), [OutputId(0)], "{output}");
    }
    let blocks = turns(&plan("type = \"tcp\""), "..a 1 2\nb 3 4\n", 100).concat();
    let spans = vec![Span::new(0, 5), Span::new(6, 5)];
    assert_eq!(text_of(&blocks), "a 1 2\nb 3 4\n");
    assert_eq!(blocks[0].encoding, BlockEncoding::Packets(std::sync::Arc::new(spans)));
}

#[test]
fn the_lines_sent_do_not_depend_on_where_the_reads_cut() {
    let lines =
        "a.b 1 1700000000\r\nserver.one.requests 2 1700000000\n\nbad\rserver.two;k=v 3 4\n..c. .5 6\nrest 7";
    let pickle =
        [&b"\0\0\0\x18(l(S'a.b'\n(I17\nF1.5\ntta.\0\0\0\x02N."[..], b"\0\0\0\x13(l(S'a'\n(I5\nI7\ntta.\0\0"]
            .concat();
    for (options, bytes) in [
        ("", lines.as_bytes()),
        ("compatibility = \"c-relay\"", lines.as_bytes()),
        ("compatibility = \"carbon\"\ntail_counts = true\nmissing_timestamp = \"now\"", lines.as_bytes()),
        ("encoding = \"pickle\"", &pickle),
    ] {
        let read = |step: usize| {
            let mut plan = plan_of(options, "type = \"graphite\"");
            plan.sources[0].line_bytes_max = 40;
            let accounts = Accounts::default().carried_to(&plan);
            let mut shard = Shard::new(&plan, &accounts, 1, START);
            let mut intake = shard.intakes(&plan, SourceId(0), &accounts).make();
            let mut routed = Routed::default();
            for read in bytes.chunks(step) {
                let batch = intake.stream(read, START, &mut Scratch::default()).into_owned();
                shard.push(batch, START, &mut routed);
                intake.settle_too_long();
            }
            shard.push(intake.close(true, START, &mut Scratch::default()).into_owned(), START, &mut routed);
            shard.close_blocks(START, &mut routed);
            let sum = accounts.source(SourceId(0)).sum(0);
            assert!(sum.holds() && sum.routed > 0 && sum.rejected > 0, "{options}: {sum:?}");
            let blocks: Vec<Block> = routed.blocks.into_iter().map(|(_, block)| block).collect();
            (text_of(&blocks), sum, accounts.source(SourceId(0)).losses())
        };
        let whole = read(bytes.len());
        for step in 1..bytes.len() {
            assert_eq!(read(step), whole, "{options} in reads of {step}");
        }
    }
}

#[test]
fn a_connection_applies_a_reload_unless_it_should_carry_messages_now() {
    let (accounts, output) = (Accounts::default(), "type = \"graphite\"");
    for (after, line, broken) in
        [("compatibility = \"c-relay\"", "a_b 1 x\n", false), ("encoding = \"pickle\"", "", true)]
    {
        let (plan, next) = (plan_of("", output), plan_of(after, output));
        let accounts = accounts.carried_to(&plan);
        let mut shard = Shard::new(&plan, &accounts, 1, START);
        let mut intake = shard.intakes(&plan, SourceId(0), &accounts).make();
        let mut routed = Routed::default();
        shard.push(intake.stream(b"a/", START, &mut Scratch::default()), START, &mut routed);
        shard.reconfigure(&next, &accounts, START, &mut routed);
        intake.follow(&shard.intakes(&next, SourceId(0), &accounts));
        assert_eq!(intake.is_broken(), broken, "{after}");
        shard.push(intake.stream(b"b 1 x\n", START, &mut Scratch::default()), START, &mut routed);
        shard.close_blocks(START, &mut routed);
        let blocks: Vec<Block> = routed.blocks.into_iter().map(|(_, block)| block).collect();
        assert_eq!(text_of(&blocks), line, "{after}");
        assert!(accounts.source(SourceId(0)).sum(0).holds());
    }
}

#[test]
fn points_without_an_output_are_filtered() {
    let mut plan = plan("type = \"graphite\"");
    plan.outputs[0].from.clear();
    let accounts = Accounts::default().carried_to(&plan);
    let mut shard = Shard::new(&plan, &accounts, 1, START);
    let mut intake = shard.intakes(&plan, SourceId(0), &accounts).make();
    let mut routed = Routed::default();
    shard.push(intake.stream(b"a 1 2\nbad\n", START, &mut Scratch::default()), START, &mut routed);
    let sum = accounts.source(SourceId(0)).sum(0);
    assert!(sum.holds() && (sum.filtered, sum.rejected) == (1, 1) && routed.blocks.is_empty(), "{sum:?}");
}

#[test]
fn points_go_on_in_pickles_unless_they_are_no_numbers() {
    let plan = plan_of("compatibility = \"c-relay\"", "type = \"graphite\"\nencoding = \"pickle\"");
    let accounts = Accounts::default().carried_to(&plan);
    let mut shard = Shard::new(&plan, &accounts, 1, START);
    let mut intake = shard.intakes(&plan, SourceId(0), &accounts).make();
    let mut routed = Routed::default();
    let text = b"a.b;k=v 1.50 1700000000\nno.number nan 5\nno.time 1\nc -2 1.5\n";
    shard.push(intake.stream(text, START, &mut Scratch::default()), START, &mut routed);
    shard.close_blocks(START, &mut routed);
    let [(_, block)] = &routed.blocks[..] else { panic!("one block") };
    let body = b"(l(S'a.b;k=v'\n(L1700000000L\nS'1.50'\ntta(S'c'\n(F1.5\nS'-2'\ntta.";
    let frame = [&(body.len() as u32).to_be_bytes()[..], body].concat();
    assert_eq!(String::from_utf8_lossy(&block.bytes), String::from_utf8_lossy(&frame));
    assert_eq!((block.copies, &block.encoding), (2, &BlockEncoding::Frames(vec![(frame.len() as u32, 2)])));
    let output = accounts.output(OutputId(0));
    assert_eq!(output.dropped(Dropped::NotANumber), 2);
    let sum = accounts.source(SourceId(0)).sum(0);
    assert!(sum.holds() && sum.routed == 4, "{sum:?}");
}

#[test]
fn many_points_make_several_frames_and_blocks_within_the_requested_room() {
    let plan = plan_of("", "type = \"graphite\"\nencoding = \"pickle\"\nconnections = 3");
    let text = lines(5_000, 500);
    let blocks: Vec<Block> = turns(&plan, &text, 8_000).into_iter().flatten().collect();
    let copies: u32 = blocks.iter().map(|block| block.copies).sum();
    assert_eq!(copies, 5_000);
    assert!(blocks.len() > 3, "{}", blocks.len());
    assert!(blocks.iter().all(|block| block.bytes.len() < 2 * BLOCK_BYTES && block.partition.is_some()));
}

/// A line of so many bytes, without its LF.
fn line_of(bytes: usize) -> String {
    let rest = " 1 1700000000";
    format!("{}{rest}\n", "n".repeat(bytes - rest.len()))
}

#[test]
fn lines_that_carbon_would_close_the_connection_for_are_not_sent() {
    let (longest, longer) = (line_of(16_384), line_of(16_385));
    let text = format!("a 1 5\n{longest}b 1 5\n{longer}c 1 5\n");
    for (more, sent, dropped) in [
        ("", format!("a 1 5\n{longest}b 1 5\nc 1 5\n"), 1),
        ("connections = 2\n", format!("a 1 5\n{longest}b 1 5\nc 1 5\n"), 1),
        ("max_line_bytes = \"32KiB\"\n", text.clone(), 0),
        ("max_line_bytes = \"1KiB\"\n", "a 1 5\nb 1 5\nc 1 5\n".to_owned(), 2),
    ] {
        let plan = plan(&format!("type = \"graphite\"\n{more}"));
        let accounts = Accounts::default().carried_to(&plan);
        let mut shard = Shard::new(&plan, &accounts, 1, START);
        let mut intake = shard.intakes(&plan, SourceId(0), &accounts).make();
        let mut routed = Routed::default();
        let batch = intake.stream(text.as_bytes(), START, &mut Scratch::default()).into_owned();
        shard.push(batch, START, &mut routed);
        shard.close_blocks(START, &mut routed);
        let blocks: Vec<Block> = routed.blocks.into_iter().map(|(_, block)| block).collect();
        assert_eq!(accounts.output(OutputId(0)).dropped(Dropped::TooBig), dropped, "{more}");
        let copies: u32 = blocks.iter().map(|block| block.copies).sum();
        assert_eq!(u64::from(copies), 5 - dropped, "{more}");
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert!(sorted(&text_of(&blocks)) == sorted(&sent), "{more}");
    }
}
