//! Options of relays: their clusters and rules.

use process::aggregation_rules::{AggregationRuleLimits, Late, Stamp};
use process::relay::{Distribution, RelayPlan};
use process::sharding::{CarbonHash, Sharding};

use super::types::{TIB, duration, one_of, size, whole};
use crate::diagnostic::Place;
use crate::options::checked::Checked;
use crate::options::field::{Form, Slot, rows, words};
use crate::options::row::Default::{Absent, Depends, Required, Toml};
use crate::options::row::Type::{Computes, Flag, NamedTables, Table, Tables, Text, TextOrTexts, Texts};
use crate::options::section::Section::{RelayCluster, RelayRule, RelayStatistics, TransformRelay};
use crate::plan::{BLACKHOLE, RelayTransform};

words! {
    Stamp: "start" = Stamp::Start, "middle" = Stamp::Middle, "end" = Stamp::End;
    Distribution: "forward" = Distribution::Copies, "any_of" = sharded(Sharding::AnyOf, true),
        "failover" = Distribution::Failover, "lb" = Distribution::RoundRobin, "carbon_ch" = sharded(Sharding::CarbonCh, false),
        "fnv1a_ch" = sharded(Sharding::Fnv1aCh, false),
        "jump_fnv1a_ch" = sharded(Sharding::JumpFnv1aCh, false),
        "python_carbon_ch" = python(CarbonHash::CarbonCh, false),
        "python_fnv1a_ch" = python(CarbonHash::Fnv1aCh, false),
        "python_mmh3_ch" = python(CarbonHash::Mmh3Ch, false),
        "python_fast_carbon_ch" = python(CarbonHash::CarbonCh, true),
        "python_fast_fnv1a_ch" = python(CarbonHash::Fnv1aCh, true),
        "python_fast_mmh3_ch" = python(CarbonHash::Mmh3Ch, true);
    OnInvalid for bool: "log" = false, "drop" = true;
    Late: "dropped" = Late::Dropped, "oldest" = Late::Oldest;
}

/// Rings of carbon's own relay.
const fn python(hash: CarbonHash, fast: bool) -> Distribution {
    sharded(Sharding::CarbonPython { hash, fast, diverse: true }, false)
}

/// One member for each key.
const fn sharded(sharding: Sharding, fail_over: bool) -> Distribution {
    Distribution::Sharded { sharding, replication: 1, fail_over }
}

/// Longest time of a window: what 32 bits of seconds hold.
const SECONDS_MAX_MS: u64 = (u32::MAX as u64) * 1000;

/// Most names whose way can be remembered: places in their store have 32 bits.
const NAMES_MOST: u64 = 64_000_000;

rows! {
    RELAY: RelayTransform = |_| RelayTransform {
        plan: RelayPlan::default(),
        names_max: RelayTransform::NAMES_MAX,
        aggregation_rules: AggregationRuleLimits::default(),
    };
    in [TransformRelay] {
        "clusters": NamedTables(RelayCluster),
            Absent("no clusters"), "{ all = { type = \"forward\", to = [\"carbon\"] } }",
            "Outputs by name, and how points are shared out among them.",
            "Rules send to clusters. `blackhole` is no cluster: what a rule sends there is swallowed.";
        "rules": Tables(RelayRule), Toml("[]"), "[{ match = ['^sys\\.'], to = \"blackhole\" }]",
            "What becomes of a point by its name, one rule after the other.",
            "A point meets them in this order, until one says `stop` or `to = \"blackhole\"`. Points that none sends anywhere end as `filtered`.";
        "statistics": Table(RelayStatistics), Absent("they meet the rules as points do"), "{ to = \"blackhole\" }",
            "Where the relay's own figures go.";
        "once" => plan.once: Flag, Toml("false"), "true",
            "Give each output a point once, however many rules send it there.",
            "The first copy counts. carbon's relays do so; carbon-c-relay sends every copy.";
        "max_names" => names_max: whole(2, NAMES_MOST), Toml("4194304"), "1000000",
            "Names whose way is remembered, so that their rules are not gone through again.",
            "All of them together take at most 128 bytes for each, 512 MiB with the default; with names of 48 bytes some 400 MiB. Past either names that were not seen for long are forgotten, and looked up anew.";
        "max_aggregation_series" => aggregation_rules.series_max: whole(1, 1_000_000_000), Toml("2000000"), "100000",
            "Most results of aggregation rules under way; values for new ones past it are dropped as `series_max`.";
        "max_aggregation_bytes" => aggregation_rules.bytes_max: size(0, TIB), Toml("\"256MiB\""), "\"1GiB\"",
            "Most bytes that aggregation rules hold; values past it are dropped as `aggregation_rule_full`.",
            "A result takes about 100 bytes and its name, a window 56 bytes, or 128 where a result has more than 64 of them, and a value of a percentile 8. Memory that is taken and not used yet counts, which may be half as much again.";
    }
}

