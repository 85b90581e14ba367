//! The worked examples of spec statsd §7 and §8.3, bit for bit.

use model::Kind;

use super::rig::{Rig, plan};
use crate::aggregate::{AggregatePlan, HistogramPlan, Tick};

const LAT: &str = "lat:10|ms\nlat:20|ms|@0.1\nlat:30|ms\nlat:400|ms";

fn percentiles(all: &[&str]) -> Vec<(f64, String)> {
    all.iter().map(|text| (text.parse().expect("a number"), (*text).to_owned())).collect()
}

fn example_plan() -> AggregatePlan {
    AggregatePlan {
        percentiles: percentiles(&["90", "50", "-25", "99.9"]),
        histograms: vec![HistogramPlan {
            name_contains: "lat".into(),
            bins: vec![(10.0, "10".into()), (100.0, "100".into()), (f64::INFINITY, "inf".into())],
        }],
        ..plan()
    }
}

#[test]
fn the_complete_example() {
    let mut rig = Rig::new(example_plan());
    for name in ["bad_lines_seen", "packets_received", "metrics_received"] {
        rig.aggregator.add_self_metric(Kind::Counter, &format!("statsd.{name}"), 0.0, |_, _| {});
    }
    let added = rig.add(
        100,
        &format!("hits:3|c\nhits:2|c|@0.5\n{LAT}\ntemp:21.5|g\ntemp:-1.5|g\nuid:7|s\nuid:8|s\nuid:7|s"),
    );
    assert_eq!(added.aggregated, 11);
    rig.aggregator.add_self_metric(Kind::Counter, "statsd.packets_received", 1.0, |_, _| {});
    rig.aggregator.add_self_metric(Kind::Counter, "statsd.metrics_received", 11.0, |_, _| {});
    let end = rig.flush(2000);
    assert_eq!((end.series, end.info.window_s, end.info.elapsed_s), (7, 2.0, 2.0));
    assert_eq!(
        rig.take(),
        "2 c hits 7.0 3.5\n\
         2 c statsd.bad_lines_seen 0.0 0.0\n\
         2 c statsd.metrics_received 11.0 5.5\n\
         2 c statsd.packets_received 1.0 0.5\n\
         2 g temp 20.0\n\
         2 s uid 2 \n\
         2 t lat count_90=4.0 mean_90=115.0 upper_90=400.0 sum_90=460.0 sum_squares_90=161400.0 \
         count_50=2.0 mean_50=15.0 upper_50=20.0 sum_50=30.0 sum_squares_50=500.0 \
         count_top25=1.0 mean_top25=400.0 lower_top25=400.0 sum_top25=400.0 sum_squares_top25=160000.0 \
         count_99_9=4.0 mean_99_9=115.0 upper_99_9=400.0 sum_99_9=460.0 sum_squares_99_9=161400.0 \
         std=164.69669092000603 upper=400.0 lower=10.0 count=13.0 count_ps=6.5 sum=460.0 \
         sum_squares=161400.0 mean=115.0 median=25.0 \
         histogram.bin_10=0.0 histogram.bin_100=3.0 histogram.bin_inf=1.0"
    );
    assert!(matches!(rig.tick(4000, 1), Tick::Started(_)));
    rig.aggregator.add_self_metric_closing("statsd.timestamp_lag", 0.0, |_, _| {});
    let Tick::Ended(end) = rig.tick(4000, 100) else { panic!("one slice is enough") };
    assert_eq!(end.series, 8);
    let second = rig.take();
    for line in [
        "4 c hits 0.0 0.0",
        "4 t lat count_ps=0.0 count=0.0",
        "4 g temp 20.0",
        "4 s uid 0 ",
        "4 g statsd.timestamp_lag 0.0",
    ] {
        assert!(second.lines().any(|other| other == line), "{line} in {second}");
    }
}

#[test]
fn an_idle_window_repeats_gauges_and_zeroes_the_rest() {
    let mut rig = Rig::new(example_plan());
    rig.add(0, &format!("hits:3|c\n{LAT}\ntemp:21.5|g\ntemp:-1.5|g\nuid:7|s"));
    rig.flushed(2000);
    for window in [4000, 6000] {
        assert_eq!(
            rig.flushed(window),
            "c hits 0.0 0.0; g temp 20.0; s uid 0 ; t lat count_ps=0.0 count=0.0"
        );
    }
}

