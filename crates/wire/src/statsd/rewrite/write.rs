//! Rewrites one line by an endpoint's plan.
//!
//! Path of a line: `parts` -> `process::stage` -> **[`Rewrite::write`]** -> `Packer`.
//! Invariant: parts that the plan does not change keep their bytes and their order.

use std::ops::Range;

use model::Reject;

use super::super::blank::{js_trim, js_trim_end};
use super::super::expansion::line_written_bytes_max;
use super::super::number::strtod;
use super::form::{Distributions, Form, Gauges};
use super::parts::{Bit, Field, FieldKind, LineKind, Parts};
use super::tags::{TagTexts, Tags};
use super::validated::Rewrite;
use crate::number::js_format;
use crate::steps::touch;

/// Result of rewriting one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Lines appended, each with its LF. 0: the conversion cannot represent the line.
    pub lines: u32,
    /// Tags omitted because the format cannot represent them: no key, or no value.
    pub tags_left_out: u32,
    /// Bits without a type or with an invalid rate, omitted where each value gets its own line. The dialects that
    /// support such lines reject these bits.
    pub values_left_out: u32,
    /// Values dropped because the output of the line would be more than
    /// [`LINE_WRITTEN_BYTES_MAX`](super::super::LINE_WRITTEN_BYTES_MAX) bytes, or more than
    /// [`WRITTEN_PER_BYTE_MAX`](super::super::WRITTEN_PER_BYTE_MAX) for each byte of the line.
    pub values_dropped: u32,
}

impl Rewrite {
    /// Appends the line with the plan's changes, with an LF after each line.
    ///
    /// `rate_factor`: the line was sampled with this probability (between 0 and 1). The rate of its values of the types
    /// `c`, `ms`, `h` and `d` is multiplied by it; other types and invalid rates are not changed (spec statsd §14 R5).
    pub fn write(&self, parts: &Parts<'_>, rate_factor: Option<f64>, out: &mut Vec<u8>) -> Written {
        touch(parts.line.len());
        let factor = rate_factor.filter(|factor| (0.0..1.0).contains(factor) && *factor > 0.0);
        if parts.kind != LineKind::Samples {
            return self.write_other(parts, out);
        }
        if self.only_names && factor.is_none() {
            out.extend_from_slice(&self.prefix);
            out.extend_from_slice(parts.name);
            out.extend_from_slice(&self.suffix);
            out.extend_from_slice(&parts.line[parts.name.len()..]);
            out.push(b'\n');
            return Written { lines: 1, ..Written::default() };
        }
        let texts = TagTexts { in_name: parts.name_tags, field: parts.tags };
        let tags = Tags::of(self.form.tags, &self.edits, texts);
        let mut line = Line {
            rewrite: self,
            parts,
            factor,
            tags,
            out,
            tail: None,
            line_rates: [None, None],
            written: Written::default(),
        };
        // Without the tags before them, fields after several bits would belong to the last bit, and a colon in a
        // rate would begin another bit.
        let torn =
            !self.only_names && (parts.has_bad_rate() || parts.several && parts.fields().nth(1).is_some());
        let gauges = self.gauges_of(parts);
        if self.form.one_value_per_line || torn || splits_gauges(parts, gauges) {
            line.write_separate(gauges);
        } else {
            line.write_whole();
        }
        line.written
    }

