//! Messages to events, replies and outcomes, wherever the reads cut; limits; datagrams.

use model::limits::{EVENT_ENTRIES_MAX, EVENT_TAGS_MAX};
use model::{EventTime, EventsBuilder, Now, Outcome, Reject, SourceId, Span};
use wire::riemann::{self, EVENTS_PER_MESSAGE_MAX};

use crate::intake::tests::first_source;
use crate::{Accounts, Broken, IntakeMaker, ProtocolReplies, Scratch, Unfinished};

const NOW: Now = Now { mono_ns: 0, wall_ns: 1_700_000_000_123_456_789 };

fn source() -> (Accounts, IntakeMaker) {
    first_source(
        "[sources.s]\ntype = \"riemann\"\nmax_message_bytes = \"16MiB\"\n[outputs.o]\ntype = \"event_file\"\nfrom = [\"s\"]\n",
    )
}

/// A message with an event for each service.
fn message(query: Option<&str>, services: &[&str]) -> Vec<u8> {
    let mut events = EventsBuilder::default();
    for service in services {
        let mut event = events.event();
        event.plain_text(model::TextField::Service, service);
        event.finish();
    }
    let mut out = Vec::new();
    riemann::request(query, events.view().iter(), &mut out);
    out
}

/// A message with one event of these fields.
fn message_of(fields: &[u8]) -> Vec<u8> {
    let mut out = vec![0x32];
    let mut len = fields.len();
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    [&out[..], fields].concat()
}

fn attributes(number: usize) -> Vec<u8> {
    message_of(&b"\x4a\x02\x0a\x00".repeat(number))
}

fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for message in messages {
        assert!(riemann::framed(&mut out, |out| out.extend_from_slice(message)));
    }
    out
}

fn ok() -> Vec<u8> {
    riemann::OK_REPLY.to_vec()
}

fn error(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    riemann::error_reply(text, &mut out);
    out
}

/// Replies where each query finds no index.
fn answered(replies: &ProtocolReplies) -> Vec<u8> {
    let (mut out, mut written) = (Vec::new(), 0);
    for (at, _) in &replies.queries {
        out.extend_from_slice(&replies.bytes[written..*at]);
        out.extend(framed(&[error("no index")]));
        written = *at;
    }
    out.extend_from_slice(&replies.bytes[written..]);
    out
}

/// What a connection gives that sends `bytes` in reads of `step`: services, replies, why it ends.
fn connection(maker: &IntakeMaker, bytes: &[u8], step: usize) -> (Vec<String>, Vec<u8>, Option<Broken>) {
    let (mut intake, mut scratch) = (maker.make(), Scratch::default());
    let (mut services, mut replies) = (Vec::new(), Vec::new());
    for read in bytes.chunks(step) {
        let batches = intake.stream(read, NOW, &mut scratch);
        for batch in batches.iter() {
            let model::Records::Events(events) = &batch.records else { panic!("only events") };
            for event in events.view().iter() {
                services.push(event.service().unwrap_or_default().to_owned());
                assert_eq!(event.time(), Some(EventTime::Micros(1_700_000_000_123_000)));
            }
        }
        batches.settle(Outcome::Routed);
        replies.extend(answered(&intake.take_protocol_replies()));
        if intake.is_broken() {
            break;
        }
    }
    let ended = intake.broken();
    intake.close(true, NOW, &mut scratch).settle(Outcome::Routed);
    (services, replies, ended)
}

