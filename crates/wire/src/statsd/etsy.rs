//! Parses lines as node statsd does (spec statsd §2).

use memchr::{memchr, memmem};
use model::{GaugeOp, Kind, RawKey, Reject, Value};

use super::Options;
use super::blank::{js_trim, js_trim_end};
use super::number::{decimal, js_parse};
use super::sink::{ParsedValue, Sink, check_key, weight_of};

/// Parses one line: each bit of it ends as a sample or as a reject.
pub(super) fn line(sink: &mut Sink<'_, '_>) {
    let line = sink.line;
    let (head, tags) = match memmem::find(line, b"|#") {
        None => (line, &line[..0]),
        Some(at) => {
            let tags = &line[at + 2..];
            (&line[..at], &tags[..memmem::find(tags, b"|#").unwrap_or(tags.len())])
        }
    };
    if memchr(b'|', tags).is_some() {
        sink.into.glued_tag_fields += 1;
    }
    let (name, bits) = match memchr(b':', head) {
        None => (head, None),
        Some(at) => (&head[..at], Some(&head[at + 1..])),
    };
    sink.name(name);
    let key = RawKey { name, tags };
    if let Err(why) = check_key(sink.options(), key) {
        return sink.reject(why);
    }
    // Without a bit there is no type either.
    let Some(bits) = bits else { return sink.reject(Reject::NoType) };
    for bit in bits.split(|&byte| byte == b':') {
        match read_bit(sink, bit) {
            Ok((reading, weight)) => sink.sample(key, reading, weight, 0),
            Err(why) => sink.reject(why),
        }
    }
}

/// One `value|type|@rate`.
fn read_bit(sink: &Sink<'_, '_>, bit: &[u8]) -> Result<(ParsedValue, f64), Reject> {
    let options = sink.options();
    let mut fields = bit.split(|&byte| byte == b'|');
    let value = fields.next().unwrap_or_default();
    let kind_text = fields.next().ok_or(Reject::NoType)?;
    let weight = match fields.next() {
        None => 1.0,
        Some(field) if options.compat_quirks => node_rate_weight(options, field).ok_or(Reject::BadRate)?,
        Some(field) => rate_weight(options, field).ok_or(Reject::BadRate)?,
    };
    let kind = match js_trim(kind_text) {
        b"ms" => Kind::Timer,
        b"g" => Kind::Gauge,
        b"s" => Kind::Set,
        _ => Kind::Counter,
    };
    // Node validates the raw text and dispatches on the trimmed one: `s\r` is a set whose members must be numbers.
    if kind_text != b"s" {
        let number = js_parse(value, options.strict_numbers).ok_or(Reject::BadValue)?;
        if !number.is_finite() && !options.compat_quirks {
            return Err(Reject::NonFinite);
        }
        if kind == Kind::Timer && number < 0.0 && (kind_text == b"ms" || !options.compat_quirks) {
            return Err(Reject::NegativeTimer);
        }
        if kind != Kind::Set {
            let signed = kind == Kind::Gauge && matches!(value.first(), Some(b'+' | b'-'));
            let gauge_op = if signed { GaugeOp::Delta } else { GaugeOp::Assign };
            let weight = if kind == Kind::Gauge { 1.0 } else { weight };
            return Ok((ParsedValue { kind, value: Value::Number(number), gauge_op }, weight));
        }
    }
    Ok((ParsedValue { kind, value: sink.text(value), gauge_op: GaugeOp::Assign }, 1.0))
}

/// Weight of a rate field: `@`, a plain decimal without sign, and optional white space.
pub(super) fn rate_weight(options: &Options, field: &[u8]) -> Option<f64> {
    let text = js_trim_end(field.strip_prefix(b"@")?);
    if matches!(text.first(), Some(b'+' | b'-')) {
        return None;
    }
    weight_of(options, decimal(text)?)
}

/// Weight of a rate field in node: the whole must be a number that does not begin with `-`, and the value is the run of
/// digits and dots right after the `@`. Where there is no such run node crashes; here the line is rejected.
fn node_rate_weight(options: &Options, field: &[u8]) -> Option<f64> {
    let text = field.strip_prefix(b"@")?;
    if text.first() == Some(&b'-') {
        return None;
    }
    js_parse(text, options.strict_numbers)?;
    let run_len = text.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'.')).count();
    let rate = decimal(&text[..run_len])?;
    (rate >= options.rate_min).then_some(1.0 / rate)
}
