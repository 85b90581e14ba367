//! Options of the verbs that inspect or change a daemon or its queues on disk: `staunch status`, `staunch top`, `staunch queue`, and
//! those of `staunch whisper` that need a daemon.
//!
//! From options to a daemon's address and access: [`DaemonArgs::server`]. Not here: what is asked there (`api_client`).

use std::path::PathBuf;

use clap::Subcommand;
use config::plan::Plan;

use crate::ReadPlan;
use crate::api_client::{Access, Server};
use crate::owner::http_of;
use crate::stdio::shown;

/// Address of the HTTP API when neither an address nor a config is given.
const API_DEFAULT: &str = "127.0.0.1:8680";

/// Daemon whose queues are meant.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Whose {
    /// The daemon's config, for its data directory and the access to its HTTP API.
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "data_dir")]
    pub config: Option<PathBuf>,
    /// The data directory [default: ./staunch-data].
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// Access to a daemon's HTTP API.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AccessArgs {
    /// Use TLS for the daemon's HTTP API, and trust the certificates in FILE (PEM).
    #[arg(long, global = true, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// File with the token of the daemon's HTTP API [default: $STAUNCH_TOKEN_FILE].
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

impl AccessArgs {
    /// Fills missing flags from the daemon's config: its token, and its own certificate as the trusted one.
    pub(crate) fn or_of(self, plan: Option<&Plan>) -> AccessArgs {
        let Some(server) = plan.map(|plan| &plan.http_server) else { return self };
        let (cert, token) = (server.tls.as_deref().map(|tls| &tls.identity.cert), server.token_file.as_ref());
        AccessArgs {
            ca: self.ca.or_else(|| cert.map(|file| file.path.clone())),
            token_file: self.token_file.or_else(|| token.map(|file| file.path.clone())),
        }
    }

    /// Access to a server whose certificate must match the requested name.
    pub(crate) fn by_name(self) -> Access {
        Access { ca: self.ca, token_file: self.token_file, skip_hostname_check: false }
    }

    /// Access to a daemon on this machine, at any address.
    pub(crate) fn of_this_machine(self) -> Access {
        Access { skip_hostname_check: self.ca.is_some(), ..self.by_name() }
    }
}

/// `staunch queue`
///
/// Works with a running daemon, and on the data directory of a stopped one. ls, check and export change nothing.
#[derive(Debug, clap::Args)]
pub struct QueueArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: QueueVerb,
    /// The daemon.
    #[command(flatten)]
    pub whose: Whose,
    /// Access to the daemon's HTTP API.
    #[command(flatten)]
    pub access: AccessArgs,
    /// Print or read JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do with queues.
#[derive(Debug, Subcommand)]
pub enum QueueVerb {
    /// List the queues on disk: records, age, output.
    Ls {
        /// The daemon's config, the same as --config.
        #[arg(conflicts_with_all = ["config", "data_dir"])]
        file: Option<PathBuf>,
    },
    /// Read the whole queues and report damage; exit code 1 if there is any.
    Check {
        /// Queues [default: all].
        names: Vec<String>,
    },
    /// Write the queued records to stdout.
    Export(QueueExportArgs),
    /// Drop the queued records.
    Drop(QueueDropArgs),
    /// Append exported records to the queue.
    Replay(QueueReplayArgs),
}

/// `staunch queue export`
#[derive(Debug, clap::Args)]
pub struct QueueExportArgs {
    /// The queue.
    pub name: String,
    /// Export the readable part of the quarantine instead of the queue.
    #[arg(long)]
    pub quarantine: bool,
    /// With --quarantine: also lines with a wrong checksum.
    #[arg(long, requires = "quarantine")]
    pub damaged: bool,
    /// Also export records that are delivered and still on disk.
    #[arg(long, conflicts_with = "quarantine")]
    pub all: bool,
}

/// `staunch queue drop`
#[derive(Debug, clap::Args)]
pub struct QueueDropArgs {
    /// The queue.
    pub name: String,
    /// Drop only records that are at least this old, such as 1h.
    #[arg(long, value_name = "AGE", value_parser = age_ms, conflicts_with = "quarantine")]
    pub older_than: Option<u64>,
    /// Drop the quarantine instead of the queue.
    #[arg(long)]
    pub quarantine: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
}

/// `staunch queue replay`
#[derive(Debug, clap::Args)]
pub struct QueueReplayArgs {
    /// The queue.
    pub name: String,
    /// Exported file, or `-` for stdin; JSON lines with --json.
    #[arg(long, value_name = "FILE", required_unless_present = "quarantine")]
    pub from: Option<PathBuf>,
    /// Append the undamaged part of the quarantine.
    #[arg(long, conflicts_with = "from")]
    pub quarantine: bool,
}

fn age_ms(text: &str) -> Result<u64, String> {
    config::text::parse_duration(text).ok_or_else(|| "write a time such as 1h, 30m or 7d".into())
}