#[test]
fn the_second_example_of_timers() {
    let mut rig = Rig::new(AggregatePlan { percentiles: percentiles(&["80"]), ..plan() });
    rig.add(0, "t:300|ms\nt:100|ms\nt:200|ms");
    assert_eq!(
        rig.flushed(2000),
        "t t count_80=2.0 mean_80=150.0 upper_80=200.0 sum_80=300.0 sum_squares_80=50000.0 \
         std=81.64965809277261 upper=300.0 lower=100.0 count=3.0 count_ps=1.5 sum=600.0 \
         sum_squares=140000.0 mean=200.0 median=200.0"
    );
}

/// Aggregates of the values 1 to `n`, one threshold, by label.
fn threshold(n: u32, percent: &str, weights: bool) -> String {
    let mut rig = Rig::new(AggregatePlan {
        percentiles: percentiles(&[percent]),
        timer_aggregates: ["count", "mean", "upper", "lower", "sum"]
            .map(|base| format!("{base}_percent"))
            .into(),
        timer_weights: weights,
        ..plan()
    });
    let lines: Vec<String> = (1..=n).map(|value| format!("t:{value}|ms")).collect();
    rig.add(0, &lines.join("\n"));
    rig.flushed(2000)
}

#[test]
fn thresholds_at_the_limits() {
    for (n, percent, want) in [
        (1, "0", "count_0=1.0 mean_0=1.0 lower_0=1.0 sum_0=1.0"),
        (1, "90", "count_90=1.0 mean_90=1.0 upper_90=1.0 sum_90=1.0"),
        (1, "-90", "count_top90=1.0 mean_top90=1.0 lower_top90=1.0 sum_top90=1.0"),
        (4, "0", ""),
        (4, "10", ""),
        (4, "12.5", "count_12_5=1.0 mean_12_5=1.0 upper_12_5=1.0 sum_12_5=1.0"),
        (4, "100", "count_100=4.0 mean_100=2.5 upper_100=4.0 sum_100=10.0"),
        (4, "-100", "count_top100=4.0 mean_top100=2.5 lower_top100=1.0 sum_top100=10.0"),
        (4, "-50", "count_top50=2.0 mean_top50=3.5 lower_top50=3.0 sum_top50=7.0"),
        (10, "99.9", "count_99_9=10.0 mean_99_9=5.5 upper_99_9=10.0 sum_99_9=55.0"),
        // A larger threshold than the configuration allows is cut to all values.
        (4, "150", "count_150=4.0 mean_150=2.5 upper_150=4.0 sum_150=10.0"),
    ] {
        for weights in [false, true] {
            assert_eq!(threshold(n, percent, weights), format!("t t {want}").trim_end(), "{percent} of {n}");
        }
    }
}

#[test]
fn sample_rates_of_timers_follow_the_dialect() {
    let listed = ["count", "sum", "mean", "median", "upper_percent", "count_percent"];
    for (weights, ignored, want) in [
        // node scales only the count; perl scales nothing; union scales everything.
        (false, false, "count_50=2.0 upper_50=20.0 count=13.0 sum=460.0 mean=115.0 median=25.0"),
        (false, true, "count_50=2.0 upper_50=20.0 count=4.0 sum=460.0 mean=115.0 median=25.0"),
        (true, true, "count_50=2.0 upper_50=20.0 count=4.0 sum=460.0 mean=115.0 median=25.0"),
        (true, false, "count_50=7.0 upper_50=20.0 count=13.0 sum=640.0 mean=49.23076923076923 median=20.0"),
    ] {
        let mut rig = Rig::new(AggregatePlan {
            percentiles: percentiles(&["50"]),
            timer_aggregates: listed.map(String::from).into(),
            timer_weights: weights,
            timer_rate_ignored: ignored,
            ..plan()
        });
        for window in [2000, 4000] {
            rig.add(window - 1000, LAT);
            assert_eq!(rig.flushed(window), format!("t lat {want}"), "weights {weights}, ignored {ignored}");
        }
    }
}

#[test]
fn timer_values_are_emitted_in_ascending_order() {
    for timer_weights in [false, true] {
        let mut rig = Rig::new(AggregatePlan { timer_weights, ..plan() });
        rig.add(0, "t:3|ms\nt:-0|ms\nt:1|ms|@0.5\nt:2|ms");
        let mut seen = Vec::new();
        rig.aggregator.flush_all(super::rig::at(1000), |_, flushed| {
            if let model::Flushed::Timer { values, .. } = flushed {
                seen = values.to_vec();
            }
        });
        assert_eq!(seen, [0.0, 1.0, 2.0, 3.0]);
    }
}
