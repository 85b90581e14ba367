//! How a daemon of carbon was started: its section, its environment, and the files that its command line names.
//!
//! Not here: the command line itself (`staunch::carbon`).

use std::path::PathBuf;

/// What stands beside carbon.conf.
#[derive(Clone, Debug, Default)]
pub struct Invocation {
    /// The section, such as `cache`, `relay:b` or `aggregator-cache`.
    pub section: String,
    /// The name of this machine, for the names of the daemon's own metrics.
    pub hostname: String,
    /// `STORAGE_DIR` where the file has none (GRAPHITE_STORAGE_DIR, or a folder below GRAPHITE_ROOT).
    pub storage_dir: Option<String>,
    /// `--rules`: the relay's or the aggregator's.
    pub rules: Option<String>,
    /// `--rewrite-rules`
    pub rewrite_rules: Option<String>,
    /// `--blacklist`
    pub blacklist: Option<String>,
    /// `--whitelist`
    pub whitelist: Option<String>,
    /// The folder of storage-schemas.conf and storage-aggregation.conf, if the store is to read them again while it runs. Without it
    /// their rules become part of the plan.
    pub storage_rules: Option<PathBuf>,
}

impl Invocation {
    /// A section, and nothing else.
    pub fn of_section(section: &str) -> Invocation {
        Invocation { section: section.to_owned(), hostname: "localhost".to_owned(), ..Invocation::default() }
    }
}
