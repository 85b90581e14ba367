//! The spec's tables of vectors (graphite §1.1, §1.1.2, §1.1.4), and the result of the same line in the four modes.

use model::{Reject, Span};
use proptest::prelude::*;

use super::super::{Compatibility, Kept, Options, Parsed, Reader, reference};

const NOW_S: u64 = 1_700_000_099;

fn parse(options: Options, packet: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    Reader::new(options, 1).packet(packet, Span::new(0, packet.len()), NOW_S, &mut parsed);
    parsed
}

/// The resulting line, or the word of the reason.
fn one(options: Options, line: &[u8]) -> String {
    reference::compare(options, line);
    let parsed = parse(options, line);
    match (parsed.first_reject, &parsed.points[..]) {
        (Some((why, _)), []) => why.word().to_owned(),
        (None, [point]) => String::from_utf8_lossy(point.line.of(&parsed.bytes)).into_owned(),
        _ => panic!("{}: {parsed:?}", line.escape_ascii()),
    }
}

#[test]
fn lines_are_sanitised_as_in_carbon_c_relay() {
    let table: &[(&[u8], &str)] = &[
        (b"a.b 1 2", "a.b 1 2"),
        (b"..a..b. 1 2", "a.b 1 2"),
        (b"  a.b   1    2", "a.b 1 2"),
        (b"a\t1\t2", "a 1 2"),
        (b"a.b 1", "a.b 1"),
        (b"a.b ", "a.b "),
        (b"a.b", "no_value"),
        (b"a/b+c d 2", "a_b_c d 2"),
        (b"caf\xc3\xa9 1 2", "caf__ 1 2"),
        // Dots after the name are the value's, which the original program corrupts: `a b 1 2`, `a b. 2`, `a 5 2`, `a
        // 1.5 2`.
        (b"a . b 1 2", "a . b 1 2"),
        (b"a b.. 2", "a b.. 2"),
        (b"a .5 2", "a .5 2"),
        (b"a 1..5 2", "a 1..5 2"),
        (b"a.;t=1  2 3", "a.;t=1  2 3"),
        (b"a;t=x/y 1 2", "a;t=x/y 1 2"),
        (b"a;t=x", "no_value"),
        (b";t=x 1 2", "no_name"),
        (b"\0 1 2", "_ 1 2"),
        (b"...", "no_name"),
        (b" \t.", "no_name"),
        (b"a-b_c:d#e 1 2", "a-b_c:d#e 1 2"),
        (b"some.name.with.dots.. 1 2", "some.name.with.dots 1 2"),
    ];
    for (line, want) in table {
        assert_eq!(one(Options::of(Compatibility::CRelay), line), *want, "{}", line.escape_ascii());
    }
    let kept = Options { kept: Kept::new(b";/"), ..Options::of(Compatibility::CRelay) };
    assert_eq!(one(kept, b"a/b;c=d_e 1 2"), "a/b;c_d_e 1 2");
    assert_eq!(one(kept, b"some-name.that.is.long 1 2"), "some_name.that.is.long 1 2", "`-c` replaces");
}

#[test]
fn c_relay_mode_ends_lines_at_cr_and_ignores_empty_lines() {
    let options = Options::of(Compatibility::CRelay);
    let packet = b"a 1 2\r\nb 1 2\rc 1 2\r\r\n\nd 1 2";
    reference::compare(options, packet);
    let parsed = parse(options, packet);
    assert_eq!(parsed.bytes, b"a 1 2\nb 1 2\nc 1 2\nd 1 2\n");
    assert_eq!((parsed.lines, parsed.rejected()), (4, 0));
}

