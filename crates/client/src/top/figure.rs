//! Numbers for narrow columns: never wider than they say, whatever the number.

/// A count or a rate in at most five characters: `0`, `9999`, `12.3k`, `4.56M`, `>999T`. A rate below 10 keeps one digit
/// behind the point, so that a slow loss is not shown as 0.
pub(crate) fn count(number: f64) -> String {
    if number > 0.0 && number < 9.95 && number.fract() != 0.0 {
        return format!("{:.1}", number.max(0.1));
    }
    scaled(number, 1000.0, 9999.5)
}

/// The same of something that may not be known.
pub(crate) fn rate(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), count)
}

/// A size with its unit, in binary steps: `0 B`, `1000 B`, `64.0 MiB`, `1.50 GiB`.
pub(crate) fn bytes(number: u64) -> String {
    let scaled = scaled(number as f64, 1024.0, 1023.5);
    match scaled.strip_suffix(['k', 'M', 'G', 'T']) {
        Some(figure) => {
            let unit = scaled[figure.len()..].to_uppercase();
            format!("{figure} {unit}iB")
        }
        None => format!("{scaled} B"),
    }
}

/// A share in at most four characters.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 1.0 {
        return "<1%".to_owned();
    }
    // Not rounded up: a queue that still has room is not full.
    format!("{:.0}%", percent.floor().clamp(0.0, 999.0))
}

/// An age in at most four characters: `0s`, `59s`, `59m`, `47h`, `999d`.
pub(crate) fn age(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", (seconds / 86_400).min(999)),
    }
}

/// Time of day, since a terminal that is looked at from elsewhere has no better zone: `14:03:22 UTC`.
pub fn time_of_day(unix_ms: u64) -> String {
    let second = unix_ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

fn scaled(number: f64, step: f64, plain_max: f64) -> String {
    if number < plain_max {
        return format!("{:.0}", number.max(0.0));
    }
    let mut scaled = number;
    for unit in ["k", "M", "G", "T"] {
        scaled /= step;
        // What rounding would make wider belongs to the next class.
        if scaled < 9.995 {
            return format!("{scaled:.2}{unit}");
        } else if scaled < 99.95 {
            return format!("{scaled:.1}{unit}");
        } else if scaled < 999.5 {
            return format!("{scaled:.0}{unit}");
        }
    }
    ">999T".to_owned()
}

#[test]
fn counts_keep_to_five_characters() {
    for (number, want) in [
        (0.0, "0"),
        (0.01, "0.1"),
        (0.5, "0.5"),
        (1.0, "1"),
        (9.9, "9.9"),
        (9.96, "10"),
        (999.9, "1000"),
        (9999.0, "9999"),
        (9999.5, "10.0k"),
        (12_345.0, "12.3k"),
        (99_949.0, "99.9k"),
        (99_950.0, "100k"),
        (999_499.0, "999k"),
        (999_500.0, "1.00M"),
        (1_234_567.0, "1.23M"),
        (2e12, "2.00T"),
        (u64::MAX as f64, ">999T"),
        (f64::INFINITY, ">999T"),
        (-3.0, "0"),
    ] {
        assert_eq!(count(number), want, "{number}");
    }
    for exponent in 0..64 {
        for number in [(1u64 << exponent) - 1, 1 << exponent, (1 << exponent) + 1] {
            assert!(count(number as f64).len() <= 5 && bytes(number).len() <= 9, "{number}");
            assert!(count(number as f64 / 7.0).len() <= 5, "{number} / 7");
        }
    }
}

#[test]
fn sizes_shares_and_ages_are_short() {
    for (number, want) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (67_108_864, "64.0 MiB"),
        (1 << 30, "1.00 GiB"),
        (1_048_000, "1.00 MiB"),
        (u64::MAX, ">999 TiB"),
    ] {
        assert_eq!(bytes(number), want, "{number}");
    }
    for (share, want) in
        [(0.0, "0%"), (0.0001, "<1%"), (0.01, "1%"), (0.999, "99%"), (1.0, "100%"), (70.0, "999%")]
    {
        assert_eq!(percent(share), want, "{share}");
    }
    for (seconds, want) in [
        (0.0, "0s"),
        (59.9, "59s"),
        (60.0, "1m"),
        (3599.0, "59m"),
        (3600.0, "1h"),
        (172_799.0, "47h"),
        (172_800.0, "2d"),
        (1e12, "999d"),
    ] {
        assert_eq!(age(seconds), want, "{seconds}");
    }
    assert_eq!(time_of_day(1_795_214_205_226), "22:36:45 UTC");
}
