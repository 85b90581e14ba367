//! The spec's vectors (graphite §1.2), invalid messages, and random bytes.

use proptest::prelude::*;

use super::{DEPTH_MAX, LISTS_MAX, Pickle, PickleError, PickleReader, VALUES_MAX, ValueRef};

/// Decodes the whole message.
fn read(message: &[u8]) -> Result<Pickle, PickleError> {
    Ok(PickleReader::default().step(message, usize::MAX)?.expect("an unlimited step reaches the end"))
}

/// The value as Python would print it, to this depth of containers.
fn text(value: ValueRef<'_>, depth: usize) -> String {
    let all = |items: super::Items<'_>| -> String {
        items.iter().map(|item| text(item, depth - 1)).collect::<Vec<_>>().join(", ")
    };
    match value {
        _ if depth == 0 => "…".into(),
        ValueRef::None => "None".into(),
        ValueRef::Whole(number) => number.to_string(),
        ValueRef::Huge => "huge".into(),
        ValueRef::Float(number) => format!("{number:?}"),
        ValueRef::Text(text) => format!("'{}'", text.escape_ascii()),
        ValueRef::Items(items) => format!("[{}]", all(items)),
        ValueRef::Dict(items) => format!("{{{}}}", all(items)),
    }
}

fn shown(message: &[u8]) -> Result<String, PickleError> {
    read(message).map(|pickle| text(pickle.root(message), 6))
}

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().map(|digit| char::from(digit).to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The spec's vectors, without their lengths, for protocols 0, 1, 2 and 4.
pub(crate) const VECTORS: [&str; 4] = [
    "286c70300a2856666f6f2e6261720a70310a2849313730303030303030300a46312e350a7470320a7470330a612856613b743d760a70340a2849313730303030303036300a492d330a7470350a7470360a612e",
    "5d710028285807000000666f6f2e6261727101284a00f15365473ff8000000000000747102747103285805000000613b743d767104284a3cf153654afdffffff747105747106652e",
    "80025d7100285807000000666f6f2e62617271014a00f15365473ff80000000000008671028671035805000000613b743d7671044a3cf153654afdffffff867105867106652e",
    "80049537000000000000005d94288c07666f6f2e626172944a00f15365473ff8000000000000869486948c05613b743d76944a3cf153654afdffffff86948694652e",
];

#[test]
fn spec_vectors_are_decoded_in_every_protocol() {
    for hex in VECTORS {
        let want = "[['foo.bar', [1700000000, 1.5]], ['a;t=v', [1700000060, -3]]]";
        assert_eq!(shown(&bytes(hex)).as_deref(), Ok(want), "{hex}");
        for (from, to) in [("8002", "8003"), ("8004", "8005")] {
            if let Some(rest) = hex.strip_prefix(from) {
                assert_eq!(shown(&bytes(&format!("{to}{rest}"))).as_deref(), Ok(want), "{to}");
            }
        }
        // Truncated anywhere, it is invalid, and not a different value.
        let whole = bytes(hex);
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "{end} bytes of {hex}");
        }
    }
    let request = "80027d7100285804000000747970657101580b00000063616368652d7175657279710258060000006d657472696371035805000000702e6d35397104752e";
    assert_eq!(shown(&bytes(request)).as_deref(), Ok("{'type', 'cache-query', 'metric', 'p.m59'}"));
    let reply =
        "80027d7100580a00000064617461706f696e747371015d71024741dac029e040000047405620000000000086710361732e";
    assert_eq!(shown(&bytes(reply)).as_deref(), Ok("{'datapoints', [[1795204993.0, 88.5]]}"));
}

