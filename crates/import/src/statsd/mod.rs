//! Configuration files of StatsD, node's and Net::Statsd::Server's (Perl), as a plan.
//!
//! Text -> `import::javascript` (a tree of values with places) -> **`statsd`**: `listen`
//! (sources), `aggregate`, `outputs`, `management`, `notes` (options without effect here) -> [`Plan`]. `values` has the
//! typed reading of single options. Spec statsd §10; the meaning of the options: §4, §7, §8, §9.
//! Not here: reading files, the environment, name resolution.
//! Invariant: an option is read, reported, or unknown and reported; none is ignored silently. A plan is returned only
//! without errors.
//!
//! The plan's HTTP address (127.0.0.1:8680) is ours, not the file's: a port in use must be only a warning there, or two
//! originals on one machine could not both be replaced.

mod aggregate;
pub(crate) mod listen;
pub(crate) mod management;
pub(crate) mod notes;
mod outputs;
pub(crate) mod values;

use std::net::{Ipv4Addr, SocketAddr};

use wire::graphite::Namespace;
use wire::statsd::{Dialect, Options};

use super::javascript::{self, Environment, Node, Value};
use config::Format;
use config::diagnostic::{Code, Diagnostic, Severity, Source, has_errors};
use config::plan::{
    AggregateTransform, ConsoleEncoding, Feed, Listen, OutputKind, Plan, SelfCounters, SourceKind,
    SourcePlan, TransformKind, TransformPlan,
};
use outputs::SOURCE;
use values::{Import, Section};

pub use values::Compat;

/// Address of the HTTP API of an import.
const HTTP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8680);
/// Receive buffer of datagram sockets: the native default. Net::Statsd::Server sets 8 MiB, node has no option for it;
/// the memory is not used before packets come.
const RECEIVE_BUFFER_BYTES: u64 = 64 << 20;
/// Time limit of the last flush on SIGTERM (spec statsd §7.1).
const STOP_TIMEOUT_MS: u64 = 5_000;

/// Longest time without reading during a hot restart: native default.
const HOT_RESTART_TIMEOUT_MS: u64 = 10_000;

/// Guesses which original a text is for: Perl's when it has `#` comments, or when it is relaxed JSON whose `backends`
/// are named as there (`Graphite`, `Console`, `File`, `My::Backend`, without a path); node's otherwise.
pub fn detect(text: &str) -> Compat {
    if javascript::stops_at_hash(text) {
        return Compat::Perl;
    }
    let Ok(root) = javascript::perl(text) else {
        return Compat::Node;
    };
    let Some(Value::Array(backends)) = root.member("backends").map(|member| &member.value.value) else {
        return Compat::Node;
    };
    let perl = |value: &Value| match value {
        Value::Text(name) => {
            let known = ["graphite", "console", "file", "rrdtool", "test"];
            known.iter().any(|known| name.eq_ignore_ascii_case(known)) || name.contains("::")
        }
        _ => false,
    };
    if backends.iter().any(|backend| perl(&backend.value)) { Compat::Perl } else { Compat::Node }
}

/// Reads a file's text. See [`detect`] for `compat`; with `ignore_unknown_backends` an unknown backend is a warning.
///
/// The plan is none when there is an error among the diagnostics. These are in the order of the text; a warning
/// [`Code::NotCarriedOver`] marks each option that works in the original and does nothing here.
pub fn statsd(
    text: &str,
    environment: &Environment<'_>,
    compat: Compat,
    ignore_unknown_backends: bool,
) -> (Option<Plan>, Vec<Diagnostic>) {
    let root = match compat {
        Compat::Node => javascript::evaluate(text, environment),
        Compat::Perl => javascript::perl(text),
    };
    let root = match root.and_then(object) {
        Ok(root) => root,
        Err(diagnostics) => return (None, diagnostics),
    };
    let mut import = Import::new(text, compat, ignore_unknown_backends);
    let mut plan = plan(&mut import, &mut Section::root(&root));
    let mut diagnostics = import.in_order();
    if let Some(plan) = plan.as_mut().filter(|_| !has_errors(&diagnostics)) {
        http(plan, &mut diagnostics);
        whole(plan, &mut diagnostics);
    }
    (plan.filter(|_| !has_errors(&diagnostics)), diagnostics)
}

/// What a file gives, when it is an object.
pub(super) fn object(root: Node) -> Result<Node, Vec<Diagnostic>> {
    if matches!(root.value, Value::Object(_)) {
        return Ok(root);
    }
    let message = format!("the file must give an object, and gives {}", root.value.describe());
    Err(vec![Diagnostic::error(Code::ImportBadType, message).at(root.place)])
}

