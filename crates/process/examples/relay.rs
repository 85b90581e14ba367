//! Routes names through a relay plan read from standard input; used by `compat/relay.py`. Fields are separated by
//! tabs, `-` is an empty one.
//!
//! `cluster NAME TYPE REPLICATION dynamic|- MEMBER…`            a member is `host:port` or `host:port=instance`
//! `match TO stop|- USING VALIDATE log|drop EXPRESSION…`        TO: clusters joined by commas, `blackhole` or `-`
//! `rewrite EXPRESSION INTO`
//! `aggregate TO stop|- EXPRESSION RESULT…`
//! `names`                                                      all lines that follow are `NAME` or `NAME REST`
//!
//! For each name it prints the actions, one per line, and an empty line.
#![allow(clippy::print_stdout, reason = "an example prints to its user")]

use std::io::{self, BufRead, Write};

use model::OutputId;
use process::aggregation_rules::{AggregationRulePlan, Compute, ComputePlan, Late, Stamp};
use process::relay::{
    AggregateStatement, ClusterId, Distribution, Entry, ExpressionPlan, Line, MatchPlan, Member, MemberNode,
    RelayCluster, RelayPlan, RewritePlan, Router, RuleAction, RuleMatch, Sent, Statement, To, ValidatePlan,
};
use process::sharding::Sharding;

fn mistake(text: impl ToString) -> io::Error {
    io::Error::other(text.to_string())
}

fn some(field: &str) -> Option<&str> {
    (field != "-").then_some(field)
}

fn member(label: &str, output: u16) -> io::Result<Member> {
    let (address, instance) = match label.split_once('=') {
        Some((address, instance)) => (address, Some(instance.to_owned())),
        None => (label, None),
    };
    let (host, port) = address.rsplit_once(':').ok_or_else(|| mistake("no port"))?;
    let port = port.parse().map_err(mistake)?;
    Ok(Member { node: MemberNode::Output(OutputId(output)), host: host.to_owned(), port, instance })
}

fn cluster(fields: &[&str]) -> io::Result<RelayCluster> {
    let [name, form, replication, dynamic, labels @ ..] = fields else { return Err(mistake("a short line")) };
    let sharded = |sharding| -> io::Result<Distribution> {
        let replication = replication.parse().map_err(mistake)?;
        Ok(Distribution::Sharded { sharding, replication, fail_over: *dynamic == "dynamic" })
    };
    let distribution = match *form {
        "forward" => Distribution::Copies,
        "failover" => Distribution::Failover,
        "any_of" => sharded(Sharding::AnyOf)?,
        "carbon_ch" => sharded(Sharding::CarbonCh)?,
        "fnv1a_ch" => sharded(Sharding::Fnv1aCh)?,
        "jump_fnv1a_ch" => sharded(Sharding::JumpFnv1aCh)?,
        _ => return Err(mistake(format!("no type {form:?}"))),
    };
    let members = labels.iter().enumerate().map(|(at, label)| member(label, at as u16));
    Ok(RelayCluster { name: (*name).to_owned(), members: members.collect::<io::Result<_>>()?, distribution })
}

fn destination(plan: &RelayPlan, field: &str) -> io::Result<To> {
    let number = |name: &str| {
        let at = plan.clusters.iter().position(|cluster| cluster.name == name);
        at.map(|at| ClusterId(at as u16)).ok_or_else(|| mistake(format!("no cluster {name:?}")))
    };
    Ok(match field {
        "-" => To::Nowhere,
        "blackhole" => To::Blackhole,
        names => To::Clusters(names.split(',').map(number).collect::<io::Result<_>>()?),
    })
}

fn expressions(fields: &[&str]) -> Vec<ExpressionPlan> {
    fields.iter().map(|text| (*text).into()).collect()
}

fn statement(plan: &RelayPlan, fields: &[&str]) -> io::Result<Statement> {
    Ok(match fields {
        ["match", to, stop, using, validate, log, texts @ ..] => Statement::Match(MatchPlan {
            expressions: expressions(texts),
            unless: Vec::new(),
            validate: some(validate).map(|text| ValidatePlan { expression: text.into(), log: *log == "log" }),
            route_using: some(using).map(str::to_owned),
            to: destination(plan, to)?,
            stop: *stop == "stop",
        }),
        ["rewrite", expression, into] => Statement::Rewrite(RewritePlan {
            expression: (*expression).into(),
            into: (*into).to_owned(),
            every_occurrence: false,
        }),
        ["aggregate", to, stop, expression, results @ ..] => {
            let compute = |name: &&str| ComputePlan { compute: Compute::Sum, name: (*name).to_owned() };
            let aggregation_rule = AggregationRulePlan {
                every_s: 10,
                expire_s: 20,
                stamp: Stamp::End,
                computes: results.iter().map(compute).collect(),
                late: Late::Dropped,
                exact: false,
            };
            let expressions = expressions(&[*expression]);
            let to = destination(plan, to)?;
            let stop = *stop == "stop";
            Statement::Aggregate(AggregateStatement {
                expressions,
                aggregation_rule,
                to,
                stop,
                replaces: false,
            })
        }
        _ => return Err(mistake(format!("no statement {fields:?}"))),
    })
}

fn main() -> io::Result<()> {
    let mut plan = RelayPlan::default();
    let mut lines = io::stdin().lock().lines();
    for line in lines.by_ref() {
        let line = line?;
        match line.split('\t').collect::<Vec<_>>().as_slice() {
            ["names"] => break,
            ["cluster", fields @ ..] => plan.clusters.push(cluster(fields)?),
            fields => plan.statements.push(statement(&plan, fields)?),
        }
    }
    let router = Router::new(&plan).map_err(|mistakes| mistake(format!("{mistakes:?}")))?;
    let mut out = io::stdout().lock();
    for line in lines {
        let line = line?;
        let (name, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let line = Line { name: name.as_bytes(), rest: rest.as_bytes() };
        for meeting in router.explain(Entry::Records, line, 0).matches {
            print(&mut out, &plan, &meeting)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn print(out: &mut impl Write, plan: &RelayPlan, meeting: &RuleMatch) -> io::Result<()> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    writeln!(out, "met {}", text(&meeting.name))?;
    if let Some(valid) = meeting.valid {
        writeln!(out, "{}", if valid { "valid" } else { "invalid" })?;
    }
    match &meeting.action {
        RuleAction::Sent(clusters) => clusters.iter().try_for_each(|sent| print_sent(out, plan, sent))?,
        RuleAction::Renamed(name) => writeln!(out, "into {}", text(name))?,
        RuleAction::Blackholed => writeln!(out, "blackholed")?,
        RuleAction::Fed { names, .. } => {
            names.iter().flatten().try_for_each(|name| writeln!(out, "feeds {}", text(name)))?;
        }
        RuleAction::Nothing | RuleAction::NotRenamed(_) => {}
    }
    if meeting.stopped { writeln!(out, "stop") } else { Ok(()) }
}

fn print_sent(out: &mut impl Write, plan: &RelayPlan, sent: &Sent) -> io::Result<()> {
    let cluster = &plan.clusters[sent.cluster.index()];
    write!(out, "{}:", cluster.name)?;
    for chosen in &sent.chosen {
        let member = &cluster.members[chosen.member];
        write!(out, " {}:{}", member.host, member.port)?;
    }
    writeln!(out)
}