#[test]
fn the_compatibility_modes_differ_as_the_original_programs_do() {
    let all =
        |line: &str| Compatibility::ALL.map(|compatibility| one(Options::of(compatibility), line.as_bytes()));
    // line; strict, carbon, c-relay, go-carbon
    let table: &[(&str, [&str; 4])] = &[
        ("a.b 1 2", ["a.b 1 2"; 4]),
        ("a.b 1 2\r", ["a.b 1 2"; 4]),
        ("a.b\t1\t2", ["a.b 1 2", "a.b 1 2", "a.b 1 2", "no_value"]),
        ("a.b  1   2", ["a.b 1 2", "a.b 1 2", "a.b 1 2", "no_value"]),
        (" a 1 2 ", ["a 1 2", "a 1 2", "a 1 2 ", "no_name"]),
        ("a 1", ["no_timestamp", "no_timestamp", "a 1", "no_timestamp"]),
        ("a", ["no_value"; 4]),
        ("a 1 2 3", ["too_many_fields", "too_many_fields", "a 1 2 3", "too_many_fields"]),
        ("a x 2", ["bad_value", "bad_value", "a x 2", "bad_value"]),
        ("a 1_0 2", ["bad_value", "bad_value", "a 1_0 2", "bad_value"]),
        ("a 0x10 2", ["bad_value", "bad_value", "a 0x10 2", "bad_value"]),
        ("a NaN 2", ["non_finite", "non_finite", "a NaN 2", "non_finite"]),
        ("a inf 2", ["non_finite", "a inf 2", "a inf 2", "a inf 2"]),
        ("a -Infinity 2", ["non_finite", "a -Infinity 2", "a -Infinity 2", "a -Infinity 2"]),
        ("a 1e999 2", ["non_finite", "a 1e999 2", "a 1e999 2", "non_finite"]),
        ("a 1.50 2", ["a 1.50 2"; 4]),
        ("a .5 2", ["a .5 2"; 4]),
        ("a +1e-3 2", ["a +1e-3 2"; 4]),
        ("a 1 -1", ["a 1 1700000099", "a 1 1700000099", "a 1 -1", "a 1 -1"]),
        ("a 1 -1.7", ["a 1 1700000099", "a 1 1700000099", "a 1 -1.7", "a 1 -1.7"]),
        ("a 1 -2", ["bad_timestamp", "a 1 -2", "a 1 -2", "a 1 -2"]),
        ("a 1 N", ["bad_timestamp", "bad_timestamp", "a 1 N", "bad_timestamp"]),
        ("a 1 1.7e9", ["a 1 1.7e9"; 4]),
        ("a 1 1700000000.25", ["a 1 1700000000.25"; 4]),
        ("..a..b. 1 2", ["a.b 1 2"; 4]),
        ("... 1 2", ["no_name", "no_name", "1 2", "no_name"]),
        ("a/b%c 1 2", ["a/b%c 1 2", "a/b%c 1 2", "a_b_c 1 2", "a/b%c 1 2"]),
        ("a\u{1}b 1 2", ["bad_name", "bad_name", "a_b 1 2", "bad_name"]),
        ("a\u{b}1 2", ["no_timestamp", "a 1 2", "a_1 2", "no_timestamp"]),
        ("caf\u{e9} 1 2", ["caf\u{e9} 1 2", "caf\u{e9} 1 2", "caf__ 1 2", "caf\u{e9} 1 2"]),
        ("a\u{a0}b 1 2", ["bad_name", "too_many_fields", "a__b 1 2", "a\u{a0}b 1 2"]),
        ("a;b=2;a=1 1 2", ["a;a=1;b=2 1 2", "a;a=1;b=2 1 2", "a;b=2;a=1 1 2", "a;a=1;b=2 1 2"]),
    ];
    for (line, want) in table {
        assert_eq!(all(line), *want, "{line:?}");
    }
    let bytes = b"a\xff 1 2";
    let got = Compatibility::ALL.map(|compatibility| one(Options::of(compatibility), bytes));
    assert_eq!(got, ["not_utf8", "not_utf8", "a_ 1 2", "a\u{fffd} 1 2"]);
}

#[test]
fn a_missing_time_is_now_if_the_option_is_set() {
    for compatibility in [Compatibility::Strict, Compatibility::Carbon, Compatibility::GoCarbon] {
        let options = Options { missing_time_is_now: true, ..Options::of(compatibility) };
        assert_eq!(one(options, b"some.name.of.a.series 1"), "some.name.of.a.series 1 1700000099");
        assert_eq!(one(options, b"some.name.of.a.series"), "no_value");
    }
}

