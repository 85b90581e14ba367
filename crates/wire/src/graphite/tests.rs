//! The worked examples of spec statsd §7.3 and §8.3, names, limits and frames.

use model::{FlushInfo, Flushed, Kind, Label, SeriesRef};
use proptest::prelude::*;

use super::*;

const TIME_S: u64 = 1_700_000_002;
const INFO: FlushInfo = FlushInfo { time_s: TIME_S, window_s: 2.0, elapsed_s: 2.0 };
const OWN: OwnFigures = OwnFigures {
    time_s: TIME_S,
    connect_time_s: 1_700_000_003,
    num_stats: 7,
    calculation_ms: 1,
    processing_ms: 4,
    last_exception_s: 0,
    last_flush_s: 1_700_000_000,
    flush_ms: 2,
    flush_length: 1234,
};

/// The timer of spec statsd §7.3 with its aggregates, in order.
const LAT: &[(&str, f64)] = &[
    ("count_90", 4.0),
    ("mean_90", 115.0),
    ("upper_90", 400.0),
    ("sum_90", 460.0),
    ("sum_squares_90", 161_400.0),
    ("count_50", 2.0),
    ("mean_50", 15.0),
    ("upper_50", 20.0),
    ("sum_50", 30.0),
    ("sum_squares_50", 500.0),
    ("count_top25", 1.0),
    ("mean_top25", 400.0),
    ("lower_top25", 400.0),
    ("sum_top25", 400.0),
    ("sum_squares_top25", 160_000.0),
    ("count_99_9", 4.0),
    ("mean_99_9", 115.0),
    ("upper_99_9", 400.0),
    ("sum_99_9", 460.0),
    ("sum_squares_99_9", 161_400.0),
    ("std", 164.696_690_920_006_03),
    ("upper", 400.0),
    ("lower", 10.0),
    ("count", 13.0),
    ("count_ps", 6.5),
    ("sum", 460.0),
    ("sum_squares", 161_400.0),
    ("mean", 115.0),
    ("median", 25.0),
    ("histogram.bin_10", 0.0),
    ("histogram.bin_100", 3.0),
    ("histogram.bin_inf", 1.0),
];

fn series(name: &str) -> SeriesRef<'_> {
    SeriesRef { name: name.as_bytes(), tags: b"", clean: true }
}

fn counter(name: &str, count: f64) -> Flushed<'_> {
    Flushed::Counter { series: series(name), count, rate: count / INFO.window_s }
}

