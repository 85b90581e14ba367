//! Lines to points or reasons, the files of `tests/corpus/opentsdb`, and seeded mutations of them.

use model::Span;

use super::Reader;
use crate::graphite::input::Parsed;
use crate::tests::corpus::{Random, all_files, files};

/// Mutations of each file.
const MUTATIONS: u64 = 400;

fn read(packet: &[u8]) -> (Parsed, usize) {
    let mut parsed = Parsed::default();
    let versions = Reader::new(1).packet(packet, Span::new(0, packet.len()), &mut parsed);
    (parsed, versions)
}

#[test]
fn put_lines_are_points_or_say_why_not() {
    let table: &[(&str, Result<&str, &str>)] = &[
        ("put sys.cpu 1700000000 3.5 host=h cpu=0", Ok("sys.cpu;cpu=0;host=h 3.5 1700000000")),
        ("put sys.cpu 1700000000 3.5", Ok("sys.cpu 3.5 1700000000")),
        // The first word may be any, and spaces may be several.
        ("PUT\tsys.cpu  1700000000 -1e3 a=b ", Ok("sys.cpu;a=b -1e3 1700000000")),
        ("put a 1700000000123 1", Ok("a 1 1700000000")),
        // The last time in seconds, and the first in milliseconds.
        ("put a 4294967295 1", Ok("a 1 4294967295")),
        ("put a 4294967296 1", Ok("a 1 4294967")),
        ("put a/b_c-d 1 1 k=v=w", Ok("a/b_c-d;k=v=w 1 1")),
        ("put a 1 1 name=n", Ok("a;nametag=n 1 1")),
        ("put a 1 1 k=1 k=2", Ok("a;k=2 1 1")),
        ("put ..a..b 1 1", Ok("a.b 1 1")),
        ("put é 1 1 ö=ü", Ok("é;ö=ü 1 1")),
        ("put", Err("no_name")),
        ("put ... 1 1", Err("no_name")),
        ("put a", Err("no_timestamp")),
        ("put a 1", Err("no_value")),
        ("put a now 1", Err("bad_timestamp")),
        ("put a -1 1", Err("bad_timestamp")),
        ("put a 1.5 1", Err("bad_timestamp")),
        ("put a 18446744073709551616 1", Err("bad_timestamp")),
        ("put a 1 x", Err("bad_value")),
        ("put a 1 0x10", Err("bad_value")),
        ("put a 1 NaN", Err("non_finite")),
        ("put a 1 1e999", Err("non_finite")),
        ("put a;b=c 1 1", Err("bad_name")),
        ("put a{b=\"c\"} 1 1", Err("bad_name")),
        ("put a\x07 1 1", Err("bad_name")),
        ("put a 1 1 k", Err("bad_tag")),
        ("put a 1 1 =v", Err("bad_tag")),
        ("put a 1 1 k=", Err("bad_tag")),
        ("put a 1 1 k=v;l=w", Err("bad_tag")),
        ("put a 1 1 k={\"}", Err("bad_tag")),
    ];
    for (line, want) in table {
        let (parsed, versions) = read(line.as_bytes());
        let why = parsed.first_reject.map(|(why, place)| {
            assert_eq!(place.of(line.as_bytes()), line.as_bytes(), "{line:?}");
            why.word()
        });
        let text = String::from_utf8_lossy(&parsed.bytes);
        let got = why.map_or(Ok(text.trim_end()), Err);
        assert_eq!(got, *want, "{line:?}");
        assert_eq!((parsed.lines, versions), (1, 0), "{line:?}");
        assert_eq!(parsed.points.len() as u64 + parsed.rejected(), 1, "{line:?}");
    }
}

#[test]
fn version_is_a_command_and_empty_lines_are_nothing() {
    let (parsed, versions) = read(b"version\r\n\n  \nput a 1 1\nversion now\nversions 1 1\nput b 1 2");
    assert_eq!((versions, parsed.lines, parsed.rejected()), (2, 3, 1));
    assert_eq!(String::from_utf8_lossy(&parsed.bytes), "a 1 1\nb 2 1\n");
    let (_, place) = parsed.first_reject.expect("one is short");
    assert_eq!(place, Span::new(35, 12), "the place in the packet");
}

#[test]
fn good_files_have_no_rejects() {
    for (name, packet) in files("opentsdb/good") {
        let (parsed, _) = read(&packet);
        assert_eq!(parsed.first_reject, None, "{name}");
        assert!(!parsed.points.is_empty(), "{name}");
    }
}

#[test]
fn bad_files_are_rejected_for_the_reason_in_their_name() {
    for (name, packet) in files("opentsdb/bad") {
        let word = read(&packet).0.first_reject.map(|(why, _)| why.word());
        assert_eq!(word, name.split('.').next(), "{name}");
    }
}

#[test]
fn mutated_files_give_one_point_or_reject_per_line() {
    let mut random = Random(0x1e55_0f5e_ed00_0004);
    for (name, packet) in all_files("opentsdb") {
        for _ in 0..MUTATIONS {
            let mut mutated = packet.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(mutated.len().max(1)).min(mutated.len());
                match random.below(4) {
                    0 if at < mutated.len() => mutated[at] = random.below(256) as u8,
                    1 if at < mutated.len() => drop(mutated.remove(at)),
                    2 => mutated.insert(at, b" .;\t\r\n={\"}~0"[random.below(12)]),
                    _ => mutated.truncate(at),
                }
            }
            let (parsed, versions) = read(&mutated);
            let ended = parsed.points.len() as u64 + parsed.rejected();
            assert_eq!(parsed.lines, ended, "{name}: {:?}", mutated.escape_ascii().to_string());
            let lines =
                mutated.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
            let full = lines.filter(|line| line.iter().any(|byte| !b" \t".contains(byte))).count();
            assert_eq!(ended as usize + versions, full, "{name}: {:?}", mutated.escape_ascii().to_string());
        }
    }
}
