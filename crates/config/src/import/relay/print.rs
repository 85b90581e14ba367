//! A document in the original's canonical form (spec graphite §2.11), which reads back as the same document.

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
}

/// The canonical form.
pub fn print(conf: &RelayConf, surroundings: &Surroundings<'_>) -> String {
    let mut out = String::new();
    listeners(conf, surroundings, &mut out);
    statistics(conf, surroundings, &mut out);
    for each in &conf.clusters {
        cluster(conf, each, &mut out);
    }
    out.push('\n');
    for rule in &conf.rules {
        match rule {
            Rule::Match(rule) => match_rule(conf, rule, &mut out),
            Rule::Rewrite(rule) => {
                line(&mut out, 0, &format!("rewrite {}", pattern(&rule.pattern)));
                line(&mut out, 1, &format!("into {}", word(&rule.into.written)));
                line(&mut out, 1, ";");
            }
            Rule::Aggregate(rule) => aggregate(conf, rule, &mut out),
        }
    }
    out
}

/// A line, so many levels of four blanks deep.
fn line(out: &mut String, depth: usize, text: &str) {
    let _ = writeln!(out, "{:1$}{text}", "", depth * 4);
}

/// A word, in quotes when it needs them.
fn word(text: &str) -> String {
    let bare = is_bare(text) && !text.contains('&') && !text.ends_with('\\');
    if bare { text.to_owned() } else { quote(text) }
}

/// A name, which must not read as a keyword.
fn name(text: &str) -> String {
    if RESERVED.contains(&text) { quote(text) } else { word(text) }
}

fn pattern(pattern: &Pattern) -> String {
    if ["send", "route", "validate", "every"].contains(&&*pattern.written) {
        quote(&pattern.written)
    } else {
        word(&pattern.written)
    }
}

fn listeners(conf: &RelayConf, surroundings: &Surroundings<'_>, out: &mut String) {
    let defaults = [Listener {
        packing: Packing::Plain,
        tls: None,
        receptors: vec![
            Receptor::Port { host: None, port: surroundings.port, proto: Proto::Tcp },
            Receptor::Port { host: None, port: surroundings.port, proto: Proto::Udp },
            Receptor::Unix(format!("/tmp/.s.carbon-c-relay.{}", surroundings.port)),
        ],
    }];
    let listeners = if conf.listen.is_empty() { &defaults[..] } else { &conf.listen };
    for listener in listeners {
        line(out, 0, "listen");
        line(out, 1, &format!("type linemode{}", transport(listener)));
        for receptor in &listener.receptors {
            let text = match receptor {
                Receptor::Port { host: None, port, proto } => format!("{port} proto {}", proto.word()),
                Receptor::Port { host: Some(host), port, proto } => {
                    format!("{} proto {}", word(&format!("{}:{port}", bracketed(host))), proto.word())
                }
                Receptor::Unix(path) => format!("{} proto unix", name(path)),
            };
            line(out, 2, &text);
        }
        line(out, 1, ";");
    }
    out.push('\n');
}

fn transport(listener: &Listener) -> String {
    let mut text = String::new();
    if listener.packing != Packing::Plain || listener.tls.is_some() {
        let _ = write!(text, " transport {}", listener.packing.word());
    }
    if let Some(tls) = &listener.tls {
        let _ = write!(text, " {} {}", if tls.mutual { "mtls" } else { "ssl" }, name(&tls.pem));
        for (keyword, version) in [("protomin", tls.min), ("protomax", tls.max)] {
            if let Some(version) = version {
                let _ = write!(text, " {keyword} {}", version.word());
            }
        }
        for (keyword, list) in [("ciphers", &tls.ciphers), ("ciphersuites", &tls.suites)] {
            if let Some(list) = list {
                let _ = write!(text, " {keyword} {}", word(list));
            }
        }
    }
    text
}

