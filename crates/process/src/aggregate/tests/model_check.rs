//! Compares the sweep with a naive aggregator that flushes everything at once: any interleaving of samples and
//! small sweep slices must give the same windows.

use std::collections::{BTreeMap, BTreeSet};

use model::{FlushInfo, Kind};
use proptest::prelude::*;

use super::rig::{Rig, T0_S, idle, plan};
use crate::aggregate::{AggregatePlan, SeriesExpiry, Tick};

/// One step of a run.
#[derive(Clone, Debug)]
enum Step {
    /// A sample: kind, name, whether the raw key is an alias, value, sample rate of a half, delta.
    Add(Kind, u8, bool, i8, bool, bool),
    /// A tick with this budget, after this many milliseconds.
    Tick(usize, u64),
    /// Delete one series by name, when no sweep is under way.
    Delete(Kind, u8),
    /// A self-metric counter.
    SelfMetric(u8),
}

#[derive(Clone, Debug, Default)]
struct Naive {
    active: bool,
    seen_ms: u64,
    ttl: u32,
    number: f64,
    values: Vec<f64>,
    observations: f64,
    members: BTreeSet<String>,
}

struct NaiveAggregator {
    plan: AggregatePlan,
    series: BTreeMap<(u8, String), Naive>,
    emitted: Vec<String>,
}

fn beats(ms: u64) -> u64 {
    ms * 16 / 1000
}

impl NaiveAggregator {
    fn add(&mut self, ms: u64, kind: Kind, name: String, value: f64, weight: f64, delta: bool) {
        let SeriesExpiry::Delete { ttl_windows: ttl } = self.plan.idle.gauges else {
            return self.add_with(ms, kind, name, value, weight, delta, 0);
        };
        self.add_with(ms, kind, name, value, weight, delta, ttl);
    }

    #[allow(clippy::too_many_arguments, reason = "a test's helper")]
    fn add_with(
        &mut self,
        ms: u64,
        kind: Kind,
        name: String,
        value: f64,
        weight: f64,
        delta: bool,
        ttl: u32,
    ) {
        let series = self.series.entry((kind as u8, name)).or_default();
        series.active = true;
        series.seen_ms = ms;
        match kind {
            Kind::Counter => series.number += value * weight,
            Kind::Gauge => {
                series.number = if delta { series.number + value } else { value };
                series.ttl = ttl;
            }
            Kind::Timer => {
                series.values.push(value);
                series.observations += weight;
            }
            Kind::Set => {
                series.members.insert(format!("{value}"));
            }
        }
    }

    /// Ends a window for all series. Returns the number of series emitted.
    fn close(&mut self, info: &FlushInfo, ms: u64) -> u64 {
        let NaiveAggregator { plan, series, emitted } = self;
        let before = emitted.len();
        let window_s = plan.window_ms as f64 / 1000.0;
        let time = info.time_s as i64 - T0_S as i64;
        series.retain(|(kind, name), series| {
            let (word, idle) = match *kind {
                0 => ('c', plan.idle.counters),
                1 => ('g', plan.idle.gauges),
                2 => ('t', plan.idle.timers),
                _ => ('s', plan.idle.sets),
            };
            let exempt = word == 'c' && plan.keep_contains.iter().any(|text| name.contains(text));
            if let SeriesExpiry::After { seconds } = idle
                && !exempt
                && !series.active
                && beats(ms) - beats(series.seen_ms) >= seconds * 16
            {
                return false;
            }
            let values = match word {
                'c' => format!("{:?} {:?}", series.number, series.number / window_s),
                'g' => format!("{:?}", series.number),
                't' => timer(&mut series.values, series.observations, window_s),
                _ => format!("{} ", series.members.len()),
            };
            emitted.push(format!("{time} {word} {name} {values}"));
            if word != 'g' {
                let seen_ms = series.seen_ms;
                *series = Naive { seen_ms, ..Naive::default() };
            }
            series.active = false;
            series.ttl = series.ttl.saturating_sub(1);
            let outlives = word == 'g' && series.ttl > 0;
            !matches!(idle, SeriesExpiry::Delete { .. }) || exempt || outlives
        });
        (self.emitted.len() - before) as u64
    }
}

