//! Flushed series encoded as lines for the next server.

use model::{Flushed, Kind, Label, SeriesRef};

use super::super::super::{Dialect, Options, Parsed, Parser, WRITTEN_BYTES_ALWAYS, WRITTEN_PER_BYTE_MAX};
use super::super::{
    AggregateEncoder, AggregateEncoding, Encoded, Form, LeftOut, NegativeGauges, RewritePlan, TagFormat,
    TimerType,
};

fn series<'a>(name: &'a [u8], tags: &'a [u8]) -> SeriesRef<'a> {
    SeriesRef { name, tags, clean: true }
}

fn encoded(form: AggregateEncoding, flushed: &Flushed<'_>) -> (String, Encoded) {
    let mut out = Vec::new();
    let encoded = AggregateEncoder::new(form).expect("a plan").encode(flushed, &mut out);
    let text = String::from_utf8(out).expect("the lines are ASCII");
    assert_eq!(text.lines().count() as u64, encoded.lines);
    (text, encoded)
}

fn tags(tags: TagFormat) -> AggregateEncoding {
    let names = RewritePlan { to: Form { tags, ..Form::KEEP }, ..RewritePlan::default() };
    AggregateEncoding { names, ..AggregateEncoding::default() }
}

const TIMER_LABELS: [&str; 3] = ["mean", "count", "count_ps"];

fn labels() -> Vec<Label> {
    TIMER_LABELS.iter().map(|label| Label::from(*label)).collect()
}

#[test]
fn names_and_tags_are_in_the_receivers_form() {
    let counter = |name, tags| Flushed::Counter { series: series(name, tags), count: 3.5, rate: 0.35 };
    for (form, name, own, want) in [
        (TagFormat::Graphite, &b"a.b"[..], &b"k:v,x"[..], "a.b;k=v;x=true:3.5|c\n"),
        (TagFormat::Graphite, b"a;z=1;b=2", b"", "a;b=2;z=1:3.5|c\n"),
        (TagFormat::Dogstatsd, b"a", b"k:v,x", "a:3.5|c|#k:v,x\n"),
        (TagFormat::Dogstatsd, b"a;k=v", b"", "a:3.5|c|#k:v\n"),
        (TagFormat::Keep, b"a;k=v", b"x:y", "a;k=v:3.5|c|#x:y\n"),
        (TagFormat::Drop, b"a;k=v", b"x:y", "a:3.5|c\n"),
    ] {
        assert_eq!(encoded(tags(form), &counter(name, own)).0, want);
    }
    let names = RewritePlan {
        prefix: "edge.".into(),
        suffix: ".sum".into(),
        tags_add: vec!["dc:fra".into()],
        ..AggregateEncoding::default().names
    };
    let form = AggregateEncoding { names, ..AggregateEncoding::default() };
    assert_eq!(encoded(form, &counter(b"a", b"k:v")).0, "edge.a.sum;dc=fra;k=v:3.5|c\n");
    // Names that no dialect has sanitised.
    let raw = SeriesRef { name: b"a b|c;k=v:w", tags: b"", clean: false };
    let flushed = Flushed::Counter { series: raw, count: 1.0, rate: 1.0 };
    assert_eq!(encoded(tags(TagFormat::Keep), &flushed).0, "a_b_c;k=v_w:1|c\n");
}

#[test]
fn counters_are_sent_as_their_sums() {
    let counter = |count| Flushed::Counter { series: series(b"a", b""), count, rate: 0.0 };
    for (count, want) in [(7.0, "a:7|c\n"), (-0.25, "a:-0.25|c\n"), (1e21, "a:1e+21|c\n"), (0.0, "a:0|c\n")] {
        let (text, encoded) = encoded(AggregateEncoding::default(), &counter(count));
        assert_eq!(
            (text.as_str(), encoded),
            (want, Encoded { lines: 1, samples: 1, left_out: None, dropped: 0, tags_left_out: 0 })
        );
    }
    let quiet = AggregateEncoding { zero_counters: false, ..AggregateEncoding::default() };
    assert_eq!(encoded(quiet.clone(), &counter(0.0)).1.left_out, Some((LeftOut::Idle, 1)));
    assert_eq!(encoded(quiet, &counter(1.0)).1.lines, 1);
    for count in [f64::NAN, f64::INFINITY] {
        let (text, encoded) = encoded(AggregateEncoding::default(), &counter(count));
        assert_eq!((text.as_str(), encoded.left_out), ("", Some((LeftOut::NonFinite, 1))));
    }
}

