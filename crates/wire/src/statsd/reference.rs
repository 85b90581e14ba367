//! A naive second parser of the StatsD spec, only to compare the real one with.
//!
//! Written from the spec's sentences: it splits, copies and decodes without regard to speed, and shares no code
//! with the parsers. Compiled for tests and, under the feature `reference`, for the fuzz targets.
//! Path: a test or fuzz target -> [`compare`] -> [`read`] here and `Parser::packet` there -> an assertion.
//! Invariant: where the two differ, one of them is wrong.

mod canonical;
mod classic;
mod datadog;
mod line;
mod number;

use model::{Kind, RawKey, Reject, Span, Value};

pub use line::{ReadEvent, ReadSample, ReadValue};

use super::{Dialect, GaugeSign, Options, Parsed, Parser, hash_key};
use line::split;

/// A packet parsed as the spec says.
#[derive(Debug, Default, PartialEq)]
pub struct Read {
    /// Samples, in order.
    pub samples: Vec<ReadSample>,
    /// Events and service checks, in order.
    pub events: Vec<ReadEvent>,
    /// Optional fields of events that are unknown or invalid.
    pub event_fields_ignored: u64,
    /// Reasons, in order of appearance, each with the number of its line.
    pub rejects: Vec<(Reject, usize)>,
    /// Lines counted, valid or not.
    pub lines: u64,
    /// Lines whose last tag includes further fields.
    pub glued_tag_fields: u64,
    /// Names for `keyFlush`, in order.
    pub names: Vec<Vec<u8>>,
    /// The counted lines themselves.
    pub line_texts: Vec<Vec<u8>>,
}

/// Parses a packet exactly as the spec says.
pub fn read(options: &Options, packet: &[u8], now_s: u64) -> Read {
    let mut lines = split(packet, b"\n");
    match options.dialect {
        Dialect::Perl => {
            while lines.last().is_some_and(|line| line.is_empty()) {
                lines.pop();
            }
        }
        Dialect::Etsy => lines.retain(|line| !line.is_empty()),
        Dialect::Dogstatsd | Dialect::Union => {
            for line in &mut lines {
                if line.ends_with(b"\r") {
                    line.pop();
                }
            }
            lines.retain(|line| !line.is_empty());
        }
    }
    let mut all = Read { lines: lines.len() as u64, ..Read::default() };
    for (number, text) in lines.iter().enumerate() {
        let line = match options.dialect {
            Dialect::Etsy => classic::etsy(options, text),
            Dialect::Perl => classic::perl(options, text),
            Dialect::Dogstatsd => datadog::dogstatsd(options, text, now_s),
            Dialect::Union => datadog::union(options, text, now_s),
        };
        all.samples.extend(line.samples);
        all.events.extend(line.event);
        all.event_fields_ignored += line.event_fields_ignored;
        all.rejects.extend(line.rejects.into_iter().map(|why| (why, number)));
        all.glued_tag_fields += u64::from(line.glued);
        all.names.extend(line.name.filter(|_| options.count_names));
    }
    all.line_texts = lines;
    all
}

/// The options of tests and fuzz targets: each dialect with its defaults, and with every switch reversed.
pub fn settings() -> Vec<Options> {
    let mut all = Vec::new();
    for dialect in [Dialect::Etsy, Dialect::Perl, Dialect::Dogstatsd, Dialect::Union] {
        let plain = Options::of(dialect);
        all.push(plain);
        all.push(Options {
            compat_quirks: true,
            strict_numbers: !plain.strict_numbers,
            gauge_sign: GaugeSign::Absolute,
            allow_negative_timers: true,
            sanitize: false,
            key_bytes_max: 24,
            tags_max: 3,
            rate_min: 0.01,
            count_names: true,
            ..plain
        });
    }
    all
}

