//! The lines about the selected row: one fact to a line, the most important first, wrapped between words. Pure.
//!
//! Not here: where they are drawn, and how many of them have room (`screen`).

use super::figure::{age, bytes};
use super::relays::{ClusterSample, RelaySample};
use super::sample::{DiskSample, OutputSample, SourceSample};
use super::screen::{clipped, width};

/// Blanks before what goes on from the line above.
const INDENT: &str = "  ";

/// A source.
pub(super) fn source(source: &SourceSample, columns: usize) -> Vec<String> {
    let mut reasons = source.reasons.clone();
    if source.kernel_dropped > 0 {
        reasons.insert(0, ("datagrams dropped by the kernel".to_owned(), source.kernel_dropped));
    }
    let place = format!("{}  {}  {}", source.name, source.kind, source.listen.join("  "));
    wrapped([lost(&reasons), place], columns)
}

/// A cluster of a relay.
pub(super) fn cluster(relay: &RelaySample, cluster: &ClusterSample, columns: usize) -> Vec<String> {
    let queued = bytes(cluster.queued_bytes);
    let first = format!("{}  {} of relay {}, {queued} queued", cluster.name, cluster.sharing, relay.name);
    let mut facts = vec![first];
    if !cluster.down.is_empty() {
        facts.push(format!("down: {}", cluster.down.join(", ")));
    }
    if !cluster.out.is_empty() {
        facts.push(format!("failed over: {}", cluster.out.join(", ")));
    }
    if facts.len() == 1 {
        facts.push("all are up".to_owned());
    }
    wrapped(facts, columns)
}

/// An output at `now_ms` by the daemon's clock.
pub(super) fn output(output: &OutputSample, now_ms: u64, columns: usize) -> Vec<String> {
    let place = if output.disk.is_some() { "on disk" } else { "in memory" };
    let state_for = age(output.state_for_s as f64);
    let state = format!(
        "  {}  {} for {state_for}, {} {place}",
        output.kind,
        output.state,
        bytes(output.queued_bytes)
    );
    // A long name is shortened beside the state, and has a line of its own further down.
    let name = clipped(&output.name, columns.saturating_sub(width(&state)));
    let mut facts = vec![name.clone() + &state];
    let error = (!output.last_error.is_empty()).then(|| {
        let ago = now_ms.saturating_sub(output.last_error_time_ms) / 1000;
        let ago =
            if output.last_error_time_ms == 0 { String::new() } else { format!(" {} ago", age(ago as f64)) };
        let text = Some(&output.last_error_text).filter(|text| !text.is_empty());
        format!("last error{ago}: {}", output.last_error)
            + &text.map(|text| format!(": {text}")).unwrap_or_default()
    });
    // An error that is over is of interest after everything that is not.
    let (now, over) = if output.state == "up" { (None, error) } else { (error, None) };
    facts.extend(now);
    facts.extend(
        output.disk.as_ref().and_then(|disk| disk.trouble.as_ref()).map(|trouble| format!("disk: {trouble}")),
    );
    if output.stalled_for_s > 0 {
        facts.push(format!("sources wait for room: {}", age(output.stalled_for_s as f64)));
    }
    facts.push(lost(&output.reasons));
    facts.extend(output.disk.as_ref().and_then(disk_errors));
    if name != output.name {
        facts.push(format!("name: {}", output.name));
    }
    facts.extend(over);
    wrapped(facts, columns)
}

/// What the log says more of.
fn disk_errors(disk: &DiskSample) -> Option<String> {
    let figures = [
        ("blocks in doubt", disk.blocks_in_doubt),
        ("write errors", disk.write_errors),
        ("sync errors", disk.sync_errors),
    ];
    let shown: Vec<String> = figures
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{what} {count}"))
        .collect();
    (!shown.is_empty()).then(|| format!("disk: {}", shown.join(", ")))
}

fn lost(reasons: &[(String, u64)]) -> String {
    if reasons.is_empty() {
        return "nothing lost".to_owned();
    }
    let reasons: Vec<String> = reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    format!("lost: {}", reasons.join(", "))
}

/// Each fact begins a line.
fn wrapped(facts: impl IntoIterator<Item = String>, columns: usize) -> Vec<String> {
    facts.into_iter().flat_map(|fact| lines(&fact, columns)).collect()
}

/// A fact in lines that fit, broken between words, or in a word that is wider than a line. What is no character of text
/// is `?`.
fn lines(fact: &str, columns: usize) -> Vec<String> {
    let clean: String = fact.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let mut lines = Vec::new();
    let mut line = String::new();
    // Blanks before a word are kept: two of them separate columns.
    for word in clean.split_inclusive(' ') {
        if width(&line) + width(word.trim_end()) > columns && !line.trim().is_empty() {
            lines.push(line.trim_end().to_owned());
            line = INDENT.to_owned();
        }
        for c in word.chars() {
            if width(&line) + width(c.encode_utf8(&mut [0; 4])) > columns
                && !line.trim().is_empty()
                && c != ' '
            {
                lines.push(line.trim_end().to_owned());
                line = INDENT.to_owned();
            }
            line.push(c);
        }
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[test]
fn facts_are_wrapped_between_words_and_never_shortened() {
    for (fact, columns, want) in [
        ("a  b  c", 80, &["a  b  c"][..]),
        ("last error: no space left on device", 20, &["last error: no space", "  left on device"]),
        ("name: abcdefghij", 8, &["name:", "  abcdef", "  ghij"]),
        ("a\u{1b}[1m", 80, &["a?[1m"]),
        ("統計統計 x", 6, &["統計統", "  計 x"]),
        ("", 80, &[""]),
    ] {
        assert_eq!(lines(fact, columns), want, "{fact:?}");
        assert!(lines(fact, columns).iter().all(|line| width(line) <= columns), "{fact:?}");
    }
    // Nothing fits, and it ends all the same.
    for columns in 0..4 {
        assert!(!lines("down for 7s, 統", columns).is_empty());
    }
}
