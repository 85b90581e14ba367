//! Detects the program of a config file: by the ending of its name, otherwise by its contents. The only place that
//! decides this.

use std::path::Path;

/// The program of a config file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Staunch: TOML, YAML or JSON.
    Native,
    /// carbon-c-relay.
    Relay,
    /// Node's statsd or Net::Statsd::Server: an object.
    Statsd,
    /// carbon: sections with keys in capitals, or of schemas and aggregations.
    Carbon,
    /// carbon's rule files in the folder of carbon.conf: storage-schemas.conf and similar ones.
    CarbonRules,
    /// Riemann: Clojure.
    Riemann,
    /// Certificates or keys.
    Pem,
}

/// Keys of carbon's other files: storage-schemas.conf, storage-aggregation.conf, relay-rules.conf.
const CARBON_KEYS: [&str; 5] = ["pattern", "retentions", "xFilesFactor", "aggregationMethod", "destinations"];

/// carbon's other files, and the section of a daemon that reads each. `blacklist.conf` and `whitelist.conf` have one expression a line.
const CARBON_RULE_FILES: [(&str, &str); 7] = [
    ("storage-schemas.conf", "cache"),
    ("storage-aggregation.conf", "cache"),
    ("blacklist.conf", "cache"),
    ("whitelist.conf", "cache"),
    ("relay-rules.conf", "relay"),
    ("aggregation-rules.conf", "aggregator"),
    ("rewrite-rules.conf", "aggregator"),
];

impl FileKind {
    /// The kind of a file with that name and text. Unknown files count as native.
    pub(crate) fn of(file: &Path, text: &str) -> FileKind {
        let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "toml" | "yaml" | "yml" | "json" => FileKind::Native,
            "js" => FileKind::Statsd,
            "clj" => FileKind::Riemann,
            _ => FileKind::of_text(text)
                .or_else(|| FileKind::of_carbons_name(file))
                .unwrap_or(FileKind::Native),
        }
    }

    /// The kind of a file without any setting, such as one as it is installed, if it has the name of one of carbon's files.
    fn of_carbons_name(file: &Path) -> Option<FileKind> {
        match file.file_name()?.to_str()? {
            "carbon.conf" => Some(FileKind::Carbon),
            name if CARBON_RULE_FILES.iter().any(|(known, _)| *known == name) => Some(FileKind::CarbonRules),
            _ => None,
        }
    }

    /// Whether a file's name decides, whatever its contents.
    pub(crate) fn is_named(name: &str) -> bool {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        matches!(&*ending, "toml" | "yaml" | "yml" | "json" | "js")
    }

    /// The kind in messages of `check`.
    pub(crate) fn described(self) -> &'static str {
        match self {
            FileKind::Native => "native config",
            FileKind::Relay => "relay.conf of carbon-c-relay",
            FileKind::Statsd => "config of a StatsD",
            FileKind::Carbon => "carbon.conf",
            FileKind::CarbonRules => "rules of carbon",
            FileKind::Riemann => "Riemann config",
            FileKind::Pem => "certificates or keys",
        }
    }

    /// The kind for programs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            FileKind::Native => "native",
            FileKind::Relay => "relay",
            FileKind::Statsd => "statsd",
            FileKind::Carbon => "carbon",
            FileKind::CarbonRules => "carbon-rules",
            FileKind::Riemann => "riemann",
            FileKind::Pem => "pem",
        }
    }

    /// None when all lines are empty or comments.
    fn of_text(text: &str) -> Option<FileKind> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Some(match lines.clone().next()? {
            "[pre]" | "[post]" => FileKind::CarbonRules,
            line if is_aggregation_rule(line) => FileKind::CarbonRules,
            line if line.starts_with("-----BEGIN ") => FileKind::Pem,
            line if line.starts_with('[') => {
                let mut keys = lines.filter_map(key);
                if keys.clone().any(is_capital_key) {
                    FileKind::Carbon
                } else if keys.any(|key| CARBON_KEYS.contains(&key)) {
                    FileKind::CarbonRules
                } else {
                    FileKind::Native
                }
            }
            line if begins_a_statement(line) => FileKind::Relay,
            line if is_clojure(line) => FileKind::Riemann,
            // JSON is also valid in a config of node's statsd.
            line if line.starts_with('{') && text.contains("\"sources\"") => FileKind::Native,
            line if line.starts_with(['{', '(', '/']) || line.starts_with("module") => FileKind::Statsd,
            _ => FileKind::Native,
        })
    }

    /// The message when a native config was expected; `None` for a native one.
    pub(crate) fn instead_of_native(self, name: &str, text: &str) -> Option<String> {
        match self {
            FileKind::Native => None,
            FileKind::Relay => Some(format!(
                "{name} is a configuration of carbon-c-relay: run it with `staunch relay -f {name}`, or turn it into a \
                 native one with `staunch import relay {name}`"
            )),
            FileKind::Statsd => Some(format!(
                "{name} is a config of node's statsd or Net::Statsd::Server: run it with `staunch statsd {name}`, or turn \
                 it into a native one with `staunch import statsd {name}`"
            )),
            FileKind::Carbon => Some(instead_of_carbon(name, text)),
            FileKind::CarbonRules => {
                let conf = Path::new(name).with_file_name("carbon.conf");
                Some(format!(
                    "{name} has rules of carbon, which are read with the carbon.conf beside it: turn both into a native config \
                     with `staunch import carbon {} --section {}`",
                    conf.display(),
                    reader_of_rules(name, text)
                ))
            }
            FileKind::Riemann => Some(format!(
                "{name} is a Riemann config: run it with `staunch riemann {name}`, or use it as the `file` of a transform of type \
                 `streams`"
            )),
            FileKind::Pem => Some(format!(
                "{name} has certificates or keys (PEM), and is no config: a config names it, as tls = {{ cert = \"{name}\" }}"
            )),
        }
    }
}

