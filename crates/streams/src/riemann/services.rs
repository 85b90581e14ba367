//! The functions of a config that make servers and services (spec riemann §§2, 4.3, 7, 15).
//!
//! They only declare: nothing listens while a config is loaded.

use arcstr::ArcStr;

use super::declared::{DECLARED_MAX, Instrumentation, Listen, Placed, Reaper, Server, Transport};
use super::instrumentation::Reporter;
use super::options::Options;
use super::reaper;
use crate::index::KeepKeys;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::nodes::fields;
use crate::object::class;
use crate::value::Value;

natives! {
    /// Functions of `riemann.config`.
    pub(super) NATIVES = {
        "streams", 0, ANY, "Adds streams that get all events.", streams;
        "tcp-server", 0, ANY, "Takes messages of Riemann's clients on TCP connections.", tcp_server;
        "udp-server", 0, ANY, "Takes messages of Riemann's clients as datagrams.", udp_server;
        "ws-server", 0, ANY, "Serves the index to WebSockets.", |m, a| {
            let options = Options::of(m, "ws-server", a, &["host", "port", "allowed-origins", "core"])?;
            let (listen, allowed_origins) = (listen(&options, 5556)?, allowed_origins(&options)?);
            declare(m, &options, Server::WebSocket { listen, allowed_origins })
        };
        "sse-server", 0, ANY, "Serves the index as server-sent events.", sse_server;
        "graphite-server", 0, ANY, "Takes lines of Graphite.", graphite_server;
        "opentsdb-server", 0, ANY, "Takes lines of OpenTSDB.", |m, a| {
            let options = Options::of(m, "opentsdb-server", a, &["host", "port", "parser-fn", "so-backlog", "core"])?;
            let (listen, parser) = (listen(&options, 4242)?, options.get("parser-fn").cloned().unwrap_or_default());
            declare(m, &options, Server::Opentsdb { listen, parser })
        };
        "repl-server", 0, ANY, "Accepted and not opened: a REPL runs any code.", |m, _| {
            note(m, "repl-server is not opened: Staunch has no REPL")
        };
        "periodically-expire", 0, ANY, "Expires events of the index every 10 seconds, or every so many.", periodically_expire;
        "instrumentation", 0, ANY, "How often Riemann reports its own figures as events.", instrumentation;
        "service!", 1, 1, "Accepted: services of a config's own are not run.", |m, _| {
            note(m, "service! has no effect: Staunch runs no services that a config makes")
        };
        "load-plugin", 1, ANY, "Refused: plug-ins are Java archives.", |_, a| {
            let name = crate::print::to_str(&a[0]);
            Err(EvalError::throw(&class::UNSUPPORTED, format!("plug-in {name}: Staunch loads no Java archives")))
        };
        "load-plugins", 0, ANY, "Accepted: there are no plug-ins.", |_, _| Ok(Value::Nil);
        "local-repo", 0, ANY, "Accepted: there are no plug-ins.", |_, _| Ok(Value::Nil);
        "depend", 2, ANY, "Refused: plug-ins are Java archives.", |_, a| {
            let name = crate::print::to_str(&a[0]);
            Err(EvalError::throw(&class::UNSUPPORTED, format!("plug-in {name}: Staunch loads no Java archives")))
        };
        "include", 1, 1, "Loads another file, or all *.clj and *.config files below a folder.", include;
        "read-strings", 1, 1, "The forms of a text.", |m, a| {
            let text = crate::print::to_str(&a[0]);
            let list = m.read_form(&format!("({text}\n)"))?.unwrap_or_default();
            Ok(list)
        };
        "reload!", 0, 0, "Refused: a config cannot reload itself.", |_, _| {
            Err(EvalError::throw(&class::UNSUPPORTED, "reload! is not available: send SIGHUP, or use the API"))
        };
        "kafka-consumer", 0, ANY, "Not built yet.", |m, _| not_built(m, "kafka-consumer");
        "rabbitmq-transport", 0, ANY, "Not built yet.", |m, _| not_built(m, "rabbitmq-transport");
        "kwargs-or-map", 1, 1, "The map of keys and values, or of one map.", |m, a| {
            let given = m.collect(&a[0])?;
            match &given[..] {
                [map @ (Value::Map(_) | Value::Event(_))] => Ok(map.clone()),
                given => {
                    let (pairs, _) = given.as_chunks::<2>();
                    Ok(Value::map(pairs.iter().map(|[key, value]| (key.clone(), value.clone()))))
                }
            }
        };
    }

    /// Outputs that are not built yet: their names are known, so that the mistake says what is missing.
    pub(super) MISSING = {
        "logstash", 0, ANY, "Not built yet.", |m, _| not_built(m, "logstash");
        "opentsdb", 0, ANY, "Not built yet.", |m, _| not_built(m, "opentsdb");
        "kairosdb", 0, ANY, "Not built yet.", |m, _| not_built(m, "kairosdb");
        "clickhouse", 0, ANY, "Not built yet.", |m, _| not_built(m, "clickhouse");
        "sns-publisher", 0, ANY, "Not built yet.", |m, _| not_built(m, "sns-publisher");
        "hipchat", 0, ANY, "Not built yet.", |m, _| not_built(m, "hipchat");
        "nagios", 0, ANY, "Not built yet.", |m, _| not_built(m, "nagios");
        "shinken", 0, ANY, "Not built yet.", |m, _| not_built(m, "shinken");
        "xymon", 0, ANY, "Not built yet.", |m, _| not_built(m, "xymon");
        "zabbix", 0, ANY, "Not built yet.", |m, _| not_built(m, "zabbix");
        "kafka", 0, ANY, "Not built yet.", |m, _| not_built(m, "kafka");
        "rabbitmq", 0, ANY, "Not built yet.", |m, _| not_built(m, "rabbitmq");
    }

    /// Functions of `riemann.logging`.
    pub(super) LOGGING = {
        "init", 0, ANY, "Accepted: the options of Staunch say where its log goes.", logging_init;
        "set-level", 1, 2, "Accepted: the options of Staunch say what its log has.", |m, _| {
            note(m, "logging/set-level has no effect: use the option log_level, or RUST_LOG")
        };
        "suppress", 1, ANY, "Accepted and without effect.", |_, _| Ok(Value::Nil);
        "nice-syntax-error", 1, ANY, "Accepted and without effect.", |_, _| Ok(Value::Nil);
    }
}

