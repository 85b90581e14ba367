//! Riemann configs as transforms of a shard.
//!
//! Path of an event: `Shard::push` -> **[`AllStreams::push`]** -> `streams::riemann::engine` (all streams of the config, at once) ->
//! effects -> the encoders of the outputs. Timers run in [`AllStreams::tick`].
//! Not here: what streams do (`streams`), queries (`shard::queries`).
//! Invariants: each event that comes is settled on its edge in the same call; the clock of a config never goes back.

use std::sync::Arc;

use config::plan::{LoadedStreams, Plan, StreamsOutput};
use model::{EventsBuilder, EventsView, Now, Outcome, Point, SourceId, Span};
use process::aggregate::checkpoint::{NotRestored, Slice};
use streams::graph::Limit;
use streams::riemann::engine::Engine;
use streams::riemann::files::{Files, Recorded};
use streams::riemann::record;
use streams::riemann::state::restoring::Restored;
use streams::riemann::surroundings::{Effect, Figures};
use streams::value::Value;

use super::wiring::{Edge, Wiring};
use crate::checkpoints::streams::{self as checkpoint, Blocks, Header};
use crate::encode::{OutputEncoder, Routed, Said};
use crate::shard::feeds::{Feeds, SubscriberFigures};

/// Timers that run before other work has its turn.
const TIMERS_AT_ONCE: usize = 1_000;
/// So many times that, before events: after a step of the clock there may be any number of timers, and events do not wait for all.
const ROUNDS_BEFORE_EVENTS: usize = 100;
/// The longest time until the next look at the timers: the wall clock may step forward meanwhile.
const LOOK_EVERY_NS: u64 = model::SECOND_NS;

/// The clock of a config: the wall clock, except that it goes on evenly when the wall clock steps back.
#[derive(Clone, Copy, Debug)]
struct Clock {
    at: Now,
    us: i64,
}

impl Clock {
    fn new(now: Now) -> Clock {
        Clock { at: now, us: wall_us(now) }
    }

    /// Microseconds since 1970; never less than before.
    fn read(&mut self, now: Now) -> i64 {
        let passed_us =
            i64::try_from(now.mono_ns.saturating_sub(self.at.mono_ns) / 1_000).unwrap_or(i64::MAX);
        self.us = self.us.saturating_add(passed_us).max(wall_us(now));
        // What was rounded off counts the next time.
        self.at.mono_ns += passed_us as u64 * 1_000;
        self.us
    }
}

fn wall_us(now: Now) -> i64 {
    i64::try_from(now.wall_ns / 1_000).unwrap_or(i64::MAX)
}

/// Counters and gauges of a Riemann config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsFigures {
    /// The transform.
    pub transform: String,
    /// Its counters.
    pub figures: Figures,
    /// Events in its index; none without an index.
    pub indexed: Option<u64>,
    /// Estimated memory of the index, in bytes.
    pub index_bytes: u64,
    /// Nodes of its graph.
    pub nodes: u64,
    /// Forks of all `by` streams.
    pub forks: u64,
    /// Its subscribers.
    pub subscribers: SubscriberFigures,
    /// How often its limits had an effect, by their names.
    pub limits: Vec<(&'static str, u64)>,
}

/// What came of a checkpoint of a Riemann config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredStreams {
    /// When the checkpoint began, Unix nanoseconds.
    pub begun_wall_ns: u64,
    /// Records of streams that took what they remembered.
    pub streams: u64,
    /// Events that are in the index again.
    pub events: u64,
    /// Streams that are not in the config any more, or not in that form.
    pub dropped: u64,
    /// It was cut short or damaged: what came before that was taken.
    pub is_damaged: bool,
}

/// All Riemann configs of a shard.
#[derive(Debug, Default)]
pub(crate) struct AllStreams {
    /// In the order of the plan. None for a config of a plan that was run before, and that could not be evaluated again: it may go by the
    /// time, or by lots.
    all: Vec<Option<Streams>>,
    /// Buffer for the events of points.
    pub(super) made: EventsBuilder,
}

/// One config that runs.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) name: String,
    files: Arc<Files>,
    /// Places of its outputs, in its order.
    outputs: Vec<usize>,
    /// Functions through which the events of a source go first.
    parsers: Vec<(SourceId, Value)>,
    pub(crate) engine: Box<Engine>,
    clock: Clock,
    /// When to look at the timers again, monotonic nanoseconds: events set some too.
    due_ns: u64,
    /// Highest number of a checkpoint.
    pub(crate) saved: Option<u64>,
    /// The id of the checkpoint under way.
    id: u64,
    /// Its subscribers.
    pub(crate) feeds: Feeds,
    /// Buffer for an event on its way to an output.
    event: EventsBuilder,
}

