//! Dialects `dogstatsd` (spec §5) and `union` (spec §1).

use model::{GaugeOp, Kind, Reject};

use super::super::{Dialect, GaugeSign, Options};
use super::classic::{etsy_rate, in_range};
use super::line::{Line, ReadEvent, ReadSample, ReadValue, key_within_limits, split};
use super::number::{go_number, js_number, js_trim};

pub(super) fn dogstatsd(options: &Options, text: &[u8], now_s: u64) -> Line {
    if let Some(line) = event_line(options, text, now_s) {
        return line;
    }
    let name = Some(split(text, b":").remove(0));
    match metric(options, text) {
        Ok(samples) => Line { samples, name, ..Line::default() },
        Err(why) => Line { name, ..Line::bad(why) },
    }
}

pub(super) fn union(options: &Options, text: &[u8], now_s: u64) -> Line {
    let dogstatsd = dogstatsd(options, text, now_s);
    match dogstatsd.rejects[..] {
        [] => return dogstatsd,
        // Rows of §1 that reject lines valid in DogStatsD, and lines that only DogStatsD accepts.
        [Reject::BadTimestamp | Reject::TimestampUnsupported | Reject::NegativeTimer] => return dogstatsd,
        [Reject::BadEvent | Reject::BadCheck] => return dogstatsd,
        _ if text.starts_with(b"_e{") || text.starts_with(b"_sc|") => return dogstatsd,
        _ => {}
    }
    match union_bits(options, text) {
        Some(line) if !line.samples.is_empty() => Line { name: dogstatsd.name, ..line },
        _ => dogstatsd,
    }
}

fn event_line(options: &Options, text: &[u8], now_s: u64) -> Option<Line> {
    let event = if text.starts_with(b"_e{") {
        event(options, text, now_s)
    } else if text.starts_with(b"_sc|") {
        check(options, text, now_s)
    } else {
        return None;
    };
    Some(match event {
        Ok((event, ignored)) => Line { event: Some(event), event_fields_ignored: ignored, ..Line::default() },
        Err(why) => Line::bad(why),
    })
}

/// A type's kind, and whether its values may be negative.
fn type_of(options: &Options, text: &[u8]) -> Option<(Kind, bool)> {
    let mut text = text.to_vec();
    while options.dialect == Dialect::Union && matches!(text.last(), Some(b'\r' | b' ' | b'\t')) {
        text.pop();
    }
    match text.as_slice() {
        b"c" => Some((Kind::Counter, true)),
        b"g" => Some((Kind::Gauge, true)),
        b"s" => Some((Kind::Set, true)),
        b"h" | b"d" => Some((Kind::Timer, true)),
        b"ms" => Some((Kind::Timer, options.dialect == Dialect::Dogstatsd || options.allow_negative_timers)),
        _ => None,
    }
}

#[derive(Default)]
struct Fields {
    rate: Option<f64>,
    tags: Vec<u8>,
    timestamp_s: Option<u64>,
    container: Vec<u8>,
    external: Vec<u8>,
}

fn fields_of(options: &Options, texts: &[Vec<u8>]) -> Result<Fields, Reject> {
    let mut fields = Fields::default();
    for text in texts {
        if let Some(rate) = text.strip_prefix(b"@") {
            let rate = go_number(rate, options.strict_numbers).ok_or(Reject::BadRate)?;
            fields.rate = Some(in_range(options, rate).ok_or(Reject::BadRate)?);
        } else if let Some(tags) = text.strip_prefix(b"#") {
            fields.tags = tags.to_vec();
        } else if let Some(time) = text.strip_prefix(b"T") {
            fields.timestamp_s = Some(seconds(time).ok_or(Reject::BadTimestamp)?);
        } else if let Some(container) = text.strip_prefix(b"c:") {
            fields.container = container.to_vec();
        } else if let Some(external) = text.strip_prefix(b"e:") {
            fields.external = external.to_vec();
        }
    }
    Ok(fields)
}

