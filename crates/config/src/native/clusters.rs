//! `sharding` and the options that depend on it: the endpoints of an output as a cluster.
//!
//! Not here: hashing of keys (`process::sharding`), the lines themselves (`packets`).

use process::sharding::{Cluster, ClusterMistake, KeyForm, RingReplicas, SHARDS_MAX, ShardTable, Sharding};

use super::fields::Fields;
use super::value::Checked;
use crate::address::destination_name;
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::options::field::Words;
use crate::plan::{ClusterPlan, Destination};

/// A cluster without its members.
pub(super) struct Draft {
    pub(super) sharding: Sharding,
    pub(super) key: KeyForm,
    pub(super) labels: Vec<String>,
}

/// True when a section asks for a cluster, even for an invalid one.
pub(super) fn is_wanted(fields: &Fields) -> bool {
    matches!(fields.other("sharding"), Some(Checked::Word(word)) if *word != "copy")
}

/// The default labels of endpoints in the hash ring.
pub(super) fn default_labels(to: &[Destination]) -> Vec<String> {
    to.iter().map(destination_name).collect()
}

/// The cluster of a section; `None` when each endpoint gets everything, or after an error.
pub(super) fn draft(fields: &Fields, to: &[Destination], wrong: &mut Vec<Diagnostic>) -> Option<Draft> {
    let word = fields.word("sharding").unwrap_or("copy");
    let ring = matches!(word, "statsd-node" | "ketama");
    let watched = [
        ("key", word != "copy"),
        ("ring_replicas", word == "statsd-node"),
        ("labels", ring),
        ("shards", word != "copy" && !ring),
    ];
    for (key, watched) in watched {
        if !watched {
            fields.ignored(key, format!("`{key}` has no effect with sharding = \"{word}\""), wrong);
        }
    }
    let before = wrong.len();
    let sharding = match word {
        "statsd-node" => Sharding::StatsdNode(replicas(fields, wrong)),
        "ketama" => Sharding::Ketama,
        "jump" => Sharding::Jump(shards(fields, to, wrong)),
        "murmur3-statsrelay" => Sharding::Murmur3Statsrelay(shards(fields, to, wrong)),
        _ => return None,
    };
    let key = fields.value("key").unwrap_or(KeyForm::Node);
    let labels = labels(fields, to, wrong);
    if wrong.len() == before
        && let Err(mistake) = Cluster::new(&sharding, &labels)
    {
        let key = match mistake {
            ClusterMistake::SameLabel { .. } if fields.place_of("labels").is_some() => "labels",
            ClusterMistake::TooManyShards | ClusterMistake::NoSuchEndpoint { .. } => "shards",
            ClusterMistake::TooManyEndpoints
            | ClusterMistake::SameLabel { .. }
            | ClusterMistake::BadLabel { .. }
            | ClusterMistake::BadReplication { .. } => "to",
        };
        wrong.push(no_cluster(mistake.to_string()).at(fields.at(key)));
    }
    (wrong.len() == before).then_some(Draft { sharding, key, labels })
}

fn no_cluster(label: String) -> Diagnostic {
    Diagnostic::error(Code::NoCluster, "the endpoints make no cluster").label(label)
}

