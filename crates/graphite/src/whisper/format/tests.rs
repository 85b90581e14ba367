//! Headers, layouts and retentions as the original has them, and each of their mistakes.

use std::ops::Range;

use super::*;

fn plan(step: u32, points: u32) -> ArchivePlan {
    ArchivePlan { step, points }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn header(archives: &[ArchivePlan]) -> Header {
    let layout = Layout::new(archives).expect("valid archives");
    Header::new(&layout, AggregationMethod::Average, 0.5).expect("a valid factor")
}

#[test]
fn retentions_are_read_as_the_original_reads_them() {
    let table = [
        ("60s:1d", plan(60, 1440)),
        ("1min:5years", plan(60, 2_628_000)),
        ("60:1440", plan(60, 1440)),
        ("60:1d", plan(60, 1440)),
        (" 60:1440 ", plan(60, 1440)),
        ("7s:1m", plan(7, 8)),
        ("1w:1y", plan(604_800, 52)),
        ("1h:4294967295", plan(3600, u32::MAX)),
    ];
    for (text, want) in table {
        assert_eq!(parse_retention(text), Ok(want), "{text:?}");
    }
    assert_eq!(parse_retentions("10s:6h, 1m:7d"), Ok(vec![plan(10, 2160), plan(60, 10_080)]));
}

#[test]
fn mistakes_in_retentions_have_a_place_and_a_reason() {
    let table: &[(&str, Range<usize>, RetentionFault)] = &[
        ("", 0..0, RetentionFault::NoColon),
        ("60", 0..2, RetentionFault::NoColon),
        ("60s:1d, 60", 8..10, RetentionFault::NoColon),
        ("60s:1d,", 7..7, RetentionFault::NoColon),
        ("60 : 1440", 0..3, RetentionFault::NotANumber),
        ("60:", 3..3, RetentionFault::NotANumber),
        (":5", 0..0, RetentionFault::NotANumber),
        ("60:1440:5", 3..9, RetentionFault::NotANumber),
        ("1S:1d", 0..2, RetentionFault::NotANumber),
        ("-1:5", 0..2, RetentionFault::NotANumber),
        ("1.5m:1d", 0..4, RetentionFault::NotANumber),
        ("1mo:1y", 0..3, RetentionFault::Unit),
        ("1minuteses:1d", 0..10, RetentionFault::Unit),
        ("60s:1440x", 4..9, RetentionFault::Unit),
        ("0:5", 0..1, RetentionFault::ZeroStep),
        ("0s:1d", 0..2, RetentionFault::ZeroStep),
        ("60:0", 3..4, RetentionFault::NoPoints),
        ("60s:30s", 4..7, RetentionFault::NoPoints),
        ("1s:5000000000", 3..13, RetentionFault::TooLarge),
        ("5000000000:1", 0..10, RetentionFault::TooLarge),
        ("99999999999999999999:1", 0..20, RetentionFault::TooLarge),
        ("99999999999999999y:1", 0..18, RetentionFault::TooLarge),
    ];
    for (text, at, fault) in table {
        assert_eq!(parse_retentions(text), Err(RetentionError { at: at.clone(), fault: *fault }), "{text:?}");
    }
    let longest = format!("60:1{}", " ".repeat(RETENTION_BYTES_MAX - 4));
    assert_eq!(parse_retentions(&longest), Ok(vec![plan(60, 1)]));
    let error = parse_retentions(&format!("{longest} ")).expect_err("a byte too long");
    assert_eq!(error.fault, RetentionFault::TextTooLong);
}

#[test]
fn archives_keep_the_rules_of_the_original() {
    let (fine, coarse) = (plan(60, 10), plan(300, 2));
    let table: &[(&[ArchivePlan], LayoutError)] = &[
        (&[], LayoutError::NoArchive),
        (&[plan(60, 0)], LayoutError::Zero { archive: plan(60, 0) }),
        (&[plan(0, 60)], LayoutError::Zero { archive: plan(0, 60) }),
        (&[coarse, fine], LayoutError::NotLonger { fine, coarse }),
        (&[plan(60, 4), plan(300, 9)], LayoutError::TooFewPoints { fine: plan(60, 4), coarse: plan(300, 9) }),
        (&[fine, plan(60, 20)], LayoutError::SameStep { fine, coarse: plan(60, 20) }),
        (&[fine, plan(90, 20)], LayoutError::NotMultiple { fine, coarse: plan(90, 20) }),
        (&[plan(60, 1 << 30)], LayoutError::TooLong { archive: plan(60, 1 << 30) }),
        (&[plan(2, 1 << 31)], LayoutError::TooLong { archive: plan(2, 1 << 31) }),
        (&[plan(1, 1 << 30)], LayoutError::TooLarge { bytes: 28 + 12 * (1 << 30) }),
        (&[fine; ARCHIVES_MAX + 1], LayoutError::TooManyArchives { archives: ARCHIVES_MAX + 1 }),
    ];
    for (archives, want) in table {
        assert_eq!(Layout::new(archives), Err(*want), "{archives:?}");
    }
    let layout = Layout::new(&[plan(300, 3), plan(60, 5)]).expect("five points are enough");
    assert_eq!((layout.to_string().as_str(), layout.file_bytes()), ("60:5,300:3", 16 + 24 + 8 * 12));
    let points = u32::try_from((FILE_BYTES_MAX - 28) / POINT_BYTES).expect("it fits");
    assert!(Layout::new(&[plan(1, points)]).is_ok());
    assert!(matches!(Layout::new(&[plan(1, points + 1)]), Err(LayoutError::TooLarge { .. })));
}

#[test]
fn archives_in_units_are_read_as_the_same_archives() {
    for (archive, want) in [
        (plan(10, 2160), "10s:6h"),
        (plan(60, 10_080), "1m:7d"),
        (plan(600, 262_800), "10m:5y"),
        (plan(90, 1), "90s:90s"),
        (plan(86_400, 365), "1d:1y"),
        (plan(u32::MAX, 1), "4294967295s:4294967295s"),
    ] {
        assert_eq!(archive.in_units(), want);
        assert_eq!(parse_retention(want), Ok(archive));
    }
    assert_eq!((plan(0, 5).in_units(), plan(60, 0).in_units()), ("0:5".to_owned(), "60:0".to_owned()));
    let wrong = parse_retentions("10s:6h,15s:7d").map(|archives| Layout::new(&archives));
    let wrong = wrong.expect("it can be read").expect_err("15 is no multiple of 10");
    assert_eq!(wrong.to_string(), "15s is not a multiple of 10s (archives `10s:6h` and `15s:7d`)");
    let wrong = parse_retentions("10s:6h,1q:7d").expect_err("no unit");
    assert!(wrong.to_string().ends_with("(column 8)"), "{wrong}");
}

#[test]
fn as_many_archives_as_the_rules_allow() {
    let archives: Vec<_> = (0..31).map(|power| plan(1 << power, if power < 30 { 2 } else { 3 })).collect();
    // Each covers twice as long as the one before.
    assert!(Layout::new(&archives).is_ok());
}

#[test]
fn a_header_is_that_of_the_original() {
    let header = header(&[plan(1, 6), plan(3, 4)]);
    let bytes = header.to_bytes();
    // Spec graphite §5.8 A.
    assert_eq!(
        hex(&bytes),
        "000000010000000c3f00000000000002000000280000000100000006000000700000000300000004"
    );
    assert_eq!((header.file_bytes(), header.retention()), (160, 12));
    assert_eq!(Header::parse(&bytes, 160), Ok(header.clone()));
    assert_eq!(Header::parse(&bytes, 161), Ok(header), "bytes behind the archives are ignored");
}

#[test]
fn each_damage_of_a_header_has_a_name() {
    let good = header(&[plan(1, 6), plan(3, 4)]).to_bytes();
    let with = |at: usize, word: u32| {
        let mut bytes = good.clone();
        bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
        bytes
    };
    let nan = f32::NAN.to_bits();
    let layout = Damage::Layout;
    let table: &[(Vec<u8>, u64, Damage)] = &[
        (Vec::new(), 0, Damage::Empty),
        (vec![0; 100], 100, Damage::Zeros),
        (good[..15].to_vec(), 15, Damage::HeaderShort { bytes: 15, needed: 16 }),
        (good[..39].to_vec(), 39, Damage::HeaderShort { bytes: 39, needed: 40 }),
        (b"whisper_compressed..........".to_vec(), 160, Damage::Compressed),
        (with(0, 0), 160, Damage::Method { number: 0 }),
        (with(0, 9), 160, Damage::Method { number: 9 }),
        (with(8, nan), 160, Damage::XFilesFactor { bits: nan }),
        (with(8, 1.5f32.to_bits()), 160, Damage::XFilesFactor { bits: 1.5f32.to_bits() }),
        (with(12, 0), 160, layout(LayoutError::NoArchive)),
        (with(12, 33), 160, Damage::TooManyArchives { archives: 33 }),
        (with(12, u32::MAX), 160, Damage::TooManyArchives { archives: u32::MAX }),
        (with(16, 39), 160, Damage::Overlap { archive: 0, offset: 39, free: 40 }),
        (with(28, 111), 160, Damage::Overlap { archive: 1, offset: 111, free: 112 }),
        (with(28, u32::MAX), 160, Damage::Truncated { bytes: 160, needed: u64::from(u32::MAX) + 48 }),
        (good.clone(), 159, Damage::Truncated { bytes: 159, needed: 160 }),
        (with(20, 0), 160, layout(LayoutError::Zero { archive: plan(0, 6) })),
        (with(20, 4), 160, layout(LayoutError::NotMultiple { fine: plan(4, 6), coarse: plan(3, 4) })),
    ];
    for (bytes, size, want) in table {
        assert_eq!(Header::parse(bytes, *size), Err(*want), "{}", hex(bytes));
        assert!(!want.to_string().is_empty());
    }
    let behind = with(28, 113);
    assert!(Header::parse(&behind, 161).is_ok(), "a gap between archives");
    let longer = Header::parse(&with(4, 1000), 160).expect("the original takes any number");
    assert_eq!((longer.max_retention, longer.retention()), (1000, 12));
    assert_eq!(longer.to_bytes(), with(4, 1000));
}

#[test]
fn methods_have_numbers_and_names() {
    for (index, method) in AggregationMethod::ALL.into_iter().enumerate() {
        assert_eq!(method.number() as usize, index + 1);
        assert_eq!(AggregationMethod::of_number(method.number()), Some(method));
        assert_eq!(AggregationMethod::of_name(method.name()), Some(method));
    }
    assert_eq!(AggregationMethod::of_name("avg"), None);
}

#[test]
fn aggregates_are_those_of_the_original() {
    // Spec graphite §5.8 E: the values of five slots, two of them unknown.
    let of = |method, values: &[f64], slots| {
        let mut fold = Fold::new(method);
        values.iter().for_each(|value| fold.add(*value));
        fold.value(slots)
    };
    let values = [-7.0, 3.0, 5.0];
    let wants = [1.0 / 3.0, 1.0, 5.0, 5.0, -7.0, 0.2, -7.0, 3.0];
    for (method, want) in AggregationMethod::ALL.into_iter().zip(wants) {
        assert_eq!(of(method, &values, 5), Some(want), "{method}");
        assert_eq!(of(method, &[], 5), None, "{method}");
    }
    let nan_first = of(AggregationMethod::Max, &[f64::NAN, 1.0], 2);
    assert!(nan_first.is_some_and(f64::is_nan), "as in Python");
    assert_eq!(of(AggregationMethod::Max, &[1.0, f64::NAN], 2), Some(1.0));
    assert_eq!(of(AggregationMethod::AbsMax, &[-3.0, 3.0], 2), Some(-3.0), "the oldest of equal ones");
}

#[test]
fn three_of_five_are_less_than_the_factor_of_32_bits() {
    // Spec graphite §5.8 F.
    let mut fold = Fold::new(AggregationMethod::Sum);
    for (value, want) in [(1.0, None), (2.0, None), (3.0, None), (4.0, Some(10.0)), (5.0, Some(15.0))] {
        fold.add(value);
        assert_eq!(fold.value_if_enough(5, 0.6), want);
    }
}
