//! `staunch check`: every mistake at once.

use std::process::ExitCode;

use config::diagnostic::to_json;

use super::args::{CheckArgs, Original};
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
    let bad = loaded.has_errors();
    if args.json {
        let mut json = serde_json::to_vec_pretty(&to_json(loaded.source(), &loaded.diagnostics))?;
        json.push(b'\n');
        talk::data(&json)?;
    } else {
        talk::say(&loaded.rendered());
        if !bad {
            talk::data(format!("{}: good\n", loaded.name).as_bytes())?;
        }
    }
    Ok(if bad { ExitCode::from(MISTAKES) } else { ExitCode::SUCCESS })
}
