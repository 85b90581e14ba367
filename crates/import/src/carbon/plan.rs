//! carbon-relay.py, carbon-aggregator.py or carbon-cache.py as a plan: receivers become sources, rule files the rules of one relay,
//! destinations outputs, and the files of a cache an output of type `whisper`.
//!
//! Not here: the rules of that relay (`statements`), the command line, reading files.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use deliver::plan::{QueueKind, QueueLimits, SenderPlan, WhenFull};
use graphite::whisper::AggregationMethod;
use model::{OutputId, SourceId, TransformId};
use process::aggregation_rules::AggregationRuleLimits;
use process::relay::{Distribution, Member, MemberNode, RelayCluster};
use wire::graphite::Namespace;
use wire::graphite::input::{Compatibility, MessageEncoding, NameForm};

use super::conf::{self, Conf, Method, Protocol, StoreConf};
use super::statements::{self, Rules};
use super::{
    CarbonDestination, Invocation, aggregation_rules, list, relay_rules, rewrite_rules, storage_aggregations,
    storage_schemas,
};
use config::diagnostic::{Code, Diagnostic, Source, has_errors};
use config::native::{endpoint_name, graphite_source, own_source};
use config::plan::{
    AggregationPlan, CarbonLinkPlan, CarbonOwnPlan, CarbonProgram, Carries, Destination, Endpoint, Feed,
    GraphiteEncoding, GraphiteSource, Listen, OutputKind, OutputPlan, Plan, RelayTransform, SYNC_WINDOW_MS,
    SchemaPlan, SourceKind, SourcePlan, TransformKind, TransformPlan, WhisperPlan,
};
use config::transport::{Compression, EndpointTls, PemFile};

/// A file that was read, with its diagnostics.
#[derive(Debug)]
pub struct CarbonFile {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Sorted by place.
    pub diagnostics: Vec<Diagnostic>,
}

/// Files of a cache, beside carbon.conf.
const SCHEMAS: &str = "storage-schemas.conf";
const AGGREGATIONS: &str = "storage-aggregation.conf";

/// Name of the store.
const STORE: &str = "store";

/// Name of the relay.
const RELAY: &str = "relay";

/// Name of the daemon's own metrics, and of their routes where others pass rules.
const OWN: &str = "self";
const OWN_ROUTES: &str = "self-routes";

/// Name of the outputs.
const OUTPUT: &str = "carbon";

/// Reads carbon.conf and the rule files that it names, as the daemon of a section (`cache`, `relay`, `aggregator`, `relay:b`,
/// `aggregator-cache`) does. `read` returns the text of a file, whose name is relative to the directory of carbon.conf, or a sentence
/// that says why it cannot be read.
pub fn carbon(
    (name, text): (&str, &str),
    invocation: &Invocation,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> (Option<Plan>, Vec<CarbonFile>) {
    let mut diagnostics = Vec::new();
    let conf = conf::read(text, invocation, &mut diagnostics);
    let mut files = vec![CarbonFile { name: name.to_owned(), text: text.to_owned(), diagnostics }];
    let Some(conf) = conf else { return (None, files) };
    let rules = Reading { read, files: &mut files, conf_dir: &conf.conf_dir }.rules(&conf);
    let plan = plan(&conf, &rules, invocation, &mut files[0].diagnostics);
    for file in &mut files {
        file.diagnostics.sort_by_key(|diagnostic| diagnostic.place.map_or(0, |place| place.start));
    }
    let failed = files.iter().any(|file| has_errors(&file.diagnostics));
    (Some(plan).filter(|_| !failed), files)
}

/// The diagnostics of all files in the order in which people read them: those that change nothing come last.
pub fn harmless_last(files: &[CarbonFile]) -> Vec<(Source<'_>, Vec<Diagnostic>)> {
    let is_harmless = |one: &Diagnostic| one.code == Code::ImportNoEffect;
    let those = |harmless: bool| {
        files.iter().map(move |file| {
            let found = file.diagnostics.iter().filter(|one| is_harmless(one) == harmless).cloned();
            (Source { name: &file.name, text: &file.text }, found.collect())
        })
    };
    those(false).chain(those(true)).collect()
}

/// Whether a diagnostic means that something of the files is not in the plan: a setting without a counterpart, a section that is skipped,
/// or a key that is probably misspelt, since one like it exists. Other keys that carbon does not know are leftovers of old versions.
pub fn is_incomplete(diagnostic: &Diagnostic) -> bool {
    match diagnostic.code {
        Code::ImportUnknownKey => diagnostic.hint.is_some(),
        code => code.loses_a_line(),
    }
}

/// What a missing file means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    /// Carbon does not start.
    Never,
    /// The same as an empty file, but probably a mistake.
    Hardly,
    /// The same as an empty file.
    Often,
}

