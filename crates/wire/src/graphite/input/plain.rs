//! The fast path: lines that every compatibility mode passes on unchanged, `some.name 12.5 1700000000`.
//!
//! Nearly every line has this form, so it is recognised in a few steps over blocks of bytes, and not copied. The
//! conditions are narrow. All other lines take the slow path, which accepts these lines too and gives the same result
//! (tests and the fuzz target compare them). A line is plain when
//! - it is at least a block long and has only letters, digits and `.` `-` `_` `:` `#` and spaces: no tags, no tabs,
//!   no CR;
//! - it begins with a letter or digit, and has no two adjacent dots or spaces;
//! - it contains a space, and the name before it is within the limit;
//! - except in `c-relay`, which does not check: the rest is a value of 1 to 32 digits, with an optional minus and one
//!   point among or after them; a space; and a time of 1 to 15 digits.
//!
//! Implementation: [`mark_odd`] checks 16 bytes at once, each with the byte before it, without a branch per byte;
//! compilers vectorise it. The last block overlaps the one before, so that no byte outside the line is read.

use memchr::{memchr, memrchr};

use super::options::{Compatibility, Kept, Options};

/// Bytes that are checked at once.
const BLOCK: usize = 16;

/// Most digits of a time: such an integer is exact in a double.
const TIME_DIGITS_MAX: usize = 15;

/// Most characters of a value.
const VALUE_LEN_MAX: usize = 33;

/// The options that the conditions depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainLimits {
    /// The fast path is allowed: it accepts the bytes of the default `-c`, so all of these must be among the kept ones.
    quick: bool,
    /// The numbers are checked: in all modes but `c-relay`.
    looks: bool,
    pub(super) name_len_max: usize,
}

impl PlainLimits {
    pub(super) fn of(options: &Options) -> PlainLimits {
        let keeps_usual = Kept::default().bytes().all(|byte| options.kept.has(byte));
        let looks = options.compatibility != Compatibility::CRelay;
        let name_len_max = match options.name_bytes_max {
            0 => usize::MAX,
            max => max as usize,
        };
        PlainLimits { quick: keeps_usual || looks, looks, name_len_max }
    }
}

/// Length of the name of `line`, when the line is plain.
#[inline(always)]
pub(super) fn name_len(limits: &PlainLimits, line: &[u8]) -> Option<usize> {
    if line.len() <= BLOCK || !line[0].is_ascii_alphanumeric() || has_odd(line) {
        return None;
    }
    let name_len = memchr(b' ', line)?;
    let fits = limits.quick && name_len <= limits.name_len_max;
    (fits && (!limits.looks || has_plain_numbers(&line[name_len + 1..]))).then_some(name_len)
}

/// True when a byte after the first one violates the conditions. `line` is longer than a block.
#[inline(always)]
fn has_odd(line: &[u8]) -> bool {
    let mut odd = [0_u8; BLOCK];
    let mut at = 1;
    let last = line.len() - BLOCK;
    while at < last {
        mark_odd(block(line, at), block(line, at - 1), &mut odd);
        at += BLOCK;
    }
    mark_odd(block(line, last), block(line, last - 1), &mut odd);
    u128::from_ne_bytes(odd) != 0
}

#[inline(always)]
fn block(line: &[u8], at: usize) -> &[u8; BLOCK] {
    line[at..].first_chunk().expect("the caller stays a block before the end")
}

/// Marks in `odd` each byte that is not allowed, or is a dot or space after another one: `before` has the byte before
/// each.
#[inline(always)]
fn mark_odd(bytes: &[u8; BLOCK], before: &[u8; BLOCK], odd: &mut [u8; BLOCK]) {
    let mask = |is: bool| if is { 0xFF_u8 } else { 0 };
    for ((flag, &byte), &before) in odd.iter_mut().zip(bytes).zip(before) {
        let letter = mask((byte | 0x20).wrapping_sub(b'a') < 26);
        // `-`, `.`, `/`, the digits and `:` are consecutive.
        let digit_or_mark = mask(byte.wrapping_sub(b'-') <= b':' - b'-') & !mask(byte == b'/');
        let other = mask(byte == b'_') | mask(byte == b'#') | mask(byte == b' ');
        let doubled = mask(is_separator(byte)) & mask(is_separator(before));
        *flag |= !(letter | digit_or_mark | other) | doubled;
    }
}

#[inline(always)]
fn is_separator(byte: u8) -> bool {
    (byte == b'.') | (byte == b' ')
}

/// True for a `value time` that meets the conditions.
#[inline(always)]
fn has_plain_numbers(text: &[u8]) -> bool {
    let Some(time_at) = time_at(text) else { return false };
    let value = &text[..time_at - 1];
    let unsigned = match value {
        [b'-', rest @ ..] => rest,
        _ => value,
    };
    let mut points = 0;
    let mut digits = 0;
    for byte in unsigned {
        points += usize::from(*byte == b'.');
        digits += usize::from(byte.is_ascii_digit());
    }
    value.len() <= VALUE_LEN_MAX
        && points <= 1
        && digits + points == unsigned.len()
        && unsigned.first().is_some_and(u8::is_ascii_digit)
}

/// Start of the time at the end of `text`, when it is all digits. Current times have ten.
#[inline(always)]
fn time_at(text: &[u8]) -> Option<usize> {
    if let Some([b' ', time @ ..]) = text.last_chunk::<11>() {
        let (first, last) = (time.first_chunk::<8>()?, time.last_chunk::<8>()?);
        if eight_digits(*first) && eight_digits(*last) {
            return Some(text.len() - 10);
        }
    }
    let at = memrchr(b' ', text)? + 1;
    let time = &text[at..];
    let plain = !time.is_empty() && time.len() <= TIME_DIGITS_MAX && time.iter().all(u8::is_ascii_digit);
    plain.then_some(at)
}

/// The upper halves of digits are 3, and stay 3 when 6 is added; those of `:` to `?` do not.
#[inline(always)]
fn eight_digits(bytes: [u8; 8]) -> bool {
    const UPPER: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    const THREES: u64 = 0x3030_3030_3030_3030;
    let word = u64::from_le_bytes(bytes);
    word & UPPER == THREES && word.wrapping_add(0x0606_0606_0606_0606) & UPPER == THREES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_at_each_position_is_odd_or_not() {
        for byte in 0..=u8::MAX {
            let fine = byte.is_ascii_alphanumeric() || b".-_:# ".contains(&byte);
            for at in 1..40 {
                let mut line = [b'a'; 40];
                line[at] = byte;
                assert_eq!(has_odd(&line), !fine, "{byte:#x} at {at}");
            }
        }
    }

    #[test]
    fn two_adjacent_separators_are_odd_at_any_position() {
        for at in 0..39 {
            for pair in [b"..", b". ", b" .", b"  "] {
                let mut line = [b'a'; 40];
                line[at..at + 2].copy_from_slice(pair);
                assert!(has_odd(&line), "{pair:?} at {at}");
                line[at] = b'a';
                assert!(!has_odd(&line), "one at {}", at + 1);
            }
        }
    }

    #[test]
    fn eight_digits_are_digits() {
        for byte in 0..=u8::MAX {
            for at in 0..8 {
                let mut bytes = *b"17000000";
                bytes[at] = byte;
                assert_eq!(eight_digits(bytes), byte.is_ascii_digit(), "{byte:#x} at {at}");
            }
        }
    }
}