/// Only while a config is loaded can something be declared.
///
/// # Errors
/// When an event is handled.
pub(super) fn while_loading(machine: &Machine<'_>, function: &str) -> Outcome<()> {
    if machine.is_loading() && !machine.is_trial() {
        return Ok(());
    }
    let message = format!("{function} can be called only while the config is loaded, not for each event");
    Err(EvalError::throw(&class::ILLEGAL_STATE, message))
}

/// A function of events, or of forks, wants an output, or the index, that the load did not see.
pub(super) fn undeclared(function: &str) -> EvalError {
    let message = format!(
        "{function} is not known with these arguments: outputs are made while the config is loaded. Call it outside of the function, \
         such as (def out ({function} …)), or with the same arguments for each event"
    );
    EvalError::throw(&class::ILLEGAL_STATE, message)
}

/// Notes something about the call that runs.
pub(super) fn note(machine: &mut Machine<'_>, text: &str) -> Outcome {
    let at = machine.here().clone();
    machine.graph.surroundings.declared.note(at, text);
    Ok(Value::Nil)
}

fn not_built(machine: &Machine<'_>, function: &str) -> Outcome {
    let message = format!("{function} is not built yet");
    Err(EvalError::throw(&class::UNSUPPORTED, message).within(machine.here()))
}

fn streams(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    while_loading(machine, "streams")?;
    let at = machine.here().clone();
    for stream in arguments {
        let node = machine.graph.child(stream);
        machine.graph.surroundings.declared.top.push(super::declared::Top { node, at: at.clone() });
    }
    Ok(Value::Nil)
}

