//! Series for two JavaScript charts, dygraph and rickshaw (spec graphite §6.3).

use super::json::{push_number, push_text};
use crate::query::Series;

/// Labels, and one row of values for each time of the first series: `{"labels" : ["Time", …], "data" : [[MS, value, …], …]}`.
///
/// Values of other series stand at their place in the list, as in graphite-web, whatever their step; missing ones are null.
pub fn dygraph(all: &[Series]) -> Vec<u8> {
    let Some(first) = all.first() else { return b"{}".to_vec() };
    let mut out = b"{\"labels\" : [\"Time\"".to_vec();
    for one in all {
        out.extend_from_slice(b", ");
        push_text(one.name.as_bytes(), &mut out);
    }
    out.extend_from_slice(b"], \"data\" : [");
    for (row, time) in times(first).enumerate() {
        out.extend_from_slice(if row == 0 { b"[" } else { b", [" });
        out.extend_from_slice(itoa::Buffer::new().format(time).as_bytes());
        out.extend_from_slice(b"000");
        for one in all {
            out.extend_from_slice(b", ");
            push_infinite(one.values.get(row).copied().unwrap_or(f64::NAN), one.is_integer, &mut out);
        }
        out.push(b']');
    }
    out.extend_from_slice(b"]}");
    out
}

/// `[{"target": NAME, "datapoints": [{"x": TIME, "y": VALUE}, …]}, …]`
pub fn rickshaw(all: &[Series]) -> Vec<u8> {
    let mut out = vec![b'['];
    for (number, one) in all.iter().enumerate() {
        out.extend_from_slice(if number == 0 { b"{\"target\": " } else { b", {\"target\": " });
        push_text(one.name.as_bytes(), &mut out);
        out.extend_from_slice(b", \"datapoints\": [");
        for (row, (time, value)) in times(one).zip(&one.values).enumerate() {
            out.extend_from_slice(if row == 0 { b"{\"x\": " } else { b", {\"x\": " });
            out.extend_from_slice(itoa::Buffer::new().format(time).as_bytes());
            out.extend_from_slice(b", \"y\": ");
            push_infinite(*value, one.is_integer, &mut out);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }
    out.push(b']');
    out
}

/// The times of a series, before its end.
fn times(one: &Series) -> impl Iterator<Item = i64> + '_ {
    let step = one.step.max(1);
    let times = (0..).map(move |row: i64| one.start.saturating_add(row.saturating_mul(step)));
    times.take_while(|time| *time < one.end).take(one.values.len())
}

/// JavaScript's words for what JSON does not have.
fn push_infinite(value: f64, is_integer: bool, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(b"null");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
    } else {
        push_number(value, is_integer, out);
    }
}

#[test]
fn charts_get_times_in_milliseconds_or_as_x() {
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let mut all = super::json::tests::vector("vec.lin", &[31.0, f64::NAN]);
    all.extend(super::json::tests::vector("alias(vec.lin,'a\"b')", &[f64::INFINITY]));
    let want = r#"{"labels" : ["Time", "vec.lin", "a\"b"], "data" : [[1710001860000, 31.0, Infinity], [1710001920000, null, null]]}"#;
    assert_eq!(text(dygraph(&all)), want);
    let want = r#"[{"target": "vec.lin", "datapoints": [{"x": 1710001860, "y": 31.0}, {"x": 1710001920, "y": null}]}, {"target": "a\"b", "datapoints": [{"x": 1710001860, "y": Infinity}]}]"#;
    assert_eq!(text(rickshaw(&all)), want);
    assert_eq!((text(dygraph(&[])), text(rickshaw(&[]))), ("{}".to_owned(), "[]".to_owned()));
}
