//! What an output of packets does with their lines: `mode`, filters, changes, and how aggregates become samples.
//!
//! Not here: where packets go (`outputs`), which endpoint of a cluster a line goes to (`clusters`).

use process::stage::StagePlan;
use wire::statsd::rewrite::{
    AggregateEncoding, Distributions, Form, Gauges, NegativeGauges, Rewrite, RewriteError, RewritePlan,
    Strip, TagFormat, TimerType,
};

use super::fields::{Fields, table};
use super::value::Checked;
use crate::diagnostic::{Code, Diagnostic};
use crate::options::Section;
use crate::plan::{Destination, LinesPlan};

/// Options for which packets are taken apart.
const LOOKING: [&str; 20] = [
    "max_packet_bytes",
    "flush_delay",
    "allow",
    "deny",
    "sample",
    "sample_names",
    "max_series",
    "prefix",
    "suffix",
    "tags_drop",
    "tags_rename",
    "tags_add",
    "convert",
    "tag_format",
    "one_value_per_line",
    "distributions",
    "histograms_as_timers",
    "gauge_signs",
    "strip",
    "events",
];

/// Options that say how, once they are.
const OF_LINES: [&str; 3] = ["series_expiry", "bare_tag_value", "aggregates"];

/// What else decides about an output's lines.
#[derive(Clone, Copy)]
pub(super) struct Around {
    /// It shares the lines with other endpoints.
    pub(super) in_cluster: bool,
    /// It takes from a transform.
    pub(super) takes_aggregates: bool,
}

/// What becomes of the lines of an output to `to`; None when packets go as they came.
pub(super) fn lines(
    name: &str,
    fields: &Fields,
    to: &Destination,
    around: Around,
    wrong: &mut Vec<Diagnostic>,
) -> Option<Box<LinesPlan>> {
    let asked = LOOKING.into_iter().find(|key| fields.place_of(key).is_some());
    let packs = ["max_packet_bytes", "flush_delay"].iter().any(|key| fields.place_of(key).is_some());
    // Looked at in any case: what is wrong in it is wrong without effect too.
    let aggregates = aggregates(name, fields, LinesPlan::new(to, false).aggregates, wrong);
    let each_its_own = match fields.word("mode") {
        Some("verbatim") => {
            verbatim(fields, asked, around, wrong);
            return None;
        }
        Some("lines") => true,
        Some(_) => false,
        None if around.in_cluster => !packs,
        None if asked.is_some() || around.takes_aggregates => false,
        None => {
            no_effect(fields, &OF_LINES, "packets stay as they are", wrong);
            return None;
        }
    };
    let mut plan = LinesPlan { aggregates, ..LinesPlan::new(to, each_its_own) };
    if each_its_own {
        no_effect(fields, &["max_packet_bytes", "flush_delay"], "each line is its own packet", wrong);
    } else if let Some(bytes) = fields.whole_usize("max_packet_bytes") {
        plan.packet_bytes_max = bytes;
        plan.aggregates.line_bytes_max = bytes;
    }
    Fields::set(&mut plan.flush_delay_ms, fields.whole("flush_delay"));
    stage(fields, &mut plan.stage, wrong);
    plan.rewrite = rewrite(fields, wrong);
    plan.aggregates.names = plan.rewrite.clone();
    if !around.takes_aggregates {
        no_effect(fields, &["aggregates"], "its `from` names no transform", wrong);
    }
    Some(Box::new(plan))
}

/// `mode = "verbatim"` with something that cannot be had that way.
fn verbatim(fields: &Fields, asked: Option<&'static str>, around: Around, wrong: &mut Vec<Diagnostic>) {
    let mode = fields.place_of("mode").unwrap_or(fields.place);
    let (message, place) = match asked {
        Some(key) => (
            format!("`{key}` needs parsed lines, and `verbatim` does not parse packets"),
            fields.place_of(key),
        ),
        None if around.in_cluster => (
            "a cluster needs parsed lines, and `verbatim` does not parse packets".into(),
            fields.place_of("sharding"),
        ),
        None if around.takes_aggregates => (
            "aggregates are sent as lines, and `verbatim` only forwards packets".into(),
            fields.place_of("from"),
        ),
        None => {
            return no_effect(fields, &OF_LINES, "packets stay as they are", wrong);
        }
    };
    wrong.push(
        Diagnostic::error(Code::Verbatim, message)
            .at(place.unwrap_or(mode))
            .label("needs parsed packets")
            .hint("leave `mode` out, or write mode = \"repack\" or mode = \"lines\""),
    );
}

fn no_effect(fields: &Fields, keys: &[&str], why: &str, wrong: &mut Vec<Diagnostic>) {
    for key in keys {
        if let Some(place) = fields.place_of(key) {
            let message = format!("`{key}` has no effect here: {why}");
            wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored"));
        }
    }
}

fn stage(fields: &Fields, stage: &mut StagePlan, wrong: &mut Vec<Diagnostic>) {
    let globs = |key| match fields.other(key) {
        Some(Checked::Globs(globs)) => globs.clone(),
        _ => Vec::new(),
    };
    stage.allow = globs("allow");
    stage.deny = globs("deny");
    Fields::set(&mut stage.sample, fields.number("sample"));
    if let Some(Checked::Shares(shares)) = fields.other("sample_names") {
        stage.sample_names = shares.clone();
    }
    Fields::set(&mut stage.series_max, fields.whole_u32("max_series"));
    Fields::set(&mut stage.series_idle_ns, fields.whole("series_expiry").map(|ms| ms * 1_000_000));
    if stage.series_max == 0 {
        no_effect(fields, &["series_expiry"], "without `max_series` no series is known", wrong);
    }
}

