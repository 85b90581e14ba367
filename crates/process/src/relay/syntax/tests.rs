//! How expressions are translated and matched, which are rejected and where; and that both engines find the same
//! matches.

use proptest::prelude::*;

use super::super::ExpressionPlan;
use super::super::backtracking::{BACKTRACKING_BYTES_MAX, Backtracking};
use super::super::budget::Budget;
use super::super::expression::Expression;
use super::super::found::{Found, GaveUp};
use super::*;

fn expression(text: &str) -> Result<Expression, Refusal> {
    Expression::new(&text.into(), true)
}

#[test]
fn expressions_match_as_in_posix() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("^a\\.([a-z]+)\\.(.*)$", &["a.b.c"], &["a.B.c", "xa.b.c"]),
        ("a.c", &["abc", "a\nc"], &["ac"]),
        ("(web|db)[0-9]{2,3}\\.", &["web01.", "db123."], &["web1."]),
        ("[[:alpha:]_]+-[[:digit:]]", &["ab_-1"], &["-1", "a-b"]),
        ("^[^.]+$", &["abc"], &["a.b"]),
        ("[]a]x", &["]x", "ax"], &["bx"]),
        ("^[^]a]x", &["bx"], &["]x"]),
        ("^[a-]+$", &["a-"], &["b"]),
        ("^[\\.]+$", &["."], &["a", "\\"]),
        ("^[a\\-z]+$", &["a-z"], &["b"]),
        ("^[\\d]+$", &["12"], &["d"]),
        ("[[.a.]]+.[[=b=]]", &["axb"], &["a"]),
        ("^[a&&b[]+$", &["a&b["], &["c"]),
        ("a{,2}b$", &["b", "aab"], &["c"]),
        ("^a{2}{3}$", &["aaaaaa"], &["aaaaa"]),
        ("^(a**|b+*)$", &["", "aaa", "bb"], &["ab"]),
        ("^a{1}.\\d\\w\\s?$", &["ab1c"], &["abcd"]),
        ("\\<cpu\\>", &["a.cpu.b"], &["a.cpus"]),
        ("\\bcpu\\b", &["a.cpu.b"], &["a.cpus"]),
        ("a]b}c", &["a]b}c"], &[]),
        ("^(a|)b$", &["ab", "b"], &["cb"]),
        ("^()b$", &["b"], &[]),
        ("(^a|b$)", &["ax", "xb"], &["xay"]),
        ("a^b", &[], &["a^b", "ab"]),
        ("(?i)CPU", &["cpu"], &["cp"]),
        ("(?i:CPU).x", &["cpu.x"], &["cpu.X"]),
        ("(?:a|b)+c$", &["abc"], &["c"]),
        ("(?P<host>a+).(?<x>b)", &["aab", "a.b"], &["b"]),
        ("^a+?b*?c??$", &["aabc"], &["b"]),
        ("é+$", &["é", "xé"], &["e"]),
        ("^\\.\\-\\/\\:\\ \\#\\\"$", &[".-/: #\""], &[]),
        ("^\\q.$", &["qx"], &[]),
        ("(?i)a[b-c]\\x44é$", &["ABdé", "aCDé"], &["abeé", "abdÉ"]),
        ("(?i)a(?-i)b|C", &["Ab", "C"], &["aB", "c"]),
        ("(a(?i)b)c", &["aBc"], &["aBC", "ABc"]),
        ("(?i:[[:upper:]])[^a]", &["xA"], &["xa", "1A"]),
        ("(?s-i:a)(?#no)b", &["ab"], &["Ab"]),
        ("(?'host'a)(?m)b", &["ab"], &["b"]),
        ("^\\h?\\H\\V\\N\\x2e[\\x2E-0\\t]$", &["abc..", "abc./"], &["abc.1"]),
        ("^[\\h\\n]+$", &[" \t\n"], &["h", "n", "\\"]),
    ];
    for (text, yes, no) in table {
        let expression = expression(text).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
        for (names, want) in [(yes, true), (no, false)] {
            for name in *names {
                assert_eq!(expression.is_in(name.as_bytes()), Ok(want), "{text} in {name:?}");
            }
        }
    }
}

