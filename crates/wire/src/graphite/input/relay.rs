//! carbon-c-relay's sanitising of a line (spec graphite §1.1.2), except for its changes to numbers.
//!
//! The name is sanitised byte by byte; spaces after it are folded; values and times are not checked. The original
//! program keeps removing dots after the name, so that `.5` becomes `5`: that is a bug, and not copied.
//! Not here: CR, which ends a line and is removed before.

use memchr::memchr2;
use model::Reject;

use super::options::Kept;
use super::parsed::Parts;

/// The replacement of each byte of a name: see [`Reader::cleaned`](super::Reader).
pub(super) fn cleaned(kept: &Kept) -> [u8; 256] {
    std::array::from_fn(|byte| match byte as u8 {
        b' ' | b'\t' | b'.' => 0,
        byte if byte.is_ascii_alphanumeric() || kept.has(byte) => byte,
        b';' => 0,
        _ => b'_',
    })
}

/// Appends the sanitised `line` without LF.
///
/// # Errors
/// `NoName` when the name is empty after sanitising, `NoValue` when no space follows it. A name followed by a space
/// and nothing else is forwarded, as in the original program.
pub(super) fn clean(cleaned: &[u8; 256], line: &[u8], out: &mut Vec<u8>) -> Result<Parts, Reject> {
    let begin = out.len();
    let skipped = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'.')).count();
    let line = &line[skipped..];
    let mut at = 0;
    let behind = loop {
        let run = line[at..].iter().take_while(|byte| cleaned[usize::from(**byte)] == **byte).count();
        out.extend_from_slice(&line[at..at + run]);
        at += run;
        match line.get(at) {
            Some(b'.') => {
                if out.last() != Some(&b'.') {
                    out.push(b'.');
                }
            }
            Some(byte) if cleaned[usize::from(*byte)] != 0 => out.push(b'_'),
            _ => break at,
        }
        at += 1;
    };
    if out.len() == begin {
        return Err(Reject::NoName);
    }
    let rest = &line[behind..];
    if rest.first() == Some(&b';') {
        // Tags, and everything after them, are copied unchanged.
        let tags_len = memchr2(b' ', b'\t', rest).ok_or(Reject::NoValue)?;
        let name_len = out.len() - begin;
        out.extend_from_slice(rest);
        return Ok(Parts { name_len, tags_len });
    }
    if rest.is_empty() {
        return Err(Reject::NoValue);
    }
    if out.last() == Some(&b'.') {
        out.pop();
    }
    let name_len = out.len() - begin;
    fold_blanks(rest, out);
    Ok(Parts { name_len, tags_len: 0 })
}

/// Appends `text` with each run of spaces as one space.
fn fold_blanks(text: &[u8], out: &mut Vec<u8>) {
    let mut after_blank = false;
    for byte in text {
        let space = matches!(byte, b' ' | b'\t');
        if !space {
            out.push(*byte);
        } else if !after_blank {
            out.push(b' ');
        }
        after_blank = space;
    }
}
