//! Riemann configs of a plan: evaluated, with their mistakes at their places, and their outputs added to the plan.
//!
//! Path of a file: [`evaluate`] (reads the files through a [`Reader`], and runs nothing) -> [`attach`] (its outputs become outputs of
//! the plan). Not here: reading from disk (`staunch`), and what a config's servers become (`import`).

use std::path::Path;
use std::sync::{Arc, PoisonError};

use model::TransformId;
use model::limits::OUTPUTS_MAX;
use streams::graph::Limits;
use streams::position::Position;
use streams::riemann::declared::{Declared, Mailer, Output, Post, PostForm, Server, TimeUnit, Transport};
use streams::riemann::engine::{Engine, Setup};
use streams::riemann::files::{Files, Reader, Recorded};
use wire::graphite::Namespace;
use wire::influxdb::Precision;

use crate::diagnostic::{Code, Diagnostic, Place, nearest};
use crate::kinds::RecordKind;
use crate::plan::{
    Compression, EmailPlan, Endpoint, Feed, GraphiteEncoding, HttpEncoding, HttpOutputPlan, Listen,
    LoadedEngine, LoadedStreams, OutputKind, OutputPlan, Plan, RiemannEncoding, SourceKind, SourcePlan,
    StreamsOutput, TransformKind, TransformPlan,
};

/// A config that was evaluated.
#[derive(Debug)]
pub struct Evaluated {
    /// What it asked for.
    pub files: Arc<Files>,
    /// Its streams, for whoever runs it; none if it has mistakes.
    pub engine: LoadedEngine,
    /// What it declared; none if it has mistakes.
    pub declared: Option<Declared>,
    /// Its mistakes and notes, each with the name of its file.
    pub said: Vec<(String, Diagnostic)>,
}

/// Evaluates a config: `main` is the name of its file for the reader. `seed` is the seed of the hashes of external keys.
pub fn evaluate(main: &str, reader: Box<dyn Reader>, now_us: i64, seed: u64) -> Evaluated {
    evaluate_as(main, reader, setup(now_us, seed))
}

/// How a config is evaluated that is to run.
pub fn setup(now_us: i64, seed: u64) -> Setup {
    Setup { now_us, seed, graph: Limits { hash_seed: seed, ..Limits::DEFAULT }, ..Setup::DEFAULT }
}

/// The same in test mode, with the forms of its tests.
pub fn evaluate_tests(main: &str, reader: Box<dyn Reader>) -> Evaluated {
    evaluate_as(main, reader, Setup { testing: true, ..Setup::DEFAULT })
}

fn evaluate_as(main: &str, reader: Box<dyn Reader>, setup: Setup) -> Evaluated {
    let (host, files) = Recorded::recording(main, reader, setup.seed);
    let loaded = Engine::load(main, Box::new(host), setup);
    let files = Arc::new(files.lock().unwrap_or_else(PoisonError::into_inner).clone());
    let (engine, declared, said) = match loaded {
        Ok(engine) => {
            let declared = engine.declared().clone();
            let notes = declared.notes.iter();
            let notes = notes.map(|note| {
                place_in(&files, &note.at, Diagnostic::warning(Code::RiemannNote, note.text.clone()))
            });
            let notes = notes.collect();
            (LoadedEngine::of(engine), Some(declared), notes)
        }
        Err(error) => {
            let mistakes = error.diagnostics.iter().map(|mistake| {
                let diagnostic = Diagnostic::error(Code::RiemannConfig, mistake.message.clone());
                place_in(&files, &mistake.at, Diagnostic { hint: mistake.hint.clone(), ..diagnostic })
            });
            (LoadedEngine::default(), None, mistakes.collect())
        }
    };
    Evaluated { files, engine, declared, said }
}

/// A diagnostic at its place, with its file: the main one if the place is unknown.
pub fn place_in(files: &Files, at: &Position, diagnostic: Diagnostic) -> (String, Diagnostic) {
    match files.texts.get(at.file.as_str()) {
        Some(Ok(text)) if at.is_known() => (at.file.to_string(), diagnostic.at(place(text, at))),
        _ => (files.main.clone(), diagnostic),
    }
}

