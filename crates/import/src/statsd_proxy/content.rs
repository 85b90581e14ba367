//! Content of a file of the cluster proxy.

use std::net::SocketAddr;

use config::plan::Listen;
use process::sharding::RingReplicas;

/// Content of a proxyConfig.js.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyConfig {
    /// The nodes, in the order of the file, each once, at least one.
    pub nodes: Vec<ProxyNode>,
    /// The listener. Lines of a UDP packet or of a TCP stream are routed one by one.
    pub listen: Listen,
    /// `address_ipv6`: names of nodes resolve to IPv6 addresses; without it to IPv4 addresses.
    pub nodes_ipv6: bool,
    /// The management port.
    pub management: SocketAddr,
    /// The output of its `config` command: keys and values.
    pub management_config: Vec<(String, String)>,
    /// Time between two health checks of a node, and the timeout of one, in milliseconds.
    pub check_interval_ms: u64,
    /// `ring_replicas`, an option of ours: 4 for the ring of statsd before 0.8.0.
    pub ring_replicas: RingReplicas,
    /// Reload when the file changes.
    pub reload_on_change: bool,
}

/// One node behind the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyNode {
    /// Name or address.
    pub host: String,
    /// Port for samples, over UDP.
    pub port: u16,
    /// Port for health checks, over TCP.
    pub adminport: u16,
    /// The text that the ring hashes and `status` prints: host and port as in the file, with `:` between.
    pub label: String,
}
