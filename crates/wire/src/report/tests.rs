//! Each document for the same flush, and each size limit.

use model::event::attribute;
use model::{
    EventTime, EventWriter, EventsBuilder, FlushInfo, Flushed, Kind, Label, NumberRef, Ratio, SeriesRef,
    TextField, ValueRef,
};
use proptest::prelude::*;

use super::*;

const INFO: FlushInfo = FlushInfo { time_s: 1_700_000_002, window_s: 2.0, elapsed_s: 2.0 };

fn series(name: &str) -> SeriesRef<'_> {
    SeriesRef { name: name.as_bytes(), tags: b"", clean: true }
}

fn labels() -> Vec<Label> {
    ["count_90", "mean_90", "count", "histogram.bin_10", "histogram.bin_inf"].map(Label::from).into()
}

/// One series of each kind, in an order that no document uses.
fn flush(mut each: impl FnMut(&Flushed<'_>)) {
    let labels = labels();
    each(&Flushed::Set { series: series("uid"), count: 2, members: b"7\n8" });
    each(&Flushed::Gauge { series: series("temp"), value: 20.5 });
    each(&Flushed::Timer {
        series: SeriesRef { name: b"lat", tags: b"env:prod", clean: true },
        labels: &labels,
        aggregates: &[(0, 2.0), (1, 15.0), (2, 11.0), (3, 0.0), (4, 2.0)],
        values: &[10.0, 20.0],
    });
    each(&Flushed::Timer { series: series("idle"), labels: &labels, aggregates: &[(2, 0.0)], values: &[] });
    each(&Flushed::Counter { series: series("hits"), count: 7.0, rate: 3.5 });
    each(&Flushed::Counter { series: series("statsd.bad_lines_seen"), count: 0.0, rate: 0.0 });
}

fn document(form: ConsoleEncoding) -> String {
    let mut console = Console::new(form, &[90.0, 99.9], DOCUMENT_BYTES_MAX);
    console.begin(&INFO);
    flush(|flushed| console.add(flushed));
    let mut out = Vec::new();
    assert_eq!(console.finish(&mut out), Documented { series: 6, left_out: 0 });
    String::from_utf8(out).unwrap()
}

const JSON: &str = concat!(
    r#"{"counters":{"hits":7,"statsd.bad_lines_seen":0},"timers":{"lat;env=prod":[10,20],"idle":[]},"#,
    r#""gauges":{"temp":20.5},"timer_data":{"lat;env=prod":{"count_90":2,"mean_90":15,"count":11,"#,
    r#""histogram":{"bin_10":0,"bin_inf":2}},"idle":{"count":0}},"#,
    r#""counter_rates":{"hits":3.5,"statsd.bad_lines_seen":0},"sets":{"uid":["7","8"]},"#,
    r#""pctThreshold":[90,99.9]}"#,
    "\n"
);

#[test]
fn the_node_console_document() {
    let title = "Flushing stats at  Tue Nov 14 2023 22:13:22 GMT+0000 (Coordinated Universal Time)\n";
    assert_eq!(document(ConsoleEncoding::Node { pretty: false }), format!("{title}{JSON}"));
}

#[test]
fn the_perl_console_document() {
    let title = "Flushing stats at Tue Nov 14 22:13:22 2023\n";
    assert_eq!(document(ConsoleEncoding::Perl), format!("{title}{JSON}"));
}

#[test]
fn the_pretty_node_console_document() {
    let want = r#"
{
  "counters": {
    "hits": 7,
    "statsd.bad_lines_seen": 0
  },
  "timers": {
    "lat;env=prod": [10,20],
    "idle": []
  },
  "gauges": {
    "temp": 20.5
  },
  "timer_data": {
    "lat;env=prod": {"count_90":2,"mean_90":15,"count":11,"histogram":{"bin_10":0,"bin_inf":2}},
    "idle": {"count":0}
  },
  "counter_rates": {
    "hits": 3.5,
    "statsd.bad_lines_seen": 0
  },
  "sets": {
    "uid": ["7","8"]
  },
  "pctThreshold": [90,99.9]
}
"#;
    let document = document(ConsoleEncoding::Node { pretty: true });
    assert_eq!(document.split_once('\n').unwrap().1, &want[1..]);
}

#[test]
fn an_empty_flush_and_rare_values() {
    let mut console = Console::new(ConsoleEncoding::Perl, &[], DOCUMENT_BYTES_MAX);
    let mut out = Vec::new();
    console.begin(&INFO);
    console.finish(&mut out);
    let empty = r#"{"counters":{},"timers":{},"gauges":{},"timer_data":{},"counter_rates":{},"sets":{},"pctThreshold":[]}"#;
    assert_eq!(String::from_utf8(out).unwrap().lines().nth(1), Some(empty));

    let mut out = Vec::new();
    console.begin(&INFO);
    console.add(&Flushed::Set { series: series("many"), count: 5000, members: b"" });
    console.add(&Flushed::Set { series: series("none"), count: 0, members: b"" });
    console.add(&Flushed::Gauge {
        series: SeriesRef { name: b"a\"\xff\n", tags: b"", clean: false },
        value: f64::NAN,
    });
    for (kind, value) in [(Kind::Counter, 15.0), (Kind::Gauge, 1.5)] {
        console.add(&Flushed::Timestamped { series: series("m"), kind, value, time_s: 9 });
    }
    console.finish(&mut out);
    let want = concat!(
        r#"{"counters":{},"timers":{},"gauges":{"a\""#,
        "\u{fffd}",
        r#"\n":null},"timer_data":{},"counter_rates":{},"#,
        r#""sets":{"many":5000,"none":[]},"timestamped":[{"name":"m","kind":"counter","value":15,"time":9},"#,
        r#"{"name":"m","kind":"gauge","value":1.5,"time":9}],"pctThreshold":[]}"#
    );
    assert_eq!(String::from_utf8(out).unwrap().lines().nth(1), Some(want));
}

#[test]
fn bins_between_other_aggregates_give_valid_json() {
    let labels = labels();
    let mut console = Console::new(ConsoleEncoding::Perl, &[], DOCUMENT_BYTES_MAX);
    console.begin(&INFO);
    let aggregates = [(3, 1.0), (4, 2.0), (0, 3.0), (3, 4.0)];
    console.add(&Flushed::Timer {
        series: series("t"),
        labels: &labels,
        aggregates: &aggregates,
        values: &[],
    });
    console.add(&Flushed::Timer { series: series("u"), labels: &labels, aggregates: &[], values: &[] });
    let mut out = Vec::new();
    console.finish(&mut out);
    let want = r#""timer_data":{"t":{"histogram":{"bin_10":1,"bin_inf":2},"count_90":3,"histogram":{"bin_10":4}},"u":{}}"#;
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(want), "{text}");
}

