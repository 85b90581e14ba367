//! A config of Riemann that runs: events, time, queries, checkpoints and reloads from any bytes. Nothing panics, limits of forks and of the
//! index are kept, the figures balance, and a checkpoint gives another engine the same index and the same forks.

#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use model::{EventTime, EventsBuilder, NumberRef, TextField, ValueRef};
use streams::graph;
use streams::index::{self, Progress, SearchLimits};
use streams::language::budget;
use streams::query::Query;
use streams::riemann::engine::{Engine, Setup};
use streams::riemann::files::{Files, Recorded};

/// Small configs: each of the streams is in one of them.
const CONFIGS: &[&str] = &[
    "(streams (index) (by [:host :service] (counter (smap (fn [e] (assoc e :service \"sum\")) (index)))))",
    "(periodically-expire 1 {:keep-keys [:host :service :tags]}) (streams (index) (expired prn) (changed-state {:init \"ok\"} (index)))",
    "(streams (by :host (rate 5 (index)) (moving-event-window 3 (combine folds/sum (index))) (fixed-time-window 2 (smap folds/mean (index)))))",
    "(streams (throttle 2 5 (index)) (batch 3 5 (smap last (index))) (coalesce 2 (smap folds/maximum (index))))",
    "(streams (where (> metric 1) (index)) (where (service #\"a+b\") (with :state \"x\" (index))) (split (< metric 5) (index) (tag \"t\" (index))))",
    "(streams (ddt 2 (index)) (ewma 0.5 (index)) (ema-timeless 0.2 (index)) (percentiles 5 [0.5 0.99] (index)) (histogram 5 [0 1] (index)))",
    "(streams (stable 2 :state (index)) (runs 3 :state (index)) (top 2 :metric (index)) (project [(service \"a\") (service \"b\")] (smap folds/quotient (index))))",
    "(streams (fn [e] (throw (RuntimeException. \"no\"))) (smap (fn [e] (loop [] (recur))) (index)) (by :description (by :host (fixed-event-window 2 (smap count prn)))))",
    "(streams (smapcat (fn [e] (repeat 30 e)) (smapcat (fn [e] (repeat 30 e)) (index))) (exception-stream (index) (adjust [:metric + 1] (index))))",
    "(streams (where (not (expired? event)) (reinject)) (scale 2 (default :ttl 5 (index))) (delete-from-index) (apdex 5 (> metric 1) (< metric 1) (index)))",
    "(streams (moving-time-window 3 (combine folds/std-dev (index))) (fill-in 2 {:service \"f\"} (index)) (fill-in-last 2 {:state \"f\"} (index)) (predict-linear 3 5 (index)))",
];

const LIMITS: graph::Limits = graph::Limits {
    window_events: 20,
    forks: 12,
    fork_idle_us: 30_000_000,
    empty_windows: 10,
    pushes: 2_000,
    ..graph::Limits::DEFAULT
};
const INDEX: index::Limits = index::Limits { events_max: 16, bytes_max: 1 << 16 };
const LOAD: budget::Limits = budget::Limits { steps: 2_000_000, depth: 500, memory_bytes: 64 << 20 };
const EVENT: budget::Limits = budget::Limits { steps: 5_000, depth: 200, memory_bytes: 1 << 20 };

/// The corpus, those configs of it that need no other file, and [`CONFIGS`].
static ALL: LazyLock<Vec<String>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/riemann");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let texts = paths.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    CONFIGS.iter().map(|text| (*text).to_owned()).chain(texts).collect()
});

/// The bytes of the input, from which everything is chosen.
struct Input<'b>(&'b [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    fn long(&mut self) -> i64 {
        let mut bytes = [0; 8];
        bytes.fill_with(|| self.byte());
        i64::from_le_bytes(bytes)
    }

    /// One of few words, or some bytes of the input.
    fn word(&mut self) -> String {
        let choice = self.byte();
        match choice % 16 {
            0 => {
                let (some, rest) = self.0.split_at(usize::from(choice / 16).min(self.0.len()));
                self.0 = rest;
                String::from_utf8_lossy(some).into_owned()
            }
            1 => "expired".to_owned(),
            2 => "ok".to_owned(),
            3 => String::new(),
            number => format!("{}", char::from(b'a' + number - 4)),
        }
    }
}

fn setup(now_us: i64) -> Setup {
    Setup { now_us, seed: 7, graph: LIMITS, index: INDEX, load: LOAD, event: EVENT, testing: false }
}

