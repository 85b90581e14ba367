//! Little-endian numbers and varints, written and read. A read past the end of the bytes returns None.

/// A reader that consumes bytes from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(bytes)
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes)
    }

    /// A number of up to 64 bits; none when it has more.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The length of a list that follows, of entries of at least `size` bytes each. None when the rest of the bytes
    /// is too short for it.
    pub(crate) fn len_of(&mut self, size: usize) -> Option<usize> {
        let len = usize::try_from(self.varint()?).ok()?;
        (len.checked_mul(size)? <= self.0.len()).then_some(len)
    }

    /// `len` numbers.
    pub(crate) fn f64s(&mut self, len: usize) -> Option<Vec<f64>> {
        let bytes = self.take(len.checked_mul(8)?)?;
        let (numbers, _none) = bytes.as_chunks();
        Some(numbers.iter().map(|number| f64::from_le_bytes(*number)).collect())
    }
}

pub(crate) fn put_f64(number: f64, to: &mut Vec<u8>) {
    to.extend_from_slice(&number.to_le_bytes());
}

#[inline]
pub(crate) fn put_varint(mut number: u64, to: &mut Vec<u8>) {
    while number > 0x7f {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[test]
fn varints_round_trip_and_malformed_ones_are_rejected() {
    for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
        let mut bytes = Vec::new();
        put_varint(number, &mut bytes);
        let mut from = Bytes::new(&bytes);
        assert_eq!((from.varint(), from.u8()), (Some(number), None), "{number}");
        assert_eq!(Bytes::new(&bytes[..bytes.len() - 1]).varint(), None, "{number} cut short");
    }
    assert_eq!(Bytes::new(&[0xff; 20]).varint(), None, "more than 64 bits");
    let past = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
    assert_eq!(Bytes::new(&past).varint(), None, "bit 65");
    assert_eq!(Bytes::new(&[2, 0, 0]).len_of(1), Some(2));
    assert_eq!(Bytes::new(&[2, 0, 0]).len_of(2), None, "longer than the rest");
}
