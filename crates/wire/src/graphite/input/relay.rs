//! carbon-c-relay's cleansing of a line (spec graphite §1.1.2), but for what it does to numbers.
//!
//! The name is cleaned byte by byte; blanks behind it are folded; values and times are not looked at. Where the original
//! goes on dropping dots behind the name, `.5` becomes `5`: that is a bug of its, and not ours.
//! Not here: CR, which ends a line and never comes here.

use memchr::memchr2;
use model::Reject;

use super::{Kept, Parts, Reader};

/// What becomes of each byte of a name: see [`Reader::cleaned`](super::Reader).
pub(super) fn cleaned(kept: &Kept) -> [u8; 256] {
    std::array::from_fn(|byte| match byte as u8 {
        b' ' | b'\t' | b'.' => 0,
        byte if byte.is_ascii_alphanumeric() || kept.has(byte) => byte,
        b';' => 0,
        _ => b'_',
    })
}

/// Appends the cleaned `line` without LF.
///
/// # Errors
/// `NoName` when nothing is left of the name, `NoValue` when no blank stands behind it: the original forwards a name
/// with a blank and nothing else, and so do we.
pub(super) fn clean(reader: &Reader, line: &[u8], out: &mut Vec<u8>) -> Result<Parts, Reject> {
    let begin = out.len();
    let skipped = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'.')).count();
    let line = &line[skipped..];
    let mut at = 0;
    let behind = loop {
        let run = line[at..].iter().take_while(|byte| reader.cleaned[usize::from(**byte)] == **byte).count();
        out.extend_from_slice(&line[at..at + run]);
        at += run;
        match line.get(at) {
            Some(b'.') => {
                if out.last() != Some(&b'.') {
                    out.push(b'.');
                }
            }
            Some(byte) if reader.cleaned[usize::from(*byte)] != 0 => out.push(b'_'),
            _ => break at,
        }
        at += 1;
    };
    if out.len() == begin {
        return Err(Reject::NoName);
    }
    let rest = &line[behind..];
    if rest.first() == Some(&b';') {
        // Tags, and all behind them, go as they came.
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

/// Appends `text` with each run of blanks as one space.
fn fold_blanks(text: &[u8], out: &mut Vec<u8>) {
    let mut after_blank = false;
    for byte in text {
        let blank = matches!(byte, b' ' | b'\t');
        if !blank {
            out.push(*byte);
        } else if !after_blank {
            out.push(b' ');
        }
        after_blank = blank;
    }
}
