//! Durations and sizes as texts: exact both ways.

/// Units of time with their milliseconds, the largest first.
const DURATIONS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Units of size with their bytes, the largest first.
const SIZES: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Milliseconds as the shortest text that reads back exactly: `10s`, `90s`, `250ms`.
pub fn duration(ms: u64) -> String {
    if ms == 0 { "0s".into() } else { exact(ms, &DURATIONS) }
}

/// Bytes as the shortest text that reads back exactly: `64MiB`, `1500B`.
pub fn size(bytes: u64) -> String {
    if bytes == 0 { "0B".into() } else { exact(bytes, &SIZES) }
}

fn exact(value: u64, units: &[(&str, u64)]) -> String {
    let unit = units.iter().find(|(_, each)| value.is_multiple_of(*each));
    let (unit, each) = unit.expect("every whole number is a multiple of the smallest unit, 1");
    format!("{}{unit}", value / each)
}

/// Milliseconds of `10s`, `250ms`, `1.5h`, `0`. None when it is no duration, is not a whole number of
/// milliseconds, or does not fit.
pub fn parse_duration(text: &str) -> Option<u64> {
    parse(text, &DURATIONS)
}

/// Bytes of `64MiB`, `512B`, `0`. Decimal units and bare numbers other than 0 are refused: they are ambiguous.
pub fn parse_size(text: &str) -> Option<u64> {
    parse(text, &SIZES)
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    if text == "0" {
        return Some(0);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, each) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || part.is_empty() || part.len() > 9 {
        return None;
    }
    let whole = u128::from(whole.parse::<u64>().ok()?) * u128::from(*each);
    let scale = 10u128.pow(u32::try_from(part.len()).ok()?);
    let part = u128::from(part.parse::<u64>().ok()?) * u128::from(*each);
    if part % scale != 0 {
        return None;
    }
    u64::try_from(whole + part / scale).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_and_sizes_read_as_written() {
        let table = [
            ("10s", Some(10_000)),
            ("250ms", Some(250)),
            ("1.5h", Some(5_400_000)),
            ("5 m", Some(300_000)),
            ("7d", Some(604_800_000)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("10", None),
            ("s", None),
            ("-1s", None),
            ("1.5ms", None),
            ("1.s", None),
            (".5s", None),
            ("1.2.3s", None),
            ("10 parsecs", None),
            ("", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
        ];
        for (text, want) in table {
            assert_eq!(parse_duration(text), want, "{text:?}");
        }
        let table = [
            ("64MiB", Some(64 << 20)),
            ("1.5GiB", Some(3 << 29)),
            ("512B", Some(512)),
            ("0", Some(0)),
            ("64MB", None),
            ("64", None),
            ("0.3B", None),
        ];
        for (text, want) in table {
            assert_eq!(parse_size(text), want, "{text:?}");
        }
        assert_eq!((duration(90_000), duration(0), size(1500)), ("90s".into(), "0s".into(), "1500B".into()));
    }

    proptest! {
        #[test]
        fn written_ones_read_back(value: u64) {
            prop_assert_eq!(parse_duration(&duration(value)), Some(value));
            prop_assert_eq!(parse_size(&size(value)), Some(value));
        }

        #[test]
        fn no_text_panics(text in "[0-9.]{0,30}[a-zA-Zé ]{0,4}|.*") {
            let _ = (parse_duration(&text), parse_size(&text));
        }
    }
}
