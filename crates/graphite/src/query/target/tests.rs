use proptest::prelude::*;

use super::*;
use crate::query::error::QueryError;

const STRICT: ParseOptions = ParseOptions { accept_prefix: false };

/// A tree as text: calls in brackets, paths as they are.
fn show(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Path(path) => path.clone(),
        ExprKind::Literal(Literal::Text(text)) => format!("'{text}'"),
        ExprKind::Literal(literal) => format!("{literal:?}"),
        ExprKind::Call(call) => {
            let mut parts = vec![call.name.clone()];
            parts.extend(call.args.iter().map(show));
            parts.extend(call.named.iter().map(|arg| format!("{}={}", arg.name, show(&arg.value))));
            format!("[{}]", parts.join(" "))
        }
        ExprKind::Template(template) => {
            let values: Vec<String> = template.values.iter().map(|(k, v)| format!("{k}:{v:?}")).collect();
            format!("[template {} {}]", show(&template.body), values.join(" "))
        }
    }
}

fn read(text: &str) -> Result<String, QueryError> {
    parse(text, STRICT).map(|expr| show(&expr))
}

#[test]
fn targets_become_trees() {
    let table = [
        ("a.b.c", "a.b.c"),
        ("  a.*.{x,y{1,2}}z.[0-9]? ", "a.*.{x,y{1,2}}z.[0-9]?"),
        ("sumSeries(a.*)", "[sumSeries a.*]"),
        ("f ( a , 1 , -2.5 , 1e3, 1.5E-3 )", "[f a Int(1) Float(-2.5) Float(1000.0) Float(0.0015)]"),
        ("f(a,'x',\"y z\",TRUE,False,None,inf)", "[f a 'x' 'y z' Bool(true) Bool(false) None Float(inf)]"),
        ("f(a, reverse=true, n=3)", "[f a reverse=Bool(true) n=Int(3)]"),
        ("a.b|f(1)|g()", "[g [f a.b Int(1)]]"),
        ("f(a|g(2), h())", "[f [g a Int(2)] [h]]"),
        ("f(123, 123.x, 1x, -a, truely.x)", "[f Int(123) 123.x 1x -a truely.x]"),
        ("a.1", "a.1"),
        ("cpu;host=a;dc=b", "cpu;host=a;dc=b"),
        ("a\\.b\\(c\\=\\\\", "a.b(c=\\"),
        (r"f(a,'it\'s \1')", r"[f a 'it\'s \1']"),
        ("seriesByTag('name=cpu', 'dc!=~a|b')", "[seriesByTag 'name=cpu' 'dc!=~a|b']"),
        ("template(a.$x, x='b')", "[template a.$x x:Text(\"b\")]"),
        ("template(f(a.$1), 'b', 2)", "[template [f a.$1] 1:Text(\"b\") 2:Int(2)]"),
        ("f(99999999999999999999)", "[f Float(1e20)]"),
        ("ö.ü", "ö.ü"),
    ];
    for (text, want) in table {
        assert_eq!(read(text).as_deref(), Ok(want), "{text}");
    }
}

#[test]
fn a_call_of_series_by_tag_keeps_its_text() {
    let expr = parse("f(seriesByTag('a=b',  'c=d'))", STRICT).expect("a target");
    let ExprKind::Call(call) = expr.kind else { panic!("a call") };
    let ExprKind::Call(inner) = &call.args[0].kind else { panic!("a call") };
    assert_eq!((call.raw, inner.raw.as_deref()), (None, Some("seriesByTag('a=b',  'c=d')")));
    assert_eq!(call.args[0].at, 2);
}

#[test]
fn mistakes_have_a_position_and_an_expectation() {
    let table = [
        ("", 0, "a path or a function"),
        ("sumSeries(a.b.x", 15, "`,` or `)`"),
        ("f(a,)", 4, "an argument"),
        ("f(a b)", 4, "`,` or `)`"),
        ("f(x=1, a)", 7, "`name=value`"),
        ("a.b)", 3, "`|` or the end"),
        ("a..b", 2, "a path after `.`"),
        ("a.", 2, "a path after `.`"),
        ("a|b", 3, "`(`"),
        ("a|'x'", 2, "a function"),
        ("f(a,'x", 4, "is not closed"),
        ("f(a.{b,c)", 4, "is not closed"),
        ("a\\x", 2, "after `\\`"),
        ("template(a.$x, x=b)", 17, "a number, or text"),
        ("template(a.$x, 1, x=2)", 18, "all have names"),
    ];
    for (text, at, message) in table {
        let mistake = parse(text, STRICT).expect_err(text);
        assert_eq!(mistake.at, Some(at), "{text}: {mistake}");
        assert!(mistake.message.contains(message), "{text}: {mistake}");
    }
}

