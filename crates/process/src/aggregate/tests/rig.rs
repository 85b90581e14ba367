//! Test rig: a small dialect and a printer of flushes, so that tests are text in, text out.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use model::{
    Canonical, Extra, FlushInfo, Flushed, GaugeOp, Kind, Now, RawKey, Sample, SampleView, Span, Value,
};

use crate::aggregate::{
    Added, AggregatePlan, Aggregator, ExpiryPlan, FlushAlign, FlushEnd, SeriesExpiry, Tick,
};

/// Time of the rig's clock: `ms` monotonic, and a million seconds later on the wall clock.
pub(super) fn at(ms: u64) -> Now {
    Now { mono_ns: ms * 1_000_000, wall_ns: (1_000_000_000 + ms) * 1_000_000 }
}

pub(super) const T0_S: u64 = 1_000_000;

/// Windows of 2 s, node's defaults, no series expires.
pub(super) fn plan() -> AggregatePlan {
    AggregatePlan {
        window_ms: 2000,
        align: FlushAlign::Start,
        timer_weights: false,
        timer_exact_max: 0,
        idle: idle(SeriesExpiry::Keep),
        ..AggregatePlan::default()
    }
}

pub(super) fn idle(idle: SeriesExpiry) -> ExpiryPlan {
    ExpiryPlan { counters: idle, gauges: idle, timers: idle, sets: idle }
}

pub(super) type Hash = fn(Kind, &[u8], &[u8]) -> u64;

pub(super) fn good_hash(kind: Kind, name: &[u8], tags: &[u8]) -> u64 {
    FixedState::with_seed(11).hash_one((kind as u8, name, tags))
}

/// Canonical form of the rig's dialect: `/` becomes `-`, tags are sorted.
pub(super) fn canonical(hash: Hash, kind: Kind, raw: RawKey<'_>, out: &mut Vec<u8>) -> Canonical {
    out.clear();
    out.extend(raw.name.iter().map(|byte| if *byte == b'/' { b'-' } else { *byte }));
    let name_len = out.len();
    let mut tags: Vec<&[u8]> = raw.tags.split(|byte| *byte == b',').collect();
    tags.sort_unstable();
    out.extend(tags.join(&b','));
    let (name, tags) = out.split_at(name_len);
    Canonical { name_len, clean: true, hash: hash(kind, name, tags) }
}

/// An aggregator, and all that it emitted as text.
pub(super) struct Rig {
    pub(super) aggregator: Aggregator,
    pub(super) hash: Hash,
    pub(super) emitted: Vec<String>,
    /// Number of calls of `canonical`.
    pub(super) canonical_calls: usize,
}

impl Rig {
    pub(super) fn new(plan: AggregatePlan) -> Rig {
        Rig {
            aggregator: Aggregator::new(plan, at(0)),
            hash: good_hash,
            emitted: Vec::new(),
            canonical_calls: 0,
        }
    }

    /// Adds one line per sample: `name:value|type[|@rate][|#tags][|Ttime]`. All lines must be valid.
    pub(super) fn add(&mut self, ms: u64, lines: &str) -> Added {
        self.add_bytes(ms, lines.as_bytes())
    }

    pub(super) fn add_bytes(&mut self, ms: u64, lines: &[u8]) -> Added {
        self.add_packed(ms, lines, 1)
    }

