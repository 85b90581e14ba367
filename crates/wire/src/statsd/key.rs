//! Converts a series' raw key to its canonical key, and hashes both (spec statsd §2.2, §2.6, §4, §5.7).
//!
//! Path of a packet: the parsers hash raw keys with [`KeyHasher`]; the aggregator calls [`write_canonical`] once per
//! new raw key.
//! Not here: the table of series (`process`), names as outputs write them (`graphite`).
//! Invariants: the canonical form of a canonical key is itself; two keys that differ only in parts that their dialect
//! ignores have the same canonical form.

use std::hash::Hasher;

use foldhash::{SharedSeed, fast::FoldHasher};
use model::{Canonical, Kind, RawKey};
use smallvec::SmallVec;

use super::blank::js_blank_len;
use super::{Dialect, Options};
use crate::steps::touch;

/// Hash of a raw key: the value of [`Sample::hash`](model::Sample::hash).
///
/// Seed it at random, or clients can choose names that collide. For many keys a `Parser` is faster: this function
/// derives the hasher's state from the seed on each call.
pub fn hash_key(seed: u64, kind: Kind, name: &[u8], tags: &[u8]) -> u64 {
    KeyHasher::new(seed).hash(kind, name, tags)
}

/// The hash function of one seed.
#[derive(Clone)]
pub(super) struct KeyHasher {
    seed: u64,
    shared: SharedSeed,
}

impl KeyHasher {
    pub(super) fn new(seed: u64) -> KeyHasher {
        // The shared part is derived from the seed as well: with a fixed one, clients could exploit its constants.
        KeyHasher { seed, shared: SharedSeed::from_u64(seed) }
    }

    #[inline(always)]
    pub(super) fn hash(&self, kind: Kind, name: &[u8], tags: &[u8]) -> u64 {
        touch(name.len() + tags.len());
        let mut hasher = FoldHasher::with_seed(self.seed ^ kind as u64, &self.shared);
        hasher.write(name);
        if !tags.is_empty() {
            hasher.write(tags);
        }
        hasher.finish()
    }
}

/// Writes the canonical name and then the canonical tags of `key` into `out`, which is cleared first.
pub(super) fn write_canonical(
    options: &Options,
    hasher: &KeyHasher,
    kind: Kind,
    key: RawKey<'_>,
    out: &mut Vec<u8>,
) -> Canonical {
    out.clear();
    let mut tags_clean = true;
    let name_len = match options.dialect {
        Dialect::Etsy | Dialect::Perl => {
            write_folded(options, key, out);
            out.len()
        }
        Dialect::Dogstatsd | Dialect::Union => {
            if options.dialect == Dialect::Union && options.sanitize {
                sanitize_etsy(key.name, out);
            } else {
                out.extend_from_slice(key.name);
            }
            let name_len = out.len();
            tags_clean = write_tag_set(key.tags, out);
            name_len
        }
    };
    let (name, tags) = out.split_at(name_len);
    Canonical {
        name_len,
        clean: tags_clean && name.iter().all(|&byte| name_byte(byte)),
        hash: hasher.hash(kind, name, tags),
    }
}

/// True for bytes that node's sanitising keeps.
fn name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b';' | b'=')
}

/// The name followed by its tags as `;k=v`, sanitised as the dialect does it.
fn write_folded(options: &Options, key: RawKey<'_>, out: &mut Vec<u8>) {
    let write: fn(&[u8], &mut Vec<u8>) = match (options.sanitize, options.dialect) {
        (true, Dialect::Perl) => sanitize_perl,
        (true, _) => sanitize_etsy,
        (false, Dialect::Perl) => |text, out| out.extend_from_slice(text),
        // Node decodes packets: invalid UTF-8 is stored as U+FFFD. Sanitising would have deleted it.
        (false, _) => write_decoded,
    };
    write(key.name, out);
    if key.tags.is_empty() {
        return;
    }
    // `;` is not white space and `etsy` sanitising keeps it, so sanitising piece by piece gives the same result.
    // (`perl` has no tags: the tag field of its samples is empty.)
    for tag in key.tags.split(|&byte| byte == b',') {
        out.push(b';');
        let semicolon = memchr::memchr(b';', tag);
        let colon = memchr::memchr(b':', tag);
        let mut rest = tag;
        let mut at = 0;
        for (place, with) in in_order((semicolon, b"_"), (colon, b"=")) {
            write(&rest[..place - at], out);
            out.extend_from_slice(with);
            rest = &rest[place - at + 1..];
            at = place + 1;
        }
        write(rest, out);
    }
}

/// The matches of two searches in order of their position.
fn in_order<'a>(
    one: (Option<usize>, &'a [u8]),
    two: (Option<usize>, &'a [u8]),
) -> impl Iterator<Item = (usize, &'a [u8])> {
    let (first, second) = if one.0 <= two.0 { (one, two) } else { (two, one) };
    [first, second].into_iter().filter_map(|(place, with)| Some((place?, with)))
}

/// Runs of white space to `_`, `/` to `-`, all bytes that are not allowed in a name deleted.
///
/// Bytes past ASCII are deleted one by one: the same as deleting the characters that they are.
fn sanitize_etsy(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        let blank_len = js_blank_len(&text[at..]);
        if blank_len > 0 {
            out.push(b'_');
            at += blank_len;
            while at < text.len() && js_blank_len(&text[at..]) > 0 {
                at += js_blank_len(&text[at..]);
            }
            continue;
        }
        if byte == b'/' {
            out.push(b'-');
        } else if name_byte(byte) {
            out.push(byte);
        }
        at += 1;
    }
}

/// Runs of `/` to `_`, runs of blanks to `-`, all others but letters, digits and `_ - . , =` deleted.
fn sanitize_perl(text: &[u8], out: &mut Vec<u8>) {
    let mut before = 0;
    for &byte in text {
        match byte {
            b'/' if before != b'/' => out.push(b'_'),
            b' ' if before != b' ' => out.push(b'-'),
            b'_' | b'-' | b'.' | b',' | b'=' => out.push(byte),
            _ if byte.is_ascii_alphanumeric() => out.push(byte),
            _ => {}
        }
        before = byte;
    }
}

/// The text with each invalid UTF-8 sequence replaced by U+FFFD.
fn write_decoded(text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// Tags sorted by their bytes, deduplicated, without empty ones, joined with `,`. True when all of them are clean.
fn write_tag_set(tags: &[u8], out: &mut Vec<u8>) -> bool {
    if tags.is_empty() {
        return true;
    }
    let mut set: SmallVec<[&[u8]; 16]> =
        tags.split(|&byte| byte == b',').filter(|tag| !tag.is_empty()).collect();
    set.sort_unstable();
    set.dedup();
    for (at, tag) in set.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(tag);
    }
    set.iter().all(|tag| tag_clean(tag))
}

/// True for `key:value` of name bytes, neither part empty and neither with a `;` or `=`, which delimit tags in
/// Graphite.
fn tag_clean(tag: &[u8]) -> bool {
    let plain = |part: &[u8]| {
        !part.is_empty() && part.iter().all(|&byte| name_byte(byte) && byte != b';' && byte != b'=')
    };
    memchr::memchr(b':', tag).is_some_and(|colon| plain(&tag[..colon]) && plain(&tag[colon + 1..]))
}
