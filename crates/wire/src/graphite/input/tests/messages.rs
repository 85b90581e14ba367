//! Pickle and protobuf messages: the spec's vectors (graphite §1.2, §1.3), and invalid elements.

use model::{Reject, Span};
use proptest::prelude::*;

use super::super::message::{TEXTS_BYTES_MAX, TEXTS_RATIO_MAX};
use super::super::{
    Compatibility, MessageEncoding, MessageReader, Options, PIECE_BYTES_MAX, Parsed, Reader, reference,
};

fn parse(compatibility: Compatibility, form: MessageEncoding, message: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    let options = Options::of(compatibility);
    Reader::new(options, 1).message(form, message, Span::new(0, message.len()), 9, &mut parsed);
    assert_eq!(parsed.lines, parsed.points.len() as u64 + parsed.rejected());
    parsed
}

fn lines(form: MessageEncoding, message: &[u8]) -> String {
    String::from_utf8(parse(Compatibility::Strict, form, message).bytes).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn spec_vectors_are_converted_to_points() {
    let pickled = "80025d7100285807000000666f6f2e62617271014a00f15365473ff80000000000008671028671035805000000613b743d7671044a3cf153654afdffffff867105867106652e";
    let want = "foo.bar 1.5 1700000000\na;t=v -3 1700000060\n";
    assert_eq!(lines(MessageEncoding::Pickle, &bytes(pickled)), want);
    let payload = "0a1a0a07666f6f2e626172120f0880e2cfaa0611000000000000f83f";
    assert_eq!(lines(MessageEncoding::Protobuf, &bytes(payload)), "foo.bar 1.5 1700000000\n");
}

#[test]
fn each_element_is_a_point_or_is_rejected_alone() {
    // An element of protocol 0; the resulting line, or the word of the reason.
    let table: &[(&str, &str)] = &[
        ("(S'a'\n(I5\nI7\ntt", "a 7 5"),
        ("(S'a'\n(F5.9\nF0.1\ntt", "a 0.1 5"),
        ("(S'a'\n(S'5'\nS'7.50'\ntt", "a 7.50 5"),
        ("(S'a'\n(I-1\nI01\ntt", "a 1 9"),
        ("(S'..a..b'\n(I5\nF1e300\ntt", "a.b 1e+300 5"),
        ("(S'a'\n(I5\nFnan\ntt", "non_finite"),
        ("(S'a'\n(I5\nF-inf\ntt", "non_finite"),
        ("(S'a'\n(I5\nS'x'\ntt", "bad_element"),
        ("(S'a'\n(I5\nNtt", "bad_element"),
        ("(S'a'\n(F1e300\nI7\ntt", "bad_element"),
        ("(S'a'\n(Fnan\nI7\ntt", "bad_element"),
        ("(S'a b'\n(I5\nI7\ntt", "bad_element"),
        ("(S'a\\n'\n(I5\nI7\ntt", "bad_element"),
        ("(S''\n(I5\nI7\ntt", "bad_element"),
        ("(I1\n(I5\nI7\ntt", "bad_element"),
        ("(S'a'\n(I5\nI7\nI8\ntt", "bad_element"),
        ("(S'a'\nt", "bad_element"),
        ("N", "bad_element"),
        ("(S'a;t'\n(I5\nI7\ntt", "bad_tag"),
    ];
    for (element, want) in table {
        let message = format!("(lp0\n{element}a(S'good'\n(I1\nI2\ntta.");
        let parsed = parse(Compatibility::Strict, MessageEncoding::Pickle, message.as_bytes());
        let text = String::from_utf8_lossy(&parsed.bytes);
        let got = match parsed.first_reject {
            Some((why, span)) => {
                assert_eq!((span, parsed.rejected()), (Span::new(0, message.len()), 1));
                why.word()
            }
            None => text.lines().next().unwrap(),
        };
        assert_eq!(got, *want, "{element:?}");
        assert!(text.ends_with("good 2 1\n"), "{element:?} does not affect the next element");
    }
    let infinite = b"(lp0\n(S'a'\n(I5\nF-inf\ntta.";
    assert_eq!(parse(Compatibility::Carbon, MessageEncoding::Pickle, infinite).bytes, b"a -inf 5\n");
}

#[test]
fn a_message_that_is_not_a_list_is_rejected() {
    for (form, message) in [
        (MessageEncoding::Pickle, &b"cos\nsystem\n(S'true'\ntR."[..]),
        (MessageEncoding::Pickle, b"N."),
        (MessageEncoding::Pickle, b"}."),
        (MessageEncoding::Pickle, b"hello\n"),
        (MessageEncoding::Protobuf, b"\x0a\x7f"),
        (MessageEncoding::Protobuf, b"\x0a\x0c\x0a\x01a\x12\x07\x08\xff\xff\xff\xff\xff\xff"),
        (MessageEncoding::Protobuf, b"\x0b"),
        (MessageEncoding::Protobuf, b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    ] {
        let parsed = parse(Compatibility::Strict, form, message);
        assert_eq!(parsed.rejects[Reject::BadMessage.index()], 1, "{}", message.escape_ascii());
        assert!(parsed.points.is_empty());
    }
    // An empty message is valid.
    assert_eq!(parse(Compatibility::Strict, MessageEncoding::Protobuf, b"").lines, 0);
    assert_eq!(parse(Compatibility::Strict, MessageEncoding::Pickle, b"].").lines, 0);
}

/// Whether the message as a whole is valid.
fn is_good(form: MessageEncoding, message: &[u8]) -> bool {
    let mut opened = MessageReader::new(form, message);
    loop {
        match opened.validate(message) {
            Ok(true) => return true,
            Ok(false) => {}
            Err(_) => return false,
        }
    }
}

/// A pickle of one name, and this many elements of eight bytes each that refer to it by `GET`.
fn repeated(name: &[u8], elements: usize) -> Vec<u8> {
    let mut message = b"\x80\x02]B".to_vec();
    message.extend_from_slice(&(name.len() as u32).to_le_bytes());
    message.extend_from_slice(name);
    message.extend_from_slice(b"q\x010(");
    message.extend_from_slice(&b"h\x01K\x07K\x08\x86\x86".repeat(elements));
    message.extend_from_slice(b"e.");
    message
}

/// The same as protobuf: points of three bytes.
fn repeated_payload(name: &[u8], points: usize) -> Vec<u8> {
    let length =
        |len: usize| (0..5).map(move |at| (len >> (7 * at)) as u8 & 0x7F | if at < 4 { 0x80 } else { 0 });
    let mut metric = b"\x0a".to_vec();
    metric.extend(length(name.len()));
    metric.extend_from_slice(name);
    metric.extend_from_slice(&b"\x12\x00".repeat(points));
    let mut message = b"\x0a".to_vec();
    message.extend(length(metric.len()));
    message.extend_from_slice(&metric);
    message
}

#[test]
fn referenced_text_is_bounded_by_the_message_length() {
    // For valid and invalid names: the references are counted before any name is read.
    for byte in [b'n', b' '] {
        for (form, make) in [
            (MessageEncoding::Pickle, repeated as fn(&[u8], usize) -> Vec<u8>),
            (MessageEncoding::Protobuf, repeated_payload),
        ] {
            let name = vec![byte; 40_000];
            let good = |count: usize| {
                let message = make(&name, count);
                let within = count * name.len() <= TEXTS_RATIO_MAX * message.len();
                assert_eq!(is_good(form, &message), within, "{form:?} {count} times");
                within
            };
            let most = (1..).find(|count| !good(*count)).expect("there is an end") - 1;
            assert!(most >= TEXTS_RATIO_MAX, "{most}");
            let parsed = parse(Compatibility::Strict, form, &make(&name, most + 1));
            assert_eq!((parsed.points.len(), parsed.rejects[Reject::BadMessage.index()]), (0, 1));
            let parsed = parse(Compatibility::Strict, form, &make(&name, most));
            assert_eq!(parsed.lines, most as u64, "each is a point or a reject of its own");
        }
    }
    // Values and times may be strings as well.
    let text = |times: usize| {
        let value = "1".repeat(40_000);
        format!("(lp0\n(S'a'\n(S'{value}'\nI1\nttp1\na{}.", "g1\na".repeat(times)).into_bytes()
    };
    for (times, good) in [(100, true), (140, false)] {
        assert_eq!(is_good(MessageEncoding::Pickle, &text(times)), good, "{times} times");
    }
}

#[test]
fn referenced_text_is_bounded_for_any_message_length() {
    let name = vec![b'n'; 100_000];
    let most = TEXTS_BYTES_MAX / name.len();
    for (count, good) in [(most, true), (most + 1, false)] {
        let mut message = repeated(&name, count);
        message.resize(TEXTS_BYTES_MAX / TEXTS_RATIO_MAX + 1, 0);
        assert_eq!(is_good(MessageEncoding::Pickle, &message), good, "{count} times");
    }
}

#[test]
fn a_message_gives_the_same_result_in_bounded_pieces() {
    let name = vec![b'n'; 4_000];
    for (form, message) in [
        (MessageEncoding::Pickle, repeated(&name, 120)),
        (MessageEncoding::Protobuf, repeated_payload(&name, 120)),
        (MessageEncoding::Protobuf, repeated_payload(&name, 0)),
    ] {
        let whole = parse(Compatibility::Strict, form, &message);
        let reader = Reader::new(Options::of(Compatibility::Strict), 1);
        let span = Span::new(0, message.len());
        let (mut bytes, mut points, mut pieces) = (Vec::new(), 0, 0);
        let mut parsed = Parsed::default();
        let mut opened = MessageReader::new(form, &message);
        loop {
            parsed.clear();
            let more = reader.piece(&mut opened, &message, span, 9, &mut parsed);
            assert!(parsed.bytes.len() <= PIECE_BYTES_MAX + name.len() + 50, "{}", parsed.bytes.len());
            bytes.extend_from_slice(&parsed.bytes);
            points += parsed.points.len();
            pieces += 1;
            if !more {
                break;
            }
        }
        assert_eq!((&bytes, points), (&whole.bytes, whole.points.len()));
        assert_eq!(pieces, if points == 0 { 1 } else { 8 });
    }
}

#[test]
fn a_long_message_is_validated_in_steps_before_its_first_point() {
    for (form, message) in [
        (MessageEncoding::Pickle, repeated(b"a", 100_000)),
        (MessageEncoding::Protobuf, repeated_payload(b"a", 100_000)),
    ] {
        let reader = Reader::new(Options::of(Compatibility::Strict), 1);
        let span = Span::new(0, message.len());
        let mut opened = MessageReader::new(form, &message);
        let (mut parsed, mut pieces, mut empty) = (Parsed::default(), 1, 0);
        while reader.piece(&mut opened, &message, span, 9, &mut parsed) {
            pieces += 1;
            empty += usize::from(parsed.points.is_empty());
        }
        assert_eq!((parsed.points.len(), parsed.rejected()), (100_000, 0));
        assert!(empty >= 3 && pieces >= empty + 100_000 * 48 / PIECE_BYTES_MAX, "{empty} of {pieces}");
        // A message without its end is one reject, even when its first part was valid.
        let cut = &message[..message.len() - 1];
        let parsed = parse(Compatibility::Strict, form, cut);
        assert_eq!((parsed.points.len(), parsed.rejects[Reject::BadMessage.index()]), (0, 1));
    }
}

#[test]
fn an_element_has_texts_of_64_kib_at_most() {
    for (name_bytes, points) in [(64 * 1024, 2), (64 * 1024 + 1, 1)] {
        let name = vec![b'n'; name_bytes];
        let long = format!("(S'{}'\n(K\x01K\x02tta", String::from_utf8_lossy(&name));
        let message = format!("(lp0\n{long}(S'good'\n(I1\nI2\ntta.");
        let parsed = parse(Compatibility::Carbon, MessageEncoding::Pickle, message.as_bytes());
        assert_eq!(parsed.points.len(), points, "{name_bytes}");
        assert_eq!(parsed.rejects[Reject::BadElement.index()], 2 - points as u64);
    }
}

#[test]
fn protobuf_fields_come_in_any_order_and_unknown_ones_are_skipped() {
    let message = b"\x12\x01x\x0a\x15\x12\x09\x11\0\0\0\0\0\0\0\x40\x12\x00\x1d\0\0\0\0\x0a\x01a";
    assert_eq!(message[4] as usize, message.len() - 5);
    assert_eq!(lines(MessageEncoding::Protobuf, message), "a 2 0\na 0 0\n");
}

proptest! {
    #[test]
    fn any_bytes_end_as_points_or_rejects(message in proptest::collection::vec(any::<u8>(), 0..80)) {
        for compatibility in Compatibility::ALL {
            for form in [MessageEncoding::Pickle, MessageEncoding::Protobuf] {
                reference::compare_message(Options::of(compatibility), form, &message);
            }
        }
    }
}