/// The first character, or the word, at a line and column.
fn place(text: &str, at: &Position) -> Place {
    let line = text.split_inclusive('\n').take(at.line as usize - 1).map(str::len).sum::<usize>();
    let rest = &text[line.min(text.len())..];
    let column = rest.char_indices().nth((at.column as usize).saturating_sub(1)).map_or(0, |(at, _)| at);
    let start = line + column;
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_!?*+/<>=.:$%&".contains(byte);
    let word = text.as_bytes().get(start..).unwrap_or_default().iter().take_while(|byte| word(byte)).count();
    Place::new(start, start + word.max(1))
}

/// Adds the outputs of a config to the plan, and its edges to those that the plan has. Returns mistakes and warnings.
pub fn attach(plan: &mut Plan, id: TransformId, evaluated: &Evaluated) -> Vec<(String, Diagnostic)> {
    let (mut wrong, mut outputs) = (Vec::new(), Vec::new());
    let declared = evaluated.declared.iter().flat_map(|declared| &declared.outputs);
    for placed in declared {
        let mut error = |message: String, hint: Option<String>| {
            let diagnostic = Diagnostic { hint, ..Diagnostic::error(Code::RiemannOutput, message) };
            wrong.push(place_in(&evaluated.files, &placed.at, diagnostic));
        };
        match &placed.what {
            Output::Graphite { host, port, transport } => {
                if plan.outputs.len() == OUTPUTS_MAX {
                    error(format!("there are more than {OUTPUTS_MAX} outputs"), None);
                    continue;
                }
                let to = Endpoint { host: host.to_string(), port: *port };
                outputs.push(StreamsOutput { id: own(plan, id, graphite(to, *transport)), is_own: true });
            }
            Output::Post(post) => {
                if plan.outputs.len() == OUTPUTS_MAX {
                    error(format!("there are more than {OUTPUTS_MAX} outputs"), None);
                    continue;
                }
                match http(post) {
                    Ok(kind) => outputs.push(StreamsOutput { id: own(plan, id, kind), is_own: true }),
                    Err(message) => error(message, None),
                }
            }
            Output::Mail(mailer) => {
                if plan.outputs.len() == OUTPUTS_MAX {
                    error(format!("there are more than {OUTPUTS_MAX} outputs"), None);
                    continue;
                }
                match mail(mailer) {
                    Ok(kind) => outputs.push(StreamsOutput { id: own(plan, id, kind), is_own: true }),
                    Err(message) => error(message, None),
                }
            }
            Output::Riemann { .. } => {
                error("events cannot be forwarded to another Riemann yet".to_owned(), None);
            }
            Output::Named(name) => {
                let Some(at) = plan.outputs.iter().position(|output| output.name == **name) else {
                    let near = nearest(name, plan.outputs.iter().map(|output| &*output.name));
                    let hint = near.map(|near| format!("did you mean \"{near}\"?"));
                    error(format!("there is no output `{name}`"), hint);
                    continue;
                };
                let output = &mut plan.outputs[at];
                if !output.kind.takes().contains(&RecordKind::Events) {
                    error(format!("output `{name}` does not take events"), None);
                    continue;
                }
                if !output.from.contains(&Feed::Transform(id)) {
                    let transform = &plan.transforms[id.index()].name;
                    error(
                        format!("output `{name}` does not take from `{transform}`"),
                        Some(format!("add \"{transform}\" to its `from`")),
                    );
                    continue;
                }
                outputs.push(StreamsOutput { id: model::OutputId(at as u16), is_own: false });
            }
        }
    }
    wrong.extend(clear_passwords(evaluated));
    let parsers = parsers(plan, id, evaluated);
    if let Some(TransformKind::Streams(streams)) =
        plan.transforms.get_mut(id.index()).map(|one| &mut one.kind)
    {
        let (files, engine) = (Arc::clone(&evaluated.files), evaluated.engine.clone());
        streams.loaded = Some(LoadedStreams { files, engine, outputs, parsers });
    }
    wrong
}