rows! {
    CLUSTER: ();
    in [RelayCluster] {
        "type": one_of::<Distribution>(), Required, "\"carbon_ch\"",
            "Which members get a point.",
            "`forward`: each. `any_of`: one by the name; another one while it is down. `failover`: the first that is up. `lb`: one after the other. `carbon_ch`, `fnv1a_ch`, `jump_fnv1a_ch`: those that own the key, as carbon-c-relay places it. `python_carbon_ch`, `python_fnv1a_ch`, `python_mmh3_ch`: as carbon-relay.py does with `ROUTER_HASH_TYPE`; with `fast_` in it, with `RELAY_METHOD = fast-hashing`.";
        "to": Texts, Required, "[\"carbon\"]",
            "Outputs and relays that are its members; their order counts.",
            "`\"NAME\"`: an output, or every endpoint of one that has several. `\"NAME/host:port\"`: one endpoint. `=INSTANCE` behind it: what keys are placed by instead of the address. Members have this relay in their `from`; other nodes may feed them, too. One may be a member of several clusters.";
        "replication": whole(1, 255), Toml("1"), "2",
            "Members that get each point, with a `type` that ends in `_ch`.",
            "At most as many as there are members.";
        "dynamic": Flag, Toml("false"), "true",
            "Let other members take the place of one that is down, with a `type` that ends in `_ch`.",
            "Otherwise its points wait in its queue.";
        "diverse_replicas": Flag, Toml("true"), "false",
            "Put the copies of a point on different hosts, with a `type` that begins with `python_`.",
            "`DIVERSE_REPLICAS` of carbon.";
    }
}

