//! Property checks for rewriting of any line: used by the tests' vectors, corpus and mutations, and by the fuzz target
//! `rewrite`. Not part of the daemon.

use memchr::memchr_iter;
use model::{GaugeOp, Kind, PacketBatch, RawKey, Span, Value};

use super::super::blank::js_trim;
use super::super::{Dialect, GaugeSign, Options, Parsed, Parser};
use super::{FieldKind, Form, LineKind, Packer, Parts, Rewrite, RewritePlan, TagFormat, parts};

/// Rewrites every line of `packet` with every conversion, and panics where a property fails.
pub fn check(packet: &[u8]) {
    for line in packet.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let read = parts(line);
        has_parts_if_a_dialect_accepts_it(line, read.is_ok());
        let Ok(parts) = read else { continue };
        identity_plan_keeps_the_bytes(&parts);
        // Fields are kept while values are separated, which no predefined conversion does.
        let apart = Form { one_value_per_line: true, ..Form::KEEP };
        for form in Form::NAMED.map(|(_, form)| form).into_iter().chain([apart]) {
            conversion_is_idempotent(form, &parts);
        }
        conversion_keeps_the_meaning(&parts);
    }
    for packet_bytes_max in [1, 8, 64, packet.len().max(1)] {
        repacking_keeps_all_lines(packet, packet_bytes_max);
    }
}

fn show(line: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(line))
}

fn plan(to: Form) -> Rewrite {
    Rewrite::new(&RewritePlan { to, ..RewritePlan::default() })
        .expect("a predefined conversion is a valid plan")
}

fn written(rewrite: &Rewrite, parts: &Parts<'_>, rate_factor: Option<f64>) -> Vec<u8> {
    let mut out = b"before\n".to_vec();
    let written = rewrite.write(parts, rate_factor, &mut out);
    let out = out.strip_prefix(b"before\n").expect("existing output is kept").to_vec();
    assert_eq!(memchr_iter(b'\n', &out).count(), written.lines as usize, "lines of {}", show(parts.line()));
    assert!(out.last().is_none_or(|&last| last == b'\n'), "the last line of {} ends", show(parts.line()));
    assert!(!out.starts_with(b"\n") && memchr::memmem::find(&out, b"\n\n").is_none(), "an empty line");
    out
}

/// Events and checks are recognised by their prefix, even where a classic server would parse them as samples.
fn has_parts_if_a_dialect_accepts_it(line: &[u8], has_parts: bool) {
    if line.starts_with(b"_e{") || line.starts_with(b"_sc|") {
        return;
    }
    for dialect in [Dialect::Etsy, Dialect::Perl, Dialect::Dogstatsd, Dialect::Union] {
        let parsed = parse(Options::of(dialect), line);
        assert!(has_parts || parsed.samples.is_empty(), "{dialect:?} reads {}", show(line));
    }
}

/// A plan without changes returns the line's bytes, also when the line is rebuilt from its parts.
fn identity_plan_keeps_the_bytes(line: &Parts<'_>) {
    let identity = plan(Form::KEEP);
    let want = show(&[line.line(), b"\n"].concat());
    assert_eq!(show(&written(&identity, line, None)), want);
    // Without a rate a sampling factor changes nothing, but the line is rebuilt from its parts.
    if line.bits().all(|bit| !bit.is_sampled_type()) {
        assert_eq!(show(&written(&identity, line, Some(0.5))), want);
    }
}

/// A conversion does not change its own output.
fn conversion_is_idempotent(form: Form, line: &Parts<'_>) {
    if line.name().is_empty() {
        // Only node accepts such lines, and in node a colon in a field begins a bit once the tags before it are gone.
        return;
    }
    let rewrite = plan(form);
    let once = written(&rewrite, line, None);
    for own in once.split(|&byte| byte == b'\n').filter(|own| !own.is_empty()) {
        let again =
            parts(own).unwrap_or_else(|why| panic!("{why:?}: {} of {}", show(own), show(line.line())));
        let twice = written(&rewrite, &again, None);
        assert_eq!(show(&twice), show(&[own, b"\n"].concat()), "{} in {form:?}", show(line.line()));
    }
}