impl AllStreams {
    /// The config with that place in the plan's order.
    pub(crate) fn at_mut(&mut self, at: usize) -> Option<&mut Streams> {
        self.all.get_mut(at)?.as_mut()
    }

    /// All that run.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Streams> {
        self.all.iter_mut().flatten()
    }

    /// The config of a transform.
    pub(crate) fn named_mut(&mut self, name: &str) -> Option<&mut Streams> {
        self.iter_mut().find(|streams| streams.name == name)
    }

    /// Whether a checkpoint of the config `name` would differ from the last one.
    pub(crate) fn is_changed(&self, name: &str) -> bool {
        self.all.iter().flatten().any(|streams| streams.name == name && streams.engine.is_changed())
    }

    /// Their figures.
    pub(crate) fn figures(&self) -> Vec<StreamsFigures> {
        let of = |streams: &Streams| {
            let (engine, index) = (&streams.engine, streams.engine.index());
            StreamsFigures {
                transform: streams.name.clone(),
                figures: engine.figures(),
                indexed: index.map(|index| index.len() as u64),
                index_bytes: index.map_or(0, |index| index.memory_bytes()),
                nodes: engine.nodes() as u64,
                forks: engine.counts().forks(),
                subscribers: streams.feeds.figures(),
                limits: Limit::ALL.map(|limit| (limit.name(), engine.counts().of(limit))).to_vec(),
            }
        };
        self.all.iter().flatten().map(of).collect()
    }

    /// Gives events of a source to the configs of these edges.
    pub(crate) fn push(
        &mut self,
        (edges, source): (&[Edge], SourceId),
        (events, from, number): (EventsView<'_>, usize, usize),
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) {
        for Edge { at, account } in edges {
            account.receive(number as u64);
            let outcome = match self.at_mut(*at) {
                Some(streams) => {
                    streams.push((Some(source), events, from, number), outputs, now, out);
                    Outcome::Aggregated
                }
                None => Outcome::Filtered,
            };
            account.settle(outcome, number as u64);
        }
    }

    /// Runs timers that are due. Returns the monotonic nanosecond of the next one.
    pub(crate) fn tick(&mut self, now: Now, outputs: &mut [OutputEncoder], out: &mut Routed) -> u64 {
        let due_ns = self.all.iter_mut().flatten().map(|streams| streams.tick(now, outputs, out));
        due_ns.min().unwrap_or(u64::MAX)
    }

    /// When the next timer is due, monotonic nanoseconds.
    pub(crate) fn due_ns(&self) -> u64 {
        self.all.iter().flatten().map(|streams| streams.due_ns).min().unwrap_or(u64::MAX)
    }

    /// Whether one of them feeds the output with that index.
    pub(crate) fn feed(&self, output: usize) -> bool {
        self.all.iter().flatten().any(|streams| streams.outputs.contains(&output))
    }

    /// Applies a plan. A config that has not changed goes on; another one of the same name continues the index.
    pub(crate) fn wire(&mut self, wiring: &Wiring<'_>) {
        let mut before = std::mem::take(&mut self.all);
        for (_, transform, kind) in wiring.plan.streams() {
            let is_known =
                |known: &Option<Streams>| known.as_ref().is_some_and(|known| known.name == transform.name);
            let known = before.iter().position(is_known).and_then(|at| before.swap_remove(at));
            // A plan that runs was evaluated.
            let loaded = kind.loaded.as_ref();
            self.all.push(loaded.and_then(|loaded| Streams::of(&transform.name, loaded, known, wiring)));
        }
    }
}