struct Reading<'a> {
    read: &'a dyn Fn(&str) -> Result<String, String>,
    files: &'a mut Vec<CarbonFile>,
    /// Where the names of files are relative to.
    conf_dir: &'a str,
}

impl Reading<'_> {
    /// The content of a file; none when it is missing or has mistakes, which are reported.
    fn file<T>(
        &mut self,
        name: &str,
        absent: Absent,
        of: impl FnOnce(&str) -> (Option<T>, Vec<Diagnostic>),
    ) -> Option<T> {
        let name = Path::new(self.conf_dir).join(name).display().to_string();
        let text = match (self.read)(&name) {
            Ok(text) => text,
            Err(why) => {
                let diagnostic = match absent {
                    Absent::Never => Some(Diagnostic::error(Code::IncludeUnread, why)),
                    Absent::Hardly => Some(Diagnostic::warning(Code::IncludeUnread, why)),
                    Absent::Often => None,
                };
                let hint = match self.conf_dir {
                    "" => "rule files are in the folder of carbon.conf, or in its CONF_DIR".to_owned(),
                    set => format!("rule files are in CONF_DIR, which is {set}"),
                };
                self.files[0].diagnostics.extend(diagnostic.map(|diagnostic| diagnostic.hint(hint)));
                return None;
            }
        };
        let (read, diagnostics) = of(&text);
        self.files.push(CarbonFile { name, text, diagnostics });
        read
    }

    fn rules(&mut self, conf: &Conf) -> Rules {
        let mut rules = Rules::default();
        if conf.lists {
            rules.blacklist = self.file(&conf.blacklist, Absent::Often, list).unwrap_or_default();
            rules.whitelist = self.file(&conf.whitelist, Absent::Often, list).unwrap_or_default();
        }
        if conf.store.is_some() {
            rules.schemas = self.file(SCHEMAS, Absent::Never, storage_schemas).unwrap_or_default();
            let aggregations = self.file(AGGREGATIONS, Absent::Often, storage_aggregations);
            rules.has_aggregations = aggregations.is_some();
            rules.aggregations = aggregations.unwrap_or_default();
        }
        if conf.method == Method::Rules {
            let known = (!conf.destinations.is_empty()).then_some(&conf.destinations[..]);
            rules.relay = self.file(&conf.relay_rules, Absent::Never, |text| relay_rules(text, known));
        }
        if conf.is_aggregator {
            let named = conf.rewrite_rules != conf::REWRITE_RULES;
            let absent = if named { Absent::Hardly } else { Absent::Often };
            let rewrite = self.file(&conf.rewrite_rules, absent, rewrite_rules);
            rules.rewrite = rewrite.unwrap_or_default();
        }
        if conf.is_aggregator || conf.method.is_aggregated() {
            let absent = if conf.is_aggregator { Absent::Never } else { Absent::Hardly };
            let aggregation = self.file(&conf.aggregation_rules, absent, aggregation_rules);
            rules.aggregation = aggregation.unwrap_or_default();
        }
        rules
    }
}