#[test]
fn tags_are_validated_and_sorted() {
    let table: &[(&str, &str)] = &[
        ("a;t=v", "a;t=v"),
        ("a;b=2;a=1", "a;a=1;b=2"),
        ("a;t=1;t=2", "a;t=2"),
        ("a;t=1;u=3;t=2", "a;t=2;u=3"),
        ("a;a-b=1;a=2", "a;a-b=1;a=2"),
        ("a;name=x;b=1", "a;b=1"),
        ("a;t=v=w", "a;t=v=w"),
        ("~a;t=v", "a;t=v"),
        ("~a", "~a"),
        (".~..a.;t=v", "a;t=v"),
        ("~;t=v", "no_name"),
        (";t=v", "no_name"),
        ("a;", "bad_tag"),
        ("a;t", "bad_tag"),
        ("a;=v", "bad_tag"),
        ("a;t=", "bad_tag"),
        ("a;t!=v", "bad_tag"),
        ("a;t^=v", "bad_tag"),
        ("a;t=~v", "bad_tag"),
        ("a;t=v;", "bad_tag"),
        ("a{t=\"v\"}", "a;t=v"),
        ("a{u=\"2\",t=\"v\"}", "a;t=v;u=2"),
        ("a{t=\"v\",}", "a{t=\"v\",}"),
        (r#"a{t="x\"y\\z"}"#, r#"a;t=x"y\z"#),
        (r#"a{t="x\y"}"#, "bad_tag"),
        (r#"a{t="x;y"}"#, "bad_tag"),
        (r#"a{t="x}"#, "a{t=\"x}"),
        (r#"a;b=c{t="x"}"#, "bad_tag"),
        (r#"a;b{t="x"}"#, "bad_tag"),
        (r#"{t="x"}"#, "no_name"),
        (r#"a{t="x"u="y"}"#, "bad_tag"),
        (r#"a{t="{"}"#, "bad_tag"),
        (r#"a;z="};b={"#, "bad_tag"),
    ];
    for (name, want) in table {
        let want = if want.contains('_') { (*want).to_owned() } else { format!("{want} 1 2") };
        for compatibility in [Compatibility::Strict, Compatibility::Carbon, Compatibility::GoCarbon] {
            assert_eq!(one(Options::of(compatibility), format!("{name} 1 2").as_bytes()), want, "{name}");
        }
    }
}

#[test]
fn a_name_at_the_limit_is_accepted_and_one_byte_more_is_not() {
    for compatibility in Compatibility::ALL {
        let options = Options { name_bytes_max: 10, ..Options::of(compatibility) };
        assert_eq!(one(options, b"abcdefghij 1 1700000000"), "abcdefghij 1 1700000000");
        assert_eq!(one(options, b"abcdefghijk 1 1700000000"), "name_too_long");
        assert_eq!(
            one(options, b"..abcde..fghi;k=v 1 1"),
            "abcde.fghi;k=v 1 1",
            "the limit is for the final form without tags"
        );
        assert_eq!(one(options, b"..abcde..fghij;k=v 1 1"), "name_too_long");
    }
}

#[test]
fn valid_lines_are_copied_without_gaps_where_invalid_ones_were() {
    let good = "some.metric.number1 1 1700000000\nsome.metric.number2 -2.5 1700000000\n";
    let packet = format!("{good}bad\n{good}..dotted. 1 1700000000\n{good}some.metric.number3 3 1700000000");
    let parsed = parse(Options::of(Compatibility::Strict), packet.as_bytes());
    let want = format!("{good}{good}dotted 1 1700000000\n{good}some.metric.number3 3 1700000000\n");
    assert_eq!(String::from_utf8_lossy(&parsed.bytes), want);
    assert_eq!((parsed.points.len(), parsed.lines, parsed.rejects[Reject::NoValue.index()]), (8, 9, 1));
    let (why, line) = parsed.first_reject.expect("one line is bad");
    assert_eq!((why, line.of(packet.as_bytes())), (Reject::NoValue, &b"bad"[..]));
    let names: Vec<_> = parsed.points.iter().map(|point| point.name(&parsed.bytes)).collect();
    assert_eq!((names[4], names[7]), (&b"dotted"[..], &b"some.metric.number3"[..]));
}

/// Bytes that occur in lines, and some that do not.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[a-z0-9.]{1,12}",
        2 => "[ .;={}\"\\\\~\t\r,]{1,3}",
        2 => "-?[0-9]{1,4}\\.?[0-9]{0,3} 1[0-9]{9}",
        2 => Just(" 1 1700000000\n".to_owned()),
        1 => Just(" -1\n".to_owned()),
        1 => "[-+]?(inf|nan|Infinity|1e5|1e999|\\.|N)",
        1 => "[\u{a0}\u{e9}\u{2003}\u{85}\u{1c}\u{1f}\0/_:#-]",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn any_text_parses_as_in_the_reference(mut packet in text(), damage in any::<(usize, u8, bool)>()) {
        let (at, byte, damaged) = damage;
        if damaged && !packet.is_empty() {
            let at = at % packet.len();
            packet[at] = byte;
        }
        for options in reference::settings() {
            reference::compare(options, &packet);
        }
    }
}