    /// The same, with `values` equal values in each line.
    pub(super) fn add_packed(&mut self, ms: u64, lines: &[u8], values: usize) -> Added {
        let mut extras = Vec::new();
        let samples: Vec<Sample> = lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                let start = line.as_ptr() as usize - lines.as_ptr() as usize;
                parse(line, start, self.hash, &mut extras)
            })
            .flat_map(|sample| std::iter::repeat_n(sample, values))
            .collect();
        let view = SampleView { bytes: lines, samples: &samples, extras: &extras };
        let Rig { aggregator, hash, emitted, canonical_calls } = self;
        aggregator.add(
            view,
            at(ms),
            |kind, raw, out| {
                *canonical_calls += 1;
                canonical(*hash, kind, raw, out)
            },
            |info, flushed| emitted.push(text(info, &flushed)),
        )
    }

    pub(super) fn tick(&mut self, ms: u64, budget: usize) -> Tick {
        let Rig { aggregator, emitted, .. } = self;
        aggregator.tick(at(ms), budget, |info, flushed| emitted.push(text(info, &flushed)))
    }

    /// Ticks at `ms` until the sweep has ended; the window must be due.
    pub(super) fn flush(&mut self, ms: u64) -> FlushEnd {
        assert!(matches!(self.tick(ms, 1), Tick::Started(_)));
        loop {
            match self.tick(ms, 3) {
                Tick::Sweeping => {}
                Tick::Ended(end) => return end,
                other => panic!("{other:?} in the middle of a sweep"),
            }
        }
    }

    /// Everything emitted since the last call, sorted, one line each.
    pub(super) fn take(&mut self) -> String {
        self.emitted.sort_unstable();
        std::mem::take(&mut self.emitted).join("\n")
    }

    /// Everything that a flush at `ms` emits, without its time.
    pub(super) fn flushed(&mut self, ms: u64) -> String {
        self.flush(ms);
        let all = self.take();
        all.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(_, rest)| rest)
            .collect::<Vec<_>>()
            .join("; ")
    }
}

fn parse(line: &[u8], start: usize, hash: Hash, extras: &mut Vec<Extra>) -> Sample {
    let colon = line.iter().position(|byte| *byte == b':').expect("a colon");
    let mut fields = line[colon + 1..].split(|byte| *byte == b'|');
    let span = |part: &[u8]| Span::new(start + part.as_ptr() as usize - line.as_ptr() as usize, part.len());
    let value = fields.next().expect("a value");
    let kind = match fields.next().expect("a type") {
        b"c" => Kind::Counter,
        b"g" => Kind::Gauge,
        b"ms" => Kind::Timer,
        b"s" => Kind::Set,
        other => panic!("type {}", other.escape_ascii()),
    };
    let mut sample = Sample {
        hash: 0,
        value: Value::Text(span(value)),
        weight: 1.0,
        name: span(&line[..colon]),
        tags: Span::new(start, 0),
        kind,
        gauge_op: GaugeOp::Assign,
        extra: 0,
    };
    let number = |text: &[u8]| str::from_utf8(text).expect("text").parse::<f64>().expect("a number");
    if kind != Kind::Set {
        sample.value = Value::Number(number(value));
        if kind == Kind::Gauge && matches!(value[0], b'+' | b'-') {
            sample.gauge_op = GaugeOp::Delta;
        }
    }
    let mut tags: &[u8] = b"";
    for field in fields {
        match field[0] {
            b'@' => sample.weight = 1.0 / number(&field[1..]),
            b'#' => tags = &field[1..],
            b'T' => {
                extras.push(Extra { timestamp_s: Some(number(&field[1..]) as u64), ..Extra::default() });
                sample.extra = extras.len() as u16;
            }
            other => panic!("field {other}"),
        }
    }
    if !tags.is_empty() {
        sample.tags = span(tags);
    }
    sample.hash = hash(kind, &line[..colon], tags);
    sample
}

/// `time kind name[,tags] values…`
pub(super) fn text(info: &FlushInfo, flushed: &Flushed<'_>) -> String {
    let key = |series: &model::SeriesRef<'_>| {
        let mut text = series.name.escape_ascii().to_string();
        if !series.tags.is_empty() {
            text += &format!("[{}]", series.tags.escape_ascii());
        }
        text
    };
    let time = info.time_s as i64 - T0_S as i64;
    match flushed {
        Flushed::Counter { series, count, rate } => format!("{time} c {} {count:?} {rate:?}", key(series)),
        Flushed::Gauge { series, value } => format!("{time} g {} {value:?}", key(series)),
        Flushed::Timer { series, labels, aggregates, .. } => {
            let mut text = format!("{time} t {}", key(series));
            for (label, value) in *aggregates {
                text += &format!(" {}={value:?}", labels[usize::from(*label)]);
            }
            text
        }
        Flushed::Set { series, count, members } => {
            format!("{time} s {} {count} {}", key(series), members.escape_ascii())
        }
        Flushed::Timestamped { series, kind, value, time_s } => {
            format!("{time} T{time_s} {} {} {value:?}", kind.word(), key(series))
        }
    }
}
