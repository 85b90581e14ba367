//! From the text of a flow file to steps. It continues after a mistake, so that all are shown at once.
//!
//! `config` and `reload` include the lines below them: further `config` lines, and indented lines. Their text keeps its
//! lines and columns, so that diagnostics of `config` point into the flow file. Not here: what the steps do (`run`),
//! and whether the names in them exist.

use std::collections::BTreeMap;

use config::diagnostic::nearest;
use config::text::parse_duration;
use model::Kind;

use super::escape::unescape;
use super::failure::Failure;
use super::figures;
use super::names::did_you_mean;
use super::step::{At, Compat, Config, Expected, Figure, Figures, Form, Held, Order, Refused, Step, What};
use super::words::{WORDS, usage};
use crate::glob::Glob;

/// Most steps of one flow, including repetitions.
pub(crate) const STEPS_MAX: usize = 200_000;

/// Steps of a flow file.
///
/// # Errors
/// Every mistake with its line.
pub(crate) fn parse(text: &str) -> Result<Vec<Step>, Vec<Failure>> {
    let mut parser = Parser::default();
    for (at, line) in text.lines().enumerate() {
        parser.line(at + 1, line);
    }
    parser.end_config();
    if parser.failures.is_empty() { Ok(parser.steps) } else { Err(parser.failures) }
}

#[derive(Default)]
struct Parser {
    steps: Vec<Step>,
    failures: Vec<Failure>,
    env: BTreeMap<String, String>,
    /// The last step accepts configuration lines.
    takes_config: bool,
    /// The last line was a configuration line: indented lines below belong to it.
    takes_indented: bool,
}

impl Parser {
    fn line(&mut self, line: usize, text: &str) {
        let trimmed = text.trim();
        if self.takes_indented && (trimmed.is_empty() || text.starts_with([' ', '\t'])) {
            self.config_line(line, text.to_owned());
            return;
        }
        if trimmed.is_empty() || trimmed.starts_with('#') {
            return;
        }
        self.takes_indented = false;
        let (word, rest) = split(trimmed);
        if word == "config" {
            // TOML has its own comments, which need no preceding space.
            let rest = split(trimmed).1;
            self.or_fail(line, |parser| parser.config(line, text, rest));
            return;
        }
        let rest = without_comment(rest);
        if word != "env" {
            self.end_config();
        }
        self.or_fail(line, |parser| parser.word(line, word, rest));
    }

    fn or_fail(&mut self, line: usize, step: impl FnOnce(&mut Parser) -> Result<(), String>) {
        if let Err(message) = step(self) {
            self.failures.push(Failure { line, message });
        }
    }

    fn word(&mut self, line: usize, word: &str, rest: &str) -> Result<(), String> {
        match word {
            "env" => {
                let (name, value) = split(rest);
                wants(word, !name.is_empty())?;
                self.env.insert(name.to_owned(), value.to_owned());
                Ok(())
            }
            "repeat" => self.repeat(line, rest),
            "reload" => {
                let refused = refused(rest)?;
                self.takes_config = true;
                self.push(line, What::Reload { refused, config: Config::default() })
            }
            _ => {
                let what = what(word, rest)?;
                self.push(line, what)
            }
        }
    }

    fn push(&mut self, line: usize, what: What) -> Result<(), String> {
        if self.steps.len() >= STEPS_MAX {
            return Err(format!("a flow has at most {STEPS_MAX} steps, repetitions counted"));
        }
        self.steps.push(Step { line, what });
        Ok(())
    }

    fn repeat(&mut self, line: usize, rest: &str) -> Result<(), String> {
        let (times, step) = split(rest);
        let (word, rest) = split(step);
        let times: u64 = times.parse().map_err(|_| misuse("repeat"))?;
        wants("repeat", !word.is_empty())?;
        if matches!(word, "repeat" | "reload" | "config" | "env" | "seed" | "crash" | "stop") {
            return Err(format!("`{word}` cannot be repeated"));
        }
        for number in 1..=times {
            let what = what(word, &rest.replace("{n}", &number.to_string()))?;
            self.push(line, what)?;
        }
        Ok(())
    }