impl Streams {
    /// The config of a plan that goes on where `before` was.
    fn of(
        name: &str,
        loaded: &LoadedStreams,
        before: Option<Streams>,
        wiring: &Wiring<'_>,
    ) -> Option<Streams> {
        let outputs: Vec<usize> = loaded.outputs.iter().map(|StreamsOutput { id, .. }| id.index()).collect();
        match before {
            Some(same) if same.files == loaded.files => {
                let parsers = parsers(loaded, &same.engine, wiring.plan);
                Some(Streams { outputs, parsers, ..same })
            }
            before => {
                let mut clock = before.as_ref().map_or_else(|| Clock::new(wiring.now), |before| before.clock);
                // The streams of the config before go on if the new ones cannot be made.
                let Some(mut engine) = evaluated(loaded, clock.read(wiring.now), wiring.seed) else {
                    return before.map(|mut before| {
                        let text = "the changed config could not be evaluated again: the streams before it go on, without outputs";
                        before.engine.log(streams::language::host::Level::Error, text);
                        Streams { outputs: Vec::new(), parsers: Vec::new(), ..before }
                    });
                };
                let saved = before.as_ref().and_then(|before| before.saved);
                let mut feeds = Feeds::default();
                if let Some(before) = before {
                    let carried = engine.adopt(*before.engine);
                    dropped(&mut engine, &carried, "the changed config does not continue");
                    feeds = before.feeds;
                }
                Some(Streams {
                    name: name.to_owned(),
                    files: Arc::clone(&loaded.files),
                    outputs,
                    parsers: parsers(loaded, &engine, wiring.plan),
                    engine,
                    clock,
                    due_ns: 0,
                    saved,
                    id: 0,
                    feeds,
                    event: EventsBuilder::default(),
                })
            }
        }
    }

    /// Some events of a source, or of results.
    pub(super) fn push(
        &mut self,
        (source, events, from, number): (Option<SourceId>, EventsView<'_>, usize, usize),
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) {
        let parser =
            self.parsers.iter().find(|(of, _)| Some(*of) == source).map(|(_, parser)| parser.clone());
        let now_us = self.clock.read(now);
        self.engine.step_clock(now_us);
        // Timers that are due come first: windows end before the events after their end.
        for _ in 0..ROUNDS_BEFORE_EVENTS {
            let is_done = self.engine.advance(now_us, TIMERS_AT_ONCE);
            self.route(outputs, now, out);
            if is_done {
                break;
            }
        }
        for event in events.iter().skip(from).take(number) {
            // The engine has logged and counted what a stream threw.
            let _threw = match &parser {
                None => self.engine.push(event),
                Some(parser) => self.engine.push_parsed(event, parser),
            };
            self.route(outputs, now, out);
        }
        self.feeds.wake();
        self.log(out);
        self.due_ns = self.next_ns((now, now_us));
    }

    fn tick(&mut self, now: Now, outputs: &mut [OutputEncoder], out: &mut Routed) -> u64 {
        let now_us = self.clock.read(now);
        self.engine.step_clock(now_us);
        let is_done = self.engine.advance(now_us, TIMERS_AT_ONCE);
        self.route(outputs, now, out);
        self.feeds.wake();
        self.feeds.sweep(&mut self.engine);
        self.log(out);
        self.due_ns = if is_done { self.next_ns((now, now_us)) } else { now.mono_ns };
        self.due_ns
    }

    /// When to look at the timers again, monotonic nanoseconds.
    fn next_ns(&self, (now, now_us): (Now, i64)) -> u64 {
        let Some(due_us) = self.engine.next_due_us() else { return u64::MAX };
        let after_ns = u64::try_from(due_us.saturating_sub(now_us)).unwrap_or(0).saturating_mul(1_000);
        now.mono_ns + after_ns.min(LOOK_EVERY_NS)
    }

    /// Gives the outputs what the config wants to send.
    fn route(&mut self, outputs: &mut [OutputEncoder], now: Now, out: &mut Routed) {
        let Streams { outputs: places, engine, feeds, event: buffer, .. } = self;
        for effect in engine.effects() {
            match effect {
                Effect::Line { output, line } => {
                    let Some(encoder) = places.get(usize::from(output.0)).map(|at| &mut outputs[*at]) else {
                        continue;
                    };
                    let name = line.find(' ').unwrap_or(line.len());
                    let tags = line[..name].find(';').unwrap_or(name);
                    let point = Point {
                        // Outputs do not shard points of streams.
                        hash: 0,
                        line: Span::new(0, line.len() - 1),
                        name_len: tags as u32,
                        tags_len: (name - tags) as u32,
                    };
                    encoder.points(line.as_bytes(), &[point], now, out);
                }
                Effect::Event { output, event } => {
                    let Some(encoder) = places.get(usize::from(output.0)).map(|at| &mut outputs[*at]) else {
                        continue;
                    };
                    buffer.clear();
                    if record::write(&event, buffer).is_err() {
                        encoder.lose_event();
                        continue;
                    }
                    buffer.view().iter().for_each(|event| encoder.event(event, now, out));
                }
                Effect::Published { watches, event, shape } => {
                    feeds.publish(&watches, (&event, shape), buffer);
                }
                Effect::WatchEnded { watch } => feeds.end(watch),
            }
        }
    }

    /// Begins a checkpoint.
    pub(crate) fn save_begin(&mut self, id: u64, number: u64, now: Now, to: &mut Vec<u8>) -> bool {
        (self.id, self.saved) = (id, Some(number));
        Header { id, number, begun_wall_ns: now.wall_ns }.encode(to);
        checkpoint::block(id, to, |to| self.engine.save_begin(to));
        true
    }

    /// Goes on with it, with so many forks and events of the index at most.
    pub(crate) fn save_slice(&mut self, most: usize, to: &mut Vec<u8>) -> Slice {
        if !self.engine.is_saving() {
            // A reload replaced the streams meanwhile.
            return Slice::Void;
        }
        match checkpoint::block(self.id, to, |to| self.engine.save_slice(most, to)) {
            None => Slice::More,
            Some(records) => {
                checkpoint::end(self.id, records, to);
                Slice::Done { series: records }
            }
        }
    }

    /// A checkpoint at once, for a process that goes on here.
    pub(crate) fn save_whole(&mut self, id: u64, now: Now) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.save_begin(id, self.saved.unwrap_or_default(), now, &mut bytes);
        while matches!(self.save_slice(usize::MAX, &mut bytes), Slice::More) {}
        // That process may not go on.
        self.engine.save_again();
        bytes
    }

