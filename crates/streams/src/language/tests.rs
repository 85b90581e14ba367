use super::budget::Limits;
use super::host::Nowhere;
use super::machine::Machine;
use crate::print::to_text;

/// What a text evaluates to, printed; or its mistakes.
fn evaluated(text: &str) -> String {
    let (world, mut host) = (super::clojure(), Nowhere::default());
    host.now = 1_000;
    let mut machine = Machine::new(&world, &mut host, Limits { steps: 1_000_000, ..Limits::EVENT });
    match machine.load(text, "t") {
        Ok(value) => match machine.realize(&value) {
            Ok(value) => to_text(&value, true),
            Err(error) => format!("!{error}"),
        },
        Err(error) => format!("!{error}"),
    }
}

/// Each line of a table: an expression, `=>`, what it evaluates to.
fn check(table: &str) {
    let mut wrong = Vec::new();
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(";;"));
    for line in lines {
        let (text, want) = line.split_once(" => ").expect("a line has an arrow");
        let got = evaluated(text);
        let fits = match want.strip_prefix('!') {
            // A class or a part of the message is enough.
            Some(part) => got.starts_with('!') && got.contains(part),
            None => got == want,
        };
        if !fits {
            wrong.push(format!("{text}\n   want {want}\n   got  {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn forms_evaluate_as_in_clojure() {
    check(include_str!("tests/forms.clj"));
}