fn plan(conf: &Conf, rules: &Rules, invocation: &Invocation, wrong: &mut Vec<Diagnostic>) -> Plan {
    let mut plan = Plan { sources: sources(conf), ..Plan::default() };
    if plan.sources.is_empty() && !has_errors(wrong) {
        wrong.push(Diagnostic::error(
            Code::MissingKey,
            "every receiver is off: the daemon would receive nothing",
        ));
    }
    let from: Vec<Feed> = (0..plan.sources.len()).map(|at| Feed::Source(SourceId(at as u16))).collect();
    let own = own(conf, invocation).map(|source| {
        plan.sources.push(source);
        Feed::Source(SourceId((plan.sources.len() - 1) as u16))
    });
    if let Some(store) = &conf.store {
        plan.transforms.extend(before_store(conf, rules, from.clone()));
        let mut from = if plan.transforms.is_empty() { from } else { vec![Feed::Transform(TransformId(0))] };
        from.extend(own);
        plan.outputs = vec![self::store(conf, store, rules, invocation, from)];
        plan.carbonlink = store.queries.as_ref().and_then(address).map(CarbonLinkPlan::at);
        return plan;
    }
    let (mut endpoints, mut known) = (Vec::new(), BTreeMap::new());
    let relay = RelayTransform {
        plan: statements::relay(conf, rules, &mut |one| output_of(one, &mut endpoints, &mut known)),
        names_max: RelayTransform::NAMES_MAX,
        aggregation_rules: AggregationRuleLimits::default(),
    };
    let mut from = from;
    let has_rules = conf.is_aggregator || !rules.blacklist.is_empty() || !rules.whitelist.is_empty();
    let own_routes = own.filter(|_| has_rules).map(|own| {
        let plan = statements::routes(conf, rules, &mut |one| output_of(one, &mut endpoints, &mut known));
        let relay = RelayTransform { plan, ..relay.clone() };
        let kind = TransformKind::Relay(Box::new(relay));
        TransformPlan { name: OWN_ROUTES.to_owned(), kind, from: vec![own] }
    });
    from.extend(own.filter(|_| !has_rules));
    plan.outputs = outputs(conf, &endpoints);
    let kind = TransformKind::Relay(Box::new(relay));
    plan.transforms.push(TransformPlan { name: RELAY.to_owned(), kind, from });
    if let Some(own_routes) = own_routes {
        plan.transforms.push(own_routes);
        for output in &mut plan.outputs {
            output.from.push(Feed::Transform(TransformId(1)));
        }
    }
    plan
}

/// The daemon's own metrics: none with an interval of 0.
fn own(conf: &Conf, invocation: &Invocation) -> Option<SourcePlan> {
    let (program, folder) = match (&conf.store, conf.is_aggregator) {
        (Some(_), _) => (CarbonProgram::Cache, "agents"),
        (None, true) => (CarbonProgram::Aggregator, "aggregator"),
        (None, false) => (CarbonProgram::Relay, "relays"),
    };
    let instance = invocation.section.split_once(':').map_or("a", |(_, instance)| instance);
    let host = invocation.hostname.replace('.', "_");
    let prefix = format!("{}.{folder}.{host}-{instance}", conf.report_prefix);
    let prefix = prefix.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect();
    let own = CarbonOwnPlan { every_ms: conf.report_every_s * 1000, prefix, program };
    (own.every_ms > 0).then(|| SourcePlan { kind: SourceKind::CarbonOwn(own), ..own_source(OWN) })
}

