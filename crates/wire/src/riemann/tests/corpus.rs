//! The files of `tests/corpus/riemann`, and seeded mutations of them: fuzzing without a nightly compiler.

use model::EventsBuilder;

use super::{RECEIVED, decoded};
use crate::riemann::json::{self, JsonOptions, JsonTimes};
use crate::riemann::reference;
use crate::tests::corpus::{Random, all_files, files};

/// Mutations of each file. A nightly run of the fuzz target does millions.
const MUTATIONS: u64 = 400;

const OPTIONS: JsonOptions = JsonOptions { bytes_max: 64 * 1024, times: JsonTimes::Micros };

/// Why a file is rejected: a message, or a line of JSON.
fn reject(name: &str, bytes: &[u8]) -> Option<&'static str> {
    if name.ends_with(".json") {
        let mut batch = EventsBuilder::default();
        json::decode(bytes, RECEIVED, OPTIONS, &mut batch).err().map(|reject| reject.word())
    } else {
        reference::compare(bytes);
        decoded(bytes).1.err().map(super::MessageReject::word)
    }
}

#[test]
fn good_files_are_accepted() {
    for (name, bytes) in files("riemann/good") {
        assert_eq!(reject(&name, &bytes), None, "{name}");
    }
}

#[test]
fn bad_files_are_rejected_for_the_reason_in_their_name() {
    for (name, bytes) in files("riemann/bad") {
        assert_eq!(reject(&name, &bytes), name.split('.').next(), "{name}");
    }
}

#[test]
fn mutated_files_are_decoded_as_in_the_reference() {
    let mut random = Random(0x1e55_0f5e_ed00_0002);
    for (name, bytes) in all_files("riemann") {
        for _ in 0..MUTATIONS {
            let mut mutated = bytes.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(mutated.len().max(1)).min(mutated.len());
                match random.below(4) {
                    0 if at < mutated.len() => mutated[at] = random.below(256) as u8,
                    1 if at < mutated.len() => drop(mutated.remove(at)),
                    2 => mutated.insert(at, b"\x00\x01\x0b\x0c\x32\x4a\"\\{}[]"[random.below(12)]),
                    _ => mutated.truncate(at),
                }
            }
            reject(&name, &mutated);
        }
    }
}
