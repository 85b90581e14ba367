//! Parses metric lines as the DataDog agent does (spec statsd §5.2); `union` tries this first (§1).
//!
//! Path of a packet: `Parser::packet` -> **`dogstatsd::line`** or `union::line` -> `Parsed`.
//! Not here: events and service checks (`event`), lines with several types (`union`).
//! Invariant: a line gives all its samples or one reason, never a part of them.

use memchr::memchr;
use model::{Extra, GaugeOp, Kind, RawKey, Reject, Value};

use super::blank::line_trim_end;
use super::number::{strtod, whole_seconds};
use super::sink::{ParsedValue, Sink, check_key, weight_of};
use super::{Dialect, GaugeSign, Options, event};

/// Parses one line: a metric, an event or a service check.
pub(super) fn line(sink: &mut Sink<'_, '_>) {
    let Err(why) = event_or(sink, metric) else { return };
    sink.reject(why);
}

/// Parses an event or a service check if the line begins like one, and calls `otherwise` for other lines.
pub(super) fn event_or<'a, 'p>(
    sink: &mut Sink<'a, 'p>,
    otherwise: impl FnOnce(&mut Sink<'a, 'p>) -> Result<(), Reject>,
) -> Result<(), Reject> {
    if sink.line.starts_with(b"_e{") {
        event::event(sink)
    } else if sink.line.starts_with(b"_sc|") {
        event::check(sink)
    } else {
        sink.name(&sink.line[..memchr(b':', sink.line).unwrap_or(sink.line.len())]);
        otherwise(sink)
    }
}

/// `name:value…|type|field…`
pub(super) fn metric(sink: &mut Sink<'_, '_>) -> Result<(), Reject> {
    let line = sink.line;
    let colon = memchr(b':', line).ok_or(Reject::NoType)?;
    let (name, rest) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty() {
        return Err(Reject::NoName);
    }
    let pipe = memchr(b'|', rest).ok_or(Reject::NoType)?;
    let (values, rest) = (&rest[..pipe], &rest[pipe + 1..]);
    let (kind_text, rest) = match memchr(b'|', rest) {
        None => (rest, &rest[..0]),
        Some(at) => (&rest[..at], &rest[at + 1..]),
    };
    let metric_type = Type::read(sink.options(), kind_text).ok_or(Reject::BadType)?;
    let fields = Fields::read(sink.options(), rest)?;
    let key = RawKey { name, tags: fields.tags };
    check_key(sink.options(), key)?;
    fields.check_time(metric_type.kind)?;
    let mark = sink.mark();
    let extra = sink.extra(fields.extra(sink))?;
    read_values(sink, key, metric_type, values, &fields, extra).inspect_err(|_| sink.roll_back(mark))?;
    if fields.timestamp_s.is_some() && sink.expands_too_far(mark, key) {
        sink.roll_back(mark);
        return Err(Reject::TimestampUnsupported);
    }
    Ok(())
}

/// How a type interprets its values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    pub(super) kind: Kind,
    /// Values below 0 are invalid: `ms` in `union`, but not `h` and `d`.
    not_negative: bool,
}

impl Type {
    /// The types of DogStatsD; histograms and distributions are timers.
    pub(super) fn read(options: &Options, text: &[u8]) -> Option<Type> {
        let union = options.dialect == Dialect::Union;
        let text = if union { line_trim_end(text) } else { text };
        let (kind, not_negative) = match text {
            b"c" => (Kind::Counter, false),
            b"g" => (Kind::Gauge, false),
            b"ms" => (Kind::Timer, union && !options.allow_negative_timers),
            b"h" | b"d" => (Kind::Timer, false),
            b"s" => (Kind::Set, false),
            _ => return None,
        };
        Some(Type { kind, not_negative })
    }

