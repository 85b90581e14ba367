//! Invariants of globs, expressions and saved catalogs for any bytes. Called by seeded tests and by the fuzz targets
//! `catalog_glob` and `catalog_saved`, never in production.

use super::piece::{Kind, PIECE_BYTES_MAX, write};
use super::{Reader, Snapshot};
use crate::catalog::{
    Catalog, CatalogLimits, Expressions, NameGlob, Progress, Search, SearchLimits, Wanted, normal_name,
};

const SEED: u64 = 1;
const LIMITS: CatalogLimits = CatalogLimits { names_max: 1000, bytes_max: 4 << 20 };
/// What a catalog may use above its limit: a page of each array.
const SLACK_BYTES: usize = 1 << 20;

/// A text as names, one a line, and a last line as a glob: a search has the same result in one slice and in many, and
/// finds only what it should.
pub fn check_glob(bytes: &[u8]) {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let query = lines.next_back().unwrap_or_default();
    let mut catalog = Catalog::new(LIMITS, SEED);
    for name in lines {
        if let Ok(inserted) = catalog.insert(name) {
            let mut normal = Vec::new();
            assert!(catalog.name(inserted.id(), &mut normal));
            assert_eq!(normal_name(&normal), Ok(normal));
        }
    }
    catalog.check();
    let limits = SearchLimits { results_max: 500, steps_max: 100_000 };
    if let Ok(expressions) = Expressions::parse(query.split(|byte| *byte == b' ')) {
        let _found = catalog.find_series(expressions, limits);
    }
    let (Ok(glob), Ok(again)) = (NameGlob::new(query), NameGlob::new(query)) else { return };
    let whole = catalog.search(glob, Wanted::All, limits);
    let mut search = Search::new(again, Wanted::All, limits);
    let parts = loop {
        match search.step(&catalog, 7) {
            Ok(Progress::More) => {}
            Ok(Progress::Done) => break Ok(search.finish()),
            Err(error) => break Err(error),
        }
    };
    // Resuming costs steps, too, so only the whole may be within the limit.
    if let (Ok(whole), Ok(parts)) = (whole, parts) {
        assert!(whole.nodes().eq(parts.nodes()));
        for node in whole.nodes() {
            assert_eq!(catalog.find(node.path), node.leaf);
        }
    }
}

/// Any bytes between two pieces of a saved catalog, and as the body of a piece: no panic, bounded memory, the two pieces
/// are read, and what was read can be saved and read again.
pub fn check_saved(bytes: &[u8]) {
    for number in [1, 2] {
        let mut file = Vec::new();
        write(Kind::Names, 0, b"\x00\x00\x05first", &mut file);
        match (number, bytes.split_first()) {
            (1, Some((kind, body))) if body.len() <= PIECE_BYTES_MAX => {
                let kind = [Kind::Begin, Kind::Names, Kind::Changes, Kind::End][usize::from(kind % 4)];
                write(kind, 1, body, &mut file);
            }
            _ => file.extend_from_slice(bytes),
        }
        write(Kind::Changes, 2, b"\x01\x01\x04last", &mut file);
        let mut reader = Reader::new(LIMITS, SEED);
        reader.begin();
        let (one, other) = file.split_at(file.len() / 2);
        reader.push(one);
        reader.push(other);
        let report = reader.end();
        assert!(reader.memory_bytes() <= 4 * PIECE_BYTES_MAX);
        let catalog = reader.finish();
        catalog.check();
        assert!(catalog.memory_bytes() <= LIMITS.bytes_max + SLACK_BYTES, "{}", catalog.memory_bytes());
        assert!(catalog.find(b"last").is_some() || report.refused > 0, "{report:?}");
        check_again(&catalog);
    }
}

/// Saves and reads a catalog.
fn check_again(catalog: &Catalog) {
    let (mut snapshot, mut file) = (Snapshot::new(1), Vec::new());
    while snapshot.next(catalog, &mut file) {}
    let mut reader = Reader::new(LIMITS, SEED);
    reader.begin();
    reader.push(&file);
    let report = reader.end();
    assert!(report.ended && report.damages == 0 && report.refused == 0, "{report:?}");
    let again = reader.finish();
    assert_eq!(again.len(), catalog.len());
    let mut id = catalog.next(0);
    while let Some(series) = id {
        let mut name = Vec::new();
        assert!(catalog.name(series, &mut name));
        assert_eq!(again.find(&name), Some(series));
        id = catalog.next(series.0 + 1);
    }
}