    /// Takes back what a checkpoint has, before the first event.
    ///
    /// # Errors
    /// When the bytes do not begin with a valid header.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<RestoredStreams, NotRestored> {
        let (header, mut blocks) = Blocks::of(bytes)?;
        let mut restored = self.engine.restore(&mut blocks);
        // Also one whose parts are all right, but not all there.
        restored.is_damaged |= blocks.records != Some(restored.records);
        dropped(&mut self.engine, &restored, "the checkpoint has what is not continued of");
        let dropped = restored.dropped.len() as u64 + restored.dropped_more;
        Ok(RestoredStreams {
            begun_wall_ns: header.begun_wall_ns,
            streams: restored.streams,
            events: restored.events,
            dropped,
            is_damaged: restored.is_damaged,
        })
    }

    fn log(&mut self, out: &mut Routed) {
        let (lines, lost) = self.engine.take_lines();
        for (level, text) in lines {
            out.said.push(Said { transform: self.name.clone(), level, text });
        }
        if lost > 0 {
            let text = format!("{lost} more lines were not logged");
            out.said.push(Said {
                transform: self.name.clone(),
                level: streams::language::host::Level::Warn,
                text,
            });
        }
    }
}

/// Logs which streams do not go on.
fn dropped(engine: &mut Engine, restored: &Restored, what: &str) {
    if restored.dropped.is_empty() {
        return;
    }
    let names: Vec<&str> = restored.dropped.iter().map(String::as_str).collect();
    let more = match restored.dropped_more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    engine.log(streams::language::host::Level::Info, &format!("{what}: {}{more}", names.join(", ")));
}

/// A config that starts. It was evaluated before with the same files, so that it has no mistakes, unless it goes by the time or by lots.
/// The streams of a plan that was evaluated a moment ago. Where the clock is another one, as it is in flows and simulations, or the plan
/// was run before, they are evaluated again.
fn evaluated(loaded: &LoadedStreams, now_us: i64, seed: u64) -> Option<Box<Engine>> {
    const AGO_US_MAX: i64 = 600 * 1_000_000;
    let is_of_now = |engine: &Engine| (0..AGO_US_MAX).contains(&now_us.saturating_sub(engine.now_us()));
    if let Some(engine) = loaded.engine.take().filter(|engine| is_of_now(engine)) {
        return Some(engine);
    }
    let host = Box::new(Recorded::new((*loaded.files).clone(), seed));
    Engine::load(&loaded.files.main, host, config::streams::setup(now_us, seed)).map(Box::new).ok()
}

/// The functions of servers of a config, with the sources that they became.
fn parsers(loaded: &LoadedStreams, engine: &Engine, plan: &Plan) -> Vec<(SourceId, Value)> {
    let of = |(name, number): &(String, usize)| {
        let source = plan.sources.iter().position(|source| source.name == *name)?;
        let parser = engine.declared().servers.get(*number)?.what.parser()?;
        Some((SourceId(source as u16), parser.clone()))
    };
    loaded.parsers.iter().filter_map(of).collect()
}

/// The places of the configs of a plan, for the edges from sources.
pub(crate) fn takers(plan: &Plan) -> impl Iterator<Item = &config::plan::TransformPlan> {
    plan.streams().map(|(_, transform, _)| transform)
}

