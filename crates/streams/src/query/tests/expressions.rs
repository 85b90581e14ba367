use super::super::limits::{BACKTRACKING_BYTES_MAX, PATTERN_BYTES_MAX, SEARCHED_BYTES_MAX};
use super::super::{Like, Meter, Pattern, ast};

#[test]
fn like_is_anchored_and_stays_within_lines() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("", &[""], &["a", "\n"]),
        ("%", &["", "a", "ab"], &["a\nb", "a\u{2028}b"]),
        ("a%", &["a", "ab", "a%"], &["ba", "a\n", ""]),
        ("%b", &["b", "ab"], &["ba", "\nb"]),
        ("a%a", &["aa", "aba"], &["a"]),
        ("ab%ba", &["abba", "abxba"], &["aba"]),
        ("%a%", &["a", "xax"], &["x", ""]),
        ("%a%b%", &["ab", "xaxbx"], &["ba"]),
        ("a%b%c", &["abc", "abbc", "a b c"], &["acb", "ac"]),
        ("%ab%ab%", &["abab"], &["aba"]),
        ("%aa%", &["baa"], &["aba"]),
        ("a%%b", &["ab", "axb"], &["a"]),
        ("a_b", &["a_b"], &["axb"]),
        ("a.b", &["a.b"], &["axb"]),
        ("a\nb", &["a\nb"], &["ab", "a\rb"]),
        ("a%\n%b", &["a\nb", "ax\nxb"], &["ab", "a\n\nb"]),
        ("é%é", &["éé", "éxé"], &["é"]),
    ];
    for (pattern, matching, others) in table {
        let like = Like::new(&(*pattern).into());
        for text in *matching {
            assert!(like.matches(text, &mut Meter::default()), "{text:?} =~ {pattern:?}");
            assert!(text.starts_with(like.prefix()), "{text:?} begins with the prefix of {pattern:?}");
        }
        for text in *others {
            assert!(!like.matches(text, &mut Meter::default()), "not {text:?} =~ {pattern:?}");
        }
    }
}

#[test]
fn regular_expressions_have_the_meaning_of_java() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("", &["", "a"], &[]),
        ("b", &["abc"], &["ac"]),
        ("^b", &["bc"], &["ab"]),
        ("b$", &["ab", "ab\n", "ab\r\n"], &["ba", "ab\n\n"]),
        ("b\\Z", &["ab\n"], &["b\n\n"]),
        ("b\\z", &["ab"], &["ab\n"]),
        ("^\\d+$", &["12"], &["١٢", "a"]),
        ("^\\w$", &["a", "_"], &["é"]),
        ("^[\\w-]+$", &["a-b"], &["a b"]),
        ("^[^\\d]$", &["a"], &["1"]),
        ("a.b", &["axb", "aéb"], &["a\nb", "a\rb", "a\u{2028}b"]),
        ("(?s)a.b", &["a\nb"], &["ab"]),
        ("(?i)web", &["WEB1"], &["we"]),
        ("a++b", &["aab"], &["b"]),
        ("a++ab", &[], &["aab"]),
        ("(?>a+)ab", &[], &["aaab"]),
        ("^(?!web)", &["db1"], &["web1"]),
        ("(?<=web)1", &["web1"], &["db1"]),
        ("^(a|b)\\1$", &["aa", "bb"], &["ab"]),
        ("^(?<x>a|b)\\k<x>$", &["aa"], &["ab"]),
        ("\\Qa.b\\E", &["a.b"], &["axb"]),
        ("^\\p{Alpha}+$", &["abc"], &["é", "1"]),
        ("^\\P{Alpha}$", &["1"], &["a"]),
        ("^\\p{L}$", &["é"], &["1"]),
        ("^\\p{IsAlphabetic}$", &["é"], &["1"]),
        ("^[a-z&&[^b]]$", &["a"], &["b"]),
        ("^[]a]$", &["]", "a"], &["b"]),
        ("^[[:a]]$", &[":", "a"], &["b"]),
        ("^[a~~b]+$", &["a~b"], &["c"]),
        ("\\x41\\u0042\\0103\\x{44}", &["ABCD"], &["ABC"]),
        ("a\\/b\\-c\\ d", &["a/b-c d"], &["ab"]),
        ("^x{2,3}$", &["xx", "xxx"], &["x"]),
        ("^x{2,}+}$", &["xxx}"], &["x}"]),
        ("^\\h\\H\\v\\V$", &[" a\nb"], &["abcd"]),
    ];
    for (pattern, matching, others) in table {
        let compiled = Pattern::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        for text in *matching {
            assert!(compiled.is_in(text, &mut Meter::default()), "{text:?} ~= {pattern:?}");
        }
        for text in *others {
            assert!(!compiled.is_in(text, &mut Meter::default()), "not {text:?} ~= {pattern:?}");
        }
    }
}

#[test]
fn invalid_regular_expressions_are_errors_at_their_position() {
    for pattern in
        ["[", "(", "*a", "a{2,1}", "a{,2}", "a{x", "\\\\y", "(?U)a", "(?P<x>a)", "\\\\p{NoSuch}", "\\\\"]
    {
        let error = ast(&format!("service ~= \"{pattern}\"")).unwrap_err();
        assert!(error.message.starts_with("invalid regular expression: "), "{pattern}: {error}");
        assert!(!error.message.contains('\n'), "{pattern}: {error}");
        assert_eq!(error.at, 11, "{pattern}");
    }
    let long = "a".repeat(PATTERN_BYTES_MAX);
    assert!(Pattern::new(&long).is_ok());
    let error = Pattern::new(&format!("{long}a")).unwrap_err();
    assert_eq!(error.to_string(), "invalid regular expression: it has 4097 bytes; at most 4096");
    assert!(Pattern::new("(a{1000}){1000}").is_err(), "an automaton beyond the limit on memory");
}

#[test]
fn searches_beyond_the_limits_find_nothing_and_are_counted() {
    let bad = Pattern::new("^(?=(a+)+b)").unwrap();
    let mut meter = Meter::default();
    assert!(bad.is_in("aab", &mut meter));
    assert_eq!(meter.gave_up, 0);
    let backtracking = Pattern::new("^(a|a)*(?!a)b$").unwrap();
    let mut meter = Meter::default();
    assert!(!backtracking.is_in(&"a".repeat(200), &mut meter));
    assert_eq!(meter.gave_up, 1, "too many steps");
    assert!(meter.steps > 1_000, "the work of a search that gave up is counted: {}", meter.steps);

    let look = Pattern::new("^(?!b)").unwrap();
    let plain = Pattern::new("^a").unwrap();
    for (pattern, bytes_max) in [(look, BACKTRACKING_BYTES_MAX), (plain, SEARCHED_BYTES_MAX)] {
        let mut meter = Meter::default();
        assert!(pattern.is_in(&"a".repeat(bytes_max), &mut meter));
        assert_eq!(meter.gave_up, 0);
        assert!(!pattern.is_in(&"a".repeat(bytes_max + 1), &mut meter));
        assert_eq!(meter.gave_up, 1, "a text beyond the limit");
    }
}