    /// A line that begins with `config`: a line of TOML at its own columns, or a word that names the form. It begins a
    /// group that includes the indented lines below.
    fn config(&mut self, line: usize, text: &str, rest: &str) -> Result<(), String> {
        let (word, more) = split(rest);
        let form = match word {
            _ if more.starts_with('=') => Form::Toml,
            "file" => {
                wants("config", !without_comment(more).is_empty())?;
                Form::File(without_comment(more).to_owned())
            }
            "yaml" if more.is_empty() => Form::Yaml,
            "statsd" => statsd(without_comment(more))?,
            "relay" => {
                Form::Relay { file: Some(without_comment(more).to_owned()).filter(|file| !file.is_empty()) }
            }
            _ => Form::Toml,
        };
        if !self.takes_config {
            if let Some(first) =
                self.steps.iter().find(|step| !matches!(step.what, What::Seed(_) | What::Wall { .. }))
            {
                let message = format!(
                    "the pipeline has started at line {}: write `reload` before its new configuration",
                    first.line
                );
                return Err(message);
            }
            self.push(line, What::Config(Config::default()))?;
            self.takes_config = true;
        }
        let takes_lines = !matches!(
            form,
            Form::File(_) | Form::Statsd { file: Some(_), .. } | Form::Relay { file: Some(_) }
        );
        let toml = form == Form::Toml;
        let config = self.last_config();
        match &config.form {
            None => config.form = Some(form),
            Some(Form::Toml) if toml => {}
            Some(_) => {
                return Err(
                    "one configuration at a time: this one is of another form than the line above".into()
                );
            }
        }
        config.groups.push(Vec::new());
        self.takes_indented = takes_lines;
        if toml {
            self.config_line(line, text.replacen("config", "      ", 1));
        }
        Ok(())
    }

    fn config_line(&mut self, line: usize, text: String) {
        if let Some(group) = self.last_config().groups.last_mut() {
            group.push((line, text));
        }
    }

    fn last_config(&mut self) -> &mut Config {
        match self.steps.last_mut().map(|step| &mut step.what) {
            Some(What::Config(config) | What::Reload { config, .. }) => config,
            _ => unreachable!("`takes_config` is set only while the last step has a configuration"),
        }
    }

    /// Another step begins, so the configuration above is complete.
    fn end_config(&mut self) {
        if !std::mem::take(&mut self.takes_config) {
            return;
        }
        let env = self.env.clone();
        let config = self.last_config();
        config.env = env;
        let empty = config.form.is_none();
        if empty {
            let line = self.steps.last().map_or(1, |step| step.line);
            self.failures.push(Failure { line, message: "`reload` needs `config` lines below it".into() });
        }
    }
}

fn statsd(rest: &str) -> Result<Form, String> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let compat = |word: &str| match word {
        "node" => Some(Compat::Node),
        "perl" => Some(Compat::Perl),
        _ => None,
    };
    match *words {
        [] => Ok(Form::Statsd { file: None, compat: None }),
        [word] if compat(word).is_some() => Ok(Form::Statsd { file: None, compat: compat(word) }),
        [file] => Ok(Form::Statsd { file: Some(file.to_owned()), compat: None }),
        [file, word] if compat(word).is_some() => {
            Ok(Form::Statsd { file: Some(file.to_owned()), compat: compat(word) })
        }
        _ => Err(misuse("config")),
    }
}

fn refused(rest: &str) -> Result<Option<Refused>, String> {
    match *rest.split_whitespace().collect::<Vec<_>>() {
        [] => Ok(None),
        ["refused"] => Ok(Some(Refused { code: None })),
        ["refused", code] => Ok(Some(Refused { code: Some(code.to_owned()) })),
        _ => Err(misuse("reload")),
    }
}

