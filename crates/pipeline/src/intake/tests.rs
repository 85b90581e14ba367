use super::*;

/// The accounts of a config, and the maker of its first source's intakes.
pub(crate) fn first_source(text: &str) -> (crate::Accounts, IntakeMaker) {
    let (plan, wrong) = config::check(config::diagnostic::Source { name: "t", text }, config::Format::Toml);
    let plan = plan.unwrap_or_else(|| panic!("{wrong:?}"));
    let accounts = crate::Accounts::default().carried_to(&plan);
    let shard = crate::Shard::new(&plan, &accounts, 1, Now::default());
    let maker = shard.intakes(&plan, SourceId(0), &accounts);
    (accounts, maker)
}

#[test]
fn frames_are_bounded_by_the_sources_own_limit() {
    let text = "
        data_dir = \"data\"
        [sources.s]
        type = \"statsd\"
        listen = [\"unix-frames://@x\"]
        max_line_bytes = \"64B\"
        [transforms.t]
        type = \"aggregate\"
        from = [\"s\"]
        [outputs.o]
        type = \"console\"
        from = [\"t\"]
    ";
    let (accounts, maker) = first_source(text);
    let now = Now::default();
    for (bytes, broken) in [(64_u32, false), (65, true)] {
        let mut intake = maker.make_framed();
        let mut frame = bytes.to_le_bytes().to_vec();
        frame.resize(4 + bytes as usize, b'x');
        intake.stream(&frame, now, &mut Scratch::default()).settle(Outcome::Filtered);
        assert_eq!(intake.is_broken(), broken, "a frame of {bytes} bytes");
    }
    assert_eq!(accounts.source(SourceId(0)).rejected(Reject::BadFrame), 1);
}

#[test]
fn a_mark_counts_the_same_lines_wherever_the_reads_cut() {
    let text = "
        [sources.s]
        type = \"statsd\"
        listen = [\"tcp://127.0.0.1:0\", \"unix-frames://@y\"]
        max_line_bytes = \"64B\"
        ack_when = \"accepted\"
        [transforms.t]
        type = \"aggregate\"
        from = [\"s\"]
        [outputs.o]
        type = \"console\"
        from = [\"t\"]
    ";
    let (_, maker) = first_source(text);
    let now = Now::default();
    let long = "x".repeat(200);
    let lines = format!("a:1|c\n\nnonsense\n{long}\nb:1|c:2|c\nrest:1|c");
    let frames = b"\x05\0\0\0a:1|c\0\0\0\0\x0b\0\0\0b:1|c\nworse".to_vec();
    // (intake, its bytes, lines or frames, records rejected)
    type Case = (fn(&IntakeMaker) -> Intake, Vec<u8>, u64, u64);
    let cases: [Case; 2] =
        [(IntakeMaker::make, lines.into_bytes(), 6, 2), (IntakeMaker::make_framed, frames, 3, 1)];
    for (make, bytes, lines, rejected) in cases {
        for step in 1..=bytes.len() {
            let mut intake = make(&maker).answering(ConnectionId(3), AckWhen::Accepted);
            let mut scratch = Scratch::default();
            let mut last = (0, 0);
            for read in bytes.chunks(step) {
                intake.stream(read, now, &mut scratch).settle(Outcome::Filtered);
                intake.settle_too_long();
                if let Some(mark) = intake.mark() {
                    assert!(mark.up_to > last.0 && mark.rejected >= last.1, "{mark:?} after {last:?}");
                    last = (mark.up_to, mark.rejected);
                }
            }
            intake.close(true, now, &mut scratch).settle(Outcome::Filtered);
            let mark = intake.mark().map_or(last, |mark| (mark.up_to, mark.rejected));
            assert_eq!(mark, (lines, rejected), "reads of {step} bytes");
        }
    }
}

#[test]
fn version_of_opentsdb_is_answered_up_to_a_limit_for_each_read() {
    let text = "
        [sources.s]
        type = \"opentsdb\"
        listen = [\"tcp://127.0.0.1:0\"]
        [outputs.o]
        type = \"graphite\"
        from = [\"s\"]
        to = [\"tcp://127.0.0.1:9\"]
    ";
    let (accounts, maker) = first_source(text);
    let (mut intake, mut scratch) = (maker.make(), Scratch::default());
    for (versions, answered) in [(0, 0), (1, 1), (64, 64), (65, 64)] {
        let read = b"version\n".repeat(versions);
        intake.stream(&read, Now::default(), &mut scratch).settle(Outcome::Filtered);
        let want = wire::opentsdb::VERSION_REPLY.repeat(answered);
        assert_eq!(intake.take_protocol_replies().bytes, want, "{versions} lines");
        assert!(intake.take_protocol_replies().is_empty(), "a reply is given once");
    }
    assert_eq!(accounts.source(SourceId(0)).sum(0).received, 0, "a command is no record");
}
