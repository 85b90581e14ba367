use super::super::limits::{DEPTH_MAX, DIGITS_MAX, PATTERNS_MAX, QUERY_BYTES_MAX};
use super::super::{Query, QueryError, Tree, ast};
use super::{Meter, Number, event};

const PREDICATE: &str = "{'not', '(', 'tagged', STRING, FLOAT, LONG, BIGN, NIL, 'true', 'false', NAME}";

#[test]
fn invalid_texts_are_rejected_with_a_position() {
    let expecting = |found: &str, what: &str| format!("mismatched input '{found}' expecting {what}");
    let after = "{<EOF>, 'and', 'or'}";
    let number = "{FLOAT, LONG, BIGN}";
    let value = "{STRING, FLOAT, LONG, BIGN, NIL, 'true', 'false', NAME}";
    let table: &[(&str, usize, String)] = &[
        ("oh no", 3, expecting("no", after)),
        ("true true", 5, expecting("true", after)),
        ("x AND y", 2, expecting("AND", after)),
        ("metric = 1/2", 10, "token recognition error at: '/'".into()),
        ("metric = 0x1", 9, expecting("0x1", value)),
        ("metric = 1 2", 11, expecting("2", after)),
        ("metric > nil", 9, expecting("nil", number)),
        ("metric > \"a\"", 9, expecting("\"a\"", number)),
        ("5 < metric", 4, expecting("metric", number)),
        ("metric > metric", 9, expecting("metric", number)),
        ("tagged prod", 7, expecting("prod", "STRING")),
        ("host =~ x", 8, expecting("x", "STRING")),
        ("host == \"web1\"", 5, expecting("==", after)),
        ("host = 'web1'", 7, "token recognition error at: '''".into()),
        ("a/b = nil", 1, "token recognition error at: '/'".into()),
        ("()", 1, expecting(")", PREDICATE)),
        ("", 0, expecting("<EOF>", PREDICATE)),
        (" ,\n", 3, expecting("<EOF>", PREDICATE)),
        ("host = ", 7, expecting("<EOF>", value)),
        ("(true", 5, expecting("<EOF>", "{'and', 'or', ')'}")),
        ("(true false)", 6, expecting("false", "{'and', 'or', ')'}")),
        ("true and", 8, expecting("<EOF>", PREDICATE)),
        ("- 3", 2, expecting("3", after)),
        ("host = 10L", 7, "For input string: \"10L\"".into()),
        ("host = 9223372036854775808", 7, "For input string: \"9223372036854775808\"".into()),
        ("host = \"a\\d\"", 9, "Unsupported escape character: \\d".into()),
        ("host = \"a\\\n\"", 9, "Unsupported escape character: \\\\n".into()),
        ("host ~= \"(?#\n)\"", 8, "invalid regular expression: unknown group or flag `(?#\\n`".into()),
        ("host = \"a\\uD800\"", 9, "Invalid character constant: \\ud800".into()),
        ("host = \"\\777\"", 8, "Octal escape sequence must be in range [0, 377].".into()),
        ("host = \"ab", 7, "token recognition error at: '\"ab'".into()),
        ("é = 1 é", 7, expecting("é", after)),
        ("host \"a\nb\"", 5, expecting("\"a\\nb\"", after)),
    ];
    for (text, at, message) in table {
        let want = QueryError { message: message.clone(), at: *at };
        assert_eq!(ast(text), Err(want), "text {text:?}");
    }
}

#[test]
fn position_is_also_line_and_column() {
    let text = "true\nor é oh";
    let error = ast(text).unwrap_err();
    assert_eq!(error.line_and_column(text), (2, 6));
}

#[test]
fn long_tokens_are_shortened_in_messages() {
    let error = ast(&format!("true {}", "x".repeat(1_000))).unwrap_err();
    assert_eq!(
        error.message,
        format!("mismatched input '{}…' expecting {{<EOF>, 'and', 'or'}}", "x".repeat(64))
    );
}

#[test]
fn depth_is_limited() {
    for (open, close) in [("(", ")"), ("not ", ""), ("not (", ")")] {
        let levels = if open == "not (" { DEPTH_MAX / 2 } else { DEPTH_MAX };
        let nested = |levels: usize| format!("{}true{}", open.repeat(levels), close.repeat(levels));
        assert!(Query::new(&nested(levels)).is_ok(), "{open:?} at the limit");
        let error = Query::new(&nested(levels + 1)).unwrap_err();
        assert!(error.message.starts_with("nested too deep"), "{open:?}: {error}");
    }
    // `and` within `or` within parentheses, at the limit.
    let levels = DEPTH_MAX;
    let mixed = format!("{}1{}", "1 or 1 and (".repeat(levels), ")".repeat(levels));
    assert!(Query::new(&mixed).is_ok());
    let by_hand = (0..4 * DEPTH_MAX).fold(ast("true").unwrap(), |tree, _| Tree::Not(Box::new(tree)));
    assert_eq!(Query::of(by_hand).unwrap_err().message, "nested too deep");
}

#[test]
fn length_is_limited() {
    let padded = |len: usize| format!("true{}", " ".repeat(len - 4));
    assert!(Query::new(&padded(QUERY_BYTES_MAX)).is_ok());
    let error = Query::new(&padded(QUERY_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(error.message, "the query has 65537 bytes; at most 65536");
    assert_eq!(error.at, 0);
}

#[test]
fn thousands_of_parts_in_a_row_are_allowed() {
    let many = vec!["1"; QUERY_BYTES_MAX / 6].join(" and ");
    let query = Query::new(&many).unwrap();
    assert!(query.matches(&event(None, "s", "ok", Number::Int(1)), &mut Meter::default()));
    assert_eq!(ast(&query.tree().to_query()).as_ref(), Ok(query.tree()));
    assert!(query.tree().to_string().ends_with(" 1) 1)"));
}

#[test]
fn digits_and_expressions_are_limited() {
    let digits = |count: usize| format!("metric = {}N", "9".repeat(count));
    assert!(ast(&digits(DIGITS_MAX - 1)).is_ok());
    assert_eq!(ast(&digits(DIGITS_MAX)).unwrap_err().message, "more than 1000 digits");
    let patterns = |count: usize| vec!["host ~= \"a\""; count].join(" or ");
    assert!(Query::new(&patterns(PATTERNS_MAX)).is_ok());
    let error = ast(&patterns(PATTERNS_MAX + 1)).unwrap_err();
    assert_eq!(error.message, "more than 16 regular expressions");
    let part = ast("host ~= \"a\"").unwrap();
    let by_hand = Tree::or(vec![part; PATTERNS_MAX + 1]);
    assert_eq!(Query::of(by_hand).unwrap_err().message, "more than 16 regular expressions");
}
