//! carbon-relay.py or carbon-aggregator.py as a plan: receivers as sources, rule files as the rules of one relay,
//! destinations as outputs.
//!
//! Order of an aggregator (spec graphite §4.6): rewrites of `[pre]`, aggregation rules, rewrites of `[post]`, routes. A relay
//! has routes alone.
//! Not here: the command line, reading files.

use std::net::SocketAddr;

use deliver::plan::{QueueKind, QueueLimits, SenderPlan, WhenFull};
use model::{OutputId, SourceId, TransformId};
use process::placement::Placement;
use process::relay::{
    ClusterId, ExpressionPlan, MatchPlan, Member, RelayCluster, RelayPlan, Sharing, Statement, To,
};
use process::rollup::RollupLimits;
use wire::graphite::Namespace;
use wire::graphite::input::{MessageForm, Personality};

use super::conf::{self, Conf, Method};
use super::{
    AggregationRule, CarbonDestination, CarbonRelayRules, RewriteRules, aggregation_rules,
    aggregation_statements, relay_rules, relay_statements, rewrite_rules, rewrite_statements,
};
use crate::diagnostic::{Code, Diagnostic, Place, has_errors};
use crate::native::{empty_plan, endpoint_name, graphite_source};
use crate::plan::{
    Destination, Endpoint, Feed, GraphiteForm, GraphiteSource, Listen, OutputKind, OutputPlan, Plan,
    RelayTransform, SourceKind, SourcePlan, TransformKind, TransformPlan,
};
use crate::transport::Packing;

/// A file that was read, and what there is to say of it.
#[derive(Debug)]
pub struct CarbonFile {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// By place.
    pub diagnostics: Vec<Diagnostic>,
}

/// Name of the cluster that hashing and `constant` use.
const DESTINATIONS: &str = "destinations";

/// Name of the relay.
const RELAY: &str = "relay";

/// Name of the outputs.
const OUTPUT: &str = "carbon";

