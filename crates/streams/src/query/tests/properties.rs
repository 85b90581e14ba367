use std::sync::Arc;

use arcstr::ArcStr;
use proptest::prelude::*;

use super::super::token::{Kind, Spacing, next};
use super::super::{Comparison, Like, Meter, Operand, Pattern, Query, Tree, ast};
use super::{Number, event};
use crate::value::Value;

/// Texts that look like queries, and others.
fn query_text() -> impl Strategy<Value = String> {
    const PARTS: &[&str] = &[
        "and",
        "or",
        "not",
        "tagged",
        "(",
        ")",
        "=",
        "!=",
        "<",
        ">",
        "<=",
        ">=",
        "=~",
        "~=",
        "true",
        "nil",
        "host",
        "service",
        "metric>5",
        "a=b",
        "1",
        "-1.5e3",
        "10N",
        "0x1",
        "NaN",
        "-Infinity",
        "\"web%\"",
        "\"[a-\"",
        "\"(?#\n\"",
        "\"\\\n\"",
        "\"\\u00e9\\n\"",
        "\"",
        "\\",
        "é",
        ":",
        "/",
        ",",
        "a:b",
        ".5",
        "-",
        "!",
    ];
    let part = prop_oneof![prop::sample::select(PARTS).prop_map(str::to_owned), "\\PC{0,3}"];
    let spaced = (part, prop::sample::select(&[" ", " ", "", "\n"][..]));
    prop::collection::vec(spaced, 0..16)
        .prop_map(|parts| parts.into_iter().flat_map(|(part, space)| [part, space.to_owned()]).collect())
}

/// Trees that a parser can make: names that are fields in queries, texts, numbers.
pub(super) fn tree() -> impl Strategy<Value = Tree> {
    let field = prop::sample::select(&["host", "service", "metric", "dc", "a.b", "x:1"][..]);
    let name = || field.clone().prop_map(Operand::field);
    let number = prop_oneof![
        any::<i64>().prop_map(Number::Int),
        any::<f64>().prop_map(Number::Double),
        any::<i64>().prop_map(|value| Number::Big(Arc::new(value.into()))),
    ]
    .prop_map(|number| Operand::Literal(Value::Number(number)));
    let text = "[ab%\"\\\\\n é]{0,4}";
    let other = prop_oneof![
        Just(Operand::Literal(Value::Nil)),
        any::<bool>().prop_map(|value| Operand::Literal(Value::Bool(value))),
        text.prop_map(|text| Operand::text(&text)),
    ];
    let operand = prop_oneof![name(), number.clone(), other];
    let comparison = prop::sample::select(
        &[Comparison::Less, Comparison::Greater, Comparison::LessOrEqual, Comparison::GreaterOrEqual][..],
    );
    let pattern = prop::sample::select(&["a", "\\d\"", "^w(?!e)"][..]);
    let leaf = prop_oneof![
        operand.clone().prop_map(Tree::Value),
        (operand.clone(), operand.clone()).prop_map(|(a, b)| Tree::Equal(a, b)),
        (operand.clone(), operand.clone()).prop_map(|(a, b)| Tree::NotEqual(a, b)),
        (comparison, operand.clone(), number).prop_map(|(how, a, b)| Tree::Compare(how, a, b)),
        (text, operand.clone()).prop_map(|(pattern, of)| Tree::Like(pattern.into(), of)),
        (pattern, operand)
            .prop_map(|(pattern, of)| Tree::Regex(Arc::new(Pattern::new(pattern).unwrap()), of)),
        text.prop_map(|tag| Tree::Tagged(tag.into())),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Tree::Not(Box::new(inner))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Tree::and),
            prop::collection::vec(inner, 2..4).prop_map(Tree::or),
        ]
    })
}

/// Whether a text matches a pattern of `=~`, by trying every length of each `%`.
fn matches_slowly(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => {
            let run = text.iter().take_while(|&&letter| letter != '\n').count();
            (0..=run).any(|len| matches_slowly(rest, &text[len..]))
        }
        [letter, rest @ ..] => text.first() == Some(letter) && matches_slowly(rest, &text[1..]),
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected_within_it(text in query_text()) {
        match Query::new(&text) {
            Ok(query) => {
                let printed = query.tree().to_query();
                prop_assert_eq!(ast(&printed), Ok(query.tree().clone()), "printed as {}", printed);
                query.matches(&event(Some("web1"), "a", "ok", Number::Int(1)), &mut Meter::default());
            }
            Err(error) => {
                prop_assert!(error.at <= text.len() && text.is_char_boundary(error.at));
                prop_assert!(!error.message.contains('\n'));
                error.line_and_column(&text);
            }
        }
    }

    #[test]
    fn printed_tree_parses_to_the_same_tree(tree in tree()) {
        let printed = tree.to_query();
        prop_assert_eq!(ast(&printed), Ok(tree), "printed as {}", printed);
    }

    #[test]
    fn tokens_cover_the_text_without_overlap(text in query_text()) {
        for spacing in [Spacing::Required, Spacing::Optional] {
            let mut at = 0;
            while let Ok(token) = next(&text, at, spacing) {
                let between = text[at..token.start].chars();
                prop_assert!(between.into_iter().all(|letter| " \t\r\n,".contains(letter)));
                if token.kind == Kind::End {
                    prop_assert_eq!(token.start, text.len());
                    break;
                }
                prop_assert!(token.end > token.start);
                at = token.end;
            }
        }
    }

    #[test]
    fn like_agrees_with_a_slow_search(pattern in "[ab%\n]{0,6}", text in "[ab\n]{0,8}") {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        let want = matches_slowly(&letters(&pattern), &letters(&text));
        let found = Like::new(&ArcStr::from(&*pattern)).matches(&text, &mut Meter::default());
        prop_assert_eq!(found, want, "{:?} =~ {:?}", text, pattern);
    }

    #[test]
    fn any_regular_expression_is_compiled_or_rejected(
        pattern in "[ab\\\\\\[\\](){}?*+^$.|&~:<>=!0-9QEpPuxdsZ-]{0,12}",
        text in "[ab\n1]{0,10}",
    ) {
        if let Ok(pattern) = Pattern::new(&pattern) {
            pattern.is_in(&text, &mut Meter::default());
        }
    }
}