/// The receiver's gauge after these lines, when it was 9 before.
fn gauge_at_receiver(options: Options, text: &str) -> f64 {
    let mut parsed = Parsed::default();
    Parser::new(options, 1).packet(text.as_bytes(), model::Span::new(0, text.len()), 0, &mut parsed);
    assert_eq!(parsed.rejected(), 0, "{text}");
    parsed.samples.iter().fold(9.0, |stored, sample| match (sample.value, sample.gauge_op) {
        (model::Value::Number(number), model::GaugeOp::Delta) if stored != 0.0 => stored + number,
        (model::Value::Number(number), _) => number,
        (model::Value::Text(_), _) => panic!("a gauge is a number"),
    })
}

#[test]
fn gauges_have_the_same_value_at_the_receiver() {
    for (rule, dialect, want) in [
        (NegativeGauges::Signed, Dialect::Dogstatsd, "g:-5|g\n"),
        (NegativeGauges::Signed, Dialect::Perl, "g:-5|g\n"),
        (NegativeGauges::ZeroFirst, Dialect::Etsy, "g:0|g\ng:-5|g\n"),
        (NegativeGauges::ZeroFirst, Dialect::Dogstatsd, "g:0|g\ng:-5|g\n"),
        (NegativeGauges::Equals, Dialect::Union, "g:=-5|g\n"),
    ] {
        let form = AggregateEncoding { negative_gauges: rule, ..AggregateEncoding::default() };
        let gauge = |value| Flushed::Gauge { series: series(b"g", b""), value };
        let (text, said) = encoded(form.clone(), &gauge(-5.0));
        assert_eq!((text.as_str(), said.samples, said.left_out), (want, 1, None));
        for value in [-5.0, 5.0, 0.0, -0.125] {
            let text = encoded(form.clone(), &gauge(value)).0;
            assert_eq!(gauge_at_receiver(Options::of(dialect), &text), value, "{text} to {dialect:?}");
        }
    }
}

#[test]
fn sets_are_sent_as_their_members() {
    let set = |count, members| Flushed::Set { series: series(b"u", b"k:v"), count, members };
    let (text, said) = encoded(tags(TagFormat::Dogstatsd), &set(3, b"a\nb:c\nd e"));
    assert_eq!(text, "u:a|s|#k:v\nu:b_c|s|#k:v\nu:d e|s|#k:v\n");
    assert_eq!(said, Encoded { lines: 3, samples: 3, left_out: None, dropped: 0, tags_left_out: 0 });
    let packed = AggregateEncoding { packed: true, ..tags(TagFormat::Drop) };
    assert_eq!(encoded(packed, &set(1, b"b:c|d")).0, "u:b:c_d|s\n");
    assert_eq!(encoded(tags(TagFormat::Drop), &set(5000, b"")).1.left_out, Some((LeftOut::Estimated, 5000)));
    assert_eq!(encoded(tags(TagFormat::Drop), &set(0, b"")).1.left_out, Some((LeftOut::Idle, 1)));
}