/// The flush of spec statsd §8.3, passed to `each` in node's order.
fn example(mut each: impl FnMut(&Flushed<'_>)) {
    let labels: Vec<Label> = LAT.iter().map(|(label, _)| (*label).into()).collect();
    let aggregates: Vec<(u16, f64)> = (0..).zip(LAT.iter().map(|(_, value)| *value)).collect();
    each(&counter("statsd.bad_lines_seen", 0.0));
    each(&counter("statsd.packets_received", 1.0));
    each(&counter("statsd.metrics_received", 11.0));
    each(&counter("hits", 7.0));
    each(&Flushed::Timer {
        series: series("lat"),
        labels: &labels,
        aggregates: &aggregates,
        values: &[10.0, 20.0, 30.0, 400.0],
    });
    each(&Flushed::Gauge { series: series("temp"), value: 20.0 });
    each(&Flushed::Set { series: series("uid"), count: 2, members: b"7\n8" });
}

fn new_namespace() -> Namespace {
    Namespace {
        legacy: false,
        global_prefix: "gp".into(),
        counter_prefix: "C".into(),
        timer_prefix: String::new(),
        global_suffix: "h1".into(),
        ..Namespace::default()
    }
}

/// (name, value, time) of each point of the example under `namespace`.
fn wanted(namespace: &Namespace) -> Vec<(String, String, u64)> {
    let suffix = if namespace.legacy { "" } else { ".h1" };
    let (rate, count) = if namespace.legacy { ("stats.", "stats_counts.") } else { ("gp.C.", "gp.C.") };
    let (of_rate, of_count) = if namespace.legacy { ("", "") } else { (".rate", ".count") };
    let (timer, below) = if namespace.legacy { ("stats.timers.", "stats.") } else { ("gp.", "gp.") };
    let own = if namespace.legacy { "stats.statsd." } else { "gp.statsd." };
    let mut points = Vec::new();
    let mut point = |name: String, value: &str, time| {
        points.push((format!("{name}{suffix}"), value.to_owned(), time));
    };
    for (name, in_rate, in_count) in [
        ("statsd.bad_lines_seen", "0", "0"),
        ("statsd.packets_received", "0.5", "1"),
        ("statsd.metrics_received", "5.5", "11"),
        ("hits", "3.5", "7"),
    ] {
        point(format!("{rate}{name}{of_rate}"), in_rate, TIME_S);
        point(format!("{count}{name}{of_count}"), in_count, TIME_S);
    }
    for (label, value) in LAT {
        point(format!("{timer}lat.{label}"), &value.to_string(), TIME_S);
    }
    point(format!("{below}gauges.temp"), "20", TIME_S);
    point(format!("{below}sets.uid.count"), "2", TIME_S);
    let num_stats = if namespace.legacy { "statsd.numStats" } else { "gp.statsd.numStats" };
    point(num_stats.into(), "7", TIME_S);
    point(format!("{own}graphiteStats.calculationtime"), "1", TIME_S);
    point(format!("{own}processing_time"), "4", TIME_S);
    point(format!("{own}graphiteStats.last_exception"), "0", TIME_S + 1);
    point(format!("{own}graphiteStats.last_flush"), "1700000000", TIME_S + 1);
    point(format!("{own}graphiteStats.flush_time"), "2", TIME_S + 1);
    point(format!("{own}graphiteStats.flush_length"), "1234", TIME_S + 1);
    points
}

#[test]
fn the_complete_example_in_lines() {
    for namespace in [Namespace::default(), new_namespace()] {
        let want: String =
            wanted(&namespace).iter().map(|(name, value, time)| format!("{name} {value} {time}\n")).collect();
        let mut encoder = Encoder::new(namespace);
        let (mut out, mut encoded) = (Vec::new(), Encoded::default());
        example(|flushed| encoded += encoder.lines(&INFO, flushed, &mut out));
        encoded += encoder.own_lines(&OWN, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), want);
        assert_eq!(encoded, Encoded { points: 49, non_finite: 0, unsafe_names: 0 });
    }
}

#[test]
fn names_of_the_specifications_example() {
    let all = |namespace: &Namespace| -> Vec<String> {
        wanted(namespace).into_iter().map(|(name, value, _)| format!("{name} {value}")).collect()
    };
    let legacy = all(&Namespace::default());
    for line in [
        "stats.hits 3.5",
        "stats_counts.hits 7",
        "stats.timers.lat.std 164.69669092000603",
        "stats.timers.lat.histogram.bin_inf 1",
        "stats.gauges.temp 20",
        "stats.sets.uid.count 2",
        "stats_counts.statsd.metrics_received 11",
        "statsd.numStats 7",
    ] {
        assert!(legacy.iter().any(|have| have == line), "{line}");
    }
    let new = all(&new_namespace());
    for line in [
        "gp.C.hits.rate.h1 3.5",
        "gp.C.hits.count.h1 7",
        "gp.lat.mean_90.h1 115",
        "gp.lat.histogram.bin_10.h1 0",
        "gp.gauges.temp.h1 20",
        "gp.sets.uid.count.h1 2",
        "gp.C.statsd.packets_received.rate.h1 0.5",
        "gp.statsd.numStats.h1 7",
        "gp.statsd.graphiteStats.last_flush.h1 1700000000",
    ] {
        assert!(new.iter().any(|have| have == line), "{line}");
    }
}

#[test]
fn the_complete_example_as_a_pickle() {
    for namespace in [Namespace::default(), new_namespace()] {
        let points: String = wanted(&namespace)
            .iter()
            .map(|(name, value, time)| format!("(S'{name}'\n(L{time}L\nS'{value}'\ntta"))
            .collect();
        let mut encoder = Encoder::new(namespace);
        let (mut out, mut frame) = (Vec::new(), Vec::new());
        example(|flushed| {
            encoder.pickle_points(&INFO, flushed, &mut out);
        });
        encoder.own_pickle_points(&OWN, &mut out);
        pickle_frame(&out, &mut frame);
        let length = u32::try_from(points.len() + 3).unwrap();
        assert_eq!(frame, [&length.to_be_bytes(), b"(l".as_slice(), points.as_bytes(), b"."].concat());
    }
}

