//! The command line of `staunch fanout --source ADDR --target ADDR …` as a plan (spec statsd §14).
//!
//! Path: command line -> plan -> native file -> [`check`](config::check), so that the rules of files apply to the
//! command line as well, and `--print` shows the file that runs.
//! Not here: the options and their help (`staunch::cli`).

use std::net::SocketAddr;
use std::path::PathBuf;

use deliver::plan::{QueueLimits, WhenFull};
use model::SourceId;

use config::address::{destination_name, destination_text, parse_destination, parse_listen};
use config::diagnostic::{Code, Diagnostic, Source};
use config::options::Scheme;
use config::plan::{
    Destination, Feed, LinesPlan, Listen, OutputKind, OutputPlan, PacketsPlan, Plan, SourceKind, SourcePlan,
};
use config::{Format, native};

/// The options of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fanout {
    /// Listeners for packets; at least one.
    pub sources: Vec<Listen>,
    /// Endpoints, each of which gets every packet; at least one.
    pub targets: Vec<Destination>,
    /// Repack lines into packets for each endpoint.
    pub repack: bool,
    /// `/ready` fails while an endpoint is down.
    pub required: bool,
    /// Most packets queued for an endpoint; 0 for no limit.
    pub records_max: u64,
    /// Receive buffer of each datagram socket, in bytes.
    pub receive_buffer_bytes: u64,
    /// The HTTP API; none when switched off.
    pub http: Option<SocketAddr>,
    /// Directory that a hot restart uses to find the process; none for the default.
    pub data_dir: Option<PathBuf>,
    /// Prefix of self-metrics, which are sent to every endpoint; none for no self-metrics.
    pub own_prefix: Option<String>,
}

impl Fanout {
    /// Default of `max_records`: three seconds at 300,000 packets a second.
    pub const RECORDS_MAX: u64 = 1_000_000;

    /// Most bytes queued for an endpoint.
    pub const QUEUE_BYTES_MAX: u64 = 64 << 20;
}

/// A command line as a native file, with its diagnostics.
#[derive(Clone, Debug)]
pub struct Written {
    /// The file.
    pub text: String,
    /// The plan, when there was no error.
    pub plan: Option<Plan>,
    /// Errors and warnings, by their place in the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// The plan of a command line.
pub fn fanout(asked: &Fanout) -> Written {
    let text = native::print(&plan(asked));
    let diagnostics = repeated(asked);
    if !diagnostics.is_empty() {
        return Written { text, plan: None, diagnostics };
    }
    let (plan, diagnostics) = native::check(Source { name: "fanout", text: &text }, Format::Toml);
    Written { text, plan, diagnostics }
}

/// Reads the address of a source: `host:port` for UDP, or one with its scheme. `:port` is every address of the
/// machine, `localhost` 127.0.0.1.
///
/// # Errors
/// A description of the mistake.
pub fn fanout_source(text: &str) -> Result<Listen, String> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("udp", text));
    let rest = match (scheme, rest.split_once(':')) {
        ("udp" | "tcp", Some(("", port))) => format!("0.0.0.0:{port}"),
        ("udp" | "tcp", Some(("localhost", port))) => format!("127.0.0.1:{port}"),
        _ => rest.to_owned(),
    };
    parse_listen(&format!("{scheme}://{rest}")).map_err(|bad| in_words(bad.label, bad.hint))
}

/// Reads the address of an endpoint: `host:port` for UDP, or one with its scheme.
///
/// # Errors
/// A description of the mistake.
pub fn fanout_target(text: &str) -> Result<Destination, String> {
    const SCHEMES: &[Scheme] = &[Scheme::Udp, Scheme::Tcp, Scheme::UnixDatagram, Scheme::UnixStream];
    let whole = if text.contains("://") { text.to_owned() } else { format!("udp://{text}") };
    parse_destination(&whole, SCHEMES).map_err(|bad| in_words(bad.label, bad.hint))
}

/// An error for each repeated target: in a file it would be a repeated table.
fn repeated(asked: &Fanout) -> Vec<Diagnostic> {
    let again = asked.targets.iter().enumerate().filter(|(at, to)| asked.targets[..*at].contains(to));
    let mistake = |(_, to): (usize, &Destination)| {
        let message = format!("target `{}` is given twice", destination_text(to));
        Diagnostic::error(Code::Repeated, message).hint("leave one out: each target gets each packet once")
    };
    again.map(mistake).collect()
}

fn in_words(label: String, hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("{label}; {hint}"),
        None => label,
    }
}