#[test]
fn timers_are_sent_as_their_values() {
    let labels = labels();
    let timer = |aggregates, values| Flushed::Timer {
        series: series(b"t", b"k:v"),
        labels: &labels,
        aggregates,
        values,
    };
    let plain = [(0, 2.0), (1, 3.0), (2, 0.3)];
    let values = [1.0, 2.5, -3.0];
    let form =
        |packed, line_bytes_max| AggregateEncoding { packed, line_bytes_max, ..tags(TagFormat::Dogstatsd) };
    for (form, want, lines) in [
        (form(true, 100), "t:1:2.5:-3|ms|#k:v\n", 1),
        (form(false, 100), "t:1|ms|#k:v\nt:2.5|ms|#k:v\nt:-3|ms|#k:v\n", 3),
        (form(true, 1), "t:1|ms|#k:v\nt:2.5|ms|#k:v\nt:-3|ms|#k:v\n", 3),
        (AggregateEncoding { timer_type: TimerType::Histogram, ..form(true, 100) }, "t:1:2.5:-3|h|#k:v\n", 1),
        (
            AggregateEncoding { timer_type: TimerType::Distribution, ..form(true, 100) },
            "t:1:2.5:-3|d|#k:v\n",
            1,
        ),
    ] {
        let (text, said) = encoded(form, &timer(&plain, &values));
        assert_eq!(
            (text.as_str(), said),
            (want, Encoded { lines, samples: 3, left_out: None, dropped: 0, tags_left_out: 0 })
        );
    }
    let whole = "t:1:2.5|ms|#k:v".len();
    assert_eq!(encoded(form(true, whole), &timer(&plain, &values)).0, "t:1:2.5|ms|#k:v\nt:-3|ms|#k:v\n");
    let apart = "t:1|ms|#k:v\nt:2.5|ms|#k:v\nt:-3|ms|#k:v\n";
    assert_eq!(encoded(form(true, whole - 1), &timer(&plain, &values)).0, apart);
    // Sampled: three values for twelve observations.
    let sampled = [(0, 2.0), (1, 12.0), (2, 1.2)];
    assert_eq!(encoded(form(true, 100), &timer(&sampled, &values)).0, "t:1:2.5:-3|ms|@0.25|#k:v\n");
    // Without its label the number of observations is unknown.
    assert_eq!(encoded(form(true, 100), &timer(&sampled[..1], &values)).0, "t:1:2.5:-3|ms|#k:v\n");
    let (text, said) = encoded(form(true, 100), &timer(&plain, &[f64::NAN, 1.0, f64::INFINITY]));
    assert_eq!(
        (text.as_str(), said.samples, said.left_out),
        ("t:1|ms|#k:v\n", 1, Some((LeftOut::NonFinite, 2)))
    );
    // Values replaced by an estimate, and values that never arrived.
    assert_eq!(encoded(form(true, 100), &timer(&sampled, &[])).1.left_out, Some((LeftOut::Estimated, 12)));
    assert_eq!(
        encoded(form(true, 100), &timer(&sampled[..1], &[])).1.left_out,
        Some((LeftOut::Estimated, 1))
    );
    assert_eq!(
        encoded(form(true, 100), &timer(&[(1, 0.0), (2, 0.0)], &[])).1.left_out,
        Some((LeftOut::Idle, 1))
    );
}

#[test]
fn samples_keep_their_time_if_the_receiver_supports_it() {
    let sample = |kind, value| Flushed::Timestamped { series: series(b"a", b"k:v"), kind, value, time_s: 99 };
    let times = AggregateEncoding { times: true, ..tags(TagFormat::Dogstatsd) };
    assert_eq!(encoded(times.clone(), &sample(Kind::Counter, 4.0)).0, "a:4|c|#k:v|T99\n");
    assert_eq!(encoded(times, &sample(Kind::Gauge, -4.0)).0, "a:-4|g|#k:v|T99\n");
    assert_eq!(
        encoded(tags(TagFormat::Dogstatsd), &sample(Kind::Gauge, -4.0)).0,
        "a:0|g|#k:v\na:-4|g|#k:v\n"
    );
}