#[test]
fn one_pickled_point_byte_for_byte() {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(Namespace { counts: false, ..Namespace::default() });
    encoder.pickle_points(&INFO, &counter("hits", 7.0), &mut out);
    let mut frame = Vec::new();
    pickle_frame(&out, &mut frame);
    assert_eq!(frame, b"\0\0\0\x2a(l(S'stats.hits'\n(L1700000002L\nS'3.5'\ntta.");
}

/// The lines of one series without times.
fn lines_of(namespace: &Namespace, flushed: &Flushed<'_>) -> (String, Encoded) {
    let mut out = Vec::new();
    let encoded = Encoder::new(namespace.clone()).lines(&INFO, flushed, &mut out);
    let text = String::from_utf8(out).unwrap().replace(" 1700000002\n", "\n");
    (text, encoded)
}

fn gauge_name(name: &[u8], tags: &[u8], clean: bool) -> Option<String> {
    let namespace = Namespace {
        legacy: false,
        global_prefix: "g".into(),
        gauge_prefix: String::new(),
        ..Namespace::default()
    };
    let flushed = Flushed::Gauge { series: SeriesRef { name, tags, clean }, value: 1.0 };
    let (text, encoded) = lines_of(&namespace, &flushed);
    assert_eq!(encoded.points + encoded.unsafe_names, 1);
    text.strip_suffix(" 1\n").map(|name| name.strip_prefix("g.").unwrap().to_owned())
}

#[test]
fn tags_are_written_after_the_name() {
    let namespace = Namespace {
        legacy: false,
        global_prefix: "gp".into(),
        global_suffix: "host1".into(),
        ..Namespace::default()
    };
    let in_name = SeriesRef { name: b"tag;env=prod;b", tags: b"", clean: true };
    let beside = SeriesRef { name: b"tag", tags: b"env:prod", clean: true };
    let (text, _) = lines_of(&namespace, &Flushed::Counter { series: in_name, count: 2.0, rate: 1.0 });
    assert_eq!(text, "gp.counters.tag.rate.host1;env=prod;b 1\ngp.counters.tag.count.host1;env=prod;b 2\n");
    let (text, _) = lines_of(&namespace, &Flushed::Counter { series: beside, count: 2.0, rate: 1.0 });
    assert_eq!(text, "gp.counters.tag.rate.host1;env=prod 1\ngp.counters.tag.count.host1;env=prod 2\n");
    let (text, _) = lines_of(&namespace, &Flushed::Set { series: beside, count: 3, members: b"" });
    assert_eq!(text, "gp.sets.tag.count.host1;env=prod 3\n");
    let labels: Vec<Label> = vec!["mean".into(), "upper_90".into()];
    let timer = Flushed::Timer { series: in_name, labels: &labels, aggregates: &[(1, 2.5)], values: &[2.5] };
    assert_eq!(lines_of(&namespace, &timer).0, "gp.timers.tag.upper_90.host1;env=prod;b 2.5\n");
    let legacy = Namespace { legacy: true, ..namespace };
    let (text, _) = lines_of(&legacy, &Flushed::Counter { series: in_name, count: 2.0, rate: 1.0 });
    assert_eq!(text, "stats.tag.host1;env=prod;b 1\nstats_counts.tag.host1;env=prod;b 2\n");
}

#[test]
fn tags_are_mapped_sorted_and_deduplicated() {
    let table: &[(&[u8], bool, &str)] = &[
        (b"env:prod", true, "n;env=prod"),
        (b"a:1,b:2", true, "n;a=1;b=2"),
        (b"b:2,a:1", true, "n;a=1;b=2"),
        (b"k:a;b", true, "n;k=a_b"),
        (b"k:v:w", false, "n;k=v:w"),
        (b"k:~v~", false, "n;k=_v~"),
        (b"k:a b\t c", false, "n;k=a_b_c"),
        ("k:a\u{a0}b".as_bytes(), false, "n;k=a_b"),
        (b"k:", false, "n"),
        (b":v", false, "n"),
        (b"", false, "n"),
        (b"bare", false, "n;bare=true"),
        (b"k=v", false, "n;k=v"),
        (b"a=b:c", true, "n;a_b=c"),
        (b"a!b^c d:1", false, "n;a_b_c_d=1"),
        ("k:caf\u{e9}".as_bytes(), false, "n;k=caf\u{e9}"),
        (b"k:\xff\xfe", false, "n;k=__"),
        (b"k:a b,k:a_b", false, "n;k=a_b"),
        (b"a,a:true", false, "n;a=true"),
        (b"url:http://x/y", false, "n;url=http://x/y"),
    ];
    for (tags, clean, want) in table {
        assert_eq!(gauge_name(b"n", tags, *clean).as_deref(), Some(*want), "{}", tags.escape_ascii());
    }
}

