//! A checked `[transforms.NAME]` to its plan.

use process::aggregate::{AggregatePlan, ExpiryPlan, HistogramPlan, KeyFlushPlan};
use wire::graphite::Namespace;
use wire::statsd::Dialect;

use super::fields::{Fields, tables};
use super::outputs;
use super::tree::Value;
use super::value::{self, Checked};
use crate::diagnostic::{Diagnostic, Place};
use crate::options::Section;
use crate::options::table::transforms::{AGGREGATION, BOUNDS, EXPIRY, HISTOGRAM, KEY_FLUSH, SURROUNDINGS};
use crate::plan::{AggregateTransform, Plan, SelfCounters, TransformKind, default_checkpoint_ms};

/// An aggregation as an empty section means it.
pub(super) fn default_plan() -> AggregateTransform {
    AggregateTransform {
        plan: AggregatePlan::default(),
        stats_prefix: "statsd".into(),
        self_counters: SelfCounters::Node,
        key_flush_log: None,
        checkpoint_ms: default_checkpoint_ms(Dialect::Union),
        namespace: Namespace::default(),
    }
}

/// Fills in what depends on the dialect of the sources that feed the transform `name`, once all are known.
pub(super) fn resolve(name: &str, fields: &Fields, plan: &mut Plan) {
    let Plan { sources, transforms, .. } = plan;
    let Some(transform) = transforms.iter_mut().find(|transform| transform.name == name) else { return };
    let dialects = transform.sources().filter_map(|id| sources.get(id.index()));
    let by_dialect = dialects.map(|source| default_checkpoint_ms(source.kind.reading().dialect)).min();
    let TransformKind::Aggregate(aggregate) = &mut transform.kind else { return };
    let written = fields.value("checkpoint");
    Fields::set(&mut aggregate.checkpoint_ms, written.or(by_dialect));
}

/// The plan, and the place of its key flush log when it has one.
pub(super) fn build(
    whose: &str,
    fields: &Fields,
    wrong: &mut Vec<Diagnostic>,
) -> (AggregateTransform, Option<Place>) {
    let mut transform = default_plan();
    fields.fill(&mut transform, &SURROUNDINGS);
    let plan = &mut transform.plan;
    fields.fill(plan, &AGGREGATION);
    fields.fill(plan, &BOUNDS);
    plan.histograms = histograms(whose, fields, wrong);
    expiry(whose, fields, &mut plan.idle, wrong);
    transform.namespace = outputs::namespace(fields, wrong);
    transform.namespace.stats_prefix.clone_from(&transform.stats_prefix);
    let log_place = key_flush(whose, fields, &mut transform, wrong);
    (transform, log_place)
}

fn histograms(whose: &str, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Vec<HistogramPlan> {
    let Some(node) = fields.node("histograms") else { return Vec::new() };
    let whose = format!("a histogram of {whose}");
    tables("histograms", node, wrong)
        .into_iter()
        .map(|(place, entries)| {
            let fields = Fields::read(Section::Histogram, &whose, place, entries, wrong);
            let mut histogram = HistogramPlan { name_contains: String::new(), bins: Vec::new() };
            fields.fill(&mut histogram, &HISTOGRAM);
            histogram
        })
        .collect()
}

/// `expiry = "5m"` for all kinds, or a table with a key for each.
fn expiry(whose: &str, fields: &Fields, plan: &mut ExpiryPlan, wrong: &mut Vec<Diagnostic>) {
    let Some(node) = fields.node("expiry") else { return };
    if matches!(node.value, Value::Text(_)) {
        // Any kind but gauges: "3 windows" would not fit the others.
        let row = Section::Expiry.row("counters").expect("the options table has `expiry.counters`");
        if let Some(Checked::Expiry(all)) = value::check(row, node, wrong) {
            *plan = ExpiryPlan { counters: all, gauges: all, timers: all, sets: all };
        }
        return;
    }
    if let Some(fields) = fields.table("expiry", Section::Expiry, &format!("`expiry` of {whose}"), wrong) {
        fields.fill(plan, &EXPIRY);
    }
}

/// What a key flush is when only its interval is given.
pub(super) const KEY_FLUSH_DEFAULT: KeyFlushPlan =
    KeyFlushPlan { interval_ms: 60_000, percent: 100.0, round_up: true };

fn key_flush(
    whose: &str,
    fields: &Fields,
    transform: &mut AggregateTransform,
    wrong: &mut Vec<Diagnostic>,
) -> Option<Place> {
    let fields = fields.table("key_flush", Section::KeyFlush, &format!("`key_flush` of {whose}"), wrong)?;
    let key_flush = transform.plan.key_flush.insert(KEY_FLUSH_DEFAULT);
    fields.fill(key_flush, &KEY_FLUSH);
    transform.key_flush_log = fields.value("log");
    fields.place_of("log")
}

#[test]
fn checkpoints_are_on_where_no_original_is_stood_in_for() {
    use crate::diagnostic::Source;
    let checkpoint_ms = |dialect: &str, written: &str| {
        let text = format!(
            "[transforms.t]\ntype = \"aggregate\"\nfrom = [\"s\"]\n{written}\n\
             [sources.s]\ntype = \"statsd\"\ndialect = \"{dialect}\"\n\
             [outputs.o]\ntype = \"console\"\nfrom = [\"t\"]\n"
        );
        let (plan, wrong) = super::check(Source { name: "t.toml", text: &text }, super::Format::Toml);
        let Some(plan) = plan else { return Err(wrong[0].message.clone()) };
        Ok(plan.transforms[0].kind.as_aggregate().expect("an aggregation").checkpoint_ms)
    };
    for (dialect, default_ms) in [("union", 5_000), ("dogstatsd", 5_000), ("etsy", 0), ("perl", 0)] {
        assert_eq!(checkpoint_ms(dialect, ""), Ok(default_ms), "{dialect}");
        assert_eq!(checkpoint_ms(dialect, "checkpoint = \"30s\""), Ok(30_000), "{dialect}");
        assert_eq!(checkpoint_ms(dialect, "checkpoint = \"off\""), Ok(0), "{dialect}");
    }
    for wrong in ["\"on\"", "\"0s\"", "\"2h\"", "5", "false"] {
        assert!(checkpoint_ms("union", &format!("checkpoint = {wrong}")).is_err(), "{wrong}");
    }
}