#[test]
fn predefined_encodings_keep_values_at_their_receivers() {
    let labels = labels();
    let tagged = series(b"a", b"k:v");
    let flushes = [
        Flushed::Counter { series: tagged, count: 3.0, rate: 0.3 },
        Flushed::Gauge { series: tagged, value: -4.0 },
        Flushed::Timer { series: tagged, labels: &labels, aggregates: &[(1, 4.0)], values: &[1.0, 2.0] },
        Flushed::Set { series: tagged, count: 2, members: b"x\ny" },
        Flushed::Timestamped { series: tagged, kind: Kind::Counter, value: 2.0, time_s: 99 },
    ];
    for (form, dialect, want) in [
        (
            AggregateEncoding::default(),
            Dialect::Etsy,
            "a;k=v:3|c\na;k=v:0|g\na;k=v:-4|g\na;k=v:1|ms|@0.5\na;k=v:2|ms|@0.5\na;k=v:x|s\na;k=v:y|s\na;k=v:2|c\n",
        ),
        (
            AggregateEncoding::dogstatsd(),
            Dialect::Dogstatsd,
            "a:3|c|#k:v\na:-4|g|#k:v\na:1:2|ms|@0.5|#k:v\na:x|s|#k:v\na:y|s|#k:v\na:2|c|#k:v|T99\n",
        ),
    ] {
        let mut encoder = AggregateEncoder::new(form).expect("a plan");
        let mut out = Vec::new();
        let samples: u64 = flushes.iter().map(|flushed| encoder.encode(flushed, &mut out).samples).sum();
        assert_eq!((String::from_utf8_lossy(&out).as_ref(), samples), (want, 7));
        let mut parsed = Parsed::default();
        let span = model::Span::new(0, out.len());
        Parser::new(Options::of(dialect), 1).packet(&out, span, 0, &mut parsed);
        // The zero before a negative gauge is a sample to the parser.
        let zeros = u64::from(dialect == Dialect::Etsy);
        assert_eq!((parsed.rejected(), parsed.samples.len() as u64), (0, samples + zeros));
    }
}

#[test]
fn timer_values_survive_any_line_limit() {
    let values: Vec<f64> = (0..500).map(|at| f64::from(at) * 0.37).collect();
    let labels = labels();
    for line_bytes_max in [1, 20, 64, 500, 1432, 100_000] {
        let aggregates = [(1, 1000.0)];
        let flushed = Flushed::Timer {
            series: series(b"t", b""),
            labels: &labels,
            aggregates: &aggregates,
            values: &values,
        };
        let form = AggregateEncoding { packed: true, line_bytes_max, ..AggregateEncoding::default() };
        let (text, said) = encoded(form, &flushed);
        assert_eq!(said.samples, 500);
        assert!(text.lines().all(|line| line.len() <= line_bytes_max || line.matches(':').count() == 1));
        let mut parsed = Parsed::default();
        let span = model::Span::new(0, text.len());
        Parser::new(Options::of(Dialect::Dogstatsd), 1).packet(text.as_bytes(), span, 0, &mut parsed);
        let back: Vec<f64> = parsed
            .samples
            .iter()
            .map(|sample| match sample.value {
                model::Value::Number(number) => number,
                model::Value::Text(_) => panic!("a timer is a number"),
            })
            .collect();
        assert_eq!(back, values);
        let weight: f64 = parsed.samples.iter().map(|sample| sample.weight).sum();
        assert!((weight - 1000.0).abs() < 1e-9);
    }
}

#[test]
fn the_output_of_a_series_is_bounded() {
    let labels = labels();
    let name = "n".repeat(8_000);
    let values = vec![1.0; 4_000];
    let members = (0..4_000).map(|at| format!("{at:04}")).collect::<Vec<_>>().join("\n");
    let of = |name: &str, packed: bool| {
        let series = series(name.as_bytes(), b"");
        [
            Flushed::Timer { series, labels: &labels, aggregates: &[(1, 4_000.0)], values: &values },
            Flushed::Set { series, count: 4_000, members: members.as_bytes() },
        ]
        .map(|flushed| encoded(AggregateEncoding { packed, ..AggregateEncoding::default() }, &flushed))
    };
    for packed in [false, true] {
        for (text, encoded) in of(&name, packed) {
            let came_bytes = name.len() + 5 * 4_000;
            assert!(text.len() < WRITTEN_BYTES_ALWAYS + WRITTEN_PER_BYTE_MAX * came_bytes + 8_010);
            assert!(encoded.dropped > 0 && encoded.lines > 256, "{encoded:?}");
            assert_eq!(encoded.samples + encoded.dropped, 4_000);
        }
        for (_, encoded) in of(&name[..500], packed) {
            assert_eq!((encoded.samples, encoded.dropped), (4_000, 0));
        }
    }
}
