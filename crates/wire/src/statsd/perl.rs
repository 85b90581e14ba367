//! Parses lines as Net::Statsd::Server does (spec statsd §4).

use memchr::memchr;
use model::{GaugeOp, Kind, RawKey, Reject, Value};

use super::blank::perl_trim;
use super::number::{decimal_prefix, perl_number};
use super::sink::{ParsedValue, Sink, check_key};

/// Parses one line: each bit of it ends as a sample or as a reject. An empty line counts when another one follows it.
pub(super) fn line(sink: &mut Sink<'_, '_>) {
    if sink.line.is_empty() {
        return sink.reject(Reject::EmptyLine);
    }
    // By §4 alone some events would count as 0 under a garbage name; by §1 they are rejected.
    if sink.line.starts_with(b"_e{") || sink.line.starts_with(b"_sc|") {
        return sink.reject(Reject::BadType);
    }
    // Perl's `split` drops empty pieces at the end, of lines as of fields.
    let line = without_trailing(sink.line, b':');
    let (name, bits) = match memchr(b':', line) {
        None => (line, None),
        Some(at) => (&line[..at], Some(&line[at + 1..])),
    };
    sink.name(name);
    let key = RawKey { name, tags: &[] };
    if let Err(why) = check_key(sink.options(), key) {
        return sink.reject(why);
    }
    let Some(bits) = bits else { return sink.reject(Reject::NoType) };
    for bit in bits.split(|&byte| byte == b':') {
        match read_bit(sink, bit) {
            Ok((reading, weight)) => sink.sample(key, reading, weight, 0),
            Err(why) => sink.reject(why),
        }
    }
}

fn without_trailing(text: &[u8], byte: u8) -> &[u8] {
    &text[..text.iter().rposition(|&other| other != byte).map_or(0, |last| last + 1)]
}

/// One `value|type|@rate`.
fn read_bit(sink: &Sink<'_, '_>, bit: &[u8]) -> Result<(ParsedValue, f64), Reject> {
    let mut fields = without_trailing(bit, b'|').split(|&byte| byte == b'|');
    let value = fields.next().unwrap_or_default();
    let kind_text = fields.next().filter(|text| !text.is_empty()).ok_or(Reject::NoType)?;
    let kind = match perl_trim(kind_text) {
        b"ms" => Kind::Timer,
        b"g" => Kind::Gauge,
        b"s" => Kind::Set,
        _ => Kind::Counter,
    };
    if kind == Kind::Set {
        return Ok((ParsedValue { kind, value: sink.text(value), gauge_op: GaugeOp::Assign }, 1.0));
    }
    // Only counters use the rate, and only they read an empty value as 1.
    let weight = match fields.next() {
        Some(field) if kind == Kind::Counter => rate_weight(sink, field).ok_or(Reject::BadRate)?,
        _ => 1.0,
    };
    let number = if kind == Kind::Counter && value.is_empty() { 1.0 } else { perl_number(value) };
    if !number.is_finite() {
        return Err(Reject::NonFinite);
    }
    Ok((ParsedValue { kind, value: Value::Number(number), gauge_op: GaugeOp::Assign }, weight))
}

/// Weight of a rate field: `@` and at least one digit or dot; the text after their run is ignored.
fn rate_weight(sink: &Sink<'_, '_>, field: &[u8]) -> Option<f64> {
    let text = field.strip_prefix(b"@")?;
    let run_len = text.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'.')).count();
    let rate = decimal_prefix(&text[..run_len]);
    let weight = 1.0 / rate;
    // In the original program a rate of 0 loses the rest of the datagram.
    (weight.is_finite() && rate.is_finite() && rate >= sink.options().rate_min).then_some(weight)
}