#[test]
fn a_document_over_its_limit_reports_the_series_left_out() {
    // `"a":1` takes five bytes in `gauges`; each further one has a comma.
    for (bytes_max, kept) in [(4, 0), (5, 1), (10, 1), (11, 2), (16, 2), (17, 3), (1000, 3)] {
        let mut console = Console::new(ConsoleEncoding::Node { pretty: false }, &[], bytes_max);
        for _ in 0..2 {
            console.begin(&INFO);
            for name in ["a", "b", "c"] {
                console.add(&Flushed::Gauge { series: series(name), value: 1.0 });
            }
            let mut out = Vec::new();
            let done = console.finish(&mut out);
            assert_eq!(done, Documented { series: kept, left_out: 3 - kept }, "{bytes_max}");
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.contains(&format!(r#","left_out":{}}}"#, 3 - kept)), kept < 3, "{text}");
        }
    }
    // A timer is omitted from both its members.
    let mut console = Console::new(ConsoleEncoding::Perl, &[], 1000);
    console.begin(&INFO);
    let labels = labels();
    console.add(&Flushed::Timer {
        series: series("t"),
        labels: &labels,
        aggregates: &[(0, 1.0)],
        values: &[1.5; 10_000],
    });
    console.add(&Flushed::Gauge { series: series("small"), value: 1.0 });
    let mut out = Vec::new();
    assert_eq!(console.finish(&mut out), Documented { series: 1, left_out: 1 });
    assert!(String::from_utf8(out).unwrap().contains(r#""timers":{},"gauges":{"small":1},"timer_data":{}"#));
}

#[test]
fn the_lines_of_the_perl_file() {
    let mut file = PerlFile::new("statsd", DOCUMENT_BYTES_MAX);
    flush(|flushed| file.add(flushed));
    file.add(&Flushed::Counter { series: series("statsdx"), count: 2.9, rate: 1.0 });
    file.add(&Flushed::Set { series: series("many"), count: 5000, members: b"" });
    file.add(&Flushed::Set { series: series("none"), count: 0, members: b"" });
    file.add(&Flushed::Timestamped { series: series("m"), kind: Kind::Counter, value: 1.0, time_s: 9 });
    file.add(&Flushed::Gauge {
        series: SeriesRef { name: b"a\tb\nc", tags: b"", clean: false },
        value: -0.5,
    });
    let mut out = Vec::new();
    assert_eq!(
        file.finish(&mut out),
        Documented { series: 9, left_out: 0 },
        "our own and those without a value"
    );
    let want = "s\tuid\t7;8\ng\ttemp\t20.500000\nt\tlat;env=prod\t10.000000\nt\tlat;env=prod\t20.000000\n\
                c\thits\t7\nc\tstatsdx\t2\ns\tmany\t5000\ns\tnone\t\nc\tm\t1\ng\ta_b_c\t-0.500000\n";
    assert_eq!(String::from_utf8(out).unwrap(), want);
    let mut out = Vec::new();
    assert_eq!(file.finish(&mut out), Documented::default());
    assert!(out.is_empty(), "no series, no lines");
}

#[test]
fn the_perl_file_is_filled_up_to_its_limit() {
    // `g TAB a TAB 1.000000 LF` is 13 bytes.
    for (bytes_max, kept) in [(12, 0), (13, 1), (25, 1), (26, 2)] {
        let mut file = PerlFile::new("", bytes_max);
        for _ in 0..2 {
            file.add(&Flushed::Gauge { series: series("a"), value: 1.0 });
        }
        let mut out = Vec::new();
        assert_eq!(file.finish(&mut out), Documented { series: kept, left_out: 2 - kept });
        assert_eq!(out, b"g\ta\t1.000000\n".repeat(usize::try_from(kept).unwrap()));
    }
    let mut file = PerlFile::new("", 100);
    file.add(&Flushed::Timer { series: series("t"), labels: &[], aggregates: &[], values: &[1.0; 1000] });
    assert_eq!(file.finish(&mut Vec::new()), Documented { series: 0, left_out: 1 });
}

#[test]
fn key_flush_lines_of_the_most_frequent_names() {
    let names = [(b"a.b".as_slice(), 12), (b"c\nd", 3)];
    let mut out = Vec::new();
    key_flush_lines(KeyFlushEncoding::Node, 1_700_000_002, names, &mut out);
    let date = "Tue Nov 14 2023 22:13:22 GMT+0000 (Coordinated Universal Time)";
    assert_eq!(String::from_utf8(out).unwrap(), format!("{date} count=12 key=a.b\n{date} count=3 key=c_d\n"));
    let mut out = Vec::new();
    key_flush_lines(KeyFlushEncoding::Perl, 1_700_000_002, names, &mut out);
    let date = "2023-11-14 22:13:22";
    assert_eq!(String::from_utf8(out).unwrap(), format!("{date} count=12 key=a.b\n{date} count=3 key=c_d\n"));
}

/// The JSON line of one event.
fn event_line(write: impl FnOnce(&mut EventWriter<'_>)) -> String {
    let mut events = EventsBuilder::default();
    let mut event = events.event();
    write(&mut event);
    event.finish();
    let mut out = Vec::new();
    events.view().iter().for_each(|event| event_json_line(event, &mut out));
    String::from_utf8(out).unwrap()
}

#[test]
fn events_of_dogstatsd_are_written_as_json_lines() {
    let line = event_line(|event| {
        event.text(TextField::Service, "a \"title\"");
        event.text(TextField::Description, "two\nlines");
        event.text(TextField::Host, "some.host");
        event.time(EventTime::Seconds(12345));
        ["tag1", "tag2:test"].into_iter().for_each(|tag| event.tag(tag).unwrap());
        for (key, value) in [
            (attribute::CONTAINER_ID, "abc"),
            (attribute::SOURCE_TYPE_NAME, "test"),
            (attribute::AGGREGATION_KEY, "agg"),
            (attribute::ALERT_TYPE, "warning"),
            (attribute::PRIORITY, "low"),
            (attribute::KIND, attribute::EVENT),
        ] {
            event.text_attribute(key, value).unwrap();
        }
    });
    let want = concat!(
        r#"{"kind":"event","service":"a \"title\"","time":12345,"host":"some.host","description":"two\nlines","#,
        r#""priority":"low","alert":"warning","aggregation_key":"agg","source_type":"test","#,
        r#""tags":["tag1","tag2:test"],"container":"abc"}"#,
        "\n"
    );
    assert_eq!(line, want);
    let line = event_line(|check| {
        check.text(TextField::Service, "agent.up");
        check.text(TextField::State, "critical");
        check.text(TextField::Host, "");
        check.no_tags();
        check.time(EventTime::Seconds(12345));
        check.text_attribute(attribute::KIND, attribute::CHECK).unwrap();
    });
    let want = "{\"kind\":\"check\",\"service\":\"agent.up\",\"time\":12345,\"state\":\"critical\"}\n";
    assert_eq!(line, want);
}

#[test]
fn all_other_fields_of_events_are_written_as_json() {
    assert_eq!(event_line(|_| {}), "{}\n");
    let line = event_line(|event| {
        event.time(EventTime::Micros(-1_250_000));
        event.metric(NumberRef::F32(0.1));
        event.ttl_s(0.3);
        event.text_attribute(attribute::PRIORITY, "low").unwrap();
        event.attribute(attribute::KIND, ValueRef::Number(NumberRef::I64(-7))).unwrap();
        event.begin_map("m").unwrap();
        event.attribute("k", ValueRef::Keyword("word")).unwrap();
        event.begin_list("l").unwrap();
        for value in [
            ValueRef::Nil,
            ValueRef::Bool(true),
            ValueRef::Number(Ratio::of(1, 4).unwrap()),
            ValueRef::Number(NumberRef::F64(f64::NAN)),
            ValueRef::Number(NumberRef::F64(5.0)),
            ValueRef::Number(NumberRef::BigInteger("18446744073709551616")),
        ] {
            event.attribute("", value).unwrap();
        }
        event.end();
        event.end();
        event.text_attribute("last\"", "").unwrap();
    });
    let want = concat!(
        r#"{"time":-1.25,"metric":0.1,"ttl":0.3,"priority":"low","attributes":{"kind":-7,"#,
        r#""m":{"k":"word","l":[null,true,0.25,null,5,18446744073709551616]},"last\"":""}}"#,
        "\n"
    );
    assert_eq!(line, want);
}

proptest! {
    #[test]
    fn no_name_breaks_a_line(
        name in proptest::collection::vec(any::<u8>(), 0..30),
        tags in proptest::collection::vec(any::<u8>(), 0..30),
        members in proptest::collection::vec(any::<u8>(), 0..30),
    ) {
        let series = SeriesRef { name: &name, tags: &tags, clean: false };
        let mut console = Console::new(ConsoleEncoding::Perl, &[90.0], DOCUMENT_BYTES_MAX);
        console.begin(&INFO);
        console.add(&Flushed::Set { series, count: 1, members: &members });
        let mut out = Vec::new();
        console.finish(&mut out);
        let text = String::from_utf8(out).expect("JSON is UTF-8");
        prop_assert_eq!(text.matches('\n').count(), 2);
        let mut file = PerlFile::new("statsd", DOCUMENT_BYTES_MAX);
        file.add(&Flushed::Set { series, count: 1, members: &members });
        let mut out = Vec::new();
        file.finish(&mut out);
        prop_assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
        prop_assert_eq!(out.iter().filter(|byte| **byte == b'\t').count(), 2);
    }
}
