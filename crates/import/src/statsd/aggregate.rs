//! Aggregation options: windows, percentiles, histograms, expiry, keyFlush (spec statsd §7, §10.1).

use std::path::PathBuf;

use process::aggregate::{
    AggregatePlan, ExpiryPlan, FlushAlign, HistogramPlan, KeyFlushPlan, PercentLabel, SeriesExpiry,
};

use super::values::{Import, Section};
use crate::javascript::{Node, Value, to_text};
use config::diagnostic::{Code, nearest};
use config::options::TIMER_AGGREGATES;

/// Longest interval of a timer in node.
const INTERVAL_MS_MAX: u64 = i32::MAX as u64;
const FLUSH_INTERVAL_MS: u64 = 10_000;

/// The aggregation without its `keyFlush`.
pub(super) fn aggregation(import: &mut Import<'_>, root: &mut Section<'_>) -> AggregatePlan {
    let perl = import.perl();
    let defaults = AggregatePlan::default();
    AggregatePlan {
        window_ms: import.integer(root, "flushInterval", 1, INTERVAL_MS_MAX).unwrap_or(FLUSH_INTERVAL_MS),
        align: if perl { FlushAlign::Interval } else { FlushAlign::Start },
        measured_rates: false,
        percentiles: percentiles(import, root),
        percent_label: if perl { PercentLabel::Every } else { PercentLabel::First },
        histograms: if perl { Vec::new() } else { histograms(import, root) },
        timer_aggregates: if perl { Vec::new() } else { timer_aggregates(import, root) },
        timer_weights: false,
        timer_rate_ignored: perl,
        timer_exact_max: 0,
        set_exact_max: 0,
        set_members: false,
        idle: idle(import, root),
        series_max: defaults.series_max,
        bytes_max: defaults.bytes_max,
        // Net::Statsd::Server also deletes its own counters until they are used again (spec statsd §4).
        keep_contains: if perl { Vec::new() } else { defaults.keep_contains },
        allow_non_finite: false,
        key_flush: None,
    }
}

/// `prefixStats`. Perl rejects an empty one; node then uses names that begin with a dot, which we do not.
pub(super) fn stats_prefix(import: &mut Import<'_>, root: &mut Section<'_>) -> String {
    let default = "statsd".to_owned();
    let Some(member) = root.get("prefixStats") else {
        return default;
    };
    let Some(prefix) = import.text_of("prefixStats", &member.value) else {
        return default;
    };
    if prefix.is_empty() && import.perl() {
        import.bad_value("prefixStats", &member.value, "a string that is not empty");
    } else if prefix.is_empty() {
        let message = "with an empty `prefixStats` the daemon's own counters are left out";
        let hint = "node names them `.packets_received` and so on, an empty element in Graphite";
        import.warn(Code::NotCarriedOver, member.value.place, message).hint(hint);
    }
    prefix
}

fn percentiles(import: &mut Import<'_>, root: &mut Section<'_>) -> Vec<(f64, String)> {
    let default = vec![(90.0, "90".to_owned())];
    let Some(member) = root.set("percentThreshold") else {
        return default;
    };
    let nodes = match &member.value.value {
        Value::Array(nodes) => &nodes[..],
        Value::Number(_) | Value::Text(_) if import.perl() => {
            let message = "Net::Statsd::Server reads `percentThreshold` only as a list: 90 holds";
            let hint = format!("write [{}]", member.value.value.to_text());
            import.warn(Code::ImportNoEffect, member.value.place, message).hint(&hint);
            return default;
        }
        _ => std::slice::from_ref(&member.value),
    };
    let mut percentiles: Vec<(f64, String)> = Vec::new();
    for node in nodes {
        let Some(percent) = import.number("percentThreshold", node) else { continue };
        if !(-100.0..=100.0).contains(&percent) {
            import.bad_value("percentThreshold", node, "between -100 and 100");
            continue;
        }
        let text = match &node.value {
            Value::Text(text) => text.trim().to_owned(),
            _ => to_text(percent),
        };
        // A repeated threshold gives one set of lines, as in the original.
        if !percentiles.iter().any(|(_, known)| *known == text) {
            percentiles.push((percent, text));
        }
    }
    percentiles
}

fn timer_aggregates(import: &mut Import<'_>, root: &mut Section<'_>) -> Vec<String> {
    let mut known = TIMER_AGGREGATES.to_vec();
    known.sort_unstable();
    let mut names = Vec::new();
    for node in import.list(root, "calculatedTimerMetrics").unwrap_or_default() {
        let Value::Text(name) = &node.value else {
            import.wrong_type("calculatedTimerMetrics", node, "a list of strings");
            continue;
        };
        if !known.contains(&name.as_str()) {
            let message = format!("`calculatedTimerMetrics` lists {name:?}, which is no aggregate of timers");
            let stem =
                name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_').trim_end_matches("_top");
            let percent =
                known.iter().find(|known| known.strip_suffix("_percent") == Some(stem) && stem != name);
            let word = percent.copied().or_else(|| nearest(name, known.iter().copied()));
            let hint = word.map_or(format!("aggregates are: {}", known.join(", ")), |word| {
                format!("did you mean `{word}`?")
            });
            import.warn(Code::ImportNoEffect, node.place, message).hint(&hint);
        }
        names.push(name.clone());
    }
    names
}

