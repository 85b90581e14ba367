//! The copies of each packet according to a plan, without starting it (spec statsd §14 R14), and the endpoint of a
//! cluster that owns a key.
//!
//! Called by `check`. Not here: hashing of keys (`process::sharding`), the copies actually sent (`admin::accounts`).

use config::kinds::RecordKind;
use config::plan::{ClusterPlan, Feed, Link, OutputKind, OutputPlan, PacketsPlan, Plan, StreamLink};
use model::{OutputId, SourceId};
use process::sharding::{Cluster, KeyReader};
use serde_json::{Value, json};

/// The destinations of the packets of one source.
#[derive(Debug)]
pub(crate) struct Copies<'a> {
    source: &'a str,
    /// One for each output of packets outside of clusters, and one for each cluster.
    copies: usize,
    places: Vec<Place<'a>>,
    /// No output takes its events and service checks.
    has_unread_events: bool,
}

#[derive(Debug)]
enum Place<'a> {
    /// A copy of each packet, or of its lines.
    Endpoint(&'a str, &'a PacketsPlan),
    /// Each line goes to one of the members.
    Cluster(&'a ClusterPlan),
    /// A transform, what it does with its records, and for which nodes.
    Transform(&'a str, &'static str, Vec<&'a str>),
    /// Its points go to the rules of a relay.
    Relay(&'a str),
    /// Its points are forwarded unchanged.
    Points(&'a OutputPlan),
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
            (kind, None) if kind.takes().contains(&RecordKind::Events) => {
                places.push(Place::Events(&output.name))
            }
            (_, None) => places.push(Place::Points(output)),
        }
    }
    let is_copy = |place: &&Place| matches!(place, Place::Endpoint(..) | Place::Cluster(_));
    let copies = places.iter().filter(is_copy).count();
    for (at, transform) in plan.transforms.iter().enumerate().filter(|(_, each)| each.takes_from(id)) {
        let Some(participle) = transform.kind.facts().participle else {
            places.push(Place::Relay(&transform.name));
            continue;
        };
        let feed = Feed::Transform(model::TransformId(at as u16));
        let outputs = plan.outputs.iter().filter(|output| output.from.contains(&feed));
        let transforms = plan.transforms.iter().filter(|each| each.from.contains(&feed));
        let fed = transforms.map(|each| &*each.name).chain(outputs.map(|output| &*output.name));
        places.push(Place::Transform(&transform.name, participle, fed.collect()));
    }
    let has_unread_events = plan.sources_with_unread_events().any(|unread| unread.name == source);
    Copies { source, copies, places, has_unread_events }
}

impl Copies<'_> {
    /// A line about the source and one for each destination.
    pub(crate) fn text(&self) -> String {
        let has = |wanted: fn(&Place) -> bool| self.places.iter().any(wanted);
        let points: Vec<&str> = self.places.iter().filter_map(Place::of_points).collect();
        let transformed = self.places.iter().find_map(Place::participle);
        let number = match self.copies {
            0 if !points.is_empty() => format!("points to {}", points.join(", ")),
            0 if has(|place| matches!(place, Place::Relay(_))) => "no copy as it comes".to_owned(),
            0 => transformed.unwrap_or("no copy of each packet").to_owned(),
            1 => "1 copy of each packet".to_owned(),
            many => format!("{many} copies of each packet"),
        };
        let mut out = format!("source {}: {number}\n", self.source);
        for place in &self.places {
            let (name, what) = match place {
                Place::Endpoint(name, packets) => {
                    let how = if packets.lines.is_some() { "lines packed anew" } else { "verbatim" };
                    (*name, format!("{} ({})", packets.to, lines_text(packets).unwrap_or(how)))
                }
                Place::Cluster(cluster) => {
                    let (number, form) = (cluster.members.len(), cluster.sharding.name());
                    let plural = if number == 1 { "" } else { "s" };
                    (&*cluster.name, format!("each line to one of {number} endpoint{plural} ({form})"))
                }
                Place::Transform(name, participle, fed) if fed.is_empty() => {
                    (*name, format!("{participle}, for nobody"))
                }
                Place::Transform(name, participle, fed) => {
                    (*name, format!("{participle} for {}", fed.join(", ")))
                }
                Place::Relay(name) => (*name, "each line as the rules below say".into()),
                Place::Points(output) => (&*output.name, points_text(&output.kind)),
                Place::Events(name) => (*name, "events and checks only".into()),
            };
            out.push_str(&format!("  {name:<24} {what}\n"));
        }
        if self.has_unread_events {
            out.push_str(&format!("  {:<24} {}\n", "events, service checks", UNREAD_EVENTS));
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
                    "sharding": cluster.sharding.name(),
                    "endpoints": cluster.labels,
                }),
                Place::Transform(name, _, outputs) => json!({ "transform": name, "outputs": outputs }),
                Place::Relay(name) => json!({ "relay": name }),
                Place::Points(output) => json!({ "output": output.name, "points": true }),
                Place::Events(name) => json!({ "output": name, "events_only": true }),
            })
            .collect();
        let unread = self.has_unread_events;
        json!({ "source": self.source, "copies": self.copies, "places": places, "unread_events": unread })
    }
}

/// What becomes of events that no output takes.
pub(crate) const UNREAD_EVENTS: &str = "filtered: no output takes them (C040)";

