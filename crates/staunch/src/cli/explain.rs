//! `staunch explain`: the page of a code, an outcome or a reason of an `err` line.

use std::process::ExitCode;

use config::diagnostic::{Code, nearest};

use super::args::ExplainArgs;
use super::outcomes::Page;
use super::{MISTAKES, outcomes, states, unacked};
use client::stdio;

/// `staunch explain`
pub(crate) fn explain(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let (pages, unacked) = (outcomes::pages(), unacked::pages());
    let Some(word) = &args.code else {
        let codes = Code::ALL.iter().map(|code| format!("{:<22} {}\n", code.word(), code.title()));
        let reasons = pages.iter().chain(&unacked);
        let reasons = reasons.map(|page| format!("{:<22} {}: {}\n", page.word, page.family, page.why));
        let failures = outcomes::LAST_ERRORS.iter();
        let failures = failures.map(|(word, about)| {
            let first = about.split_inclusive(['.', ';', ':']).next().unwrap_or(about);
            format!("{word:<22} last_error: {}\n", first.trim_end_matches(['.', ';', ':']))
        });
        let states = states::STATES.iter().map(|(word, about)| (word, "state", about));
        let states = states.chain(states::FIGURES.iter().map(|(word, about)| (word, "accounts", about)));
        let states = states.map(|(word, what, about)| {
            let first = about.split(". ").next().unwrap_or(about).trim_end_matches('.');
            format!("{word:<22} {what}: {first}\n")
        });
        stdio::data(codes.chain(reasons).chain(failures).chain(states).collect::<String>().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(code) = Code::of_word(&word.to_uppercase()) {
        stdio::data(code.explain().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let word = renamed(word);
    let texts = texts(word, &pages, &unacked);
    if !texts.is_empty() {
        stdio::data(texts.join("\n").as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let others = outcomes::NO_LOSS.iter().chain(&outcomes::OUTSIDE).chain(&outcomes::TOTALS);
    let known =
        Code::ALL.iter().map(|code| code.word()).chain(pages.iter().chain(&unacked).map(|page| page.word));
    let others = others.chain(&outcomes::LAST_ERRORS).chain(&outcomes::FAMILIES);
    let others = others.chain(&states::STATES).chain(&states::FIGURES);
    let known = known.chain(others.map(|(word, _)| *word));
    let hint = nearest(word, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    stdio::say(&format!("staunch: there is no code or outcome `{word}`{hint}\n"));
    stdio::say("`staunch explain` without a word lists them all\n");
    Ok(ExitCode::from(MISTAKES))
}

/// The word of today for one of version 0.1.0, which dashboards and notes may still have.
fn renamed(word: &str) -> &str {
    match word {
        "bad_packing" => "bad_compression",
        "rollup_full" => "aggregation_rule_full",
        "shed" => "dropped",
        "refused_by_peer" => "rejected_by_peer",
        _ => word,
    }
}

/// Everything that a word means.
fn texts(word: &str, pages: &[Page], unacked: &[Page]) -> Vec<String> {
    let text =
        |page: &Page, what: &str| format!("{}: {what}\n\n{}\n\n{}\n", page.word, page.why, page.advice);
    let outcome = pages.iter().filter(|page| page.word == word);
    let outcome = outcome.map(|page| text(page, &format!("an outcome of the family `{}`", page.family)));
    let answer = unacked.iter().filter(|page| page.word == word);
    let answer =
        answer.map(|page| text(page, "a reason of `err` lines, for clients that want acknowledgements"));
    let failure = outcomes::LAST_ERRORS.iter().filter(|(other, _)| *other == word);
    let failure = failure.map(|(word, about)| format!("{word}: a value of `last_error`\n\n{about}\n"));
    let family = outcomes::FAMILIES.iter().filter(|(family, _)| *family == word);
    let family = family.map(|(family, about)| {
        let reasons = pages.iter().filter(|page| page.family == *family);
        let reasons: String = reasons.map(|page| format!("  {:<22} {}\n", page.word, page.why)).collect();
        format!("{family}: a family of outcomes\n\n{about}\n\n{reasons}")
    });
    let others = outcomes::TOTALS.iter().chain(&outcomes::NO_LOSS).chain(&outcomes::OUTSIDE);
    let others = others.filter(|(other, _)| *other == word);
    let others = others.map(|(word, about)| format!("{word}: a field of the accounts\n\n{about}\n"));
    let state = states::STATES.iter().filter(|(state, _)| *state == word);
    let state = state.map(|(word, about)| format!("{word}: a state of an output\n\n{about}\n"));
    let figure = states::FIGURES.iter().filter(|(figure, _)| *figure == word);
    let figure = figure.map(|(word, about)| format!("{word}: a field of the accounts\n\n{about}\n"));
    others.chain(family).chain(outcome).chain(answer).chain(failure).chain(state).chain(figure).collect()
}
