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

/// The hash rings of carbon's own relay.
const fn python(hash: CarbonHash, fast: bool) -> Distribution {
    sharded(Sharding::CarbonPython { hash, fast, diverse: true }, false)
}

/// One member for each key.
const fn sharded(sharding: Sharding, fail_over: bool) -> Distribution {
    Distribution::Sharded { sharding, replication: 1, fail_over }
}

/// Longest window: seconds in 32 bits.
const SECONDS_MAX_MS: u64 = (u32::MAX as u64) * 1000;

/// Most names in the route cache: its indexes have 32 bits.
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
            "Named groups of outputs, and the sharding of points among them.",
            "Rules send to clusters. `blackhole` is a reserved name: points sent to it are discarded and counted.";
        "rules": Tables(RelayRule), Toml("[]"), "[{ match = ['^sys\\.'], to = \"blackhole\" }]",
            "Rules for points by their names, applied in order.",
            "Rules apply in this order, until one has `stop` or `to = \"blackhole\"`. Points that no rule sends anywhere are counted as `filtered`.";
        "statistics": Table(RelayStatistics), Absent("they meet the rules as points do"), "{ to = \"blackhole\" }",
            "Destination of the relay's own figures.";
        "once" => plan.once: Flag, Toml("false"), "true",
            "Send a point to each output only once, even if several rules send it there.",
            "The first copy is sent. carbon's relays do so; carbon-c-relay sends every copy.";
        "max_names" => names_max: whole(2, NAMES_MOST), Toml("4194304"), "1000000",
            "Most names in the route cache, which saves matching their rules again.",
            "The cache uses at most 128 bytes per name, 512 MiB with the default; with names of 48 bytes about 400 MiB. At either limit, names that were not used for long are removed and matched again when needed.";
        "max_aggregation_series" => aggregation_rules.series_max: whole(1, 1_000_000_000), Toml("2000000"), "100000",
            "Most open results of aggregation rules; values for new ones are dropped as `series_max`.";
        "max_aggregation_bytes" => aggregation_rules.bytes_max: size(0, TIB), Toml("\"256MiB\""), "\"1GiB\"",
            "Most bytes of aggregation rules; further values are dropped as `aggregation_rule_full`.",
            "A result takes about 100 bytes and its name; a window takes 56 bytes, or 128 if a result has more than 64 windows; a value of a percentile takes 8 bytes. Allocated but unused memory counts, which may add half.";
    }
}

rows! {
    CLUSTER: ();
    in [RelayCluster] {
        "type": one_of::<Distribution>(), Required, "\"carbon_ch\"",
            "Which members get a point.",
            "`forward`: all. `any_of`: one by the name; another one while it is down. `failover`: the first that is up. `lb`: in turn. `carbon_ch`, `fnv1a_ch`, `jump_fnv1a_ch`: the owners of the key, as in carbon-c-relay. `python_carbon_ch`, `python_fnv1a_ch`, `python_mmh3_ch`: as in carbon-relay.py with `ROUTER_HASH_TYPE`; names with `fast_` as with `RELAY_METHOD = fast-hashing`.";
        "to": Texts, Required, "[\"carbon\"]",
            "Outputs and relays that are its members; the order matters.",
            "`\"NAME\"`: an output, or all endpoints of one that has several. `\"NAME/host:port\"`: one endpoint. A suffix `=INSTANCE` replaces the address in the hash ring. Members have this relay in their `from`; other nodes may feed them, too. A node may be a member of several clusters.";
        "replication": whole(1, 255), Toml("1"), "2",
            "Number of members that get each point, with a `type` that ends in `_ch`.",
            "At most the number of members.";
        "dynamic": Flag, Toml("false"), "true",
            "Fail over to other members when one is down, with a `type` that ends in `_ch`.",
            "Otherwise its points stay in its queue.";
        "diverse_replicas": Flag, Toml("true"), "false",
            "Send the copies of a point to different hosts, with a `type` that begins with `python_`.",
            "`DIVERSE_REPLICAS` of carbon.";
    }
}

