//! `staunch manual`: what is made from the tables of options.

use std::process::ExitCode;

use clap::CommandFactory;

use super::args::{Args, ManualArgs, ManualKind};
use crate::talk;

/// `staunch manual`
pub(crate) fn manual(args: &ManualArgs) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    match args.what {
        ManualKind::Man => clap_mangen::Man::new(Args::command()).render(&mut text)?,
        ManualKind::Completions => {
            clap_complete::generate(args.shell, &mut Args::command(), "staunch", &mut text);
        }
        ManualKind::Reference => text.extend_from_slice(config::options::reference_markdown().as_bytes()),
        ManualKind::Schema => {
            text = serde_json::to_vec_pretty(&config::options::json_schema())?;
            text.push(b'\n');
        }
    }
    talk::data(&text)?;
    Ok(ExitCode::SUCCESS)
}
