//! Folds over small lists (spec riemann §11, §18).

use super::rig::Rig;

/// Folds of events `m4,a m1,b m4,c nil n m6,d`; of `m12 m3 m2`; of none.
const FRIENDLY: &[(&str, &str, &str, &str)] = &[
    ("folds/sum", "a,m15", "m17", "nil"),
    ("folds/product", "a,m96", "m72", "nil"),
    ("folds/mean", "a,m15/4", "m17/3", "nil"),
    ("folds/median", "c,m4", "m3", "nil"),
    ("folds/minimum", "b,m1", "m2", "nil"),
    ("folds/maximum", "d,m6", "m12", "nil"),
    ("folds/count", "a,m5", "m3", "m0t3"),
    ("folds/mode", "c,m4", "m12", "nil"),
    ("folds/modes", "[c,m4]", "[m12 m3 m2]", "[]"),
    ("folds/std-dev", "a,m1.78536", "m4.49691", "nil"),
    ("folds/difference", "a,description=An event or metric was nil.", "m7", "nil"),
    ("folds/quotient", "a,description=An event or metric was nil.", "m2", "nil"),
    ("folds/quotient-sloppy", "!", "m2", "nil"),
    ("folds/sum*", "!", "m17", "m0"),
    ("folds/product*", "!", "m72", "m1"),
    ("folds/difference*", "!", "m7", "!"),
    ("folds/quotient*", "!", "m2", "!"),
    ("folds/non-nil-metrics", "[4 1 4 6]", "[12 3 2]", "[]"),
];

fn fold(fold: &str, inputs: &str) -> String {
    let mut rig = Rig::new(&format!("(smap* (fn [events] {fold}) out)"));
    rig.advance(2_600_000);
    rig.run(inputs);
    rig.outputs().replace("@13/5 ", "")
}

#[test]
fn folds_give_what_the_vectors_say() {
    for (name, of_four, of_three, of_none) in FRIENDLY {
        let form = format!("({name} events)");
        assert_eq!(fold(&form, "[m4,a m1,b m4,c nil n m6,d]"), *of_four, "{name}");
        assert_eq!(fold(&form, "[m12 m3 m2]"), *of_three, "{name}");
        assert_eq!(fold(&form, "[]"), *of_none, "{name} of nothing");
    }
}

#[test]
fn folds_with_functions_points_and_what_cannot_be_computed() {
    let table = [
        ("(folds/fold-all + events)", "[a,m1 b,m2]", "a,m3"),
        ("(folds/fold-all + events)", "[nil a,m1]", "nil"),
        ("(folds/fold + events)", "[nil a b,m2 c,m3]", "a,m5"),
        ("(folds/fold + events)", "[a]", "a,m0"),
        ("(folds/fold* + events)", "[a,m1 b,m2]", "a,m3"),
        ("(folds/fold* + events)", "[a,m1 b]", "!"),
        ("(folds/extremum >= events)", "[a,m3 b,m5 c,m5 d]", "c,m5"),
        ("(folds/quotient events)", "[a,m3 b,m0]", "a,description=Can't divide by zero"),
        ("(folds/quotient events)", "[a,m3 b,m0.0]", "a,description=Can't divide by zero"),
        ("(folds/quotient-sloppy events)", "[a,m0 b,m3]", "a,m0"),
        ("(folds/maximum events)", "[a,m1 b,m1]", "b,m1"),
        ("(folds/minimum events)", "[a,m1 b,m1]", "b,m1"),
        ("(folds/mean events)", "[a b]", "nil"),
        ("(folds/sum events)", "[a b]", "a,m0"),
        ("(folds/product events)", "[a b]", "a,m1"),
        ("(folds/sum events)", "[a,metric=x]", "!"),
        ("(folds/sum events)", "a", "!"),
        (
            "(folds/sorted-sample events [0 0.5 0.99 1])",
            "[s,m3 s,m1 s,m2]",
            "[s 0,m1 s 0.5,m2 s 0.99,m3 s 1,m3]",
        ),
        ("(folds/sorted-sample events [0])", "[]", "[]"),
        ("(folds/sorted-sample-extract events [1 0])", "[s,m3 s,m1 s,m2]", "[s,m3 s,m1]"),
        ("(folds/sum events [0])", "[]", "!"),
    ];
    for (form, inputs, want) in table {
        assert_eq!(fold(form, inputs), want, "{form} of {inputs}");
    }
}

#[test]
fn each_fold_is_in_a_table_of_the_tests() {
    for row in crate::folds::table::FOLDS {
        let name = format!("folds/{}", row.native.name);
        let text = include_str!("folds.rs");
        assert!(text.contains(&format!("\"{name}\"")) || text.contains(&format!("({name} ")), "{name}");
    }
}
