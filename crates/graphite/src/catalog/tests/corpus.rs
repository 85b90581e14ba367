//! The files of `tests/corpus/catalog` and seeded mutations of them: fuzzing without a nightly compiler.

use std::fs;
use std::path::Path;

use super::*;
use crate::catalog::saved::promises;

/// Mutations of each file. A nightly run of the fuzz targets does millions.
const MUTATIONS: u64 = 30;

fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/catalog").join(folder);
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(path)
        .expect("the corpus")
        .map(|entry| {
            let entry = entry.expect("a file");
            (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("readable"))
        })
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn good_files_find_something() {
    for (file, bytes) in files("good") {
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let query = lines.pop().expect("a last line");
        let mut catalog = Catalog::new(limits(), SEED);
        for name in lines {
            catalog.insert(name).expect("a good name");
        }
        let found = match Expressions::parse(query.split(|byte| *byte == b' ')) {
            Ok(expressions) => {
                catalog.find_series(expressions, search_limits()).expect("within limits").len()
            }
            Err(_) => {
                let glob = NameGlob::new(query).expect("a glob");
                catalog.search(glob, Wanted::All, search_limits()).expect("within limits").len()
            }
        };
        assert!(found > 0, "{file}");
    }
}

#[test]
fn mutated_files_keep_the_promises() {
    let mut random = 0x1e55_0f5e_ed00_0001u64;
    let mut below = |end: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % end.max(1) as u64) as usize
    };
    for (_, bytes) in files("good").into_iter().chain(files("bad")) {
        promises::check_glob(&bytes);
        promises::check_saved(&bytes);
        for _ in 0..MUTATIONS {
            let mut mutated = bytes.clone();
            for _ in 0..=below(4) {
                let at = below(mutated.len());
                match below(4) {
                    0 if at < mutated.len() => mutated[at] = below(256) as u8,
                    1 if at < mutated.len() => drop(mutated.remove(at)),
                    2 => mutated.insert(at, b" .;\n={},*?[]!-\\~\""[below(17)]),
                    _ => mutated.truncate(at),
                }
            }
            promises::check_glob(&mutated);
        }
    }
}