#[test]
fn the_beginning_is_enough_in_graphite_webs_way() {
    let table = [
        ("sumSeries(a.b.x", "sumSeries"),
        ("f(a.b))", "[f a.b]"),
        ("a.b c", "a.b"),
        ("a|f()|g(", "[f a]"),
        ("f(a)|2", "[f a]"),
    ];
    for (text, want) in table {
        let expr = parse(text, ParseOptions { accept_prefix: true }).expect(text);
        assert_eq!(show(&expr), want, "{text}");
    }
}

#[test]
fn nesting_and_length_are_limited() {
    let nested = |depth: usize| format!("{}a{}", "f(".repeat(depth), ")".repeat(depth));
    assert!(parse(&nested(NESTING_MAX - 1), STRICT).is_ok());
    assert!(parse(&nested(NESTING_MAX), STRICT).is_err());
    assert!(parse(&nested(10_000), STRICT).is_err());
    assert!(parse(&format!("a{}", "|f()".repeat(NESTING_MAX - 1)), STRICT).is_ok());
    assert!(parse(&format!("a{}", "|f()".repeat(10_000)), STRICT).is_err());
    assert!(parse(&"template(".repeat(10_000), STRICT).is_err());
    assert!(parse(&"{".repeat(100_000), STRICT).is_err());
    assert!(parse(&"a".repeat(TARGET_BYTES_MAX), STRICT).is_ok());
    assert!(parse(&"a".repeat(TARGET_BYTES_MAX + 1), STRICT).is_err());
}

#[test]
fn templates_are_filled_in() {
    let request = [("y".to_owned(), "z".to_owned())];
    let table = [
        ("template(a.$x.$y, x='b', y='c')", "a.b.z"),
        ("template(f(a.$1, $2), 'b', 5)", "[f a.b Int(5)]"),
        ("template(f(a, $1, $2), '2.5', 'text')", "[f a Float(2.5) 'text']"),
        ("template(a.$10.$1, 'b')", "a.b0.b"),
        ("f(template(a.$x, x=3), b.$x)", "[f a.3 b.$x]"),
        ("template(a.$none, x=1)", "a.$none"),
    ];
    for (text, want) in table {
        let expr = parse(text, STRICT).and_then(|expr| expand(expr, &request)).expect(text);
        assert_eq!(show(&expr), want, "{text}");
    }
}

#[test]
fn filled_templates_are_limited() {
    let value = "x".repeat(1_000);
    let filled = |times: usize| {
        let text = format!("template({}, a='{value}')", "$a".repeat(times));
        parse(&text, STRICT).and_then(|expr| expand(expr, &[]))
    };
    assert!(filled(TARGET_BYTES_MAX / 1_000).is_ok());
    assert!(filled(TARGET_BYTES_MAX / 1_000 + 1).is_err());
}

#[test]
fn values_of_templates_are_limited() {
    let own = |count: usize| parse(&format!("template(a{})", ", 1".repeat(count)), STRICT);
    assert!(own(TEMPLATE_VALUES_MAX).is_ok());
    assert!(own(TEMPLATE_VALUES_MAX + 1).is_err());
    let of_request = |count: usize| {
        let values: Vec<(String, String)> = (0..count).map(|n| (n.to_string(), String::new())).collect();
        parse("template(a)", STRICT).and_then(|expr| expand(expr, &values))
    };
    assert!(of_request(TEMPLATE_VALUES_MAX).is_ok());
    assert!(of_request(TEMPLATE_VALUES_MAX + 1).is_err());
}

/// Checks each line of each committed file.
fn corpus(folder: &str, check: impl Fn(&str)) {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/corpus/graphite_target")
        .join(folder);
    let mut lines = 0;
    for file in std::fs::read_dir(root).expect("it is in the repository") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        for line in text.lines() {
            check(line);
            lines += 1;
        }
    }
    assert!(lines > 0);
}

#[test]
fn committed_targets_are_valid_or_not() {
    corpus("good", |line| assert!(parse(line, STRICT).is_ok(), "{line}"));
    corpus("bad", |line| assert!(parse(line, STRICT).is_err(), "{line}"));
}

proptest! {
    #[test]
    fn any_text_is_a_target_or_a_mistake_within_it(text in ".{0,60}", parts in r"[a-f(){},.'\\|=$ 1]{0,40}") {
        for text in [text, parts] {
            for accept_prefix in [false, true] {
                match parse(&text, ParseOptions { accept_prefix }) {
                    Err(mistake) => prop_assert!(mistake.at.is_none_or(|at| at <= text.len() && text.is_char_boundary(at))),
                    Ok(expr) => drop(expand(expr, &[])),
                }
            }
        }
    }
}