fn replicas(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> RingReplicas {
    match fields.value("ring_replicas") {
        None | Some(1_u32) => RingReplicas::One,
        Some(4) => RingReplicas::Four,
        Some(_) => {
            let message = "`ring_replicas` has no such value";
            fields.wrong("ring_replicas", Code::BadValue, message, "must be 1 or 4", wrong);
            RingReplicas::One
        }
    }
}

fn labels(fields: &Fields, to: &[Destination], wrong: &mut Vec<Diagnostic>) -> Vec<String> {
    if fields.other("labels").is_none() {
        return default_labels(to);
    }
    let labels = fields.texts("labels");
    if labels.len() != to.len() {
        let label = format!("{} labels for {} endpoints", labels.len(), to.len());
        wrong.push(no_cluster(label).at(fields.at("labels")));
    }
    labels.iter().map(|(label, _)| label.clone()).collect()
}

/// `{ "h:8125" = "0-511, 600" }` as a table of endpoints by shard.
fn shards(fields: &Fields, to: &[Destination], wrong: &mut Vec<Diagnostic>) -> ShardTable {
    let Some(Checked::Map(map)) = fields.other("shards") else { return Vec::new() };
    let names = default_labels(to);
    let mut table: Vec<Option<usize>> = Vec::new();
    let mut mistakes: Vec<(String, Option<String>)> = Vec::new();
    for (name, ranges) in map {
        let Some(endpoint) = names.iter().position(|known| known == name) else {
            let near = nearest(name, names.iter().map(String::as_str));
            let hint = near.map(|near| format!("did you mean \"{near}\"?"));
            mistakes.push((format!("`{name}` is no endpoint of `to`"), hint));
            continue;
        };
        for range in ranges.split(',').map(str::trim) {
            let Some((first, last)) = range_of(range) else {
                let most = SHARDS_MAX - 1;
                let label =
                    format!("\"{range}\" is neither a shard of 0 to {most} nor a range such as 0-511");
                mistakes.push((label, None));
                continue;
            };
            if table.len() <= last {
                table.resize(last + 1, None);
            }
            for (shard, held) in table.iter_mut().enumerate().take(last + 1).skip(first) {
                if held.replace(endpoint).is_some() {
                    mistakes.push((format!("shard {shard} is given twice"), None));
                    break;
                }
            }
        }
    }
    if mistakes.is_empty()
        && let Some(shard) = table.iter().position(Option::is_none)
    {
        mistakes.push((format!("shard {shard} is given to no endpoint"), None));
    }
    for (label, hint) in mistakes {
        let diagnostic = no_cluster(label).at(fields.at("shards"));
        wrong.push(Diagnostic { hint, ..diagnostic });
    }
    table.into_iter().map(Option::unwrap_or_default).collect()
}

/// First and last of `7` or `0-511`.
fn range_of(text: &str) -> Option<(usize, usize)> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| digits && *number < SHARDS_MAX)
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number(first.trim())?, number(last.trim())?);
    (first <= last).then_some((first, last))
}

/// Shards of each endpoint as text, which [`draft`] parses to the same table.
fn shards_text(table: &[usize], endpoint: usize) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (shard, _) in table.iter().enumerate().filter(|(_, owner)| **owner == endpoint) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == shard => *last = shard,
            _ => ranges.push((shard, shard)),
        }
    }
    let text = |(first, last): (usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The options of a cluster.
pub(super) fn give(fields: &mut Fields, cluster: &ClusterPlan, to: &[Destination]) {
    let names = default_labels(to);
    fields.give_value("sharding", Checked::Word(cluster.sharding.name()));
    match &cluster.sharding {
        Sharding::StatsdNode(RingReplicas::Four) => fields.give_value("ring_replicas", Checked::Whole(4)),
        // The rings of Graphite only have endpoints, and no section has such a cluster.
        Sharding::StatsdNode(RingReplicas::One)
        | Sharding::Ketama
        | Sharding::CarbonCh
        | Sharding::Fnv1aCh
        | Sharding::JumpFnv1aCh
        | Sharding::AnyOf
        | Sharding::CarbonPython { .. } => {}
        Sharding::Jump(table) | Sharding::Murmur3Statsrelay(table) => {
            let shards = names.iter().enumerate().filter(|(at, _)| table.contains(at));
            let shards = shards.map(|(at, name)| (name.clone(), shards_text(table, at)));
            fields.give_value_unless("shards", Checked::Map(shards.collect()), Checked::Map(Vec::new()));
        }
    }
    if let Some(word) = KeyForm::word(&cluster.key).filter(|_| cluster.key != KeyForm::Node) {
        fields.give_value("key", Checked::Word(word));
    }
    fields.give_value_unless("labels", Checked::texts(&cluster.labels), Checked::texts(&names));
}
