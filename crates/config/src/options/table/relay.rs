//! Options of relays: their clusters and rules.

use super::{TIB, row};
use crate::options::Default::{Absent, Depends, Required, Toml};
use crate::options::Section::{self, RelayCluster, RelayRule, RelayStatistics, TransformRelay};
use crate::options::{Row, Type};

/// Words of `share`.
pub(crate) const SHARES: &[&str] = &[
    "forward",
    "any_of",
    "failover",
    "lb",
    "carbon_ch",
    "fnv1a_ch",
    "jump_fnv1a_ch",
    "python_carbon_ch",
    "python_fnv1a_ch",
    "python_mmh3_ch",
];

/// Longest time of a window: what 32 bits of seconds hold.
const SECONDS_MAX_MS: u64 = (u32::MAX as u64) * 1000;

/// Most names whose way can be remembered: places in their store have 32 bits.
const NAMES_MOST: u64 = 64_000_000;

const ABOUT: &str = "Sends Graphite points on by their names: copies and shares them out among outputs, gives them other names, rolls many up into few. See [the relay as configuration](relay-native.md).";

/// Heading in TOML, and what the section is for.
pub(super) fn section_text(section: Section) -> (&'static str, &'static str) {
    match section {
        RelayCluster => (
            "[transforms.NAME.clusters.CLUSTER]",
            "Outputs of a relay, and how points are shared out among them.",
        ),
        RelayRule => (
            "[[transforms.NAME.rules]]",
            "One rule of a relay: a rewrite when it has `into`, a rollup when it has `compute`, otherwise a route.",
        ),
        RelayStatistics => ("[transforms.NAME.statistics]", "Where a relay's own figures go."),
        _ => ("[transforms.NAME] type = \"relay\"", ABOUT),
    }
}

