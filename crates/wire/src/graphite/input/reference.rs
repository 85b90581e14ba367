//! A naive second parser of the Graphite line formats, only to compare the real one with.
//!
//! Written from the spec's sentences (graphite §1.1): it splits, copies and decodes without regard to speed, and shares
//! no code with the reader. Compiled for tests and, under the feature `reference`, for the fuzz targets.
//! Invariant: where the two differ, one of them is wrong.

use std::collections::BTreeMap;

use model::{Reject, Span};

use super::{Compatibility, Kept, MessageEncoding, NameForm, Options, Parsed, Reader, hash_name};

/// A packet parsed as the spec says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    /// Name, tags and the whole line of each point, in order.
    points: Vec<(Vec<u8>, Vec<u8>, Vec<u8>)>,
    /// Reasons in order, each with its line.
    rejects: Vec<(Reject, Vec<u8>)>,
    lines: u64,
}

/// Name, tags, the rest of the line with its space.
type Line = (Vec<u8>, Vec<u8>, Vec<u8>);

/// Options that together reach every branch.
pub fn settings() -> Vec<Options> {
    let mut settings: Vec<Options> = Compatibility::ALL.into_iter().map(Options::of).collect();
    let relay = Options::of(Compatibility::CRelay);
    settings.extend([
        Options { missing_time_is_now: true, name_bytes_max: 12, ..Options::of(Compatibility::Strict) },
        Options { missing_time_is_now: true, ..Options::of(Compatibility::Carbon) },
        Options { names: NameForm::AsSent, ..Options::of(Compatibility::Carbon) },
        Options { names: NameForm::Tagged, name_bytes_max: 12, ..Options::of(Compatibility::GoCarbon) },
        Options { name_bytes_max: 12, ..relay },
        Options { kept: Kept::new(b";/"), ..relay },
    ]);
    settings
}

/// Parses `packet` with both parsers.
///
/// # Panics
/// When they differ, or when an invariant of the reader is violated.
pub fn compare(options: Options, packet: &[u8]) {
    const SEED: u64 = 0x5eed;
    const NOW_S: u64 = 1_700_000_000;
    let want = read(&options, packet, NOW_S);
    let reader = Reader::new(options, SEED);
    // The bytes around the packet in the arena must have no effect.
    for (before, after) in [(&b""[..], &b""[..]), (b"x 1 2\n", b" 3 4\nother.name 1 1700000000\n")] {
        let arena = [before, packet, after].concat();
        let mut got = Parsed { bytes: b"earlier\n".to_vec(), ..Parsed::default() };
        reader.packet(&arena, Span::new(before.len(), packet.len()), NOW_S, &mut got);
        let shown = packet.escape_ascii();
        let bytes = &got.bytes;
        let points = got.points.iter().map(|point| {
            assert_eq!(point.hash, hash_name(SEED, point.name(bytes)), "hash in {shown}");
            (point.name(bytes).to_vec(), point.tags(bytes).to_vec(), point.line.of(bytes).to_vec())
        });
        assert_eq!(points.collect::<Vec<_>>(), want.points, "points of {shown} by {options:?}");
        let mut lines = b"earlier\n".to_vec();
        want.points.iter().for_each(|point| lines.extend([&point.2[..], b"\n"].concat()));
        assert_eq!(got.bytes, lines, "nothing but the lines of {shown} by {options:?}");
        let mut rejects = [0; Reject::COUNT];
        want.rejects.iter().for_each(|(why, _)| rejects[why.index()] += 1);
        assert_eq!(got.rejects, rejects, "rejects of {shown} by {options:?}, want {:?}", want.rejects);
        let first = got.first_reject.map(|(why, line)| (why, line.of(&arena).to_vec()));
        assert_eq!(first, want.rejects.first().cloned(), "first reject of {shown} by {options:?}");
        assert_eq!(got.lines, want.lines, "lines of {shown} by {options:?}");
        again(&reader, &got, NOW_S);
    }
}

/// Reads `message` and checks the invariants of its points: there is no second parser of messages.
///
/// # Panics
/// When a record is lost, or an output line changes when it is parsed again.
pub fn compare_message(options: Options, form: MessageEncoding, message: &[u8]) {
    const NOW_S: u64 = 1_700_000_000;
    let reader = Reader::new(options, 0x5eed);
    let mut got = Parsed { bytes: b"earlier\n".to_vec(), ..Parsed::default() };
    reader.message(form, message, Span::new(0, message.len()), NOW_S, &mut got);
    assert_eq!(got.lines, got.points.len() as u64 + got.rejected());
    again(&reader, &got, NOW_S);
}

/// Checks that the output is unchanged when the same reader parses it.
fn again(reader: &Reader, got: &Parsed, now_s: u64) {
    let text = &got.bytes[b"earlier\n".len()..];
    let mut twice = Parsed::default();
    reader.packet(text, Span::new(0, text.len()), now_s, &mut twice);
    assert_eq!(twice.bytes.escape_ascii().to_string(), text.escape_ascii().to_string());
    assert_eq!((twice.points.len(), twice.rejected()), (got.points.len(), 0));
}