fn rewrite(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> RewritePlan {
    let texts = |key| match fields.other(key) {
        Some(Checked::Texts(texts)) => texts.iter().map(|(text, _)| text.clone()).collect(),
        _ => Vec::new(),
    };
    let mut plan = RewritePlan { to: form(fields), ..RewritePlan::default() };
    Fields::set(&mut plan.prefix, fields.text("prefix"));
    Fields::set(&mut plan.suffix, fields.text("suffix"));
    plan.tags_drop = texts("tags_drop");
    plan.tags_add = texts("tags_add");
    if let Some(Checked::Map(rename)) = fields.other("tags_rename") {
        plan.tags_rename = rename.clone();
    }
    Fields::set(&mut plan.bare_tag_value, fields.text("bare_tag_value"));
    if let Err(error) = Rewrite::new(&plan) {
        let key = match &error {
            RewriteError::BadAffix(text) if *text == plan.prefix => "prefix",
            RewriteError::BadAffix(_) => "suffix",
            RewriteError::BadTag(text) if plan.tags_drop.contains(text) => "tags_drop",
            RewriteError::BadTag(text) if plan.tags_add.contains(text) => "tags_add",
            RewriteError::BadTag(text) if *text == plan.bare_tag_value => "bare_tag_value",
            RewriteError::BadTag(_) => "tags_rename",
        };
        let place = fields.place_of(key).unwrap_or(fields.place);
        let message = format!("`{key}` cannot be used");
        wrong.push(Diagnostic::error(Code::BadValue, message).at(place).label(error.to_string()));
    }
    plan
}

/// `convert`, and what single switches change in it.
fn form(fields: &Fields) -> Form {
    let mut form = fields.word("convert").and_then(Form::named).unwrap_or(Form::KEEP);
    Fields::set(&mut form.tags, of_word(fields, "tag_format", &TAG_FORMS));
    Fields::set(&mut form.one_value_per_line, fields.flag("one_value_per_line"));
    Fields::set(&mut form.distributions, of_word(fields, "distributions", &DISTRIBUTIONS));
    Fields::set(&mut form.histograms_as_timers, fields.flag("histograms_as_timers"));
    Fields::set(&mut form.gauges, of_word(fields, "gauge_signs", &GAUGES));
    if let Some(Checked::Texts(texts)) = fields.other("strip") {
        let has = |word: &str| texts.iter().any(|(text, _)| text == word);
        form.strip = Strip {
            container: has("container"),
            external: has("external"),
            cardinality: has("cardinality"),
            time: has("time"),
            unknown: has("unknown"),
        };
    }
    Fields::set(&mut form.events, fields.flag("events"));
    form
}

/// Words of options with what they mean.
type Words<T, const N: usize> = [(&'static str, T); N];

pub(super) const TAG_FORMS: Words<TagFormat, 4> = [
    ("keep", TagFormat::Keep),
    ("drop", TagFormat::Drop),
    ("dogstatsd", TagFormat::Dogstatsd),
    ("graphite", TagFormat::Graphite),
];

pub(super) const DISTRIBUTIONS: Words<Distributions, 3> = [
    ("keep", Distributions::Keep),
    ("histograms", Distributions::Histograms),
    ("timers", Distributions::Timers),
];

pub(super) const GAUGES: Words<Gauges, 3> =
    [("keep", Gauges::Keep), ("changes", Gauges::SignsAreChanges), ("parts", Gauges::SignsAreParts)];

pub(super) const NEGATIVE_GAUGES: Words<NegativeGauges, 3> = [
    ("zero_first", NegativeGauges::ZeroFirst),
    ("signed", NegativeGauges::Signed),
    ("equals", NegativeGauges::Equals),
];

pub(super) const TIMER_TYPES: Words<TimerType, 3> = [
    ("timer", TimerType::Timer),
    ("histogram", TimerType::Histogram),
    ("distribution", TimerType::Distribution),
];

fn of_word<T: Copy, const N: usize>(fields: &Fields, key: &str, words: &Words<T, N>) -> Option<T> {
    let given = fields.word(key)?;
    words.iter().find(|(word, _)| *word == given).map(|(_, meant)| *meant)
}

fn aggregates(
    name: &str,
    fields: &Fields,
    mut form: AggregateEncoding,
    wrong: &mut Vec<Diagnostic>,
) -> AggregateEncoding {
    let Some(node) = fields.node("aggregates") else { return form };
    let Some(entries) = table("aggregates", node, wrong) else { return form };
    let whose = format!("`aggregates` of output `{name}`");
    let fields = Fields::read(Section::Aggregates, &whose, node.place, entries, wrong);
    Fields::set(&mut form.negative_gauges, of_word(&fields, "negative_gauges", &NEGATIVE_GAUGES));
    Fields::set(&mut form.timer_type, of_word(&fields, "timer_type", &TIMER_TYPES));
    Fields::set(&mut form.packed, fields.flag("packed"));
    Fields::set(&mut form.zero_counters, fields.flag("zero_counters"));
    Fields::set(&mut form.times, fields.flag("times"));
    form
}