    /// Appends `text`, lines joined with LF, each with the plan's changes; `reject` is called for lines without parts.
    ///
    /// For endpoints whose plan has no filter and no sampling.
    pub fn write_lines(
        &self,
        text: &[u8],
        out: &mut Vec<u8>,
        mut reject: impl FnMut(Reject, &[u8]),
    ) -> Written {
        let mut sum = Written::default();
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match super::parts(line) {
                Ok(parts) => sum.add(self.write(&parts, None, out)),
                Err(why) => reject(why, line),
            }
        }
        sum
    }

    /// Appends the name of samples with the plan's prefix and suffix and the tags that belong in it.
    pub(super) fn write_name(&self, name: &[u8], tags: &Tags<'_>, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(name);
        out.extend_from_slice(&self.suffix);
        tags.write_in_name(out)
    }

    /// An event or a check: its tags are edited, its name and texts are not changed.
    fn write_other(&self, parts: &Parts<'_>, out: &mut Vec<u8>) -> Written {
        if !self.form.events {
            return Written::default();
        }
        if self.only_names {
            out.extend_from_slice(parts.line);
        } else {
            let texts = TagTexts { in_name: None, field: parts.tags };
            // An event has no name that could contain tags.
            let form = match self.form.tags {
                super::TagFormat::Graphite => super::TagFormat::Dogstatsd,
                form => form,
            };
            let tags = Tags::of(form, &self.edits, texts);
            out.extend_from_slice(parts.body);
            let mut line = Line {
                rewrite: self,
                parts,
                factor: None,
                tags,
                out,
                tail: None,
                line_rates: [None, None],
                written: Written::default(),
            };
            line.write_fields(None);
            line.write_end();
            return line.written;
        }
        out.push(b'\n');
        Written { lines: 1, ..Written::default() }
    }

    /// How the line's gauges are converted: with a time they are absolute in every dialect.
    fn gauges_of(&self, parts: &Parts<'_>) -> Gauges {
        let gauges = self.form.gauges;
        let is_timed = || parts.fields().any(|field| field.kind == FieldKind::Time);
        if gauges == Gauges::SignsAreChanges && is_timed() { Gauges::SignsAreParts } else { gauges }
    }

    /// The type to write.
    fn type_of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        touch(text.len());
        if self.form == Form::KEEP {
            return text;
        }
        let mut word = js_trim(text);
        if word.first() == Some(&b'#') {
            // No type, but a tag field once the blank before it is removed.
            return text;
        }
        if word == b"d" {
            word = match self.form.distributions {
                Distributions::Keep => word,
                Distributions::Histograms => b"h",
                Distributions::Timers => b"ms",
            };
        }
        if word == b"h" && self.form.histograms_as_timers { b"ms" } else { word }
    }
}

impl Written {
    fn add(&mut self, other: Written) {
        self.lines += other.lines;
        self.tags_left_out += other.tags_left_out;
        self.values_left_out += other.values_left_out;
        self.values_dropped += other.values_dropped;
    }
}

/// True when a gauge of the line takes two lines, or its own line.
fn splits_gauges(parts: &Parts<'_>, gauges: Gauges) -> bool {
    let is_gauge = |bit: &Bit<'_>| bit.type_text.map(js_trim) == Some(b"g");
    let splits = |value| gauge_value(gauges, value) != GaugeValue::AsItStands;
    gauges != Gauges::Keep && parts.bits().filter(is_gauge).any(|bit| bit.values().any(splits))
}

