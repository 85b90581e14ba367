//! Saved catalogs: round trips, journals beside snapshots, damage in every place.

use proptest::prelude::*;

use super::*;
use crate::catalog::{Catalog, CatalogLimits, SeriesId};

const SEED: u64 = 1;
const LIMITS: CatalogLimits = CatalogLimits { names_max: 100_000, bytes_max: 64 << 20 };

#[test]
fn wrong_sizes_of_a_snapshot_take_a_bounded_part_of_the_memory() {
    let limits = CatalogLimits { names_max: u32::MAX, bytes_max: 4 << 20 };
    let mut body = vec![super::reader::SNAPSHOT];
    body.extend_from_slice(&1u64.to_le_bytes());
    (0..4).for_each(|_| crate::codec::write_varint(u32::MAX, &mut body));
    let mut file = Vec::new();
    super::piece::write(super::piece::Kind::Begin, 0, &body, &mut file);
    let mut reader = Reader::new(limits, SEED);
    reader.begin();
    reader.push(&file);
    reader.push(&file);
    assert_eq!(reader.end().damages, 0);
    let catalog = reader.finish();
    assert!((1 << 19..1 << 21).contains(&catalog.memory_bytes()), "{}", catalog.memory_bytes());
}

#[test]
fn a_snapshot_without_sizes_is_read() {
    let mut file = pieces(&filled(100)).concat();
    let begin = super::piece::HEADER_BYTES + 9;
    let header: [u8; super::piece::HEADER_BYTES] = *file.first_chunk().expect("a header");
    let whole = super::piece::HEADER_BYTES + super::piece::Header::read(&header).expect("good").len;
    let mut old = Vec::new();
    super::piece::write(super::piece::Kind::Begin, 0, &file[super::piece::HEADER_BYTES..begin], &mut old);
    old.extend(file.drain(whole..));
    let (catalog, reports) = read(&[&old]);
    assert_eq!((reports[0].damages, reports[0].ended, catalog.len()), (0, true, filled(100).len()));
}

fn filled(count: u32) -> Catalog {
    let mut catalog = Catalog::new(LIMITS, SEED);
    for at in 0..count {
        let name = if at % 3 == 0 {
            format!("m{};host=h{at}", at % 10)
        } else {
            format!("servers.web{at}.cpu{}", at % 7)
        };
        catalog.insert(name.as_bytes()).expect("a name");
    }
    // Ids that are not in use.
    for at in (0..count).step_by(11) {
        catalog.remove_id(SeriesId(at));
    }
    catalog
}