#[test]
fn each_opcode_does_what_it_does_in_python() {
    let table: &[(&[u8], &str)] = &[
        (b"I01\n.", "1"),
        (b"I00\n.", "0"),
        (b"I-12\n.", "-12"),
        (b"L123L\n.", "123"),
        (b"L99999999999999999999L\n.", "huge"),
        (b"K\xff.", "255"),
        (b"M\xff\xff.", "65535"),
        (b"J\xff\xff\xff\xff.", "-1"),
        (b"\x8a\x00.", "0"),
        (b"\x8a\x01\xff.", "-1"),
        (b"\x8a\x05\xff\xff\xff\xff\x00.", "4294967295"),
        (b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.", "huge"),
        (b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00.", "9223372036854775807"),
        (b"\x8b\x01\x00\x00\x00\x07.", "7"),
        (b"F-1.5e3\n.", "-1500.0"),
        (b"Fnan\n.", "NaN"),
        (b"F-inf\n.", "-inf"),
        (b"N.", "None"),
        (b"\x88.", "1"),
        (b"\x89.", "0"),
        (b"S'it\\'s\\x41\\n'\n.", "'it\\'sA\\n'"),
        (b"S\"plain\"\n.", "'plain'"),
        (b"V\\u0041\\U00000042\\n\n.", "'AB\\\\n'"),
        (b"V\xe9\n.", "'\\xc3\\xa9'"),
        (b"T\x02\0\0\0hi.", "'hi'"),
        (b"U\x02hi.", "'hi'"),
        (b"C\x02hi.", "'hi'"),
        (b"B\x02\0\0\0hi.", "'hi'"),
        (b"\x8d\x02\0\0\0\0\0\0\0hi.", "'hi'"),
        (b"\x8e\x02\0\0\0\0\0\0\0hi.", "'hi'"),
        (b"(K\x01K\x02l.", "[1, 2]"),
        (b"](K\x01K\x02e.", "[1, 2]"),
        (b"]K\x01a.", "[1]"),
        (b").", "[]"),
        (b"K\x01\x85.", "[1]"),
        (b"K\x01K\x02K\x03\x87.", "[1, 2, 3]"),
        (b"(K\x01K\x02d.", "{1, 2}"),
        (b"}K\x01K\x02s.", "{1, 2}"),
        (b"K\x01K\x020.", "1"),
        (b"K\x01(K\x021.", "1"),
        (b"K\x01(0.", "1"),
        (b"K\x072\x86.", "[7, 7]"),
        (b"K\x07p4\n0g4\n.", "7"),
        (b"K\x07r\x06\0\0\x000j\x06\0\0\0.", "7"),
        (b"]q\0h\0a.", "[[[[[[…]]]]]]"),
        (b"K\x01.rest", "1"),
    ];
    for (message, want) in table {
        assert_eq!(shown(message).as_deref(), Ok(*want), "{}", message.escape_ascii());
    }
}

#[test]
fn code_and_out_of_range_references_are_rejected() {
    let table: &[(&[u8], PickleError)] = &[
        (b"cos\nsystem\n(S'true'\ntR.", PickleError::Opcode(b'c')),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", PickleError::Opcode(0x93)),
        (b"(ios\nsystem\n.", PickleError::Opcode(b'i')),
        (b")R.", PickleError::Opcode(b'R')),
        (b"K\x01Q.", PickleError::Opcode(b'Q')),
        (b"\x8f.", PickleError::Opcode(0x8F)),
        (b"\x96\0\0\0\0\0\0\0\0.", PickleError::Opcode(0x96)),
        (b"\xff", PickleError::Opcode(0xFF)),
        (b"\x80\x06N.", PickleError::Protocol(6)),
        (b"", PickleError::Truncated),
        (b"N", PickleError::Truncated),
        (b"X\xff\xff\xff\xffa.", PickleError::Truncated),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffa.", PickleError::Truncated),
        (b"\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", PickleError::Truncated),
        (b"T\xff\xff\xff\xffa.", PickleError::Text),
        (b"\x8b\xff\xff\xff\xff.", PickleError::Text),
        (b"I1\n", PickleError::Truncated),
        (b"Ione\n.", PickleError::Text),
        (b"I\n.", PickleError::Text),
        (b"F1_0\n.", PickleError::Text),
        (b"S'open\n.", PickleError::Text),
        (b"S'\\q'\n.", PickleError::Text),
        (b"V\\ud800\n.", PickleError::Text),
        (b".", PickleError::Stack),
        (b"0.", PickleError::Stack),
        (b"a.", PickleError::Stack),
        (b"K\x01a.", PickleError::Stack),
        (b"K\x01K\x02a.", PickleError::Stack),
        (b"t.", PickleError::Stack),
        (b"K\x01(\x85.", PickleError::Stack),
        (b"](K\x01a.", PickleError::Stack),
        (b"](a.", PickleError::Stack),
        (b"(K\x01d.", PickleError::Stack),
        (b"}K\x01s.", PickleError::Stack),
        (b"K\x01(.", PickleError::Stack),
        (b"h\0.", PickleError::Memo),
        (b"gx\n.", PickleError::Memo),
        (b"Nr\xff\xff\xff\xff.", PickleError::Memo),
        (b"Np99999999999999999999\n.", PickleError::Memo),
    ];
    for (message, want) in table {
        assert_eq!(shown(message), Err(*want), "{}", message.escape_ascii());
    }
}

#[test]
fn limits_are_enforced_at_the_limit_and_past_it() {
    let long = 64 * 1024;
    let marks = |count| [vec![b'('; count], b"N.".to_vec()].concat();
    assert_eq!(shown(&marks(DEPTH_MAX)).as_deref(), Ok("None"));
    assert_eq!(shown(&marks(DEPTH_MAX + 1)), Err(PickleError::TooMuch));
    let values = |count| [vec![b'N'; count], b".".to_vec()].concat();
    assert!(read(&values(VALUES_MAX)).is_ok());
    assert_eq!(read(&values(VALUES_MAX + 1)).map(|_| ()), Err(PickleError::TooMuch));
    // A frame's hint is nine bytes that make no value.
    let place = |before: usize, at: usize| {
        let hints = b"\x95\0\0\0\0\0\0\0\0".repeat(before);
        [hints, b"Nr".to_vec(), (at as u32).to_le_bytes().to_vec(), b".".to_vec()].concat()
    };
    let all = |count: usize| [&b"N"[..], &b"\x94".repeat(count), b"."].concat();
    assert!(read(&all(VALUES_MAX)).is_ok());
    assert_eq!(read(&all(VALUES_MAX + 1)).map(|_| ()), Err(PickleError::Memo));
    assert!(read(&place(8_000, long)).is_ok());
    assert_eq!(read(&place(8_000, long + 1)).map(|_| ()), Err(PickleError::Memo));
    let lists = |count: usize| [&b"]"[..].repeat(count), &b"."[..]].concat();
    assert!(read(&lists(LISTS_MAX)).is_ok());
    assert_eq!(read(&lists(LISTS_MAX + 1)).map(|_| ()), Err(PickleError::TooMuch));
    // Limits of one opcode: digits, bytes of an integer, an escaped string. A string without escapes is only sliced.
    let digits = |count: usize| [&b"I"[..], &b"1".repeat(count), b"\n."].concat();
    let number = |count: usize| [&b"\x8b"[..], &(count as u32).to_le_bytes(), &vec![1; count], b"."].concat();
    let escaped = |count: usize| [&b"S'\\n"[..], &b"x".repeat(count - 2), b"'\n."].concat();
    let unicode = |count: usize| [&b"V\xe9"[..], &b"x".repeat(count - 1), b"\n."].concat();
    for (make, name) in [
        (&digits as &dyn Fn(usize) -> Vec<u8>, "digits"),
        (&number, "bytes of a number"),
        (&escaped, "a text with escapes"),
        (&unicode, "a text of Latin-1"),
    ] {
        assert!(read(&make(long)).is_ok(), "{name}");
        assert_eq!(read(&make(long + 1)).map(|_| ()), Err(PickleError::TooMuch), "{name}");
    }
    let plain = [&b"S'"[..], &b"x".repeat(4 * long), b"'\n."].concat();
    assert!(read(&plain).is_ok());
    // A memo index is no larger than the bytes read before it.
    for (at, good) in [(14, true), (15, false), (VALUES_MAX - 1, false)] {
        assert_eq!(read(&place(1, at)).is_ok(), good, "place {at} after 15 bytes");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_rejected(
        base in 0_usize..VECTORS.len(),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        noise in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut message = bytes(VECTORS[base]);
        for (at, byte) in changes {
            let at = at % message.len();
            message[at] = byte;
        }
        for message in [message, noise] {
            let whole = read(&message).map(|pickle| text(pickle.root(&message), 4));
            // The same in steps of one opcode.
            let mut reading = PickleReader::default();
            let steps = loop {
                match reading.step(&message, 1) {
                    Ok(None) => {}
                    Ok(Some(pickle)) => break Ok(text(pickle.root(&message), 4)),
                    Err(bad) => break Err(bad),
                }
            };
            prop_assert_eq!(steps, whole);
        }
    }
}
