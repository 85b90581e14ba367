//! Prints a document in the original's canonical form (spec graphite §2.11).
//!
//! The original's form does not always read back: names that are keywords are not quoted, and instances are left out
//! where no ring uses them. [`Form::Original`] prints exactly that, for test mode; [`Form::Readable`] reads back as
//! the same document.

use std::fmt::Write as _;
use std::net::IpAddr;

use process::relay::{Distribution, To};
use process::sharding::Cluster as Placed;

use self::groups::Item;
use super::document::*;
use super::host::bracketed;
use super::lexer::{is_bare, quote};
use super::parser::RESERVED;
use super::pattern::Pattern;

mod groups;

/// Settings printed together with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings<'a> {
    /// Port of the default listeners.
    pub port: u16,
    /// Prefix of the statistics in use; none prints the one of the file.
    pub prefix: Option<&'a str>,
    /// Which form to print.
    pub form: Form,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Byte by byte as the original.
    Original,
    /// With the quotes and instances needed to read back.
    Readable,
}

/// Options of test mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestView {
    /// `-d`: print the points of rings, and the hidden rules by which the original sends results and statistics.
    pub debug: bool,
    /// `-O`: from so many rules on the original groups them and prints the groups; none for never.
    pub group_from: Option<u32>,
}

/// Test mode without `-d` prints no aggregations if there are more.
const AGGREGATES_MAX: usize = 10;

/// The canonical form.
pub fn print(conf: &RelayConf, surroundings: &Surroundings<'_>) -> String {
    let view = TestView::default();
    let mut printer = Printer { conf, surroundings, view, out: String::new() };
    printer.head();
    (0..conf.rules.len()).for_each(|at| printer.rule(&groups::whole(conf, at)));
    printer.out
}

/// The output of test mode: the canonical form, with the original's additions and omissions.
pub fn print_test(conf: &RelayConf, surroundings: &Surroundings<'_>, view: TestView) -> String {
    let mut printer = Printer { conf, surroundings, view, out: String::new() };
    let aggregates = || conf.rules.iter().filter_map(Rule::as_aggregate);
    let omits = !view.debug && aggregates().count() > AGGREGATES_MAX;
    if omits {
        let computes: usize = aggregates().map(|rule| rule.computes.len()).sum();
        let count = aggregates().count();
        let _ =
            writeln!(printer.out, "({count} aggregations with {computes} computations omitted for brevity)");
    }
    printer.head();
    if view.debug {
        printer.stubs();
    }
    for group in groups::of(conf, view.group_from) {
        if let Some(word) = &group.word {
            let count = group.patterns();
            printer
                .line(0, &format!("# common pattern group '{word}' contains {count} aggregations/matches\n"));
        }
        let shown =
            group.items.iter().filter(|item| !omits || conf.rules[item.rule].as_aggregate().is_none());
        shown.for_each(|item| printer.rule(item));
        if let Some(word) = &group.word {
            printer.line(0, &format!("# end of group '{word}'"));
        }
    }
    printer.out
}

/// The original's prefix for results of an aggregation with clusters of its own. In the original it is a memory
/// address, so only its format is known.
pub fn stub(rule: usize) -> String {
    format!("_aggregator_stub_{:#x}__", STUB_BASE + rule * 16)
}

const STUB_BASE: usize = 0x1000;

struct Printer<'a> {
    conf: &'a RelayConf,
    surroundings: &'a Surroundings<'a>,
    view: TestView,
    out: String,
}

