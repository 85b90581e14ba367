//! An output that stores points in whisper files: where they are, the layout of new files, and its limits.
//!
//! Not here: the files of carbon with rules of layouts (`import`), which the binary reads when it starts the store.

use std::path::PathBuf;

use graphite::whisper::rules::{AggregationRule, Aggregations, SchemaRule, Schemas};
use graphite::whisper::{AggregationMethod, Layout, Space, parse_retentions};
use wire::graphite::Namespace;

/// An output of type `whisper`.
#[derive(Clone, Debug, PartialEq)]
pub struct WhisperPlan {
    /// The folder with the files.
    pub path: PathBuf,
    /// A storage-schemas.conf of carbon; its rules come before those of `schemas`.
    pub schemas_file: Option<PathBuf>,
    /// A storage-aggregation.conf of carbon; its rules come before those of `aggregations`.
    pub aggregations_file: Option<PathBuf>,
    /// Archives of new files; the first entry whose pattern is found in the name applies.
    pub schemas: Vec<SchemaPlan>,
    /// Methods of new files; likewise.
    pub aggregations: Vec<AggregationPlan>,
    /// How the space of a new file is taken.
    pub new_files: Space,
    /// Points are written to their files after this time at the latest, in milliseconds.
    pub write_after_ms: u64,
    /// Longest time for writing all points to their files at a stop, in milliseconds. A longer `stop_timeout` of the daemon counts.
    pub stop_timeout_ms: u64,
    /// Most bytes of points in memory.
    pub points_bytes_max: u64,
    /// Most series.
    pub series_max: u32,
    /// Most bytes of all names in memory.
    pub names_bytes_max: u64,
    /// Most bytes of all files; 0: no limit.
    pub files_bytes_max: u64,
    /// How far in the future a point may be, in milliseconds; none for a step of the finest archive, but ten minutes at least.
    pub future_max_ms: Option<u64>,
    /// Lock each file while it is written (carbon's WHISPER_LOCK_WRITES).
    pub lock: bool,
    /// Most updates of files in a second; 0: no limit.
    pub updates_per_second_max: u32,
    /// Most new files in a minute; 0: no limit.
    pub creates_per_minute_max: u32,
    /// Files of tagged series are named by a hash alone (carbon's TAG_HASH_FILENAMES).
    pub hash_tagged_names: bool,
    /// Behaviour of the Python library that is not the default.
    pub compat: WhisperCompat,
    /// Existing files are changed to the archives that a new file would get.
    pub online_migration: bool,
    /// The names of series of aggregates.
    pub namespace: Namespace,
}

/// Behaviour of the Python library that is not the default (spec graphite §5.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhisperCompat {
    /// Of several points with one timestamp the first is stored.
    pub first_duplicate: bool,
    /// Points of any future time are stored.
    pub accept_future: bool,
}

/// Archives of new files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaPlan {
    /// Python's regular expression, which is searched in the name.
    pub pattern: String,
    /// The archives, such as `10s:1d,1m:7d`.
    pub retentions: String,
}

/// Method and xFilesFactor of new files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AggregationPlan {
    /// Python's regular expression, which is searched in the name.
    pub pattern: String,
    /// How points of a finer archive become one of a coarser one; none for `average`.
    pub method: Option<AggregationMethod>,
    /// The least share of known points for that; none for 0.5.
    pub x_files_factor: Option<f64>,
}

impl WhisperPlan {
    /// Archives of new files if nothing else is configured: no flush of StatsD's ten seconds overwrites another.
    pub const RETENTIONS: &str = "10s:1d,1m:7d";

    /// Default of `write_after`.
    pub const WRITE_AFTER_MS: u64 = 270_000;

    /// The default for files in this folder.
    pub fn new(path: PathBuf) -> WhisperPlan {
        WhisperPlan {
            path,
            schemas_file: None,
            aggregations_file: None,
            schemas: Vec::new(),
            aggregations: Vec::new(),
            new_files: Space::Sparse,
            write_after_ms: WhisperPlan::WRITE_AFTER_MS,
            stop_timeout_ms: 60_000,
            points_bytes_max: 512 << 20,
            series_max: 2_000_000,
            names_bytes_max: 512 << 20,
            files_bytes_max: 0,
            future_max_ms: None,
            lock: false,
            updates_per_second_max: 0,
            creates_per_minute_max: 0,
            hash_tagged_names: true,
            compat: WhisperCompat::default(),
            online_migration: false,
            namespace: Namespace::default(),
        }
    }

