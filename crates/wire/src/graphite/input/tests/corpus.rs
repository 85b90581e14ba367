//! The packets of `tests/corpus/graphite`, the results that their names state, and seeded mutations of them: fuzzing
//! without a nightly compiler. As in the fuzz target, reader and reference must agree on any bytes.

use model::Span;

use super::super::{Compatibility, Options, Parsed, Reader, reference};
use crate::tests::corpus::{Random, all_files, files, meant};

/// Mutations of each file with each set of options. A nightly run of the fuzz target does millions.
const MUTATIONS: u64 = 60;

fn first_reject(compatibility: Compatibility, packet: &[u8]) -> Option<&'static str> {
    let mut parsed = Parsed::default();
    Reader::new(Options::of(compatibility), 1).packet(packet, Span::new(0, packet.len()), 0, &mut parsed);
    parsed.first_reject.map(|(why, _)| why.word())
}

/// The compatibility modes by their words.
fn compatibility() -> impl Iterator<Item = (&'static str, Compatibility)> {
    Compatibility::ALL.into_iter().map(|own| (own.word(), own))
}

#[test]
fn good_files_have_no_rejects() {
    for (name, packet) in files("graphite/good") {
        for compatibility in meant(&name, compatibility()) {
            assert_eq!(first_reject(compatibility, &packet), None, "{name} by {compatibility:?}");
        }
    }
}

#[test]
fn bad_files_are_rejected_for_the_reason_in_their_name() {
    for (name, packet) in files("graphite/bad") {
        for compatibility in meant(&name, compatibility()) {
            let word = first_reject(compatibility, &packet);
            assert_eq!(word, name.split('.').nth(1), "{name} by {compatibility:?}");
        }
    }
}

#[test]
fn mutated_files_parse_as_in_the_reference() {
    let mut random = Random(0x1e55_0f5e_ed00_0001);
    for (_, packet) in all_files("graphite") {
        for _ in 0..MUTATIONS {
            let mut mutated = packet.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(mutated.len().max(1)).min(mutated.len());
                match random.below(4) {
                    0 if at < mutated.len() => mutated[at] = random.below(256) as u8,
                    1 if at < mutated.len() => drop(mutated.remove(at)),
                    2 => mutated.insert(at, b" .;\t\r\n={\"}~-"[random.below(12)]),
                    _ => mutated.truncate(at),
                }
            }
            reference::settings().into_iter().for_each(|options| reference::compare(options, &mutated));
        }
    }
}
