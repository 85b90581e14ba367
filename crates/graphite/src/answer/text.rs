//! Series as csv and as raw (spec graphite §6.3).

use std::borrow::Cow;

use crate::query::{Series, TimeZone};

use super::json::{points, push_number};

/// `NAME,YYYY-MM-DD HH:MM:SS,VALUE` and CR LF for each point, with times of the zone.
pub fn csv(all: &[Series], zone: &TimeZone) -> Vec<u8> {
    let mut out = Vec::new();
    for one in all {
        let name = field(&one.name);
        for (time, value) in points(one) {
            out.extend_from_slice(name.as_bytes());
            out.push(b',');
            push_time(time, zone, &mut out);
            out.push(b',');
            if !value.is_nan() {
                push_float(value, one.is_integer, &mut out);
            }
            out.extend_from_slice(b"\r\n");
        }
    }
    out
}

/// Quoted as in Excel, if it has to be.
fn field(text: &str) -> Cow<'_, str> {
    if text.contains(['"', ',', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

fn push_time(time: i64, zone: &TimeZone, out: &mut Vec<u8>) {
    if let Ok(at) = jiff::Timestamp::from_second(time) {
        let at = zone.to_datetime(at);
        let (date, time) = ((at.year(), at.month(), at.day()), (at.hour(), at.minute(), at.second()));
        let text =
            format!("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", date.0, date.1, date.2, time.0, time.1, time.2);
        out.extend_from_slice(text.as_bytes());
    }
}

/// `NAME,START,END,STEP|VALUE,VALUE,…` for each series.
pub fn raw(all: &[Series]) -> Vec<u8> {
    let mut out = Vec::new();
    for one in all {
        out.extend_from_slice(format!("{},{},{},{}|", one.name, one.start, one.end, one.step).as_bytes());
        for (number, value) in one.values.iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            if value.is_nan() {
                out.extend_from_slice(b"None");
            } else {
                push_float(*value, one.is_integer, &mut out);
            }
        }
        out.push(b'\n');
    }
    out
}

fn push_float(value: f64, is_integer: bool, out: &mut Vec<u8>) {
    if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
    } else {
        push_number(value, is_integer, out);
    }
}

#[test]
fn the_vectors_of_the_spec_are_written() {
    let values: Vec<f64> = (31..=40).map(f64::from).collect();
    let all = super::json::tests::vector("vec.lin", &values);
    let want = "vec.lin,1710001860,1710002460,60|31.0,32.0,33.0,34.0,35.0,36.0,37.0,38.0,39.0,40.0\n";
    assert_eq!(String::from_utf8_lossy(&raw(&all)), want);
    let rows = csv(&all, &TimeZone::UTC);
    let rows = String::from_utf8_lossy(&rows);
    assert!(rows.starts_with("vec.lin,2024-03-09 16:31:00,31.0\r\n"), "{rows}");
    assert_eq!(rows.matches("\r\n").count(), 10);
    let named = super::json::tests::vector("alias(vec.lin,'a,\"b\"')", &[f64::NAN]);
    assert_eq!(csv(&named, &TimeZone::UTC), b"\"a,\"\"b\"\"\",2024-03-09 16:31:00,\r\n");
}
