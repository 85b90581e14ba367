//! `staunch check`: every mistake at once; without one, what the file makes of each packet.

use std::process::ExitCode;

use config::diagnostic::to_json;
use config::plan::Plan;
use serde_json::{Value, json};

use super::args::{CheckArgs, Original};
use super::copies::{self, Owners};
use super::load::Loaded;
use super::{MISTAKES, load};
use crate::talk;

/// `staunch check`
pub(crate) fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let loaded = if load::is_original(&args.file) || args.compat.is_some() {
        let CheckArgs { file, compat, ignore_unknown_backends, .. } = args.clone();
        load::any_original(&Original { file, compat, ignore_unknown_backends })?
    } else {
        load::native(&args.file)?
    };
    if args.json {
        let mut json = serde_json::to_vec_pretty(&document(&loaded, args)?)?;
        json.push(b'\n');
        talk::data(&json)?;
    } else {
        talk::say(&loaded.rendered());
        told(&loaded, args)?;
    }
    Ok(if loaded.has_errors() { ExitCode::from(MISTAKES) } else { ExitCode::SUCCESS })
}

/// The plan, when it can be run.
fn good(loaded: &Loaded) -> Option<&Plan> {
    loaded.plan.as_ref().filter(|_| !loaded.has_errors())
}

/// For people: that the file is good, and what it makes of each packet. For programs that ask about keys: the answers.
fn told(loaded: &Loaded, args: &CheckArgs) -> anyhow::Result<()> {
    let Some(plan) = good(loaded) else { return Ok(()) };
    if let Some(keys) = &args.keys {
        return Owners::new(plan)?.write(keys);
    }
    let mut text = format!("{}: good\n", loaded.name);
    copies::of_plan(plan).iter().for_each(|copies| text.push_str(&copies.text()));
    talk::data(text.as_bytes())?;
    Ok(())
}

fn document(loaded: &Loaded, args: &CheckArgs) -> anyhow::Result<Value> {
    let mut document = json!({
        "good": !loaded.has_errors(),
        "diagnostics": to_json(loaded.source(), &loaded.diagnostics),
    });
    if let Some(plan) = good(loaded) {
        document["sources"] = copies::of_plan(plan).iter().map(copies::Copies::json).collect();
        if let Some(keys) = &args.keys {
            document["keys"] = Owners::new(plan)?.json(keys)?;
        }
    }
    Ok(document)
}