/// §7.3 taken literally, for thresholds 90 and -50.
fn timer(values: &mut [f64], observations: f64, window_s: f64) -> String {
    if values.is_empty() {
        return "count_ps=0.0 count=0.0".into();
    }
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let sum = |part: &[f64]| part.iter().skip(1).fold(part[0], |all, v| all + v);
    let squares = |part: &[f64]| part.iter().skip(1).fold(part[0] * part[0], |all, v| all + v * v);
    let mut text = String::new();
    for (percent, label) in [(90.0f64, "90"), (-50.0, "top50")] {
        let k = if n == 1 { 1 } else { (percent.abs() / 100.0 * n as f64 + 0.5).floor() as usize };
        if k == 0 {
            continue;
        }
        let (all, part) =
            if percent > 0.0 { (&values[..k], None) } else { (&*values, Some(&values[..n - k])) };
        let less = |of: &dyn Fn(&[f64]) -> f64| match part {
            Some(part) if !part.is_empty() => of(all) - of(part),
            _ => of(all),
        };
        let (sum, squares) = (less(&sum), less(&squares));
        let (word, edge) = if percent > 0.0 { ("upper", values[k - 1]) } else { ("lower", values[n - k]) };
        text += &format!("count_{label}={:?} mean_{label}={:?} ", k as f64, sum / k as f64);
        text += &format!("{word}_{label}={edge:?} sum_{label}={sum:?} sum_squares_{label}={squares:?} ");
    }
    let mean = sum(values) / n as f64;
    let std = (values.iter().fold(0.0, |all, v| all + (v - mean) * (v - mean)) / n as f64).sqrt();
    let median = if n % 2 == 1 { values[n / 2] } else { (values[n / 2 - 1] + values[n / 2]) / 2.0 };
    text += &format!("std={std:?} upper={:?} lower={:?} ", values[n - 1], values[0]);
    text += &format!("count={observations:?} count_ps={:?} sum={:?} ", observations / window_s, sum(values));
    text + &format!("sum_squares={:?} mean={mean:?} median={median:?}", squares(values))
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Counter), Just(Kind::Gauge), Just(Kind::Timer), Just(Kind::Set)]
}

fn steps() -> impl Strategy<Value = Step> {
    let add = (kinds(), 0u8..12, any::<bool>(), -9i8..10, any::<bool>(), any::<bool>());
    prop_oneof![
        12 => add.prop_map(|(kind, name, other, value, half, delta)| Step::Add(kind, name, other, value, half, delta)),
        8 => (1usize..6, 0u64..900).prop_map(|(budget, ms)| Step::Tick(budget, ms)),
        1 => (kinds(), 0u8..12).prop_map(|(kind, name)| Step::Delete(kind, name)),
        1 => (0u8..4).prop_map(Step::SelfMetric),
    ]
}

fn policies() -> impl Strategy<Value = SeriesExpiry> {
    prop_oneof![
        Just(SeriesExpiry::Keep),
        (1u32..4).prop_map(|ttl_windows| SeriesExpiry::Delete { ttl_windows }),
        (1u64..9).prop_map(|seconds| SeriesExpiry::After { seconds }),
    ]
}

/// Every third name has tags, every fifth is exempt from deletion, every second has an alias.
fn names(name: u8) -> (String, String, String) {
    let stem = if name.is_multiple_of(5) { "packets_received" } else { "x-y" };
    let spelled = stem.replace('-', "/");
    if name.is_multiple_of(3) {
        (format!("{stem}{name}[a,b]"), format!("{stem}{name};a,b"), format!("{spelled}{name}\u{0}#b,a"))
    } else {
        (format!("{stem}{name}"), format!("{stem}{name}"), format!("{spelled}{name}\u{0}"))
    }
}