rows! {
    RULE: RuleOptions = |_| RuleOptions::default();
    in [RelayRule] {
        "match" => expressions: TextOrTexts,
            Depends("`\"*\"`, every name; a rewrite and an aggregation rule need it"), "['^sys\\.', '\\.cpu$']",
            "Regular expressions that are looked for in the name.",
            "POSIX extended ones with `\\d`, `\\w` and their like; `'…'` in TOML leaves every `\\` as it is. Each is a rule of its own with the same rest, so that a name that two of them match is sent twice. A rewrite has one.";
        "unless" => unless: TextOrTexts, Absent("no name is left out"), "['^sys\\.keep\\.']",
            "Regular expressions for names that a route leaves out although they match.",
            "A name that one of them is found in does not meet the rule.";
        "ignore_case" => ignore_case: Flag, Toml("false"), "true",
            "Let letters in `match` and `unless` stand for both cases.";
        "to" => to as Target: TextOrTexts,
            Absent("a route sends nowhere, the results of an aggregation rule meet the rules from the top"), "[\"all\"]",
            "Clusters that get a copy, or `\"blackhole\"`.",
            "Of an aggregation rule: where its results go, and nowhere else. What goes to the blackhole is swallowed, and meets no further rule.";
        "stop" => stop: Flag, Toml("false"), "true",
            "Let points that matched meet no further rule.",
            "A route without `to` does not stop. An aggregation rule stops the point that it took in.";
        "validate" => validate: Text, Absent("everything is sent"), "'^[0-9.]+ [0-9]+$'",
            "Regular expression for what stands behind the name: tags, value and time.",
            "Points that it is not found in are not sent, and meet no further rule.";
        "on_invalid" => silent as OnInvalid: one_of::<OnInvalid>(), Toml("\"log\""), "\"drop\"",
            "Whether lines that do not pass `validate` are also shown in the log.";
        "key" => key: Text, Absent("the name"), "'\\1'",
            "What clusters with `_ch` place a point by: a text with groups of the match.",
            "`\\1` is the first group, `\\_1` the same with `_` for each dot, `\\^1` in capitals, `\\.1` in small letters.";
        "into" => into: Text, Absent("the rule is no rewrite"), "'host.\\1'",
            "Makes the rule a rewrite: what the part of the name that matched becomes for all rules below.",
            "Groups as in `key`.";
        "all" => every_occurrence: Flag, Toml("false"), "true",
            "Let a rewrite replace every occurrence, as carbon's rewrite-rules.conf does, and not the first alone.";
        "compute" => computes: Computes, Absent("the rule aggregates nothing"), "{ sum = 'sum.\\1', p90 = 'p90.\\1' }",
            "Makes the rule aggregate: what is computed of the points of each window, and what it is called.",
            "`sum`, `count`, `max`, `min`, `average`, `median`, `variance`, `stddev`; `p1` to `p99`: percentiles by nearest rank; `permille_1` to `permille_999`: percentiles between two values, as carbon's. A name has groups as in `key`, and each name that it gives is a series of its own. A list of such tables computes one thing under several names.";
        "every" => every_ms: duration(1000, SECONDS_MAX_MS - 1000), Absent("the rule aggregates nothing"), "\"60s\"",
            "Length of an aggregation rule's window, in whole seconds. Windows go by the points' own time.";
        "expire" => expire_ms: duration(2000, SECONDS_MAX_MS), Absent("the rule aggregates nothing"), "\"75s\"",
            "How long after its start a window of the aggregation rule takes points, in whole seconds.",
            "Longer than `every`.";
        "stamp" => stamp: one_of::<Stamp>(), Toml("\"end\""), "\"start\"",
            "Which second of the window an aggregation rule's result is labelled with.";
        "late" => late: one_of::<Late>(), Toml("\"dropped\""), "\"oldest\"",
            "What becomes of points whose window is over: dropped, or counted in the oldest one that is open.";
        "exact" => exact: Flag, Toml("false"), "true",
            "Write results of an aggregation rule with all of their digits, and not with six behind the point.",
            "carbon's aggregator does so.";
        "replaces" => replaces: Flag, Toml("false"), "true",
            "Replace points that have the result's name: they meet no further rules but aggregation rules.",
            "For aggregation rules that make fewer points of a series and keep its name.";
    }
}

rows! {
    STATISTICS: ();
    in [RelayStatistics] {
        "to": TextOrTexts, Required, "\"blackhole\"",
            "Clusters that get them, or `\"blackhole\"`.";
    }
}

/// What a table of `rules` says.
#[derive(Default)]
pub(crate) struct RuleOptions {
    pub(crate) expressions: Vec<String>,
    pub(crate) unless: Vec<String>,
    pub(crate) ignore_case: bool,
    pub(crate) to: Option<Vec<String>>,
    pub(crate) stop: bool,
    pub(crate) validate: Option<String>,
    /// Points that do not pass `validate` are not in the log.
    pub(crate) silent: bool,
    pub(crate) key: Option<String>,
    pub(crate) into: Option<String>,
    pub(crate) every_occurrence: bool,
    pub(crate) computes: Vec<((String, Place), String)>,
    pub(crate) every_ms: Option<u64>,
    pub(crate) expire_ms: Option<u64>,
    pub(crate) stamp: Option<Stamp>,
    pub(crate) late: Option<Late>,
    pub(crate) exact: bool,
    pub(crate) replaces: bool,
}

/// Names of clusters, or the blackhole alone.
pub(crate) struct Target;

impl Form<Option<Vec<String>>> for Target {
    fn put(to: &mut Option<Vec<String>>, value: &Checked, place: Place) {
        *to = Slot::of(value, place);
    }

    fn checked(to: &Option<Vec<String>>) -> Option<Checked> {
        match to.as_deref()? {
            [name] if name == BLACKHOLE => Some(Checked::Text(name.clone())),
            names => Some(Checked::texts(names)),
        }
    }
}