/// Whether a line begins a Riemann config: a comment of Clojure, or a call. JavaScript begins with a function in brackets.
fn is_clojure(line: &str) -> bool {
    let name = line.strip_prefix('(').unwrap_or_default();
    line.starts_with(';')
        || (name.starts_with(|first: char| first.is_ascii_alphabetic()) && !name.starts_with("function"))
}

/// The message for a carbon.conf, with the sections that it has.
fn instead_of_carbon(name: &str, text: &str) -> String {
    let sections = import::carbon::daemon_sections(text);
    let first = sections.first().map_or("cache", |first| &**first);
    let (program, instance) = match first.split_once(':') {
        Some((program, instance)) => (program, format!(" --instance {instance}")),
        None => (first, String::new()),
    };
    let others = match &sections[..] {
        [] | [_] => String::new(),
        several => format!("; its sections are {}", several.join(", ")),
    };
    format!(
        "{name} is a config of carbon: run it with `staunch carbon {program} start --nodaemon --config {name}{instance}`, or turn \
         it into a native one with `staunch import carbon {name} --section {first}`{others}"
    )
}

/// The section of a daemon that reads a file of rules.
fn reader_of_rules(name: &str, text: &str) -> &'static str {
    let lines = || text.lines().map(str::trim);
    let file = Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if FileKind::of_text(text).is_none()
        && let Some((_, reader)) = CARBON_RULE_FILES.iter().find(|(known, _)| *known == file)
    {
        return reader;
    }
    if lines().filter_map(key).any(|key| matches!(key, "destinations" | "servers")) {
        "relay"
    } else if lines().any(|line| matches!(line, "[pre]" | "[post]") || is_aggregation_rule(line)) {
        "aggregator"
    } else {
        "cache"
    }
}

/// A rule of aggregation-rules.conf: `OUTPUT (SECONDS) = METHOD INPUT`.
fn is_aggregation_rule(line: &str) -> bool {
    let two = |text: &str| {
        let mut words = text.split_whitespace();
        let second = words.nth(1)?.to_owned();
        words.next().is_none().then_some(second)
    };
    let Some((left, right)) = line.split_once('=') else { return false };
    let frequency = two(left);
    two(right).is_some() && frequency.is_some_and(|word| word.starts_with('(') && word.ends_with(')'))
}

/// A statement of carbon-c-relay begins with a word that is followed neither by a value nor by a part of a key.
fn begins_a_statement(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    line.starts_with(|c: char| c.is_ascii_lowercase())
        && !rest.trim_start().starts_with(['=', '.', ':'])
        && !line.starts_with("module")
}

fn key(line: &str) -> Option<&str> {
    line.split_once('=').map(|(key, _)| key.trim())
}