#[test]
fn the_clock_of_a_config_follows_the_wall_clock_forward_and_goes_on_when_that_steps_back() {
    let at = |mono_ms: u64, wall_ms: u64| Now { mono_ns: mono_ms * 1_000_000, wall_ns: wall_ms * 1_000_000 };
    let mut clock = Clock::new(at(0, 10_000));
    let table = [
        (at(1_000, 11_000), 11_000_000),
        (at(2_000, 5_000), 12_000_000),
        (at(2_500, 5_500), 12_500_000),
        (at(3_000, 90_000), 90_000_000),
        (at(4_000, 91_000), 91_000_000),
    ];
    for (now, us) in table {
        assert_eq!(clock.read(now), us, "{now:?}");
    }
}

#[cfg(test)]
mod tests {
    use streams::riemann::files::Reader;

    use super::*;

    /// A folder with one file.
    struct One(&'static str);

    impl Reader for One {
        fn read_file(&mut self, _: &str) -> Result<String, String> {
            Ok(self.0.to_owned())
        }

        fn files_below(&mut self, _: &str) -> Result<Option<Vec<String>>, String> {
            Ok(None)
        }

        fn environment(&mut self, _: &str) -> Option<String> {
            None
        }

        fn host_name(&mut self) -> String {
            "here".to_owned()
        }
    }

    const NOW_US: i64 = 1_700_000_000_000_000;

    /// A config whose evaluation ends otherwise the second time: its files are changed afterwards.
    fn unsteady(first: &'static str, again: &'static str) -> LoadedStreams {
        let checked = config::streams::evaluate("riemann.config", Box::new(One(first)), NOW_US, 1);
        assert!(checked.declared.is_some(), "{:?}", checked.said);
        let mut files = (*checked.files).clone();
        files.texts.values_mut().for_each(|text| *text = Ok(again.to_owned()));
        let (files, engine) = (Arc::new(files), checked.engine);
        LoadedStreams { files, engine, outputs: Vec::new(), parsers: Vec::new() }
    }

    #[test]
    fn the_streams_that_were_checked_are_those_that_run() {
        let loaded = unsteady("(streams prn)", "(throw (Exception. \"not the second time\"))");
        assert!(evaluated(&loaded, NOW_US + 1_000_000, 1).is_some(), "they are evaluated once");
        assert!(evaluated(&loaded, NOW_US + 1_000_000, 1).is_none(), "they run once");
    }

    #[test]
    fn streams_of_another_clock_are_evaluated_again() {
        for now_us in [NOW_US - 1, NOW_US + 3_600_000_000, 0] {
            let loaded = unsteady("(streams prn)", "(streams prn prn)");
            let engine = evaluated(&loaded, now_us, 1).expect("a good config");
            assert_eq!((engine.now_us(), engine.declared().top.len()), (now_us, 2));
        }
    }

    const NOW: Now = Now { mono_ns: 7_000_000_000, wall_ns: NOW_US as u64 * 1_000 };

    /// A config that runs.
    fn running(text: &'static str) -> Streams {
        let loaded = unsteady(text, text);
        Streams {
            name: "s".to_owned(),
            engine: evaluated(&loaded, NOW_US, 1).expect("a good config"),
            files: loaded.files,
            outputs: Vec::new(),
            parsers: Vec::new(),
            clock: Clock::new(NOW),
            saved: None,
            id: 0,
            feeds: Feeds::default(),
            event: EventsBuilder::default(),
        }
    }

    #[test]
    fn a_checkpoint_without_one_of_its_blocks_is_damaged() {
        let text = "(streams (counter prn))";
        let mut bytes = running(text).save_whole(3, NOW);
        let whole = running(text).restore(&bytes).expect("a header");
        assert!(whole.streams > 0 && !whole.is_damaged, "{whole:?}");
        let mut len = [0; 4];
        len.copy_from_slice(&bytes[48..52]);
        bytes.drain(48..48 + 12 + u32::from_le_bytes(len) as usize);
        let cut = running(text).restore(&bytes).expect("a header");
        assert_eq!((cut.streams, cut.is_damaged), (0, true));
    }

    #[test]
    fn timers_of_a_gap_do_not_keep_the_shard_busy() {
        let later =
            Now { mono_ns: NOW.mono_ns + 1, wall_ns: NOW.wall_ns + 10 * 365 * 86_400 * 1_000_000_000 };
        let mut streams = running("(every! 1 (fn []))");
        let next_ns = streams.tick(later, &mut [], &mut Routed::default());
        assert!(next_ns > later.mono_ns, "all timers have run");
        assert_eq!(streams.engine.now_us(), wall_us(later));
    }
}
