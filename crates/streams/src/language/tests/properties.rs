use super::*;
use crate::collections::element::Element as _;
use crate::number::Number;
use crate::reader::Reader;
use crate::reader::names::NoNames;
use crate::value::Value;

/// Data that can be written in code.
fn data() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("equal to nothing", |number| !number.is_nan()).prop_map(Value::from),
        (any::<i64>(), 2..1000_i64).prop_map(|(a, b)| {
            let ratio = num_rational::BigRational::new(a.into(), b.into());
            Value::Number(crate::arithmetic::ratio(ratio).unwrap_or(Number::Int(0)))
        }),
        any::<String>().prop_map(Value::from),
        any::<char>()
            .prop_filter("a word goes on after it", |part| !part.is_whitespace())
            .prop_map(Value::Char),
        "[a-z*!?<=>][a-z0-9*+!?<=>'-]{0,6}"
            .prop_filter("another value", |name| !["nil", "true", "false"].contains(&name.as_str()))
            .prop_map(|name| Value::symbol(&name)),
        "[a-z][a-z0-9.-]{0,5}(/[a-z]{1,3})?".prop_map(|name| Value::keyword(&name)),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::vector),
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::list),
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::set),
            prop::collection::vec((inner.clone(), inner), 0..12).prop_map(Value::map),
        ]
    })
}

/// Words of code, of which most texts mean something.
fn code() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        Just("(".to_owned()),
        Just(")".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        "[(](map|filter|reduce|apply|into|repeat|iterate|take|concat|str|assoc|comp|partial|swap!|loop|fn|let|def|recur|quote|if|for|->|cond|case|range|cycle|sort|conj|cons|hash|vec|eval|defmacro) ",
        "(inc|dec|nil|x|y|[0-9]{1,3}|:a|\"s\"|\\+|str|vec|[xy] ~@|`|'|@|#\\(|%|&|\\{|\\}|#\\{|#\"a+\"|identity|range) ",
        Just("(let [x 1 y [1 2]] ".to_owned()),
        Just("(fn [x & y] ".to_owned()),
        Just("(loop [x 0] (recur ".to_owned()),
    ];
    prop::collection::vec(words, 0..30).prop_map(|words| words.concat())
}

/// Closes what is open, so that more than the first mistake is reached.
fn closed(text: &str) -> String {
    let mut open = Vec::new();
    for part in text.chars() {
        match part {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' => drop(open.pop()),
            _ => {}
        }
    }
    open.reverse();
    format!("{text}{}", open.into_iter().collect::<String>())
}

proptest! {
    #[test]
    fn any_text_is_read_or_has_a_mistake(text in ".{0,60}") {
        let mut reader = Reader::new(&text, arcstr::literal!("t"));
        while let Ok(Some(_)) = reader.next(&NoNames) {}
    }

    #[test]
    fn printed_data_is_read_as_the_same(value in data()) {
        let text = to_text(&value, true);
        let read = Reader::new(&text, arcstr::literal!("t")).next(&NoNames);
        prop_assert_eq!(read.map(|read| read.map(|read| read.equal(&value))), Ok(Some(true)), "{}", text);
    }

    #[test]
    fn equal_data_has_equal_hashes_and_the_order_is_total(a in data(), b in data()) {
        prop_assert!(a.order(&a).is_eq());
        prop_assert_eq!(a.order(&b), b.order(&a).reverse());
        if a.equal(&b) {
            prop_assert_eq!(a.hash(), b.hash());
        }
    }

    #[test]
    fn any_code_ends_within_its_budget(text in code()) {
        let text = closed(&text);
        let mut graph = graph(Nowhere::default());
        let limits = Limits { steps: 20_000, depth: 500, memory_bytes: 4 << 20 };
        let mut machine = Machine::new(&mut graph, limits);
        if let Ok(value) = machine.load(&text, "t") {
            let _ended = machine.realize(&value).is_ok();
        }
    }
}