fn is_capital_key(key: &str) -> bool {
    let is_capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    key.len() > 1 && key.chars().all(is_capital)
}

#[test]
fn the_kind_of_a_file_follows_from_its_content() {
    use FileKind::{Carbon, CarbonRules, Native, Pem, Relay, Statsd};
    for (name, text, want) in [
        ("relay.conf", "# a comment\n\n  cluster c forward a;", Relay),
        ("relay", "match * send to c;", Relay),
        ("a.conf", "clutser c;", Relay),
        ("a.conf", "listen type linemode 2003 proto tcp;", Relay),
        ("a.conf", "{ port: 8125 }", Statsd),
        ("-", "{ \"port\": 8125 }", Statsd),
        ("-", "{ \"sources\": {} }", Native),
        ("-", "sources:\n  app: {}", Native),
        ("-", "cluster c forward a;", Relay),
        ("a.conf", "# of the other kind\n{", Statsd),
        ("a.conf", "// node's\n{ port: 8125 }", Statsd),
        ("local.js", "match * send to c;", Statsd),
        ("a.conf", "", Native),
        ("demo.conf", "[sources.app]\ntype = \"statsd\"", Native),
        ("demo.conf", "data_dir = \"/x\"", Native),
        ("demo.conf", "http.listen = \"127.0.0.1:1\"", Native),
        ("demo", "[outputs.a]\ntype = \"graphite\"\nto = [\"tcp://HOST=1\"]", Native),
        ("a.toml", "cluster c", Native),
        ("a.YML", "cluster c", Native),
        ("carbon.conf", "[cache]\nLINE_RECEIVER_INTERFACE = 0.0.0.0", Carbon),
        ("storage-schemas.conf", "[carbon]\npattern = ^carbon\\.\nretentions = 60:90d", CarbonRules),
        ("relay-rules.conf", "[default]\ndefault = true\ndestinations = 127.0.0.1:2004", CarbonRules),
        ("aggregation-rules.conf", "# sums\n<env>.all (60) = sum <env>.*.hits", CarbonRules),
        ("aggregation-rules.conf", "all (60) = sum *.hits", CarbonRules),
        ("rewrite-rules.conf", "[post]\n_sum$ =", CarbonRules),
        ("/c/storage-schemas.conf", "# none\n\n", CarbonRules),
        ("relay-rules.conf", "", CarbonRules),
        ("carbon.conf", "# [cache]\n", Carbon),
        ("rules.conf", "# none\n", Native),
        ("http.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n", Pem),
    ] {
        assert_eq!(FileKind::of(Path::new(name), text), want, "{name}: {text:?}");
    }
}

#[test]
fn files_of_carbon_are_referred_to_their_sections() {
    let relay = "[relay]\nLINE_RECEIVER_PORT = 2013\n";
    let several = "[cache:b]\nLINE_RECEIVER_PORT = 1\n[relay]\nLINE_RECEIVER_PORT = 2\n";
    for (name, text, want) in [
        ("/c/carbon.conf", relay, "`staunch carbon relay start --nodaemon --config /c/carbon.conf`"),
        ("/c/carbon.conf", relay, "`staunch import carbon /c/carbon.conf --section relay`"),
        ("c.conf", several, "`staunch carbon cache start --nodaemon --config c.conf --instance b`"),
        ("c.conf", several, "--section cache:b`; its sections are cache:b, relay"),
        ("/c/relay-rules.conf", "[d]\ndestinations = h:1", "import carbon /c/carbon.conf --section relay`"),
        (
            "aggregation-rules.conf",
            "all (60) = sum *.hits",
            "import carbon carbon.conf --section aggregator`",
        ),
        ("rewrite-rules.conf", "[pre]\na = b", "import carbon carbon.conf --section aggregator`"),
        ("/c/aggregation-rules.conf", "# none", "import carbon /c/carbon.conf --section aggregator`"),
        ("relay-rules.conf", "#", "import carbon carbon.conf --section relay`"),
        (
            "storage-schemas.conf",
            "[a]\npattern = .*\nretentions = 1:1",
            "carbon carbon.conf --section cache`",
        ),
    ] {
        let said = FileKind::of(Path::new(name), text).instead_of_native(name, text);
        assert!(said.as_ref().is_some_and(|said| said.contains(want)), "{said:?}");
    }
}