/// Reads carbon.conf and the rule files that it names, as the daemon of a section (`relay`, `aggregator`, `relay:b`) does.
/// `read` gives the text of a file that stands beside it, or why it cannot be read.
pub fn carbon(
    (name, text): (&str, &str),
    section: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> (Option<Plan>, Vec<CarbonFile>) {
    let mut diagnostics = Vec::new();
    let conf = conf::read(text, section, &mut diagnostics);
    let mut files = vec![CarbonFile { name: name.to_owned(), text: text.to_owned(), diagnostics }];
    let Some(conf) = conf else { return (None, files) };
    let rules = Rules::read(&conf, read, &mut files);
    let plan = plan(&conf, &rules, &mut files[0].diagnostics);
    for file in &mut files {
        file.diagnostics.sort_by_key(|diagnostic| diagnostic.place.map_or(0, |place| place.start));
    }
    let failed = files.iter().any(|file| has_errors(&file.diagnostics));
    (Some(plan).filter(|_| !failed), files)
}

/// What the rule files say.
#[derive(Default)]
struct Rules {
    relay: Option<CarbonRelayRules>,
    rewrite: RewriteRules,
    aggregation: Vec<AggregationRule>,
}

impl Rules {
    fn read(
        conf: &Conf,
        read: &dyn Fn(&str) -> Result<String, String>,
        files: &mut Vec<CarbonFile>,
    ) -> Rules {
        let mut rules = Rules::default();
        let mut file = |name: &str, needed: bool| match read(name) {
            Ok(text) => Some(text),
            Err(why) => {
                // Carbon's aggregator runs without rules; its relay does not start without the ones it routes by.
                let message = format!("{name} cannot be read: {why}");
                let told = if needed { Diagnostic::error } else { Diagnostic::warning };
                files[0].diagnostics.push(told(Code::IncludeUnread, message));
                None
            }
        };
        let aggregates = conf.is_aggregator || conf.method == Method::AggregatedHashing;
        let relay = (conf.method == Method::Rules).then(|| file(&conf.relay_rules, true)).flatten();
        let rewrite = conf.is_aggregator.then(|| file(&conf.rewrite_rules, false)).flatten();
        let aggregation = aggregates.then(|| file(&conf.aggregation_rules, false)).flatten();
        if let Some(text) = relay {
            let known = (!conf.destinations.is_empty()).then_some(&conf.destinations[..]);
            let (read, diagnostics) = relay_rules(&text, known);
            rules.relay = read;
            files.push(CarbonFile { name: conf.relay_rules.clone(), text, diagnostics });
        }
        if let Some(text) = rewrite {
            let (read, diagnostics) = rewrite_rules(&text);
            rules.rewrite = read.unwrap_or_default();
            files.push(CarbonFile { name: conf.rewrite_rules.clone(), text, diagnostics });
        }
        if let Some(text) = aggregation {
            let (read, diagnostics) = aggregation_rules(&text);
            rules.aggregation = read.unwrap_or_default();
            files.push(CarbonFile { name: conf.aggregation_rules.clone(), text, diagnostics });
        }
        rules
    }
}

fn plan(conf: &Conf, rules: &Rules, wrong: &mut Vec<Diagnostic>) -> Plan {
    let mut plan = empty_plan();
    plan.sources = sources(conf);
    if plan.sources.is_empty() {
        wrong.push(Diagnostic::error(
            Code::MissingKey,
            "every receiver is switched off: nothing could come in",
        ));
    }
    let mut endpoints: Vec<CarbonDestination> = Vec::new();
    let (clusters, routes) = routes(conf, rules, &mut endpoints);
    let statements = statements(conf, rules, routes, wrong);
    plan.outputs = outputs(conf, &endpoints);
    if !conf.sends_lines && !endpoints.is_empty() {
        let message = "destinations get lines, each at the port below the one for pickle";
        let warning = Diagnostic::warning(Code::NotCarriedOver, message);
        let warning =
            warning.at(conf.destinations_place.unwrap_or(Place::new(0, 0))).label("ports of pickle");
        wrong.push(warning.hint("see that carbon's LINE_RECEIVER_PORT is the port in `to`"));
    }
    let relay = RelayTransform {
        plan: RelayPlan { clusters, statements, statistics: To::Nowhere },
        names_max: RelayTransform::NAMES_MAX,
        rollups: RollupLimits::default(),
    };
    let from = (0..plan.sources.len()).map(|at| SourceId(at as u16)).collect();
    let kind = TransformKind::Relay(Box::new(relay));
    plan.transforms.push(TransformPlan { name: RELAY.to_owned(), kind, from });
    plan
}

fn sources(conf: &Conf) -> Vec<SourcePlan> {
    let source = |name: &str, listen: Vec<Listen>, messages: Option<MessageForm>| {
        let mut plan = graphite_source(name, Personality::Carbon);
        plan.listen = listen;
        // Carbon closes no connection for being idle, unless it is told to.
        plan.idle_timeout_ms = conf.idle_timeout_s.unwrap_or(0) * 1000;
        if let Some(connections) = conf.connections_max {
            plan.connections_max = usize::try_from(connections).unwrap_or(usize::MAX);
        }
        if let SourceKind::Graphite(source) = &mut plan.kind {
            let bytes_max = conf.pickle_bytes_max.filter(|_| messages == Some(MessageForm::Pickle));
            let default = GraphiteSource::MESSAGE_BYTES_MAX as u64;
            source.messages = messages;
            source.message_bytes_max = usize::try_from(bytes_max.unwrap_or(default)).unwrap_or(usize::MAX);
        }
        plan
    };
    let at = |(interface, port): &(String, u16)| {
        interface.parse().ok().map(|ip: std::net::IpAddr| SocketAddr::new(ip, *port))
    };
    let lines = conf.lines.as_ref().and_then(at).map(Listen::Tcp);
    let datagrams = conf.datagrams.as_ref().and_then(at).map(Listen::Udp);
    let lines: Vec<Listen> = lines.into_iter().chain(datagrams).collect();
    let messages = |receiver: &Option<(String, u16)>| receiver.as_ref().and_then(at).map(Listen::Tcp);
    let mut sources = Vec::new();
    if !lines.is_empty() {
        sources.push(source("lines", lines, None));
    }
    let others =
        [("pickle", &conf.pickle, MessageForm::Pickle), ("protobuf", &conf.protobuf, MessageForm::Protobuf)];
    for (name, receiver, form) in others {
        sources.extend(messages(receiver).map(|listen| source(name, vec![listen], Some(form))));
    }
    sources
}

/// The output of a destination: those that differ in the instance alone share one.
fn output_of(destination: &CarbonDestination, endpoints: &mut Vec<CarbonDestination>) -> OutputId {
    let same = |known: &CarbonDestination| (&known.host, known.port) == (&destination.host, destination.port);
    let at = endpoints.iter().position(same).unwrap_or_else(|| {
        endpoints.push(destination.clone());
        endpoints.len() - 1
    });
    OutputId(at as u16)
}

/// The port for lines of a destination.
fn port(conf: &Conf, destination: &CarbonDestination) -> u16 {
    if conf.sends_lines { destination.port } else { destination.port.saturating_sub(1).max(1) }
}

fn outputs(conf: &Conf, endpoints: &[CarbonDestination]) -> Vec<OutputPlan> {
    let mut queue = QueueLimits::default();
    queue.records_max = conf.queue_records_max.unwrap_or(queue.records_max);
    // Receivers that pause are what flow control means, here for endpoints that are up; without it carbon drops what comes last.
    queue.when_full = if conf.flow_control { WhenFull::BlockWhileUp } else { WhenFull::ShedNewest };
    let output = |destination: &CarbonDestination| {
        let to = Endpoint { host: destination.host.clone(), port: port(conf, destination) };
        let name = match endpoints {
            [_] => OUTPUT.to_owned(),
            _ => endpoint_name(OUTPUT, &Destination::Tcp(to.clone())),
        };
        let kind = OutputKind::Graphite {
            to,
            form: GraphiteForm::Lines,
            namespace: Namespace::default(),
            sender: SenderPlan::default(),
            connections: 1,
            packing: Packing::Plain,
            tls: None,
        };
        let from = vec![Feed::Transform(TransformId(0))];
        let queue_kind = QueueKind::Memory;
        OutputPlan { name, kind, from, queue, queue_kind, required: false, check: None }
    };
    endpoints.iter().map(output).collect()
}

/// Clusters, and the statements that send.
fn routes(
    conf: &Conf,
    rules: &Rules,
    endpoints: &mut Vec<CarbonDestination>,
) -> (Vec<RelayCluster>, Vec<Statement>) {
    if conf.method == Method::Rules {
        let Some(rules) = &rules.relay else { return (Vec::new(), Vec::new()) };
        let (mut clusters, statements) = relay_statements(rules, |one| output_of(one, endpoints));
        for at in 0..clusters.len() {
            clusters[at].members.iter_mut().for_each(|member| to_line_port(conf, member));
            let taken = |name: &str| clusters[..at].iter().any(|known| known.name == name);
            let mut name = clusters[at].name.clone();
            while name == crate::native::BLACKHOLE || taken(&name) {
                name.push('_');
            }
            clusters[at].name = name;
        }
        return (clusters, statements);
    }
    let member = |destination: &CarbonDestination| Member {
        output: output_of(destination, endpoints),
        host: destination.host.clone(),
        port: port(conf, destination),
        instance: destination.instance.clone(),
    };
    let members: Vec<Member> = conf.destinations.iter().map(member).collect();
    let most = members.len().clamp(1, 255) as u8;
    let sharing = match conf.method {
        Method::Constant | Method::Rules => Sharing::Copies,
        Method::Hashing | Method::AggregatedHashing => Sharing::Placed {
            placement: Placement::CarbonPython { hash: conf.hash, diverse: conf.diverse },
            // Carbon sends to as many as there are.
            replication: conf.replication.min(most),
            stand_in: conf.dynamic,
        },
    };
    let cluster = RelayCluster { name: DESTINATIONS.to_owned(), members, sharing };
    let to = To::Clusters(vec![ClusterId(0)]);
    let mut statements = Vec::new();
    if conf.method == Method::AggregatedHashing {
        for rule in &rules.aggregation {
            statements.push(Statement::Match(MatchPlan {
                expressions: vec![ExpressionPlan::from(&*rule.input)],
                route_using: Some(rule.output.clone()),
                to: to.clone(),
                stop: true,
                ..MatchPlan::default()
            }));
        }
    }
    statements.push(Statement::Match(MatchPlan { to, ..MatchPlan::default() }));
    (vec![cluster], statements)
}

fn to_line_port(conf: &Conf, member: &mut Member) {
    if !conf.sends_lines {
        member.port = member.port.saturating_sub(1).max(1);
    }
}

/// All statements in the order in which carbon does things.
fn statements(
    conf: &Conf,
    rules: &Rules,
    routes: Vec<Statement>,
    wrong: &mut Vec<Diagnostic>,
) -> Vec<Statement> {
    if conf.method == Method::AggregatedHashing && rules.aggregation.len() > 1 {
        let message = "a name that several aggregation rules match goes where the first of them says";
        let hint = "carbon sends it to the destinations of all of them: put such rules together";
        wrong.push(Diagnostic::warning(Code::NotCarriedOver, message).hint(hint));
    }
    if !conf.is_aggregator {
        return routes;
    }
    // Results that are shared out as they are need no rule. Others meet all of them, from the top.
    let straight = conf.method != Method::Rules && rules.rewrite.post.is_empty();
    let to = if straight { To::Clusters(vec![ClusterId(0)]) } else { To::Nowhere };
    let mut statements = rewrite_statements(&rules.rewrite.pre);
    statements.extend(aggregation_statements(&rules.aggregation, &to));
    if !straight && !rules.aggregation.is_empty() {
        let message = "results of aggregation rules meet all rules, [pre] and aggregation rules among them";
        let hint =
            "carbon has them meet [post] and the routes alone: see that none of the others matches them";
        wrong.push(Diagnostic::warning(Code::NotCarriedOver, message).hint(hint));
    }
    if !conf.forward_all {
        if straight {
            statements.push(Statement::Match(MatchPlan { to: To::Blackhole, ..MatchPlan::default() }));
            return statements;
        }
        let message = "FORWARD_ALL = False cannot be carried over beside rules that results must meet";
        let hint = "add a rule with `to = \"blackhole\"` for the names that are not to go on";
        wrong.push(Diagnostic::warning(Code::NotCarriedOver, message).hint(hint));
    }
    statements.extend(rewrite_statements(&rules.rewrite.post));
    statements.extend(routes);
    statements
}