/// A step of one line.
fn what(word: &str, rest: &str) -> Result<What, String> {
    let (first, more) = split(rest);
    let named = || -> Result<String, String> {
        wants(word, !first.is_empty())?;
        Ok(first.to_owned())
    };
    match word {
        "seed" => Ok(What::Seed(number(word, rest)?)),
        "send" => Ok(What::Send { source: named()?, packet: unescape(more)? }),
        "stream" => {
            let (connection, bytes) = split(more);
            wants(word, !connection.is_empty())?;
            Ok(What::Stream { source: named()?, connection: connection.into(), bytes: unescape(bytes)? })
        }
        "frames" => {
            let (connection, packet) = split(more);
            wants(word, !connection.is_empty())?;
            Ok(What::Frames { source: named()?, connection: connection.into(), packet: unescape(packet)? })
        }
        "close" | "reset" => {
            wants(word, !more.is_empty() && split(more).1.is_empty())?;
            Ok(What::Close { source: named()?, connection: more.into(), orderly: word == "close" })
        }
        "advance" => Ok(What::Advance { ms: duration(rest)? }),
        "wall" => {
            let back = rest.starts_with('-');
            let step = rest.strip_prefix(['-', '+']).ok_or_else(|| misuse(word))?;
            Ok(What::Wall { back, ms: duration(step)? })
        }
        "endpoint" => Ok(What::Endpoint { output: named()?, order: order(more)? }),
        "expect" => Ok(What::Expect { output: named()?, expected: expected(more)? }),
        "absent" => {
            wants(word, !more.is_empty())?;
            Ok(What::Absent { output: named()?, names: Glob::new(more)? })
        }
        "only" => {
            wants(word, matches!(more, "" | "all"))?;
            Ok(What::Only { output: named()?, all: more == "all" })
        }
        "count" => {
            let (count, names) = split(more);
            let names = Glob::new(if names.is_empty() { "*" } else { names })?;
            Ok(What::Count { output: named()?, number: number(word, count)?, names })
        }
        "reply" => {
            let (connection, text) = split(more);
            wants(word, !text.is_empty())?;
            let text = (text != "none").then(|| text.to_owned());
            Ok(What::Reply { source: named()?, connection: connection.into(), text })
        }
        "outcomes" => Ok(What::Outcomes { source: named()?, figures: figures(word, more)? }),
        "copies" => Ok(What::Copies { output: named()?, figures: figures(word, more)? }),
        "series" => Ok(What::Series { names: Glob::new(&named()?)?, held: held(more)? }),
        "delete" => {
            wants(word, !more.is_empty())?;
            Ok(What::Delete { kind: kind(first)?, name: more.into() })
        }
        "crash" => {
            wants(word, matches!(rest, "" | "power"))?;
            Ok(What::Crash { power: rest == "power" })
        }
        "stop" => {
            wants(word, rest.is_empty())?;
            Ok(What::Stop)
        }
        _ => Err(unknown_word(word)),
    }
}

fn order(text: &str) -> Result<Order, String> {
    match *text.split_whitespace().collect::<Vec<_>>() {
        ["up"] => Ok(Order::Up),
        ["down"] => Ok(Order::Down),
        ["hang"] => Ok(Order::Hang),
        ["cut"] => Ok(Order::Cut { after: 0 }),
        ["cut", "after", bytes] => Ok(Order::Cut { after: number("endpoint", bytes)? }),
        _ => Err(misuse("endpoint")),
    }
}

fn expected(text: &str) -> Result<Expected, String> {
    let (first, rest) = split(text);
    match first {
        "line" => return Ok(Expected::Line(unescape(rest)?)),
        "packet" => return Ok(Expected::Packet(unescape(rest)?)),
        "event" => return Ok(Expected::Event(unescape(rest)?)),
        "contains" if !rest.is_empty() => return Ok(Expected::Contains(unescape(rest)?)),
        "member" => {
            let (path, value) = split(rest);
            wants("expect", !value.is_empty())?;
            return Ok(Expected::Member { path: path.into(), value: value.into() });
        }
        _ => {}
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    // A series with the name of one of the words above is reached by `point`.
    let words = words.strip_prefix(&["point"]).unwrap_or(&words);
    let (name, value, at) = match *words {
        [name, value] => (name, value, None),
        [name, value, "at", time] => (name, value, Some(at(time)?)),
        _ => return Err(misuse("expect")),
    };
    Ok(Expected::Point { name: name.into(), value: figure(value)?, at })
}

fn at(text: &str) -> Result<At, String> {
    match text.strip_prefix('+') {
        Some(after) => Ok(At::After { ms: duration(after)? }),
        None => text.parse().map(At::Second).map_err(|_| {
            format!("`{text}` is no time: write Unix seconds, or `+10s` for so long after the start")
        }),
    }
}

fn figure(text: &str) -> Result<Figure, String> {
    match text {
        "any" => Ok(Figure::Any),
        _ if text.parse::<f64>().is_ok_and(f64::is_finite) => Ok(Figure::Text(text.into())),
        _ => Err(format!("`{text}` is no number; `any` stands for every number")),
    }
}

fn held(text: &str) -> Result<Held, String> {
    match *text.split_whitespace().collect::<Vec<_>>() {
        ["none"] => Ok(Held::Number(0)),
        [count] => Ok(Held::Number(number("series", count)?)),
        [of, value] => Ok(Held::One { kind: kind(of)?, value: figure(value)? }),
        _ => Err(misuse("series")),
    }
}

fn kind(word: &str) -> Result<Kind, String> {
    Kind::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(|| {
        let near = nearest(word, Kind::ALL.iter().map(|kind| kind.word()));
        format!("`{word}` is no kind of series: they are counter, timer, gauge, set{}", did_you_mean(near))
    })
}

fn figures(word: &str, text: &str) -> Result<Figures, String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let exactly = words.first() == Some(&"exactly");
    if exactly {
        words.remove(0);
    }
    wants(word, words.len().is_multiple_of(2) && (exactly || !words.is_empty()))?;
    let known = if word == "outcomes" { figures::source_words() } else { figures::output_words() };
    let numbers = words.chunks_exact(2).map(|pair| {
        if !known.iter().any(|known| known == pair[0]) {
            let near = did_you_mean(nearest(pair[0], known.iter().map(String::as_str)));
            return Err(format!("`{}` is not counted there{near}", pair[0]));
        }
        let some = pair[1] == "some";
        Ok((pair[0].to_owned(), if some { None } else { Some(number(word, pair[1])?) }))
    });
    Ok(Figures { exactly, numbers: numbers.collect::<Result<_, String>>()? })
}