fn histograms(import: &mut Import<'_>, root: &mut Section<'_>) -> Vec<HistogramPlan> {
    let mut histograms = Vec::new();
    for (at, node) in import.list(root, "histogram").unwrap_or_default().iter().enumerate() {
        let name = format!("histogram[{at}]");
        let Some(mut section) = import.object(&name, node) else { continue };
        let metric = section.get("metric");
        let bins = section.get("bins");
        match (metric, bins) {
            (Some(metric), Some(bins)) => {
                let name_contains = import.text_of(&section.name("metric"), &metric.value);
                let bins = self::bins(import, &section.name("bins"), &bins.value);
                if let (Some(name_contains), Some(bins)) = (name_contains, bins) {
                    histograms.push(HistogramPlan { name_contains, bins });
                }
            }
            (metric, _) => {
                let missing = if metric.is_none() { "metric" } else { "bins" };
                import.error(Code::ImportBadValue, node.place, format!("`{name}` has no `{missing}`"));
            }
        }
        section.finish(import);
    }
    histograms
}

/// Limits with the texts of their labels.
fn bins(import: &mut Import<'_>, name: &str, node: &Node) -> Option<Vec<(f64, String)>> {
    let Value::Array(nodes) = &node.value else {
        import.wrong_type(name, node, "a list of numbers");
        return None;
    };
    let mut bins: Vec<(f64, String)> = Vec::new();
    for node in nodes {
        let limit = match &node.value {
            Value::Text(text) if text == "inf" => f64::INFINITY,
            _ => import.number(name, node)?,
        };
        if bins.last().is_some_and(|(last, _)| *last >= limit) {
            import.bad_value(name, node, "a list of ascending limits, `'inf'` last");
            return None;
        }
        bins.push((limit, node.value.to_text().trim().to_owned()));
    }
    Some(bins)
}

/// The delete options: one per kind overrides `deleteIdleStats`, both ways (spec statsd §7.8).
fn idle(import: &mut Import<'_>, root: &mut Section<'_>) -> ExpiryPlan {
    let all = import.switch(root, "deleteIdleStats").unwrap_or(false);
    let mut kind = |key, ttl_windows| match import.switch(root, key).unwrap_or(all) {
        true => SeriesExpiry::Delete { ttl_windows },
        false => SeriesExpiry::Keep,
    };
    let (counters, timers, sets) =
        (kind("deleteCounters", 1), kind("deleteTimers", 1), kind("deleteSets", 1));
    let gauges = kind("deleteGauges", 1);
    let ttl_windows = if import.perl() { 1 } else { gauges_ttl(import, root) };
    let gauges =
        if gauges == SeriesExpiry::Keep { SeriesExpiry::Keep } else { SeriesExpiry::Delete { ttl_windows } };
    ExpiryPlan { counters, gauges, timers, sets }
}

/// `gaugesMaxTTL`: a whole number over 1 is used, anything else is 1, also a text with a number.
fn gauges_ttl(import: &mut Import<'_>, root: &mut Section<'_>) -> u32 {
    let Some(member) = root.get("gaugesMaxTTL") else {
        return 1;
    };
    let written = match &member.value.value {
        Value::Number(number) if number.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(number) => {
            return *number as u32;
        }
        Value::Text(text) => format!("the text '{text}'"),
        other => other.to_text(),
    };
    let message = format!("`gaugesMaxTTL` is {written}: the original uses 1");
    import.warn(Code::ImportBadValue, member.value.place, message).hint("write a whole number of flushes");
    1
}

/// `keyFlush`: the report, when its interval is over 0, and its file.
pub(super) fn key_flush(
    import: &mut Import<'_>,
    root: &mut Section<'_>,
) -> (Option<KeyFlushPlan>, Option<PathBuf>) {
    let Some(mut section) = import.section(root, "keyFlush") else {
        return (None, None);
    };
    let interval_ms = import.integer(&mut section, "interval", 1, INTERVAL_MS_MAX);
    let percent = section.set("percent").and_then(|member| percent(import, &member.value)).unwrap_or(100.0);
    let log = import.text(&mut section, "log").map(PathBuf::from);
    section.finish(import);
    let round_up = !import.perl();
    let plan = interval_ms.map(|interval_ms| KeyFlushPlan { interval_ms, percent, round_up });
    let log = log.filter(|_| plan.is_some());
    (plan, log)
}

fn percent(import: &mut Import<'_>, node: &Node) -> Option<f64> {
    let percent = import.number("keyFlush.percent", node)?;
    if percent > 100.0 {
        let message = format!("`keyFlush.percent` is {}: all keys are reported", to_text(percent));
        import.warn(Code::ImportBadValue, node.place, message);
        return Some(100.0);
    }
    if percent < 0.0 {
        import.bad_value("keyFlush.percent", node, "over 0 and at most 100");
        return None;
    }
    Some(percent).filter(|percent| *percent > 0.0)
}