/// Runs the steps on both, and then through the last window.
fn run(plan: AggregatePlan, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut rig = Rig::new(plan.clone());
    let mut naive = NaiveAggregator { plan, series: BTreeMap::new(), emitted: Vec::new() };
    let (mut ms, mut expected, mut sweeping) = (0, 0, false);
    // These steps end the last window and its sweep, whatever the state is.
    let last = [0, 4000, 0, 0].map(|wait| Step::Tick(1000, wait));
    for step in steps.iter().chain(&last) {
        match step {
            Step::Add(kind, name, other, value, half, delta) => {
                let (shown, _, spelled) = names(*name);
                let (raw, tags) = spelled.split_once('\u{0}').unwrap_or((&spelled, ""));
                let raw = if *other { raw.to_owned() } else { raw.replace('/', "-") };
                let tags = if *other { tags.to_owned() } else { tags.replace("b,a", "a,b") };
                let delta = *kind == Kind::Gauge && *delta;
                let sign = if delta && *value >= 0 { "+" } else { "" };
                // A blank keeps a negative number from being a delta.
                let value_text = if *kind == Kind::Gauge && !delta {
                    value.unsigned_abs() as i16
                } else {
                    (*value).into()
                };
                let word = ["c", "g", "ms", "s"][*kind as usize];
                let rate = if *half { "|@0.5" } else { "" };
                let tags = if tags.is_empty() { String::new() } else { format!("|{tags}") };
                rig.add(ms, &format!("{raw}:{sign}{value_text}|{word}{rate}{tags}"));
                naive.add(ms, *kind, shown, value_text.into(), if *half { 2.0 } else { 1.0 }, delta);
            }
            Step::Tick(budget, wait) => {
                ms += wait;
                match rig.tick(ms, *budget) {
                    Tick::Started(info) => {
                        expected = naive.close(&info, ms);
                        sweeping = true;
                    }
                    Tick::Ended(end) => {
                        prop_assert_eq!(end.series, expected);
                        sweeping = false;
                    }
                    Tick::Idle | Tick::Sweeping => {}
                }
            }
            Step::Delete(kind, name) if !sweeping => {
                let (shown, written, _) = names(*name);
                let known = naive.series.remove(&(*kind as u8, shown)).is_some();
                prop_assert_eq!(rig.aggregator.delete(*kind, written.as_bytes()), known);
            }
            Step::Delete(..) => {}
            Step::SelfMetric(name) => {
                let (name, written, _) = names(1 + 5 * name / 3);
                if name == written {
                    let Rig { aggregator, emitted, .. } = &mut rig;
                    let mut emit = |info: &FlushInfo, flushed: model::Flushed<'_>| {
                        emitted.push(super::rig::text(info, &flushed));
                    };
                    aggregator.add_self_metric(Kind::Counter, &name, 3.0, &mut emit);
                    // The rig's clock moves on ticks and samples only.
                    let seen = naive.series.get(&(0, name.clone())).map(|series| series.seen_ms);
                    naive.add(ms.max(seen.unwrap_or(0)), Kind::Counter, name, 3.0, 1.0, false);
                }
            }
        }
        if !sweeping {
            for kind in Kind::ALL {
                let want = naive.series.keys().filter(|(of, _)| *of == kind as u8).count();
                prop_assert_eq!(rig.aggregator.len(kind), want, "{:?}", kind);
            }
        }
    }
    naive.emitted.sort_unstable();
    prop_assert_eq!(rig.take(), naive.emitted.join("\n"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn swept_windows_equal_windows_flushed_at_once(
        counters in policies(), gauges in policies(), timers in policies(), sets in policies(),
        steps in prop::collection::vec(steps(), 0..160),
    ) {
        let mut plan = AggregatePlan {
            percentiles: vec![(90.0, "90".into()), (-50.0, "-50".into())],
            ..plan()
        };
        plan.idle = idle(counters);
        (plan.idle.gauges, plan.idle.timers, plan.idle.sets) = (gauges, timers, sets);
        run(plan, &steps)?;
    }
}