/// Turns our HTTP API off when the file listens at its port.
pub(super) fn http(plan: &mut Plan, diagnostics: &mut Vec<Diagnostic>) {
    let taken = |address: &SocketAddr| {
        address.port() == HTTP.port() && (address.ip() == HTTP.ip() || address.ip().is_unspecified())
    };
    let tcp =
        plan.sources[0].listen.iter().any(|listen| matches!(listen, Listen::Tcp(address) if taken(address)));
    if tcp || plan.management.iter().any(|management| taken(&management.listen)) {
        plan.http = None;
        let message = format!("HTTP is off: the file listens at {}, where it would be", HTTP.port());
        diagnostics.push(Diagnostic::warning(Code::AddressTaken, message));
    }
}

/// Rules for the plan as a whole (loops, addresses used twice, limits of lists) are checked as for native files; so
/// every imported plan can also be printed as a native file and run from there.
pub(super) fn whole(plan: &Plan, diagnostics: &mut Vec<Diagnostic>) {
    let text = config::print(plan);
    let (_, found) = config::check(Source { name: "import", text: &text }, Format::Toml);
    let errors = found.into_iter().filter(|found| found.severity == Severity::Error);
    // Their places are those of the printed text.
    diagnostics.extend(errors.map(|found| Diagnostic { place: None, label: String::new(), ..found }));
}

/// The plan of the whole file. None only when an error was reported.
fn plan(import: &mut Import<'_>, root: &mut Section<'_>) -> Option<Plan> {
    let perl = import.perl();
    proxy(import, root);
    let listen = listen::all(import, root);
    let reload_on_change = !perl && import.switch(root, "automaticConfigReload").unwrap_or(true);
    let stats_prefix = aggregate::stats_prefix(import, root);
    let mut options = Options::of(if perl { Dialect::Perl } else { Dialect::Etsy });
    if !perl {
        options.sanitize = import.switch(root, "keyNameSanitize").unwrap_or(true);
    }
    let (key_flush, key_flush_log) = aggregate::key_flush(import, root);
    options.count_names = key_flush.is_some();
    let mut aggregation = aggregate::aggregation(import, root);
    aggregation.key_flush = key_flush;
    let outputs = outputs::all(import, root, &stats_prefix);
    aggregation.set_members = outputs.iter().any(|output| shows_members(&output.kind));
    let management = management::port(import, root);
    notes::without_effect(import, root);
    root.finish(import);

    let source = SourcePlan {
        kind: SourceKind::Statsd(options),
        listen: listen?,
        receive_buffer_bytes: RECEIVE_BUFFER_BYTES,
        idle_timeout_ms: 0,
        ..config::native::default_source("statsd")
    };
    let namespace = Namespace { stats_prefix: stats_prefix.clone(), ..Namespace::default() };
    let transform = AggregateTransform {
        plan: aggregation,
        namespace,
        stats_prefix,
        self_counters: if perl { SelfCounters::Perl } else { SelfCounters::Node },
        key_flush_log,
        // The original starts without any state.
        checkpoint_ms: 0,
    };
    Some(Plan {
        sources: vec![source],
        transforms: vec![TransformPlan {
            name: "stats".into(),
            kind: TransformKind::Aggregate(Box::new(transform)),
            from: vec![Feed::Source(SOURCE)],
        }],
        outputs,
        http: Some(HTTP),
        management: vec![management?],
        data_dir: "staunch-data".into(),
        stop_timeout_ms: STOP_TIMEOUT_MS,
        hot_restart_timeout_ms: HOT_RESTART_TIMEOUT_MS,
        reload_on_change,
        ..Plan::default()
    })
}

/// Rejects the cluster proxy's file: read as statsd's it would be accepted, and every packet dropped.
fn proxy(import: &mut Import<'_>, root: &mut Section<'_>) {
    let Some(nodes) = root.node().member("nodes") else { return };
    if matches!(nodes.value.value, Value::Array(_)) && root.set("backends").is_none() {
        root.get("nodes");
        let message = "this is a file of the cluster proxy (proxyConfig.js), not of statsd";
        let hint = "run it with `staunch statsd-proxy`, print it with `staunch import statsd-proxy`";
        let report = import.error(Code::ImportBadValue, nodes.key_place, message);
        report.label("statsd has no `nodes`").hint(hint);
    }
}

/// Whether the members of sets are shown, not only their number: in node's console and in Perl's file.
fn shows_members(output: &OutputKind) -> bool {
    match output {
        OutputKind::Console { form, .. } => *form == ConsoleEncoding::Node,
        output => matches!(output, OutputKind::PerlFile { .. }),
    }
}

#[cfg(test)]
mod tests;