fn number(word: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number; {}", misuse(word)))
}

fn duration(text: &str) -> Result<u64, String> {
    // Far below the range of nanoseconds in 64 bits, far above the needs of a flow.
    const MS_MAX: u64 = 20 * 365 * 86_400_000;
    parse_duration(text)
        .filter(|ms| *ms <= MS_MAX)
        .ok_or_else(|| format!("`{text}` is no duration: write `250ms`, `10s`, `5m`, `1h` or `2d`"))
}

fn unknown_word(word: &str) -> String {
    let words = WORDS.iter().map(|(word, _)| *word);
    let all: Vec<&str> = words.clone().collect();
    match nearest(word, words) {
        Some(near) => format!("`{word}` is no word of flow files; did you mean `{near}`?"),
        None => format!("`{word}` is no word of flow files; they are: {}", all.join(", ")),
    }
}

fn wants(word: &str, holds: bool) -> Result<(), String> {
    if holds { Ok(()) } else { Err(misuse(word)) }
}

fn misuse(word: &str) -> String {
    format!("`{word}` is followed by {}", usage(word).expect("only words of the table are checked"))
}

/// The first word, and the text after its spaces.
fn split(text: &str) -> (&str, &str) {
    match text.split_once([' ', '\t']) {
        Some((word, rest)) => (word, rest.trim_start()),
        None => (text, ""),
    }
}

