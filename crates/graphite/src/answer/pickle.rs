//! Pickles of protocol 2, with opcodes that graphite-web's safe reader and every other one takes.

use super::values::{self, Encoder};
use crate::catalog::Found;
use crate::query::Series;

/// The series.
pub fn series(all: &[Series]) -> Vec<u8> {
    values::series(all, Pickle::new())
}

/// Paths with the time that they cover.
pub fn paths(found: &Found, interval: (i64, i64)) -> Vec<u8> {
    values::paths(found, interval, Pickle::new())
}

struct Pickle(Vec<u8>);

impl Pickle {
    fn new() -> Pickle {
        Pickle(b"\x80\x02".to_vec())
    }
}

impl Encoder for Pickle {
    fn list(&mut self, _length: usize) {
        self.0.extend_from_slice(b"](");
    }

    fn end_list(&mut self) {
        self.0.push(b'e');
    }

    fn map(&mut self, _length: usize) {
        self.0.extend_from_slice(b"}(");
    }

    fn end_map(&mut self) {
        self.0.push(b'u');
    }

    fn text(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        self.0.push(b'X');
        self.0.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn whole(&mut self, number: i64) {
        match i32::try_from(number) {
            Ok(number) => {
                self.0.push(b'J');
                self.0.extend_from_slice(&number.to_le_bytes());
            }
            Err(_) => {
                // LONG1: a length, and that many bytes of two's complement.
                self.0.extend_from_slice(&[0x8a, 8]);
                self.0.extend_from_slice(&number.to_le_bytes());
            }
        }
    }

    fn float(&mut self, number: f64) {
        self.0.push(b'G');
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    fn flag(&mut self, flag: bool) {
        self.0.push(if flag { 0x88 } else { 0x89 });
    }

    fn none(&mut self) {
        self.0.push(b'N');
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.push(b'.');
        self.0
    }
}

#[test]
fn series_are_a_list_of_dicts() {
    let mut all = super::json::tests::vector("vec.lin", &[31.0, f64::NAN]);
    all[0].end = 5_000_000_000;
    let head = b"\x80\x02](}(X\x04\0\0\0nameX\x07\0\0\0vec.linX\x05\0\0\0startJ\xc4\x8e\xece";
    let bytes = series(&all);
    assert_eq!(bytes[..head.len()], head[..], "{:?}", String::from_utf8_lossy(&bytes));
    let has = |part: &[u8]| bytes.windows(part.len()).any(|found| found == part);
    assert!(has(b"X\x03\0\0\0end\x8a\x08\0\xf2\x05\x2a\x01\0\0\0"));
    assert!(has(b"X\x06\0\0\0values](G\x40\x3f\0\0\0\0\0\0NeX"));
    assert!(has(
        b"X\x11\0\0\0consolidationFuncX\x07\0\0\0averageX\x0c\0\0\0xFilesFactorG\0\0\0\0\0\0\0\0ue."
    ));
    assert_eq!(series(&[]), b"\x80\x02](e.");
}
