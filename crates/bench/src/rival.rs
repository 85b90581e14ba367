//! The original programs that benchmarks compare with: their paths and versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `make bench` installs the originals, relative to the repository.
const NODE_SCRIPT: &str = "bench/node_modules/statsd/stats.js";
const CARBON_C_RELAY: &str = "compat/.relay/usr/bin/carbon-c-relay";

/// An original program, or the reason for its absence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rival {
    /// Its script or program.
    pub program: Option<PathBuf>,
    /// Its versions; empty without.
    pub words: String,
    /// The warning of the report when it is missing.
    pub missing: Option<String>,
}

impl Rival {
    fn missing(why: String) -> Rival {
        Rival { missing: Some(why), ..Rival::default() }
    }
}

/// The original program for the StatsD benchmarks.
#[derive(Clone, Debug, clap::Args)]
pub struct NodeStatsd {
    /// The `stats.js` of node statsd [default: the one that `make bench` installs]
    #[arg(long, hide_short_help = true)]
    pub node_statsd: Option<PathBuf>,
    /// Leave node statsd out
    #[arg(long, conflicts_with = "node_statsd")]
    pub without_node: bool,
}

impl NodeStatsd {
    /// The script and its versions.
    pub(crate) fn find(&self) -> Rival {
        if self.without_node {
            return Rival::default();
        }
        let script = self.node_statsd.clone().unwrap_or_else(|| NODE_SCRIPT.into());
        let Ok(script) = fs::canonicalize(&script) else {
            let script = script.display();
            return Rival::missing(format!(
                "node statsd is left out: no {script} (`make bench` installs it)"
            ));
        };
        let Ok(node) = Command::new("node").arg("--version").output() else {
            return Rival::missing("node statsd is left out: no `node` in PATH".into());
        };
        let node = String::from_utf8_lossy(&node.stdout).trim().to_owned();
        let version = statsd_version(&script).unwrap_or_else(|| "of unknown version".into());
        let words = format!("node {node} with statsd {version} (npm registry)");
        Rival { program: Some(script), words, missing: None }
    }
}

fn statsd_version(script: &Path) -> Option<String> {
    let package = fs::read(script.parent()?.join("package.json")).ok()?;
    let package: serde_json::Value = serde_json::from_slice(&package).ok()?;
    Some(package["version"].as_str()?.to_owned())
}

/// The original program for the relay benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct CarbonCRelay {
    /// The original [default: $CARBON_C_RELAY, the one in PATH, or the one that `make bench` unpacks]
    #[arg(long, hide_short_help = true)]
    pub carbon_c_relay: Option<PathBuf>,
    /// Leave the original out
    #[arg(long)]
    pub without_original: bool,
}

impl CarbonCRelay {
    /// The program and its version.
    pub(crate) fn find(&self) -> Rival {
        if self.without_original {
            return Rival::default();
        }
        let named = self.carbon_c_relay.iter().cloned();
        let places = if self.carbon_c_relay.is_some() { Vec::new() } else { places() };
        let works = |program: &PathBuf| Some((program.clone(), version(program)?));
        let Some((program, words)) = named.chain(places).find_map(|program| works(&program)) else {
            let why = "carbon-c-relay is left out: none in PATH (`make bench` unpacks Debian's)";
            return Rival::missing(why.into());
        };
        Rival { program: Some(program), words, missing: None }
    }
}

/// The paths that are searched for the original.
fn places() -> Vec<PathBuf> {
    let named = std::env::var_os("CARBON_C_RELAY").map(PathBuf::from);
    let unpacked = fs::canonicalize(CARBON_C_RELAY).ok();
    named.into_iter().chain(std::iter::once("carbon-c-relay".into())).chain(unpacked).collect()
}

/// The version that the original prints: `carbon-c-relay v3.7.3 (2021-11-09)`.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("-v").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let words = text.lines().next()?.trim().to_owned();
    words.starts_with("carbon-c-relay ").then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn a_missing_original_program_is_a_warning() {
        let node = |words: &str| parse::<NodeStatsd>(words).unwrap().find();
        assert!(node("--node-statsd no/such/stats.js").missing.is_some_and(|why| why.contains("no/such")));
        assert_eq!(node("--without-node"), Rival::default());
        let relay = |words: &str| parse::<CarbonCRelay>(words).unwrap().find();
        for program in ["no/such/relay", "/bin/true"] {
            let rival = relay(&format!("--carbon-c-relay {program}"));
            assert!(rival.program.is_none() && rival.missing.is_some(), "{rival:?}");
        }
        assert_eq!(relay("--without-original"), Rival::default());
    }
}