#[test]
fn each_message_has_a_reply_in_order_up_to_the_one_that_ends_the_connection() {
    // A message, its events, its reply, its rejected records.
    type Case = (Vec<u8>, &'static [&'static str], Option<Vec<u8>>, u64);
    let no_index = || Some(error("no index"));
    let cases: Vec<Case> = vec![
        (message(None, &["a"]), &["a"], Some(ok()), 0),
        (message(None, &["b", "c"]), &["b", "c"], Some(ok()), 0),
        (Vec::new(), &[], Some(ok()), 0),
        (message(Some("true"), &[]), &[], no_index(), 0),
        // Its events come before its query.
        (message(Some("oh no"), &["d"]), &["d"], no_index(), 0),
        (attributes(EVENT_ENTRIES_MAX), &[""], Some(ok()), 0),
        // All of its events are rejected.
        (
            [message(None, &["e"]), attributes(EVENT_ENTRIES_MAX + 1)].concat(),
            &[],
            Some(error("an event has too many attributes")),
            2,
        ),
        // A legacy state, and a reply.
        (b"\x22\x00\x10\x01".to_vec(), &[], Some(ok()), 0),
        (message(None, &["f"]), &["f"], Some(ok()), 0),
        (b"\x32\x05x".to_vec(), &[], None, 1),
    ];
    let messages: Vec<Vec<u8>> = cases.iter().map(|(message, ..)| message.clone()).collect();
    let stream = [framed(&messages), framed(&[message(None, &["never"])])].concat();
    let services: Vec<&str> = cases.iter().flat_map(|(_, services, ..)| services.iter().copied()).collect();
    let replies: Vec<Vec<u8>> = cases.iter().filter_map(|(_, _, reply, _)| reply.clone()).collect();
    let rejected: u64 = cases.iter().map(|(.., rejected)| rejected).sum();
    for step in (1..64).chain([stream.len() - 20, stream.len()]) {
        let (accounts, maker) = source();
        let (got, replied, ended) = connection(&maker, &stream, step);
        assert_eq!(got, services, "reads of {step} bytes");
        assert_eq!(replied, framed(&replies), "reads of {step} bytes");
        assert_eq!(ended, Some(Broken::Rejected(Reject::BadMessage)));
        let account = accounts.source(SourceId(0));
        let sum = account.sum(0);
        assert!(sum.holds());
        assert_eq!((sum.received, sum.rejected), (services.len() as u64 + rejected, rejected));
        assert_eq!(account.rejected(Reject::BadMessage), 1);
        assert_eq!(account.rejected(Reject::TooManyTags), 2);
    }
}

#[test]
fn messages_at_a_limit_pass_and_one_more_does_not() {
    let events = |number: usize| b"\x32\x00".repeat(number);
    let tags = |number: usize| message_of(&b"\x3a\x00".repeat(number));
    let too_many = error("the message has too many events; send fewer in one message");
    let many = EVENTS_PER_MESSAGE_MAX as u64 + 1;
    let table = [
        (events(EVENTS_PER_MESSAGE_MAX), ok(), None, 0),
        (events(EVENTS_PER_MESSAGE_MAX + 1), too_many, Some(Reject::MessageTooBig), many),
        (tags(EVENT_TAGS_MAX), ok(), None, 0),
        (tags(EVENT_TAGS_MAX + 1), error("an event has too many tags"), Some(Reject::TooManyTags), 1),
    ];
    for (bytes, reply, reason, rejected) in table {
        let (accounts, maker) = source();
        let (_, replied, ended) = connection(&maker, &framed(&[bytes]), 64 << 10);
        assert_eq!((replied, ended), (framed(&[reply]), None));
        let account = accounts.source(SourceId(0));
        assert_eq!(reason.map_or(0, |reason| account.rejected(reason)), rejected);
        assert_eq!(account.sum(0).rejected, rejected);
    }
}

#[test]
fn a_length_above_the_limit_ends_the_connection_and_one_at_it_does_not() {
    let limit = 16 << 20_u32;
    for (length, is_lost) in [(limit, false), (limit + 1, true), (u32::MAX, true)] {
        let (accounts, maker) = source();
        let stream = [framed(&[message(None, &["a"])]), length.to_be_bytes().to_vec()].concat();
        let (services, replies, ended) = connection(&maker, &stream, stream.len());
        assert_eq!((services.len(), replies), (1, framed(&[ok()])), "what came before counts");
        assert_eq!(ended, is_lost.then_some(Broken::Rejected(Reject::BadFrame)), "{length}");
        let lost = if is_lost { Reject::BadFrame } else { Reject::TailLost };
        assert_eq!(accounts.source(SourceId(0)).rejected(lost), 1);
        assert!(accounts.source(SourceId(0)).sum(0).holds());
    }
}

#[test]
fn the_place_of_a_querys_reply_is_that_of_its_message() {
    let (_, maker) = source();
    let (mut intake, mut scratch) = (maker.make(), Scratch::default());
    let messages =
        [message(Some("a"), &[]), message(None, &["x"]), message(Some("b"), &["y"]), message(Some(""), &[])];
    intake.stream(&framed(&messages), NOW, &mut scratch).settle(Outcome::Routed);
    let replies = intake.take_protocol_replies();
    let one = framed(&[ok()]);
    let queries = [(0, "a".to_owned()), (one.len(), "b".to_owned()), (one.len(), String::new())];
    assert_eq!(replies, ProtocolReplies { bytes: one, queries: queries.to_vec() });
    assert!(intake.take_protocol_replies().is_empty(), "they are given once");
}