/// Parses `packet` both ways, within an arena that continues with other bytes, and panics where the results differ.
pub fn compare(options: Options, packet: &[u8]) {
    const SEED: u64 = 0x5eed;
    const NOW_S: u64 = 1_700_000_000;
    let parser = Parser::new(options, SEED);
    let want = read(&options, packet, NOW_S);
    // Bytes after the packet must not be read, and an arena may end where the packet does.
    for (before, after) in [
        (&b""[..], &b""[..]),
        (b"x:1|c\n", b":1|c\nother.name.that.is.long.enough:1|c\n12345678901234567890"),
    ] {
        let arena = [before, packet, after].concat();
        let mut got = Parsed::default();
        parser.packet(&arena, Span::new(before.len(), packet.len()), NOW_S, &mut got);
        compare_parsed(&options, packet, &arena, &got, &want);
        for sample in &got.samples {
            let (name, tags) = (sample.name.of(&arena), sample.tags.of(&arena));
            assert_eq!(sample.hash, hash_key(SEED, sample.kind, name, tags), "hash of {packet:?}");
            compare_canonical(&parser, SEED, sample.kind, RawKey { name, tags });
        }
    }
}

fn compare_parsed(options: &Options, packet: &[u8], arena: &[u8], got: &Parsed, want: &Read) {
    let shown = String::from_utf8_lossy(packet);
    let samples: Vec<ReadSample> = got.samples.iter().map(|sample| own(arena, got, sample)).collect();
    assert_eq!(samples, want.samples, "samples of {shown:?} by {options:?}");
    let events: Vec<ReadEvent> = got.events.view().iter().map(ReadEvent::of).collect();
    assert_eq!(events, want.events, "events of {shown:?} by {options:?}");
    let mut rejects = [0; Reject::COUNT];
    for (why, _) in &want.rejects {
        rejects[why.index()] += 1;
    }
    assert_eq!(got.rejects, rejects, "rejects of {shown:?} by {options:?}, want {:?}", want.rejects);
    let first = got.first_reject.map(|(why, line)| (why, line.of(arena).to_vec()));
    let want_first = want.rejects.first().map(|&(why, line)| (why, want.line_texts[line].clone()));
    assert_eq!(first, want_first, "first reject of {shown:?} by {options:?}");
    assert_eq!(got.lines, want.lines, "lines of {shown:?}");
    assert_eq!(got.glued_tag_fields, want.glued_tag_fields, "glued tags of {shown:?}");
    assert_eq!(got.event_fields_ignored, want.event_fields_ignored, "ignored fields of {shown:?}");
    let names: Vec<Vec<u8>> = got.names.iter().map(|name| name.of(arena).to_vec()).collect();
    assert_eq!(names, want.names, "names of {shown:?}");
    assert_eq!(got.records(), (want.samples.len() + want.events.len() + want.rejects.len()) as u64);
}

fn own(arena: &[u8], parsed: &Parsed, sample: &model::Sample) -> ReadSample {
    let extra = match sample.extra {
        0 => model::Extra::default(),
        place => parsed.extras[usize::from(place) - 1],
    };
    ReadSample {
        kind: sample.kind,
        name: sample.name.of(arena).to_vec(),
        tags: sample.tags.of(arena).to_vec(),
        value: match sample.value {
            Value::Number(number) => ReadValue::Bits(number.to_bits()),
            Value::Text(text) => ReadValue::Text(text.of(arena).to_vec()),
        },
        weight: sample.weight,
        gauge_op: sample.gauge_op,
        timestamp_s: extra.timestamp_s,
        container: extra.container.of(arena).to_vec(),
        external: extra.external.of(arena).to_vec(),
    }
}

/// The canonical form is the spec's, is its own canonical form, and has the correct hash and `clean`.
fn compare_canonical(parser: &Parser, seed: u64, kind: Kind, key: RawKey<'_>) {
    let (name, tags) = canonical::canonical(parser.options(), key.name, key.tags);
    let mut out = b"left over".to_vec();
    let once = parser.canonical(kind, key, &mut out);
    let shown = (String::from_utf8_lossy(key.name), String::from_utf8_lossy(key.tags));
    assert_eq!(
        out,
        [name.as_slice(), &tags].concat(),
        "canonical form of {shown:?} by {:?}",
        parser.options()
    );
    assert_eq!(once.name_len, name.len(), "name of {shown:?}");
    assert_eq!(once.hash, hash_key(seed, kind, &name, &tags), "canonical hash of {shown:?}");
    assert_eq!(once.clean, canonical::clean(&name, &tags), "clean of {shown:?}");
    let mut again = Vec::new();
    let twice = parser.canonical(kind, RawKey { name: &name, tags: &tags }, &mut again);
    assert_eq!((again, twice), (out, once), "canonical twice of {shown:?}");
}
