//! Checks statements and builds a [`RelayConf`] (spec graphite §2.4): names, servers shared by clusters, expressions,
//! replacements, listeners.
//!
//! Path: `conf` -> `statement`, in the order of the files. Valid statements go into the document; invalid ones are
//! reported and left out, so that all mistakes are reported at once. `clusters` checks clusters and servers, `rules`
//! rules, `listeners` listeners.
//! Not here: addresses of host names. The original treats two servers as one when their *resolved* addresses are equal;
//! here they are one when their names are equal, because a check makes no DNS lookups.

use std::collections::BTreeMap;

use process::relay::{ClusterId, To};

use super::document::*;
use super::mistakes::{Mistakes, Report, UpstreamAt};
use super::syntax::{SendSyntax, Statement, StatementKind, StatisticsSyntax, Word};
use config::diagnostic::{Code, nearest};

mod clusters;
mod listeners;
mod rules;

/// The document of the statements of all files, in order.
pub(super) fn conf(statements: Vec<Statement>, mistakes: &mut Mistakes) -> RelayConf {
    let mut check = Check {
        conf: RelayConf::default(),
        mistakes,
        cluster_ids: BTreeMap::new(),
        server_ids: BTreeMap::new(),
        all_stops: None,
        statistics_sent: None,
        semicolon: UpstreamAt::Here,
    };
    for statement in statements {
        check.statement(statement);
    }
    // Statistics are no rule: their position has no effect, and the canonical form has them above the clusters.
    let sent = check.statistics_sent.take();
    check.conf.statistics.send = check.send_to(sent.as_ref());
    check.conf
}

struct Check<'m> {
    conf: RelayConf,
    mistakes: &'m mut Mistakes,
    /// Of the clusters by name.
    cluster_ids: BTreeMap<String, ClusterId>,
    /// Indices of the servers, by host in lower case, port and protocol: the same server.
    server_ids: BTreeMap<(String, u16, Proto), usize>,
    /// A `match * … stop` came before: no record gets to later rules.
    all_stops: Option<Span>,
    /// The `send to` of the statistics.
    statistics_sent: Option<SendSyntax>,
    /// The end of the current statement, where the original reports most mistakes.
    semicolon: UpstreamAt,
}

impl Check<'_> {
    fn statement(&mut self, statement: Statement) {
        let span = statement.span;
        self.semicolon = UpstreamAt::From(span.place.end.saturating_sub(1));
        match statement.kind {
            StatementKind::Cluster { name, kind } => self.cluster(&name, kind),
            StatementKind::Match(rule) => self.match_rule(rule, span),
            StatementKind::Rewrite { pattern, into } => self.rewrite(&pattern, &into, span),
            StatementKind::Aggregate(rule) => self.aggregate(rule, span),
            StatementKind::Statistics(statistics) => self.statistics(statistics, span),
            StatementKind::Listen { compression, tls, receptors } => self.listen(compression, tls, receptors),
            // Its statements are in its place already.
            StatementKind::Include(_) => {}
        }
    }

    fn statistics(&mut self, statistics: StatisticsSyntax, span: Span) {
        if let Some(every) = &statistics.every
            && let Some(every_s) = self.seconds(every)
        {
            self.conf.statistics.every_s = every_s;
        }
        if self.conf.statistics.reset && !statistics.reset && !statistics.old_form {
            let message = "this undoes the `reset counters` of the statement above, as in the original";
            let report = self.mistakes.warning(Code::ImportNoEffect, span, message);
            let report = report.label("says no `reset counters`");
            report.hint("write one `statistics` statement with all of it");
        }
        self.conf.statistics.reset = statistics.reset || (self.conf.statistics.reset && statistics.old_form);
        if let Some(prefix) = &statistics.prefix {
            // `^(([^.]+)(\..*)?)$` over the host name.
            self.conf.statistics.prefix = Some(self.replacement(prefix, 3));
        }
        // With a `send to` they go only there, as the original prints it.
        self.conf.statistics.stop |= statistics.stop || statistics.send.is_some();
        if let Some((send, span)) = statistics.send {
            if self.statistics_sent.is_some() {
                let report = self.mistakes.error(Code::Repeated, span, "statistics are sent twice");
                let report = report.label("there is a `send to` already");
                report.hint("name all clusters in one `send to`").upstream_at(
                    self.semicolon,
                    "duplicate 'statistics send to' not allowed, use multiple destinations instead",
                );
            }
            self.statistics_sent = Some(send);
        }
    }

    /// The clusters of a `send to`; nowhere when one of them does not exist, which is reported.
    fn send_to(&mut self, send: Option<&SendSyntax>) -> To {
        match send {
            None => To::Nowhere,
            Some(SendSyntax::Blackhole) => To::Blackhole,
            Some(SendSyntax::Clusters(names)) => {
                let found: Vec<Option<ClusterId>> = names.iter().map(|name| self.cluster_of(name)).collect();
                found.into_iter().collect::<Option<Vec<ClusterId>>>().map_or(To::Nowhere, To::Clusters)
            }
        }
    }

    fn cluster_of(&mut self, name: &Word) -> Option<ClusterId> {
        let clusters = &self.conf.clusters;
        let found = self.cluster_ids.get(&name.text).copied();
        if found.is_none() && !self.mistakes.lost_clusters.contains(&name.text) {
            let names = clusters.iter().map(|cluster| &*cluster.name);
            let hint = match nearest(&name.text, names.clone().chain(["blackhole", "stop"])) {
                Some(near) => format!("did you mean `{near}`?"),
                None if clusters.is_empty() => "no cluster is defined before this statement".into(),
                None => format!("defined before it are: {}", names.take(8).collect::<Vec<_>>().join(", ")),
            };
            let message = format!("cluster `{}` is not defined yet", name.text);
            let report = self.mistakes.error(Code::UnknownCluster, name.span, message);
            report.label("not defined above").hint(hint).upstream("unknown cluster");
        }
        found
    }

    /// Reports that there are more of something than `most`.
    fn too_many(&mut self, span: Span, most: usize, what: &str) -> Report<'_> {
        self.mistakes.error(Code::TooMany, span, format!("there are more than {most} {what}"))
    }

    /// Reports a compressed or encrypted stream of datagrams.
    fn datagrams(&mut self, span: Span, hint: &str) {
        let message = "datagrams are neither compressed nor encrypted";
        let report = self.mistakes.error(Code::ImportBadValue, span, message);
        let report = report.label("`proto udp` and a `transport`").hint(hint);
        report.upstream_at(self.semicolon, "cannot use UDP transport for compressed/encrypted stream");
    }

    /// A number of seconds, at least 1.
    fn seconds(&mut self, word: &Word) -> Option<u32> {
        match word.text.parse::<u32>() {
            Ok(seconds) if (1..=SECONDS_MAX).contains(&seconds) => Some(seconds),
            _ => {
                let message = format!("{} seconds is not from 1 to {SECONDS_MAX}", word.text);
                let report = self.mistakes.error(Code::ImportBadValue, word.span, message);
                report.label("out of range").upstream_at(self.semicolon, "interval must be > 0");
                None
            }
        }
    }
}

/// Longest interval: ten years.
const SECONDS_MAX: u32 = 10 * 366 * 86_400;