fn listen(options: &Options, port: u16) -> Outcome<Listen> {
    let host = options.host()?.unwrap_or(arcstr::literal!("127.0.0.1"));
    Ok(Listen { host, port: options.port(port)? })
}

/// Adds a server, unless another one has its port.
fn declare(machine: &mut Machine<'_>, options: &Options, server: Server) -> Outcome {
    while_loading(machine, server.function())?;
    let servers = &mut machine.graph.surroundings.declared.servers;
    let is_same = |other: &&Placed<Server>| {
        other.what.transport() == server.transport() && other.what.listen() == server.listen()
    };
    if let Some(other) = servers.iter().find(is_same) {
        let (listen, function) = (server.listen(), other.what.function());
        return Err(options.wrong(format_args!("{listen} is that of the {function} in {}", other.at)));
    }
    if servers.len() == DECLARED_MAX {
        return Err(options.wrong(format_args!("a config can have {DECLARED_MAX} servers")));
    }
    servers.push(Placed { what: server, at: options.at.clone() });
    Ok(Value::Nil)
}

fn tcp_server(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let known = ["host", "port", "so-backlog", "tls?", "key", "cert", "ca-cert", "core", "initializer"];
    let options = Options::of(machine, "tcp-server", arguments, &known)?;
    let tls = options.tls()?;
    let listen = listen(&options, if tls.is_some() { 5554 } else { 5555 })?;
    declare(machine, &options, Server::Tcp { listen, tls })
}

fn udp_server(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let known = ["host", "port", "max-size", "so-rcvbuf", "core"];
    let options = Options::of(machine, "udp-server", arguments, &known)?;
    let listen = listen(&options, 5555)?;
    declare(machine, &options, Server::Udp { listen })
}

fn graphite_server(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let known =
        ["host", "port", "protocol", "parser-fn", "tags", "so-backlog", "max-size", "so-rcvbuf", "core"];
    let options = Options::of(machine, "graphite-server", arguments, &known)?;
    let transport = transport(&options)?;
    let (listen, tags) = (listen(&options, 2003)?, options.is_set("tags"));
    let parser = options.get("parser-fn").cloned().unwrap_or_default();
    declare(machine, &options, Server::Graphite { listen, transport, parser, tags })
}

fn sse_server(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let known = ["host", "port", "headers", "allowed-origins", "core"];
    let options = Options::of(machine, "sse-server", arguments, &known)?;
    let (listen, mut allowed_origins) = (listen(&options, 5558)?, allowed_origins(&options)?);
    if let Some(Value::Map(headers)) = options.get("headers") {
        for (name, value) in headers.iter() {
            let (name, value) = (crate::print::to_str(name), crate::print::to_str(value));
            match name.trim_start_matches(':').eq_ignore_ascii_case("access-control-allow-origin") {
                true => allowed_origins.push(value.into()),
                false => {
                    note(machine, &format!("sse-server: the header {name} is not sent"))?;
                }
            }
        }
    }
    declare(machine, &options, Server::Sse { listen, allowed_origins })
}

/// `:allowed-origins`, which Riemann does not have: it lets all pages subscribe.
fn allowed_origins(options: &Options) -> Outcome<Vec<ArcStr>> {
    let Some(given) = options.get("allowed-origins") else { return Ok(Vec::new()) };
    let origins = fields::items(given).unwrap_or_default().into_iter().map(|origin| match origin {
        Value::Text(origin) => Ok(origin),
        _ => Err(options.wrong(":allowed-origins must be a list of texts")),
    });
    origins.collect()
}

/// `:protocol`, `:tcp` unless it says otherwise.
pub(super) fn transport(options: &Options) -> Outcome<Transport> {
    match options.get("protocol") {
        None => Ok(Transport::Tcp),
        Some(Value::Keyword(name)) if name == "tcp" => Ok(Transport::Tcp),
        Some(Value::Keyword(name)) if name == "udp" => Ok(Transport::Udp),
        Some(_) => Err(options.wrong(":protocol must be :tcp or :udp")),
    }
}

