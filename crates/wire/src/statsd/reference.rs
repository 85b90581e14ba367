//! A naive second parser of the StatsD spec, only to compare the real one with.
//!
//! Written from the spec's sentences: it splits, copies and decodes without regard to speed, and shares no code
//! with the parsers. Compiled for tests and, under the feature `reference`, for the fuzz targets.
//! Path: a test or fuzz target -> [`compare`] -> [`read`] here and `Parser::packet` there -> an assertion.
//! Invariant: where the two differ, one of them is wrong.

mod canonical;
mod classic;
mod datadog;
mod number;

use std::collections::BTreeMap;

use model::{EventRef, EventTime, GaugeOp, Kind, RawKey, Reject, Span, Value, ValueRef};

use super::{Dialect, GaugeSign, Options, Parsed, Parser, hash_key};

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

/// One sample with its own copies of everything.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadSample {
    /// Family.
    pub kind: Kind,
    /// Raw name.
    pub name: Vec<u8>,
    /// Raw tag text.
    pub tags: Vec<u8>,
    /// Value.
    pub value: ReadValue,
    /// `1 / rate`.
    pub weight: f64,
    /// Effect of a gauge's value.
    pub gauge_op: GaugeOp,
    /// Client's time.
    pub timestamp_s: Option<u64>,
    /// Container id.
    pub container: Vec<u8>,
    /// External data.
    pub external: Vec<u8>,
}

/// One event or service check with its own copies of everything; a text that is absent is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadEvent {
    /// Title of an event, name of a check.
    pub service: String,
    /// Text of an event, message of a check.
    pub description: Option<String>,
    /// State of a check.
    pub state: Option<String>,
    /// Client's host.
    pub host: Option<String>,
    /// Unix seconds.
    pub time_s: i64,
    /// Tags without duplicates, in order of arrival.
    pub tags: Option<Vec<String>>,
    /// All other fields by their keys.
    pub attributes: BTreeMap<String, String>,
}

impl ReadEvent {
    /// A parsed event of DogStatsD.
    ///
    /// # Panics
    /// When it has what only other events have.
    pub fn of(event: EventRef<'_>) -> ReadEvent {
        assert_eq!((event.metric(), event.ttl_s()), (None, None));
        let Some(EventTime::Seconds(time_s)) = event.time() else { panic!("whole seconds in {event:?}") };
        let own = |text: Option<&str>| text.map(str::to_owned);
        let attributes = event.attributes().map(|(key, value)| match value {
            ValueRef::Text(text) => (key.to_owned(), text.to_owned()),
            other => panic!("a text, not {other:?}"),
        });
        ReadEvent {
            service: own(event.service()).expect("each has a service"),
            description: own(event.description()),
            state: own(event.state()),
            host: own(event.host()),
            time_s,
            tags: event.tags().map(|tags| tags.map(str::to_owned).collect()),
            attributes: attributes.collect(),
        }
    }
}

/// A value: numbers by their bits, so that -0 differs from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadValue {
    /// Bits of the number.
    Bits(u64),
    /// Member of a set.
    Text(Vec<u8>),
}

impl ReadSample {
    fn new(kind: Kind, name: &[u8], tags: &[u8], value: ReadValue) -> ReadSample {
        ReadSample {
            kind,
            name: name.to_vec(),
            tags: tags.to_vec(),
            value,
            weight: 1.0,
            gauge_op: GaugeOp::Assign,
            timestamp_s: None,
            container: Vec::new(),
            external: Vec::new(),
        }
    }
}

/// One parsed line.
#[derive(Default)]
struct Line {
    samples: Vec<ReadSample>,
    event: Option<ReadEvent>,
    event_fields_ignored: u64,
    rejects: Vec<Reject>,
    glued: bool,
    name: Option<Vec<u8>>,
}

impl Line {
    fn bad(why: Reject) -> Line {
        Line { rejects: vec![why], ..Line::default() }
    }
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

fn split(text: &[u8], separator: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = vec![Vec::new()];
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(separator) {
            pieces.push(Vec::new());
            at += separator.len();
        } else {
            let last = pieces.len() - 1;
            pieces[last].push(text[at]);
            at += 1;
        }
    }
    pieces
}

/// Perl's `split`: no empty pieces at the end.
fn split_perl(text: &[u8], separator: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = split(text, separator);
    while pieces.last().is_some_and(|piece| piece.is_empty()) {
        pieces.pop();
    }
    pieces
}

fn key_within_limits(options: &Options, name: &[u8], tags: &[u8]) -> Result<(), Reject> {
    let many = !tags.is_empty() && split(tags, b",").len() > options.tags_max as usize;
    if options.tags_max > 0 && many {
        return Err(Reject::TooManyTags);
    }
    if options.key_bytes_max > 0 && name.len() + tags.len() > options.key_bytes_max as usize {
        return Err(Reject::KeyTooLong);
    }
    Ok(())
}