/// The sources of a config whose events go through a function of it first (`:parser-fn`), with the numbers of the servers that have it. In a
/// native config these are sources of the same lines and port.
fn parsers(plan: &Plan, id: TransformId, evaluated: &Evaluated) -> Vec<(String, usize)> {
    let servers = evaluated.declared.iter().flat_map(|declared| &declared.servers).enumerate();
    let servers: Vec<_> = servers.filter(|(_, server)| server.what.parser().is_some()).collect();
    let listens = |source: &SourcePlan, server: &Server| {
        let is_datagram = server.transport() == Transport::Udp;
        let mut sockets = source.listen.iter().filter_map(Listen::socket);
        sockets.any(|(at, datagrams)| at.port() == server.listen().port && datagrams == is_datagram)
    };
    let reads = |source: &SourcePlan, server: &Server| {
        let SourceKind::Riemann(riemann) = &source.kind else { return false };
        match server {
            Server::Graphite { .. } => riemann.encoding == RiemannEncoding::Graphite,
            Server::Opentsdb { .. } => riemann.encoding == RiemannEncoding::Opentsdb,
            Server::Tcp { .. } | Server::Udp { .. } | Server::WebSocket { .. } | Server::Sse { .. } => false,
        }
    };
    let sources = plan.transforms.get(id.index()).into_iter().flat_map(TransformPlan::sources);
    let with_function = sources.filter_map(|source| {
        let source = plan.sources.get(source.index())?;
        let is_of = |server: &Server| reads(source, server) && listens(source, server);
        let (number, _) = servers.iter().find(|(_, server)| is_of(&server.what))?;
        Some((source.name.clone(), *number))
    });
    with_function.collect()
}

/// Adds an output of the config's own, named after its transform and its endpoint.
fn own(plan: &mut Plan, transform: TransformId, kind: OutputKind) -> model::OutputId {
    let to = kind.destination().map(|to| crate::address::destination_name(&to)).unwrap_or_default();
    let first = format!("{}/{to}", plan.transforms[transform.index()].name);
    let is_free = |name: &String| plan.outputs.iter().all(|output| output.name != *name);
    // Several may have one endpoint.
    let others = (2..).map(|number| format!("{first}-{number}"));
    let name = std::iter::once(first.clone()).chain(others).find(is_free).expect("names are endless");
    let id = model::OutputId(plan.outputs.len() as u16);
    plan.outputs.push(OutputPlan::new(name, kind, vec![Feed::Transform(transform)]));
    id
}

/// A warning for each mailer whose password others can read on the way.
fn clear_passwords(evaluated: &Evaluated) -> Vec<(String, Diagnostic)> {
    let declared = evaluated.declared.iter().flat_map(|declared| &declared.outputs);
    let shown = declared.filter(|placed| {
        let Output::Mail(mailer) = &placed.what else { return false };
        matches!(mail(mailer), Ok(OutputKind::Email(plan)) if plan.shows_password())
    });
    let warnings = shown.map(|placed| {
        let text = "mailer: the password is sent in clear text to a server elsewhere";
        let hint = "write :tls true, or :ssl true for a server with TLS from the beginning";
        let warning = Diagnostic::warning(Code::RiemannNote, text).hint(hint);
        place_in(&evaluated.files, &placed.at, warning)
    });
    warnings.collect()
}

/// An output of the mails of a config: each push is a mail.
fn mail(mailer: &Mailer) -> Result<OutputKind, String> {
    let mut plan = EmailPlan {
        smtp: mailer.smtp.to_string(),
        starttls: mailer.starttls,
        user: mailer.user.as_ref().map(ToString::to_string),
        password: mailer.password.as_ref().map(ToString::to_string),
        from_event: true,
        events_max: 1,
        delay_ms: 0,
        ..EmailPlan::default()
    };
    let (is_encrypted, _) = plan.server().map_err(|why| format!("the mail server cannot be used: {why}"))?;
    if is_encrypted || plan.starttls {
        plan.tls = Some(Box::default());
    }
    Ok(OutputKind::Email(Box::new(plan)))
}