/// A `#` with spaces on both sides begins a comment; one in a packet can be written `\x23`.
fn without_comment(text: &str) -> &str {
    let space = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
    let bytes = text.as_bytes();
    let comment = (0..bytes.len()).find(|at| {
        bytes[*at] == b'#'
            && space(at.checked_sub(1).map(|before| &bytes[before]))
            && space(bytes.get(at + 1))
    });
    comment.map_or(text, |at| &text[..at]).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> What {
        let mut steps = parse(line).unwrap_or_else(|failures| panic!("{line}: {failures:?}"));
        assert_eq!(steps.len(), 1, "{line}");
        steps.remove(0).what
    }

    #[test]
    fn steps_are_read() {
        let point = |name: &str, value: &str, at| {
            let value = Figure::Text(value.into());
            What::Expect { output: "o".into(), expected: Expected::Point { name: name.into(), value, at } }
        };
        let table = [
            ("seed 7", What::Seed(7)),
            (r"send s a:1|c\n  # a comment", What::Send { source: "s".into(), packet: b"a:1|c\n".into() }),
            ("send s", What::Send { source: "s".into(), packet: Vec::new() }),
            ("send s a:1|c|#env:x", What::Send { source: "s".into(), packet: b"a:1|c|#env:x".into() }),
            ("  advance   1.5s", What::Advance { ms: 1500 }),
            ("wall -1h", What::Wall { back: true, ms: 3_600_000 }),
            ("expect o a.b 0.5", point("a.b", "0.5", None)),
            ("expect o a.b 5 at +10s", point("a.b", "5", Some(At::After { ms: 10_000 }))),
            ("expect o point line 5 at 1000", point("line", "5", Some(At::Second(1000)))),
            ("only o all", What::Only { output: "o".into(), all: true }),
            ("endpoint o cut after 9", What::Endpoint { output: "o".into(), order: Order::Cut { after: 9 } }),
            (
                "series a.* none",
                What::Series { names: Glob::new("a.*").expect("a pattern"), held: Held::Number(0) },
            ),
            ("stop # at last", What::Stop),
        ];
        for (line, want) in table {
            assert_eq!(one(line), want, "{line}");
        }
    }

    #[test]
    fn all_mistakes_are_shown_at_once_with_advice() {
        let table = [
            ("sent s a:1|c", "did you mean `send`?"),
            ("frobnicate", "they are: config, env"),
            ("send", "`send` is followed by SOURCE PACKET"),
            (r"send s a\q", r"`\q` is no escape"),
            ("advance ten", "`ten` is no duration"),
            ("advance 99999d", "is no duration"),
            ("wall 1h", "`wall` is followed by"),
            ("endpoint o dwn", "`endpoint` is followed by"),
            ("expect o a.b", "`expect` is followed by"),
            ("expect o a.b five", "`five` is no number"),
            ("expect o a.b inf", "`inf` is no number"),
            ("expect o a.b 1 at noon", "`noon` is no time"),
            ("outcomes s received", "`outcomes` is followed by"),
            ("outcomes s", "`outcomes` is followed by"),
            ("outcomes s received two", "`two` is no whole number"),
            ("outcomes s recieved 2", "did you mean `received`?"),
            ("copies o dropped.queue_ful 2", "did you mean `dropped.queue_full`?"),
            ("series a conter 1", "did you mean `counter`?"),
            ("delete gague a", "did you mean `gauge`?"),
            ("repeat 3 stop", "`stop` cannot be repeated"),
            ("repeat 999999999 send s a:{n}|c", "at most 200000 steps"),
            ("reload", "`reload` needs `config` lines"),
            ("send s a\nconfig a = 1", "started at line 1: write `reload`"),
            ("config a = 1\nconfig file b.toml", "one configuration at a time"),
            ("stop now", "`stop` is followed by nothing"),
            ("crash now", "`crash` is followed by nothing, or `power`"),
            ("absent o a[b", "has no `]`"),
        ];
        for (text, want) in table {
            let failures = parse(text).expect_err(text);
            let message = &failures.last().expect("an error has a failure").message;
            assert!(message.contains(want), "{text}: {message}");
        }
        let failures = parse("\nsent s\n# fine\nstop now").expect_err("two mistakes");
        assert_eq!(failures.iter().map(|failure| failure.line).collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn configuration_text_keeps_its_lines_and_columns() {
        let text =
            "# first\nconfig a = 1 # kept\nconfig\n  [b]\n\n  c = 2\nseed 3\nsend s x\nreload\nconfig d = 4";
        let steps = parse(text).expect("it is right");
        assert_eq!(steps.len(), 4);
        let What::Config(config) = &steps[0].what else { panic!("{steps:?}") };
        assert_eq!(config.form, Some(Form::Toml));
        let lines = |at: usize| -> Vec<_> {
            config.groups[at].iter().map(|(line, text)| (*line, text.as_str())).collect()
        };
        assert_eq!(lines(0), [(2, "       a = 1 # kept")]);
        assert_eq!(lines(1), [(3, "      "), (4, "  [b]"), (5, ""), (6, "  c = 2")]);
        let What::Reload { refused: None, config } = &steps[3].what else { panic!("{steps:?}") };
        assert_eq!(config.groups[0], [(10, "       d = 4".to_owned())]);
    }

    #[test]
    fn configurations_come_in_six_forms() {
        let form = |text: &str| match one(text) {
            What::Config(config) => (config.form, config.groups.concat().len(), config.env),
            what => panic!("{what:?}"),
        };
        let statsd = |file: Option<&str>, compat| Some(Form::Statsd { file: file.map(String::from), compat });
        assert_eq!(form("config file a.toml # x"), (Some(Form::File("a.toml".into())), 0, BTreeMap::new()));
        assert_eq!(form("config file = 1").0, Some(Form::Toml));
        assert_eq!(form("config yaml\n  a: 1").0, Some(Form::Yaml));
        assert_eq!(form("config statsd a.js").0, statsd(Some("a.js"), None));
        assert_eq!(form("config statsd a.js perl").0, statsd(Some("a.js"), Some(Compat::Perl)));
        assert_eq!(form("config statsd node\n  { port: 1 }").0, statsd(None, Some(Compat::Node)));
        assert_eq!(form("config relay a.conf").0, Some(Form::Relay { file: Some("a.conf".into()) }));
        assert_eq!(form("config relay\n  match * stop;").0, Some(Form::Relay { file: None }));
        let (form, lines, env) = form("env A b c\nconfig statsd\n  {}");
        assert_eq!((form, lines), (statsd(None, None), 1));
        assert_eq!(env, BTreeMap::from([("A".to_owned(), "b c".to_owned())]));
    }

    #[test]
    fn repetitions_count_from_one() {
        let steps = parse("repeat 3 send s a.{n}:1|c").expect("it is right");
        let packets: Vec<_> = steps
            .iter()
            .map(|step| match &step.what {
                What::Send { packet, .. } => String::from_utf8_lossy(packet).into_owned(),
                what => panic!("{what:?}"),
            })
            .collect();
        assert_eq!(packets, ["a.1:1|c", "a.2:1|c", "a.3:1|c"]);
    }
}
