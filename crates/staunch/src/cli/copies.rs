//! What a plan makes of each packet, before anything is started: how many copies go where (spec statsd §14 R14), and
//! which endpoint of a cluster owns a key.
//!
//! Called by `check`. Not here: how keys are placed (`process::placement`), what was really sent (`admin::accounts`).

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use config::plan::{ClusterPlan, Feed, OutputKind, OutputPlan, PacketsPlan, Plan};
use model::{OutputId, SourceId};
use process::placement::{Cluster, KeyReader};
use serde_json::{Value, json};

/// What becomes of the packets of one source.
#[derive(Debug)]
pub(crate) struct Copies<'a> {
    source: &'a str,
    /// One for each output of packets that is in no cluster, and one for each cluster.
    copies: usize,
    places: Vec<Place<'a>>,
}

#[derive(Debug)]
enum Place<'a> {
    /// A copy of each packet, or of its lines.
    Endpoint(&'a str, &'a PacketsPlan),
    /// Each line goes to one of the members.
    Cluster(&'a ClusterPlan),
    /// Its samples are aggregated, and aggregates go to these outputs.
    Transform(&'a str, Vec<&'a str>),
    /// Events and service checks go to a file.
    Events(&'a str),
}

/// One for each source, in the order of the plan.
pub(crate) fn of_plan(plan: &Plan) -> Vec<Copies<'_>> {
    let sources = plan.sources.iter().enumerate();
    sources.map(|(at, source)| of_source(plan, SourceId(at as u16), &source.name)).collect()
}

fn of_source<'a>(plan: &'a Plan, id: SourceId, source: &'a str) -> Copies<'a> {
    let takes = |output: &OutputPlan| output.from.contains(&Feed::Source(id));
    let mut places = Vec::new();
    for (at, output) in plan.outputs.iter().enumerate().filter(|(_, output)| takes(output)) {
        let at = OutputId(at as u16);
        let cluster = plan.clusters.iter().find(|cluster| cluster.members.contains(&at));
        match (&output.kind, cluster) {
            (_, Some(cluster)) if cluster.members.first() == Some(&at) => {
                places.push(Place::Cluster(cluster))
            }
            (_, Some(_)) => {}
            (OutputKind::Packets(packets), None) => places.push(Place::Endpoint(&output.name, packets)),
            (OutputKind::EventFile { .. }, None) => places.push(Place::Events(&output.name)),
            // The others take from transforms.
            (_, None) => {}
        }
    }
    let copies = places.len() - places.iter().filter(|place| matches!(place, Place::Events(_))).count();
    for (at, transform) in plan.transforms.iter().enumerate().filter(|(_, each)| each.from.contains(&id)) {
        let feed = Feed::Transform(model::TransformId(at as u16));
        let outputs = plan.outputs.iter().filter(|output| output.from.contains(&feed));
        places.push(Place::Transform(&transform.name, outputs.map(|output| &*output.name).collect()));
    }
    Copies { source, copies, places }
}

impl Copies<'_> {
    /// A line about the source and one for each place.
    pub(crate) fn text(&self) -> String {
        let number = match self.copies {
            0 => "no copy".to_owned(),
            1 => "1 copy".to_owned(),
            many => format!("{many} copies"),
        };
        let mut out = format!("source {}: {number} of each packet\n", self.source);
        for place in &self.places {
            let (name, what) = match place {
                Place::Endpoint(name, packets) => {
                    let how = if packets.lines.is_some() { "lines packed anew" } else { "verbatim" };
                    (*name, format!("{} ({})", packets.to, lines_text(packets).unwrap_or(how)))
                }
                Place::Cluster(cluster) => {
                    let (number, form) = (cluster.members.len(), cluster.placement.name());
                    (&*cluster.name, format!("each line to one of {number} endpoints ({form})"))
                }
                Place::Transform(name, outputs) if outputs.is_empty() => {
                    (*name, "aggregated, for no output".into())
                }
                Place::Transform(name, outputs) => (*name, format!("aggregated for {}", outputs.join(", "))),
                Place::Events(name) => (*name, "events and checks only".into()),
            };
            out.push_str(&format!("  {name:<24} {what}\n"));
        }
        out
    }

    /// The same as a document.
    pub(crate) fn json(&self) -> Value {
        let places: Vec<Value> = self
            .places
            .iter()
            .map(|place| match place {
                Place::Endpoint(name, packets) => {
                    json!({ "output": name, "to": packets.to.to_string(), "verbatim": packets.lines.is_none() })
                }
                Place::Cluster(cluster) => json!({
                    "cluster": cluster.name,
                    "placement": cluster.placement.name(),
                    "endpoints": cluster.labels,
                }),
                Place::Transform(name, outputs) => json!({ "transform": name, "outputs": outputs }),
                Place::Events(name) => json!({ "output": name, "events_only": true }),
            })
            .collect();
        json!({ "source": self.source, "copies": self.copies, "places": places })
    }
}

/// What an endpoint gets of each packet, when that is less than all lines in new packets.
fn lines_text(packets: &PacketsPlan) -> Option<&'static str> {
    let lines = packets.lines.as_ref()?;
    let stage = &lines.stage;
    let fewer = !stage.allow.is_empty()
        || !stage.deny.is_empty()
        || stage.sample < 1.0
        || !stage.sample_names.is_empty()
        || stage.series_max > 0;
    match (fewer, lines.packet_bytes_max) {
        (true, _) => Some("some of its lines"),
        (false, 0) => Some("each line a packet"),
        (false, _) => None,
    }
}

