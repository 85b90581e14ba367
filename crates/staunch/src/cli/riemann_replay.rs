//! `staunch riemann replay FILE --from EVENTS`: what a Riemann config would have done with recorded events, under a virtual clock.
//!
//! Events are lines of JSON, as outputs of type `event_file` write them or as subscribers get them, or messages of Riemann's clients, each
//! after its length as four bytes. Actions go to stdout, one a line: time, output, event. With `--against`, those that only one of two configs would have done, after
//! `-` and `+`. Nothing is sent.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use client::stdio;
use model::{EventRef, EventTime, EventsBuilder};
use serde_json::json;
use streams::riemann::files::Files;
use streams::riemann::replay::{Action, Replay, time_us};
use wire::riemann::json::{JsonLine, decode_recorded};
use wire::riemann::{self, Limits};

use super::args::RiemannArgs;
use super::{MISTAKES, load};

/// Longest line, and longest message.
const EVENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The time of events that have none.
const NO_TIME: EventTime = EventTime::Micros(i64::MIN);
/// The transform of a config that runs alone: the first part of the names of its outputs.
const TRANSFORM: &str = "streams";
/// Output is written in pieces of about this size.
const PIECE_BYTES: usize = 64 * 1024;

/// A config that has been evaluated.
struct Config {
    files: Arc<Files>,
    /// The names of its outputs.
    outputs: Vec<String>,
}

/// One or two configs, and what to print of them.
struct Run {
    /// The config, and the one that it is compared with.
    replays: Vec<Replay>,
    actions: Vec<Vec<Action>>,
    json: bool,
    printed: Vec<u8>,
    /// Actions of each that the other one does not have; without another one, all.
    shown: [u64; 2],
    /// Nobody reads the output any more.
    is_closed: bool,
}

/// Runs the events of a file through one or two configs. Exit code 1 if two configs differ, or one has mistakes.
pub(super) fn replay(file: &Path, args: &RiemannArgs) -> anyhow::Result<ExitCode> {
    let Some(from) = &args.from else { bail!("replay needs --from EVENTS: a file of recorded events") };
    let mut configs = Vec::new();
    for file in std::iter::once(file).chain(args.against.as_deref()) {
        let (evaluated, loaded) = load::riemann_alone(file)?;
        stdio::say(&loaded.rendered());
        let Some(declared) = &evaluated.declared else { return Ok(ExitCode::from(MISTAKES)) };
        let outputs = config::streams::output_names(declared, TRANSFORM);
        configs.push(Config { files: evaluated.files, outputs });
    }
    let opened: Box<dyn Read> = match from.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(File::open(from).with_context(|| format!("cannot read {}", from.display()))?),
    };
    let mut events = Events::of(BufReader::new(opened), from)?;
    let mut run = None;
    while events.next(&mut |event| {
        let run = match &mut run {
            Some(run) => run,
            None => run.insert(Run::begin(&configs, time_us(event).unwrap_or(0), args.json)?),
        };
        run.push(event)
    })? {}
    let Some(mut run) = run else { bail!("{} has no events", from.display()) };
    run.end(i64::from(args.seconds_after) * 1_000_000)?;
    stdio::say(&run.summary(events.number));
    Ok(if configs.len() > 1 && run.shown != [0, 0] { ExitCode::from(MISTAKES) } else { ExitCode::SUCCESS })
}

impl Run {
    fn begin(configs: &[Config], now_us: i64, json: bool) -> anyhow::Result<Run> {
        let load = |Config { files, outputs }: &Config| {
            Replay::load(files, outputs.clone(), now_us)
                .with_context(|| format!("{} cannot be evaluated at the time of the first event", files.main))
        };
        let replays = configs.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let actions = replays.iter().map(|_| Vec::new()).collect();
        Ok(Run { replays, actions, json, printed: Vec::new(), shown: [0; 2], is_closed: false })
    }

    fn push(&mut self, event: EventRef<'_>) -> anyhow::Result<()> {
        for (replay, actions) in self.replays.iter_mut().zip(&mut self.actions) {
            replay.push(event, actions);
        }
        self.show()
    }

    fn end(&mut self, after_us: i64) -> anyhow::Result<()> {
        for (replay, actions) in self.replays.iter_mut().zip(&mut self.actions) {
            let end_us = replay.now_us().saturating_add(after_us);
            replay.advance(end_us, actions);
        }
        self.show()?;
        self.write()
    }

    /// Prints the actions since the last event.
    fn show(&mut self) -> anyhow::Result<()> {
        match &mut *self.actions {
            [only] => {
                for action in std::mem::take(only) {
                    self.print(0, None, &action);
                }
            }
            [ours, theirs] => {
                let (mut ours, mut theirs) = (std::mem::take(ours), std::mem::take(theirs));
                for (at, only, action) in different(&mut ours, &mut theirs) {
                    self.print(at, Some(only), &action);
                }
            }
            _ => unreachable!("there are one or two configs"),
        }
        if self.printed.len() >= PIECE_BYTES { self.write() } else { Ok(()) }
    }

    fn print(&mut self, config: usize, only: Option<char>, action: &Action) {
        self.shown[config] += 1;
        let line = if self.json {
            let mut object = json!({ "time": action.time(), "output": action.to.as_str() });
            object["action"] = serde_json::from_str(&action.what).unwrap_or_else(|_| json!(action.what));
            if let Some(only) = only {
                object["only"] = json!(if only == '-' { "against" } else { "config" });
            }
            object.to_string()
        } else {
            let mark = only.map(|only| format!("{only} ")).unwrap_or_default();
            stdio::shown(&format!("{mark}{}  {}  {}", action.time(), action.to, action.what))
        };
        self.printed.extend_from_slice(line.as_bytes());
        self.printed.push(b'\n');
    }