fn statistics(conf: &RelayConf, surroundings: &Surroundings<'_>, out: &mut String) {
    let statistics = &conf.statistics;
    line(out, 0, "statistics");
    line(out, 1, &format!("submit every {} seconds", statistics.every_s));
    if statistics.reset {
        line(out, 1, "reset counters after interval");
    }
    let prefix = surroundings.prefix.or_else(|| statistics.prefix.as_ref().map(|prefix| &*prefix.written));
    if let Some(prefix) = prefix {
        line(out, 1, &format!("prefix with {}", word(prefix)));
    }
    send_to(conf, statistics.send.as_ref(), out);
    if statistics.stop {
        line(out, 1, "stop");
    }
    line(out, 1, ";");
    out.push('\n');
}

fn cluster(conf: &RelayConf, cluster: &Cluster, out: &mut String) {
    line(out, 0, &format!("cluster {}", name(&cluster.name)));
    let members = match &cluster.kind {
        ClusterKind::Plain { way, use_all, members } => {
            line(out, 1, &format!("{}{}", way.word(), if *use_all { " useall" } else { "" }));
            members
        }
        ClusterKind::Hash { hash, replication, dynamic, members } => {
            let dynamic = if *dynamic { " dynamic" } else { "" };
            line(out, 1, &format!("{} replication {replication}{dynamic}", hash.word()));
            members
        }
        ClusterKind::File { ip, paths } => {
            line(out, 1, if *ip { "file ip" } else { "file" });
            for path in paths {
                line(out, 2, &name(path));
            }
            line(out, 1, ";");
            return;
        }
    };
    for member in members {
        line(out, 2, &server(&conf.servers[*member]));
    }
    line(out, 1, ";");
}

fn server(server: &Server) -> String {
    let mut text = word(&format!("{}:{}", bracketed(&server.host), server.port));
    if let Some(instance) = &server.instance {
        let _ = write!(text, "={}", name(instance));
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
            let _ = write!(text, " mtls {} {}", name(cert), name(key));
        }
    }
    text
}

/// The keyword with one expression behind it, or with each on its own line.
fn patterns(keyword: &str, patterns: &[Pattern], out: &mut String) {
    match patterns {
        [one] => line(out, 0, &format!("{keyword} {}", pattern(one))),
        _ => {
            line(out, 0, keyword);
            // A bare `*` stands alone.
            let text = |each: &Pattern| if each.written == "*" { quote("*") } else { pattern(each) };
            patterns.iter().for_each(|each| line(out, 2, &text(each)));
        }
    }
}

fn match_rule(conf: &RelayConf, rule: &MatchRule, out: &mut String) {
    patterns("match", &rule.patterns, out);
    if let Some(validate) = &rule.validate {
        let otherwise = if validate.log { "log" } else { "drop" };
        line(out, 1, &format!("validate {} else {otherwise}", word(&validate.pattern.written)));
    }
    if let Some(using) = &rule.route_using {
        line(out, 1, &format!("route using {}", word(&using.written)));
    }
    send_to(conf, rule.send.as_ref(), out);
    if rule.stop {
        line(out, 1, "stop");
    }
    line(out, 1, ";");
}

fn aggregate(conf: &RelayConf, rule: &AggregateRule, out: &mut String) {
    patterns("aggregate", &rule.patterns, out);
    line(out, 1, &format!("every {} seconds", rule.every_s));
    line(out, 1, &format!("expire after {} seconds", rule.expire_s));
    line(out, 1, &format!("timestamp at {} of bucket", rule.timestamp.word()));
    for compute in &rule.computes {
        line(out, 1, &format!("compute {} write to", compute.what.word()));
        line(out, 2, &word(&compute.name.written));
    }
    send_to(conf, rule.send.as_ref(), out);
    if rule.stop {
        line(out, 1, "stop");
    }
    line(out, 1, ";");
}

fn send_to(conf: &RelayConf, send: Option<&SendTo>, out: &mut String) {
    match send {
        None => {}
        Some(SendTo::Blackhole) => line(out, 1, "send to blackhole"),
        Some(SendTo::Clusters(clusters)) => {
            let names: Vec<String> = clusters.iter().map(|at| name(&conf.clusters[*at].name)).collect();
            match &names[..] {
                [one] => line(out, 1, &format!("send to {one}")),
                _ => {
                    line(out, 1, "send to");
                    names.iter().for_each(|name| line(out, 2, name));
                }
            }
        }
    }
}
