//! The packets of `tests/corpus/graphite`, what their names promise, and their seeded mutations: fuzzing that needs no
//! nightly compiler. The promise of the fuzz target holds here too: reader and reference say the same of any bytes.

use std::path::{Path, PathBuf};

use model::Span;

use super::super::{Options, Parsed, Personality, Reader, reference};

/// Mutations of each file in each setting. A nightly run of the fuzz target does millions.
const MUTATIONS: u64 = 60;

fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/graphite").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().to_string(), std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

fn first_reject(personality: Personality, packet: &[u8]) -> Option<&'static str> {
    let mut parsed = Parsed::default();
    Reader::new(Options::of(personality), 1).packet(packet, Span::new(0, packet.len()), 0, &mut parsed);
    parsed.first_reject.map(|(why, _)| why.word())
}

/// The personalities that the first part of a file's name stands for.
fn personalities_of(name: &str) -> Vec<Personality> {
    let word = name.split('.').next().unwrap();
    let meant: Vec<_> =
        Personality::ALL.into_iter().filter(|own| word == "all" || word == own.word()).collect();
    assert!(!meant.is_empty(), "{name}: which personality?");
    meant
}

#[test]
fn good_files_have_no_rejects() {
    for (name, packet) in files("good") {
        for personality in personalities_of(&name) {
            assert_eq!(first_reject(personality, &packet), None, "{name} by {personality:?}");
        }
    }
}

#[test]
fn bad_files_are_refused_for_the_reason_in_their_name() {
    for (name, packet) in files("bad") {
        for personality in personalities_of(&name) {
            let word = first_reject(personality, &packet);
            assert_eq!(word, name.split('.').nth(1), "{name} by {personality:?}");
        }
    }
}

#[test]
fn mutated_files_are_read_as_the_reference_reads_them() {
    let mut random = 0x1e55_0f5e_ed00_0001_u64;
    let mut below = move |end: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % end
    };
    for (_, packet) in files("good").into_iter().chain(files("bad")) {
        for _ in 0..MUTATIONS {
            let mut mutated = packet.clone();
            for _ in 0..=below(4) {
                let at = below(mutated.len().max(1)).min(mutated.len());
                match below(4) {
                    0 if at < mutated.len() => mutated[at] = below(256) as u8,
                    1 if at < mutated.len() => drop(mutated.remove(at)),
                    2 => mutated.insert(at, b" .;\t\r\n={\"}~-"[below(12)]),
                    _ => mutated.truncate(at),
                }
            }
            reference::settings().into_iter().for_each(|options| reference::compare(options, &mutated));
        }
    }
}