    fn write(&mut self) -> anyhow::Result<()> {
        if !self.is_closed {
            self.is_closed = !stdio::data(&self.printed)?;
        }
        self.printed.clear();
        Ok(())
    }

    fn summary(&self, read: u64) -> String {
        let threw: Vec<String> = self.replays.iter().map(|replay| replay.threw().to_string()).collect();
        let shown = match (self.replays.len(), self.shown) {
            (1, [all, _]) => format!("{all} actions"),
            (_, [0, 0]) => "no difference".to_owned(),
            (_, [ours, theirs]) => {
                format!("+ {ours} actions of this config only, - {theirs} of the other one")
            }
        };
        format!("{read} events: {shown}; exceptions: {}\n", threw.join(", "))
    }
}

/// The actions of one side only, in the order of their time: which config, its mark, the action.
fn different(ours: &mut Vec<Action>, theirs: &mut Vec<Action>) -> Vec<(usize, char, Action)> {
    let mut only: Vec<(usize, char, Action)> = Vec::new();
    for side in [&mut *ours, &mut *theirs] {
        side.sort_by(|a, b| a.key().cmp(&b.key()));
    }
    let (mut a, mut b) = (ours.drain(..).peekable(), theirs.drain(..).peekable());
    loop {
        match (a.peek(), b.peek()) {
            (Some(our), Some(their)) if our.key() == their.key() => {
                a.next();
                b.next();
            }
            (Some(our), Some(their)) if our.key() > their.key() => {
                only.extend(b.next().map(|their| (1, '-', their)))
            }
            (Some(_), _) => only.extend(a.next().map(|our| (0, '+', our))),
            (None, Some(_)) => only.extend(b.next().map(|their| (1, '-', their))),
            (None, None) => return only,
        }
    }
}

/// A file of recorded events.
struct Events<'p, R> {
    from: BufReader<R>,
    path: &'p Path,
    is_json: bool,
    /// Lines, or messages, so far.
    place: u64,
    /// Events so far.
    number: u64,
    buffer: Vec<u8>,
    batch: EventsBuilder,
}

impl<'p, R: Read> Events<'p, R> {
    fn of(mut from: BufReader<R>, path: &'p Path) -> anyhow::Result<Events<'p, R>> {
        let begin = from.fill_buf().with_context(|| format!("cannot read {}", path.display()))?;
        // A message begins with the high byte of its length, which is 0 or 1.
        let is_json = begin.first().is_none_or(|first| *first > 1);
        let batch = EventsBuilder::default();
        Ok(Events { from, path, is_json, place: 0, number: 0, buffer: Vec::new(), batch })
    }

    /// Gives the events of the next line or message to `take`. False at the end.
    fn next(&mut self, take: &mut dyn FnMut(EventRef<'_>) -> anyhow::Result<()>) -> anyhow::Result<bool> {
        self.place += 1;
        let what = if self.is_json { "line" } else { "message" };
        let place = || format!("{}: {what} {}", self.path.display(), self.place);
        self.buffer.clear();
        let read = if self.is_json {
            let mut line = self.from.by_ref().take(EVENT_BYTES_MAX + 1);
            line.read_until(b'\n', &mut self.buffer)
        } else {
            message(&mut self.from, &mut self.buffer)
        };
        if read.with_context(place)? == 0 {
            return Ok(false);
        }
        ensure!(
            self.buffer.len() as u64 <= EVENT_BYTES_MAX,
            "{}: longer than {EVENT_BYTES_MAX} bytes",
            place()
        );
        self.batch.clear();
        if self.is_json {
            let line = std::str::from_utf8(&self.buffer).with_context(place)?;
            let decoded =
                decode_recorded(line.as_bytes(), EVENT_BYTES_MAX as usize, NO_TIME, &mut self.batch);
            let decoded = decoded.map_err(|why| anyhow::anyhow!("{}: {why}", place()))?;
            ensure!(decoded == JsonLine::Event || line.trim().is_empty(), "{}: it is no event", place());
        } else {
            let decoded = riemann::decode(&self.buffer, NO_TIME, Limits::default(), &mut self.batch);
            decoded.map_err(|why| anyhow::anyhow!("{}: it is no message of Riemann's ({why:?})", place()))?;
        }
        for event in self.batch.view().iter() {
            ensure!(event.time() != Some(NO_TIME), "{}: an event has no time", place());
            self.number += 1;
            take(event)?;
        }
        Ok(true)
    }
}

/// Reads a message after its length. 0 at the end of the file.
fn message(from: &mut impl BufRead, to: &mut Vec<u8>) -> std::io::Result<usize> {
    if from.fill_buf()?.is_empty() {
        return Ok(0);
    }
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u64::from(u32::from_be_bytes(length));
    let read = from.take(length.min(EVENT_BYTES_MAX + 1)).read_to_end(to)?;
    if (read as u64) < length.min(EVENT_BYTES_MAX) {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(read + 4)
}

#[test]
fn actions_of_one_side_are_found_and_equal_ones_are_paired_one_to_one() {
    let action =
        |at_us, what: &str| Action { at_us, to: "o".into(), what: what.to_owned(), without_places: None };
    let mut ours = vec![action(2, "b"), action(1, "a"), action(1, "a"), action(3, "c")];
    let mut theirs = vec![action(1, "a"), action(3, "c"), action(2, "x")];
    let only = different(&mut ours, &mut theirs);
    assert_eq!(only, [(0, '+', action(1, "a")), (0, '+', action(2, "b")), (1, '-', action(2, "x"))]);
}
