//! The script of an SVG with the data of its graph, which tools read (spec graphite §6.5).

use super::canvas::Area;
use super::data::{Curve, Kind};
use super::options::Options;
use super::text::clean;
use crate::answer::json::{push_number, push_text};

/// Most characters of a name.
const NAME_CHARS_MAX: usize = 1_000;

/// An element `script` that assigns start, end, area and series to `metadata`.
pub(super) fn script(curves: &[Curve<'_>], span: (i64, i64), area: Area, options: &Options) -> String {
    let mut out: Vec<u8> = Vec::new();
    let step = curves.iter().map(|curve| curve.step).min().unwrap_or(1);
    let head = format!(
        "{{\"x\": {{\"start\": {}, \"end\": {}, \"step\": {step}}}, \"options\": {{\"lineWidth\": ",
        span.0, span.1
    );
    out.extend_from_slice(head.as_bytes());
    push_number(options.line_width, false, &mut out);
    out.extend_from_slice(b"}, \"font\": {\"name\": ");
    push_text(options.font.family.as_bytes(), &mut out);
    out.extend_from_slice(b", \"size\": ");
    push_number(options.font.size, false, &mut out);
    out.extend_from_slice(b"}, \"area\": {");
    let sides = [("xmin", area.left), ("xmax", area.right), ("ymin", area.top), ("ymax", area.bottom)];
    for (number, (name, value)) in sides.into_iter().enumerate() {
        out.extend_from_slice(if number == 0 { b"\"" } else { b", \"" });
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\": ");
        push_number(crate::query::numbers::round(value, 2), false, &mut out);
    }
    out.extend_from_slice(b"}, \"series\": [");
    for (number, curve) in curves.iter().filter(|curve| curve.kind != Kind::Hidden).enumerate() {
        out.extend_from_slice(if number == 0 { b"" } else { b", " });
        push_curve(curve, &mut out);
    }
    out.extend_from_slice(b"]}");
    // JSON allows these characters to be escaped; then nothing in a name ends the script.
    let json =
        String::from_utf8_lossy(&out).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    format!("<script type=\"text/javascript\"><![CDATA[\nmetadata = {json}\n]]></script>\n")
}

fn push_curve(curve: &Curve<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"name\": ");
    push_text(clean(&curve.series.name, NAME_CHARS_MAX).as_bytes(), out);
    let end = curve.time(curve.values.len());
    let per_point = curve.step / curve.series.step.max(1);
    let rest = format!(
        ", \"start\": {}, \"end\": {end}, \"step\": {}, \"valuesPerPoint\": {per_point}, \"color\": \"{}\", \"data\": [",
        curve.start,
        curve.step,
        curve.color.hex()
    );
    out.extend_from_slice(rest.as_bytes());
    for (number, value) in curve.values.iter().enumerate() {
        out.extend_from_slice(if number == 0 { b"" } else { b", " });
        if value.is_nan() {
            out.extend_from_slice(b"null");
        } else {
            push_number(*value, false, out);
        }
    }
    out.extend_from_slice(b"]}");
}
