//! Warnings about valid plans.

use super::super::*;
use super::rig::*;

#[test]
fn likely_mistakes_are_reported_as_warnings() {
    let star_stop = |to| Statement::Match(matching(&[], to, true));
    let one = |expression: &str| Statement::Match(matching(&[expression], to(&[0]), false));
    let table: Vec<(&str, Vec<Statement>, Vec<RelayWarning>)> = vec![
        ("no warning", vec![one("a"), star_stop(to(&[0]))], vec![]),
        (
            "behind a stop",
            vec![star_stop(to(&[0])), one("a"), one("b")],
            vec![
                RelayWarning::Unreachable { statement: 1, taken_by: 0 },
                RelayWarning::Unreachable { statement: 2, taken_by: 0 },
            ],
        ),
        (
            "behind a blackhole",
            vec![Statement::Match(matching(&[], To::Blackhole, false)), one("a")],
            vec![RelayWarning::Unreachable { statement: 1, taken_by: 0 }],
        ),
        (
            "a stop that is none",
            vec![star_stop(To::Nowhere), one("a")],
            vec![RelayWarning::StopAlone { statement: 0 }],
        ),
        (
            "nothing at all",
            vec![Statement::Match(matching(&["a"], To::Nowhere, false))],
            vec![RelayWarning::DoesNothing { statement: 0 }],
        ),
        (
            "a result that feeds itself",
            vec![aggregate(&["^x", r"^sys\.(.*)$"], &[r"sys.all.\1"], To::Nowhere, false)],
            vec![RelayWarning::Loop { statement: 0, expression: 1 }],
        ),
        (
            "a number as a group",
            vec![aggregate(&[r"^sys\.([0-9]+)$"], &[r"sys.\1"], To::Nowhere, false)],
            vec![RelayWarning::Loop { statement: 0, expression: 0 }],
        ),
        (
            "expressions that backtrack",
            vec![
                Statement::Match(MatchPlan {
                    validate: valid("(?=x)", false),
                    ..matching(&["a", r"(a)\1"], to(&[0]), false)
                }),
                rewrite("(?!a)b", "c"),
            ],
            vec![
                RelayWarning::Backtracks { at: MistakeAt::Validate { statement: 0 } },
                RelayWarning::Backtracks { at: MistakeAt::Statement { statement: 0, expression: Some(1) } },
                RelayWarning::Backtracks { at: MistakeAt::Statement { statement: 1, expression: Some(0) } },
            ],
        ),
        (
            "a result that is sent on",
            vec![aggregate(&[r"^sys\.(.*)$"], &[r"sys.\1"], to(&[0]), false)],
            vec![],
        ),
        (
            "a result of another name",
            vec![aggregate(&[r"^sys\.(.*)$"], &[r"all.\1"], To::Nowhere, false)],
            vec![],
        ),
    ];
    for (what, statements, want) in table {
        let plan = plan(two(), statements);
        assert!(Router::new(&plan).is_ok(), "{what}");
        assert_eq!(plan.warnings(), want, "{what}");
    }
}