/// Conversion of one gauge value.
fn gauge_value(gauges: Gauges, value: &[u8]) -> GaugeValue<'_> {
    let absolute = match (gauges, value) {
        (Gauges::Keep, _) => return GaugeValue::AsItStands,
        (_, [b'=', number @ ..]) => js_trim(number),
        (Gauges::SignsAreParts, _) => value,
        (Gauges::SignsAreChanges, _) => return GaugeValue::AsItStands,
    };
    match absolute {
        [b'-', number @ ..] if begins_number(number) => GaugeValue::Below0(absolute),
        [b'+', number @ ..] if begins_number(number) => GaugeValue::Absolute(number),
        _ if absolute.len() < value.len() && begins_number(absolute) => GaugeValue::Absolute(absolute),
        _ => GaugeValue::AsItStands,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GaugeValue<'a> {
    AsItStands,
    /// Without its marker.
    Absolute(&'a [u8]),
    Below0(&'a [u8]),
}

/// One line while it is written.
struct Line<'a, 'o> {
    rewrite: &'a Rewrite,
    parts: &'a Parts<'a>,
    factor: Option<f64>,
    tags: Tags<'a>,
    out: &'o mut Vec<u8>,
    /// Position of the first line's fields, once they are written.
    tail: Option<Range<usize>>,
    /// Position of the line's rate in the first line written: without a factor, and with it.
    line_rates: [Option<Range<usize>>; 2],
    written: Written,
}

/// The parts of a bit's rate.
#[derive(Clone, Copy, Debug)]
struct BitRate<'a> {
    /// Its own.
    own: Option<&'a [u8]>,
    /// The factor.
    factor: Option<f64>,
}

impl<'a> Line<'a, '_> {
    /// All values in one line.
    fn write_whole(&mut self) {
        self.written.tags_left_out += self.rewrite.write_name(self.parts.name, &self.tags, self.out);
        // The factor for bits that leave their rate to the line.
        let mut line_factor = None;
        for bit in self.parts.bits() {
            self.out.push(b':');
            self.out.extend_from_slice(bit.values);
            let Some(type_text) = bit.type_text else { continue };
            self.out.push(b'|');
            self.out.extend_from_slice(self.rewrite.type_of(type_text));
            let factor = self.factor.filter(|_| bit.is_sampled_type());
            match (factor, bit.rate()) {
                (Some(factor), Some(rate)) => {
                    self.write_rate(rate, Some(factor));
                    self.out.extend_from_slice(&bit.rest[b"|@".len() + rate.len()..]);
                    continue;
                }
                (Some(factor), None) if self.parts.rate.is_none() => {
                    self.out.extend_from_slice(b"|@");
                    write_decimal(factor, self.out);
                }
                (Some(_), None) => line_factor = factor,
                (None, _) => {}
            }
            self.out.extend_from_slice(bit.rest);
        }
        self.write_fields(line_factor);
        self.write_end();
    }

    /// Writes each value in its own line.
    fn write_separate(&mut self, gauges: Gauges) {
        let begin = self.out.len();
        let bytes_max = line_written_bytes_max(self.parts.line.len());
        let has_bad_rate = self.parts.has_bad_rate();
        self.written.tags_left_out += self.rewrite.write_name(self.parts.name, &self.tags, self.out);
        let head = begin..self.out.len();
        for bit in self.parts.bits() {
            let rated = if bit.rest.is_empty() { !has_bad_rate } else { bit.rate().is_some() };
            let Some(type_text) = bit.type_text.filter(|_| rated) else {
                self.written.values_left_out += 1;
                continue;
            };
            let word = self.rewrite.type_of(type_text);
            let gauges = if js_trim(type_text) == b"g" { gauges } else { Gauges::Keep };
            let rate = BitRate { own: bit.rate(), factor: self.factor.filter(|_| bit.is_sampled_type()) };
            for value in bit.values() {
                if self.out.len() - begin >= bytes_max {
                    self.written.values_dropped += 1;
                    continue;
                }
                match gauge_value(gauges, value) {
                    GaugeValue::AsItStands => self.write_value(&head, value, word, rate),
                    GaugeValue::Absolute(value) => self.write_value(&head, value, word, rate),
                    GaugeValue::Below0(value) => {
                        self.write_value(&head, b"0", word, rate);
                        self.write_value(&head, value, word, rate);
                    }
                }
            }
        }
        if self.written.lines == 0 {
            self.out.truncate(begin);
        }
    }

    /// Writes one value in its own line; the name of the first one is already written.
    fn write_value(&mut self, head: &Range<usize>, value: &[u8], word: &[u8], rate: BitRate<'a>) {
        let begin = self.out.len();
        if self.written.lines > 0 {
            self.out.extend_from_within(head.clone());
        }
        self.out.push(b':');
        if word == b"s" && self.rewrite.form.one_value_per_line {
            self.out.extend(value.iter().map(|&byte| if byte == b':' { b'_' } else { byte }));
        } else {
            self.out.extend_from_slice(value);
        }
        self.out.push(b'|');
        self.out.extend_from_slice(word);
        self.write_rate_of(rate);
        // All other lines have the same fields and the same rate as the first. They are copied: parsing them again
        // for each of many values would make one long datagram expensive.
        match self.tail.clone() {
            Some(tail) => self.out.extend_from_within(tail),
            None => {
                let at = self.out.len();
                self.write_other_fields();
                self.trim_end();
                self.tail = Some(at.min(self.out.len())..self.out.len());
            }
        }
        self.write_end();
        touch(self.out.len() - begin);
    }

    /// The rate of a bit: its own, or else the line's, which is parsed once and copied for all others.
    fn write_rate_of(&mut self, rate: BitRate<'a>) {
        match (rate.own, self.parts.rate, rate.factor) {
            (Some(own), _, factor) => self.write_rate(own, factor),
            (None, Some(of_line), factor) => match self.line_rates[usize::from(factor.is_some())].clone() {
                Some(written) => self.out.extend_from_within(written),
                None => {
                    let begin = self.out.len();
                    self.write_rate(of_line, factor);
                    self.line_rates[usize::from(factor.is_some())] = Some(begin..self.out.len());
                }
            },
            (None, None, Some(factor)) => {
                self.out.extend_from_slice(b"|@");
                write_decimal(factor, self.out);
            }
            (None, None, None) => {}
        }
    }

    /// The fields in their order, with `rate_factor` applied to the rate.
    fn write_fields(&mut self, rate_factor: Option<f64>) {
        let parts = self.parts;
        let mut tags_due = self.tags.has_field();
        for field in parts.fields() {
            if self.leaves_out(&field) {
                continue;
            }
            match field.kind {
                FieldKind::Rate => match rate_factor {
                    // Of repeated rates only the last one counts.
                    Some(_) if !is_same(&field.text[1..], parts.rate) => {}
                    Some(_) => self.write_rate(&field.text[1..], rate_factor),
                    None => self.write_field(&field),
                },
                FieldKind::Tags if !self.rewrite.rebuilds_tags() => {
                    tags_due = false;
                    self.write_field(&field);
                }
                FieldKind::Tags if is_same(&field.text[1..], parts.tags) && tags_due => {
                    tags_due = false;
                    self.tags.write_field(self.out);
                }
                FieldKind::Tags => {}
                _ => {
                    // New tags are written where DogStatsD's clients write them: after the rate, before all others.
                    if tags_due && parts.tags.is_none() {
                        tags_due = false;
                        self.tags.write_field(self.out);
                    }
                    self.write_field(&field);
                }
            }
        }
        if tags_due {
            self.tags.write_field(self.out);
        }
    }

    /// The fields except for the rate, which was written after the type.
    fn write_other_fields(&mut self) {
        if self.tags.has_field() {
            self.tags.write_field(self.out);
        }
        for field in self.parts.fields() {
            if !matches!(field.kind, FieldKind::Rate | FieldKind::Tags) && !self.leaves_out(&field) {
                self.write_field(&field);
            }
        }
    }

    fn write_field(&mut self, field: &Field<'_>) {
        self.out.push(b'|');
        self.out.extend_from_slice(field.text);
    }

    fn leaves_out(&self, field: &Field<'_>) -> bool {
        let strip = &self.rewrite.form.strip;
        let of_samples = self.parts.kind == LineKind::Samples;
        match field.kind {
            FieldKind::Container => strip.container,
            FieldKind::External => strip.external,
            FieldKind::Cardinality => strip.cardinality,
            FieldKind::Time => strip.time && of_samples,
            FieldKind::Other => strip.unknown && of_samples,
            FieldKind::Rate => strip.unknown && !is_same(&field.text[1..], self.parts.rate),
            FieldKind::Tags => strip.unknown && !is_same(&field.text[1..], self.parts.tags),
        }
    }

    /// `|@` and the rate, times the factor when both are numbers.
    fn write_rate(&mut self, mut text: &[u8], factor: Option<f64>) {
        touch(text.len());
        if self.rewrite.form != Form::KEEP {
            // DogStatsD accepts a plus, node does not.
            if let [b'+', number @ ..] = text
                && begins_number(number)
            {
                text = number;
            }
            text = js_trim_end(text);
        }
        self.out.extend_from_slice(b"|@");
        let product = factor.and_then(|factor| Some(strtod(js_trim(text), true)? * factor));
        match product.filter(|product| product.is_normal() && *product > 0.0) {
            Some(product) => write_decimal(product, self.out),
            None => self.out.extend_from_slice(text),
        }
    }

    /// Removes CRs that were within the line and are at its end now.
    fn trim_end(&mut self) {
        while self.rewrite.form != Form::KEEP && self.out.last() == Some(&b'\r') {
            self.out.pop();
        }
    }

    fn write_end(&mut self) {
        self.trim_end();
        if self.rewrite.form == Form::KEEP {
            self.out.extend_from_slice(self.parts.end);
        }
        self.out.push(b'\n');
        self.written.lines += 1;
    }
}

fn begins_number(text: &[u8]) -> bool {
    matches!(text, [b'0'..=b'9' | b'.', ..])
}

/// True when `text` is the same slice of the line as `known`, not only equal to it.
fn is_same(text: &[u8], known: Option<&[u8]>) -> bool {
    known.is_some_and(|known| std::ptr::eq(text, known))
}

/// Appends `x` without an exponent, which node does not accept in a rate.
pub(super) fn write_decimal(x: f64, out: &mut Vec<u8>) {
    use std::io::Write;

    // A product such as 0.1 * 0.1 is slightly off nine decimals, and would print many digits.
    let short = (x * 1e9).round() / 1e9;
    let x = if (short - x).abs() <= x * 1e-12 { short } else { x };
    if x >= 1e-6 {
        return js_format(x, out);
    }
    write!(out, "{x}").expect("writing to a Vec cannot fail");
}
