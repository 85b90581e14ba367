//! `staunch explain`: the page of a code or an outcome.

use std::process::ExitCode;

use config::diagnostic::{Code, nearest};

use super::args::ExplainArgs;
use super::{MISTAKES, outcomes};
use crate::talk;

/// `staunch explain`
pub(crate) fn explain(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let pages = outcomes::pages();
    let Some(word) = &args.code else {
        let codes = Code::ALL.iter().map(|code| format!("{:<22} {}\n", code.word(), code.title()));
        let reasons = pages.iter().map(|page| format!("{:<22} {}: {}\n", page.word, page.family, page.why));
        talk::data(codes.chain(reasons).collect::<String>().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(code) = Code::of_word(&word.to_uppercase()) {
        talk::data(code.explain().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(page) = pages.iter().find(|page| page.word == word.as_str()) {
        let text = format!(
            "{}: an outcome of the family `{}`\n\n{}\n\n{}\n",
            page.word, page.family, page.why, page.advice
        );
        talk::data(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let others = outcomes::NO_LOSS.iter().chain(&outcomes::OUTSIDE);
    if let Some((word, about)) = others.clone().find(|(other, _)| other == word) {
        talk::data(format!("{word}\n\n{about}\n").as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let known = Code::ALL.iter().map(|code| code.word()).chain(pages.iter().map(|page| page.word));
    let known = known.chain(others.map(|(word, _)| *word));
    let hint = nearest(word, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    talk::say(&format!("staunch: there is no code or outcome `{word}`{hint}\n"));
    talk::say("`staunch explain` without a word lists them all\n");
    Ok(ExitCode::from(MISTAKES))
}