#[test]
fn replies_of_a_read_are_less_than_three_times_its_bytes() {
    let queries: [&[u8]; 3] = [b"", b"\x2a\x00", b"\x2a\x02\x0a\x00"];
    for query in queries {
        let (_, maker) = source();
        let stream = framed(&vec![query.to_vec(); 1000]);
        let (_, replies, _) = connection(&maker, &stream, stream.len());
        assert!(!replies.is_empty() && replies.len() < 3 * stream.len(), "{} replies", replies.len());
    }
}

#[test]
fn datagrams_are_messages_without_replies() {
    let (accounts, maker) = source();
    let (mut intake, mut scratch) = (maker.make(), Scratch::default());
    let datagrams = [
        message(None, &["a", "b"]),
        b"\x32\x05x".to_vec(),
        message(Some("true"), &["c"]),
        attributes(EVENT_ENTRIES_MAX + 1),
        Vec::new(),
        b"\x32\x0a\x1a\x08cut short\n".to_vec(),
    ];
    let mut spans = Vec::new();
    let bytes = datagrams.concat();
    for datagram in &datagrams {
        let at = spans.last().map_or(0, |span: &Span| (span.at + span.len) as usize);
        spans.push(Span::new(at, datagram.len()));
    }
    // The kernel cut the last one: nothing of it counts.
    let last = spans.len() - 1;
    spans[last] = intake.whole_lines(&bytes, spans[last]);
    let batches = intake.datagrams(&bytes, &spans, NOW, &mut scratch);
    assert_eq!(batches.records(), 3);
    batches.settle(Outcome::Routed);
    assert!(intake.take_protocol_replies().is_empty());
    assert!(!intake.is_broken(), "a datagram says nothing about the next one");
    let account = accounts.source(SourceId(0));
    for reason in [Reject::BadMessage, Reject::TooManyTags, Reject::PacketTruncated] {
        assert_eq!(account.rejected(reason), 1, "{reason:?}");
    }
    assert_eq!(account.sum(0).received, 6);
    assert!(account.sum(0).holds());
    let complaint = intake.take_complaint().expect("the first one is logged");
    assert_eq!((complaint.reason, &*complaint.line), (Reject::BadMessage, r"2\x05x"));
}

/// A source of points in this encoding.
fn of_points(encoding: &str) -> (Accounts, IntakeMaker) {
    first_source(&format!(
        "[sources.s]\ntype = \"graphite\"\nencoding = \"{encoding}\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.o]\ntype = \"graphite\"\nfrom = [\"s\"]\nto = [\"tcp://127.0.0.1:9\"]\n"
    ))
}

#[test]
fn a_connection_ends_when_its_source_takes_other_messages_or_lines_and_none_is_read_as_one() {
    let all = [source(), of_points("pickle"), of_points("protobuf"), of_points("lines")];
    for (first, (_, maker)) in all.iter().enumerate() {
        for (then, (_, other)) in all.iter().enumerate() {
            let (mut intake, mut scratch) = (maker.make(), Scratch::default());
            intake.follow(other);
            assert_eq!(intake.broken(), (first != then).then_some(Broken::Reloaded), "{first}, {then}");
            if first != then {
                let sent = b"\0\0\0\x0a\x80\x02]q\x00(e.\0\0\na.b 1 1700000000\n";
                intake.stream(sent, NOW, &mut scratch).settle(Outcome::Routed);
                assert!(intake.take_protocol_replies().is_empty());
            }
        }
    }
    for (accounts, _) in all {
        assert_eq!(accounts.source(SourceId(0)).sum(0).received, 0);
    }
}

#[test]
fn half_a_message_from_before_a_hot_restart_is_lost_when_the_source_takes_lines_now() {
    let (accounts, maker) = of_points("lines");
    let bytes = b"\0\0\0\x20ab\ncd".to_vec();
    let intake = maker.make().going_on(&Unfinished { bytes, discarding: false, acks: None }, None);
    assert_eq!((intake.broken(), intake.has_tail()), (Some(Broken::Reloaded), false));
    let account = accounts.source(SourceId(0));
    assert_eq!((account.rejected(Reject::TailLost), account.sum(0).received), (1, 1));
    assert!(account.sum(0).holds());
}

