//! `staunch check --keys`: the destinations of keys or whole lines, without starting anything: the owner in each
//! cluster, and the matching rules of relays.
//!
//! Not here: hashing of keys and matching of rules (`process`), the full explanation of one name (`staunch relay
//! --explain`).
//! Invariant: the rows and the document are those of `chain_explanation`, as for the HTTP API.

use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::Context;
use config::plan::Plan;
use model::TransformId;
use pipeline::{ChainExplanation, explain_chain};
use process::relay::{Entry, Line, RelayPlan, Router};
use serde_json::{Map, Value, json};

use super::copies::Owners;
use super::rules::Place;
use crate::chain_explanation::{ChainWay, Passed, Row, Rows, entries, outside_feeds};
use crate::route_explanation::line;
use client::stdio::shown;

/// A relay of the plan.
struct Relay<'a> {
    id: TransformId,
    name: &'a str,
    plan: &'a RelayPlan,
    router: Router,
}

/// A plan, ready for queries.
pub(crate) struct Keys<'a> {
    plan: &'a Plan,
    owners: Owners<'a>,
    relays: Vec<Relay<'a>>,
    /// The names of those that keys enter at.
    entries: Vec<&'a str>,
    place: &'a Place<'a>,
}

impl<'a> Keys<'a> {
    /// With all endpoints live.
    ///
    /// # Errors
    /// When the plan has neither cluster nor relay.
    pub(crate) fn new(plan: &'a Plan, place: &'a Place<'a>) -> anyhow::Result<Keys<'a>> {
        let relays = plan.relays().map(|(id, transform, relay)| {
            let router = Router::new(&relay.plan);
            let router = router.expect("the check of the config made this router before");
            Relay { id, name: &transform.name, plan: &relay.plan, router }
        });
        let relays: Vec<_> = relays.collect();
        anyhow::ensure!(
            !plan.clusters.is_empty() || !relays.is_empty(),
            "--keys needs a config with sharding: no output has `sharding`, and there is no relay"
        );
        Ok(Keys { plan, owners: Owners::new(plan), relays, entries: entries(plan), place })
    }

    /// Writes the lines of [`Keys::line`] for each line of `file` (`-` for stdin). A closed stdout is not an error.
    ///
    /// # Errors
    /// When the file cannot be read or stdout cannot be written.
    pub(crate) fn write(&mut self, file: &Path) -> anyhow::Result<()> {
        let on_terminal = std::io::stdout().is_terminal();
        let mut out = BufWriter::new(std::io::stdout().lock());
        let mut line = Vec::new();
        let written = each_key(file, |key| {
            line.clear();
            self.line(key, &mut line);
            if on_terminal {
                line = for_terminal(&line);
            }
            Ok(out.write_all(&line)?)
        });
        match written.and_then(|()| Ok(out.flush()?)) {
            Err(error) if is_gone(&error) => Ok(()),
            done => done,
        }
    }

    /// `key<TAB>output` for each cluster. For each relay that keys enter at, and those behind it, `key<TAB>output<TAB>rules` for
    /// each copy, `counts in NAME` in place of the output for each result, and `-` when it goes nowhere, with the rule that saw
    /// to that or `-`. A fourth cell has the name at the end when a rule changed it.
    fn line(&mut self, key: &[u8], out: &mut Vec<u8>) {
        let mut row = |rest: &[&str]| {
            out.extend_from_slice(key);
            rest.iter().for_each(|cell| {
                out.push(b'\t');
                out.extend_from_slice(cell.as_bytes());
            });
            out.push(b'\n');
        };
        self.owners.of(key).for_each(|(_, output)| row(&[output]));
        for first in &self.entries {
            let chain = self.chain(first, line(key, self.plan.tags_are_named(first)));
            let rows = Rows { plan: self.plan, chain: &chain, first, place: self.place };
            for Row { end, way, renamed } in rows.rows() {
                match renamed {
                    None => row(&[&end, &way]),
                    Some(renamed) => row(&[&end, &way, &renamed]),
                }
            }
        }
    }

    /// A relay by its name, or by the number that others have for it.
    fn relay(&self, first: &str, id: Option<TransformId>) -> &Relay<'a> {
        let is_it = |relay: &&Relay<'_>| id.map_or(relay.name == first, |id| relay.id == id);
        self.relays.iter().find(is_it).expect("every relay of the plan is here")
    }