    /// The value of a counter, gauge or timer; `parse` is the dialect's number parser.
    pub(super) fn number(
        self,
        options: &Options,
        text: &[u8],
        parse: impl FnOnce(&[u8], bool) -> Option<f64>,
    ) -> Result<(f64, GaugeOp), Reject> {
        let mut digits = text;
        let mut gauge_op = GaugeOp::Assign;
        if self.kind == Kind::Gauge && options.dialect == Dialect::Union {
            match text.first() {
                // `=` sets a gauge: the syntax for a negative value where a sign means a change.
                Some(b'=') => digits = &text[1..],
                Some(b'+' | b'-') if options.gauge_sign == GaugeSign::Delta => gauge_op = GaugeOp::Delta,
                _ => {}
            }
        }
        let number = parse(digits, options.strict_numbers).ok_or(Reject::BadValue)?;
        if !number.is_finite() {
            return Err(Reject::NonFinite);
        }
        if self.not_negative && number < 0.0 {
            return Err(Reject::NegativeTimer);
        }
        Ok((number, gauge_op))
    }
}

/// Parses the values of a line, `1:2:3`; on an error some samples may have been added.
fn read_values<'a>(
    sink: &mut Sink<'a, '_>,
    key: RawKey<'a>,
    metric_type: Type,
    values: &'a [u8],
    fields: &Fields<'a>,
    extra: u16,
) -> Result<(), Reject> {
    let kind = metric_type.kind;
    if kind == Kind::Set {
        // Members are texts and may contain a colon: a set has one value.
        if values.is_empty() {
            return Err(Reject::BadValue);
        }
        let reading = ParsedValue { kind, value: sink.text(values), gauge_op: GaugeOp::Assign };
        sink.sample(key, reading, 1.0, extra);
        return Ok(());
    }
    let weight = if kind == Kind::Gauge { 1.0 } else { fields.weight.unwrap_or(1.0) };
    let mut empty = true;
    for text in values.split(|&byte| byte == b':').filter(|text| !text.is_empty()) {
        let (number, gauge_op) = metric_type.number(sink.options(), text, strtod)?;
        let gauge_op = fields.gauge_op(gauge_op);
        sink.sample(key, ParsedValue { kind, value: Value::Number(number), gauge_op }, weight, extra);
        empty = false;
    }
    if empty { Err(Reject::BadValue) } else { Ok(()) }
}

/// The fields after a type. Of a repeated field the last one counts; unknown ones are ignored, for compatibility with
/// new versions of the protocol.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields<'a> {
    /// `@`: `1 / rate`.
    pub(super) weight: Option<f64>,
    /// `#`, without it.
    pub(super) tags: &'a [u8],
    /// `T`: Unix seconds.
    pub(super) timestamp_s: Option<u64>,
    /// `c:`
    container: &'a [u8],
    /// `e:`
    external: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Parses fields joined with `|`.
    pub(super) fn read(options: &Options, text: &'a [u8]) -> Result<Fields<'a>, Reject> {
        let mut fields = Fields::default();
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr(b'|', rest).unwrap_or(rest.len());
            match &rest[..end] {
                [b'@', rate @ ..] => {
                    let rate = strtod(rate, options.strict_numbers).ok_or(Reject::BadRate)?;
                    fields.weight = Some(weight_of(options, rate).ok_or(Reject::BadRate)?);
                }
                [b'#', tags @ ..] => fields.tags = tags,
                [b'T', time @ ..] => {
                    fields.timestamp_s = Some(whole_seconds(time).ok_or(Reject::BadTimestamp)?)
                }
                [b'c', b':', container @ ..] => fields.container = container,
                [b'e', b':', external @ ..] => fields.external = external,
                _ => {}
            }
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        Ok(fields)
    }

    /// An error when there is a time and `kind` cannot have one.
    pub(super) fn check_time(&self, kind: Kind) -> Result<(), Reject> {
        match (self.timestamp_s, kind) {
            (Some(_), Kind::Timer | Kind::Set) => Err(Reject::TimestampUnsupported),
            _ => Ok(()),
        }
    }

    /// A gauge with a time in the past is absolute: nothing is stored for that time that it could change.
    pub(super) fn gauge_op(&self, gauge_op: GaugeOp) -> GaugeOp {
        if self.timestamp_s.is_some() { GaugeOp::Assign } else { gauge_op }
    }

    /// The rare fields of a sample.
    pub(super) fn extra(&self, sink: &Sink<'_, '_>) -> Extra {
        Extra {
            timestamp_s: self.timestamp_s,
            container: sink.span(self.container),
            external: sink.span(self.external),
        }
    }
}