#[test]
fn the_value_of_a_bare_tag_is_an_option() {
    let flushed = Flushed::Gauge { series: SeriesRef { name: b"n", tags: b"x", clean: false }, value: 1.0 };
    for (value, want) in
        [("yes", "stats.gauges.n;x=yes 1\n"), ("", "stats.gauges.n 1\n"), ("a b", "stats.gauges.n;x=a_b 1\n")]
    {
        let namespace = Namespace { bare_tag_value: value.into(), ..Namespace::default() };
        assert_eq!(lines_of(&namespace, &flushed).0, want);
    }
}

#[test]
fn names_that_are_not_clean_are_sanitised_before_their_first_semicolon() {
    let table: &[(&[u8], Option<&str>)] = &[
        (b"go rets\t\tx", Some("go_rets_x")),
        (b"a / b", Some("a_-_b")),
        (b"a@b#c$d", Some("abcd")),
        ("caf\u{e9}\u{a0}x".as_bytes(), Some("caf_x")),
        (b"a\x00b\xff", Some("ab")),
        (b" gorets ", Some("_gorets_")),
        (b"a..b.", Some("a..b.")),
        (b"a/b;k=x/y,'z'", Some("a-b;k=x/y,'z'")),
        ("a;k=caf\u{e9}".as_bytes(), Some("a;k=caf\u{e9}")),
        (b"a;;", Some("a;;")),
        (b"a b;k=x\r", Some("a_b;k=x\r")),
        ("a;k=x \u{a0}".as_bytes(), Some("a;k=x \u{a0}")),
        (b"a;k=x\n", None),
        (b"a;k=x\0", None),
        (b"a;k=x y", None),
        (b"a;k=x y\r", None),
        (b"a;k=x\ry", None),
        (b"a;k=x\ny", None),
        ("a;k=x\u{2003}y".as_bytes(), None),
        (b"a;k=\xff", None),
    ];
    for (name, want) in table {
        assert_eq!(gauge_name(name, b"", false).as_deref(), *want, "{}", name.escape_ascii());
    }
    assert_eq!(gauge_name(b"a b;x=1", b"y:2", false).as_deref(), Some("a_b;x=1;y=2"));
    assert_eq!(gauge_name(b"a b;x=1\r", b"y:2", false), None, "the CR would not end the name");
}

#[test]
fn a_name_that_is_empty_after_sanitising_is_unsafe_in_each_point() {
    let bare = Namespace {
        legacy: false,
        global_prefix: String::new(),
        counter_prefix: String::new(),
        gauge_prefix: String::new(),
        ..Namespace::default()
    };
    let empty = SeriesRef { name: "\u{e9};a=b".as_bytes(), tags: b"", clean: false };
    let (text, encoded) = lines_of(&bare, &Flushed::Gauge { series: empty, value: 1.0 });
    assert_eq!((text.as_str(), encoded), ("", Encoded { points: 0, non_finite: 0, unsafe_names: 1 }));
    // After a prefix node writes the empty key, and so do we.
    let (text, encoded) = lines_of(&Namespace::default(), &counter("", 2.0));
    assert_eq!((text.as_str(), encoded.points), ("stats. 1\nstats_counts. 2\n", 2));
    let spaced = SeriesRef { name: b"a;b c", tags: b"", clean: false };
    let (text, encoded) = lines_of(&bare, &Flushed::Counter { series: spaced, count: f64::NAN, rate: 1.0 });
    assert_eq!((text.as_str(), encoded), ("", Encoded { points: 0, non_finite: 0, unsafe_names: 2 }));
}

