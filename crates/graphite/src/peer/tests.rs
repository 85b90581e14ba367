//! What we write is read again; what cannot be an answer is refused; joining does not depend on the order.

use proptest::prelude::*;

use super::received::fetched;
use super::*;
use crate::answer;

const ROOM: Room = Room { series: 10, points: 100 };
const N: f64 = f64::NAN;

fn one(name: &str, start: i64, step: i64, values: &[f64]) -> Fetched {
    let end = start + step * values.len() as i64;
    Fetched { name: name.to_owned(), start, end, step, values: values.to_vec() }
}

/// Bits, so that NaN is equal to itself.
fn plain(all: &[Fetched]) -> Vec<(&str, i64, i64, i64, Vec<u64>)> {
    all.iter()
        .map(|one| {
            let bits = |value: &f64| if value.is_nan() { N.to_bits() } else { value.to_bits() };
            (one.name.as_str(), one.start, one.end, one.step, one.values.iter().map(bits).collect())
        })
        .collect()
}

#[test]
fn series_of_both_encodings_are_read() {
    let vector = answer::json::tests::vector("vec.lin", &[31.0, N, 0.0]);
    let want = [one("vec.lin", 1_710_001_860, 60, &[31.0, N, 0.0])];
    let msgpack = answer::msgpack::series(&vector);
    assert_eq!(plain(&series(Encoding::Msgpack, &msgpack, ROOM).unwrap()), plain(&want));
    let protobuf = answer::protobuf::series_v2(&vector);
    assert_eq!(plain(&series(Encoding::Protobuf, &protobuf, ROOM).unwrap()), plain(&want));
    for (encoding, bytes) in [(Encoding::Msgpack, &msgpack), (Encoding::Protobuf, &protobuf)] {
        let few = |series_max, points_max| {
            series(encoding, bytes, Room { series: series_max, points: points_max }).unwrap_err()
        };
        assert_eq!(few(0, 100), BadAnswer::TooManySeries);
        assert_eq!(few(10, 2), BadAnswer::TooManyPoints);
        for end in 1..bytes.len() {
            assert!(matches!(series(encoding, &bytes[..end], ROOM), Err(BadAnswer::Malformed(_))), "{end}");
        }
    }
}

#[test]
fn paths_of_both_encodings_are_read() {
    let found = Found::of_paths([(&b"a.b"[..], true), (b"a.c", false), (b"a.c", true)]);
    let msgpack = answer::msgpack::paths(&found, (0, 9));
    let protobuf = answer::protobuf::paths_v2(&found, "a.*");
    for (encoding, bytes) in [(Encoding::Msgpack, &msgpack), (Encoding::Protobuf, &protobuf)] {
        let read = paths(encoding, bytes, 10).unwrap();
        let nodes: Vec<_> = read.nodes().map(|node| (node.path, node.leaf.is_some(), node.branch)).collect();
        assert_eq!(nodes, [(&b"a.b"[..], true, false), (b"a.c", true, true)]);
        assert_eq!(paths(encoding, bytes, 2).unwrap_err(), BadAnswer::TooManyPaths);
    }
}

#[test]
fn times_that_no_series_has_are_refused() {
    let bad = [(0, 0), (-60, 60), (0, -1), (i64::MAX, 60), (0, i64::MAX)];
    for times in bad {
        assert!(fetched("a".to_owned(), times, vec![1.0, 2.0]).is_err(), "{times:?}");
    }
    assert_eq!(fetched("a".to_owned(), (0, 0), Vec::new()), Ok(None));
}

#[test]
fn a_list_that_announces_much_takes_no_memory() {
    // Four billion series; a series with four billion values.
    assert!(series(Encoding::Msgpack, b"\xdd\xff\xff\xff\xff", ROOM).is_err());
    let mut bytes = b"\x91\x84\xa4name\xa1a\xa5start\x00\xa4step\x0a\xa6values".to_vec();
    bytes.extend(b"\xdd\xff\xff\xff\xff");
    assert!(series(Encoding::Msgpack, &bytes, ROOM).is_err());
    // A name of four billion bytes; a deeply nested value under an unknown name.
    assert!(series(Encoding::Msgpack, b"\x91\x84\xa4name\xdb\xff\xff\xff\xff", ROOM).is_err());
    let mut nested = b"\x91\x81\xa1x".to_vec();
    nested.extend(vec![0x91; 1 << 20]);
    assert!(series(Encoding::Msgpack, &nested, ROOM).is_err());
    // Many empty messages.
    let empty = b"\x0a\x00".repeat(11);
    assert_eq!(series(Encoding::Protobuf, &empty, ROOM).unwrap_err(), BadAnswer::TooManySeries);
}

#[test]
fn the_content_type_says_the_encoding() {
    let table = [
        ("application/x-msgpack", Some(Encoding::Msgpack)),
        ("Application/X-Protobuf; charset=x", Some(Encoding::Protobuf)),
        ("image/png", None),
        ("", None),
    ];
    for (kind, want) in table {
        assert_eq!(Encoding::of_content_type(kind), want, "{kind}");
    }
}

#[test]
fn gaps_are_filled_and_the_best_copy_counts() {
    let table = [
        // Gaps. Of equal coverage, the greater first value decides, and NaN is the greatest.
        (one("a", 0, 10, &[1.0, N, 3.0]), one("a", 0, 10, &[N, 2.0, 9.0]), one("a", 0, 10, &[1.0, 2.0, 9.0])),
        // Another start of the same grid; what is outside is left out.
        (one("a", 0, 10, &[1.0, N, 3.0]), one("a", 10, 10, &[5.0]), one("a", 0, 10, &[1.0, 5.0, 3.0])),
        // Another grid.
        (one("a", 0, 10, &[1.0, N, 3.0]), one("a", 5, 10, &[5.0]), one("a", 0, 10, &[1.0, N, 3.0])),
        // Longer coverage comes before a finer step.
        (one("a", 0, 60, &[1.0, 2.0]), one("a", 0, 10, &[5.0]), one("a", 0, 60, &[1.0, 2.0])),
        (one("a", 0, 60, &[1.0]), one("a", 0, 10, &[1.0; 6]), one("a", 0, 10, &[1.0; 6])),
    ];
    for (a, b, want) in table {
        for parts in [vec![vec![a.clone()], vec![b.clone()]], vec![vec![b.clone()], vec![a.clone()]]] {
            assert_eq!(plain(&joined(parts)), plain(std::slice::from_ref(&want)));
        }
    }
}

fn some_series() -> impl Strategy<Value = Fetched> {
    let value = prop_oneof![Just(N), (0..4_u8).prop_map(f64::from)];
    let values = proptest::collection::vec(value, 1..6);
    ("[ab]", 0..4_i64, 1..4_i64, values)
        .prop_map(|(name, start, step, values)| one(&name, start, step, &values))
}

proptest! {
    #[test]
    fn the_order_of_nodes_does_not_matter(
        parts in proptest::collection::vec(proptest::collection::vec(some_series(), 0..4), 0..4),
        seed in any::<u64>(),
    ) {
        let mut other = parts.clone();
        for (at, _) in parts.iter().enumerate() {
            other.swap(at, (seed as usize).wrapping_add(at) % parts.len());
        }
        let (of_parts, of_other) = (joined(parts), joined(other));
        prop_assert_eq!(plain(&of_parts), plain(&of_other));
    }

    #[test]
    fn no_answer_ends_in_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for encoding in [Encoding::Msgpack, Encoding::Protobuf] {
            let _ = series(encoding, &bytes, ROOM);
            let _ = paths(encoding, &bytes, 10);
        }
    }
}
