//! Durations and sizes as text: exact in both directions.

/// A quantity with a unit.
#[derive(Debug, PartialEq)]
pub struct Quantity {
    /// Units with their values, the smallest first.
    units: [(&'static str, u64); 5],
    /// The unit after 0, and the suggestion for a number without a unit.
    pub(crate) usual: &'static str,
    /// The quantity in words: `a duration such as "10s"`.
    pub(crate) wanted: &'static str,
}

/// Time, in milliseconds.
pub const DURATION: Quantity = Quantity {
    units: [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)],
    usual: "s",
    wanted: "a duration such as \"10s\"",
};

/// Memory, in bytes.
pub const SIZE: Quantity = Quantity {
    units: [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)],
    usual: "B",
    wanted: "a size such as \"64MiB\"",
};

/// Milliseconds as the shortest exact text: `10s`, `90s`, `250ms`.
pub fn duration(ms: u64) -> String {
    DURATION.text(ms)
}

/// Bytes as the shortest exact text: `64MiB`, `1500B`.
pub fn size(bytes: u64) -> String {
    SIZE.text(bytes)
}

/// Milliseconds of `10s`, `250ms`, `1.5h`, `0`. `None` when it is not a duration, is not a whole number of
/// milliseconds, or does not fit.
pub fn parse_duration(text: &str) -> Option<u64> {
    DURATION.parse(text)
}

/// Bytes of `64MiB`, `512B`, `0`. Decimal units and bare numbers other than 0 are rejected, because they are ambiguous.
pub fn parse_size(text: &str) -> Option<u64> {
    SIZE.parse(text)
}

impl Quantity {
    /// The names of its units, the smallest first.
    pub(crate) fn units(&self) -> [&'static str; 5] {
        self.units.map(|(name, _)| name)
    }

    pub(crate) fn text(&self, value: u64) -> String {
        if value == 0 {
            return format!("0{}", self.usual);
        }
        let unit = self.units.iter().rev().find(|(_, each)| value.is_multiple_of(*each));
        let (unit, each) = unit.expect("every whole number is a multiple of the smallest unit, 1");
        format!("{}{unit}", value / each)
    }

    pub(crate) fn parse(&self, text: &str) -> Option<u64> {
        let text = text.trim();
        if text == "0" {
            return Some(0);
        }
        let (number, unit) = number_and_unit(text);
        let (_, each) = self.units.iter().find(|(name, _)| *name == unit)?;
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
}

/// `1.5` and `h` of `1.5 h`.
pub(crate) fn number_and_unit(text: &str) -> (&str, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number, unit.trim_start())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_and_sizes_are_parsed_exactly() {
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
        fn written_quantities_read_back(value: u64) {
            prop_assert_eq!(parse_duration(&duration(value)), Some(value));
            prop_assert_eq!(parse_size(&size(value)), Some(value));
        }

        #[test]
        fn no_text_panics(text in "[0-9.]{0,30}[a-zA-Zé ]{0,4}|.*") {
            let _ = (parse_duration(&text), parse_size(&text));
        }
    }
}