/// The pieces of a snapshot.
fn pieces(catalog: &Catalog) -> Vec<Vec<u8>> {
    let mut snapshot = Snapshot::new(7);
    let (mut pieces, mut piece) = (Vec::new(), Vec::new());
    while snapshot.next(catalog, &mut piece) {
        assert!(piece.len() <= piece::PIECE_BYTES + 5000);
        pieces.push(std::mem::take(&mut piece));
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn read(files: &[&[u8]]) -> (Catalog, Vec<SavedReport>) {
    let mut reader = Reader::new(LIMITS, SEED);
    let mut reports = Vec::new();
    for file in files {
        reader.begin();
        for portion in file.chunks(1000) {
            reader.push(portion);
            assert!(reader.memory_bytes() <= 4 * PIECE_BYTES_MAX);
        }
        reports.push(reader.end());
    }
    let catalog = reader.finish();
    catalog.check();
    (catalog, reports)
}

/// Ids with names.
fn names(catalog: &Catalog) -> Vec<(u32, String)> {
    let ids = (0..catalog.ids_end()).map(SeriesId);
    ids.filter_map(|id| {
        let mut name = Vec::new();
        catalog.name(id, &mut name).then(|| (id.0, String::from_utf8_lossy(&name).into_owned()))
    })
    .collect()
}

#[test]
fn a_snapshot_is_read_with_names_and_ids() {
    let mut saved = filled(6_000);
    let file = pieces(&saved).concat();
    let (mut catalog, reports) = read(&[&file]);
    assert_eq!(names(&catalog), names(&saved));
    let want = SavedReport {
        kind: Some(SavedKind::Snapshot),
        generation: Some(7),
        ended: true,
        pieces: reports[0].pieces,
        came: u64::from(saved.len()),
        ..SavedReport::default()
    };
    assert_eq!(reports[0], want);
    assert!(want.pieces >= 4, "begin, names, end");
    assert_eq!(catalog.insert(b"new").map(|new| new.id()), Ok(SeriesId(0)), "unused ids are used again");
    for name in ["a", "b;c=d"] {
        assert!(saved.insert(name.as_bytes()).is_ok() && catalog.insert(name.as_bytes()).is_ok());
    }
    catalog.check();
    let (empty, reports) = read(&[&pieces(&Catalog::new(LIMITS, SEED)).concat()]);
    assert!(empty.is_empty() && reports[0].ended && reports[0].damages == 0);
}

#[test]
fn damage_costs_only_its_piece() {
    let saved = filled(4_000);
    let all = pieces(&saved);
    let names_of = |at: usize| read(&[&[all[0].as_slice(), &all[at]].concat()]).1[0].came;
    for at in 1..all.len() - 1 {
        for (what, want) in [
            (0, Damaged::NotAPiece),
            (9, Damaged::NotAPiece),
            (40, Damaged::Checksum),
            (200, Damaged::Checksum),
        ] {
            let mut damaged = all.clone();
            damaged[at][what] ^= 4;
            let (catalog, reports) = read(&[&damaged.concat()]);
            assert_eq!(
                u64::from(catalog.len()),
                u64::from(saved.len()) - names_of(at),
                "piece {at}, byte {what}"
            );
            assert!(reports[0].damage.iter().any(|damage| damage.why == want), "{:?}", reports[0]);
            assert!(reports[0].damages <= 2 && reports[0].ended && !want.why().is_empty());
        }
        // A part of a piece is missing, then a whole one.
        let mut short = all.clone();
        short[at].drain(50..150);
        let (catalog, reports) = read(&[&short.concat()]);
        assert_eq!(u64::from(catalog.len()), u64::from(saved.len()) - names_of(at), "a hole in piece {at}");
        assert!(reports[0].damages > 0);
        let mut missing = all.clone();
        missing.remove(at);
        assert_eq!(read(&[&missing.concat()]).1[0].damage[0].why, Damaged::Missing);
    }
    let file = all.concat();
    for cut in [1, 10, 27, 28, 100, file.len() / 2, file.len() - 1] {
        let (_, reports) = read(&[&file[..cut]]);
        assert!(!reports[0].ended && reports[0].damages > 0, "cut at {cut}");
        assert!(reports[0].damage.iter().any(|damage| damage.why == Damaged::CutShort) || cut == 1);
    }
}

#[test]
fn invalid_records_are_named_and_change_nothing_else() {
    let mut pieces = Vec::new();
    for (number, (kind, body)) in [
        (piece::Kind::Names, b"\x00\x00\x01a".as_slice()),
        (piece::Kind::Names, b"\x01\x05\x01a"),
        (piece::Kind::Names, b"\xff\xff\xff\xff\x0f\x00\x01b"),
        (piece::Kind::Names, b"\x02\x00\x03a..\x01\x00\x01c"),
        (piece::Kind::Changes, b"\x01\x05\x01d\x09"),
        (piece::Kind::Changes, b"\x02\x63\x02\x00\x01\x06"),
        (piece::Kind::Begin, b"\x09"),
    ]
    .into_iter()
    .enumerate()
    {
        piece::write(kind, number as u32, body, &mut pieces);
    }
    let (catalog, reports) = read(&[&pieces]);
    assert_eq!(names(&catalog), [(3, "c".into()), (5, "d".into())]);
    let report = &reports[0];
    assert_eq!((report.came, report.went, report.refused, report.damages), (3, 1, 2, 4));
    assert!(report.damage.iter().all(|damage| damage.why == Damaged::Records));
}

#[test]
fn pieces_of_another_version_are_named() {
    let mut file = Vec::new();
    piece::write(piece::Kind::Names, 0, b"\x00\x00\x01a", &mut file);
    file[4] = 2;
    let checksum = twox_hash::XxHash3_64::oneshot(&file[..16]) as u32;
    file[16..20].copy_from_slice(&checksum.to_le_bytes());
    let (catalog, reports) = read(&[&file]);
    assert!(catalog.is_empty());
    assert_eq!(reports[0].damage[0].why, Damaged::Unknown);
}

#[test]
fn a_report_lists_some_damage_and_counts_all() {
    let mut file = Vec::new();
    for number in 0..100 {
        piece::write(piece::Kind::Changes, number, b"\x09", &mut file);
    }
    let (_, reports) = read(&[&file]);
    assert_eq!((reports[0].damages, reports[0].damage.len()), (100, DAMAGE_LIST_MAX));
}

#[test]
fn limits_hold_while_a_catalog_is_read() {
    let file = pieces(&filled(1000)).concat();
    let mut reader = Reader::new(CatalogLimits { names_max: 500, ..LIMITS }, SEED);
    reader.begin();
    reader.push(&file);
    let report = reader.end();
    let catalog = reader.finish();
    catalog.check();
    assert_eq!((u64::from(catalog.len()), report.came + report.refused), (report.came, 909));
    assert!(report.came <= 500 && report.refused > 0);
    // One id far away must not take memory for all ids before it.
    let mut far = Vec::new();
    piece::write(piece::Kind::Names, 0, b"\xff\xff\xff\x7f\x00\x01a", &mut far);
    let mut reader = Reader::new(CatalogLimits { names_max: u32::MAX, bytes_max: 1 << 20 }, SEED);
    reader.push(&far);
    assert_eq!(reader.end().refused, 1);
    assert!(reader.finish().memory_bytes() < 1 << 20);
}

#[test]
fn bodies_of_damaged_pieces_are_not_hashed_again_and_again() {
    // Headers with correct checksums and long bodies, one after the other.
    let mut header = Vec::new();
    piece::write(piece::Kind::Names, 0, &[0; PIECE_BYTES_MAX], &mut header);
    header.truncate(piece::HEADER_BYTES);
    let file = header.repeat(40_000);
    let mut reader = Reader::new(LIMITS, SEED);
    reader.begin();
    reader.push(&file);
    assert!(reader.hashed_bytes() <= 5 * file.len() as u64, "{}", reader.hashed_bytes());
    assert!(reader.end().damages > 0);
}

#[derive(Clone, Debug)]
enum Change {
    Insert(String),
    Remove(String),
    Rename(String, String),
    Piece,
    Take,
}

fn change() -> impl Strategy<Value = Change> {
    let name = || "[abc]{1,2}|[ab]\\.[ab]|m;x=[abc]";
    prop_oneof![
        4 => name().prop_map(Change::Insert),
        3 => name().prop_map(Change::Remove),
        2 => (name(), name()).prop_map(|(old, new)| Change::Rename(old, new)),
        1 => Just(Change::Piece),
        1 => Just(Change::Take),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_and_its_journal_give_the_catalog(
        before in prop::collection::vec(change(), 0..40), during in prop::collection::vec(change(), 0..80),
    ) {
        let mut catalog = Catalog::new(LIMITS, SEED);
        let mut journal = Journal::new(1);
        let mut snapshot = Snapshot::new(1);
        let (mut log, mut file) = (Vec::new(), Vec::new());
        for (change, is_during) in before.into_iter().map(|one| (one, false)).chain(during.into_iter().map(|one| (one, true))) {
            match change {
                Change::Insert(name) => {
                    let id = catalog.insert(name.as_bytes()).expect("a name").id();
                    journal.put(id, name.as_bytes());
                }
                Change::Remove(name) => {
                    if let Some(id) = catalog.remove(name.as_bytes()) {
                        journal.gone(id);
                    }
                }
                Change::Rename(old, new) => {
                    if let Ok(id) = catalog.rename(old.as_bytes(), new.as_bytes()) {
                        journal.put(id, new.as_bytes());
                    }
                }
                Change::Take => journal.take(&mut log),
                Change::Piece if is_during => {
                    snapshot.next(&catalog, &mut file);
                }
                Change::Piece => {}
            }
            if !is_during {
                // What was before the snapshot is not in its journal.
                journal = Journal::new(1);
                log.clear();
            }
        }
        while snapshot.next(&catalog, &mut file) {}
        journal.take(&mut log);
        prop_assert_eq!(journal.pending_bytes(), 0);
        let (read, reports) = read(&[&file, &log]);
        prop_assert_eq!(names(&read), names(&catalog));
        prop_assert_eq!(reports[0].damages + reports[1].damages, 0);
        prop_assert_eq!(reports[1].kind, Some(SavedKind::Journal));
    }

    #[test]
    fn any_bytes_are_read(garbage in prop::collection::vec(
        prop_oneof![Just(0xf5u8), Just(b'S'), Just(b'c'), Just(0x1a), any::<u8>()], 0..300)) {
        promises::check_saved(&garbage);
        promises::check_glob(&garbage);
    }
}
