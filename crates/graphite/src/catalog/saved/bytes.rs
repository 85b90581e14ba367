//! Numbers of variable length, and a reader that never reads past its end.

/// Appends seven bits a byte, the lowest first.
pub(super) fn write_varint(mut number: u32, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// What is left of a piece's body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn varint(&mut self) -> Option<u32> {
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