fn load(text: &str, now_us: i64) -> Option<Engine> {
    let files = Files {
        main: "riemann.config".to_owned(),
        texts: BTreeMap::from([("riemann.config".to_owned(), Ok(text.to_owned()))]),
        ..Files::default()
    };
    Engine::load("riemann.config", Box::new(Recorded::new(files, 7)), setup(now_us)).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let mut text = &ALL[usize::from(input.byte()) % ALL.len()];
    let mut now_us = 1_700_000_000_000_000;
    let Some(mut engine) = load(text, now_us) else { return };
    let mut given = 0;
    for _ in 0..100 {
        if input.0.is_empty() {
            break;
        }
        match input.byte() % 16 {
            0..=9 => {
                let mut events = EventsBuilder::default();
                event(&mut input, &mut events, now_us);
                for event in events.view().iter() {
                    given += 1;
                    let _threw = engine.push(event);
                }
            }
            10 | 11 => {
                now_us += input.pick(&[0, 1, 999_999, 1_000_000, 5_000_000, 100_000_000, 90_000_000_000]);
                for _ in 0..20 {
                    if engine.advance(now_us, 100) {
                        break;
                    }
                }
            }
            12 => search(&mut input, &mut engine),
            13 => {
                engine = restored(text, engine, now_us);
                // Figures are those of a process.
                given = engine.figures().streamed;
            }
            14 => {
                let other = &ALL[usize::from(input.byte()) % ALL.len()];
                let Some(mut next) = load(other, now_us) else { continue };
                let figures = engine.figures();
                let _carried = next.adopt(engine);
                assert_eq!(next.figures().streamed, figures.streamed);
                (engine, text) = (next, other);
            }
            _ => drop(engine.effects().count()),
        }
        let _lines = engine.take_lines();
        assert!(engine.counts().forks() <= LIMITS.forks);
        assert!(engine.index().is_none_or(|index| index.len() <= INDEX.events_max as usize));
        assert!(engine.figures().streamed >= given, "each event goes through the streams");
    }
});

fn event(input: &mut Input<'_>, events: &mut EventsBuilder, now_us: i64) {
    let mut event = events.event();
    let has = input.byte();
    for (bit, field) in [TextField::Host, TextField::Service, TextField::State, TextField::Description]
        .into_iter()
        .enumerate()
    {
        if has & (1 << bit) != 0 {
            event.plain_text(field, &input.word());
        }
    }
    if has & 16 != 0 {
        let long = input.pick(&[0, 1, 2, 7, -1, i64::MAX, i64::MIN]);
        match input.byte() % 8 {
            0 => event.metric(NumberRef::F64(input.pick(&[
                f64::NAN,
                f64::INFINITY,
                -f64::INFINITY,
                f64::MAX,
                -0.0,
                5e-324,
            ]))),
            1 => event.metric(NumberRef::F32(input.pick(&[f32::NAN, f32::INFINITY, f32::MAX, 0.1]))),
            2 => event.metric(NumberRef::F64(f64::from_bits(input.long().cast_unsigned()))),
            3 => event.metric(NumberRef::BigInteger("-123456789012345678901234567890")),
            4 => event.metric(NumberRef::F64(long as f64 / 4.0)),
            _ => event.metric(NumberRef::I64(long)),
        }
    }
    match has >> 5 & 3 {
        0 => {}
        1 => event.time(EventTime::Micros(now_us.saturating_add(input.pick(&[
            0,
            -1,
            1_500_000,
            -9_000_000,
            1 << 50,
        ])))),
        2 => event.time(EventTime::Seconds(now_us / 1_000_000 + i64::from(input.byte()) - 20)),
        _ => event.time(EventTime::Seconds(input.pick(&[0, -1, i64::MAX, i64::MIN]))),
    }
    if has & 128 != 0 {
        event.ttl_s(input.pick(&[0.0, 1.0, 2.5, -1.0, f32::NAN, f32::INFINITY, f32::MAX, -f32::MAX]));
        let _limit = event.plain_tag(&input.word());
        let key = input.pick(&["a", "time", "ttl", "host", "metric", "tags", "b"]);
        let _limit = match input.byte() % 3 {
            0 => event.plain_attribute(key, &input.word()),
            1 => event.attribute(key, ValueRef::Bool(true)),
            _ => event.attribute(key, ValueRef::Nil),
        };
    }
    event.finish();
}

fn search(input: &mut Input<'_>, engine: &mut Engine) {
    let queries = [
        "true",
        "host = \"a\" and service = nil",
        "service =~ \"a%\" or tagged \"b\"",
        "not (metric > 1) and (state = \"ok\" or time > 0)",
        "description ~= \"(a|b)*c\"",
        "ttl < 5",
    ];
    let query = Arc::new(Query::new(input.pick(&queries)).expect("it is a query"));
    let limits = SearchLimits { results_max: 10, steps_max: 10_000 };
    let Some(mut search) = engine.search(&query, limits) else { return };
    let mut found = Vec::new();
    while engine.continue_search(&mut search, 100, &mut found) == Progress::More {}
    assert!(found.len() <= 10);
}

/// Another engine of the same config that goes on from a checkpoint.
fn restored(text: &str, mut engine: Engine, now_us: i64) -> Engine {
    let mut bytes = Vec::new();
    engine.save_begin(&mut bytes);
    while engine.save_slice(3, &mut bytes).is_none() {}
    let Some(mut next) = load(text, now_us) else { return engine };
    let restored = next.restore(std::iter::once(&bytes[..]));
    assert!(!restored.is_damaged && restored.dropped.is_empty(), "{restored:?}");
    let indexed = |engine: &Engine| engine.index().map(|index| index.len());
    assert_eq!(indexed(&next), indexed(&engine));
    let forks = [&next, &engine].map(|engine| engine.counts().forks());
    assert_eq!(forks[0], forks[1], "forks");
    next
}
