//! `staunch explain`: the page of a code, an outcome or a reason of an `err` line.

mod outcomes;
mod states;
mod unacked;
mod words;

use std::process::ExitCode;

use config::diagnostic::{Code, nearest};

use self::outcomes::Page;
use super::MISTAKES;
use super::args::ExplainArgs;
use crate::outputs::errors;
use client::stdio;

/// `staunch explain`
pub(crate) fn explain(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let (pages, unacked) = (outcomes::pages(), unacked::pages());
    let Some(word) = &args.code else {
        stdio::data(listing(&pages, &unacked).as_bytes())?;
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
    let others = others.chain(&states::STATES).chain(&states::FIGURES).chain(words::WORDS);
    let known = known.chain(others.map(|(word, _)| *word)).chain(words::metrics());
    let hint = nearest(word, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    stdio::say(&format!("staunch: there is no code, outcome, metric or other word `{word}`{hint}\n"));
    stdio::say("`staunch explain` without a word lists them all\n");
    Ok(ExitCode::from(MISTAKES))
}

/// Every word that there is a page for, a line each.
fn listing(pages: &[Page], unacked: &[Page]) -> String {
    let mut list = String::new();
    let mut put = |word: &str, what: &str, about: &str| {
        let first = about.split(". ").next().unwrap_or(about).trim_end_matches(['.', ';', ':']);
        list.push_str(&format!("{word:<22} {what}{first}\n"));
    };
    Code::ALL.iter().for_each(|code| put(code.word(), "", code.title()));
    let outcomes = outcomes::FAMILIES.iter().chain(&outcomes::NO_LOSS);
    let outcomes = outcomes.chain(&outcomes::TOTALS).chain(&outcomes::OUTSIDE);
    outcomes.for_each(|(word, about)| put(word, "accounts: ", about));
    pages.iter().chain(unacked).for_each(|page| put(page.word, &format!("{}: ", page.family), page.why));
    outcomes::LAST_ERRORS.iter().for_each(|(word, about)| put(word, "last_error: ", about));
    states::STATES.iter().for_each(|(word, about)| put(word, "state: ", about));
    states::FIGURES.iter().for_each(|(word, about)| put(word, "accounts: ", about));
    words::WORDS.iter().for_each(|(word, about)| put(word, "word: ", about));
    errors::words().for_each(|word| put(word, "system error: ", "see `errors_by`"));
    words::metrics().for_each(|name| put(name, "metric", ""));
    list
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

/// All meanings of a word.
fn texts(word: &str, pages: &[Page], unacked: &[Page]) -> Vec<String> {
    let text =
        |page: &Page, what: &str| format!("{}: {what}\n\n{}\n\n{}\n", page.word, page.why, page.advice);
    let outcome = pages.iter().filter(|page| page.word == word);
    let outcome = outcome.map(|page| text(page, &format!("an outcome of the family `{}`", page.family)));
    let answer = unacked.iter().filter(|page| page.word == word);
    let answer =
        answer.map(|page| text(page, "a reason of `err` lines, for clients of a source with `ack_when`"));
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
    let other = words::WORDS.iter().filter(|(other, _)| *other == word);
    let other = other.map(|(word, about)| format!("{word}: a word of screens, JSON or logs\n\n{about}\n"));
    let known = others.chain(family).chain(outcome).chain(answer).chain(failure).chain(state).chain(figure);
    let mut texts: Vec<String> = known.chain(other).chain(words::metric(word)).collect();
    if errors::words().any(|error| error == word) {
        texts.push(format!(
            "{word}: an error of the system\n\nThe system's name for a failed attempt to reach an endpoint or to write a file. \
             `last_error_text` and the log have its message. Records stay queued.\n"
        ));
    }
    if let (true, Some(counted)) = (texts.is_empty(), words::rate_of(word)) {
        texts = self::texts(counted, pages, unacked);
        if !texts.is_empty() {
            texts.insert(0, format!("{word}: the rate of `{counted}` per second\n"));
        }
    }
    texts
}
