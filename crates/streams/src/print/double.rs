//! Floating-point numbers and times as Java writes them.

use crate::object::time::Moment;

/// The least number of two digits that is nearest to the least positive double: Java prints at least two digits.
const LEAST: &str = "4.9E-324";

/// `Double.toString`: the shortest digits, plain from 0.001 up to ten million, else with an exponent.
pub fn double(value: f64) -> String {
    if value.to_bits() << 1 == 2 {
        return if value > 0.0 { LEAST.to_owned() } else { format!("-{LEAST}") };
    }
    java(&format!("{value:e}"), value.is_finite(), value.is_nan(), value.is_sign_negative())
}

/// `Float.toString`.
pub fn float(value: f32) -> String {
    java(&format!("{value:e}"), value.is_finite(), value.is_nan(), value.is_sign_negative())
}

/// What the reader understands as an infinity or as no number: `##Inf`, `##-Inf`, `##NaN`.
pub fn symbolic(value: f64) -> String {
    let name = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Inf"
    } else {
        "-Inf"
    };
    format!("##{name}")
}

/// Rewrites Rust's scientific text, which has the shortest digits too.
fn java(text: &str, is_finite: bool, is_nan: bool, is_negative: bool) -> String {
    if !is_finite {
        let name = if is_nan { "NaN" } else { "Infinity" };
        return format!("{}{name}", if is_negative && !is_nan { "-" } else { "" });
    }
    let (digits, exponent) = text.split_once('e').expect("scientific texts have an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent of a scientific text is an integer");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole == "0" {
        return format!("{sign}0.0");
    }
    let or_zero = |digits: &str| if digits.is_empty() { "0".to_owned() } else { digits.to_owned() };
    match exponent {
        0..7 => {
            let all = format!("{whole}{fraction:0<width$}", width = exponent.unsigned_abs() as usize);
            let (before, after) = all.split_at(exponent.unsigned_abs() as usize + 1);
            format!("{sign}{before}.{}", or_zero(after))
        }
        -3..0 => {
            let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
            format!("{sign}0.{zeros}{whole}{fraction}")
        }
        _ => format!("{sign}{whole}.{}E{exponent}", or_zero(fraction)),
    }
}

/// The ISO text of a time with milliseconds, in UTC or its own zone; the number where it is past the calendar.
pub fn moment(moment: Moment) -> String {
    let Some(time) = moment.zoned() else {
        return moment.milliseconds.to_string();
    };
    let zone = match moment.is_joda {
        true if time.offset().is_zero() => "Z",
        true => "%:z",
        false => "-00:00",
    };
    time.strftime(&format!("%Y-%m-%dT%H:%M:%S%.3f{zone}")).to_string()
}
