//! Files of `tests/corpus` and a seeded random generator, for the tests of parsers.

use std::path::Path;

/// All files in a folder of `tests/corpus`, such as `statsd/good`, by name.
pub(crate) fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().to_string(), std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

/// The good and bad files of a reader together.
pub(crate) fn all_files(reader: &str) -> Vec<(String, Vec<u8>)> {
    ["good", "bad"].iter().flat_map(|folder| files(&format!("{reader}/{folder}"))).collect()
}

/// The readers that a file is for, by the first part of its name, such as `all.` or `etsy.`.
pub(crate) fn meant<'a, T>(name: &str, readers: impl IntoIterator<Item = (&'a str, T)>) -> Vec<T> {
    let word = name.split('.').next().unwrap();
    let meant = readers.into_iter().filter(|(own, _)| word == "all" || word == *own);
    let meant: Vec<T> = meant.map(|(_, reader)| reader).collect();
    assert!(!meant.is_empty(), "{name}: no parser matches the file name");
    meant
}

/// xorshift64*: the same numbers on each run.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