fn read(options: &Options, packet: &[u8], now_s: u64) -> Read {
    let mut read = Read::default();
    for line in packet.split(|byte| *byte == b'\n') {
        let relay = options.compatibility == Compatibility::CRelay;
        let mut pieces: Vec<&[u8]> = vec![line];
        if relay {
            pieces = line.split(|byte| *byte == b'\r').collect();
        } else if line.last() == Some(&b'\r') {
            pieces = vec![&line[..line.len() - 1]];
        }
        for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
            read.lines += 1;
            let one = if relay { relayed(options, piece) } else { parsed(options, piece, now_s) };
            let longest =
                if options.name_bytes_max == 0 { usize::MAX } else { options.name_bytes_max as usize };
            match one {
                Err(why) => read.rejects.push((why, piece.to_vec())),
                Ok((name, ..)) if name.len() > longest => {
                    read.rejects.push((Reject::NameTooLong, piece.to_vec()));
                }
                Ok((name, tags, rest)) => {
                    let line = [&name[..], &tags, &rest].concat();
                    read.points.push((name, tags, line));
                }
            }
        }
    }
    read
}

/// §1.1.2, a byte at a time with the state that the spec names.
fn relayed(options: &Options, line: &[u8]) -> Result<Line, Reject> {
    let mut out: Vec<u8> = Vec::new();
    let mut first_space = None;
    for (at, &byte) in line.iter().enumerate() {
        let byte = if byte == b'\t' { b' ' } else { byte };
        if out.is_empty() && (byte == b' ' || byte == b'.') {
            continue;
        }
        if first_space.is_some() {
            if !(byte == b' ' && out.last() == Some(&b' ')) {
                out.push(byte);
            }
        } else if byte == b' ' {
            if out.last() == Some(&b'.') {
                out.pop();
            }
            first_space = Some(out.len());
            out.push(byte);
        } else if byte == b'.' {
            if out.last() != Some(&b'.') {
                out.push(byte);
            }
        } else if byte.is_ascii_alphanumeric() || options.kept.bytes().any(|kept| kept == byte) {
            out.push(byte);
        } else if byte == b';' {
            let raw = &line[at..];
            let tags = raw.iter().position(|byte| b" \t".contains(byte));
            if out.is_empty() {
                return Err(Reject::NoName);
            }
            let tags = tags.ok_or(Reject::NoValue)?;
            return Ok((out, raw[..tags].to_vec(), raw[tags..].to_vec()));
        } else {
            out.push(b'_');
        }
    }
    if out.is_empty() {
        return Err(Reject::NoName);
    }
    let rest = out.split_off(first_space.ok_or(Reject::NoValue)?);
    Ok((out, Vec::new(), rest))
}

/// §1.1.1 and §1.1.3.
fn parsed(options: &Options, line: &[u8], now_s: u64) -> Result<Line, Reject> {
    let compatibility = options.compatibility;
    let go = compatibility == Compatibility::GoCarbon;
    let text: String = if go {
        // Bytes are bytes: each is decoded as one character, and encoded again below.
        line.iter().map(|byte| char::from(*byte)).collect()
    } else {
        String::from_utf8(line.to_vec()).map_err(|_| Reject::NotUtf8)?
    };
    let fields: Vec<&str> = match compatibility {
        Compatibility::GoCarbon => text.split(' ').collect(),
        Compatibility::Carbon => {
            let space = |c: char| c.is_whitespace() || ['\x1c', '\x1d', '\x1e', '\x1f'].contains(&c);
            text.split(space).filter(|field| !field.is_empty()).collect()
        }
        _ => text.split([' ', '\t']).filter(|field| !field.is_empty()).collect(),
    };
    if fields.first().is_none_or(|name| name.is_empty()) {
        return Err(Reject::NoName);
    }
    if fields.get(1).is_none_or(|value| value.is_empty()) {
        return Err(Reject::NoValue);
    }
    if fields.len() > 3 {
        return Err(Reject::TooManyFields);
    }
    let value = number(fields[1]).ok_or(Reject::BadValue)?;
    let word = fields[1].to_lowercase().contains("inf");
    let value_taken = match compatibility {
        Compatibility::Strict | Compatibility::CRelay => value.is_finite(),
        Compatibility::Carbon => !value.is_nan(),
        Compatibility::GoCarbon => value.is_finite() || (value.is_infinite() && word),
    };
    if !value_taken {
        return Err(Reject::NonFinite);
    }
    let time = match fields.get(2) {
        None if options.missing_time_is_now => now_s.to_string(),
        None => return Err(Reject::NoTimestamp),
        Some(text) => {
            let time = number(text).filter(|time| time.is_finite()).ok_or(Reject::BadTimestamp)?;
            let is_now = !go && time > -2.0 && time <= -1.0;
            if compatibility == Compatibility::Strict && time < 0.0 && !is_now {
                return Err(Reject::BadTimestamp);
            }
            if is_now { now_s.to_string() } else { (*text).to_owned() }
        }
    };
    let (name, tags) = match (options.names, named(compatibility, fields[0])) {
        (NameForm::Bare, named) => named?,
        (NameForm::Tagged, named) => named.map(|(name, tags)| (name + &tags, String::new()))?,
        (NameForm::AsSent, Err(Reject::BadName)) => return Err(Reject::BadName),
        (NameForm::AsSent, _) if fields[0].chars().all(|c| c == '.') => return Err(Reject::NoName),
        (NameForm::AsSent, _) => (fields[0].to_owned(), String::new()),
    };
    let bytes = |text: &str| -> Vec<u8> {
        if go { text.chars().map(|c| c as u8).collect() } else { text.as_bytes().to_vec() }
    };
    Ok((bytes(&name), bytes(&tags), bytes(&format!(" {} {time}", fields[1]))))
}

