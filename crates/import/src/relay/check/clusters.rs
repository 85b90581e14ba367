//! Checks clusters, and the servers that they share.

use process::relay::{ClusterId, Distribution};
use process::sharding::Sharding;

use super::Check;
use crate::relay::document::*;
use crate::relay::host;
use crate::relay::mistakes::UpstreamAt;
use crate::relay::syntax::{ClusterSyntax, HostSyntax, Word};
use config::diagnostic::Code;

/// Most clusters, and most servers, of one configuration.
pub(super) const CLUSTERS_MAX: usize = 10_000;

impl Check<'_> {
    pub(super) fn cluster(&mut self, name: &Word, syntax: ClusterSyntax) {
        if self.conf.clusters.len() == CLUSTERS_MAX {
            self.too_many(name.span, CLUSTERS_MAX, "clusters");
            return;
        }
        if self.cluster_ids.contains_key(&name.text) {
            let message = format!("there are two clusters `{}`", name.text);
            let report = self.mistakes.error(Code::DuplicateName, name.span, message);
            let report = report.label("the second one");
            let report = report.hint("rename it, or add its members to the first one");
            report.upstream_at(self.semicolon, "cluster with the same name already defined");
            return;
        }
        let kind = match syntax {
            ClusterSyntax::Servers { word, mut distribution, use_all, replication, dynamic, hosts } => {
                if distribution == Distribution::RoundRobin {
                    let message = "carbon-c-relay does not know `lb`";
                    let report = self.mistakes.warning(Code::ReadsTwoWays, name.span, message);
                    report.hint("this file will not load there; `any_of` distributes by the name's hash");
                }
                let alone = matches!(word, "any_of" | "failover");
                let members = self.members(&name.text, &hosts, alone);
                if hashes(word)
                    && let Distribution::Sharded { sharding, replication: copies, fail_over } =
                        &mut distribution
                {
                    *copies = self.replication(&name.text, replication.as_ref(), hosts.len());
                    *fail_over = dynamic;
                    if *sharding == Sharding::CarbonCh {
                        self.note_collisions(&hosts);
                    }
                }
                ClusterKind::Servers { word, distribution, use_all, members }
            }
            ClusterSyntax::File { ip, paths } => {
                ClusterKind::File { ip, paths: paths.into_iter().map(|path| path.text).collect() }
            }
        };
        // A cluster with a mistake still counts as defined: rules that name it are right.
        let id = ClusterId(self.conf.clusters.len() as u16);
        self.cluster_ids.insert(name.text.clone(), id);
        self.conf.clusters.push(Cluster { name: name.text.clone(), kind, span: name.span });
    }

    fn replication(&mut self, cluster: &str, written: Option<&Word>, members: usize) -> u8 {
        let Some(written) = written else { return 1 };
        let Some(count) = written.text.parse::<u8>().ok().filter(|count| *count > 0) else {
            let message = "`replication` is a number from 1 to 255";
            let report = self.mistakes.error(Code::ImportBadValue, written.span, message);
            let upstream = "replication count must be between 1 and 255";
            report.label("out of range").upstream_at(self.semicolon, upstream);
            return 1;
        };
        if usize::from(count) > members {
            let servers = if members == 1 { "server" } else { "servers" };
            let message = format!("{count} copies cannot go to {members} {servers}");
            let report = self.mistakes.error(Code::ImportBadValue, written.span, message);
            let report = report.label("more than the cluster has servers");
            let report = report.hint(format!("write replication {members}, or add servers"));
            let upstream = format!(
                "invalid cluster '{cluster}': replication count ({count}) is larger than the number of servers ({members})\n"
            );
            report.upstream_at(self.semicolon, upstream);
        }
        count
    }

    fn members(&mut self, cluster: &str, hosts: &[HostSyntax], alone: bool) -> Vec<usize> {
        hosts.iter().filter_map(|host| self.member(cluster, host, alone)).collect()
    }

    /// The server of a member: an existing one, or a new one.
    fn member(&mut self, cluster: &str, syntax: &HostSyntax, alone: bool) -> Option<usize> {
        let (host, port) = match host::split(&syntax.address.text) {
            Ok((host, port)) => (host.to_owned(), port),
            Err(wrong) => {
                let behind = UpstreamAt::From(syntax.span.place.end);
                wrong.report(self.mistakes, syntax.address.span, behind);
                return None;
            }
        };
        let instance = syntax.instance.as_ref().map(|word| self.instance(word));
        let server = Server {
            host,
            port,
            instance,
            proto: syntax.proto,
            lines: syntax.lines,
            compression: syntax.compression,
            tls: syntax.tls.clone(),
            span: syntax.span,
        };
        self.check_server(&server);
        let place = (server.host.to_ascii_lowercase(), server.port, server.proto);
        let Some(&at) = self.server_ids.get(&place) else {
            if self.conf.servers.len() == CLUSTERS_MAX {
                self.too_many(syntax.span, CLUSTERS_MAX, "servers");
                return None;
            }
            self.server_ids.insert(place, self.conf.servers.len());
            self.conf.servers.push(server);
            return Some(self.conf.servers.len() - 1);
        };
        self.check_shared(cluster, at, &server, syntax, alone);
        Some(at)
    }

    /// In the original an instance of digits is a 32-bit number without leading zeros.
    fn instance(&mut self, word: &Word) -> String {
        let bare = word.span.place.end - word.span.place.start == word.text.len();
        let digits = word.text.bytes().all(|byte| byte.is_ascii_digit());
        // A number too large for 64 bits is read as the largest one; the original keeps its lower 32 bits.
        let number = (word.text.parse::<i64>().unwrap_or(i64::MAX) as i32).to_string();
        if !bare || !digits || number == word.text {
            return word.text.clone();
        }
        let message = format!("the instance `{}` is the number {number}", word.text);
        let report = self.mistakes.warning(Code::ImportNoEffect, word.span, message);
        let report = report.label("read as a number of 32 bits, as in the original");
        report.hint(format!("write ={number}, or =\"{}\" if it is meant literally", word.text));
        number
    }

    fn check_server(&mut self, server: &Server) {
        let stream = server.compression != Compression::Plain || server.tls != ServerTls::None;
        if server.proto == Proto::Udp && stream {
            self.datagrams(server.span, "leave out one of the two");
        }
    }

    /// Checks what the original rejects when a server is named again.
    fn check_shared(&mut self, cluster: &str, at: usize, server: &Server, syntax: &HostSyntax, alone: bool) {
        let first = &self.conf.servers[at];
        let place = format!("{}:{}", host::bracketed(&first.host), first.port);
        let instances = "give the server the same instance wherever it is named";
        let (message, upstream, hint) = match (&first.instance, &server.instance) {
            _ if alone => (
                format!(
                    "{place} is already a member of another cluster, and cannot be shared with `{cluster}`"
                ),
                format!("cannot share server {place} with any_of/failover cluster '{cluster}'"),
                "members of `any_of` and `failover` hand their queues on: give this one another port, or name it here first",
            ),
            _ if first.lines != server.lines => {
                let (before, now) = (first.lines.word(), server.lines.word());
                (
                    format!("{place} has `type {before}` above"),
                    format!(
                        "cannot set type '{now}' for server {place}: server was previously defined with type '{before}'"
                    ),
                    "one server has one connection with one encoding",
                )
            }
            (None, Some(now)) => (
                format!("{place} has no instance above"),
                format!(
                    "cannot set instance '{now}' for server {place}: server was previously defined without instance"
                ),
                instances,
            ),
            (Some(before), None) => (
                format!("{place} has the instance `{before}` above"),
                format!(
                    "cannot define server {place} without instance: server was previously defined with instance '{before}'"
                ),
                instances,
            ),
            (Some(before), Some(now)) if before != now => (
                format!("{place} has the instance `{before}` above"),
                format!(
                    "cannot set instance '{now}' for server {place}: server was previously defined with instance '{before}'"
                ),
                instances,
            ),
            _ => {
                if first.compression != server.compression || first.tls != server.tls {
                    let message = format!("{place} has another transport above, and that one applies");
                    let report = self.mistakes.warning(Code::ServerShared, syntax.span, message);
                    report.label("has no effect").hint("write the same transport in both places");
                }
                return;
            }
        };
        let report = self.mistakes.error(Code::ServerShared, syntax.span, message);
        report.label("conflicting definitions").hint(hint).upstream_at(self.semicolon, upstream);
    }

    /// In `carbon_ch` the port is not hashed: two members of one host without instances have one place in the ring.
    fn note_collisions(&mut self, hosts: &[HostSyntax]) {
        let host_of = |syntax: &HostSyntax| -> Option<String> {
            syntax
                .instance
                .is_none()
                .then(|| host::split(&syntax.address.text).ok().map(|(host, _)| host.to_owned()))?
        };
        let mut seen = std::collections::BTreeSet::new();
        for syntax in hosts {
            let Some(host) = host_of(syntax) else { continue };
            if !seen.insert(host) {
                let message =
                    "two members on one host without instances have the same position on the hash ring";
                let report = self.mistakes.warning(Code::ImportNoEffect, syntax.span, message);
                let report = report.label("gets nothing");
                report.hint("give each an instance: HOST:PORT=a; `carbon_ch` ignores the port");
            }
        }
    }
}
