//! A checked `[transforms.NAME]` to its plan, and back: of `type = "aggregate"` all, of a relay what `relay` does not do.

use std::path::PathBuf;

use process::aggregate::AggregatePlan;
use wire::graphite::Namespace;
use wire::statsd::Dialect;

use super::conflicts::Claims;
use super::fields::Fields;
use super::output_group::OutputGroup;
use super::wiring::Named;
use super::{outputs, relay};
use crate::diagnostic::Diagnostic;
use crate::options::Section;
use crate::options::field::Table;
use crate::options::table::streams::STREAMS;
use crate::options::table::transforms::{AGGREGATION, BOUNDS, REPORT, SURROUNDINGS};
use crate::plan::{
    AggregateTransform, Feed, Plan, RelayTransform, SelfCounters, SourcePlan, StreamsTransform,
    TransformKind, TransformPlan, default_checkpoint_ms,
};

/// What a section makes; of a relay what is not about its outputs, which come later.
pub(super) fn kind(
    named: &Named,
    fields: &Fields,
    claims: &mut Claims,
    wrong: &mut Vec<Diagnostic>,
) -> TransformKind {
    match fields.section {
        Section::TransformRelay => return TransformKind::Relay(Box::new(RelayTransform::empty(None))),
        Section::TransformStreams => return TransformKind::Streams(Box::new(fields.read())),
        _ => {}
    }
    let transform = build(fields, wrong);
    if let Some(log) = &transform.key_flush_log {
        let place = fields.table("key_flush").map_or(fields.place, |report| report.at("log"));
        claims.file(&named.whose, (log, 0), place);
    }
    TransformKind::Aggregate(Box::new(transform))
}

/// The section of a transform.
pub(super) fn printed(plan: &Plan, outputs: &[OutputGroup<'_>], transform: &TransformPlan) -> Fields {
    match &transform.kind {
        TransformKind::Aggregate(aggregate) => fields(plan, &transform.from, aggregate),
        TransformKind::Relay(relay) => relay::fields(plan, outputs, &transform.from, relay),
        TransformKind::Streams(streams) => {
            let mut fields = Fields::node(Section::TransformStreams, plan.names_of(&transform.from));
            fields.give(&STREAMS, streams, &StreamsTransform::of_file(PathBuf::new()));
            fields
        }
    }
}

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

/// Sets the defaults that depend on the dialect of the sources of transform `name`, once all are known.
pub(super) fn resolve(name: &str, fields: &Fields, plan: &mut Plan) {
    let Plan { sources, transforms, .. } = plan;
    let Some(transform) = transforms.iter_mut().find(|transform| transform.name == name) else { return };
    let by_dialect = checkpoint_ms(sources, &transform.from);
    let TransformKind::Aggregate(aggregate) = &mut transform.kind else { return };
    if let Some(checkpoint_ms) = fields.value("checkpoint").or(by_dialect) {
        aggregate.checkpoint_ms = checkpoint_ms;
    }
}

/// The default of `checkpoint`, which depends on the sources.
fn checkpoint_ms(sources: &[SourcePlan], from: &[Feed]) -> Option<u64> {
    let sources = from.iter().filter_map(|feed| match feed {
        Feed::Source(id) => sources.get(id.index()),
        Feed::Transform(_) => None,
    });
    sources.map(|source| default_checkpoint_ms(source.kind.reading().dialect)).min()
}

/// The plan of a section.
fn build(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> AggregateTransform {
    let mut transform = default_plan();
    fields.fill(&mut transform, &SURROUNDINGS);
    fields.fill(&mut transform, &REPORT);
    fields.fill(&mut transform.plan, &AGGREGATION);
    fields.fill(&mut transform.plan, &BOUNDS);
    transform.namespace = outputs::namespace(fields, wrong);
    transform.namespace.stats_prefix.clone_from(&transform.stats_prefix);
    transform
}

/// The section of an aggregation.
fn fields(plan: &Plan, from: &[Feed], transform: &AggregateTransform) -> Fields {
    let mut default = default_plan();
    default.checkpoint_ms = checkpoint_ms(&plan.sources, from).unwrap_or(default.checkpoint_ms);
    let mut fields = Fields::node(Section::TransformAggregate, plan.names_of(from));
    fields.give(&SURROUNDINGS, transform, &default);
    fields.give_table(&transform.namespace);
    // `window` is always written, because readers of the file look for it.
    let without_window = AggregatePlan { window_ms: 0, ..default.plan.clone() };
    fields.give(&AGGREGATION, &transform.plan, &without_window);
    fields.give(&BOUNDS, &transform.plan, &default.plan);
    fields.give(&REPORT, transform, &default);
    fields
}

#[test]
fn checkpoints_are_off_only_when_an_original_program_is_replaced() {
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