    fn chain(&self, first: &str, line: Line<'_>) -> ChainExplanation {
        let mut explain = |id: Option<TransformId>, line: Line<'_>| {
            Some(self.relay(first, id).router.explain(Entry::Records, line, 0))
        };
        explain_chain(line, &mut explain).expect("nothing ends it")
    }

    /// For each key a document: `owners` by cluster, and its way for each relay that keys enter at.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn json(&mut self, file: &Path) -> anyhow::Result<Value> {
        let mut keys = Vec::new();
        each_key(file, |key| {
            let mut document = json!({ "key": String::from_utf8_lossy(key) });
            if !self.plan.clusters.is_empty() {
                let owners: Map<String, Value> = self
                    .owners
                    .of(key)
                    .map(|(cluster, output)| (cluster.to_owned(), json!(output)))
                    .collect();
                document["owners"] = Value::Object(owners);
            }
            if !self.relays.is_empty() {
                let mut relays = Map::new();
                for first in &self.entries {
                    let line = line(key, self.plan.tags_are_named(first));
                    let chain = self.chain(first, line);
                    let passed = |id| {
                        let relay = self.relay(first, id);
                        Passed { name: relay.name, plan: relay.plan }
                    };
                    let from = outside_feeds(self.plan, first);
                    let way = ChainWay::new(&chain, line, from, &passed, self.place);
                    relays.insert((*first).to_owned(), serde_json::to_value(way)?);
                }
                document["relays"] = Value::Object(relays);
            }
            keys.push(document);
            Ok(())
        })?;
        Ok(Value::Array(keys))
    }
}

/// Rows for a terminal: control characters in keys are escaped.
fn for_terminal(rows: &[u8]) -> Vec<u8> {
    let rows = String::from_utf8_lossy(rows);
    let cells = |row: &str| row.split('\t').map(shown).collect::<Vec<_>>().join("\t");
    rows.lines().flat_map(|row| [cells(row), "\n".to_owned()]).collect::<String>().into_bytes()
}

fn is_gone(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Longest key, including its line: a packet is not longer.
const KEY_BYTES_MAX: u64 = 64 * 1024;

fn each_key(file: &Path, mut each: impl FnMut(&[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let name = file.display();
    let mut lines: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(BufReader::new(std::fs::File::open(file).with_context(|| format!("cannot read {name}"))?))
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = std::io::Read::take(&mut lines, KEY_BYTES_MAX + 1);
        let len = limited.read_until(b'\n', &mut line).with_context(|| format!("cannot read {name}"))?;
        if len == 0 {
            return Ok(());
        }
        anyhow::ensure!(len as u64 <= KEY_BYTES_MAX, "{name} has a line of more than {KEY_BYTES_MAX} bytes");
        each(line.strip_suffix(b"\n").unwrap_or(&line))?;
    }
}

#[cfg(test)]
mod tests {
    use config::{Format, check, diagnostic::Source};

    use super::*;

    fn plan(text: &str) -> Plan {
        check(Source { name: "test", text }, Format::Toml).0.expect("a good file")
    }

    #[test]
    fn a_plan_without_cluster_and_relay_has_no_keys() {
        let plan = plan("[sources.app]\ntype = \"statsd\"\n");
        assert!(Keys::new(&plan, &|_, _| String::new()).is_err());
    }

    #[test]
    fn control_characters_in_keys_are_escaped_on_a_terminal() {
        let rows = b"a\x1b[2Jb\tring/\xc2\x9b1m\tx:1\n\x07\t-\t-\r\n";
        let shown = String::from_utf8(for_terminal(rows)).expect("it is text");
        assert_eq!(shown, "a\u{fffd}[2Jb\tring/\u{fffd}1m\tx:1\n\u{fffd}\t-\t-\n");
    }

    #[test]
    fn keys_stand_on_lines() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let file = folder.path().join("keys");
        let keys = |bytes: &[u8]| {
            std::fs::write(&file, bytes).expect("it can be written");
            let mut keys = Vec::new();
            each_key(&file, |key| {
                keys.push(key.to_vec());
                Ok(())
            })
            .map(|()| keys)
        };
        assert_eq!(keys(b"a\n\n\xff\tb\nlast").expect("keys"), [&b"a"[..], b"", b"\xff\tb", b"last"]);
        let most = vec![b'x'; KEY_BYTES_MAX as usize];
        assert_eq!(keys(&most).expect("at the limit").len(), 1);
        assert!(keys(&[&most[..], b"x"].concat()).is_err(), "past it");
        assert!(each_key(Path::new("/nowhere"), |_| Ok(())).is_err());
    }
}
