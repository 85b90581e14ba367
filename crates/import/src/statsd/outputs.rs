//! Outputs: the `backends` and their options (spec statsd §8, §9).

use std::path::PathBuf;

use deliver::plan::{SenderPlan, WhenFull};
use model::{SourceId, TransformId};
use wire::graphite::{Namespace, Numbers};

use super::listen::{module_name, port};
use super::values::{Import, Section};
use crate::javascript::{Node, Value};
use config::address::host_port_text;
use config::diagnostic::{Code, nearest};
use config::plan::{
    Compression, ConsoleEncoding, Destination, Endpoint, Feed, GraphiteEncoding, OutputKind, OutputPlan,
    PacketsPlan,
};

/// The one source of an import.
pub(super) const SOURCE: SourceId = SourceId(0);

/// Its one aggregation.
pub(super) const TRANSFORM: TransformId = TransformId(0);

/// Limit of a repeater's queue (spec statsd §14 R3).
const REPEATER_QUEUE_BYTES: u64 = 64 << 20;
/// Most endpoints of a repeater: output ids have 16 bits, and no fan-out of one socket is that wide.
const REPEATERS_MAX: usize = 1000;

/// Backends of the originals that exist here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    Graphite,
    Console,
    /// node only.
    Repeater,
    /// Perl only.
    File,
}

/// All outputs in the order of `backends`.
pub(super) fn all(import: &mut Import<'_>, root: &mut Section<'_>, stats_prefix: &str) -> Vec<OutputPlan> {
    let backends = backends(import, root);
    let graphite = graphite(import, root, stats_prefix, backends.contains(&Backend::Graphite));
    let console = console(import, root, backends.contains(&Backend::Console));
    let repeaters = if import.perl() {
        Vec::new()
    } else {
        repeaters(import, root, backends.contains(&Backend::Repeater))
    };
    let file = if import.perl() { file(import, root, backends.contains(&Backend::File)) } else { None };
    let mut outputs = Vec::new();
    for backend in backends {
        match backend {
            Backend::Graphite => outputs.extend(graphite.clone()),
            Backend::Console => outputs.push(console.clone()),
            Backend::Repeater => outputs.extend(repeaters.iter().cloned()),
            Backend::File => outputs.extend(file.clone()),
        }
    }
    outputs
}

fn backends(import: &mut Import<'_>, root: &mut Section<'_>) -> Vec<Backend> {
    let default = if import.perl() { Backend::Console } else { Backend::Graphite };
    if root.set("backends").is_none() {
        return vec![default];
    }
    let mut backends = Vec::new();
    for node in import.list(root, "backends").unwrap_or_default() {
        let Value::Text(module) = &node.value else {
            import.wrong_type("backends", node, "a list of strings");
            continue;
        };
        match backend(import.perl(), module) {
            Some(backend) if backends.contains(&backend) => {
                let message = format!("`backends` lists {module:?} twice: it is loaded once");
                import.warn(Code::NotCarriedOver, node.place, message);
            }
            Some(backend) => backends.push(backend),
            None => unknown_backend(import, node, module),
        }
    }
    backends
}

/// The backend of a module's name, by the rules of the original.
fn backend(perl: bool, module: &str) -> Option<Backend> {
    if !perl {
        return match module_name(module, "backends/")? {
            "graphite" => Some(Backend::Graphite),
            "console" => Some(Backend::Console),
            "repeater" => Some(Backend::Repeater),
            _ => None,
        };
    }
    let name = module_name(module, "backends/").unwrap_or(module);
    let name = name.rsplit_once("Net::Statsd::Server::Backend::").map_or(name, |(_, name)| name);
    match name.to_ascii_lowercase().as_str() {
        "graphite" => Some(Backend::Graphite),
        "console" => Some(Backend::Console),
        "file" => Some(Backend::File),
        _ => None,
    }
}

fn unknown_backend(import: &mut Import<'_>, node: &Node, module: &str) {
    let offered: &[&str] = if import.perl() {
        &["Graphite", "Console", "File"]
    } else {
        &["./backends/graphite", "./backends/console", "./backends/repeater"]
    };
    let short = module.rsplit('/').next().unwrap_or(module);
    let same = offered.iter().copied().find(|known| known.rsplit('/').next() == Some(short));
    let hint = match same.or_else(|| nearest(module, offered.iter().copied())) {
        Some(word) => format!("did you mean `{word}`?"),
        None => {
            format!("backends are: {}; `--ignore-unknown-backends` ignores it", offered.join(", "))
        }
    };
    let message = format!("there is no backend {module:?} here");
    let report = match import.ignore_unknown_backends {
        true => import.warn(Code::UnknownBackend, node.place, message),
        false => import.error(Code::UnknownBackend, node.place, message),
    };
    report.hint(hint);
}

