//! Numbers in bytes: those of whisper files (big-endian), those of a saved catalog (little-endian, and of variable length).
//!
//! Nothing here reads past an end: a number that is cut short is `None`.

/// The four bytes at a position, the highest first.
pub(crate) fn u32_be(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Appends seven bits a byte, the lowest first.
pub(crate) fn write_varint(mut number: u32, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// What is left of some bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// Four bytes, the lowest first.
    pub(crate) fn u32_le(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// Eight bytes, the lowest first.
    pub(crate) fn u64_le(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    pub(crate) fn varint(&mut self) -> Option<u32> {
        let mut number = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && bits > 0xf {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[test]
fn numbers_that_are_cut_short_are_none() {
    let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!((u32_be(&bytes, 4), u32_be(&bytes, 5), u32_be(&bytes, 9)), (Some(0x0506_0708), None, None));
    let mut rest = Rest(&bytes);
    assert_eq!((rest.u32_le(), rest.u64_le(), rest.byte()), (Some(0x0403_0201), None, Some(5)));
    assert_eq!(Rest(&bytes).u64_le(), Some(0x0807_0605_0403_0201));
}

#[test]
fn varints_round_trip() {
    for number in [0, 1, 127, 128, 300, 1 << 21, u32::MAX - 1, u32::MAX] {
        let mut bytes = Vec::new();
        write_varint(number, &mut bytes);
        let mut rest = Rest(&bytes);
        assert_eq!((rest.varint(), rest.is_empty()), (Some(number), true));
        assert_eq!(Rest(&bytes[..bytes.len() - 1]).varint(), None);
    }
    assert_eq!(Rest(&[0xff, 0xff, 0xff, 0xff, 0x1f]).varint(), None, "more than 32 bits");
    assert_eq!(Rest(&[0x80, 0x80, 0x80, 0x80, 0x80, 1]).varint(), None);
}