fn plan(asked: &Fanout) -> Plan {
    let mut plan = Plan { http: asked.http, ..Plan::default() };
    if let Some(data_dir) = &asked.data_dir {
        plan.data_dir.clone_from(data_dir);
    }
    plan.sources.push(SourcePlan {
        listen: asked.sources.clone(),
        receive_buffer_bytes: asked.receive_buffer_bytes,
        ..native::default_source("source")
    });
    let mut from = vec![Feed::Source(SourceId(0))];
    if let Some(prefix) = &asked.own_prefix {
        let mut own = native::own_source("self");
        if let SourceKind::Own(own) = &mut own.kind {
            own.prefix.clone_from(prefix);
        }
        plan.sources.push(own);
        from.push(Feed::Source(SourceId(1)));
    }
    let queue = QueueLimits {
        bytes_max: Fanout::QUEUE_BYTES_MAX,
        records_max: asked.records_max,
        when_full: WhenFull::DropOldest,
        age_max_ms: 0,
        ..QueueLimits::default()
    };
    for to in &asked.targets {
        let word = match to {
            Destination::Udp(_) => "udp",
            Destination::Tcp(_) => "tcp",
            Destination::UnixDatagram(_) | Destination::UnixStream(_) => "unix",
        };
        let lines = asked.repack.then(|| Box::new(LinesPlan::new(to, false)));
        let kind = OutputKind::Packets(PacketsPlan { lines, ..PacketsPlan::new(to.clone()) });
        let output = OutputPlan::new(format!("{word}/{}", destination_name(to)), kind, from.clone());
        plan.outputs.push(OutputPlan { queue, required: asked.required, ..output });
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::diagnostic::has_errors;

    fn asked(sources: &[&str], targets: &[&str]) -> Fanout {
        Fanout {
            sources: sources.iter().map(|text| fanout_source(text).unwrap()).collect(),
            targets: targets.iter().map(|text| fanout_target(text).unwrap()).collect(),
            repack: false,
            required: false,
            records_max: Fanout::RECORDS_MAX,
            receive_buffer_bytes: 1 << 20,
            http: Some("127.0.0.1:8680".parse().unwrap()),
            data_dir: None,
            own_prefix: None,
        }
    }

    #[test]
    fn addresses_are_parsed_or_rejected_with_a_reason() {
        for (text, want) in [
            ("127.0.0.1:8125", "udp://127.0.0.1:8125"),
            (":8125", "udp://0.0.0.0:8125"),
            ("tcp://:8125", "tcp://0.0.0.0:8125"),
            ("localhost:0", "udp://127.0.0.1:0"),
            ("[::]:8125", "udp://[::]:8125"),
            ("unixgram:///run/s?mode=666", "unixgram:///run/s?mode=666"),
            ("unix-frames://@s", "unix-frames://@s"),
        ] {
            assert_eq!(config::address::listen_text(&fanout_source(text).unwrap()), want, "{text}");
        }
        for (text, want) in [
            ("h:1", "udp://h:1"),
            ("[::1]:1", "udp://[::1]:1"),
            ("tcp://h:1", "tcp://h:1"),
            ("unixgram:///s", "unixgram:///s"),
            ("unix:///s", "unix:///s"),
        ] {
            assert_eq!(fanout_target(text).unwrap().to_string(), want, "{text}");
        }
        for (text, want) in [
            ("example.org:1", "names are not looked up"),
            ("8125", "no port"),
            ("upd://127.0.0.1:1", "did you mean `udp://`?"),
            ("", "no port"),
        ] {
            let got = fanout_source(text).unwrap_err();
            assert!(got.contains(want), "{text}: {got}");
        }
        for (text, want) in [
            (":1", "neither a name nor an address"),
            ("h", "no port"),
            ("unix-frames:///s", "supports udp://, tcp://, unixgram://, unix://"),
            ("unix:///s?mode=666", "sockets that are made"),
        ] {
            let got = fanout_target(text).unwrap_err();
            assert!(got.contains(want), "{text}: {got}");
        }
    }

    #[test]
    fn a_command_line_gives_the_plan_of_its_printed_file() {
        let targets = ["h:1", "[::1]:2", "tcp://h:1", "unixgram:///s", "unix:///t", "h:3"];
        let repack = Fanout { repack: true, required: true, ..asked(&[":1", "unix://@x"], &targets) };
        let own = Fanout { own_prefix: Some("proxy".into()), ..asked(&["127.0.0.1:0"], &["h:1"]) };
        for asked in [asked(&["127.0.0.1:0"], &["127.0.0.1:9"]), repack, own] {
            let written = fanout(&asked);
            assert_eq!(written.diagnostics, [], "{}", written.text);
            assert_eq!(written.plan, Some(plan(&asked)), "{}", written.text);
        }
        let names: Vec<String> =
            plan(&asked(&[":1"], &targets)).outputs.into_iter().map(|output| output.name).collect();
        assert_eq!(names, ["udp/h:1", "udp/[::1]:2", "tcp/h:1", "unix//s", "unix//t", "udp/h:3"]);
    }

    #[test]
    fn a_command_line_is_checked_by_the_rules_of_files() {
        for (sources, targets, want) in [
            (&[":8125"][..], &["127.0.0.1:8125"][..], Code::Loop),
            (&[":8125", "127.0.0.1:8125"], &["h:1"], Code::AddressTaken),
            (&["tcp://127.0.0.1:8680"], &["h:1"], Code::AddressTaken),
            (&[":8125"], &["h:1", "h:1"], Code::Repeated),
        ] {
            let written = fanout(&asked(sources, targets));
            assert!(has_errors(&written.diagnostics) && written.plan.is_none(), "{sources:?} {targets:?}");
            let found: Vec<Code> = written.diagnostics.iter().map(|each| each.code).collect();
            assert!(found.contains(&want), "{sources:?} {targets:?}: {found:?}\n{}", written.text);
            assert!(want != Code::Repeated || found.len() == 1, "one mistake, reported once: {found:?}");
        }
    }
}
