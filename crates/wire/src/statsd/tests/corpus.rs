//! The packets of `tests/corpus/statsd`, the results that their names state, and seeded mutations of them: fuzzing
//! without a nightly compiler. As in the fuzz target, parser and reference must agree on any bytes.

use model::Span;
use proptest::prelude::*;

use super::super::reference::{self, settings};
use super::super::rewrite::properties;
use super::super::{Dialect, Options, Parsed, Parser};
use crate::tests::corpus::{Random, all_files, files, meant};

/// Mutations of each file with each set of options. A nightly run of the fuzz target does millions.
const MUTATIONS: u64 = 60;

const DIALECTS: [(&str, Dialect); 4] = [
    ("etsy", Dialect::Etsy),
    ("perl", Dialect::Perl),
    ("dogstatsd", Dialect::Dogstatsd),
    ("union", Dialect::Union),
];

fn parse(dialect: Dialect, packet: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    Parser::new(Options::of(dialect), 1).packet(packet, Span::new(0, packet.len()), 0, &mut parsed);
    parsed
}

#[test]
fn good_files_have_no_rejects() {
    for (name, packet) in files("statsd/good") {
        for dialect in meant(&name, DIALECTS) {
            let parsed = parse(dialect, &packet);
            let line =
                parsed.first_reject.map(|(why, line)| (why, String::from_utf8_lossy(line.of(&packet))));
            assert_eq!(line, None, "{name} in {dialect:?}");
        }
    }
}

#[test]
fn bad_files_are_rejected_for_the_reason_in_their_name() {
    for (name, packet) in files("statsd/bad") {
        for dialect in meant(&name, DIALECTS) {
            let parsed = parse(dialect, &packet);
            let reason = parsed.first_reject.map(|(why, _)| why.word());
            assert_eq!(reason, name.split('.').nth(1), "{name} in {dialect:?}");
        }
    }
}

#[test]
fn mutated_files_parse_as_in_the_reference() {
    let files = all_files("statsd");
    let mut random = Random(0x1e55_0f5e_ed00_0001);
    for options in settings() {
        for (_, packet) in &files {
            reference::compare(options, packet);
            for _ in 0..MUTATIONS {
                let (_, other) = &files[random.below(files.len())];
                reference::compare(options, &mutated(packet, other, &mut random));
            }
        }
    }
}

#[test]
fn mutated_files_keep_the_properties_of_rewriting() {
    let files = all_files("statsd");
    let mut random = Random(0x1e55_0f5e_ed00_0002);
    for (_, packet) in &files {
        properties::check(packet);
        for _ in 0..2 * MUTATIONS {
            let (_, other) = &files[random.below(files.len())];
            properties::check(&mutated(packet, other, &mut random));
        }
    }
}

/// A few random changes to `packet`, truncated to a length that keeps the test fast.
fn mutated(packet: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    const TOKENS: [&[u8]; 24] = [
        b":",
        b"|",
        b"\n",
        b"\r",
        b"|#",
        b"|@",
        b"|c",
        b"|ms",
        b"|T1",
        b"_e{",
        b"_sc|",
        b",",
        b";",
        b"=",
        b"-",
        b"+",
        b".",
        b"e9",
        b"0x",
        b" ",
        b"\xc2\xa0",
        b"\xff",
        b"Infinity",
        b"nan",
    ];
    let start = random.below(packet.len().max(1));
    let mut bytes: Vec<u8> = packet.iter().copied().cycle().skip(start).take(packet.len().min(160)).collect();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(8)).min(bytes.len());
        match random.below(5) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..end, TOKENS[random.below(TOKENS.len())].iter().copied())),
            2 => drop(bytes.splice(at..at, TOKENS[random.below(TOKENS.len())].iter().copied())),
            3 => drop(bytes.splice(at..end, [random.next() as u8])),
            _ => {
                let from = random.below(other.len().max(1));
                let piece: Vec<u8> = other.iter().skip(from).take(random.below(40)).copied().collect();
                drop(bytes.splice(at..end, piece));
            }
        }
    }
    bytes
}

proptest! {
    #[test]
    fn lines_of_typical_pieces_parse_as_in_the_reference(
        pieces in proptest::collection::vec(
            prop_oneof![
                "[a-z./_ ]{1,9}",
                "[0-9]{1,9}(\\.[0-9]{0,6})?",
                prop::sample::select(vec![
                    ":", ":", ":", "|", "|", "|", "|c", "|c", "|g", "|ms", "|s", "|h", "|d", "|@0.5", "|#", "#a:b,c", "|T12",
                    "|c:x", "|e:y", "\n", "\n", "\n", "\r\n", "-", "+", "=", "_e{1,1}:a|b", "_sc|x|1", "|h:z", "|m:y",
                ])
                .prop_map(str::to_string),
            ],
            0..40,
        ),
        setting in 0_usize..8,
    ) {
        reference::compare(settings()[setting], pieces.concat().as_bytes());
        properties::check(pieces.concat().as_bytes());
    }

    #[test]
    fn any_bytes_parse_as_in_the_reference(
        packet in proptest::collection::vec(any::<u8>(), 0..200),
        setting in 0_usize..8,
    ) {
        reference::compare(settings()[setting], &packet);
        properties::check(&packet);
    }

    #[test]
    fn long_packets_parse_as_in_the_reference(
        lines in proptest::collection::vec("[a-z]{1,90}:[0-9]{1,4}\\|(c|ms|g|s|h)(\\|#x)?", 0..120),
        setting in 0_usize..8,
    ) {
        reference::compare(settings()[setting], lines.join("\n").as_bytes());
    }
}
