//! Cost of output: a name that arrives once may be written for each of its values.
//!
//! Lines are parsed, and the daemon's output for them is written, line by line and series by series, into reused
//! memory.
//! Not here: which lines an output gets (`process::stage`), and windows (`process::aggregate`): each packet is one.

use model::{FlushInfo, Flushed, Kind, Label, SeriesRef, Span, Value};

use crate::graphite::{Encoder, Namespace};
use crate::statsd::rewrite::{AggregateEncoder, AggregateEncoding, Form, Rewrite, RewritePlan};
use crate::statsd::{self, Dialect, Parsed};
use crate::steps::touch;

/// A writer of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// A rewriting endpoint with this format, which gets every other line.
    Rewritten(Form),
    /// Aggregates sent on as samples: several values in a line, or one.
    SentOn {
        /// See [`AggregateEncoding::packed`].
        packed: bool,
    },
    /// Points of samples with a time.
    Points,
}

impl Writer {
    /// All writers, in each named format.
    pub fn all() -> impl Iterator<Item = Writer> {
        let others = [Writer::SentOn { packed: false }, Writer::SentOn { packed: true }, Writer::Points];
        Form::NAMED.into_iter().map(|(_, form)| Writer::Rewritten(form)).chain(others)
    }
}

/// Parses `bytes` and writes the output for them.
pub(super) fn run(writer: Writer, bytes: &[u8]) {
    match writer {
        Writer::Rewritten(form) => rewritten(form, bytes),
        Writer::SentOn { packed } => sent_on(packed, bytes),
        Writer::Points => points(bytes),
    }
}

fn rewritten(form: Form, bytes: &[u8]) {
    let rewrite =
        Rewrite::new(&RewritePlan { to: form, ..RewritePlan::default() }).expect("a form is a plan");
    let mut text = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        touch(line.len());
        text.clear();
        if let Ok(parts) = statsd::rewrite::parts(line) {
            rewrite.write(&parts, Some(0.5), &mut text);
            touch(text.len());
        }
    }
}

/// The samples, without a limit on keys.
fn samples(dialect: Dialect, bytes: &[u8]) -> Parsed {
    let options = statsd::Options { key_bytes_max: 0, ..statsd::Options::of(dialect) };
    let mut parsed = Parsed::default();
    statsd::Parser::new(options, 1).packet(bytes, Span::new(0, bytes.len()), 0, &mut parsed);
    parsed
}

fn sent_on(packed: bool, bytes: &[u8]) {
    let parsed = samples(Dialect::Union, bytes);
    // Long names do not fit a line with several values, in both sizes of an input.
    let form = AggregateEncoding { packed, line_bytes_max: 256, ..AggregateEncoding::dogstatsd() };
    let mut encoder = AggregateEncoder::new(form).expect("a form is a plan");
    let (labels, mut text) = ([Label::from("count")], Vec::new());
    for own in parsed.samples.chunk_by(|one, next| (one.name, one.tags) == (next.name, next.tags)) {
        let series = SeriesRef { name: own[0].name.of(bytes), tags: own[0].tags.of(bytes), clean: false };
        let (mut values, mut members) = (Vec::new(), Vec::new());
        for sample in own {
            match sample.value {
                Value::Number(value) => values.push(value),
                Value::Text(member) => members.push(member.of(bytes)),
            }
        }
        let (count, members) = (members.len() as u64, members.join(&b'\n'));
        let aggregates = [(0, values.len() as f64)];
        for flushed in [
            Flushed::Timer { series, labels: &labels, aggregates: &aggregates, values: &values },
            Flushed::Set { series, count, members: &members },
        ] {
            text.clear();
            encoder.encode(&flushed, &mut text);
            touch(text.len());
        }
    }
}

fn points(bytes: &[u8]) {
    let parsed = samples(Dialect::Union, bytes);
    let mut encoder = Encoder::new(Namespace::default());
    let mut text = Vec::new();
    for sample in &parsed.samples {
        let extra = usize::from(sample.extra).checked_sub(1).and_then(|at| parsed.extras.get(at));
        let time_s = extra.and_then(|extra| extra.timestamp_s);
        let (Some(time_s), Value::Number(value), Kind::Counter | Kind::Gauge) =
            (time_s, sample.value, sample.kind)
        else {
            continue;
        };
        let series = SeriesRef { name: sample.name.of(bytes), tags: sample.tags.of(bytes), clean: false };
        text.clear();
        let info = FlushInfo { time_s, window_s: 1.0, elapsed_s: 1.0 };
        encoder.lines(&info, &Flushed::Timestamped { series, kind: sample.kind, value, time_s }, &mut text);
        touch(text.len());
    }
}