impl<'a> Place<'a> {
    /// The name of an output of points.
    fn of_points(&self) -> Option<&'a str> {
        match self {
            Place::Points(output) => Some(&output.name),
            _ => None,
        }
    }

    /// What a transform does with its records.
    fn participle(&self) -> Option<&'static str> {
        if let Place::Transform(_, participle, _) = self { Some(participle) } else { None }
    }
}

/// The file or address of an output of points.
fn points_text(kind: &OutputKind) -> String {
    match kind.facts().link {
        Link::Stream(StreamLink { to, tls, .. }) => {
            let encrypted = if tls.is_some() { " with TLS" } else { "" };
            format!("points to {to}{encrypted}")
        }
        Link::Datagrams { to, .. } => format!("points to {to}"),
        Link::Requests { to, .. } => format!("requests to {to}"),
        Link::File { path, .. } => format!("points to {}", path.display()),
        Link::Store(store) => format!("points to whisper files in {}", store.path.display()),
        Link::Stdout | Link::Stderr => "points".to_owned(),
    }
}

/// The part of each packet that an endpoint gets, if that is less than all lines.
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

/// The clusters of a plan, ready for queries.
pub(crate) struct Owners<'a> {
    plan: &'a Plan,
    clusters: Vec<(&'a ClusterPlan, Cluster, KeyReader)>,
}

impl<'a> Owners<'a> {
    /// With all endpoints live.
    pub(crate) fn new(plan: &'a Plan) -> Owners<'a> {
        let ready = |cluster: &'a ClusterPlan| {
            let placed = Cluster::new(&cluster.sharding, &cluster.labels);
            let placed = placed.expect("the check of the config made this cluster before");
            (cluster, placed, KeyReader::new(cluster.key))
        };
        Owners { plan, clusters: plan.clusters.iter().map(ready).collect() }
    }

    /// The outputs that own a key, or the key of a whole line: one for each cluster.
    pub(crate) fn of<'b>(&'b mut self, line: &'b [u8]) -> impl Iterator<Item = (&'a str, &'a str)> + 'b {
        let plan = self.plan;
        self.clusters.iter_mut().map(move |(cluster, placed, reader)| {
            let owner =
                placed.owner(reader.key(line)).expect("a cluster with all endpoints live has an owner");
            (&*cluster.name, &*plan.outputs[cluster.members[owner].index()].name)
        })
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
        sharding = "statsd-node"
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
    fn points_and_aggregates_are_named_but_not_counted_as_copies() {
        let plan = plan(
            r#"
            [sources.lines]
            type = "graphite"
            [sources.app]
            type = "statsd"
            [transforms.stats]
            type = "aggregate"
            from = ["app"]
            [outputs.g]
            type = "graphite"
            from = ["lines", "stats"]
            to = ["tcp://10.0.0.5:2003"]
            [outputs.disk]
            type = "graphite_file"
            from = ["lines"]
            path = "/tmp/points"
            "#,
        );
        let copies = of_plan(&plan);
        let text: String = copies.iter().map(Copies::text).collect();
        let want = "source lines: points to g, disk
  g                        points to tcp://10.0.0.5:2003
  disk                     points to /tmp/points
source app: aggregated
  stats                    aggregated for g
  events, service checks   filtered: no output takes them (C040)
";
        assert_eq!(text, want);
        assert_eq!(
            (&copies[0].json()["unread_events"], &copies[1].json()["unread_events"]),
            (&json!(false), &json!(true))
        );
        let json = copies[0].json();
        assert_eq!((&json["copies"], &json["places"][0]["output"]), (&json!(0), &json!("g")));
    }

    #[test]
    fn unread_events_are_shown_where_clients_may_send_them() {
        let stats = "[transforms.t]\ntype = \"aggregate\"\nfrom = [\"a\"]\n[outputs.o]\ntype = \"console\"\nfrom = [\"t\"]\n";
        let file = "[outputs.e]\ntype = \"event_file\"\nfrom = [\"a\"]\n";
        let copy = "[outputs.c]\ntype = \"udp\"\nfrom = [\"a\"]\nto = [\"udp://10.0.0.1:1\"]\n";
        for (dialect, outputs, unread) in [
            ("union", stats.to_owned(), true),
            ("dogstatsd", stats.to_owned(), true),
            ("etsy", stats.to_owned(), false),
            ("perl", stats.to_owned(), false),
            ("union", format!("{stats}{file}"), false),
            ("union", format!("{stats}{copy}"), false),
            // That nothing reads from it is a warning of its own.
            ("union", String::new(), false),
        ] {
            let plan = plan(&format!("[sources.a]\ntype = \"statsd\"\ndialect = \"{dialect}\"\n{outputs}"));
            let text: String = of_plan(&plan).iter().map(Copies::text).collect();
            assert_eq!(text.contains("C040"), unread, "{dialect} {outputs}: {text}");
        }
        let defaults = config::defaults(std::path::Path::new("data"));
        assert_eq!(defaults.sources_with_unread_events().count(), 0);
    }

    #[test]
    fn keys_and_lines_have_the_owners_of_the_proxys_ring() {
        // Spec statsd §13, the column of three nodes.
        let plan = plan(FILE);
        let mut owners = Owners::new(&plan);
        for (line, node) in
            [("", 3), ("foo", 2), ("users.online", 1), ("foo:1|c", 2), ("x;env=prod:3|g", 1), ("A", 2)]
        {
            let got: Vec<_> = owners.of(line.as_bytes()).collect();
            assert_eq!(got, [("nodes", &*format!("nodes/10.0.0.{node}:8125"))], "{line:?}");
        }
    }
}