#[test]
fn a_name_is_written_up_to_its_limit_and_not_past_it() {
    let prefix = "stats.gauges.".len();
    for (len, points) in [(NAME_BYTES_MAX - prefix, 1), (NAME_BYTES_MAX - prefix + 1, 0)] {
        for tail in [0, 100] {
            let name = format!(
                "{}{}",
                "a".repeat(len - tail),
                if tail > 0 { ";k=".to_owned() + &"v".repeat(97) } else { String::new() }
            );
            let (text, encoded) =
                lines_of(&Namespace::default(), &Flushed::Gauge { series: series(&name), value: -f64::MAX });
            assert_eq!((encoded.points, encoded.unsafe_names), (points, 1 - points));
            assert!(text.len() < 16_384);
        }
    }
}

#[test]
fn non_finite_numbers_are_skipped_and_counted() {
    let (text, encoded) = lines_of(
        &Namespace::default(),
        &Flushed::Counter { series: series("a"), count: 1.0, rate: f64::INFINITY },
    );
    assert_eq!(
        (text.as_str(), encoded),
        ("stats_counts.a 1\n", Encoded { points: 1, non_finite: 1, unsafe_names: 0 })
    );
    let labels: Vec<Label> = vec!["mean".into(), "sum".into()];
    let aggregates = [(0, f64::NAN), (1, -0.0)];
    let timer = Flushed::Timer { series: series("t"), labels: &labels, aggregates: &aggregates, values: &[] };
    let (text, encoded) = lines_of(&Namespace::default(), &timer);
    assert_eq!((text.as_str(), encoded.non_finite), ("stats.timers.t.sum 0\n", 1));
}

#[test]
fn samples_with_their_own_time_keep_it() {
    for (legacy, of_counter, of_gauge) in [
        (true, "stats_counts.m 15 9\n", "stats.gauges.m 1.5 9\n"),
        (false, "stats.counters.m.count 15 9\n", "stats.gauges.m 1.5 9\n"),
    ] {
        let namespace = Namespace { legacy, counts: false, ..Namespace::default() };
        let mut encoder = Encoder::new(namespace);
        let mut out = Vec::new();
        for (kind, value) in [(Kind::Counter, 15.0), (Kind::Gauge, 1.5)] {
            let flushed = Flushed::Timestamped { series: series("m"), kind, value, time_s: 9 };
            encoder.lines(&INFO, &flushed, &mut out);
        }
        encoder.lines(&INFO, &Flushed::Gauge { series: series("m"), value: 2.0 }, &mut out);
        let want = format!("{of_counter}{of_gauge}stats.gauges.m 2 1700000002\n");
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }
}

#[test]
fn without_counts_only_the_rate_of_a_counter_is_written() {
    let namespace = Namespace { counts: false, ..Namespace::default() };
    assert_eq!(lines_of(&namespace, &counter("a", 7.0)).0, "stats.a 3.5\n");
}

#[test]
fn numbers_in_perl_format() {
    let namespace = Namespace { numbers: Numbers::Perl, ..Namespace::default() };
    assert_eq!(lines_of(&namespace, &counter("a", 7.5)).0, "stats.a 3.750000\nstats_counts.a 7\n");
    let labels: Vec<Label> =
        ["count", "count_ps", "count_90", "mean_90", "histogram.bin_1"].map(Label::from).into();
    let aggregates = [(0, 3.0), (1, 1.5), (2, 3.0), (3, 0.1), (4, 2.0)];
    let timer = Flushed::Timer { series: series("t"), labels: &labels, aggregates: &aggregates, values: &[] };
    assert_eq!(
        lines_of(&namespace, &timer).0,
        "stats.timers.t.count 3\nstats.timers.t.count_ps 1.500000\nstats.timers.t.count_90 3\n\
         stats.timers.t.mean_90 0.100000\nstats.timers.t.histogram.bin_1 2\n"
    );
    let set = Flushed::Set { series: series("s"), count: 2, members: b"" };
    assert_eq!(lines_of(&namespace, &set).0, "stats.sets.s.count 2\n");
    let mut out = Vec::new();
    Encoder::new(namespace).own_lines(&OWN, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.starts_with(
            "statsd.numStats 7 1700000002\nstats.statsd.graphiteStats.calculationtime 1.000000 "
        )
    );
}