rows! {
    RULE: RuleOptions = |_| RuleOptions::default();
    in [RelayRule] {
        "match" => expressions: TextOrTexts,
            Depends("`\"*\"`, every name; a rewrite and an aggregation rule need it"), "['^sys\\.', '\\.cpu$']",
            "Regular expressions to find in the name.",
            "POSIX extended syntax with `\\d`, `\\w` and the like; in TOML, `'…'` keeps every `\\` unchanged. Each expression is a separate rule with the same options, so a name that matches two of them is sent twice. A rewrite has one expression.";
        "unless" => unless: TextOrTexts, Absent("no name is left out"), "['^sys\\.keep\\.']",
            "Regular expressions for names that a route excludes although `match` matches.",
            "The rule does not apply to names in which one of them is found.";
        "ignore_case" => ignore_case: Flag, Toml("false"), "true",
            "Ignore upper and lower case in `match` and `unless`.";
        "to" => to as Target: TextOrTexts,
            Absent("a route sends nowhere, the results of an aggregation rule meet the rules from the top"), "[\"all\"]",
            "Clusters that get a copy, or `\"blackhole\"`.",
            "For an aggregation rule: the only destination of its results. Points sent to the blackhole are discarded, and no further rule applies to them.";
        "stop" => stop: Flag, Toml("false"), "true",
            "Apply no further rule to points that matched.",
            "A route without `to` does not stop. An aggregation rule stops the points that it aggregates.";
        "validate" => validate: Text, Absent("everything is sent"), "'^[0-9.]+ [0-9]+$'",
            "Regular expression for the text after the name: tags, value and time.",
            "Points without a match are not sent, and no further rule applies.";
        "on_invalid" => silent as OnInvalid: one_of::<OnInvalid>(), Toml("\"log\""), "\"drop\"",
            "Whether lines that fail `validate` are also logged.";
        "key" => key: Text, Absent("the name"), "'\\1'",
            "Key for clusters with `_ch`: a text with groups of the match.",
            "`\\1` is the first group, `\\_1` the same with `_` for each dot, `\\^1` in capitals, `\\.1` in small letters.";
        "into" => into: Text, Absent("the rule is no rewrite"), "'host.\\1'",
            "Makes the rule a rewrite: the replacement of the matched part, for all rules below.",
            "It may contain groups as in `key`.";
        "all" => every_occurrence: Flag, Toml("false"), "true",
            "Replace every occurrence, as in carbon's rewrite-rules.conf, not only the first.";
        "compute" => computes: Computes, Absent("the rule aggregates nothing"), "{ sum = 'sum.\\1', p90 = 'p90.\\1' }",
            "Makes the rule aggregate: computations over the points of each window, with result names.",
            "`sum`, `count`, `max`, `min`, `average`, `median`, `variance`, `stddev`; `p1` to `p99`: percentiles by nearest rank; `permille_1` to `permille_999`: interpolated percentiles, as in carbon. A name may contain groups as in `key`; each resulting name is a separate series. A list of such tables computes the same value under several names.";
        "every" => every_ms: duration(1000, SECONDS_MAX_MS - 1000), Absent("the rule aggregates nothing"), "\"60s\"",
            "Length of an aggregation rule's window, in whole seconds. Windows follow the points' own times.";
        "expire" => expire_ms: duration(2000, SECONDS_MAX_MS), Absent("the rule aggregates nothing"), "\"75s\"",
            "How long after its start a window accepts points, in whole seconds.",
            "Must be longer than `every`.";
        "stamp" => stamp: one_of::<Stamp>(), Toml("\"end\""), "\"start\"",
            "The second of the window that is the timestamp of a result.";
        "late" => late: one_of::<Late>(), Toml("\"dropped\""), "\"oldest\"",
            "Points whose window has ended: dropped, or counted in the oldest open window.";
        "exact" => exact: Flag, Toml("false"), "true",
            "Write results with all of their digits instead of six decimals.",
            "carbon's aggregator does so.";
        "replaces" => replaces: Flag, Toml("false"), "true",
            "Drop points that have the result's name, except for other aggregation rules.",
            "For aggregation rules that reduce the points of a series and keep its name.";
    }
}

rows! {
    STATISTICS: ();
    in [RelayStatistics] {
        "to": TextOrTexts, Required, "\"blackhole\"",
            "Clusters that get them, or `\"blackhole\"`.";
    }
}

/// The contents of a table of `rules`.
#[derive(Default)]
pub(crate) struct RuleOptions {
    pub(crate) expressions: Vec<String>,
    pub(crate) unless: Vec<String>,
    pub(crate) ignore_case: bool,
    pub(crate) to: Option<Vec<String>>,
    pub(crate) stop: bool,
    pub(crate) validate: Option<String>,
    /// Points that fail `validate` are not logged.
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

/// Names of clusters, or only the blackhole.
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
