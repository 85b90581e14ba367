//! Every pair of nodes: an edge is accepted exactly when the table of kinds has a common kind of record.

use config::kinds::{NODES, NodeKind, RecordKind};

/// The required options of a node other than `type` and `from`. A relay sends to `member`.
fn needs(node: &NodeKind, member: &str) -> String {
    if node.word == "relay" {
        return format!(
            "rules = [{{ to = \"all\" }}]\nclusters = {{ all = {{ type = \"forward\", to = [\"{member}\"] }} }}\n"
        );
    }
    let text = match node.word {
        "statsd" => "listen = [\"udp://127.0.0.1:8125\"]\n",
        "opentsdb" if node.takes.is_empty() => "listen = [\"tcp://127.0.0.1:4242\"]\n",
        "riemann" if node.takes.is_empty() => "listen = [\"tcp://127.0.0.1:5555\"]\n",
        "graphite" if node.takes.is_empty() => "listen = [\"tcp://127.0.0.1:2003\"]\n",
        "opentsdb" => "to = [\"tcp://10.0.0.5:4242\"]\n",
        "graphite" | "tcp" => "to = [\"tcp://10.0.0.5:2003\"]\n",
        "udp" => "to = [\"udp://10.0.0.5:8125\"]\n",
        "unix" => "to = [\"unixgram:///run/agent.sock\"]\n",
        "perl_file" => "path = \"stats\"\n",
        "streams" => "file = \"riemann.config\"\n",
        "riemann" => "to = [\"tcp://10.0.0.5:5555\"]\n",
        "email" => "smtp = \"smtp://h\"\nrecipients = [\"a@b\"]\n",
        "http" => "url = \"http://h/\"\n",
        "self" | "aggregate" | "graphite_file" | "whisper" | "console" | "event_file" => "",
        other => panic!("the type `{other}` needs a line here"),
    };
    text.to_owned()
}

fn section(family: &str, name: &str, node: &NodeKind, from: Option<&str>, member: &str) -> String {
    let from = from.map(|from| format!("from = [\"{from}\"]\n")).unwrap_or_default();
    let encoding = node.encoding.map(|encoding| format!("encoding = \"{encoding}\"\n")).unwrap_or_default();
    format!("[{family}.{name}]\ntype = \"{}\"\n{encoding}{from}{}", node.word, needs(node, member))
}

/// A node that feeds `taker`, because a transform needs a source.
fn feeder(taker: &NodeKind) -> &'static NodeKind {
    let mut sources = NODES.iter().filter(|node| node.takes.is_empty());
    sources.find(|source| taker.carries(source).is_some()).expect("some source feeds it")
}

fn file(giver: &NodeKind, taker: &NodeKind) -> String {
    let mut text = String::new();
    let mut from = "giver";
    let member = if taker.gives.is_empty() { "o" } else { "taker" };
    if giver.takes.is_empty() {
        text.push_str(&section("sources", "giver", giver, None, ""));
    } else {
        text.push_str(&section("sources", "first", feeder(giver), None, ""));
        text.push_str(&section("transforms", "giver", giver, Some("first"), member));
    }
    if !taker.gives.is_empty() {
        text.push_str(&section("transforms", "taker", taker, Some("giver"), "o"));
        from = "taker";
    }
    let output = if taker.gives.is_empty() {
        *taker
    } else {
        // A relay that feeds others has its outputs; an aggregation can have any.
        *NODES.iter().find(|node| node.word == "graphite" && node.gives.is_empty()).expect("there is one")
    };
    text.push_str(&section("outputs", "o", &output, Some(from), ""));
    text
}

#[test]
fn an_edge_is_accepted_when_the_table_says_that_it_carries_something() {
    let givers = NODES.iter().filter(|node| !node.gives.is_empty());
    let mut pairs = 0;
    for giver in givers {
        for taker in NODES.iter().filter(|node| !node.takes.is_empty()) {
            let text = file(giver, taker);
            let source = config::diagnostic::Source { name: "edge.toml", text: &text };
            let (plan, wrong) = config::check(source, config::Format::Toml);
            let fits = taker.carries(giver).is_some();
            let shown = config::diagnostic::render(source, &wrong, false);
            // A warning also means that the edge carries nothing.
            let carries = plan.is_some() && wrong.iter().all(|wrong| wrong.code.word() != "C022");
            assert_eq!(carries, fits, "{} to {}:\n{text}\n{shown}", giver.word, taker.word);
            pairs += 1;
        }
    }
    assert!(pairs >= 60, "{pairs} pairs");
    assert_eq!(RecordKind::Points.word(), "points");
}