/// A receiver's state after lines of one name: a naive aggregation.
#[derive(Debug, PartialEq)]
struct State {
    name: Vec<u8>,
    counter: f64,
    gauge: f64,
    timers: Vec<(f64, f64)>,
    members: Vec<Vec<u8>>,
}

fn parse(options: Options, text: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    Parser::new(options, 1).packet(text, Span::new(0, text.len()), 0, &mut parsed);
    parsed
}

/// `None` when any line is rejected.
fn state(options: Options, text: &[u8]) -> Option<State> {
    let parsed = parse(options, text);
    if parsed.rejected() > 0 || parsed.samples.is_empty() {
        return None;
    }
    let parser = Parser::new(options, 1);
    let mut canonical = Vec::new();
    let mut state =
        State { name: Vec::new(), counter: 0.0, gauge: 7.0, timers: Vec::new(), members: Vec::new() };
    for sample in &parsed.samples {
        let key = RawKey { name: sample.name.of(text), tags: sample.tags.of(text) };
        let form = parser.canonical(sample.kind, key, &mut canonical);
        state.name =
            canonical[..form.name_len].split(|&byte| byte == b';').next().unwrap_or_default().to_vec();
        match (sample.kind, sample.value) {
            (Kind::Counter, Value::Number(number)) => state.counter += number * sample.weight,
            (Kind::Timer, Value::Number(number)) => state.timers.push((number, sample.weight)),
            (Kind::Gauge, Value::Number(number)) => {
                let changes = sample.gauge_op == GaugeOp::Delta && state.gauge != 0.0;
                state.gauge = if changes { state.gauge + number } else { number };
            }
            (_, Value::Text(text_span)) => {
                let member = text_span.of(text).iter();
                state.members.push(member.map(|&byte| if byte == b':' { b'_' } else { byte }).collect());
            }
            (Kind::Set, Value::Number(_)) => unreachable!("members are texts"),
        }
    }
    Some(state)
}

/// A converted valid line has the same meaning in the receiver's dialect as the original has in ours.
fn conversion_keeps_the_meaning(line: &Parts<'_>) {
    let rates = line.fields().filter(|field| field.kind == FieldKind::Rate).count();
    // Of repeated rates DogStatsD uses the last and node the first; node ends a name at a `|#`; and a name that is
    // nothing but tags is valid in DogStatsD and not in node.
    let ambiguous =
        rates > 1 || line.name().contains(&b'|') || line.name().is_empty() && !line.line().starts_with(b":");
    if line.kind() != LineKind::Samples || ambiguous {
        return;
    }
    if is_for_node_only(line)
        && line.fields().any(|field| !matches!(field.kind, FieldKind::Rate | FieldKind::Tags))
    {
        return;
    }
    let union = Options { allow_negative_timers: true, ..Options::of(Dialect::Union) };
    let union = Options { key_bytes_max: 0, tags_max: 0, ..union };
    let absolute = Options { gauge_sign: GaugeSign::Absolute, ..union };
    let etsy = Options::of(Dialect::Etsy);
    let table = [
        (Form::ETSY, union, etsy),
        (Form::ETSY_TAGS, union, etsy),
        (Form::GRAPHITE_TAGS, union, union),
        (Form { tags: TagFormat::Drop, ..Form::KEEP }, union, union),
        (Form::DOGSTATSD_1_0, absolute, absolute),
    ];
    for (form, from, to) in table {
        if may_exceed_expansion_limit(line) {
            continue;
        }
        let Some(want) = state(from, line.line()) else { continue };
        // No conversion exists for lines that the receiver cannot represent: classic timers below 0; lines without a
        // name.
        let beyond = match to.dialect {
            Dialect::Etsy => want.timers.iter().any(|(value, _)| *value < 0.0),
            _ => line.name().is_empty(),
        };
        if beyond {
            continue;
        }
        let rewrite = plan(form);
        let out = written(&rewrite, line, None);
        assert_eq!(state(to, &out), Some(want), "{} as {}", show(line.line()), show(&out));
        sampling_scales_the_weights(&rewrite, line, (from, to));
    }
}

