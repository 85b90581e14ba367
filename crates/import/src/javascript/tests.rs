//! Tests of the expression language: values and errors by table, errors with their places, and random text.

use proptest::prelude::*;

use super::*;
use config::diagnostic::Code;

fn run(text: &str) -> Result<Node, Vec<Diagnostic>> {
    let vars = |name: &str| match name {
        "PORT" => Some("9125".to_owned()),
        "HOST" => Some("Carbon.Example".to_owned()),
        "EMPTY" => Some(String::new()),
        "LIST" => Some("a:1,b:2".to_owned()),
        "JSON" => Some(r#"{"port": 1, "list": [1, "x", null]}"#.to_owned()),
        _ => None,
    };
    evaluate(text, &Environment { vars: &vars, hostname: "web1.example".into() })
}

/// The value as compact text, for tables.
fn show(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("{text:?}"),
        Value::Array(nodes) => {
            let items: Vec<String> = nodes.iter().map(|node| show(&node.value)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let each = |member: &Member| format!("{}:{}", member.key, show(&member.value.value));
            format!("{{{}}}", members.iter().map(each).collect::<Vec<_>>().join(","))
        }
        Value::Number(number) if *number == 0.0 && number.is_sign_negative() => "-0".into(),
        other => other.to_text(),
    }
}

/// Expressions with their values, as `node -p` gives them.
const VALUES: &[(&str, &str)] = &[
    // Literals.
    ("{}", "{}"),
    (
        "{a: 1, 'b': \"x\", \"c d\": true, 5: null, 1: undefined,}",
        r#"{1:undefined,5:null,a:1,b:"x",c d:true}"#,
    ),
    ("{a: 1, b: 2, a: 3}", "{a:3,b:2}"),
    ("{ a: 1\n, b: 2\n, c: [1, 2]\n}", "{a:1,b:2,c:[1,2]}"),
    (
        "{ port : 0x1FBD, mode: 0777, x: .5, 0x10: 1, default: 1, if: 2 }",
        "{16:1,port:8125,mode:511,x:0.5,default:1,if:2}",
    ),
    ("[1,,2,]", "[1,undefined,2]"),
    ("[,]", "[undefined]"),
    ("{re: /a\\/[/]b/gi}", "{re:/a\\/[/]b/gi}"),
    ("// c\n;; /* d */ {a: 1} ; // e\n;", "{a:1}"),
    ("\u{feff}{a:1}", "{a:1}"),
    ("`x`", r#""x""#),
    ("`a${1 + 1}b${`c${'d'}`}`", r#""a2bcd""#),
    ("'a\\\nb'", r#""ab""#),
    ("{caf\u{e9}: 1, $x: 2, _y: 3}", "{caf\u{e9}:1,$x:2,_y:3}"),
    // Environment.
    ("process.env.PORT", r#""9125""#),
    ("process.env['PORT']", r#""9125""#),
    ("process.env.NONE", "undefined"),
    ("process.env.NONE || 8125", "8125"),
    ("process.env.EMPTY || 'x'", r#""x""#),
    ("process.env.EMPTY ?? 'x'", r#""""#),
    ("process.env.NONE ?? process.env.PORT", r#""9125""#),
    ("+process.env.PORT + 1", "9126"),
    ("process.env.PORT + 1", r#""91251""#),
    ("parseInt(process.env.PORT || '8125', 10)", "9125"),
    ("`${process.env.HOST}:${process.env.PORT}`", r#""Carbon.Example:9125""#),
    ("require('os').hostname()", r#""web1.example""#),
    ("require('os').hostname().split('.')[0]", r#""web1""#),
    ("process.env.LIST.split(',')[1].split(':')[0]", r#""b""#),
    ("JSON.parse(process.env.JSON).list", r#"[1,"x",null]"#),
    // Logic.
    ("1 && 2 && 0 && 3", "0"),
    ("0 || '' || null || NaN || undefined", "undefined"),
    ("null ?? undefined ?? 0 ?? 1", "0"),
    ("(1 && 0) ?? 2", "0"),
    ("(null ?? 0) || 3", "3"),
    ("1 ? 2 : x()", "2"),
    ("0 ? x : 0 ? y : 3", "3"),
    ("true || undefinedName", "true"),
    ("false && undefinedName.x", "false"),
    ("![] || !{} || !'a' || !1", "false"),
    ("!!0 || !!'' || !!NaN || !!null", "false"),
    ("process.env ? 1 : 2", "1"),
    // Equality.
    (
        "[1 == '1', 1 === '1', '' == 0, null == undefined, null === undefined, null == 0]",
        "[true,false,true,true,false,false]",
    ),
    (
        "[NaN == NaN, 'a' == 'a', true == 1, true == 'true', '1' == true, [1] == 1]",
        "[false,true,true,false,true,true]",
    ),
    ("[1 != '1', 1 !== '1', {} == '[object Object]', null != 0, 0 === -0]", "[false,true,true,true,true]"),
    ("process.env.HOST == 'Carbon.Example' ? 'a' : 'b'", r#""a""#),
    ("1 + 1 == 2 && 2 * 3 === 6", "true"),
    // Arithmetic and texts.
    ("1 + 2 * 3 - 4 / 2", "5"),
    ("(1 + 2) * 3", "9"),
    ("10 - 2 - 3", "5"),
    ("1 / 0", "Infinity"),
    ("-1 / 0", "-Infinity"),
    ("0 * -1", "-0"),
    ("10 * 1000", "10000"),
    ("1 + '2'", r#""12""#),
    ("'3' * '4'", "12"),
    ("'a' - 1", "NaN"),
    ("1 + 2 + 'x' + 1 + 2", r#""3x12""#),
    ("1 + null", "1"),
    ("1 + true", "2"),
    ("1 + undefined", "NaN"),
    ("'' + null + undefined + true", r#""nullundefinedtrue""#),
    ("'' + 1e21 + ' ' + 1e-7 + ' ' + 0.1 + ' ' + -0", r#""1e+21 1e-7 0.1 0""#),
    ("[1, [2, 3], null] + ''", r#""1,2,3,""#),
    ("'x' + {}", r#""x[object Object]""#),
    ("[] + 1", r#""1""#),
    ("- -1", "1"),
    ("-'5'", "-5"),
    ("+''", "0"),
    ("+[]", "0"),
    ("+{}", "NaN"),
    ("0.1 + 0.2", "0.30000000000000004"),
    // Functions and methods.
    (
        "[parseInt('12px'), parseInt('0x1f'), parseInt('777', 8), parseInt(12.9), parseInt('x')]",
        "[12,31,511,12,NaN]",
    ),
    (
        "[parseFloat('1.5s'), Number('0x10'), Number(''), Number(undefined), Number(), Number(null)]",
        "[1.5,16,0,NaN,0,0]",
    ),
    (
        "[String(1), String(), String(null), Boolean(''), Boolean('false'), Boolean()]",
        r#"["1","","null",false,true,false]"#,
    ),
    ("' aB '.trim().toLowerCase() + 'c'.toUpperCase()", r#""abC""#),
    ("'a.b.c'.split('.')", r#"["a","b","c"]"#),
    ("'a.b.c'.split('.').join('_')", r#""a_b_c""#),
    ("['a', null, 1].join()", r#""a,,1""#),
    ("'a.b.c'.replace('.', '_')", r#""a_b.c""#),
    ("'abc'.replace('b', '[$&]')", r#""a[b]c""#),
    ("'a.b'.split()", r#"["a.b"]"#),
    ("(5).toString()", r#""5""#),
    ("'abc'[1] + 'abc'.length + [1, 2].length", r#""b32""#),
    ("[1, 2][5]", "undefined"),
    ("{a: {b: 7}}.a.b", "7"),
    ("({prod: 1, test: 2})[process.env.NONE || 'test']", "2"),
    ("{a: 1}.b", "undefined"),
    // Wrappers.
    ("(function () { return {a: 1}; })()", "{a:1}"),
    ("(function () { return {a: 1}; }())", "{a:1}"),
    ("(function conf() { 'use strict'; return {a: 1} })();", "{a:1}"),
    ("function () { return 5 }()", "5"),
    ("(() => ({a: 1}))()", "{a:1}"),
    ("(() => { const x = 1; let y = x + 1, z; return {x, y, z: z} })()", "{x:1,y:2,z:undefined}"),
    (
        "(function () {\n  var env = process.env\n  var os = require('os')\n  var name = os.hostname()\n  return { a: env.PORT, n: name, }\n})()",
        r#"{a:"9125",n:"web1.example"}"#,
    ),
    ("(function () { var x = 1; return (function () { var y = x; return y + 1; })(); })()", "2"),
    ("(function () { return 1; var x = never(); })()", "1"),
    ("(function () {})()", "undefined"),
    ("(function () { return; })()", "undefined"),
    ("module.exports = {a: 1};", "{a:1}"),
    ("module.exports = (function () { return {a: 1} })()", "{a:1}"),
];

#[test]
fn values_are_those_of_javascript() {
    for (text, want) in VALUES {
        match run(text) {
            Ok(node) => assert_eq!(show(&node.value), *want, "text {text}"),
            Err(diagnostics) => panic!("text {text}: {diagnostics:?}"),
        }
    }
}

/// Texts that node accepts and we do not, with the words that the message points at.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("{a: [1].map(f)}", "map"),
    ("{a: 'b'.substring(1)}", "substring"),
    ("{a: 'b'.replace(/x/, 'y')}", "/x/"),
    ("{a: 'b,c'.split(/,/)}", "/,/"),
    ("{a: ports.map(p => p + 1)}", "=>"),
    ("{a: (x, y) => 1}", ","),
    ("{a: function () { return 1; }}", "function () { return 1; }"),
    ("{a() { return 1; }}", "a"),
    ("{get a() { return 1; }}", "get"),
    ("{[a]: 1}", "["),
    ("{...a}", "..."),
    ("[...a]", "..."),
    ("{__proto__: {}}", "__proto__"),
    ("1 < 2", "<"),
    ("5 % 2", "%"),
    ("2 ** 2", "**"),
    ("1 | 2", "|"),
    ("~1", "~"),
    ("(1, 2)", ","),
    ("'a' in {}", "in"),
    ("typeof process.env.X === 'undefined' ? 1 : 2", "typeof"),
    ("new Date()", "new"),
    ("Math.max(1, 2)", "Math"),
    ("Date.now()", "Date"),
    ("process.pid", "pid"),
    ("process.argv[2]", "argv"),
    ("require('fs')", "require('fs')"),
    ("require('./base')", "require('./base')"),
    ("{a: require('os')}", "require('os')"),
    ("{a: process.env}", "process.env"),
    ("{a: parseInt}", "parseInt"),
    ("JSON.stringify({})", "stringify"),
    ("10n", "10n"),
    ("a?.b", "?."),
    ("tag`x`", "`x`"),
    ("{} === {}", "{} === {}"),
    ("(function (x) { return x; })(1)", "x"),
    ("(function () { if (1) { return 1; } })()", "if"),
    ("(function () { var a = {}; a.b = 1; return a; })()", "a"),
    ("(function () { for (;;) {} })()", "for"),
    ("(function () { var {a} = {a: 1}; return a; })()", "{"),
    ("(function () { var f = function () { return 1 }; return f() + f(); })()", "function () { return 1 }"),
    ("(function () { return {a: 1}; }).call(this)", "this"),
    ("(function () { return {a: 1}; }).call()", "call"),
    ("(async () => 1)()", "async"),
    ("var a = 1; {}", "var"),
    ("x = 1", "="),
    ("{a: 1}; process.exit()", "process"),
];

/// Texts that are errors in node as well.
const MISTAKES: &[(&str, &str)] = &[
    ("", ""),
    ("// nothing", ""),
    ("{ port: 8125 backends: [] }", "backends"),
    ("{ port: 8125,, }", ","),
    ("{ port 8125 }", "8125"),
    ("{ port: }", "}"),
    ("{ port: 8125", ""),
    ("{ port: 8125 }}", "}"),
    ("[1, 2", ""),
    ("'abc", "'"),
    ("{a: \"b\n\"}", "\""),
    ("/* x", "/*"),
    ("{a: 01.5}", "01.5"),
    ("# perl\n{}", "#"),
    ("{a: b}", "b"),
    ("process.env.NONE.length", "process.env.NONE.length"),
    ("JSON.parse('{')", "JSON.parse('{')"),
    ("'a'()", "'a'()"),
    ("1 || 2 ?? 3", "1 || 2"),
    ("1 ?? 2 && 3", "1 ?? 2 && 3"),
    ("(function () { return\n {a: 1}; })()", "return"),
    ("(function () { return {a: x}; var x = 1; })()", "x"),
    ("(function () { var x = 1 var y = 2 })()", "var"),
    ("(function () { var x = 1;", ""),
];

#[test]
fn errors_point_at_the_wrong_words() {
    let tables = [(UNSUPPORTED, Code::UnsupportedJavascript), (MISTAKES, Code::ImportSyntax)];
    for (table, code) in tables {
        for (text, words) in table {
            let diagnostics = run(text).expect_err(text);
            let [diagnostic] = &diagnostics[..] else { panic!("text {text}: {diagnostics:?}") };
            let place = diagnostic.place.expect("every fault has a place");
            assert_eq!(&text[place.start..place.end], *words, "text {text}: {diagnostic:?}");
            assert_eq!(diagnostic.code, code, "text {text}: {diagnostic:?}");
            assert!(code != Code::UnsupportedJavascript || diagnostic.hint.is_some(), "text {text}");
        }
    }
}

#[test]
fn values_have_the_place_where_they_were_written() {
    let text = "(function () { var p = process.env.PORT; return { port: p, 'a': [1 + 2] }; })()";
    let node = run(text).unwrap();
    let at = |place: Place| &text[place.start..place.end];
    let port = node.member("port").unwrap();
    assert_eq!((at(port.key_place), at(port.value.place)), ("port", "process.env.PORT"));
    let list = node.member("a").unwrap();
    assert_eq!((at(list.key_place), at(list.value.place)), ("'a'", "[1 + 2]"));
    let Value::Array(items) = &list.value.value else { panic!("not a list") };
    assert_eq!(at(items[0].place), "1 + 2");
}

#[test]
fn depth_is_bounded() {
    let deep = |n: usize, open: &str, close: &str| format!("{}1{}", open.repeat(n), close.repeat(n));
    for (open, close) in
        [("[", "]"), ("(", ")"), ("{a:", "}"), ("!", ""), ("1?", ":1"), ("`${", "}`"), ("1||(", ")")]
    {
        assert!(run(&deep(DEPTH_MAX - 2, open, close)).is_ok(), "{open}");
        assert!(run(&deep(DEPTH_MAX + 1, open, close)).is_err(), "{open}");
        assert!(run(&deep(10_000, open, close)).is_err(), "{open}");
    }
    let functions = deep(DEPTH_MAX / 2, "(function () { return ", " })()");
    assert!(run(&functions).is_ok() || run(&functions).is_err());
    let chain = format!("0{}", " + 1".repeat(20_000));
    assert_eq!(run(&chain).unwrap().value, Value::Number(20_000.0));
    let nested = |n: usize| {
        let steps: String = (1..=n).map(|i| format!("var a{i} = [a{}];", i - 1)).collect();
        format!("(function () {{ var a0 = 1; {steps} return a{n}; }})()")
    };
    assert!(run(&nested(DEPTH_MAX)).is_ok());
    assert!(run(&nested(DEPTH_MAX + 1)).is_err());
}

#[test]
fn created_values_are_bounded() {
    let doubled = |n: usize, first: &str, step: &str| {
        let steps = step.repeat(n);
        format!("(function () {{ var a = {first}; {steps} return a; }})()")
    };
    assert!(run(&doubled(10, "'x'", "var a = a + a;")).is_ok());
    for (first, step) in [
        ("'x'", "var a = a + a;"),
        ("'x'", "var a = `${a}${a}`;"),
        ("[1]", "var a = [a, a];"),
        ("'ab'", "var a = a.split('').join(a);"),
        ("'$&'", "var a = a.replace(a, a + a);"),
    ] {
        let text = doubled(60, first, step);
        assert!(run(&text).is_err_and(|found| found[0].message.contains("large")), "{step}");
    }
    let long = format!("{}1", " ".repeat(TEXT_BYTES_MAX - 1));
    assert!(run(&long).is_ok());
    assert!(run(&format!(" {long}")).is_err());
}

proptest! {
    #[test]
    fn any_text_gives_a_value_or_a_located_diagnostic(text in "(?s).{0,200}") {
        if let Err(diagnostics) = run(&text) {
            prop_assert!(diagnostics.iter().all(|found| found.place.is_some_and(|place| place.end <= text.len())));
        }
    }

    #[test]
    fn any_words_give_a_value_or_a_located_diagnostic(words in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        let text = words.join(" ");
        if let Err(diagnostics) = run(&text) {
            let place = diagnostics[0].place.unwrap();
            prop_assert!(text.is_char_boundary(place.start) && text.is_char_boundary(place.end), "{text}");
            prop_assert!(place.start <= place.end, "{text}");
        }
    }
}

/// Words that get random text far into the parser.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "(",
    ")",
    ",",
    ":",
    ";",
    "a",
    "b",
    "a:",
    "1",
    "'x'",
    "`",
    "${",
    "`t`",
    "/",
    "/r/",
    "+",
    "-",
    "*",
    "!",
    "==",
    "||",
    "&&",
    "??",
    "?",
    ".",
    "=>",
    "=",
    "\n",
    "//",
    "/*",
    "*/",
    "function",
    "()",
    "{return",
    "return",
    "var",
    "process.env",
    "process.env.PORT",
    "JSON.parse",
    "require('os')",
    ".split",
    ".join",
    "true",
    "null",
    "module.exports =",
    "\\",
    "'",
    "\"",
    "é",
    "0x",
    "1e",
    "#",
];