fn seconds(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds: i64 = String::from_utf8_lossy(text).parse().ok()?;
    (seconds > 0).then_some(seconds as u64)
}

fn metric(options: &Options, text: &[u8]) -> Result<Vec<ReadSample>, Reject> {
    let mut colons = split(text, b":");
    let name = colons.remove(0);
    if colons.is_empty() {
        return Err(Reject::NoType);
    }
    if name.is_empty() {
        return Err(Reject::NoName);
    }
    let mut pieces = split(&colons.join(&b":"[..]), b"|");
    let values = pieces.remove(0);
    if pieces.is_empty() {
        return Err(Reject::NoType);
    }
    let (kind, negative_ok) = type_of(options, &pieces.remove(0)).ok_or(Reject::BadType)?;
    let fields = fields_of(options, &pieces)?;
    key_within_limits(options, &name, &fields.tags)?;
    if fields.timestamp_s.is_some() && kind != Kind::Counter && kind != Kind::Gauge {
        return Err(Reject::TimestampUnsupported);
    }
    if kind == Kind::Set {
        if values.is_empty() {
            return Err(Reject::BadValue);
        }
        return Ok(vec![sample(&name, &fields, kind, ReadValue::Text(values), GaugeOp::Assign)]);
    }
    let mut samples = Vec::new();
    for value in split(&values, b":") {
        if !value.is_empty() {
            let parse = |digits: &[u8]| go_number(digits, options.strict_numbers);
            let (number, gauge_op) = number_of(options, kind, negative_ok, &value, parse)?;
            samples.push(sample(&name, &fields, kind, ReadValue::Bits(number.to_bits()), gauge_op));
        }
    }
    if fields.timestamp_s.is_some() && too_far(samples.len(), &name, &fields, text) {
        return Err(Reject::TimestampUnsupported);
    }
    if samples.is_empty() { Err(Reject::BadValue) } else { Ok(samples) }
}

/// Samples with a time are written one by one: the limit is 64 KiB plus 256 bytes for each byte of the line, up to 4
/// MiB.
fn too_far(samples: usize, name: &[u8], fields: &Fields, text: &[u8]) -> bool {
    samples * (name.len() + fields.tags.len()) > (65_536 + 256 * text.len()).min(4 << 20)
}

fn number_of(
    options: &Options,
    kind: Kind,
    negative_ok: bool,
    value: &[u8],
    parse: impl Fn(&[u8]) -> Option<f64>,
) -> Result<(f64, GaugeOp), Reject> {
    let union_gauge = kind == Kind::Gauge && options.dialect == Dialect::Union;
    let (digits, gauge_op) = if union_gauge && value.starts_with(b"=") {
        (&value[1..], GaugeOp::Assign)
    } else if union_gauge
        && options.gauge_sign == GaugeSign::Delta
        && (value.starts_with(b"+") || value.starts_with(b"-"))
    {
        (value, GaugeOp::Delta)
    } else {
        (value, GaugeOp::Assign)
    };
    let number = parse(digits).ok_or(Reject::BadValue)?;
    if !number.is_finite() {
        return Err(Reject::NonFinite);
    }
    if number < 0.0 && !negative_ok {
        return Err(Reject::NegativeTimer);
    }
    Ok((number, gauge_op))
}

fn sample(name: &[u8], fields: &Fields, kind: Kind, value: ReadValue, gauge_op: GaugeOp) -> ReadSample {
    let weighted = kind == Kind::Counter || kind == Kind::Timer;
    ReadSample {
        weight: if weighted { fields.rate.map_or(1.0, |rate| 1.0 / rate) } else { 1.0 },
        gauge_op: if fields.timestamp_s.is_some() { GaugeOp::Assign } else { gauge_op },
        timestamp_s: fields.timestamp_s,
        container: fields.container.clone(),
        external: fields.external.clone(),
        ..ReadSample::new(kind, name, &fields.tags, value)
    }
}

