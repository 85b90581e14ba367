//! `alerts/staunch.rules.yaml` and the dashboard `packaging/grafana/staunch.json` against what a daemon prints: a rule that names a
//! metric that is gone never fires, and a panel of it stays empty.
//!
//! The rules are read as YAML; their expressions are taken apart into tokens, which is enough to find every name, every
//! label and every function in them. Not here: what an expression computes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::TcpStream;

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

use crate::support::{Builder, udp, wait_for};

const RULES: &str = include_str!("../../../../alerts/staunch.rules.yaml");
const DASHBOARD: &str = include_str!("../../../../packaging/grafana/staunch.json");
const PAGE: &str = include_str!("../../../../docs/alerts.md");
const METRICS: &str = include_str!("../../../../docs/metrics.md");
const GOLDEN: &str = include_str!("../golden/metrics.txt");

/// Labels that Prometheus adds to everything that it scrapes.
const SCRAPED: [&str; 2] = ["instance", "job"];

const FUNCTIONS: [&str; 9] = [
    "absent",
    "increase",
    "max_over_time",
    "min_over_time",
    "predict_linear",
    "rate",
    "changes",
    "sum",
    "max",
];
const LABEL_LISTS: [&str; 4] = ["by", "without", "on", "ignoring"];
const WORDS: [&str; 5] = ["and", "or", "unless", "offset", "bool"];
const FORMATS: [&str; 4] = ["humanize", "humanize1024", "humanizeDuration", "humanizePercentage"];