/// The clusters of a plan, ready to be asked.
pub(crate) struct Owners<'a> {
    plan: &'a Plan,
    clusters: Vec<(&'a ClusterPlan, Cluster, KeyReader)>,
}

impl<'a> Owners<'a> {
    /// With all endpoints live.
    ///
    /// # Errors
    /// When the plan has no cluster.
    pub(crate) fn new(plan: &'a Plan) -> anyhow::Result<Owners<'a>> {
        anyhow::ensure!(
            !plan.clusters.is_empty(),
            "--keys asks who owns keys, and this config has no cluster: no output has a `placement`"
        );
        let ready = |cluster: &'a ClusterPlan| {
            let placed = Cluster::new(&cluster.placement, &cluster.labels);
            let placed = placed.expect("the check of the config made this cluster before");
            (cluster, placed, KeyReader::new(cluster.key))
        };
        Ok(Owners { plan, clusters: plan.clusters.iter().map(ready).collect() })
    }

    /// The outputs that own a key, or the key of a whole line: one for each cluster.
    fn of<'b>(&'b mut self, line: &'b [u8]) -> impl Iterator<Item = (&'a str, &'a str)> + 'b {
        let plan = self.plan;
        self.clusters.iter_mut().map(move |(cluster, placed, reader)| {
            let owner =
                placed.owner(reader.key(line)).expect("a cluster with all endpoints live has an owner");
            (&*cluster.name, &*plan.outputs[cluster.members[owner].index()].name)
        })
    }

    /// Writes `key<TAB>output` for each line of `file` (`-` for stdin) and each cluster, in that order. That the reader
    /// of stdout has gone away is no error.
    ///
    /// # Errors
    /// When the file cannot be read or stdout not be written.
    pub(crate) fn write(&mut self, file: &Path) -> anyhow::Result<()> {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let written = each_key(file, |key| {
            for (_, output) in self.of(key) {
                out.write_all(key)?;
                writeln!(out, "\t{output}")?;
            }
            Ok(())
        });
        match written.and_then(|()| Ok(out.flush()?)) {
            Err(error) if is_gone(&error) => Ok(()),
            done => done,
        }
    }

    /// The same as a list of documents.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn json(&mut self, file: &Path) -> anyhow::Result<Value> {
        let mut keys = Vec::new();
        each_key(file, |key| {
            let owners: serde_json::Map<String, Value> =
                self.of(key).map(|(cluster, output)| (cluster.to_owned(), json!(output))).collect();
            keys.push(json!({ "key": String::from_utf8_lossy(key), "owners": owners }));
            Ok(())
        })?;
        Ok(Value::Array(keys))
    }
}

fn is_gone(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Longest key, with its line: a packet is not longer.
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

    const FILE: &str = r#"
        [sources.app]
        type = "statsd"
        [sources.own]
        type = "self"
        [transforms.stats]
        type = "aggregate"
        from = ["app"]
        [outputs.copy]
        type = "udp"
        from = ["app", "own"]
        to = ["udp://10.0.0.5:8125", "udp://10.0.0.6:8125"]
        [outputs.some]
        type = "tcp"
        from = ["app"]
        to = ["tcp://10.0.0.7:8125"]
        allow = ["api.*"]
        [outputs.nodes]
        type = "udp"
        from = ["app"]
        to = ["udp://10.0.0.1:8125", "udp://10.0.0.2:8125", "udp://10.0.0.3:8125"]
        placement = "statsd-node"
        [outputs.events]
        type = "event_file"
        from = ["app"]
        [outputs.edge]
        type = "udp"
        from = ["stats"]
        to = ["udp://10.0.0.8:8125"]
    "#;

    #[test]
    fn copies_are_counted_and_named() {
        let plan = plan(FILE);
        let copies = of_plan(&plan);
        let text: String = copies.iter().map(Copies::text).collect();
        let want = "source app: 4 copies of each packet
  copy/10.0.0.5:8125       udp://10.0.0.5:8125 (verbatim)
  copy/10.0.0.6:8125       udp://10.0.0.6:8125 (verbatim)
  some                     tcp://10.0.0.7:8125 (some of its lines)
  nodes                    each line to one of 3 endpoints (statsd-node)
  events                   events and checks only
  stats                    aggregated for edge
source own: 2 copies of each packet
  copy/10.0.0.5:8125       udp://10.0.0.5:8125 (verbatim)
  copy/10.0.0.6:8125       udp://10.0.0.6:8125 (verbatim)
";
        assert_eq!(text, want);
        let json = copies[0].json();
        assert_eq!((&json["copies"], json["places"].as_array().map(Vec::len)), (&json!(4), Some(6)));
        assert_eq!(json["places"][3]["endpoints"][2], "10.0.0.3:8125");
    }

    #[test]
    fn keys_and_lines_have_the_owners_of_the_proxys_ring() {
        // Spec statsd §13, the column of three nodes.
        let plan = plan(FILE);
        let mut owners = Owners::new(&plan).expect("it has a cluster");
        for (line, node) in
            [("", 3), ("foo", 2), ("users.online", 1), ("foo:1|c", 2), ("x;env=prod:3|g", 1), ("A", 2)]
        {
            let got: Vec<_> = owners.of(line.as_bytes()).collect();
            assert_eq!(got, [("nodes", &*format!("nodes/10.0.0.{node}:8125"))], "{line:?}");
        }
        let without = super::tests::plan("[sources.app]\ntype = \"statsd\"\n");
        assert!(Owners::new(&without).is_err());
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
