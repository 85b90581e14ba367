//! Series and names as lists of maps, in pickle or msgpack: the protocol between nodes of graphite-web (spec graphite §6.3, §6.6).
//!
//! Not here: the two encodings (`pickle`, `msgpack`).

use crate::catalog::Found;
use crate::query::Series;

/// An encoding of nested values. The lengths of lists and maps are given before their contents.
pub(super) trait Encoder {
    fn list(&mut self, length: usize);
    fn end_list(&mut self);
    fn map(&mut self, length: usize);
    fn end_map(&mut self);
    /// UTF-8 is expected; other bytes are replaced.
    fn text(&mut self, text: &[u8]);
    fn whole(&mut self, number: i64);
    fn float(&mut self, number: f64);
    fn flag(&mut self, flag: bool);
    fn none(&mut self);
    fn finish(self) -> Vec<u8>;
}

/// Integers of a smaller magnitude are exact in a double.
const EXACT_INTEGER_END: f64 = 9_007_199_254_740_992.0;

/// One map for each series.
pub(super) fn series(all: &[Series], mut out: impl Encoder) -> Vec<u8> {
    out.list(all.len());
    for one in all {
        out.map(9);
        pair(&mut out, "name", |out| out.text(one.name.as_bytes()));
        pair(&mut out, "start", |out| out.whole(one.start));
        pair(&mut out, "end", |out| out.whole(one.end));
        pair(&mut out, "step", |out| out.whole(one.step));
        pair(&mut out, "values", |out| {
            out.list(one.values.len());
            one.values.iter().for_each(|value| push_value(*value, one.is_integer, out));
            out.end_list();
        });
        pair(&mut out, "pathExpression", |out| out.text(one.path.as_bytes()));
        pair(&mut out, "valuesPerPoint", |out| out.whole(1));
        pair(&mut out, "consolidationFunc", |out| out.text(one.consolidation.name().as_bytes()));
        pair(&mut out, "xFilesFactor", |out| out.float(one.x_files_factor));
        out.end_map();
    }
    out.end_list();
    out.finish()
}

/// Paths, and for leaves the time that they cover: `[oldest, now]`.
pub(super) fn paths(found: &Found, (start, end): (i64, i64), mut out: impl Encoder) -> Vec<u8> {
    let rows: Vec<_> = found.rows().collect();
    out.list(rows.len());
    for (node, is_leaf) in rows {
        out.map(if is_leaf { 3 } else { 2 });
        pair(&mut out, "path", |out| out.text(node.path));
        pair(&mut out, "is_leaf", |out| out.flag(is_leaf));
        if is_leaf {
            pair(&mut out, "intervals", |out| {
                out.list(1);
                out.list(2);
                out.whole(start);
                out.whole(end);
                out.end_list();
                out.end_list();
            });
        }
        out.end_map();
    }
    out.end_list();
    out.finish()
}

fn pair<E: Encoder>(out: &mut E, key: &str, value: impl FnOnce(&mut E)) {
    out.text(key.as_bytes());
    value(out);
}

fn push_value(value: f64, is_integer: bool, out: &mut impl Encoder) {
    if value.is_nan() {
        out.none();
    } else if is_integer && value.fract() == 0.0 && value.abs() < EXACT_INTEGER_END {
        out.whole(value as i64);
    } else {
        out.float(value);
    }
}