/// Parsed as in node, with DogStatsD's types and tags; fields after the tags apply to the whole line.
fn union_bits(options: &Options, text: &[u8]) -> Option<Line> {
    let mut pieces = split(text, b"|#");
    let head = pieces.remove(0);
    let fields = if pieces.is_empty() {
        Fields::default()
    } else {
        let tail = [b"#", pieces.join(&b"|#"[..]).as_slice()].concat();
        fields_of(options, &split(&tail, b"|")).ok()?
    };
    let mut bits = split(&head, b":");
    let name = bits.remove(0);
    key_within_limits(options, &name, &fields.tags).ok()?;
    let mut line = Line::default();
    for bit in bits {
        match union_bit(options, &name, &fields, &split(&bit, b"|")) {
            Ok(_) if fields.timestamp_s.is_some() && too_far(line.samples.len(), &name, &fields, text) => {
                line.rejects.push(Reject::TimestampUnsupported);
            }
            Ok(sample) => line.samples.push(sample),
            Err(why) => line.rejects.push(why),
        }
    }
    Some(line)
}

fn union_bit(
    options: &Options,
    name: &[u8],
    fields: &Fields,
    texts: &[Vec<u8>],
) -> Result<ReadSample, Reject> {
    let value = &texts[0];
    let kind_text = js_trim(texts.get(1).ok_or(Reject::NoType)?);
    let (kind, negative_ok) = type_of(options, kind_text.as_bytes()).ok_or(Reject::BadType)?;
    let own_rate = match texts.get(2) {
        None => None,
        Some(rate) => Some(etsy_rate(options, rate).ok_or(Reject::BadRate)?),
    };
    if fields.timestamp_s.is_some() && kind != Kind::Counter && kind != Kind::Gauge {
        return Err(Reject::TimestampUnsupported);
    }
    let mut read = if kind == Kind::Set {
        sample(name, fields, kind, ReadValue::Text(value.clone()), GaugeOp::Assign)
    } else {
        let parse =
            |digits: &[u8]| Some(js_number(digits, options.strict_numbers)).filter(|number| !number.is_nan());
        let (number, gauge_op) = number_of(options, kind, negative_ok, value, parse)?;
        sample(name, fields, kind, ReadValue::Bits(number.to_bits()), gauge_op)
    };
    if let Some(rate) = own_rate
        && (kind == Kind::Counter || kind == Kind::Timer)
    {
        read.weight = 1.0 / rate;
    }
    Ok(read)
}

fn event(options: &Options, text: &[u8], now_s: u64) -> Result<(ReadEvent, u64), Reject> {
    let bad = || Reject::BadEvent;
    let lengths_end = text.iter().position(|&byte| byte == b'}').ok_or_else(bad)?;
    let lengths = split(&text[3..lengths_end], b",");
    let [title_len, text_len] = &lengths[..] else { return Err(bad()) };
    let length = |text: &Vec<u8>| -> Option<usize> {
        let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        String::from_utf8_lossy(text).parse().ok().filter(|_| digits)
    };
    let title_len = length(title_len).filter(|&len| len >= 1).ok_or_else(bad)?;
    let text_len = length(text_len).ok_or_else(bad)?;
    let body = &text[lengths_end + 1..];
    // Byte by byte, so that no length overflows.
    let wanted = 1_u128 + title_len as u128 + 1 + text_len as u128;
    if (body.len() as u128) < wanted || body[0] != b':' || body[1 + title_len] != b'|' {
        return Err(bad());
    }
    let (title, description) = (&body[1..1 + title_len], &body[2 + title_len..2 + title_len + text_len]);
    let rest = &body[2 + title_len + text_len..];
    if !rest.is_empty() && rest[0] != b'|' {
        return Err(bad());
    }
    let mut event = ReadEvent {
        service: with_newlines(title),
        description: Some(with_newlines(description)),
        ..ReadEvent::default()
    };
    for (key, value) in [("kind", "event"), ("priority", "normal"), ("alert_type", "info")] {
        event.attributes.insert(key.to_owned(), value.to_owned());
    }
    finish(options, event, &split(rest, b"|").split_off(1), now_s)
}