/// The relay before a store: the rules of an aggregator, or lists. None when every point goes to the store as it is.
fn before_store(conf: &Conf, rules: &Rules, from: Vec<Feed>) -> Option<TransformPlan> {
    let has_lists = !rules.blacklist.is_empty() || !rules.whitelist.is_empty();
    let name = match (conf.is_aggregator, has_lists) {
        (true, _) => RELAY,
        (false, true) => "lists",
        (false, false) => return None,
    };
    let node = MemberNode::Output(OutputId(0));
    let member = Member { node, host: STORE.to_owned(), port: 0, instance: None };
    let distribution = Distribution::Copies;
    let cluster = RelayCluster { name: STORE.to_owned(), members: vec![member], distribution };
    let plan = statements::to_cluster(conf, rules, cluster);
    let (names_max, aggregation_rules) = (RelayTransform::NAMES_MAX, AggregationRuleLimits::default());
    let kind = TransformKind::Relay(Box::new(RelayTransform { plan, names_max, aggregation_rules }));
    Some(TransformPlan { name: name.to_owned(), kind, from })
}

/// The whisper files. Unless they stay in their files, rules are part of the plan, so that the native file needs no other one.
fn store(
    all: &Conf,
    conf: &StoreConf,
    rules: &Rules,
    invocation: &Invocation,
    from: Vec<Feed>,
) -> OutputPlan {
    let default = WhisperPlan::new(PathBuf::from(&conf.folder));
    // What a point takes in memory with its time.
    let points_bytes = |points: u64| points.saturating_mul(16).clamp(1 << 20, 1 << 40);
    let schemas = rules
        .schemas
        .iter()
        .map(|rule| SchemaPlan { pattern: rule.pattern.clone(), retentions: rule.layout.in_units() });
    let aggregations = rules.aggregations.iter().map(|rule| AggregationPlan {
        pattern: rule.pattern.clone(),
        method: rule.method,
        x_files_factor: rule.x_files_factor.map(shortest),
    });
    let in_files =
        |name: &str| invocation.storage_rules.as_ref().map(|folder| folder.join(&all.conf_dir).join(name));
    let schemas_file = in_files(SCHEMAS);
    // Only what is there is read again: carbon starts without this file.
    let aggregations_file = in_files(AGGREGATIONS).filter(|_| rules.has_aggregations);
    let plan = WhisperPlan {
        schemas: if schemas_file.is_some() { Vec::new() } else { schemas.collect() },
        aggregations: match aggregations_file {
            Some(_) => Vec::new(),
            None => aggregations.chain(unmatched(rules)).collect(),
        },
        schemas_file,
        aggregations_file,
        new_files: conf.new_files,
        lock: conf.lock,
        points_bytes_max: conf.points_max.map_or(default.points_bytes_max, points_bytes),
        updates_per_second_max: conf.updates_per_second_max,
        creates_per_minute_max: conf.creates_per_minute_max,
        hash_tagged_names: conf.hash_tagged_names,
        ..default
    };
    let queue_kind = QueueKind::Disk { sync_window_ms: SYNC_WINDOW_MS };
    // With flow control carbon's receivers pause when the cache is full; without it carbon drops the newest.
    let when_full = if all.flow_control { WhenFull::Block } else { WhenFull::DropNewest };
    let queue = QueueLimits { when_full, ..QueueLimits::default_of(queue_kind) };
    OutputPlan { queue, queue_kind, ..OutputPlan::new(STORE, OutputKind::Whisper(Box::new(plan)), from) }
}

/// The double with the same shortest text: 0.1, not 0.10000000149011612.
fn shortest(factor: f32) -> f64 {
    factor.to_string().parse().unwrap_or_else(|_| f64::from(factor))
}

/// Without rules, carbon aggregates every name by `average` and 0.5, and not by its name as is the default here.
fn unmatched(rules: &Rules) -> Option<AggregationPlan> {
    rules.aggregations.is_empty().then(|| AggregationPlan {
        method: Some(AggregationMethod::Average),
        x_files_factor: Some(0.5),
        ..AggregationPlan::default()
    })
}

