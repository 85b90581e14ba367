//! A document in the original's canonical form (spec graphite §2.11).
//!
//! The original's own form does not always read back: it leaves keywords that are names without quotes, and instances out
//! where no ring uses them. [`Form::Original`] prints just so, for test mode; [`Form::Readable`] reads back as the same
//! document.

use std::fmt::Write as _;

use super::document::*;
use super::host::bracketed;
use super::lexer::{is_bare, quote};
use super::parser::RESERVED;
use super::pattern::Pattern;

/// What surrounds a configuration and is printed with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings<'a> {
    /// Port of the default listeners.
    pub port: u16,
    /// Prefix of the statistics as it is in force; none prints what the file says.
    pub prefix: Option<&'a str>,
    /// For whom it is printed.
    pub form: Form,
}

/// How exactly the canonical form is the original's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Byte by byte.
    Original,
    /// With the quotes and instances that it needs to read back.
    Readable,
}

/// The canonical form.
pub fn print(conf: &RelayConf, surroundings: &Surroundings<'_>) -> String {
    let mut printer = Printer { conf, surroundings, out: String::new() };
    printer.listeners();
    printer.statistics();
    for cluster in &conf.clusters {
        printer.cluster(cluster);
    }
    printer.out.push('\n');
    for rule in &conf.rules {
        match rule {
            Rule::Match(rule) => printer.match_rule(rule),
            Rule::Rewrite(rule) => printer.rewrite(rule),
            Rule::Aggregate(rule) => printer.aggregate(rule),
        }
    }
    printer.out
}

struct Printer<'a> {
    conf: &'a RelayConf,
    surroundings: &'a Surroundings<'a>,
    out: String,
}

impl Printer<'_> {
    /// A line, so many levels of four blanks deep.
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

    /// A word, in quotes when it needs them.
    fn word(&self, text: &str) -> String {
        let bare = is_bare(&text.replace("\\ ", "x")) && !text.contains('&');
        let odd = text.ends_with('\\') || ["send", "route", "validate", "every", "*"].contains(&text);
        let bare = bare && !(self.is_readable() && odd);
        if bare { text.to_owned() } else { self.quoted(text) }
    }

    /// A name, which must not read as a keyword.
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
            packing: Packing::Plain,
            tls: None,
            receptors: vec![
                Receptor::Port { host: None, port, proto: Proto::Tcp },
                Receptor::Port { host: None, port, proto: Proto::Udp },
                Receptor::Unix(format!("/tmp/.s.carbon-c-relay.{port}")),
            ],
        }];
        let listeners = if self.conf.listen.is_empty() { &defaults[..] } else { &self.conf.listen };
        for (at, listener) in listeners.iter().enumerate() {
            // The original has all of them in one statement, which it cannot read.
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
        if listener.packing != Packing::Plain || listener.tls.is_some() {
            let _ = write!(text, " transport {}", listener.packing.word());
        }
        let Some(tls) = &listener.tls else { return text };
        let _ = write!(text, " {} {}", if tls.mutual { "mtls" } else { "ssl" }, self.name(&tls.pem));
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

    fn statistics(&mut self) {
        let statistics = &self.conf.statistics;
        self.line(0, "statistics");
        self.line(1, &format!("submit every {} seconds", statistics.every_s));
        if statistics.reset {
            self.line(1, "reset counters after interval");
        }
        let written = statistics.prefix.as_ref().map(|prefix| &*prefix.written);
        if let Some(prefix) = self.surroundings.prefix.or(written) {
            self.line(1, &format!("prefix with {}", self.word(prefix)));
        }
        self.send_to(statistics.send.as_ref());
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
            ClusterKind::Plain { way, use_all, members } => {
                self.line(1, &format!("{}{}", way.word(), if *use_all { " useall" } else { "" }));
                (members, self.is_readable())
            }
            ClusterKind::Hash { hash, replication, dynamic, members } => {
                let dynamic = if *dynamic { " dynamic" } else { "" };
                self.line(1, &format!("{} replication {replication}{dynamic}", hash.word()));
                (members, true)
            }
            ClusterKind::File { ip, paths } => {
                self.line(1, if *ip { "file ip" } else { "file" });
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
        // Members are the one thing that the original never quotes.
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
        if server.packing != Packing::Plain || server.tls != ServerTls::None {
            let _ = write!(text, " transport {}", server.packing.word());
        }
        match &server.tls {
            ServerTls::None => {}
            ServerTls::Tls => text.push_str(" ssl"),
            ServerTls::Mutual { cert, key } => {
                let _ = write!(text, " mtls {} {}", self.name(cert), self.name(key));
            }
        }
        text
    }

    /// The keyword with one expression behind it, or with each on its own line.
    fn patterns(&mut self, keyword: &str, patterns: &[Pattern]) {
        match patterns {
            [one] => self.line(0, &format!("{keyword} {}", self.pattern(one, 1))),
            _ => {
                self.line(0, keyword);
                patterns.iter().for_each(|each| self.line(2, &self.pattern(each, patterns.len())));
            }
        }
    }

    fn match_rule(&mut self, rule: &MatchRule) {
        self.patterns("match", &rule.patterns);
        if let Some(validate) = &rule.validate {
            let otherwise = if validate.log { "log" } else { "drop" };
            self.line(1, &format!("validate {} else {otherwise}", self.word(&validate.pattern.written)));
        }
        if let Some(using) = &rule.route_using {
            self.line(1, &format!("route using {}", self.word(&using.written)));
        }
        self.send_to(rule.send.as_ref());
        self.end(rule.stop);
    }

    fn rewrite(&mut self, rule: &RewriteRule) {
        self.line(0, &format!("rewrite {}", self.pattern(&rule.pattern, 1)));
        self.line(1, &format!("into {}", self.word(&rule.into.written)));
        self.line(1, ";");
    }

    fn aggregate(&mut self, rule: &AggregateRule) {
        self.patterns("aggregate", &rule.patterns);
        self.line(1, &format!("every {} seconds", rule.every_s));
        self.line(1, &format!("expire after {} seconds", rule.expire_s));
        self.line(1, &format!("timestamp at {} of bucket", rule.timestamp.word()));
        for compute in &rule.computes {
            self.line(1, &format!("compute {} write to", compute.what.word()));
            self.line(2, &self.word(&compute.name.written));
        }
        self.send_to(rule.send.as_ref());
        self.end(rule.stop);
    }

    fn send_to(&mut self, send: Option<&SendTo>) {
        match send {
            None => {}
            Some(SendTo::Blackhole) => self.line(1, "send to blackhole"),
            Some(SendTo::Clusters(clusters)) => {
                let names: Vec<String> =
                    clusters.iter().map(|at| self.name(&self.conf.clusters[*at].name)).collect();
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
