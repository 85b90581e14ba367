//! `staunch check`: all errors at once. Without errors: the copies of each packet, and the destinations of its relays.

pub(crate) mod checked;
mod copies;
mod keys;
mod opens;
mod rules;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use config::diagnostic::Count;
use config::plan::Plan;
use serde_json::{Value, json};

use self::checked::Checked;
use self::keys::Keys;
use super::args::{CheckArgs, Original};
use super::kind::FileKind;
use super::load::Loaded;
use super::{FAILED, MISTAKES, load, relay};
use client::stdio;

/// `staunch check`
pub(crate) fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    // The files of `--config` are one config.
    let is_one = args.files.len() <= 1;
    anyhow::ensure!(is_one || args.keys.is_none(), "--keys needs exactly one config file");
    let (mut code, mut documents) = (0, Vec::new());
    for number in 0..args.files.len().max(1) {
        let CheckArgs { compat, ignore_unknown_backends, .. } = args.clone();
        let checked = match args.files.get(number).cloned() {
            Some(file) => {
                let file = Original { file, compat, ignore_unknown_backends };
                checked_with(&file, Loaded::with_folders_checked)
            }
            None => load::native(&args.config).map(|loaded| loaded.with_folders_checked().into()),
        };
        let checked = match checked {
            Err(error) if !is_one => {
                stdio::say(&format!("staunch: {error:#}\n"));
                code = FAILED;
                continue;
            }
            checked => checked?,
        };
        if args.json {
            documents.push(document(&checked, args)?);
        } else {
            stdio::say(&checked.said);
            report(&checked, args)?;
        }
        if checked.plan.is_none() {
            code = code.max(MISTAKES);
        }
    }
    if args.json {
        let json = if is_one { documents.remove(0) } else { Value::Array(documents) };
        let mut json = serde_json::to_vec_pretty(&json)?;
        json.push(b'\n');
        stdio::data(&json)?;
    }
    Ok(ExitCode::from(code))
}

/// Reads a config of any program.
///
/// # Errors
/// When it cannot be read, or is carbon's.
pub(crate) fn checked(file: &Original) -> anyhow::Result<Checked> {
    checked_with(file, |loaded| loaded)
}

/// The same, with more checks of a native one.
fn checked_with(file: &Original, native: fn(Loaded) -> Loaded) -> anyhow::Result<Checked> {
    let kind = if file.compat.is_some() { FileKind::Statsd } else { load::kind(&file.file)? };
    match kind {
        FileKind::Relay => Ok(relay::checked(&file.file)),
        FileKind::Riemann => Ok(Checked { kind, ..load::riemann(&file.file)?.into() }),
        FileKind::Statsd => Ok(Checked { kind, ..load::any_original(file)?.into() }),
        FileKind::Native | FileKind::Carbon | FileKind::CarbonRules | FileKind::Pem => {
            Ok(native(load::native(std::slice::from_ref(&file.file))?).into())
        }
    }
}

/// The plan of a daemon's config, for commands that use its data directory or its HTTP API.
///
/// # Errors
/// When it cannot be read or has errors.
pub(crate) fn plan_of(file: &Path) -> anyhow::Result<Plan> {
    let file = Original { file: file.to_owned(), compat: None, ignore_unknown_backends: true };
    let checked = checked(&file)?;
    checked.plan.with_context(|| format!("{0} has mistakes: `staunch check {0}` shows them", checked.name))
}

/// For people: that the file is valid, the copies of each packet, and the rules of its relays. With `--keys`, for
/// programs: the results.
fn report(checked: &Checked, args: &CheckArgs) -> anyhow::Result<()> {
    let Some(plan) = &checked.plan else {
        if !FileKind::is_named(&checked.name) {
            stdio::say(&format!("{} was read as: {}\n", checked.name, checked.kind.described()));
        }
        return Ok(());
    };
    if args.print {
        stdio::data(config::print_shown(plan).as_bytes())?;
        return Ok(());
    }
    if let Some(keys) = &args.keys {
        return Keys::new(plan, &*checked.place)?.write(keys);
    }
    let mut text = format!("{}: good ({})\n", checked.name, checked.kind.described());
    text.push_str(&opens::of_plan(plan).text());
    copies::of_plan(plan).iter().for_each(|copies| text.push_str(&copies.text()));
    text.push_str(&clear_text(plan));
    rules::of_plan(plan, &*checked.place).iter().for_each(|rules| text.push_str(&rules.text()));
    stdio::data(text.as_bytes())?;
    Ok(())
}

/// Sources that other machines can reach without TLS; empty if there are none.
fn clear_text(plan: &Plan) -> String {
    let clear = config::clear_listeners(plan);
    if clear.is_empty() {
        return String::new();
    }
    let rows = clear.into_iter().map(|(source, at)| format!("  {source:<24} {at}\n"));
    std::iter::once("open to a network and not encrypted (docs/security.md):\n".to_owned())
        .chain(rows)
        .collect()
}

fn document(checked: &Checked, args: &CheckArgs) -> anyhow::Result<Value> {
    let Count { errors, warnings } = checked.count;
    let mut document = json!({
        "file": checked.name,
        "kind": checked.kind.word(),
        "good": checked.plan.is_some(),
        "errors": errors,
        "warnings": warnings,
        "diagnostics": checked.diagnostics,
    });
    if let Some(plan) = &checked.plan {
        document["opens"] = serde_json::to_value(opens::of_plan(plan))?;
        document["sources"] = copies::of_plan(plan).iter().map(copies::Copies::json).collect();
        let clear = config::clear_listeners(plan);
        document["open_and_not_encrypted"] =
            clear.into_iter().map(|(source, at)| json!({ "source": source, "at": at })).collect();
        let relays = rules::of_plan(plan, &*checked.place);
        if !relays.is_empty() {
            document["relays"] = serde_json::to_value(relays)?;
        }
        if let Some(keys) = &args.keys {
            document["keys"] = Keys::new(plan, &*checked.place)?.json(keys)?;
        }
    }
    Ok(document)
}