    /// The rules for archives: those of a file first. Without any, all new files have [`WhisperPlan::RETENTIONS`].
    ///
    /// # Errors
    /// What is wrong with a rule, in a sentence.
    pub fn schemas(&self, of_file: Vec<SchemaRule>) -> Result<Schemas, String> {
        let mut rules = of_file;
        for (number, schema) in self.schemas.iter().enumerate() {
            let layout = layout(&schema.retentions)?;
            let section = format!("schemas {}", number + 1);
            rules.push(SchemaRule { section, pattern: schema.pattern.clone(), layout });
        }
        if rules.is_empty() && self.schemas_file.is_none() {
            let layout = layout(WhisperPlan::RETENTIONS)?;
            rules.push(SchemaRule { section: "default".to_owned(), pattern: String::new(), layout });
        }
        Schemas::new(rules).map_err(|error| error.to_string())
    }

    /// The rules for methods: those of a file first. Without any, the method follows from the end of the name, as StatsD gives it.
    ///
    /// # Errors
    /// What is wrong with a rule, in a sentence.
    pub fn aggregations(&self, of_file: Vec<AggregationRule>) -> Result<Aggregations, String> {
        let mut rules = of_file;
        rules.extend(self.aggregations.iter().enumerate().map(|(number, one)| AggregationRule {
            section: format!("aggregations {}", number + 1),
            pattern: one.pattern.clone(),
            x_files_factor: one.x_files_factor.map(|factor| factor as f32),
            method: one.method,
        }));
        if rules.is_empty() && self.aggregations_file.is_none() {
            rules = by_kind();
        }
        Aggregations::new(rules).map_err(|error| error.to_string())
    }
}

/// Archives as text.
fn layout(retentions: &str) -> Result<Layout, String> {
    let archives = parse_retentions(retentions).map_err(|error| error.to_string())?;
    Layout::new(&archives).map_err(|error| error.to_string())
}

/// The method that fits each kind of StatsD's results, by its name. Windows without a sample must not make an aggregate unknown, so the
/// factor is 0.
fn by_kind() -> Vec<AggregationRule> {
    use AggregationMethod::{Last, Max, Min, Sum};
    let rows = [
        ("upper", r"\.(upper|upper_\d+|max)(;|$)", Max),
        ("lower", r"\.(lower|lower_\d+|min)(;|$)", Min),
        ("counts", r"(^stats_counts\.|\.(count|count_\d+|sum|sum_\d+)(;|$))", Sum),
        ("gauges", r"\.gauges\.", Last),
    ];
    let rule = |(section, pattern, method): (&str, &str, AggregationMethod)| AggregationRule {
        section: section.to_owned(),
        pattern: pattern.to_owned(),
        x_files_factor: Some(0.0),
        method: Some(method),
    };
    let all = AggregationRule {
        section: "others".to_owned(),
        pattern: String::new(),
        x_files_factor: Some(0.0),
        method: None,
    };
    rows.map(rule).into_iter().chain([all]).collect()
}

#[test]
fn results_of_statsd_get_the_method_of_their_kind() {
    let rules = WhisperPlan::new("tree".into()).aggregations(Vec::new()).expect("the default is valid");
    for (name, want) in [
        ("stats.timers.a.upper_90", "max"),
        ("stats.timers.a.upper", "max"),
        ("stats.timers.a.lower", "min"),
        ("stats.timers.a.mean_90", "average"),
        ("stats.timers.a.count", "sum"),
        ("stats_counts.hits", "sum"),
        ("stats.counters.hits.count", "sum"),
        ("stats.counters.hits.rate", "average"),
        ("stats.gauges.depth", "last"),
        ("servers.upper.cpu", "average"),
        ("a.count;host=b", "sum"),
    ] {
        let (method, factor) = rules.aggregation_of(name.as_bytes());
        assert_eq!((method.name(), factor), (want, 0.0), "{name}");
    }
}

#[test]
fn rules_of_a_file_come_first_and_the_default_is_for_plans_without_rules() {
    let mut plan = WhisperPlan::new("tree".into());
    let archives = |plan: &WhisperPlan, of_file: Vec<SchemaRule>, name: &str| {
        plan.schemas(of_file).expect("valid").layout_of(name.as_bytes()).to_string()
    };
    assert_eq!(archives(&plan, Vec::new(), "a"), "10:8640,60:10080");
    plan.schemas = vec![SchemaPlan { pattern: "^b".into(), retentions: "1s:1h".into() }];
    let of_file = || {
        let layout = layout("5s:1h").expect("valid");
        vec![SchemaRule { section: "s".into(), pattern: "^a".into(), layout }]
    };
    let found: Vec<String> = ["a", "b", "c"].map(|name| archives(&plan, of_file(), name)).into();
    assert_eq!(found, ["5:720", "1:3600", "60:10080"]);
    plan.schemas[0].retentions = "1s:1h,3s:2h,5s:1d".into();
    assert!(plan.schemas(Vec::new()).is_err());
}