fn check(options: &Options, text: &[u8], now_s: u64) -> Result<(ReadEvent, u64), Reject> {
    let mut pieces = split(text, b"|").split_off(1);
    if pieces.len() < 2 || pieces[0].is_empty() {
        return Err(Reject::BadCheck);
    }
    let fields = pieces.split_off(2);
    let states = ["ok", "warning", "critical", "unknown"];
    let state = states.into_iter().enumerate().find(|(number, _)| pieces[1] == number.to_string().as_bytes());
    let mut event = ReadEvent {
        service: String::from_utf8_lossy(&pieces[0]).to_string(),
        state: Some(state.ok_or(Reject::BadCheck)?.1.to_owned()),
        ..ReadEvent::default()
    };
    event.attributes.insert("kind".to_owned(), "check".to_owned());
    finish(options, event, &fields, now_s)
}

fn with_newlines(text: &[u8]) -> String {
    String::from_utf8_lossy(text).split("\\n").collect::<Vec<_>>().join("\n")
}

fn finish(
    options: &Options,
    mut event: ReadEvent,
    fields: &[Vec<u8>],
    now_s: u64,
) -> Result<(ReadEvent, u64), Reject> {
    event.time_s = now_s as i64;
    let mut ignored = 0;
    for field in fields {
        if let Some(tags) = field.strip_prefix(b"#") {
            let tags: Vec<Vec<u8>> = if tags.is_empty() { Vec::new() } else { split(tags, b",") };
            if options.tags_max > 0 && tags.len() > options.tags_max as usize {
                return Err(Reject::TooManyTags);
            }
            let mut kept: Vec<Vec<u8>> = Vec::new();
            for tag in tags {
                if !tag.is_empty() && !kept.contains(&tag) {
                    kept.push(tag);
                }
            }
            event.tags = Some(kept.iter().map(|tag| String::from_utf8_lossy(tag).to_string()).collect());
        } else if !set_field(&mut event, field) {
            ignored += 1;
        }
    }
    Ok((event, ignored))
}

/// False when the field is unknown or invalid.
fn set_field(event: &mut ReadEvent, field: &[u8]) -> bool {
    let after =
        |prefix: &[u8]| field.strip_prefix(prefix).map(|text| String::from_utf8_lossy(text).to_string());
    if let Some(time) = field.strip_prefix(b"d:") {
        let time = seconds(time);
        event.time_s = time.map_or(event.time_s, |time| time as i64);
        return time.is_some();
    }
    if let Some(host) = after(b"h:") {
        event.host = Some(host);
        return true;
    }
    if field.starts_with(b"e:") {
        return true;
    }
    if let Some(word) = after(b"card:") {
        return ["none", "low", "orchestrator", "high"].contains(&word.as_str());
    }
    let is_check = event.attributes["kind"] == "check";
    if is_check && let Some(message) = field.strip_prefix(b"m:") {
        event.description = Some(with_newlines(message).split("m\\:").collect::<Vec<_>>().join("m:"));
        return true;
    }
    for (prefix, key, known) in [
        (&b"c:"[..], "container_id", &[][..]),
        (b"k:", "aggregation_key", &[]),
        (b"s:", "source_type_name", &[]),
        (b"p:", "priority", &["normal", "low"]),
        (b"t:", "alert_type", &["error", "warning", "info", "success"]),
    ] {
        if (key == "container_id" || !is_check)
            && let Some(value) = after(prefix)
        {
            let is_known = known.is_empty() || known.contains(&value.as_str());
            if is_known {
                event.attributes.insert(key.to_owned(), value);
            }
            return is_known;
        }
    }
    false
}
