//! The plan of a proxy: one source, and one cluster of its nodes.

use std::net::IpAddr;

use model::{OutputId, SourceId};
use process::sharding::{HealthPlan, KeyForm, Sharding};
use wire::statsd::{Dialect, Options};

use super::content::ProxyConfig;
use crate::statsd::{http, whole};
use config::diagnostic::{Code, Diagnostic, has_errors};
use config::native;
use config::plan::{
    CheckKind, CheckPlan, ClusterPlan, Destination, Endpoint, Feed, LinesPlan, ManagementPlan,
    ManagementReplies, OutputKind, OutputPlan, PacketsPlan, Plan, SourceKind, SourcePlan,
};

/// Name of the cluster, and of its outputs before the `/`.
const NODES: &str = "nodes";

/// The plan, when there is no error, and the diagnostics.
///
/// Lines are not parsed: every line with a key goes to its owner as one datagram, as in the original. Checks are the
/// original's: one failure means down, one success means up.
pub fn plan_of(config: &ProxyConfig) -> (Option<Plan>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let is_name = |host: &str| host.parse::<IpAddr>().is_err();
    if config.nodes_ipv6 && config.nodes.iter().any(|node| is_name(&node.host)) {
        let message = "`address_ipv6` has no counterpart for names of nodes: both families are looked up";
        diagnostics.push(Diagnostic::warning(Code::NotCarriedOver, message));
    }
    let mut plan = whole_plan(config);
    http(&mut plan, &mut diagnostics);
    whole(&plan, &mut diagnostics);
    (Some(plan).filter(|_| !has_errors(&diagnostics)), diagnostics)
}

fn whole_plan(config: &ProxyConfig) -> Plan {
    let mut plan = Plan { reload_on_change: config.reload_on_change, ..Plan::default() };
    plan.sources.push(SourcePlan {
        kind: SourceKind::Statsd(Options::of(Dialect::Etsy)),
        listen: vec![config.listen.clone()],
        idle_timeout_ms: 0,
        ..native::default_source("clients")
    });
    for node in &config.nodes {
        let to = Destination::Udp(Endpoint { host: node.host.clone(), port: node.port });
        let lines = Some(Box::new(LinesPlan::new(&to, true)));
        let name = native::endpoint_name(NODES, &to);
        let kind = OutputKind::Packets(PacketsPlan { lines, ..PacketsPlan::new(to) });
        let check = CheckPlan {
            kind: CheckKind::Management,
            at: Endpoint { host: node.host.clone(), port: node.adminport },
            every_ms: config.check_interval_ms,
            health: HealthPlan::default(),
        };
        let output = OutputPlan::new(name, kind, vec![Feed::Source(SourceId(0))]);
        plan.outputs.push(OutputPlan { check: Some(check), ..output });
    }
    plan.clusters.push(ClusterPlan {
        name: NODES.into(),
        sharding: Sharding::StatsdNode(config.ring_replicas),
        key: KeyForm::Node,
        // More nodes than a plan has outputs are an error that `whole` reports.
        members: (0..plan.outputs.len()).map(|at| OutputId(at as u16)).collect(),
        labels: config.nodes.iter().map(|node| node.label.clone()).collect(),
    });
    plan.management.push(ManagementPlan {
        replies: ManagementReplies::Proxy { cluster: 0 },
        config: config.management_config.clone(),
        ..ManagementPlan::at(config.management)
    });
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::javascript::Environment;
    use crate::statsd_proxy;
    use config::diagnostic::Source;

    fn plan(text: &str) -> (Option<Plan>, Vec<Diagnostic>) {
        let environment = Environment { vars: &|_| None, hostname: "h".into() };
        let (config, diagnostics) = statsd_proxy(text, &environment);
        plan_of(&config.unwrap_or_else(|| panic!("{diagnostics:?}")))
    }

    #[test]
    fn a_proxy_file_becomes_a_cluster_that_prints_as_a_native_file() {
        let text = "{nodes: [{host: '10.0.0.1', port: 8125, adminport: 8126}, \
            {host: '::1', port: '08127', adminport: 8128}], server: './servers/tcp', checkInterval: 1000, \
            ring_replicas: 4, mgmt_port: 9126}";
        let (plan, diagnostics) = plan(text);
        assert_eq!(diagnostics, []);
        let plan = plan.unwrap();
        let names: Vec<&str> = plan.outputs.iter().map(|output| &*output.name).collect();
        assert_eq!(names, ["nodes/10.0.0.1:8125", "nodes/[::1]:8127"]);
        assert_eq!(plan.clusters[0].labels, ["10.0.0.1:8125", "::1:08127"]);
        let check = plan.outputs[1].check.as_ref().unwrap();
        assert_eq!((check.at.port, check.every_ms, &check.kind), (8128, 1000, &CheckKind::Management));
        let printed = config::print(&plan);
        let (read, wrong) = config::check(Source { name: "printed", text: &printed }, config::Format::Toml);
        assert_eq!(read.as_ref(), Some(&plan), "{printed}");
        // As in the original, the management port listens at all addresses.
        let codes: Vec<_> = wrong.iter().map(|wrong| wrong.code).collect();
        assert_eq!(codes, [Code::ManagementOpen], "{printed}");
        for part in
            ["sharding = \"statsd-node\"", "ring_replicas = 4", "replies = \"proxy\"", "mode = \"lines\""]
        {
            assert!(printed.contains(part), "{part}: {printed}");
        }
    }

    #[test]
    fn a_proxy_file_is_distinguished_from_a_statsd_file() {
        let environment = Environment { vars: &|_| None, hostname: "h".into() };
        for (text, want) in [
            ("{nodes: [], port: 1}", true),
            ("{nodes: [], backends: null}", true),
            ("{nodes: [], backends: ['./backends/console']}", false),
            ("{nodes: 3}", true),
            ("{nodse: [], checkInterval: 1000}", true),
            ("{nodes: 3, graphiteHost: 'g'}", false),
            ("{flushInterval: 1000, checkInterval: 1000}", false),
            ("{port: 1}", false),
            ("{", false),
        ] {
            assert_eq!(crate::is_proxy(text, &environment), want, "{text}");
        }
    }

    #[test]
    fn a_node_that_is_the_proxy_itself_is_rejected() {
        for (address, is_loop) in [("0.0.0.0", true), ("127.0.0.1", true), ("127.0.0.2", false)] {
            let node = "{host: 'localhost', port: 8125, adminport: 8126}";
            let (plan, wrong) = plan(&format!("{{nodes: [{node}], address: '{address}', mgmt_port: 9}}"));
            let found = wrong.iter().any(|wrong| wrong.code == Code::Loop);
            assert_eq!((found, plan.is_none()), (is_loop, is_loop), "{address}: {wrong:?}");
        }
    }

    #[test]
    fn address_ipv6_with_node_names_gives_a_warning() {
        let of = |host: &str| {
            let node = format!("{{host: '{host}', port: 1, adminport: 2}}");
            plan(&format!("{{nodes: [{node}], address: '::1', address_ipv6: true}}")).1
        };
        assert_eq!(of("::2"), []);
        assert_eq!(of("web").iter().map(|each| each.code).collect::<Vec<_>>(), [Code::NotCarriedOver]);
    }
}
