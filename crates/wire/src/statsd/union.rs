//! The superset for mixed clients (spec statsd §1): parsed as in DogStatsD if the line is valid there, else as in node.

use memchr::{memchr, memmem};
use model::{GaugeOp, Kind, RawKey, Reject, Value};

use super::blank::js_trim;
use super::dogstatsd::{Fields, Type, event_or, metric};
use super::etsy;
use super::number::js_parse;
use super::sink::{ParsedValue, Sink, check_key};

/// Parses one line.
pub(super) fn line(sink: &mut Sink<'_, '_>) {
    let read = event_or(sink, |sink| match metric(sink) {
        // The line is valid in DogStatsD and one of our own rules rejects it: it is not parsed as in node.
        Err(why @ (Reject::BadTimestamp | Reject::TimestampUnsupported | Reject::NegativeTimer)) => Err(why),
        Err(_) if bits(sink) => Ok(()),
        whole => whole,
    });
    if let Err(why) = read {
        sink.reject(why);
    }
}

/// `name:value|type|@rate:value|type|@rate…` as node parses it, but with DogStatsD's types and tags. Fields after the
/// tags apply to every bit that does not override them.
///
/// False, and nothing added, when no bit is valid.
fn bits(sink: &mut Sink<'_, '_>) -> bool {
    let line = sink.line;
    let (head, tail) = match memmem::find(line, b"|#") {
        None => (line, &line[..0]),
        Some(at) => (&line[..at], &line[at + 1..]),
    };
    let Some(colon) = memchr(b':', head) else { return false };
    let Ok(fields) = Fields::read(sink.options(), tail) else { return false };
    let key = RawKey { name: &head[..colon], tags: fields.tags };
    if check_key(sink.options(), key).is_err() {
        return false;
    }
    let mark = sink.mark();
    let Ok(extra) = sink.extra(fields.extra(sink)) else { return false };
    let mut bad = [0_u64; Reject::COUNT];
    let mut first_bad = None;
    for bit in head[colon + 1..].split(|&byte| byte == b':') {
        match read_bit(sink, bit, &fields) {
            // Samples with a time are written at once, with the whole name.
            Ok(_) if fields.timestamp_s.is_some() && sink.expands_too_far(mark, key) => {
                bad[Reject::TimestampUnsupported.index()] += 1;
                first_bad = first_bad.or(Some(Reject::TimestampUnsupported));
            }
            Ok((reading, weight)) => sink.sample(key, reading, weight, extra),
            Err(why) => {
                bad[why.index()] += 1;
                first_bad = first_bad.or(Some(why));
            }
        }
    }
    if sink.mark().samples == mark.samples {
        sink.roll_back(mark);
        return false;
    }
    if let Some(first) = first_bad {
        sink.reject_bits(first, &bad);
    }
    true
}

/// One `value|type|@rate`.
fn read_bit(sink: &Sink<'_, '_>, bit: &[u8], line_fields: &Fields<'_>) -> Result<(ParsedValue, f64), Reject> {
    let options = sink.options();
    let mut fields = bit.split(|&byte| byte == b'|');
    let value = fields.next().unwrap_or_default();
    let kind_text = fields.next().ok_or(Reject::NoType)?;
    let metric_type = Type::read(options, js_trim(kind_text)).ok_or(Reject::BadType)?;
    let kind = metric_type.kind;
    let weight = match fields.next() {
        None => line_fields.weight.unwrap_or(1.0),
        Some(field) => etsy::rate_weight(options, field).ok_or(Reject::BadRate)?,
    };
    line_fields.check_time(kind)?;
    if kind == Kind::Set {
        return Ok((ParsedValue { kind, value: sink.text(value), gauge_op: GaugeOp::Assign }, 1.0));
    }
    let (number, gauge_op) = metric_type.number(options, value, js_parse)?;
    let gauge_op = line_fields.gauge_op(gauge_op);
    let weight = if kind == Kind::Gauge { 1.0 } else { weight };
    Ok((ParsedValue { kind, value: Value::Number(number), gauge_op }, weight))
}
