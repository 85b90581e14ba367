//! Dialects `etsy` (spec §2) and `perl` (spec §4).

use model::{GaugeOp, Kind, Reject};

use super::super::Options;
use super::line::{Line, ReadSample, ReadValue, key_within_limits, split, split_perl};
use super::number::{decimal, js_blank, js_number, js_trim, perl_number};

pub(super) fn etsy(options: &Options, text: &[u8]) -> Line {
    let pieces = split(text, b"|#");
    let tags = pieces.get(1).cloned().unwrap_or_default();
    let mut bits = split(&pieces[0], b":");
    let name = bits.remove(0);
    if bits.is_empty() {
        bits.push(b"1".to_vec());
    }
    let mut line = Line { glued: tags.contains(&b'|'), name: Some(name.clone()), ..Line::default() };
    if let Err(why) = key_within_limits(options, &name, &tags) {
        line.rejects.push(why);
        return line;
    }
    for bit in bits {
        match etsy_bit(options, &name, &tags, &split(&bit, b"|")) {
            Ok(sample) => line.samples.push(sample),
            Err(why) => line.rejects.push(why),
        }
    }
    line
}

fn etsy_bit(options: &Options, name: &[u8], tags: &[u8], fields: &[Vec<u8>]) -> Result<ReadSample, Reject> {
    let value = &fields[0];
    let Some(kind_text) = fields.get(1) else { return Err(Reject::NoType) };
    let mut weight = 1.0;
    if let Some(rate) = fields.get(2) {
        let rate = if options.compat_quirks { node_rate(options, rate) } else { etsy_rate(options, rate) };
        weight = 1.0 / rate.ok_or(Reject::BadRate)?;
    }
    let kind = match js_trim(kind_text).as_str() {
        "ms" => Kind::Timer,
        "g" => Kind::Gauge,
        "s" => Kind::Set,
        _ => Kind::Counter,
    };
    let number = js_number(value, options.strict_numbers);
    if kind_text != b"s" {
        if number.is_nan() {
            return Err(Reject::BadValue);
        }
        if number.is_infinite() && !options.compat_quirks {
            return Err(Reject::NonFinite);
        }
        let smuggled = kind_text != b"ms" && options.compat_quirks;
        if kind == Kind::Timer && number < 0.0 && !smuggled {
            return Err(Reject::NegativeTimer);
        }
    }
    let value_read =
        if kind == Kind::Set { ReadValue::Text(value.clone()) } else { ReadValue::Bits(number.to_bits()) };
    let mut sample = ReadSample::new(kind, name, tags, value_read);
    if kind == Kind::Counter || kind == Kind::Timer {
        sample.weight = weight;
    }
    if kind == Kind::Gauge && (value.starts_with(b"+") || value.starts_with(b"-")) {
        sample.gauge_op = GaugeOp::Delta;
    }
    Ok(sample)
}

/// Our rule: a plain decimal, `0 < r <= 1`, white space after it allowed.
pub(super) fn etsy_rate(options: &Options, field: &[u8]) -> Option<f64> {
    let text = String::from_utf8_lossy(field.strip_prefix(b"@")?).to_string();
    let text = text.trim_end_matches(js_blank);
    if text.starts_with('+') || text.starts_with('-') {
        return None;
    }
    in_range(options, decimal(text))
}

/// The rate, when it is not below `rate_min`.
pub(super) fn in_range(options: &Options, rate: f64) -> Option<f64> {
    (rate > 0.0 && rate <= 1.0 && rate >= options.rate_min && (1.0 / rate).is_finite()).then_some(rate)
}

/// Node's rule, except for the texts that crash it.
fn node_rate(options: &Options, field: &[u8]) -> Option<f64> {
    let text = field.strip_prefix(b"@")?;
    if text.is_empty() || text[0] == b'-' || js_number(text, options.strict_numbers).is_nan() {
        return None;
    }
    let run: String = text
        .iter()
        .map(|&byte| char::from(byte))
        .take_while(|char| char.is_ascii_digit() || *char == '.')
        .collect();
    let rate = decimal(&run);
    (rate >= options.rate_min).then_some(rate)
}

pub(super) fn perl(options: &Options, text: &[u8]) -> Line {
    if text.is_empty() {
        return Line::bad(Reject::EmptyLine);
    }
    if text.starts_with(b"_e{") || text.starts_with(b"_sc|") {
        return Line::bad(Reject::BadType);
    }
    let mut bits = split_perl(text, b":");
    let name = if bits.is_empty() { Vec::new() } else { bits.remove(0) };
    if bits.is_empty() {
        bits.push(b"1".to_vec());
    }
    let mut line = Line { name: Some(name.clone()), ..Line::default() };
    if let Err(why) = key_within_limits(options, &name, &[]) {
        line.rejects.push(why);
        return line;
    }
    for bit in bits {
        match perl_bit(options, &name, &split_perl(&bit, b"|")) {
            Ok(sample) => line.samples.push(sample),
            Err(why) => line.rejects.push(why),
        }
    }
    line
}

fn perl_bit(options: &Options, name: &[u8], fields: &[Vec<u8>]) -> Result<ReadSample, Reject> {
    let value = fields.first().cloned().unwrap_or_default();
    let kind_text: String = match fields.get(1) {
        Some(text) if !text.is_empty() => text.iter().map(|&byte| char::from(byte)).collect(),
        _ => return Err(Reject::NoType),
    };
    let kind = match kind_text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']) {
        "ms" => Kind::Timer,
        "g" => Kind::Gauge,
        "s" => Kind::Set,
        _ => Kind::Counter,
    };
    let mut weight = 1.0;
    if kind == Kind::Counter
        && let Some(field) = fields.get(2)
    {
        let run: Vec<u8> = match field.strip_prefix(b"@") {
            None => return Err(Reject::BadRate),
            Some(text) => {
                text.iter().copied().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').collect()
            }
        };
        let rate = perl_number(&run);
        weight = 1.0 / rate;
        if rate == 0.0 || !rate.is_finite() || !weight.is_finite() || rate < options.rate_min {
            return Err(Reject::BadRate);
        }
    }
    let value_read = match kind {
        Kind::Set => ReadValue::Text(value),
        Kind::Counter if value.is_empty() => ReadValue::Bits(1_f64.to_bits()),
        _ => {
            let number = perl_number(&value);
            if !number.is_finite() {
                return Err(Reject::NonFinite);
            }
            ReadValue::Bits(number.to_bits())
        }
    };
    let mut sample = ReadSample::new(kind, name, &[], value_read);
    sample.weight = weight;
    Ok(sample)
}
