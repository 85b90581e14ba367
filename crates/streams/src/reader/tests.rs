use super::names::{DEPTH_MAX, NoNames};
use super::*;
use crate::print::to_text;
use crate::value::Value;

fn read_all(text: &str) -> Result<Vec<Value>, ReadError> {
    let mut reader = Reader::new(text, arcstr::literal!("t"));
    let mut forms = Vec::new();
    while let Some(form) = reader.next(&NoNames)? {
        forms.push(form);
    }
    Ok(forms)
}

#[test]
fn forms_are_read_as_what_they_abbreviate() {
    let table = [
        (
            "1 -2 +3 0x1F 017 2r101 36rZ 1/3 4/2 1.5 -2e3 7N 1.5M",
            "1 -2 3 31 15 5 35 1/3 2 1.5 -2000.0 7N 1.5",
        ),
        ("9223372036854775808 ##Inf ##-Inf ##NaN", "9223372036854775808N ##Inf ##-Inf ##NaN"),
        ("(a b) [1, 2] {:a 1} #{1}", "(a b) [1 2] {:a 1} #{1}"),
        ("'x @y #'z", "(quote x) (clojure.core/deref y) (var z)"),
        ("#(+ % %2)", "(fn* [p1__0 p2__0] (+ p1__0 p2__0))"),
        ("#(apply f %&)", "(fn* [& rest__0] (apply f rest__0))"),
        ("\\a \\newline \\u0041 \\( \\space", "\\a \\newline \\A \\( \\space"),
        (r#""a\n\"\\\u0041\101""#, r#""a\n\"\\AA""#),
        (r##"#"a\d\"b""##, r##"#"a\d\"b""##),
        ("#_ (a b) c ; d\n e #!f\n", "c e"),
        ("^:dynamic *a* ^String b ^{:doc \"x\"} c", "*a* b c"),
        (":a :b/c ::d", ":a :b/c :user/d"),
        ("nil true false nilx", "nil true false nilx"),
        ("a.b/c / a// -> +x -", "a.b/c / a// -> +x -"),
        (
            "`(a ~b ~@c)",
            "(clojure.core/apply clojure.core/list (clojure.core/concat (clojure.core/list (quote a)) (clojure.core/list b) c))",
        ),
        ("`[x#]", "(clojure.core/vec (clojure.core/concat (clojure.core/list (quote x__0__auto__))))"),
    ];
    for (text, want) in table {
        let forms =
            read_all(text).map(|forms| forms.iter().map(|form| to_text(form, true)).collect::<Vec<_>>());
        assert_eq!(forms.map(|forms| forms.join(" ")), Ok(want.to_owned()), "{text}");
    }
}

#[test]
fn mistakes_have_places() {
    let table = [
        ("(a\n (b)", "t:1:1: this `(` is not closed: `)` is missing"),
        ("a\n ]", "t:2:2: `]` closes nothing"),
        ("(a ]", "t:1:4: `]` stands where `)` is expected"),
        ("\"a", "t:1:1: this text is not closed: `\"` is missing"),
        ("(a \"b)\n(c \"d\")\n", "t:1:4: this text is not closed: `\"` is missing"),
        ("(a \"b\nc\")\n(c \"d)\n(e \"f\")", "t:3:4: this text is not closed: `\"` is missing"),
        ("{:a}", "t:1:1: a map needs a value for every key"),
        ("{:a 1 :a 2}", "t:1:1: duplicate key: :a"),
        ("#{1 1}", "t:1:1: duplicate key: 1"),
        ("1x", "t:1:1: `1x`: not a number"),
        ("1/0", "t:1:1: `1/0`: divide by zero"),
        ("09", "t:1:1: `09`: not a number"),
        ("\"\\q\"", "t:1:2: `\\q` is no escape of a text"),
        ("'", "t:1:1: nothing follows `'`"),
        ("#(a #(b))", "t:1:5: `#(…)` inside of another one"),
        ("#=(a)", "t:1:1: `#=` is not supported"),
        (":", "t:1:1: `:` is no keyword: it has no name"),
        ("::x/a", "t:1:1: `::x/a` is no keyword: there is no such alias"),
        ("\\abc", "t:1:1: `\\abc` is no character"),
    ];
    for (text, want) in table {
        let error = read_all(text).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(error, Err(want.to_owned()), "{text}");
    }
}

#[test]
fn nesting_has_a_limit() {
    let depth = DEPTH_MAX as usize;
    assert!(read_all(&format!("{}{}", "(".repeat(depth), ")".repeat(depth))).is_ok());
    assert!(read_all(&format!("{}{}", "(".repeat(depth + 1), ")".repeat(depth + 1))).is_err());
    assert!(read_all(&"'".repeat(100_000)).is_err());
    // Each backquote multiplies the form.
    assert!(read_all("```a").is_ok() && read_all("(`a `(b `c) `d `e `f)").is_ok());
    let error = read_all("````a").map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(error, Err("t:1:4: more than 3 backquotes within each other".to_owned()));
}

#[test]
fn symbols_and_lists_have_places() {
    let forms = read_all("\n  (f\n x)").expect("reads");
    let Value::List(list) = &forms[0] else { panic!("a list") };
    assert_eq!(list.at.to_string(), "t:2:3");
    let Some(Value::Symbol(symbol)) = list.iter().nth(1) else { panic!("a symbol") };
    assert_eq!(symbol.at.to_string(), "t:3:2");
}