#[test]
fn lines_of_json_are_events_with_a_reply_each_wherever_the_reads_cut() {
    let (accounts, maker) = first_source(
        "[sources.s]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:0\"]\nencoding = \"http\"\nmax_message_bytes = \"64B\"\n\
         [outputs.o]\ntype = \"event_file\"\nfrom = [\"s\"]\n",
    );
    let long = format!("{{\"service\":\"{}\"}}\n", "x".repeat(64));
    let lines = format!(
        "{{\"service\":\"a\",\"n\":[1,true]}}\nGET / oh no\n\nnull\n{{\"time\":\"noon\"}}\r\n{long}[]\n{{\"service\":\"b\"}}\nrest"
    );
    for step in [lines.len(), 7, 1] {
        let (mut intake, mut scratch) = (maker.make(), Scratch::default());
        let (mut replies, mut services) = (Vec::new(), Vec::new());
        for bytes in lines.as_bytes().chunks(step) {
            let batches = intake.stream(bytes, NOW, &mut scratch);
            for batch in batches.iter() {
                let model::Records::Events(events) = &batch.records else { panic!("only events") };
                services.extend(events.view().iter().map(|event| event.service().unwrap_or("").to_owned()));
            }
            batches.settle(Outcome::Routed);
            intake.settle_too_long();
            replies.extend(intake.take_protocol_replies().bytes);
        }
        assert_eq!(services, ["a", "b"], "reads of {step} bytes");
        let replies = String::from_utf8(replies).unwrap();
        let replies: Vec<&str> = replies.lines().collect();
        assert_eq!(replies.len(), 5, "reads of {step} bytes: {replies:?}");
        assert_eq!((replies[0], replies[4]), ("{}", "{}"));
        assert_eq!(replies[2], "{\"error\":\"Invalid format: \\\"noon\\\"\"}");
        assert_eq!(replies[3], "{\"error\":\"an event must be an object\"}");
        intake.close(true, NOW, &mut scratch).settle(Outcome::Routed);
    }
    let account = accounts.source(SourceId(0));
    let rejected =
        [Reject::BadMessage, Reject::LineTooLong, Reject::TailLost].map(|why| account.rejected(why));
    assert_eq!(rejected, [9, 3, 3]);
}

#[test]
fn lines_of_graphite_and_opentsdb_are_events() {
    for (options, lines, want, replies) in [
        ("encoding = \"graphite\"", "a;k=v 1 5\r\nbad\nb 2 6\nrest", &["a;k=v", "b"][..], ""),
        ("encoding = \"graphite\"\ntags = true", "a;k=v 1 5\nbad\n", &["a"], ""),
        (
            "encoding = \"opentsdb\"\nlisten = [\"tcp://127.0.0.1:0\"]",
            "put a 5 1 k=v\nversion\n\nput bad\n",
            &["a k=v"],
            "net.opentsdb\nBuilt on ... (riemann-opentsdb)\n",
        ),
    ] {
        let (accounts, maker) = first_source(&format!(
            "[sources.s]\ntype = \"riemann\"\n{options}\n[outputs.o]\ntype = \"event_file\"\nfrom = [\"s\"]\n"
        ));
        for step in [lines.len(), 3] {
            let (mut intake, mut scratch) = (maker.make(), Scratch::default());
            let (mut got, mut replied) = (Vec::new(), Vec::new());
            for bytes in lines.as_bytes().chunks(step) {
                let batches = intake.stream(bytes, NOW, &mut scratch);
                for batch in batches.iter() {
                    let model::Records::Events(events) = &batch.records else { panic!("only events") };
                    got.extend(events.view().iter().map(|event| event.service().unwrap_or("").to_owned()));
                }
                batches.settle(Outcome::Routed);
                replied.extend(intake.take_protocol_replies().bytes);
            }
            assert_eq!(got, want, "{options}: reads of {step} bytes");
            assert_eq!(String::from_utf8(replied).unwrap(), replies, "{options}");
            intake.close(true, NOW, &mut scratch).settle(Outcome::Routed);
        }
        let account = accounts.source(SourceId(0));
        let rejected =
            [Reject::NoValue, Reject::NoTimestamp].map(|why| account.rejected(why)).iter().sum::<u64>();
        assert_eq!(rejected, 2, "{options}");
    }
    // Several lines in a datagram.
    let (_, maker) = first_source(
        "[sources.s]\ntype = \"riemann\"\nencoding = \"graphite\"\n[outputs.o]\ntype = \"event_file\"\nfrom = [\"s\"]\n",
    );
    let (mut intake, mut scratch) = (maker.make(), Scratch::default());
    let packets = [Span::new(0, 11)];
    let batches = intake.datagrams(b"a 1 5\nb 2 6", &packets, NOW, &mut scratch);
    assert_eq!(batches.records(), 2);
    batches.settle(Outcome::Routed);
}