fn periodically_expire(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    while_loading(machine, "periodically-expire")?;
    const INTERVAL_US: i64 = 10_000_000;
    let (interval_us, rest) = match arguments {
        [Value::Number(seconds), rest @ ..] => (fields::to_us(seconds), &*rest),
        rest => (INTERVAL_US, &*rest),
    };
    let options = Options::of(machine, "periodically-expire", rest, &["keep-keys"])?;
    if interval_us <= 0 {
        return Err(options.wrong("the interval must be over zero"));
    }
    let keep = match options.get("keep-keys") {
        None => KeepKeys::default(),
        Some(Value::Keyword(all)) if all == "all" => KeepKeys::All,
        Some(keys) => {
            let names = fields::items(keys).unwrap_or_default().into_iter().map(|key| match key {
                Value::Keyword(name) => Ok(name),
                _ => Err(options.wrong(":keep-keys must be a list of keywords, or :all")),
            });
            KeepKeys::Fields(names.collect::<Outcome<Vec<ArcStr>>>()?)
        }
    };
    if let Some(other) = &machine.graph.surroundings.declared.reaper {
        return Err(options.wrong(format_args!("it was called before, in {}", other.at)));
    }
    let reaper = Reaper { interval_us, keep };
    reaper::add(machine.graph, reaper.clone());
    machine.graph.surroundings.declared.reaper = Some(Placed { what: reaper, at: options.at });
    Ok(Value::Nil)
}

fn instrumentation(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    while_loading(machine, "instrumentation")?;
    let options = Options::of(machine, "instrumentation", arguments, &["interval", "enabled?"])?;
    let standard = Instrumentation::default();
    let interval_us = options.seconds("interval", standard.interval_us)?;
    // Nil counts as absent in other options; here it is false.
    let enabled = options.get("enabled?").is_none_or(Value::is_true);
    let what = Instrumentation { interval_us, enabled };
    if let Some(other) = &machine.graph.surroundings.declared.instrumentation {
        let text = format!("instrumentation was called before, in {}, which has no effect now", other.at);
        machine.graph.surroundings.declared.note(options.at.clone(), text);
    }
    machine.graph.surroundings.declared.instrumentation = Some(Placed { what, at: options.at });
    Ok(Value::Nil)
}

/// The reports of a loaded config, if it has not switched them off.
pub(super) fn start_instrumentation(graph: &mut crate::graph::Graph) {
    let declared = graph.surroundings.declared.instrumentation.as_ref();
    let what = declared.map(|placed| placed.what.clone()).unwrap_or_default();
    if what.enabled {
        graph.add(Box::new(Reporter::new(what.interval_us)), &[]);
    }
}

/// `(logging/init)`, with options of any age (spec riemann §7.4).
fn logging_init(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let known = [
        "console",
        "console?",
        "console-layout",
        "file",
        "files",
        "file-layout",
        "logsize-rotate",
        "rotate-count",
    ];
    let options = Options::of(machine, "logging/init", arguments, &known)?;
    if options.get("file").is_some() || options.get("files").is_some() {
        note(machine, "the files of logging/init are not written: Staunch logs to standard error")?;
    }
    Ok(Value::Nil)
}

/// `(include "path")`: relative to the file that it is in, and in namespace riemann.config (spec riemann §7.2).
fn include(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    while_loading(machine, "include")?;
    let path = arguments[0].as_text().cloned();
    let path = path.ok_or_else(|| EvalError::illegal_argument("(include path): the path must be a text"))?;
    let here = machine.here().file.clone();
    let folder = here.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = match path.starts_with('/') || folder.is_empty() {
        true => path,
        false => arcstr::format!("{folder}/{path}"),
    };
    let listed = machine.host.files_below(&path);
    let listed =
        listed.map_err(|reason| EvalError::throw(&class::FILE_NOT_FOUND, format!("{path}: {reason}")))?;
    let files = listed.unwrap_or_else(|| vec![path.to_string()]);
    let namespace = std::mem::replace(&mut machine.namespace, arcstr::literal!("riemann.config"));
    let loaded = files.iter().try_for_each(|file| machine.load_file(file));
    machine.namespace = namespace;
    loaded.map(|()| Value::Nil)
}