/// In the order of the reference.
pub(super) const ROWS: &[Row] = &[
    row(
        &[TransformRelay],
        "clusters",
        Type::NamedTables(RelayCluster),
        Absent("no clusters"),
        "{ all = { share = \"forward\", to = [\"carbon\"] } }",
        "Outputs by name, and how points are shared out among them.",
        "Rules send to clusters. `blackhole` is no cluster: what a rule sends there is swallowed.",
    ),
    row(
        &[TransformRelay],
        "rules",
        Type::Tables(RelayRule),
        Toml("[]"),
        "[{ match = ['^sys\\.'], to = \"blackhole\" }]",
        "What becomes of a point by its name, one rule after the other.",
        "A point meets them in this order, until one says `stop` or `to = \"blackhole\"`. Points that none sends anywhere end as `filtered`.",
    ),
    row(
        &[TransformRelay],
        "statistics",
        Type::Table(RelayStatistics),
        Absent("they meet the rules as points do"),
        "{ to = \"blackhole\" }",
        "Where the relay's own figures go.",
        "",
    ),
    row(
        &[TransformRelay],
        "names_max",
        Type::Whole { min: 2, max: NAMES_MOST },
        Toml("4194304"),
        "1000000",
        "Names whose way is remembered, so that their rules are not gone through again.",
        "With names of 48 bytes the default takes some 400 MiB when all of them are there. Past it names that were not seen for long are forgotten, and looked up anew.",
    ),
    row(
        &[TransformRelay],
        "rollup_series_max",
        Type::Whole { min: 1, max: 1_000_000_000 },
        Toml("2000000"),
        "100000",
        "Most results of rollups under way; values for new ones past it are shed as `series_max`.",
        "",
    ),
    row(
        &[TransformRelay],
        "rollup_bytes_max",
        Type::Size { min: 0, max: TIB },
        Toml("\"256MiB\""),
        "\"1GiB\"",
        "Most bytes that rollups hold; values past it are shed as `bytes_max`.",
        "A window takes 56 bytes and a value of a percentile 8.",
    ),
    // Clusters
    row(
        &[RelayCluster],
        "share",
        Type::Word(SHARES),
        Required,
        "\"carbon_ch\"",
        "Which members get a point.",
        "`forward`: each. `any_of`: one by the name; another one while it is down. `failover`: the first that is up. `lb`: one after the other. `carbon_ch`, `fnv1a_ch`, `jump_fnv1a_ch`: those that own the key, as carbon-c-relay places it. `python_carbon_ch`, `python_fnv1a_ch`, `python_mmh3_ch`: as carbon-relay.py does with `ROUTER_HASH_TYPE`.",
    ),
    row(
        &[RelayCluster],
        "to",
        Type::Texts,
        Required,
        "[\"carbon\"]",
        "Outputs that are its members; their order counts.",
        "`\"NAME\"`: an output, or every endpoint of one that has several. `\"NAME/host:port\"`: one endpoint. `=INSTANCE` behind it: what keys are placed by instead of the address. The outputs take from this relay alone; one may be a member of several clusters.",
    ),
    row(
        &[RelayCluster],
        "replication",
        Type::Whole { min: 1, max: 255 },
        Toml("1"),
        "2",
        "Members that get each point, with a `share` that ends in `_ch`.",
        "At most as many as there are members.",
    ),
    row(
        &[RelayCluster],
        "dynamic",
        Type::Flag,
        Toml("false"),
        "true",
        "Let others stand in for a member that is down, with a `share` that ends in `_ch`.",
        "Otherwise its points wait in its queue.",
    ),
    row(
        &[RelayCluster],
        "diverse_replicas",
        Type::Flag,
        Toml("true"),
        "false",
        "Put the copies of a point on different hosts, with a `share` that begins with `python_`.",
        "`DIVERSE_REPLICAS` of carbon.",
    ),
    // Rules
    row(
        &[RelayRule],
        "match",
        Type::TextOrTexts,
        Depends("`\"*\"`, every name; a rewrite and a rollup need it"),
        "['^sys\\.', '\\.cpu$']",
        "Regular expressions that are looked for in the name.",
        "POSIX extended ones with `\\d`, `\\w` and their like; `'…'` in TOML leaves every `\\` as it is. Each is a rule of its own with the same rest, so that a name that two of them match is sent twice. A rewrite has one.",
    ),
    row(
        &[RelayRule],
        "ignore_case",
        Type::Flag,
        Toml("false"),
        "true",
        "Let letters in `match` stand for both cases.",
        "",
    ),
    row(
        &[RelayRule],
        "to",
        Type::TextOrTexts,
        Absent("a route sends nowhere, the results of a rollup meet the rules from the top"),
        "[\"all\"]",
        "Clusters that get a copy, or `\"blackhole\"`.",
        "Of a rollup: where its results go, and nowhere else. What goes to the blackhole is swallowed, and meets no further rule.",
    ),
    row(
        &[RelayRule],
        "stop",
        Type::Flag,
        Toml("false"),
        "true",
        "Let points that matched meet no further rule.",
        "A route without `to` does not stop. A rollup stops the point that it took in.",
    ),
    row(
        &[RelayRule],
        "validate",
        Type::Text,
        Absent("everything is sent"),
        "'^[0-9.]+ [0-9]+$'",
        "Regular expression for what stands behind the name: tags, value and time.",
        "Points that it is not found in are not sent, and meet no further rule.",
    ),
    row(
        &[RelayRule],
        "on_invalid",
        Type::Word(&["log", "drop"]),
        Toml("\"log\""),
        "\"drop\"",
        "Whether lines that do not pass `validate` are also shown in the log.",
        "",
    ),
    row(
        &[RelayRule],
        "key",
        Type::Text,
        Absent("the name"),
        "'\\1'",
        "What clusters with `_ch` place a point by: a text with groups of the match.",
        "`\\1` is the first group, `\\_1` the same with `_` for each dot, `\\^1` in capitals, `\\.1` in small letters.",
    ),
    row(
        &[RelayRule],
        "into",
        Type::Text,
        Absent("the rule is no rewrite"),
        "'host.\\1'",
        "Makes the rule a rewrite: what the part of the name that matched becomes for all rules below.",
        "Groups as in `key`.",
    ),
    row(
        &[RelayRule],
        "all",
        Type::Flag,
        Toml("false"),
        "true",
        "Let a rewrite replace every occurrence, as carbon's rewrite-rules.conf does, and not the first alone.",
        "",
    ),
    row(
        &[RelayRule],
        "compute",
        Type::Computes,
        Absent("the rule is no rollup"),
        "{ sum = 'sum.\\1', p90 = 'p90.\\1' }",
        "Makes the rule a rollup: what is computed of the points of each window, and what it is called.",
        "`sum`, `count`, `max`, `min`, `average`, `median`, `variance`, `stddev`; `p1` to `p99`: percentiles by nearest rank; `permille_1` to `permille_999`: percentiles between two values, as carbon's. A name has groups as in `key`, and each name that it gives is a series of its own. A list of such tables computes one thing under several names.",
    ),
    row(
        &[RelayRule],
        "every",
        Type::Duration { min_ms: 1000, max_ms: SECONDS_MAX_MS - 1000 },
        Absent("the rule is no rollup"),
        "\"60s\"",
        "Length of a rollup's window, in whole seconds. Windows go by the points' own time.",
        "",
    ),
    row(
        &[RelayRule],
        "expire",
        Type::Duration { min_ms: 2000, max_ms: SECONDS_MAX_MS },
        Absent("the rule is no rollup"),
        "\"75s\"",
        "Time after its begin for which a rollup's window takes points, in whole seconds; then it is computed.",
        "Longer than `every`.",
    ),
    row(
        &[RelayRule],
        "stamp",
        Type::Word(&["start", "middle", "end"]),
        Toml("\"end\""),
        "\"start\"",
        "Which second of the window a rollup's result is labelled with.",
        "",
    ),
    row(
        &[RelayRule],
        "late",
        Type::Word(&["shed", "oldest"]),
        Toml("\"shed\""),
        "\"oldest\"",
        "What becomes of points whose window is over: shed, or counted in the oldest one that is open.",
        "",
    ),
    // Statistics
    row(
        &[RelayStatistics],
        "to",
        Type::TextOrTexts,
        Required,
        "\"blackhole\"",
        "Clusters that get them, or `\"blackhole\"`.",
        "",
    ),
];
