//! A checked `[transforms.NAME]` to its plan.

use process::aggregate::{
    AggregatePlan, ExpiryPlan, FlushAlign, HistogramPlan, KeyFlushPlan, PercentLabel, SeriesExpiry,
};
use wire::graphite::Namespace;
use wire::statsd::Dialect;

use super::fields::{Fields, table, tables};
use super::outputs;
use super::tree::Value;
use super::value::{self, Checked};
use crate::diagnostic::{Diagnostic, Place};
use crate::options::Section;
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
    let written = fields.whole("checkpoint");
    Fields::set(&mut aggregate.checkpoint_ms, written.or(by_dialect));
}

/// The plan, and the place of its key flush log when it has one.
pub(super) fn build(
    whose: &str,
    fields: &Fields,
    wrong: &mut Vec<Diagnostic>,
) -> (AggregateTransform, Option<Place>) {
    let mut transform = default_plan();
    let plan = &mut transform.plan;
    Fields::set(&mut plan.window_ms, fields.whole("window"));
    match fields.word("flush_align") {
        Some("wall") => plan.align = FlushAlign::Wall,
        Some("start") => plan.align = FlushAlign::Start,
        Some("interval") => plan.align = FlushAlign::Interval,
        _ => {}
    }
    Fields::set(&mut plan.measured_rates, fields.flag("measured_rates"));
    if let Some(Checked::Limits(percentiles)) = fields.other("percentiles") {
        plan.percentiles = percentiles.clone();
    }
    match fields.word("percent_label") {
        Some("first") => plan.percent_label = PercentLabel::First,
        Some("every") => plan.percent_label = PercentLabel::Every,
        _ => {}
    }
    Fields::set(&mut plan.timer_aggregates, texts(fields, "timer_aggregates"));
    Fields::set(&mut plan.timer_weights, fields.flag("timer_weights"));
    Fields::set(&mut plan.timer_rate_ignored, fields.flag("timer_rate_ignored"));
    Fields::set(&mut plan.timer_exact_max, fields.whole_usize("max_exact_timer_values"));
    Fields::set(&mut plan.set_exact_max, fields.whole_usize("max_exact_set_members"));
    Fields::set(&mut plan.set_members, fields.flag("set_members"));
    Fields::set(&mut plan.series_max, fields.whole_u32("max_series"));
    Fields::set(&mut plan.bytes_max, fields.whole("max_bytes"));
    Fields::set(&mut plan.keep_contains, texts(fields, "keep_contains"));
    Fields::set(&mut plan.allow_non_finite, fields.flag("allow_non_finite"));
    plan.histograms = histograms(whose, fields, wrong);
    idle(whose, fields, &mut plan.idle, wrong);
    Fields::set(&mut transform.stats_prefix, fields.text("stats_prefix"));
    transform.namespace = outputs::namespace(fields, wrong);
    transform.namespace.stats_prefix.clone_from(&transform.stats_prefix);
    match fields.word("self_counters") {
        Some("node") => transform.self_counters = SelfCounters::Node,
        Some("perl") => transform.self_counters = SelfCounters::Perl,
        Some("none") => transform.self_counters = SelfCounters::None,
        _ => {}
    }
    let log_place = key_flush(whose, fields, &mut transform, wrong);
    (transform, log_place)
}

fn texts(fields: &Fields, key: &str) -> Option<Vec<String>> {
    match fields.other(key)? {
        Checked::Texts(texts) => Some(texts.iter().map(|(text, _)| text.clone()).collect()),
        _ => None,
    }
}

fn histograms(whose: &str, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Vec<HistogramPlan> {
    let Some(node) = fields.node("histograms") else { return Vec::new() };
    let whose = format!("a histogram of {whose}");
    tables("histograms", node, wrong)
        .into_iter()
        .map(|(place, entries)| {
            let fields = Fields::read(Section::Histogram, &whose, place, entries, wrong);
            let bins = match fields.other("bins") {
                Some(Checked::Limits(bins)) => bins.clone(),
                _ => Vec::new(),
            };
            HistogramPlan { name_contains: fields.text("name_contains").unwrap_or_default(), bins }
        })
        .collect()
}

/// `idle = "5m"` for all kinds, or a table with a key for each.
fn idle(whose: &str, fields: &Fields, plan: &mut ExpiryPlan, wrong: &mut Vec<Diagnostic>) {
    let Some(node) = fields.node("expiry") else { return };
    if matches!(node.value, Value::Text(_)) {
        // Any kind but gauges: "3 windows" would not fit the others.
        let row = Section::Expiry.row("counters").expect("the options table has `expiry.counters`");
        if let Some(Checked::Expiry(all)) = value::check(row, node, wrong) {
            *plan = ExpiryPlan { counters: all, gauges: all, timers: all, sets: all };
        }
        return;
    }
    let Some(entries) = table("expiry", node, wrong) else { return };
    let fields = Fields::read(Section::Expiry, &format!("`expiry` of {whose}"), node.place, entries, wrong);
    let get = |key: &str| -> Option<SeriesExpiry> {
        match fields.other(key)? {
            Checked::Expiry(idle) => Some(*idle),
            _ => None,
        }
    };
    Fields::set(&mut plan.counters, get("counters"));
    Fields::set(&mut plan.gauges, get("gauges"));
    Fields::set(&mut plan.timers, get("timers"));
    Fields::set(&mut plan.sets, get("sets"));
}

fn key_flush(
    whose: &str,
    fields: &Fields,
    transform: &mut AggregateTransform,
    wrong: &mut Vec<Diagnostic>,
) -> Option<Place> {
    let node = fields.node("key_flush")?;
    let entries = table("key_flush", node, wrong)?;
    let fields =
        Fields::read(Section::KeyFlush, &format!("`key_flush` of {whose}"), node.place, entries, wrong);
    transform.plan.key_flush = Some(KeyFlushPlan {
        interval_ms: fields.whole("interval").unwrap_or(60_000),
        percent: fields.number("percent").unwrap_or(100.0),
        round_up: fields.flag("round_up").unwrap_or(true),
    });
    transform.key_flush_log = fields.path("log");
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
