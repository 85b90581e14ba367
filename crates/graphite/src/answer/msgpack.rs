//! Series and names as msgpack.

use rmp::encode as rmp;

use super::values::{self, Encoder};
use crate::catalog::Found;
use crate::query::Series;

/// The series.
pub fn series(all: &[Series]) -> Vec<u8> {
    values::series(all, Msgpack::default())
}

/// Paths with the time that they cover.
pub fn paths(found: &Found, interval: (i64, i64)) -> Vec<u8> {
    values::paths(found, interval, Msgpack::default())
}

#[derive(Default)]
struct Msgpack(rmp::buffer::ByteBuf);

/// Writing into memory does not fail.
const IN_MEMORY: &str = "writing into memory does not fail";

impl Encoder for Msgpack {
    fn list(&mut self, length: usize) {
        rmp::write_array_len(&mut self.0, length as u32).expect(IN_MEMORY);
    }

    fn end_list(&mut self) {}

    fn map(&mut self, length: usize) {
        rmp::write_map_len(&mut self.0, length as u32).expect(IN_MEMORY);
    }

    fn end_map(&mut self) {}

    fn text(&mut self, text: &[u8]) {
        rmp::write_str(&mut self.0, &String::from_utf8_lossy(text)).expect(IN_MEMORY);
    }

    fn whole(&mut self, number: i64) {
        rmp::write_sint(&mut self.0, number).expect(IN_MEMORY);
    }

    fn float(&mut self, number: f64) {
        rmp::write_f64(&mut self.0, number).expect(IN_MEMORY);
    }

    fn flag(&mut self, flag: bool) {
        rmp::write_bool(&mut self.0, flag).expect(IN_MEMORY);
    }

    fn none(&mut self) {
        rmp::write_nil(&mut self.0).expect(IN_MEMORY);
    }

    fn finish(self) -> Vec<u8> {
        self.0.into_vec()
    }
}

#[test]
fn series_are_an_array_of_maps() {
    let all = super::json::tests::vector("vec.lin", &[31.0, f64::NAN]);
    let bytes = series(&all);
    let head = b"\x91\x89\xa4name\xa7vec.lin\xa5start\xce\x65\xec\x8e\xc4\xa3end\xce";
    assert_eq!(bytes[..head.len()], head[..]);
    let has = |part: &[u8]| bytes.windows(part.len()).any(|found| found == part);
    assert!(has(b"\xa6values\x92\xcb\x40\x3f\0\0\0\0\0\0\xc0\xaepathExpression"));
    assert!(has(
        b"\xaevaluesPerPoint\x01\xb1consolidationFunc\xa7average\xacxFilesFactor\xcb\0\0\0\0\0\0\0\0"
    ));
    assert_eq!(series(&[]), [0x90]);
}
