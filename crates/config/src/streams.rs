//! Riemann configs of a plan: evaluated, with their mistakes at their places, and their outputs added to the plan.
//!
//! Path of a file: [`evaluate`] (reads the files through a [`Reader`], and runs nothing) -> [`attach`] (its outputs become outputs of
//! the plan; [`own`]: what they are). Not here: reading from disk (`staunch`), and what a config's servers become (`import`).

mod own;

use std::path::Path;
use std::sync::{Arc, PoisonError};

use deliver::plan::QueueKind;
use model::TransformId;
use model::limits::OUTPUTS_MAX;
use streams::graph::Limits;
use streams::position::Position;
use streams::riemann::declared::{Declared, Output, Server, Transport};
use streams::riemann::engine::{Engine, Setup};
use streams::riemann::files::{Files, Reader, Recorded};
use streams::riemann::parts::Part;

use crate::diagnostic::{Code, Diagnostic, Place, nearest};
use crate::kinds::RecordKind;
use crate::plan::{
    Feed, Listen, LoadedEngine, LoadedStreams, OutputKind, OutputPlan, Plan, RiemannEncoding, SYNC_WINDOW_MS,
    SourceKind, SourcePlan, StreamsOutput, TransformKind, TransformPlan,
};

/// A config that was evaluated.
#[derive(Debug)]
pub struct Evaluated {
    /// What it asked for.
    pub files: Arc<Files>,
    /// Its streams, for the shard that runs them; none if it has mistakes.
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

/// The streams of a config that was evaluated, with their places: which run natively. None if it has mistakes.
pub fn parts(files: &Files, now_us: i64) -> Vec<Part> {
    let host = Box::new(Recorded::new(files.clone(), 0));
    let loaded = Engine::load(&files.main, host, Setup { now_us, ..Setup::DEFAULT });
    loaded.map_or_else(|_mistakes| Vec::new(), |mut engine| engine.parts())
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
        let found = match (&placed.what, own::kind(&placed.what)) {
            (Output::Named(name), _) => named(plan, id, name).map(|id| StreamsOutput { id, is_own: false }),
            (_, Some(Ok(_))) if plan.outputs.len() == OUTPUTS_MAX => {
                Err((format!("there are more than {OUTPUTS_MAX} outputs"), None))
            }
            (_, Some(Ok(kind))) => {
                let id = add(plan, id, kind, own::is_notification(&placed.what));
                Ok(StreamsOutput { id, is_own: true })
            }
            (_, Some(Err(message))) => Err((message, None)),
            (_, None) => continue,
        };
        match found {
            Ok(output) => outputs.push(output),
            Err((message, hint)) => error(message, hint),
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
        let encoding = match &source.kind {
            SourceKind::Riemann(riemann) => riemann.encoding,
            // Its points become the events of those lines.
            SourceKind::Graphite(_) => RiemannEncoding::Graphite,
            // Of OpenTSDB's lines, points keep the tags apart from the name.
            SourceKind::OpenTsdb | SourceKind::Statsd(_) => return false,
            SourceKind::Own(_) | SourceKind::RelayOwn(_) | SourceKind::CarbonOwn(_) => return false,
        };
        match server {
            Server::Graphite { .. } => encoding == RiemannEncoding::Graphite,
            Server::Opentsdb { .. } => encoding == RiemannEncoding::Opentsdb,
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

/// The output of the native config with this name. An error has a hint.
fn named(plan: &Plan, id: TransformId, name: &str) -> Result<model::OutputId, (String, Option<String>)> {
    let Some(at) = plan.outputs.iter().position(|output| output.name == *name) else {
        let near = nearest(name, plan.outputs.iter().map(|output| &*output.name));
        let hint = near.map(|near| format!("did you mean \"{near}\"?"));
        return Err((format!("there is no output `{name}`"), hint));
    };
    let output = &plan.outputs[at];
    if !output.kind.takes().contains(&RecordKind::Events) {
        return Err((format!("output `{name}` does not take events"), None));
    }
    if !output.from.contains(&Feed::Transform(id)) {
        let transform = &plan.transforms[id.index()].name;
        let hint = format!("add \"{transform}\" to its `from`");
        return Err((format!("output `{name}` does not take from `{transform}`"), Some(hint)));
    }
    Ok(model::OutputId(at as u16))
}

/// The names of the outputs of a config, in the order of their declarations: those that [`attach`] gives them in a plan without other
/// outputs, for a transform of this name.
pub fn output_names(declared: &Declared, transform: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for placed in &declared.outputs {
        let name = match (&placed.what, own::kind(&placed.what)) {
            (Output::Named(name), _) => name.to_string(),
            (_, Some(Ok(kind))) => own_name(transform, &kind, |name| !names.contains(name)),
            (_, Some(Err(_)) | None) => String::new(),
        };
        names.push(name);
    }
    names
}

/// The name of an output of the config's own: its transform and its endpoint.
fn own_name(transform: &str, kind: &OutputKind, is_free: impl Fn(&String) -> bool) -> String {
    let to = kind.destination().map(|to| crate::address::destination_name(&to)).unwrap_or_default();
    let first = format!("{transform}/{to}");
    // Several may have one endpoint.
    let others = (2..).map(|number| format!("{first}-{number}"));
    std::iter::once(first.clone()).chain(others).find(is_free).expect("names are endless")
}

/// Adds an output of the config's own. Notifications wait on disk, so that an alert survives the end of the process.
fn add(plan: &mut Plan, transform: TransformId, kind: OutputKind, is_notification: bool) -> model::OutputId {
    let is_free = |name: &String| plan.outputs.iter().all(|output| output.name != *name);
    let name = own_name(&plan.transforms[transform.index()].name, &kind, is_free);
    let id = model::OutputId(plan.outputs.len() as u16);
    let mut output = OutputPlan::new(name, kind, vec![Feed::Transform(transform)]);
    if is_notification {
        output.queue_kind = QueueKind::Disk { sync_window_ms: SYNC_WINDOW_MS };
    }
    plan.outputs.push(output);
    id
}

/// A warning for each mailer whose password others can read on the way.
fn clear_passwords(evaluated: &Evaluated) -> Vec<(String, Diagnostic)> {
    let declared = evaluated.declared.iter().flat_map(|declared| &declared.outputs);
    let shown = declared.filter(|placed| {
        matches!(own::kind(&placed.what), Some(Ok(OutputKind::Email(plan))) if plan.shows_password())
    });
    let warnings = shown.map(|placed| {
        let text = "mailer: the password is sent in clear text to a server elsewhere";
        let hint = "write :tls true, or :ssl true for a server with TLS from the beginning";
        let warning = Diagnostic::warning(Code::RiemannNote, text).hint(hint);
        place_in(&evaluated.files, &placed.at, warning)
    });
    warnings.collect()
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