/// Reports each key that has no effect because its backend is not loaded.
fn not_loaded(import: &mut Import<'_>, root: &mut Section<'_>, keys: &[&'static str], backend: &str) {
    for key in keys {
        if let Some(member) = root.set(key) {
            import.no_effect(key, member, &format!(": `backends` does not list {backend}"));
        }
    }
}

fn graphite(
    import: &mut Import<'_>,
    root: &mut Section<'_>,
    stats_prefix: &str,
    loaded: bool,
) -> Option<OutputPlan> {
    let perl = import.perl();
    let counts = if perl { None } else { import.switch(root, "flush_counts") };
    let namespace = namespace(import, root, stats_prefix, counts.unwrap_or(true));
    let lines_port = port(import, root, "graphitePort", 2003);
    let (form, pickle_port) = if perl {
        (GraphiteEncoding::Lines, None)
    } else {
        let form = import.keyword(root, "graphiteProtocol", &FORMS).unwrap_or(GraphiteEncoding::Lines);
        (form, port(import, root, "graphitePicklePort", 2004))
    };
    let host = root.set("graphiteHost");
    if !loaded {
        let keys = ["graphiteHost", "graphitePort", "graphite"];
        not_loaded(import, root, &keys, "the Graphite backend");
        if !perl {
            not_loaded(import, root, &["graphitePicklePort", "graphiteProtocol"], "the Graphite backend");
        }
        return None;
    }
    let Some(host) = host else {
        let message = "`graphiteHost` is not set: series are computed and nothing is sent to Graphite";
        import.warn(Code::ImportNoEffect, None, message).hint("set `graphiteHost` to send them");
        return None;
    };
    let host = import.host("graphiteHost", &host.value)?;
    let port = if form == GraphiteEncoding::Lines { lines_port } else { pickle_port }?;
    let kind = OutputKind::Graphite {
        to: Endpoint { host, port },
        form,
        namespace,
        sender: SenderPlan::default(),
        connections: 1,
        line_bytes_max: OutputKind::LINE_BYTES_MAX,
        compression: Compression::Plain,
        tls: None,
    };
    Some(OutputPlan::new("graphite", kind, vec![Feed::Transform(TRANSFORM)]))
}

/// Words of `graphiteProtocol`.
const FORMS: [(&str, GraphiteEncoding); 2] =
    [("text", GraphiteEncoding::Lines), ("pickle", GraphiteEncoding::Pickle)];

/// Keys of the `graphite` section that apply in the new namespace only.
const PREFIXES: [&str; 5] = ["globalPrefix", "prefixCounter", "prefixTimer", "prefixGauge", "prefixSet"];

fn namespace(import: &mut Import<'_>, root: &mut Section<'_>, stats_prefix: &str, counts: bool) -> Namespace {
    misplaced(import, root);
    let mut namespace = Namespace { stats_prefix: stats_prefix.into(), counts, ..Namespace::default() };
    if import.perl() {
        namespace.numbers = Numbers::Perl;
    }
    let Some(mut section) = import.section(root, "graphite") else {
        return namespace;
    };
    namespace.legacy = legacy(import, &mut section);
    let fields = [
        &mut namespace.global_prefix,
        &mut namespace.counter_prefix,
        &mut namespace.timer_prefix,
        &mut namespace.gauge_prefix,
        &mut namespace.set_prefix,
    ];
    for (key, field) in PREFIXES.into_iter().zip(fields) {
        let Some(member) = section.get(key) else { continue };
        let name = section.name(key);
        if namespace.legacy {
            let hint = "the legacy namespace holds unless `graphite.legacyNamespace` is false";
            import.no_effect(&name, member, " in the legacy namespace").hint(hint);
        }
        if let Some(text) = import.text_of(&name, &member.value) {
            *field = text;
        }
    }
    if !import.perl() {
        namespace.global_suffix = import.text(&mut section, "globalSuffix").unwrap_or_default();
    }
    if let Some(member) = section.get("prefixStats") {
        import.no_effect("graphite.prefixStats", member, ": `prefixStats` is a top-level option");
    }
    section.finish(import);
    namespace
}

fn legacy(import: &mut Import<'_>, section: &mut Section<'_>) -> bool {
    let Some(member) = section.get("legacyNamespace") else {
        return true;
    };
    match member.value.value {
        Value::Bool(legacy) => legacy,
        // Perl has no other booleans.
        Value::Number(number) if import.perl() && (number == 0.0 || number == 1.0) => number == 1.0,
        _ => {
            import.wrong_type("graphite.legacyNamespace", &member.value, "true or false");
            true
        }
    }
}

/// Options of the `graphite` section at the top level, where they have no effect.
fn misplaced(import: &mut Import<'_>, root: &mut Section<'_>) {
    for key in PREFIXES.into_iter().chain(["legacyNamespace", "globalSuffix"]) {
        if let Some(member) = root.node().member(key) {
            root.get(key);
            let hint = format!("write it inside the section: graphite: {{ {key}: … }}");
            import.no_effect(key, member, " at the top level").hint(hint);
        }
    }
}

fn console(import: &mut Import<'_>, root: &mut Section<'_>, loaded: bool) -> OutputPlan {
    let mut pretty = false;
    if let Some(mut section) = import.section(root, "console") {
        pretty = import.switch(&mut section, "prettyprint").unwrap_or(false);
        section.finish(import);
    }
    if !loaded {
        not_loaded(import, root, &["console"], "the console backend");
    }
    let form = if import.perl() { ConsoleEncoding::Perl } else { ConsoleEncoding::Node };
    let kind = OutputKind::Console { form, pretty: pretty && form == ConsoleEncoding::Node };
    OutputPlan::new("console", kind, vec![Feed::Transform(TRANSFORM)])
}

/// Net::Statsd::Server's file: enabled when it has a name.
fn file(import: &mut Import<'_>, root: &mut Section<'_>, loaded: bool) -> Option<OutputPlan> {
    let mut path = None;
    if let Some(mut section) = import.section(root, "file") {
        path = import.text(&mut section, "name");
        section.finish(import);
    }
    if !loaded {
        not_loaded(import, root, &["file"], "the File backend");
        return None;
    }
    let Some(path) = path else {
        let message = "the File backend has no `file.name`: it writes nothing";
        import.warn(Code::ImportNoEffect, None, message).hint("write file: { \"name\": \"/path\" }");
        return None;
    };
    // The original leaves out this text, whatever `prefixStats` is.
    let kind = OutputKind::PerlFile { path: PathBuf::from(path), stats_prefix: "statsd".into() };
    Some(OutputPlan::new("file", kind, vec![Feed::Transform(TRANSFORM)]))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Udp4,
    Udp6,
    Tcp,
}

/// Words of `repeaterProtocol`.
const PROTOCOLS: [(&str, Protocol); 3] =
    [("udp4", Protocol::Udp4), ("udp6", Protocol::Udp6), ("tcp", Protocol::Tcp)];

fn repeaters(import: &mut Import<'_>, root: &mut Section<'_>, loaded: bool) -> Vec<OutputPlan> {
    let protocol = import.keyword(root, "repeaterProtocol", &PROTOCOLS).unwrap_or(Protocol::Udp4);
    let nodes = import.list(root, "repeater").unwrap_or_default();
    if !loaded {
        not_loaded(import, root, &["repeater", "repeaterProtocol"], "`./backends/repeater`");
    } else if nodes.is_empty() {
        let message = "the repeater has no endpoints: it sends nothing";
        import.warn(Code::ImportNoEffect, None, message).hint("write repeater: [{ host: …, port: … }]");
    }
    if nodes.len() > REPEATERS_MAX {
        let place = nodes[REPEATERS_MAX].place;
        let message = format!("`repeater` has {} endpoints, and may have {REPEATERS_MAX}", nodes.len());
        import.error(Code::ImportBadValue, place, message);
        return Vec::new();
    }
    let mut outputs: Vec<OutputPlan> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let Some(to) = endpoint(import, node, &format!("repeater[{at}]"), protocol) else { continue };
        let name = format!("repeater/{}", host_port_text(&to));
        if outputs.iter().any(|output| output.name == name) {
            let message = format!("`repeater` lists {} twice: it gets each packet once", host_port_text(&to));
            import.warn(Code::NotCarriedOver, node.place, message);
            continue;
        }
        let to = match protocol {
            Protocol::Udp4 | Protocol::Udp6 => Destination::Udp(to),
            Protocol::Tcp => Destination::Tcp(to),
        };
        let kind = OutputKind::Packets(PacketsPlan::new(to));
        let mut output = OutputPlan::new(name, kind, vec![Feed::Source(SOURCE)]);
        output.queue.bytes_max = REPEATER_QUEUE_BYTES;
        output.queue.when_full = WhenFull::DropOldest;
        outputs.push(output);
    }
    if let [only] = &mut outputs[..] {
        only.name = "repeater".into();
    }
    outputs
}

fn endpoint(import: &mut Import<'_>, node: &Node, name: &str, protocol: Protocol) -> Option<Endpoint> {
    let mut section = import.object(name, node)?;
    let host = section.set("host");
    let port = import.integer(&mut section, "port", 1, 65_535);
    let port_given = section.set("port").is_some();
    let host_name = section.name("host");
    section.finish(import);
    let Some(host) = host else {
        import.error(Code::ImportBadValue, node.place, format!("`{name}` has no `host`"));
        return None;
    };
    if !port_given {
        import.error(Code::ImportBadValue, node.place, format!("`{name}` has no `port`"));
    }
    let text = import.host(&host_name, &host.value)?;
    if protocol == Protocol::Udp6 && text.parse::<std::net::IpAddr>().is_err() {
        let message =
            format!("`udp6` has no counterpart for `{host_name}`: any address of {text} may be used");
        let hint = "write an IPv6 address to be sure";
        import.warn(Code::NotCarriedOver, host.value.place, message).hint(hint);
    }
    // Checked above to be a port.
    Some(Endpoint { host: text, port: port? as u16 })
}