#[test]
fn invalid_expressions_are_rejected_with_their_position() {
    let table: &[(&str, Range<usize>)] = &[
        ("*a", 0..1),
        ("a(*b)", 2..3),
        ("a|*b", 2..3),
        ("^*a", 1..2),
        ("a\\b*", 3..4),
        ("{2}", 0..1),
        ("x(a", 1..2),
        ("x)a", 1..2),
        ("x[a", 1..2),
        ("x[]", 1..2),
        ("a[[:foo:]]", 2..9),
        ("[[.hyphen.]]", 1..11),
        ("[z-a]", 1..4),
        ("[a-c-e]", 1..4),
        ("[a-\\d]", 1..5),
        ("a{", 1..2),
        ("a{x}", 1..4),
        ("a{2,1}", 1..6),
        ("a{40000}", 1..8),
        ("a{99999999999}", 1..14),
        ("a\\", 1..2),
        ("(a)\\2", 3..5),
        ("\\1(a)", 0..2),
        ("(a\\1)", 2..4),
        ("a\\g{-1}", 1..7),
        ("a\\k<n>(?<n>b)", 1..6),
        ("(a)(?P=n)", 3..9),
        ("(?<n>a)(?<n>b)", 7..12),
        ("(?=b)*a", 5..6),
        ("a(?i)*", 5..6),
        ("a(?=b", 1..2),
        ("(?x)a", 0..2),
        ("(?i-m-s)a", 0..2),
        ("(?|a)", 0..2),
        ("(?R)", 0..2),
        ("a*********", 9..10),
    ];
    for (text, at) in table {
        let refusal = translate(text, false, true).expect_err(text);
        assert_eq!(refusal.at, *at, "{text}: {refusal:?}");
    }
    assert_eq!(expression(&"(a)".repeat(GROUPS_MAX)).map(|known| known.groups()), Ok(GROUPS_MAX));
    assert!(expression(&"(a)".repeat(GROUPS_MAX + 1)).is_err());
    assert!(expression(&"(?:".repeat(DEPTH_MAX + 1)).is_err());
    assert!(expression(&format!("{}a{}", "(?:".repeat(DEPTH_MAX), ")".repeat(DEPTH_MAX))).is_ok());
}

#[test]
fn notes_report_where_builds_differ() {
    let table: &[(&str, bool, &str)] = &[
        ("a\\d", false, "\\d"),
        ("a[\\d]", false, "\\d"),
        ("[\\]a]", false, "\\]"),
        ("[\\-a]", false, "\\-"),
        ("[a\\-]", false, ""),
        ("[:alpha:]", false, "[:alpha:]"),
        ("a.*?b", false, ""),
        ("a.*?b", true, "?"),
        ("a.+?b", false, "?"),
        ("a.++b", false, "+"),
        ("a\\n", false, "\\n"),
        ("[\\n]", false, "\\n"),
        ("(a)\\1", false, "\\1"),
        ("(a)\\10", false, "\\1\\1"),
        ("(?<!x)a(?=b)", false, "(?<!"),
        ("(sys|system)x", true, ""),
        ("(sys|system)t", true, "sys|system"),
        ("(sys|system).*", true, "sys|system"),
        ("(sys|system)\\.", true, ""),
        ("(sys|system)$", true, ""),
        ("(system|sys).*", true, ""),
        ("(sys|system).*", false, ""),
        ("^a\\.(x|y)\\.(.*)$", true, ""),
    ];
    for (text, captures, want) in table {
        let notes = translate(text, false, *captures).expect(text).notes;
        let noted: Vec<&str> = notes.into_iter().map(|note| &text[note.at]).collect();
        assert_eq!(noted.concat(), *want, "{text}");
    }
}