/// Python's `float` without underscores: the syntax that both languages share.
fn number(text: &str) -> Option<f64> {
    let lower = text.to_lowercase();
    let words = ["inf", "infinity", "nan"];
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    let plain = unsigned.chars().all(|c| c.is_ascii_digit() || "+-.e".contains(c));
    if plain || words.contains(&unsigned) { lower.parse().ok() } else { None }
}

fn named(compatibility: Compatibility, text: &str) -> Result<(String, String), Reject> {
    let utf8 = compatibility != Compatibility::GoCarbon;
    let bad = |c: char| c.is_ascii_control() || (utf8 && c.is_whitespace());
    if text.chars().any(bad) {
        return Err(Reject::BadName);
    }
    let (name, tags) = if text.ends_with("\"}") && text.contains('{') {
        let (name, tags) = text[..text.len() - 1].split_once('{').ok_or(Reject::BadTag)?;
        if name.is_empty() {
            return Err(Reject::NoName);
        }
        if name.contains(';') {
            return Err(Reject::BadTag);
        }
        (name.to_owned(), Some(open_metrics(tags)?))
    } else if let Some((name, tags)) = text.split_once(';') {
        let tags = tags.split(';').map(|tag| {
            let (tag, value) = tag.split_once('=').ok_or(Reject::BadTag)?;
            Ok((tag.to_owned(), value.to_owned()))
        });
        (name.to_owned(), Some(tags.collect::<Result<Vec<_>, _>>()?))
    } else {
        (text.to_owned(), None)
    };
    let name = if tags.is_some() { name.trim_start_matches(['~', '.']) } else { &name };
    let pieces: Vec<&str> = name.split('.').filter(|piece| !piece.is_empty()).collect();
    let name = pieces.join(".");
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for (tag, value) in tags.into_iter().flatten() {
        let bad_tag = tag.is_empty() || tag.contains([';', '!', '^', '=']);
        if bad_tag || value.is_empty() || value.contains(';') || value.starts_with('~') {
            return Err(Reject::BadTag);
        }
        last.insert(tag, value);
    }
    if name.is_empty() {
        return Err(Reject::NoName);
    }
    last.remove("name");
    let mut texts: Vec<String> = last.iter().map(|(tag, value)| format!(";{tag}={value}")).collect();
    texts.sort();
    let tags = texts.concat();
    let whole = format!("{name}{tags}");
    if whole.ends_with("\"}") && whole.contains('{') { Err(Reject::BadTag) } else { Ok((name, tags)) }
}

fn open_metrics(text: &str) -> Result<Vec<(String, String)>, Reject> {
    let mut tags = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    if chars.contains(&'{') {
        return Err(Reject::BadTag);
    }
    let mut at = 0;
    while at < chars.len() {
        let (mut tag, mut value) = (String::new(), String::new());
        while *chars.get(at).ok_or(Reject::BadTag)? != '=' {
            tag.push(chars[at]);
            at += 1;
        }
        if chars.get(at + 1) != Some(&'"') {
            return Err(Reject::BadTag);
        }
        at += 2;
        loop {
            match *chars.get(at).ok_or(Reject::BadTag)? {
                '"' => break,
                '\\' => {
                    at += 1;
                    let escaped = *chars.get(at).ok_or(Reject::BadTag)?;
                    if escaped != '"' && escaped != '\\' {
                        return Err(Reject::BadTag);
                    }
                    value.push(escaped);
                }
                other => value.push(other),
            }
            at += 1;
        }
        at += 1;
        if at < chars.len() && chars[at] != ',' {
            return Err(Reject::BadTag);
        }
        at += 1;
        tags.push((tag, value));
    }
    Ok(tags)
}
