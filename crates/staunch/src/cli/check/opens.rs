//! The addresses that a daemon with a plan would open: its listeners, and the destinations of its outputs.
//!
//! Called by `check`. Invariant: no line of the text is wider than a terminal; the JSON document is complete.

use config::address::listen_text;
use config::plan::Plan;
use serde::Serialize;

use crate::admin::accounts::{output_word, source_word};
use crate::daemon::start::banner;
use crate::route_explanation::cut;

/// Columns of a terminal, and the most for names and types.
const COLUMNS: usize = 80;
const NAME_COLUMNS_MAX: usize = 28;

/// A listener, or the endpoint or file of an output.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Opened {
    /// A source or output; empty for `http` and `management`.
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    at: String,
}

/// Everything that is opened.
#[derive(Debug, Serialize)]
pub(crate) struct Opens {
    listens: Vec<Opened>,
    sends: Vec<Opened>,
}

/// In the order of the plan.
pub(crate) fn of_plan(plan: &Plan) -> Opens {
    let mut listens = Vec::new();
    for source in &plan.sources {
        let (name, kind) = (&source.name, source_word(source));
        let all = source.listen.iter().map(|at| Opened { name: name.clone(), kind, at: listen_text(at) });
        listens.extend(all);
    }
    let port = |kind, at: String| Opened { name: String::new(), kind, at };
    let ports = plan.management.iter().map(|port| format!("tcp://{}", port.listen));
    listens.extend(ports.map(|at| port("management", at)));
    listens.extend(plan.carbonlink.map(|link| port("carbonlink", format!("tcp://{}", link.listen))));
    let scheme = if plan.http_server.tls.is_some() { "https" } else { "http" };
    listens.extend(plan.http.map(|at| port("http", format!("{scheme}://{at}"))));
    let sends = plan.outputs.iter().map(|output| Opened {
        name: output.name.clone(),
        kind: output_word(&output.kind),
        at: banner::place(&output.kind),
    });
    Opens { listens, sends: sends.collect() }
}

impl Opens {
    /// Two tables with common columns.
    pub(crate) fn text(&self) -> String {
        let all = || self.listens.iter().chain(&self.sends);
        let names = all().map(|opened| opened.name.chars().count()).max().unwrap_or(0).min(NAME_COLUMNS_MAX);
        let kinds = all().map(|opened| opened.kind.len()).max().unwrap_or(0);
        let room = COLUMNS - (2 + names + 2 + kinds + 2);
        let mut text = String::new();
        for (heading, rows) in [("listens at", &self.listens), ("sends to", &self.sends)] {
            if !rows.is_empty() {
                text.push_str(heading);
                text.push('\n');
            }
            for Opened { name, kind, at } in rows {
                let (name, at) = (cut(name, names), cut(at, room));
                text.push_str(&format!("  {kind:<kinds$}  {name:<names$}  {at}\n"));
            }
        }
        text
    }
}

#[test]
fn the_tables_fit_a_terminal_and_the_document_is_complete() {
    let name = "a-name-of-an-output-that-is-longer-than-anybody-would-want-it";
    let path = format!("/{}", "x".repeat(90));
    let text = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:8125\", \"unix:///run/a.sock\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n\
         [outputs.{name}]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\npath = \"{path}\"\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://carbon:2003\"]\n"
    );
    let source = config::diagnostic::Source { name: "test", text: &text };
    let opens = of_plan(&config::check(source, config::Format::Toml).0.expect("a good file"));
    let text = opens.text();
    assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    for want in ["udp://127.0.0.1:8125", "unix:///run/a.sock", "http://127.0.0.1:8680", "tcp://carbon:2003"] {
        assert!(text.contains(want), "{want}: {text}");
    }
    let document = serde_json::to_string(&opens).expect("it is JSON");
    assert!(document.contains(&path) && document.contains(name), "{document}");
}
