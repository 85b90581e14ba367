//! The fields of a protobuf message, one after the other, as they are on the wire.
//!
//! Own code, because the wire format is what Staunch exists for and each event costs ten fields: a derived decoder would build structs
//! with a `String` for each text, only to copy them into the batch. `reference` compares it with `prost`.
//! Not here: which fields a message has.

use crate::steps::touch;

/// Groups within groups. Riemann's own decoder allows as many.
const GROUPS_MAX: usize = 100;

/// The bytes are no protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undecodable;

/// A field's value, by its wire type. A group has been skipped: no message has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Eight([u8; 8]),
    Bytes(&'a [u8]),
    Four([u8; 4]),
    Group,
}

/// The unread fields of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

/// The wire types of a key.
const VARINT: u32 = 0;
const EIGHT: u32 = 1;
const BYTES: u32 = 2;
const GROUP_BEGIN: u32 = 3;
const GROUP_END: u32 = 4;
const FOUR: u32 = 5;

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// The number and the value of the next field; `None` at the end.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Undecodable> {
        touch(1);
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.key()?;
        let value = match kind {
            VARINT => Wire::Varint(self.varint()?),
            EIGHT => Wire::Eight(self.array()?),
            BYTES => Wire::Bytes(self.bytes()?),
            FOUR => Wire::Four(self.array()?),
            _ => {
                self.group(number, kind)?;
                Wire::Group
            }
        };
        Ok(Some((number, value)))
    }

    /// Validates all fields. For messages that are ignored.
    pub(super) fn skip_all(mut self) -> Result<(), Undecodable> {
        while self.next()?.is_some() {}
        Ok(())
    }

    /// A field's number and wire type.
    #[inline(always)]
    fn key(&mut self) -> Result<(u32, u32), Undecodable> {
        let key = u32::try_from(self.varint()?).map_err(|_| Undecodable)?;
        let number = key >> 3;
        if number == 0 { Err(Undecodable) } else { Ok((number, key & 7)) }
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<u64, Undecodable> {
        // Keys and most lengths have one byte.
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self) -> Result<u64, Undecodable> {
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
    fn bytes(&mut self) -> Result<&'a [u8], Undecodable> {
        let len = usize::try_from(self.varint()?).map_err(|_| Undecodable)?;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Undecodable)?;
        self.rest = rest;
        Ok(bytes)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Undecodable> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(Undecodable)?;
        self.rest = rest;
        Ok(*array)
    }

    /// Skips a group with its inner groups, up to its end. Any other wire type is no field.
    #[cold]
    fn group(&mut self, number: u32, kind: u32) -> Result<(), Undecodable> {
        if kind != GROUP_BEGIN {
            return Err(Undecodable);
        }
        let (mut open, mut depth) = ([0; GROUPS_MAX], 1);
        open[0] = number;
        while depth > 0 {
            touch(1);
            let (number, kind) = self.key()?;
            match kind {
                VARINT => drop(self.varint()?),
                EIGHT => drop(self.array::<8>()?),
                BYTES => drop(self.bytes()?),
                FOUR => drop(self.array::<4>()?),
                GROUP_BEGIN => {
                    *open.get_mut(depth).ok_or(Undecodable)? = number;
                    depth += 1;
                }
                GROUP_END if open[depth - 1] == number => depth -= 1,
                _ => return Err(Undecodable),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of a message.
    type Want = Result<&'static [(u32, Wire<'static>)], Undecodable>;

    fn all(bytes: &[u8]) -> Result<Vec<(u32, Wire<'_>)>, Undecodable> {
        let (mut fields, mut all) = (Fields::of(bytes), Vec::new());
        while let Some(field) = fields.next()? {
            all.push(field);
        }
        Ok(all)
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
        }
    }
}
