//! `staunch manual`: documents generated from the tables of options.

use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use super::args::{Args, ManualArgs, ManualKind};
use client::stdio;

/// The page of the program, or of one command.
fn page(verb: Option<&str>) -> anyhow::Result<clap_mangen::Man> {
    let mut command = Args::command();
    // Adds the program's name and global options to the commands.
    command.build();
    let Some(verb) = verb else { return Ok(clap_mangen::Man::new(command)) };
    let of_a_verb =
        || command.find_subcommand(verb.split_once('-')?.0)?.find_subcommand(verb.split_once('-')?.1);
    let known = command.find_subcommand(verb).or_else(of_a_verb);
    let known = known.with_context(|| format!("there is no command `{verb}`: `staunch -h` lists them"))?;
    Ok(clap_mangen::Man::new(known.clone()).title(format!("staunch-{verb}")))
}

/// `staunch manual`
pub(crate) fn manual(args: &ManualArgs) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    match args.what {
        ManualKind::Man => page(args.verb.as_deref())?.render(&mut text)?,
        ManualKind::Completions => {
            clap_complete::generate(args.shell, &mut Args::command(), "staunch", &mut text);
        }
        ManualKind::Reference => text.extend_from_slice(config::options::reference_markdown().as_bytes()),
        ManualKind::Schema => {
            text = serde_json::to_vec_pretty(&config::options::json_schema())?;
            text.push(b'\n');
        }
    }
    stdio::data(&text)?;
    Ok(ExitCode::SUCCESS)
}

#[test]
fn every_verb_that_the_page_names_has_a_page() {
    let text = |verb: Option<&str>| {
        let mut text = Vec::new();
        page(verb).and_then(|page| Ok(page.render(&mut text)?)).expect("it renders");
        String::from_utf8(text).expect("roff is text").replace("\\-", "-")
    };
    let all = text(None);
    let verbs: Vec<&str> =
        all.lines().filter_map(|line| line.strip_prefix("staunch-")?.strip_suffix("(1)")).collect();
    assert!(verbs.contains(&"run") && verbs.contains(&"statsd-proxy"), "{all}");
    for verb in verbs.into_iter().filter(|verb| *verb != "help") {
        let page = text(Some(verb));
        assert!(page.contains(&format!(".TH staunch-{verb} 1")) && page.contains("SYNOPSIS"), "{page}");
    }
    assert!(text(Some("queue-export")).contains("--quarantine"));
    assert!(page(Some("nothing")).is_err() && page(Some("queue-nothing")).is_err());
}