/// An output of the requests of a config: with Riemann's timeout of 5 s, one for each push.
fn http(post: &Post) -> Result<OutputKind, String> {
    let text = |text: &str| text.to_owned();
    let mut plan = HttpOutputPlan {
        url: text(&post.url),
        headers: post.headers.iter().map(|(name, value)| (text(name), text(value))).collect(),
        encoding: HttpEncoding::Template,
        body: "{{staunch.body}}".to_owned(),
        ..HttpOutputPlan::default()
    };
    plan.sender.write_timeout_ms = 5_000;
    if let PostForm::InfluxDb { tags, unit } = &post.form {
        plan.encoding = HttpEncoding::InfluxDb;
        plan.tags = tags.iter().map(|tag| text(tag)).collect();
        plan.precision = match unit {
            TimeUnit::Seconds => Precision::Seconds,
            TimeUnit::Milliseconds => Precision::Milliseconds,
            TimeUnit::Microseconds => Precision::Microseconds,
        };
    }
    let parts = plan.parts().map_err(|why| format!("the URL of the output cannot be used: {why}"))?;
    plan.target().map_err(|mistake| format!("the URL of the output has a mistake: {}", mistake.what))?;
    if parts.is_encrypted {
        plan.tls = Some(Box::default());
    }
    Ok(OutputKind::Http(Box::new(plan)))
}

fn graphite(to: Endpoint, transport: Transport) -> OutputKind {
    let (namespace, sender) = (Namespace::default(), deliver::plan::SenderPlan::default());
    match transport {
        Transport::Tcp => OutputKind::Graphite {
            to,
            form: GraphiteEncoding::Lines,
            namespace,
            sender,
            connections: 1,
            line_bytes_max: OutputKind::LINE_BYTES_MAX,
            compression: Compression::Plain,
            tls: None,
        },
        Transport::Udp => OutputKind::GraphiteDatagrams { to, syslog: false, namespace, sender },
    }
}

/// The files of the configs of a plan that are not evaluated yet, with their transforms.
pub fn unloaded(plan: &Plan) -> Vec<(TransformId, &Path)> {
    let streams = plan.streams().filter(|(.., streams)| streams.loaded.is_none());
    streams.map(|(id, _, streams)| (id, &*streams.file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with one file.
    struct One(String);

    impl Reader for One {
        fn read_file(&mut self, _: &str) -> Result<String, String> {
            Ok(self.0.clone())
        }

        fn files_below(&mut self, _: &str) -> Result<Option<Vec<String>>, String> {
            Ok(None)
        }

        fn environment(&mut self, _: &str) -> Option<String> {
            None
        }

        fn host_name(&mut self) -> String {
            "here".to_owned()
        }
    }

    #[test]
    fn a_mailer_that_shows_its_password_has_a_warning_at_its_place() {
        for (options, is_shown) in [
            (":host \"mail.test\" :user \"u\" :pass \"p\"", true),
            (":host \"mail.test\" :user \"u\" :pass \"p\" :tls true", false),
            (":host \"mail.test\" :user \"u\" :pass \"p\" :ssl true", false),
            (":host \"mail.test\"", false),
            (":host \"localhost\" :user \"u\" :pass \"p\"", false),
            (":user \"u\" :pass \"p\"", false),
        ] {
            let text = format!("(def email (mailer {{{options}}}))");
            let evaluated = evaluate("riemann.config", Box::new(One(text.clone())), 0, 1);
            assert!(evaluated.declared.is_some(), "{options}: {:?}", evaluated.said);
            let warnings = clear_passwords(&evaluated);
            assert_eq!(warnings.len(), usize::from(is_shown), "{options}: {warnings:?}");
            for (file, warning) in warnings {
                let place = warning.place.expect("it is known");
                assert_eq!((file.as_str(), warning.code), ("riemann.config", Code::RiemannNote));
                let marked = text[place.start..].trim_start_matches('(');
                assert!(marked.starts_with("mailer"), "{options}: {marked}");
            }
        }
    }
}
