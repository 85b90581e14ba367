//! Texts and numbers of spec statsd §2.3, §3.1, §4 and §8.4.

use proptest::prelude::*;

use super::*;

fn formatted(x: f64, write: fn(f64, &mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(x, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn texts_parse_as_in_javascript() {
    let table: &[(&str, f64)] = &[
        ("1", 1.0),
        ("-3", -3.0),
        ("+3", 3.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("5.e2", 500.0),
        ("1e3", 1000.0),
        ("1E-2", 0.01),
        ("1e+2", 100.0),
        ("007", 7.0),
        ("-0", -0.0),
        (" 5 ", 5.0),
        ("\t5", 5.0),
        ("5\r", 5.0),
        (" ", 0.0),
        ("\r\n\u{b}\u{c}", 0.0),
        ("\u{a0}7\u{feff}\u{2003}\u{3000}", 7.0),
        ("\u{2028}\u{1680}-7\u{202f}\u{205f}", -7.0),
        ("9007199254740993", 9_007_199_254_740_992.0),
        ("123456789012345", 123_456_789_012_345.0),
        ("1234567890123456", 1_234_567_890_123_456.0),
        ("0x10", 16.0),
        ("0XfF", 255.0),
        ("0b11", 3.0),
        ("0B0", 0.0),
        ("0o17", 15.0),
        ("0O7", 7.0),
        (" 0x1 ", 1.0),
        ("0x20000000000001", 9_007_199_254_740_992.0),
        ("0x20000000000003", 9_007_199_254_740_996.0),
        ("0x200000000000010000000000000001", 2_f64.powi(117) + 2_f64.powi(65)),
        ("Infinity", f64::INFINITY),
        ("+Infinity", f64::INFINITY),
        ("-Infinity", f64::NEG_INFINITY),
        ("1e400", f64::INFINITY),
        ("-1e400", f64::NEG_INFINITY),
        ("1e99999999999999999999", f64::INFINITY),
        ("1e-400", 0.0),
        ("5e-324", 5e-324),
        ("1.7976931348623157e308", f64::MAX),
    ];
    for (text, want) in table {
        let got = js_parse(text.as_bytes()).map(f64::to_bits);
        assert_eq!(got, Some(want.to_bits()), "{text:?}");
    }
}

#[test]
fn invalid_numbers_are_rejected() {
    let table: &[&[u8]] = &[
        b"",
        b"NaN",
        b"nan",
        b"inf",
        b"infinity",
        b"INFINITY",
        b"1,5",
        b"1_000",
        b"--1",
        b"+-1",
        b"1e",
        b"1e+",
        b"4f",
        b"+",
        b"-",
        b".",
        b"-.",
        b"e5",
        b".e5",
        b"1.2.3",
        b"1e5.5",
        b"1 2",
        b"-0x10",
        b"+0b1",
        b"0x",
        b"0b",
        b"0b2",
        b"0o8",
        b"0xg",
        b"0x1.8",
        b"Infinity1",
        b"- 1",
        b"1n",
        b"\xff",
        b"1\xff",
        b"\xc2",
        b"\xe2\x80",
        "\u{200b}1".as_bytes(),
        "\u{180e}1".as_bytes(),
        b"1;2",
    ];
    for text in table {
        assert_eq!(js_parse(text), None, "{:?}", String::from_utf8_lossy(text));
    }
}

#[test]
fn a_long_integer_in_radix_2_rounds_ties_to_even_and_overflows_to_infinity() {
    // 2^53 + 1 is a tie; one more bit at the end decides it.
    let tie = format!("0b1{}1{}", "0".repeat(52), "0".repeat(100));
    let above = format!("0b1{}1{}1", "0".repeat(52), "0".repeat(99));
    assert_eq!(js_parse(tie.as_bytes()), Some(2_f64.powi(153)));
    assert_eq!(js_parse(above.as_bytes()), Some(2_f64.powi(153) + 2_f64.powi(101)));
    let (largest, over) = (format!("0x1{}", "0".repeat(255)), format!("0x1{}", "0".repeat(256)));
    assert_eq!(js_parse(largest.as_bytes()), Some(2_f64.powi(1020)));
    assert_eq!(js_parse(over.as_bytes()), Some(f64::INFINITY));
    assert_eq!(js_parse(format!("0x{}", "f".repeat(100_000)).as_bytes()), Some(f64::INFINITY));
    assert_eq!(js_parse(format!("0x{}1", "0".repeat(100_000)).as_bytes()), Some(1.0));
}

#[test]
fn numbers_format_as_in_javascript() {
    let table: &[(f64, &str)] = &[
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-17.0, "-17"),
        (3.5, "3.5"),
        (-0.5, "-0.5"),
        (0.1, "0.1"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1.0 / 3.0, "0.3333333333333333"),
        (10.0 / 3.0, "3.3333333333333335"),
        (164.696_690_920_006_03, "164.69669092000603"),
        (0.000001, "0.000001"),
        (-0.000001, "-0.000001"),
        (0.00012, "0.00012"),
        (0.0000015, "0.0000015"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (9007199254740991.0, "9007199254740991"),
        (9007199254740993.0, "9007199254740992"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (-1.5e300, "-1.5e+300"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (999999999.999999, "999999999.999999"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "Infinity"),
        (f64::NEG_INFINITY, "-Infinity"),
    ];
    for (x, want) in table {
        assert_eq!(formatted(*x, js_format), *want);
    }
}

#[test]
fn numbers_format_as_in_perl() {
    let table: &[(f64, &str, &str)] = &[
        (0.0, "0.000000", "0"),
        (-0.0, "-0.000000", "0"),
        (3.5, "3.500000", "3"),
        (-3.999_999_9, "-4.000000", "-3"),
        (-0.5, "-0.500000", "0"),
        (-0.000_000_1, "-0.000000", "0"),
        (0.0078125, "0.007812", "0"),
        (0.0234375, "0.023438", "0"),
        (12.0, "12.000000", "12"),
        (1e22, "10000000000000000000000.000000", "10000000000000000000000"),
        (9007199254740993.5, "9007199254740994.000000", "9007199254740994"),
        (-1e19, "-10000000000000000000.000000", "-10000000000000000000"),
    ];
    for (x, fixed, whole) in table {
        assert_eq!(formatted(*x, fixed6), *fixed);
        assert_eq!(formatted(*x, truncated), *whole);
    }
}

proptest! {
    #[test]
    fn formatted_numbers_parse_back(bits in any::<u64>()) {
        let x = f64::from_bits(bits);
        prop_assume!(x.is_finite() && bits != (-0.0_f64).to_bits());
        let text = formatted(x, js_format);
        prop_assert_eq!(js_parse(text.as_bytes()).map(f64::to_bits), Some(bits), "{}", text);
    }

    #[test]
    fn short_decimals_format_as_the_general_algorithm_does(
        digits in -10_000_000_000_000_i64..10_000_000_000_000, decimals in 0..9,
    ) {
        let x = digits as f64 / 10_f64.powi(decimals);
        let mut general = ryu_js::Buffer::new();
        prop_assert_eq!(formatted(x, js_format), general.format(x));
        let near = f64::from_bits(x.to_bits() ^ 1);
        prop_assert_eq!(formatted(near, js_format), general.format(near));
    }

    #[test]
    fn doubles_match_the_standard_library(
        whole in "[0-9]{1,40}", fraction in "(\\.[0-9]{0,40})?", exponent in proptest::option::of(-350..350),
        bits in any::<u64>(), decimals in 0..60_usize,
    ) {
        // Random digits, and digits of a double: near to it or, with many digits, near to the midpoint of two doubles.
        let near = format!("{:.decimals$e}", f64::from_bits(bits & !(1 << 63)));
        let exponent = exponent.map_or_else(String::new, |exponent| format!("e{exponent}"));
        for text in [format!("{whole}{fraction}{exponent}"), near] {
            let want = text.parse::<f64>().ok().filter(|_| text != "inf" && text != "NaN");
            prop_assume!(want.is_some());
            prop_assert_eq!(double(text.as_bytes()).map(f64::to_bits), want.map(f64::to_bits), "{}", text);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in proptest::collection::vec(any::<u8>(), 0..24)) {
        let _ = js_parse(&text);
    }

    #[test]
    fn decimal_texts_agree_with_the_standard_library(text in "[+-]?[0-9]{0,20}(\\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?") {
        let want = text.parse::<f64>().ok().map(f64::to_bits);
        prop_assert_eq!(js_parse(text.as_bytes()).map(f64::to_bits), want);
    }
}