#[test]
fn names_of_the_perl_dialect_keep_their_commas() {
    let name = SeriesRef { name: b"k,env=prod", tags: b"", clean: false };
    let flushed = Flushed::Gauge { series: name, value: 1.0 };
    let perl = Namespace { numbers: Numbers::Perl, ..Namespace::default() };
    assert_eq!(lines_of(&perl, &flushed).0, "stats.gauges.k,env=prod 1.000000\n");
    assert_eq!(lines_of(&Namespace::default(), &flushed).0, "stats.gauges.kenv=prod 1\n");
}

#[test]
fn empty_namespace_elements_are_omitted_and_white_space_is_replaced() {
    let namespace = Namespace {
        legacy: false,
        global_prefix: "my app\n".into(),
        counter_prefix: String::new(),
        stats_prefix: String::new(),
        counts: false,
        ..Namespace::default()
    };
    assert_eq!(lines_of(&namespace, &counter("a", 2.0)).0, "my_app_.a.rate 1\n");
    let mut out = Vec::new();
    Encoder::new(namespace).own_lines(&OWN, &mut out);
    assert!(out.starts_with(b"my_app_.numStats 7 "));
}

#[test]
fn quotes_and_backslashes_are_escaped_in_a_pickle() {
    let mut out = Vec::new();
    let flushed =
        Flushed::Gauge { series: SeriesRef { name: br"a;k=it's\", tags: b"", clean: false }, value: 1.0 };
    Encoder::new(Namespace::default()).pickle_points(&INFO, &flushed, &mut out);
    assert_eq!(out, b"(S'stats.gauges.a;k=it\\'s\\\\'\n(L1700000002L\nS'1'\ntta");
}

#[test]
fn points_over_the_frame_limit_go_into_the_next_frame() {
    let mut encoder = Encoder::new(Namespace { counts: false, ..Namespace::default() });
    let mut points = Vec::new();
    let name = "x".repeat(1000);
    for _ in 0..3000 {
        encoder.pickle_points(&INFO, &counter(&name, 1.0), &mut points);
    }
    let (mut out, mut ends) = (b"before".to_vec(), Vec::new());
    pickle_frames(&points, &mut out, &mut ends);
    assert_eq!(ends.len(), 3);
    assert_eq!(ends.iter().map(|end| end.1).sum::<u32>(), 3000);
    let mut begin = 6;
    let mut seen = Vec::new();
    for (end, _) in ends {
        let frame = &out[begin..end as usize];
        let length = u32::from_be_bytes(frame[..4].try_into().unwrap()) as usize;
        assert_eq!(length, frame.len() - 4);
        assert!(length <= FRAME_BYTES_MAX);
        assert!(frame[4..].starts_with(b"(l(S'stats.x") && frame.ends_with(b"\ntta."));
        seen.extend_from_slice(&frame[6..frame.len() - 1]);
        begin = end as usize;
    }
    assert_eq!((begin, seen), (out.len(), points));

    let (mut out, mut ends) = (Vec::new(), Vec::new());
    pickle_frames(b"", &mut out, &mut ends);
    assert!(out.is_empty() && ends.is_empty());
}

proptest! {
    #[test]
    fn a_line_has_three_fields_for_every_name(
        name in proptest::collection::vec(any::<u8>(), 0..40),
        tags in proptest::collection::vec(any::<u8>(), 0..40),
        legacy in any::<bool>(),
    ) {
        let flushed = Flushed::Gauge { series: SeriesRef { name: &name, tags: &tags, clean: false }, value: 2.5 };
        let mut out = Vec::new();
        let encoded = Encoder::new(Namespace { legacy, ..Namespace::default() }).lines(&INFO, &flushed, &mut out);
        prop_assert_eq!(encoded.points + encoded.unsafe_names, 1);
        let text = String::from_utf8(out).expect("carbon wants UTF-8");
        prop_assert_eq!(text.lines().count() as u32, encoded.points);
        if encoded.points == 1 {
            prop_assert_eq!(text.split_whitespace().count(), 3, "{:?}", text);
            prop_assert!(text.ends_with(" 2.5 1700000002\n"));
        }
    }
}