impl Printer<'_> {
    fn head(&mut self) {
        self.listeners();
        self.statistics();
        for cluster in &self.conf.clusters {
            self.cluster(cluster);
            if self.view.debug {
                self.ring(cluster);
            }
        }
        self.out.push('\n');
    }

    fn rule(&mut self, item: &Item<'_>) {
        match &self.conf.rules[item.rule] {
            Rule::Match(rule) => self.match_rule(rule, &item.patterns),
            Rule::Rewrite(rule) => self.rewrite(rule),
            Rule::Aggregate(rule) => self.aggregate(item.rule, rule, &item.patterns),
        }
    }

    /// The rules that match results and statistics by a prefix and send them on. They come before all others, the
    /// last one first.
    fn stubs(&mut self) {
        let rules = self.conf.rules.iter().enumerate().rev();
        let sent = rules.filter_map(|(at, rule)| Some((stub(at), &rule.as_aggregate()?.send)));
        let statistics = (format!("_collector_stub_{STUB_BASE:#x}__"), &self.conf.statistics.send);
        for (prefix, send) in sent.chain([statistics]).filter(|(_, send)| **send != To::Nowhere) {
            self.line(0, "# stub match for aggregate/statistics rule with send to");
            self.line(0, &format!("match ^{prefix}"));
            self.send_to(send);
            self.end(true);
        }
    }

    /// The points of a cluster's ring, three on a line.
    fn ring(&mut self, cluster: &Cluster) {
        let ClusterKind::Servers { word, distribution, members, .. } = &cluster.kind else { return };
        let Distribution::Sharded { sharding, replication, .. } = distribution else { return };
        if !hashes(word) {
            return;
        }
        let servers: Vec<&Server> = members.iter().map(|member| &self.conf.servers[*member]).collect();
        let label = |server: &&Server| {
            let instance = server.instance.as_ref().map(|instance| format!("={instance}"));
            format!("{}:{}{}", server.host, server.port, instance.unwrap_or_default())
        };
        let labels: Vec<String> = servers.iter().map(label).collect();
        let Ok(placed) = Placed::replicated(sharding, &labels, *replication) else { return };
        self.line(0, &format!("# hash ring for {} follows", cluster.name));
        let points: Vec<String> = placed
            .points()
            .map(|(point, member)| {
                let shown: String = labels[member].chars().take(20).collect();
                format!("{point:5}@{shown:<20}")
            })
            .collect();
        for line in points.chunks(3) {
            // An incomplete line ends as if another point followed.
            let end = if line.len() < 3 { " " } else { "" };
            self.line(0, &format!("{}{end}", line.join(" ")));
        }
    }

    /// A line, indented by so many levels of four spaces.
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", depth * 4);
    }

    fn is_readable(&self) -> bool {
        self.surroundings.form == Form::Readable
    }

    fn quoted(&self, text: &str) -> String {
        // The original escapes nothing.
        if self.is_readable() { quote(text) } else { format!("\"{text}\"") }
    }

    /// A word, in quotes when necessary.
    fn word(&self, text: &str) -> String {
        let bare = is_bare(&text.replace("\\ ", "x")) && !text.contains('&');
        let odd = text.ends_with('\\') || ["send", "route", "validate", "every", "*"].contains(&text);
        let bare = bare && !(self.is_readable() && odd);
        if bare { text.to_owned() } else { self.quoted(text) }
    }

    /// A name, which must not read back as a keyword.
    fn name(&self, text: &str) -> String {
        let number = text.bytes().all(|byte| byte.is_ascii_digit());
        if self.is_readable() && (number || RESERVED.contains(&text)) { quote(text) } else { self.word(text) }
    }

    /// One of `among` expressions.
    fn pattern(&self, pattern: &Pattern, among: usize) -> String {
        let text = &*pattern.written;
        match text {
            "*" if among == 1 => text.to_owned(),
            _ => self.word(text),
        }
    }

    fn listeners(&mut self) {
        let port = self.surroundings.port;
        let defaults = [Listener {
            compression: Compression::Plain,
            tls: None,
            receptors: vec![
                Receptor::Port { host: None, port, proto: Proto::Tcp },
                Receptor::Port { host: None, port, proto: Proto::Udp },
                Receptor::Unix(format!("/tmp/.s.carbon-c-relay.{port}")),
            ],
        }];
        let listeners = if self.conf.listen.is_empty() { &defaults[..] } else { &self.conf.listen };
        for (at, listener) in listeners.iter().enumerate() {
            // The original prints all of them in one statement, which it cannot read back.
            if at == 0 || self.is_readable() {
                self.line(0, "listen");
            }
            self.line(1, &format!("type linemode{}", self.transport(listener)));
            for receptor in &listener.receptors {
                self.line(2, &self.receptor(receptor));
            }
            if at + 1 == listeners.len() || self.is_readable() {
                self.line(1, ";");
            }
        }
        self.out.push('\n');
    }

    fn receptor(&self, receptor: &Receptor) -> String {
        match receptor {
            Receptor::Port { host: None, port, proto } => format!("{port} proto {}", proto.word()),
            Receptor::Port { host: Some(host), port, proto } => {
                let host = if self.is_readable() { bracketed(host) } else { host.clone() };
                format!("{} proto {}", self.word(&format!("{host}:{port}")), proto.word())
            }
            Receptor::Unix(path) => format!("{} proto unix", self.name(path)),
        }
    }

    fn transport(&self, listener: &Listener) -> String {
        let mut text = String::new();
        text.push_str(&self.compression(listener.compression, listener.tls.is_some()));
        let Some(tls) = &listener.tls else { return text };
        let _ = write!(
            text,
            " {} {}",
            if tls.mutual { "mtls" } else { "ssl" },
            self.name(&tls.pem.path.to_string_lossy())
        );
        for (keyword, version) in [("protomin", tls.min), ("protomax", tls.max)] {
            if let Some(version) = version {
                let _ = write!(text, " {keyword} {}", version.word());
            }
        }
        for (keyword, list) in [("ciphers", &tls.ciphers), ("ciphersuites", &tls.suites)] {
            if let Some(list) = list {
                let _ = write!(text, " {keyword} {}", self.word(list));
            }
        }
        text
    }

    /// The original leaves out a `plain` that it needs to read the file back.
    fn compression(&self, compression: Compression, tls: bool) -> String {
        match compression {
            Compression::Plain if !tls => String::new(),
            Compression::Plain if !self.is_readable() => " transport".into(),
            _ => format!(" transport {}", compression.word()),
        }
    }

    fn statistics(&mut self) {
        let statistics = &self.conf.statistics;
        self.line(0, "statistics");
        self.line(1, &format!("submit every {} seconds", statistics.every_s));
        if statistics.reset {
            self.line(1, "reset counters after interval");
        }
        if let Some(prefix) = self.surroundings.prefix.or(statistics.prefix.as_deref()) {
            self.line(1, &format!("prefix with {}", self.word(prefix)));
        }
        self.send_to(&statistics.send);
        self.end(statistics.stop);
        self.out.push('\n');
    }

    fn end(&mut self, stop: bool) {
        if stop {
            self.line(1, "stop");
        }
        self.line(1, ";");
    }

    fn cluster(&mut self, cluster: &Cluster) {
        self.line(0, &format!("cluster {}", self.name(&cluster.name)));
        let (members, instances) = match &cluster.kind {
            ClusterKind::Servers {
                word,
                distribution: Distribution::Sharded { replication, fail_over, .. },
                members,
                ..
            } if hashes(word) => {
                let dynamic = if *fail_over { " dynamic" } else { "" };
                self.line(1, &format!("{word} replication {replication}{dynamic}"));
                (members, true)
            }
            ClusterKind::Servers { word, use_all, members, .. } => {
                // The original prints the addresses that it found instead of the name.
                let is_name = |at: &usize| self.conf.servers[*at].host.parse::<IpAddr>().is_err();
                let use_all = *use_all && (self.is_readable() || members.iter().any(is_name));
                self.line(1, &format!("{word}{}", if use_all { " useall" } else { "" }));
                (members, self.is_readable())
            }
            ClusterKind::File { paths, .. } => {
                self.line(1, cluster.kind.word());
                for path in paths {
                    self.line(2, &self.name(path));
                }
                self.line(1, ";");
                return;
            }
        };
        for member in members {
            self.line(2, &self.server(&self.conf.servers[*member], instances));
        }
        self.line(1, ";");
    }

    fn server(&self, server: &Server, instances: bool) -> String {
        // Members are the only words that the original never quotes.
        let raw = |text: &str| if self.is_readable() { self.name(text) } else { text.to_owned() };
        let mut text = raw(&format!("{}:{}", bracketed(&server.host), server.port));
        if let Some(instance) = server.instance.as_ref().filter(|_| instances) {
            let _ = write!(text, "={}", raw(instance));
        }
        if server.proto == Proto::Udp {
            text.push_str(" proto udp");
        }
        if server.lines == Lines::Syslog {
            text.push_str(" type syslog");
        }
        text.push_str(&self.compression(server.compression, server.tls != ServerTls::None));
        match &server.tls {
            ServerTls::None => {}
            ServerTls::Tls => text.push_str(" ssl"),
            ServerTls::Mutual { cert, key } => {
                let path = |file: &PemFile| self.name(&file.path.to_string_lossy());
                let _ = write!(text, " mtls {} {}", path(cert), path(key));
            }
        }
        text
    }

    /// The keyword, followed by one expression, or by each on its own line.
    fn patterns(&mut self, keyword: &str, patterns: &[&Pattern]) {
        match patterns {
            [one] => self.line(0, &format!("{keyword} {}", self.pattern(one, 1))),
            _ => {
                self.line(0, keyword);
                patterns.iter().for_each(|each| self.line(2, &self.pattern(each, patterns.len())));
            }
        }
    }

    fn match_rule(&mut self, rule: &MatchRule, patterns: &[&Pattern]) {
        self.patterns("match", patterns);
        if let Some(validate) = &rule.validate {
            let otherwise = if validate.log { "log" } else { "drop" };
            self.line(1, &format!("validate {} else {otherwise}", self.word(&validate.pattern.written)));
        }
        if let Some(using) = &rule.route_using {
            self.line(1, &format!("route using {}", self.word(using)));
        }
        self.send_to(&rule.send);
        // A `stop` without a `send to` has no effect, and the original drops it.
        self.end(rule.stop && (rule.send != To::Nowhere || self.is_readable()));
    }

    fn rewrite(&mut self, rule: &RewriteRule) {
        self.line(0, &format!("rewrite {}", self.pattern(&rule.pattern, 1)));
        self.line(1, &format!("into {}", self.word(&rule.into)));
        self.line(1, ";");
    }

    fn aggregate(&mut self, at: usize, rule: &AggregateRule, patterns: &[&Pattern]) {
        self.patterns("aggregate", patterns);
        let stub = if self.view.debug && rule.send != To::Nowhere { stub(at) } else { String::new() };
        self.line(1, &format!("every {} seconds", rule.every_s));
        self.line(1, &format!("expire after {} seconds", rule.expire_s));
        let stamp = STAMPS.iter().find(|(_, stamp)| *stamp == rule.timestamp).map_or("", |(word, _)| word);
        self.line(1, &format!("timestamp at {stamp} of bucket"));
        for compute in &rule.computes {
            self.line(1, &format!("compute {} write to", compute.word));
            self.line(2, &self.word(&format!("{stub}{}", compute.name)));
        }
        if stub.is_empty() {
            self.send_to(&rule.send);
        }
        self.end(rule.stop);
    }

    fn send_to(&mut self, send: &To) {
        match send {
            To::Nowhere => {}
            To::Blackhole => self.line(1, "send to blackhole"),
            To::Clusters(clusters) => {
                let names: Vec<String> =
                    clusters.iter().map(|id| self.name(&self.conf.clusters[id.index()].name)).collect();
                match &names[..] {
                    [one] => self.line(1, &format!("send to {one}")),
                    _ => {
                        self.line(1, "send to");
                        names.iter().for_each(|name| self.line(2, name));
                    }
                }
            }
        }
    }
}