/// What there is to be named: labels with their values, by sample name.
type Samples = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// YAML as JSON: tables, lists and texts. A number is a text, which nobody minds here.
fn yaml(text: &str) -> Value {
    fn put(stack: &mut [(Value, Option<String>)], value: Value) -> Option<Value> {
        let Some((into, key)) = stack.last_mut() else { return Some(value) };
        match (into, key.take()) {
            (Value::Array(list), _) => list.push(value),
            (Value::Object(table), Some(name)) => {
                assert!(table.insert(name.clone(), value).is_none(), "the key `{name}` stands twice");
            }
            (_, _) => *key = Some(value.as_str().expect("a key is a text").to_owned()),
        }
        None
    }
    let (mut stack, mut root) = (Vec::new(), None);
    for event in Parser::new_from_str(text) {
        let (event, _) = event.expect("the rules are YAML");
        let value = match event {
            Event::SequenceStart(..) => {
                stack.push((Value::Array(Vec::new()), None));
                continue;
            }
            Event::MappingStart(..) => {
                stack.push((Value::Object(Map::new()), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => stack.pop().expect("what ends has begun").0,
            Event::Scalar(text, ..) => Value::String(text.into_owned()),
            Event::Alias(_) => panic!("an alias: not every reader of rules knows them"),
            _ => continue,
        };
        root = put(&mut stack, value).or(root);
    }
    root.expect("the rules are not empty")
}

#[derive(Clone, Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    /// A number or a duration.
    Number(&'a str),
    Sign(char),
}

fn tokens(expression: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let end_of = |part: fn(char) -> bool| rest.find(|c| !part(c)).unwrap_or(rest.len());
        let len = match first {
            '"' => rest[1..].find('"').ok_or("a text without an end")? + 2,
            'a'..='z' | 'A'..='Z' | '_' => end_of(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':'),
            '0'..='9' => end_of(|c| c.is_ascii_alphanumeric() || c == '.'),
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(len);
        tokens.push(match first {
            '"' => Token::Text(&token[1..len - 1]),
            '0'..='9' => Token::Number(token),
            c if c.is_ascii_alphabetic() || c == '_' => Token::Word(token),
            '(' | ')' | '{' | '}' | '[' | ']' | ',' | '=' | '~' | '!' | '>' | '<' | '+' | '-' | '*' | '/' => {
                Token::Sign(first)
            }
            other => return Err(format!("`{other}` has no place in an expression")),
        });
        rest = behind.trim_start();
    }
    Ok(tokens)
}

/// What an expression names, or what is wrong with it.
#[derive(Debug, Default, PartialEq)]
struct Named {
    metrics: BTreeSet<String>,
    /// Labels of lists such as `by (…)`; empty when there is none.
    lists: BTreeSet<String>,
    absent: bool,
}

fn check(expression: &str, samples: &Samples) -> Result<Named, String> {
    let tokens = tokens(expression)?;
    balanced(&tokens)?;
    let known: BTreeSet<&str> =
        samples.values().flat_map(|labels| labels.keys().map(String::as_str)).collect();
    let mut named = Named::default();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match *token {
            Token::Word(word) if LABEL_LISTS.contains(&word) => {
                let end = tokens[at..].iter().position(|token| *token == Token::Sign(')'));
                let end = at + end.ok_or_else(|| format!("`{word}` without a list of labels"))?;
                for label in tokens
                    .get(at + 1..end)
                    .unwrap_or_default()
                    .iter()
                    .filter(|token| **token != Token::Sign(','))
                {
                    let Token::Word(label) = label else {
                        return Err(format!("{label:?} in a list of labels"));
                    };
                    if !known.contains(label) && !SCRAPED.contains(label) {
                        return Err(format!("no metric has a label `{label}`"));
                    }
                    named.lists.insert((*label).to_owned());
                }
                at = end + 1;
            }
            Token::Word(word) if WORDS.contains(&word) => {}
            Token::Word(word)
                if tokens.get(at) == Some(&Token::Sign('(')) || ["sum", "max"].contains(&word) =>
            {
                if !FUNCTIONS.contains(&word) {
                    return Err(format!("`{word}` is no function that rules here use"));
                }
                named.absent |= word == "absent";
            }
            Token::Word(metric) => {
                let labels = samples.get(metric).ok_or_else(|| format!("no metric `{metric}`"))?;
                named.metrics.insert(metric.to_owned());
                if tokens.get(at) == Some(&Token::Sign('{')) {
                    let end = tokens[at..].iter().position(|token| *token == Token::Sign('}'));
                    let end = at + end.expect("brackets are balanced");
                    matchers(metric, &tokens[at + 1..end], labels)?;
                    at = end;
                }
            }
            Token::Number(number) => well_formed(number)?,
            Token::Text(_) | Token::Sign(_) => {}
        }
    }
    if named.metrics.is_empty() { Err("it names no metric".to_owned()) } else { Ok(named) }
}

fn balanced(tokens: &[Token<'_>]) -> Result<(), String> {
    let mut open = Vec::new();
    for token in tokens {
        let Token::Sign(sign) = *token else { continue };
        let wanted = match sign {
            '(' | '[' | '{' => {
                open.push(sign);
                continue;
            }
            ')' => '(',
            ']' => '[',
            '}' => '{',
            _ => continue,
        };
        if open.pop() != Some(wanted) {
            return Err(format!("`{sign}` closes nothing"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} are not closed")) }
}

fn matchers(
    metric: &str,
    tokens: &[Token<'_>],
    labels: &BTreeMap<String, BTreeSet<String>>,
) -> Result<(), String> {
    for matcher in tokens.split(|token| *token == Token::Sign(',')) {
        let [Token::Word(label), Token::Sign('=' | '!'), .., Token::Text(values)] = matcher else {
            return Err(format!("{matcher:?} is no matcher"));
        };
        let Some(seen) = labels.get(*label) else {
            return Err(format!("`{metric}` has no label `{label}`"));
        };
        for value in values.split('|') {
            if !seen.contains(value) && !documented(metric, value) {
                return Err(format!("`{label}` of `{metric}` is never `{value}`"));
            }
        }
    }
    Ok(())
}

/// A reason is printed from its first loss on; the page of metrics has the words before.
fn documented(metric: &str, value: &str) -> bool {
    let section = METRICS.split("\n### ").find(|section| section.lines().next() == Some(metric));
    section.is_some_and(|section| section.contains(&format!("`{value}`")))
}

fn well_formed(number: &str) -> Result<(), String> {
    let digits = number.trim_end_matches(['s', 'm', 'h', 'd']);
    let plain = digits.parse::<f64>().is_ok() && number.len() - digits.len() <= 1;
    if plain { Ok(()) } else { Err(format!("`{number}` is no number and no duration")) }
}

/// Every `{{ … }}` of a text names a label that the alert has, or its value in a known format.
fn check_template(text: &str, labels: &BTreeSet<String>) -> Result<(), String> {
    for piece in text.split("{{").skip(1) {
        let (inside, _) = piece.split_once("}}").ok_or("`{{` without `}}`")?;
        let inside = inside.trim();
        if let Some(label) = inside.strip_prefix("$labels.") {
            if !labels.contains(label) {
                return Err(format!("the alert has no label `{label}`"));
            }
        } else if !inside.strip_prefix("$value | ").is_some_and(|format| FORMATS.contains(&format)) {
            return Err(format!("`{inside}` is not understood"));
        }
    }
    Ok(())
}

/// The labels that the result of an expression has.
fn result_labels(named: &Named, samples: &Samples) -> BTreeSet<String> {
    if named.absent {
        return BTreeSet::new();
    }
    if !named.lists.is_empty() {
        return named.lists.clone();
    }
    // `a or b`: only what every one of them has is there in any case.
    let scraped = SCRAPED.map(str::to_owned);
    let mut of_each =
        named.metrics.iter().map(|metric| samples[metric].keys().cloned().collect::<BTreeSet<_>>());
    let first = of_each.next().expect("an expression names a metric");
    of_each.fold(first, |all, labels| &all & &labels).into_iter().chain(scraped).collect()
}

fn samples(text: &str) -> Samples {
    let mut samples = Samples::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').expect("a series and a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let into = samples.entry(name.to_owned()).or_default();
        for label in labels.trim_end_matches('}').split("\",").filter(|label| !label.is_empty()) {
            let (label, value) = label.split_once("=\"").expect("a label and a value");
            into.entry(label.to_owned()).or_default().insert(value.trim_end_matches('"').to_owned());
        }
    }
    samples
}

/// What a daemon prints that has something of everything.
fn printed() -> Samples {
    let toml = "stop_timeout = \"1s\"\n\
        [sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
        [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\n\
        [outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://127.0.0.1:9\"]\n\
        queue = { kind = \"disk\" }\n\
        [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\n\
        [outputs.store]\ntype = \"whisper\"\nfrom = [\"stats\"]\n\
        [sources.waits]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
        [outputs.full]\ntype = \"tcp\"\nfrom = [\"waits\"]\nto = [\"tcp://127.0.0.1:9\"]\n\
        queue = { kind = \"memory\", max_bytes = \"1MiB\", when_full = \"block\" }\n";
    let mut daemon = Builder::native(toml).start();
    udp(daemon.at("app", "udp")).send(b"hits:1|c\nbad").expect("it is there");
    let mut client = TcpStream::connect(daemon.at("waits", "tcp")).expect("it listens");
    client.set_nonblocking(true).expect("it is a socket");
    let lines = format!("{}:1|c\n", "a".repeat(1_000)).repeat(64);
    let text = wait_for("the first flush, and a source that waits for a full queue", || {
        while client.write(lines.as_bytes()).is_ok() {}
        let all = [
            "staunch_flush_age_seconds{",
            "staunch_source_blocked_seconds{",
            "staunch_store_points_in_memory{",
        ];
        Some(daemon.get("/metrics").body).filter(|text| all.iter().all(|name| text.contains(name)))
    });
    daemon.stop();
    let samples = samples(&text);
    let base = |name: &str| {
        let bases = ["_bucket", "_sum", "_count"].iter().filter_map(|end| name.strip_suffix(end));
        bases.chain([name]).any(|name| GOLDEN.lines().any(|line| line.split(' ').next() == Some(name)))
    };
    let unknown: Vec<&String> = samples.keys().filter(|name| !base(name)).collect();
    assert!(unknown.is_empty(), "names that the golden file lacks: {unknown:?}");
    samples
}

fn text<'a>(rule: &'a Value, key: &str) -> &'a str {
    let text = rule[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {rule}"));
    assert!(!text.trim().is_empty() && !text.contains('\n'), "`{key}` of {rule}");
    text
}

#[test]
fn rules_name_what_is_printed_and_say_what_to_do() {
    let samples = printed();
    let document = yaml(RULES);
    let groups = document["groups"].as_array().expect("a list of groups");
    let mut names = BTreeSet::new();
    for group in groups {
        assert!(text(group, "name").starts_with("staunch-"), "{group}");
        for rule in group["rules"].as_array().expect("a list of rules") {
            let name = text(rule, "alert");
            assert!(name.starts_with("Staunch") && names.insert(name.to_owned()), "once: {name}");
            for key in rule.as_object().expect("a table").keys() {
                assert!(
                    ["alert", "expr", "for", "labels", "annotations"].contains(&key.as_str()),
                    "{name}: {key}"
                );
            }
            let named = check(text(rule, "expr"), &samples).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
            if rule.get("for").is_some() {
                well_formed(text(rule, "for")).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
            }
            let severity = text(&rule["labels"], "severity");
            assert!(["info", "warning", "critical"].contains(&severity), "{name}: {severity}");
            let labels = result_labels(&named, &samples);
            for annotation in ["summary", "description"] {
                let checked = check_template(text(&rule["annotations"], annotation), &labels);
                checked.unwrap_or_else(|wrong| panic!("{name}, {annotation}: {wrong}"));
            }
            let link = text(&rule["annotations"], "runbook_url");
            assert_eq!(link, format!("docs/alerts.md#{}", name.to_lowercase()));
        }
    }
    let headings: BTreeSet<String> =
        PAGE.lines().filter_map(|line| line.strip_prefix("### ")).map(str::to_owned).collect();
    assert_eq!(headings, names, "each alert has its section, and each section its alert");
}

/// An expression of a panel as Prometheus gets it, without the variable of instances: every sample has that label.
fn without_variables(expression: &str) -> String {
    let instance = "instance=~\"$instance\"";
    let expression = expression.replace(&format!("{{{instance}}}"), "").replace(&format!(",{instance}"), "");
    expression.replace("$__rate_interval", "5m")
}

#[test]
fn panels_name_what_is_printed() {
    let samples = printed();
    let document: Value = serde_json::from_str(DASHBOARD).expect("the dashboard is JSON");
    let variables = document["templating"]["list"].as_array().expect("a list of variables");
    assert_eq!(
        (variables[0]["name"].as_str(), variables[0]["type"].as_str()),
        (Some("datasource"), Some("datasource"))
    );
    let (mut ids, mut metrics) = (BTreeSet::new(), BTreeSet::new());
    for panel in document["panels"].as_array().expect("a list of panels") {
        let title = text(panel, "title");
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{title}: its id is used twice");
        if panel["type"] == "row" {
            continue;
        }
        text(panel, "description");
        let grid = &panel["gridPos"];
        assert!(
            grid["x"].as_u64().zip(grid["w"].as_u64()).is_some_and(|(x, width)| x + width <= 24),
            "{title}"
        );
        let targets = panel["targets"].as_array().expect("a list of targets");
        assert!(!targets.is_empty(), "{title}");
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            let expression = without_variables(text(target, "expr"));
            let named = check(&expression, &samples).unwrap_or_else(|wrong| panic!("{title}: {wrong}"));
            let labels = result_labels(&named, &samples);
            for label in text(target, "legendFormat").split("{{").skip(1) {
                let (label, _) = label.split_once("}}").expect("`{{` has its `}}`");
                assert!(labels.contains(label), "{title}: the result has no label `{label}`: {labels:?}");
            }
            metrics.extend(named.metrics);
        }
    }
    assert!(metrics.len() > 20, "{metrics:?}");
}

#[test]
fn mistakes_in_rules_are_found() {
    let samples = samples(
        "# TYPE staunch_a_total counter\nstaunch_a_total{source=\"x\",outcome=\"dropped\"} 1\n\
         staunch_b 1\nstaunch_c_bucket{source=\"x\",le=\"32\"} 1\n",
    );
    let good = [
        "increase(staunch_a_total[5m]) > 0",
        "staunch_b offset 1d / 0.5 > 1",
        "sum by (job, source) (rate(staunch_a_total{outcome=~\"dropped\"}[1h])) and on (source) staunch_b",
        "staunch_c_bucket{source!=\"x\",le=\"32\"}",
    ];
    for expression in good {
        assert!(check(expression, &samples).is_ok(), "{expression}: {:?}", check(expression, &samples));
    }
    for (expression, part) in [
        ("increase(staunch_a[5m]) > 0", "no metric `staunch_a`"),
        ("node_load1 > 0", "no metric"),
        ("increse(staunch_a_total[5m])", "`increse` is no function"),
        ("staunch_a_total{output=\"x\"}", "no label `output`"),
        ("staunch_a_total{outcome=\"sched\"}", "never `sched`"),
        ("staunch_a_total{outcome=~\"dropped|refused\"}", "never `refused`"),
        ("staunch_a_total{outcome}", "no matcher"),
        ("staunch_b{outcome=\"dropped\"}", "no label `outcome`"),
        ("sum by (host) (staunch_b)", "no metric has a label `host`"),
        ("rate(staunch_a_total[5mm])", "no duration"),
        ("(staunch_b", "not closed"),
        ("staunch_b]", "closes nothing"),
        ("staunch_a_total{outcome=\"dropped}", "without an end"),
        ("staunch_b ? 1", "no place"),
        ("1 > 0", "names no metric"),
        ("", "names no metric"),
    ] {
        let wrong = check(expression, &samples).expect_err(expression);
        assert!(wrong.contains(part), "{expression}: {wrong}");
    }
    let labels = BTreeSet::from(["source".to_owned()]);
    for (text, good) in [
        ("{{ $labels.source }}: {{ $value | humanize }}", true),
        ("{{ $labels.output }}", false),
        ("{{ $value | humanise }}", false),
        ("{{ $value }}", false),
        ("{{ $labels.source", false),
    ] {
        assert_eq!(check_template(text, &labels).is_ok(), good, "{text}");
    }
    let of = |expression: &str| {
        let named = check(expression, &samples).expect("it is good");
        result_labels(&named, &samples).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(of("staunch_a_total or staunch_c_bucket"), ["instance", "job", "source"]);
    assert_eq!(of("sum by (outcome) (staunch_a_total)"), ["outcome"]);
    assert_eq!(of("absent(staunch_b)"), [""; 0]);
}