fn sources(conf: &Conf) -> Vec<SourcePlan> {
    let source = |name: &str, listen: Vec<Listen>, messages: Option<MessageEncoding>| {
        let mut plan = graphite_source(name, Compatibility::Carbon);
        plan.listen = listen;
        // Carbon closes no idle connection by default.
        plan.idle_timeout_ms = conf.idle_timeout_s.unwrap_or(0) * 1000;
        if let Some(connections) = conf.connections_max {
            plan.connections_max = usize::try_from(connections).unwrap_or(usize::MAX);
        }
        if let SourceKind::Graphite(source) = &mut plan.kind {
            let bytes_max = conf.pickle_bytes_max.filter(|_| messages == Some(MessageEncoding::Pickle));
            let default = GraphiteSource::MESSAGE_BYTES_MAX as u64;
            source.reading.names = if conf.tags_in_order { NameForm::Tagged } else { NameForm::AsSent };
            source.carries = messages.map_or(Carries::Lines, Carries::Messages);
            source.message_bytes_max = usize::try_from(bytes_max.unwrap_or(default)).unwrap_or(usize::MAX);
        }
        plan
    };
    let lines = conf.lines.as_ref().and_then(address).map(Listen::Tcp);
    let datagrams = conf.datagrams.as_ref().and_then(address).map(Listen::Udp);
    let lines: Vec<Listen> = lines.into_iter().chain(datagrams).collect();
    let messages = |receiver: &Option<(String, u16)>| receiver.as_ref().and_then(address).map(Listen::Tcp);
    let mut sources = Vec::new();
    if !lines.is_empty() {
        sources.push(source("lines", lines, None));
    }
    let others = [
        ("pickle", &conf.pickle, MessageEncoding::Pickle),
        ("protobuf", &conf.protobuf, MessageEncoding::Protobuf),
    ];
    for (name, receiver, form) in others {
        sources.extend(messages(receiver).map(|listen| source(name, vec![listen], Some(form))));
    }
    sources
}

/// The address of an interface and a port.
fn address((interface, port): &(String, u16)) -> Option<SocketAddr> {
    interface.parse().ok().map(|ip: std::net::IpAddr| SocketAddr::new(ip, *port))
}

/// The output of a destination: destinations that differ only in the instance share one.
fn output_of(
    destination: &CarbonDestination,
    endpoints: &mut Vec<CarbonDestination>,
    known: &mut BTreeMap<(String, u16), OutputId>,
) -> OutputId {
    *known.entry((destination.host.clone(), destination.port)).or_insert_with(|| {
        endpoints.push(destination.clone());
        OutputId((endpoints.len() - 1) as u16)
    })
}

fn outputs(conf: &Conf, endpoints: &[CarbonDestination]) -> Vec<OutputPlan> {
    let mut queue = QueueLimits::default();
    queue.records_max = conf.queue_records_max.unwrap_or(queue.records_max);
    // Flow control in carbon means that receivers pause; here they do while the endpoint is up. Without it carbon
    // drops the newest.
    queue.when_full = if conf.flow_control { WhenFull::BlockWhileUp } else { WhenFull::DropNewest };
    let form = match conf.protocol {
        Protocol::Lines => GraphiteEncoding::Lines,
        Protocol::Pickle => GraphiteEncoding::Pickle,
    };
    let tls = conf
        .tls
        .as_ref()
        .map(|ca| Box::new(EndpointTls { ca: ca.as_deref().map(PemFile::new), ..EndpointTls::default() }));
    let output = |destination: &CarbonDestination| {
        let to = Endpoint { host: destination.host.clone(), port: destination.port };
        let name = match endpoints {
            [_] => OUTPUT.to_owned(),
            _ => endpoint_name(OUTPUT, &Destination::Tcp(to.clone())),
        };
        let kind = OutputKind::Graphite {
            to,
            form,
            namespace: Namespace::default(),
            sender: SenderPlan::default(),
            connections: 1,
            line_bytes_max: OutputKind::LINE_BYTES_MAX,
            compression: Compression::Plain,
            tls: tls.clone(),
        };
        OutputPlan { queue, ..OutputPlan::new(name, kind, vec![Feed::Transform(TransformId(0))]) }
    };
    endpoints.iter().map(output).collect()
}
