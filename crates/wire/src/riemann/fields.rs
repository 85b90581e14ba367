//! The fields of a protobuf message, one after the other, as they are on the wire.
//!
//! Own code, because the wire format is what Staunch exists for and each event costs ten fields: a derived decoder would build structs
//! with a `String` for each text, only to copy them into the batch. `reference` compares it with `prost`.
//! Not here: which fields a message has.

use crate::steps::touch;

/// Groups within groups. Riemann's own decoder allows as many.
pub(super) const GROUPS_MAX: usize = 100;

/// The bytes are no protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undecodable;

/// Wire types.
pub(super) const VARINT: u32 = 0;
pub(super) const EIGHT: u32 = 1;
pub(super) const BYTES: u32 = 2;
const GROUP_BEGIN: u32 = 3;
const GROUP_END: u32 = 4;
pub(super) const FOUR: u32 = 5;

/// The key of a field: its number and its wire type. A field with the number of another one's key is another field.
pub(super) const fn key(number: u32, kind: u32) -> u32 {
    number << 3 | kind
}

/// The unread fields of a message: keys, and behind each its value, which must be read or skipped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// The key of the next field; `None` at the end.
    #[inline(always)]
    pub(super) fn next_key(&mut self) -> Result<Option<u32>, Undecodable> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.key().map(Some)
    }

    /// How many bytes are unread.
    #[inline(always)]
    pub(super) fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    /// Skips the value of a field that nobody knows.
    #[cold]
    pub(super) fn skip(&mut self, key: u32) -> Result<(), Undecodable> {
        match key & 7 {
            GROUP_BEGIN => self.skip_group(key >> 3),
            _ => self.skip_number_or_bytes(key),
        }
    }

    fn skip_number_or_bytes(&mut self, key: u32) -> Result<(), Undecodable> {
        match key & 7 {
            VARINT => self.varint().map(drop),
            EIGHT => self.array::<8>().map(drop),
            BYTES => self.bytes().map(drop),
            FOUR => self.array::<4>().map(drop),
            // The end of a group that has not begun, and the two types that do not exist.
            _ => Err(Undecodable),
        }
    }

    /// Validates all fields. For messages that are ignored.
    pub(super) fn skip_all(mut self) -> Result<(), Undecodable> {
        while let Some(key) = self.next_key()? {
            self.skip(key)?;
        }
        Ok(())
    }

    /// A key. Numbers have 29 bits, and 0 is none.
    #[inline(always)]
    fn key(&mut self) -> Result<u32, Undecodable> {
        touch(1);
        let key = u32::try_from(self.varint()?).map_err(|_| Undecodable)?;
        if key < 8 { Err(Undecodable) } else { Ok(key) }
    }

    #[inline(always)]
    pub(super) fn varint(&mut self) -> Result<u64, Undecodable> {
        // Keys and most lengths have one byte.
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    /// A number of up to eight bytes at once, as all times have.
    fn long_varint(&mut self) -> Result<u64, Undecodable> {
        const LAST_BITS: u64 = 0x8080_8080_8080_8080;
        let Some(word) = self.rest.first_chunk().map(|eight| u64::from_le_bytes(*eight)) else {
            return self.any_varint();
        };
        let ends = !word & LAST_BITS;
        if ends == 0 {
            return self.any_varint();
        }
        let bits = ends.trailing_zeros() + 1;
        self.rest = &self.rest[bits as usize / 8..];
        // The bytes up to the first one without its highest bit, and of each seven bits: first in pairs, then in fours, then all.
        let word = word & (u64::MAX >> (64 - bits)) & !LAST_BITS;
        let word = word & 0x007F_007F_007F_007F | (word & 0x7F00_7F00_7F00_7F00) >> 1;
        let word = word & 0x0000_3FFF_0000_3FFF | (word & 0x3FFF_0000_3FFF_0000) >> 2;
        Ok(word & 0x0FFF_FFFF | (word & 0x0FFF_FFFF_0000_0000) >> 4)
    }

    /// A number byte by byte: one of more than eight bytes, or close to the end.
    fn any_varint(&mut self) -> Result<u64, Undecodable> {
        let mut number = 0_u64;
        for (at, byte) in self.rest.iter().take(10).enumerate() {
            number |= u64::from(byte & 0x7F) << (7 * at);
            if byte & 0x80 == 0 {
                // Only one bit is left for the tenth byte.
                if at == 9 && *byte > 1 {
                    break;
                }
                self.rest = &self.rest[at + 1..];
                return Ok(number);
            }
        }
        Err(Undecodable)
    }

    #[inline(always)]
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Undecodable> {
        let len = usize::try_from(self.varint()?).map_err(|_| Undecodable)?;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Undecodable)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The bytes of a number of fixed length.
    #[inline(always)]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Undecodable> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(Undecodable)?;
        self.rest = rest;
        Ok(*array)
    }

    /// Skips a group with its inner groups, up to its end.
    fn skip_group(&mut self, number: u32) -> Result<(), Undecodable> {
        let (mut open, mut depth) = ([0; GROUPS_MAX], 1);
        open[0] = number;
        while depth > 0 {
            let key = self.key()?;
            match key & 7 {
                GROUP_BEGIN => {
                    *open.get_mut(depth).ok_or(Undecodable)? = key >> 3;
                    depth += 1;
                }
                GROUP_END if open[depth - 1] == key >> 3 => depth -= 1,
                GROUP_END => return Err(Undecodable),
                _ => self.skip_number_or_bytes(key)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field's value.
    #[derive(Debug, PartialEq)]
    enum Wire<'a> {
        Varint(u64),
        Eight([u8; 8]),
        Bytes(&'a [u8]),
        Four([u8; 4]),
        Group,
    }

    /// The fields of a message: their numbers and values.
    type Want = Result<&'static [(u32, Wire<'static>)], Undecodable>;

    fn all(bytes: &[u8]) -> Result<Vec<(u32, Wire<'_>)>, Undecodable> {
        let (mut fields, mut all) = (Fields::of(bytes), Vec::new());
        while let Some(key) = fields.next_key()? {
            let value = match key & 7 {
                VARINT => Wire::Varint(fields.varint()?),
                EIGHT => Wire::Eight(fields.array()?),
                BYTES => Wire::Bytes(fields.bytes()?),
                FOUR => Wire::Four(fields.array()?),
                _ => fields.skip(key).map(|()| Wire::Group)?,
            };
            all.push((key >> 3, value));
        }
        assert_eq!(Fields::of(bytes).skip_all(), Ok(()), "what can be read can be skipped");
        Ok(all)
    }

    #[test]
    fn varints_of_every_length_are_read_within_and_at_the_end_of_a_message() {
        for bits in 0..64 {
            for number in
                [1_u64 << bits, (2_u64 << bits).wrapping_sub(1), (1 << bits) | 0x55 & ((1 << bits) - 1)]
            {
                let mut bytes = Vec::new();
                prost::encoding::encode_varint(number, &mut bytes);
                for behind in [&b""[..], b"\xff", &[0xff; 9], &[0; 9]] {
                    let message = [&bytes, behind].concat();
                    let mut fields = Fields::of(&message);
                    assert_eq!((fields.varint(), fields.rest), (Ok(number), behind), "{number}");
                }
            }
        }
    }

    #[test]
    fn fields_are_read_by_their_wire_type_or_the_message_is_undecodable() {
        let table: &[(&[u8], Want)] = &[
            (b"", Ok(&[])),
            (b"\x08\x01", Ok(&[(1, Wire::Varint(1))])),
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Ok(&[(1, Wire::Varint(u64::MAX))])),
            (b"\x08\x80\x00", Ok(&[(1, Wire::Varint(0))])),
            (b"\x09\x01\x02\x03\x04\x05\x06\x07\x08", Ok(&[(1, Wire::Eight([1, 2, 3, 4, 5, 6, 7, 8]))])),
            (b"\x0d\x01\x02\x03\x04", Ok(&[(1, Wire::Four([1, 2, 3, 4]))])),
            (b"\x12\x02hi\x12\x00", Ok(&[(2, Wire::Bytes(b"hi")), (2, Wire::Bytes(b""))])),
            (b"\x12\x82\x00hi", Ok(&[(2, Wire::Bytes(b"hi"))])),
            (b"\xf8\xff\xff\xff\x0f\x05", Ok(&[((1 << 29) - 1, Wire::Varint(5))])),
            (b"\x0b\x0c", Ok(&[(1, Wire::Group)])),
            (
                b"\x0b\x10\x01\x13\x1d\0\0\0\0\x14\x22\x01x\x0c\x08\x07",
                Ok(&[(1, Wire::Group), (1, Wire::Varint(7))]),
            ),
            // No field has the number 0, or more than 29 bits of it.
            (b"\x00\x01", Err(Undecodable)),
            (b"\x80\x80\x80\x80\x10\x01", Err(Undecodable)),
            // No such wire types.
            (b"\x0e\x01", Err(Undecodable)),
            (b"\x0f\x01", Err(Undecodable)),
            // Varints of over 64 bits, and of eleven bytes.
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", Err(Undecodable)),
            (b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", Err(Undecodable)),
            // Cut off.
            (b"\x08", Err(Undecodable)),
            (b"\x08\x80", Err(Undecodable)),
            (b"\x09\x01\x02\x03\x04\x05\x06\x07", Err(Undecodable)),
            (b"\x0d\x01\x02\x03", Err(Undecodable)),
            (b"\x12\x03hi", Err(Undecodable)),
            (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Err(Undecodable)),
            // Groups: not ended, ended by another number, ended without a beginning.
            (b"\x0b\x10\x01", Err(Undecodable)),
            (b"\x0b\x14", Err(Undecodable)),
            (b"\x0c", Err(Undecodable)),
        ];
        for (bytes, want) in table {
            assert_eq!(all(bytes).as_deref(), want.as_deref(), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn groups_are_skipped_up_to_the_limit_of_their_depth() {
        for (depth, is_fine) in [(GROUPS_MAX, true), (GROUPS_MAX + 1, false), (1 << 20, false)] {
            let message = [b"\x0b".repeat(depth), b"\x0c".repeat(depth)].concat();
            assert_eq!(all(&message).is_ok(), is_fine, "{depth}");
            let with_a_field = [b"\x0b".repeat(depth), b"\x08\x01".to_vec(), b"\x0c".repeat(depth)].concat();
            assert_eq!(all(&with_a_field).is_ok(), is_fine, "{depth}");
            if depth < 1000 {
                crate::riemann::reference::compare(&message);
                crate::riemann::reference::compare(&with_a_field);
            }
        }
    }
}