/// Which daemon is asked, over its HTTP API.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DaemonArgs {
    /// HTTP API: HOST:PORT, a port, or an http(s):// address [default: 127.0.0.1:8680].
    #[arg(long, value_name = "ADDR")]
    pub api: Option<Api>,
    /// Config of a daemon on this machine, for address, certificate and token.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Access to the HTTP API.
    #[command(flatten)]
    pub access: AccessArgs,
}

impl DaemonArgs {
    /// The daemon's HTTP API: as the options say, else as the config says.
    ///
    /// # Errors
    /// When the config cannot be used, or has no HTTP API.
    pub(crate) fn server(self, read_plan: ReadPlan<'_>) -> anyhow::Result<Server> {
        let DaemonArgs { api, config, access } = self;
        let plan = config.as_deref().map(read_plan).transpose()?;
        let access = access.or_of(plan.as_ref());
        Ok(match (api, &plan) {
            (Some(api), _) => Server { at: api.0, access: access.by_name() },
            (None, Some(plan)) => Server { at: http_of(plan)?.to_string(), access: access.of_this_machine() },
            (None, None) => Server { at: API_DEFAULT.to_owned(), access: access.by_name() },
        })
    }

    /// Where the address of [`Self::server`] comes from, and how to query another daemon with `verb`.
    pub(crate) fn hint(&self, verb: &str) -> String {
        let why = match (&self.api, &self.config) {
            (Some(_), _) => "the address is that of --api".to_owned(),
            (None, Some(file)) => format!("the address is that of {}", shown(&file.display().to_string())),
            (None, None) => {
                format!("{API_DEFAULT} is the default address; the daemon may have another one, or none runs")
            }
        };
        format!(
            "  hint: {why}\n  hint: to query another daemon: `staunch {verb} --api HOST:PORT` or `staunch {verb} --config FILE`\n"
        )
    }
}

/// A store of a running daemon.
#[derive(Clone, Debug, clap::Args)]
pub struct StoreArgs {
    /// The output of type whisper [default: the only one].
    #[arg(long, value_name = "NAME")]
    pub output: Option<String>,
    /// The daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `staunch whisper delete`
#[derive(Clone, Debug, clap::Args)]
pub struct StoreDeleteArgs {
    /// Names or globs: servers.old.load, 'servers.old.**'.
    pub names: Vec<String>,
    /// Series with tags that all these expressions fit: host=old.
    #[arg(long = "tag", value_name = "EXPRESSION")]
    pub tags: Vec<String>,
    /// Only list them.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `staunch whisper rename`
#[derive(Clone, Debug, clap::Args)]
pub struct StoreRenameArgs {
    /// A series, or a branch: all series below it.
    pub from: String,
    /// The new name.
    pub to: String,
    /// Only list them.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `staunch whisper drain`
#[derive(Clone, Debug, clap::Args)]
pub struct StoreDrainArgs {
    /// Longest wait.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = age_ms)]
    pub timeout: u64,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `staunch top`
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// The daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Print one JSON object per second; default if stdout is a pipe.
    #[arg(long)]
    pub json: bool,
    /// Show the rates of one second as text and exit.
    #[arg(long)]
    pub once: bool,
}

/// `staunch status`
///
/// Exit codes: 0 ready and no warnings, 1 not ready or a warning, 2 no answer.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// The daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Do not wait a second for the rates: show totals only.
    #[arg(long)]
    pub no_wait: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `HOST:PORT` of an HTTP API, or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api(pub String);

impl std::str::FromStr for Api {
    type Err = String;

    fn from_str(text: &str) -> Result<Api, String> {
        if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
            return Ok(Api(format!("127.0.0.1:{port}")));
        }
        let text = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let place = text.strip_prefix("https://").unwrap_or(text);
        let good = place.rsplit_once(':').is_some_and(|(host, port)| {
            let numeric = host.starts_with('[') && host.ends_with(']');
            let named = !host.is_empty() && !host.contains([':', '/', '@', ' ']);
            (numeric || named) && port.parse::<u16>().is_ok()
        });
        good.then(|| Api(text.to_owned()))
            .ok_or_else(|| "write HOST:PORT such as 127.0.0.1:8680, or a port of 127.0.0.1".to_owned())
    }
}

#[test]
fn apis_are_places_without_paths() {
    for (text, want) in [
        ("127.0.0.1:8680", Some("127.0.0.1:8680")),
        ("8680", Some("127.0.0.1:8680")),
        (":8680", Some("127.0.0.1:8680")),
        ("http://web1:8680/", Some("web1:8680")),
        ("https://web1:8680/", Some("https://web1:8680")),
        ("https://web1", None),
        ("[::1]:8680", Some("[::1]:8680")),
        ("web1", None),
        ("::1:8680", None),
        ("http://web1:8680/metrics", None),
        ("web1:http", None),
        (":", None),
        ("", None),
    ] {
        assert_eq!(text.parse::<Api>().ok().map(|api| api.0).as_deref(), want, "{text:?}");
    }
}