/// The match and its groups, as text.
fn shown(found: Option<Found>, name: &str) -> String {
    let Some(found) = found else { return "-".into() };
    let spans = std::iter::once(Some(found.span)).chain(found.groups);
    let texts = spans.map(|span| span.map_or("-", |(begin, end)| &name[begin..end]));
    texts.collect::<Vec<_>>().join(" ")
}

#[test]
fn look_around_and_back_references_are_matched_by_backtracking() {
    // Output of Perl 5 (and, for back references by number, of carbon-c-relay 3.7.3): the match and its groups.
    let table = [
        ("^servers\\.(?!test)(\\w+)", "servers.web1.cpu", "servers.web1 web1"),
        ("^servers\\.(?!test)(\\w+)", "servers.test1.cpu", "-"),
        ("(?=.*b)(.)", "aab", "a a"),
        ("(?<=\\.)cpu(?=\\.)", "a.cpu.cpux", "cpu"),
        ("(?<!a|bc)x", "axbcxx", "x"),
        ("(a|b)x\\1", "axbxb", "bxb b"),
        ("(a)?b\\1", "bab", "-"),
        ("(?<host>\\w+)\\.\\k<host>$", "x.web1.web1", "web1.web1 web1"),
        ("(?P<h>[ab]+)-(?P=h)+", "ab-abab", "ab-abab ab"),
        ("(a)(b)\\g{-1}\\g{1}", "abba", "abba a b"),
        ("(?i)(ab)\\1", "aBAb", "aBAb aB"),
        ("(?>a+)ab", "aaab", "-"),
        ("(?>a|ab)(c)", "abc", "-"),
        ("(?!(a)b)a(.)", "abac", "ac - c"),
        ("\\bcpu\\b(?!\\.x)", "cpus.cpu.x.cpu", "cpu"),
        ("\\<(?=c)\\w+\\>", "xc.c1", "c1"),
        ("[^.]+(?=\\.é)", "a.b.é", "b"),
        ("(?!\\x2e)[[:punct:]]", "a.!", "!"),
    ];
    for (text, name, want) in table {
        let expression = expression(text).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
        let found = expression.find(name.as_bytes()).expect("no limit");
        assert_eq!(expression.is_in(name.as_bytes()), Ok(want != "-"), "{text} in {name}");
        assert_eq!(shown(found, name), want, "{text} in {name}");
    }
    // Any single byte, also one of a multi-byte character.
    let byte = expression("^(?!x).$").expect("a valid expression");
    assert_eq!((byte.is_in(b"\xc3"), byte.is_in(b"\xc3\xa9")), (Ok(true), Ok(false)));
    let all = expression("a(?=.)").expect("a valid expression").find_all(b"aab\xffa").expect("no limit");
    assert_eq!(all.iter().map(|found| found.span).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
}

#[test]
fn a_search_at_its_limit_gives_up() {
    let bad = expression("^(a|aa)+\\1b").expect("a valid expression");
    let name = format!("{}cb", "a".repeat(40));
    assert_eq!((bad.is_in(name.as_bytes()), bad.find(name.as_bytes())), (Err(GaveUp), Err(GaveUp)));
    assert_eq!(bad.is_in("a".repeat(40).as_bytes()), Ok(false), "there is no `b`, so nothing is tried");
    assert_eq!(bad.is_in(b"aaab"), Ok(true));
    let good = expression("(?<!a)x").expect("a valid expression");
    let long = |length: usize| format!("{}x", "b".repeat(length - 1));
    assert_eq!(good.is_in(long(BACKTRACKING_BYTES_MAX).as_bytes()), Ok(true));
    assert_eq!(good.is_in(long(BACKTRACKING_BYTES_MAX + 1).as_bytes()), Err(GaveUp));
}

#[test]
fn errors_of_the_engines_are_reported_as_sentences() {
    for (text, want) in [
        ("(.{1000}){1000}", "more than 1 MiB"),
        ("(?!(.{1000}){1000})a", "too large to be matched by backtracking"),
        ("(?<=a*)b", "must have a fixed length"),
        (&format!("(?=a){}", "(?=ab)".repeat(2_000)), "too large to be matched by backtracking"),
    ] {
        let refusal = expression(text).expect_err("no such engine");
        assert!(refusal.message.contains(want) && refusal.at == (0..text.len()), "{text:.40}: {refusal:?}");
    }
}

/// Pieces that both engines can match, and look-ahead that is always true.
const PIECES: [&str; 46] = [
    "a",
    "b",
    "A",
    "-",
    "_",
    ".",
    "\\.",
    "^",
    "$",
    "*",
    "+",
    "?",
    "{2}",
    "{,2}",
    "{1,}",
    "(",
    "(",
    "(?:",
    ")",
    ")",
    ")",
    "|",
    "[ab]",
    "[^a]",
    "[a-b.]",
    "[^[:alpha:]]",
    "\\d",
    "\\w",
    "\\W",
    "\\s",
    "\\b",
    "\\B",
    "\\<",
    "\\>",
    "(?i)",
    "(?-i)",
    "(?i:",
    "/",
    "\\x41",
    "1",
    "é",
    "\\xe9",
    "(?=)",
    "(?=)",
    "(?=)",
    "(?!b\\x00)",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn both_engines_find_the_same_matches(
        pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 1..10),
        names in proptest::collection::vec("[abAB.1_é\\-/]{0,6}", 4),
        ignore_case in any::<bool>(),
    ) {
        let with = format!("(?=){}", pieces.concat());
        let without = with.replace("(?=)", "").replace("(?!b\\x00)", "");
        let plan = |text: String| ExpressionPlan { text, ignore_case };
        let Ok(backtracking) = Expression::new(&plan(with.clone()), true) else { return Ok(()) };
        // The two differ there, and a note reports it: the backtracking engine delegates parts to the other.
        if translate(&without, ignore_case, true).is_ok_and(|text| loops::may_differ(&text.linear)) {
            return Ok(());
        }
        let linear = Expression::new(&plan(without.clone()), true);
        let linear = linear.unwrap_or_else(|refusal| panic!("{without}: {refusal:?}"));
        for name in names.iter().map(String::as_bytes) {
            prop_assert_eq!(backtracking.find(name), linear.find(name), "{} in {:?}", with, name);
            prop_assert_eq!(backtracking.is_in(name), linear.is_in(name), "{} in {:?}", with, name);
            prop_assert_eq!(backtracking.find_all(name), linear.find_all(name), "{} in {:?}", with, name);
        }
    }

    #[test]
    fn any_text_is_translated_or_rejected(
        text in "(?s)([ab().*+?{}|^$\\\\\\[\\]0-9,:=-]|\\(\\?[:=!<>i#P'|)]{0,2}|\\\\[1gk]|\\{n\\}|\\[:alpha:\\]|.){0,40}",
        name in "[ab.é]{0,8}",
    ) {
        match translate(&text, false, true) {
            Err(refusal) => {
                let at = refusal.at;
                prop_assert!(at.start < at.end && at.end <= text.len().max(1), "{:?}: {:?}", text, at);
            }
            Ok(translated) => {
                // The part for the linear engine matches wherever the expression does.
                let rest = regex::bytes::RegexBuilder::new(&translated.linear).unicode(false).build();
                if let Err(wrong) = &rest {
                    prop_assert!(matches!(wrong, regex::Error::CompiledTooBig(_)), "{:?}: {}", text, wrong);
                }
                let backtracking = translated.backtracking.as_deref().map(|text| Backtracking::new(text, &Budget::default()));
                if let (Some(Ok(known)), Ok(rest)) = (backtracking, rest) {
                    let is_in = known.is_in(name.as_bytes()) == Ok(true);
                    prop_assert!(!is_in || rest.is_match(name.as_bytes()), "{:?} in {:?}", text, name);
                }
            }
        }
    }
}