/// True when the values, each in its own line, could exceed the expansion limit: some would be dropped then.
fn may_exceed_expansion_limit(line: &Parts<'_>) -> bool {
    let values: usize = line.bits().map(|bit| bit.values().count()).sum();
    2 * values * line.line().len() > crate::statsd::WRITTEN_BYTES_ALWAYS
}

/// True when the line uses syntax that node accepts and DogStatsD does not. In such a line DogStatsD's fields are not
/// fields, or only after the tags; deciding that takes parsing numbers.
fn is_for_node_only(line: &Parts<'_>) -> bool {
    let odd = |text: &[u8]| text.is_empty() || js_trim(text).len() != text.len();
    line.rate().is_some_and(odd)
        || line
            .bits()
            .any(|bit| odd(bit.values) || bit.type_text.is_some_and(odd) || bit.rate().is_some_and(odd))
}

/// Weights grow by the same factor by which sampling reduces the lines.
fn sampling_scales_the_weights(rewrite: &Rewrite, line: &Parts<'_>, (from, to): (Options, Options)) {
    let out = written(rewrite, line, Some(0.25));
    let weights = |options, text: &[u8]| -> Vec<f64> {
        let samples = parse(options, text).samples;
        samples.iter().filter(|sample| sample.kind != Kind::Gauge).map(|sample| sample.weight).collect()
    };
    let kinds: Vec<Kind> = parse(from, line.line())
        .samples
        .iter()
        .map(|sample| sample.kind)
        .filter(|kind| *kind != Kind::Gauge)
        .collect();
    let (before, after) = (weights(from, line.line()), weights(to, &out));
    // Below the receiver's lowest rate the line is rejected.
    if before.iter().any(|weight| *weight > 1e7) {
        return;
    }
    assert_eq!(before.len(), after.len(), "{} as {}", show(line.line()), show(&out));
    for ((before, after), kind) in before.iter().zip(&after).zip(kinds) {
        let factor = if kind == Kind::Set { 1.0 } else { 4.0 };
        let ratio = after / (before * factor);
        assert!((ratio - 1.0).abs() < 1e-12, "{} as {}", show(line.line()), show(&out));
    }
}

/// Packets contain all lines in order, for any sequence of calls.
fn repacking_keeps_all_lines(text: &[u8], packet_bytes_max: usize) {
    let (mut packer, mut packets) = (Packer::new(packet_bytes_max, 10), PacketBatch::default());
    let mut taken = 0;
    for (now_ns, line) in text.split(|&byte| byte == b'\n').enumerate() {
        packer.push(line, now_ns as u64, &mut packets);
        taken += u64::from(!line.is_empty());
        let gone: u64 = packets.iter().map(|packet| memchr_iter(b'\n', packet).count() as u64 + 1).sum();
        assert_eq!(gone + packer.lines_held(), taken, "lines in, out and held");
        assert!(packer.bytes_held() <= packet_bytes_max);
        assert!(
            packer.due_ns().is_none_or(|due_ns| due_ns > now_ns as u64),
            "no packet is queued past its due time"
        );
    }
    packer.close(&mut packets);
    assert_eq!((packer.lines_held(), packer.due_ns()), (0, None));
    for packet in packets.iter() {
        assert!(!packet.is_empty() && !packet.ends_with(b"\n"));
        assert!(
            packet.len() <= packet_bytes_max || !packet.contains(&b'\n'),
            "only a single line may be longer"
        );
    }
    let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    let out: Vec<&[u8]> = packets.iter().collect();
    assert_eq!(out.join(&b'\n'), lines.join(&b'\n'), "each line once, in order");
}
