//! The checked plan: it is always valid. Built from a native file, an original's file, or the defaults.
//!
//! Here: the whole plan, and the daemon's own settings. Sources, transforms and outputs have their own files.

mod email;
mod facts;
mod graphite_api;
mod http_output;
mod output;
mod riemann_output;
mod source;
mod store;
mod streams;
mod transform;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use deliver::plan::WhenFull;
use model::{AckWhen, SourceId, TransformId};
use process::relay::MemberNode;
use wire::statsd::Dialect;

use crate::kinds::RecordKind;

pub use self::email::*;
pub use self::facts::*;
pub use self::graphite_api::*;
pub use self::http_output::*;
pub use self::output::*;
pub use self::riemann_output::*;
pub use self::source::*;
pub use self::store::*;
pub use self::streams::*;
pub use self::transform::*;
pub use crate::transport::{Compression, EndpointTls, Identity, ListenTls, PemFile, TlsVersion};

/// A whole pipeline and the daemon's settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Sources; a [`SourceId`] is an index into them.
    pub sources: Vec<SourcePlan>,
    /// Transforms; a [`TransformId`] is an index into them.
    pub transforms: Vec<TransformPlan>,
    /// Outputs; a [`model::OutputId`] is an index into them.
    pub outputs: Vec<OutputPlan>,
    /// Outputs that shard the lines of their sources instead of each getting all of them.
    pub clusters: Vec<ClusterPlan>,
    /// HTTP: `/healthz`, `/metrics`, `/api/v1`. `None` when it is disabled.
    pub http: Option<SocketAddr>,
    /// Settings of the HTTP server.
    pub http_server: HttpPlan,
    /// Settings of graphite-web's API.
    pub graphite_api: GraphiteApiPlan,
    /// StatsD management ports.
    pub management: Vec<ManagementPlan>,
    /// The port where graphite-web asks for points that are not in their files yet.
    pub carbonlink: Option<CarbonLinkPlan>,
    /// Folder for files without a path of their own.
    pub data_dir: PathBuf,
    /// Longest time between SIGTERM and exit, in milliseconds.
    pub stop_timeout_ms: u64,
    /// Longest pause in reading during a hot restart, in milliseconds.
    pub hot_restart_timeout_ms: u64,
    /// Most bytes of unfinished lines and frames of all connections, above the share that each may always have.
    pub unfinished_bytes_max: u64,
    /// Threads that read, decrypt, decompress and parse. `None`: depends on the machine.
    pub readers: Option<usize>,
    /// Reload when the config file changes, not only on SIGHUP.
    pub reload_on_change: bool,
    /// True for the built-in defaults: a taken port is then a warning, not an error.
    pub built_in: bool,
    /// Contents of files that strings of the config refer to. They are never shown.
    pub secrets: Vec<String>,
}

/// Nothing but the defaults of the daemon itself.
impl Default for Plan {
    fn default() -> Plan {
        Plan {
            sources: Vec::new(),
            transforms: Vec::new(),
            outputs: Vec::new(),
            clusters: Vec::new(),
            http: Some(HttpPlan::ADDRESS),
            http_server: HttpPlan::default(),
            graphite_api: GraphiteApiPlan::default(),
            management: Vec::new(),
            carbonlink: None,
            data_dir: PathBuf::from("./staunch-data"),
            stop_timeout_ms: 5_000,
            hot_restart_timeout_ms: 10_000,
            unfinished_bytes_max: model::limits::UNFINISHED_BYTES_MAX,
            readers: None,
            reload_on_change: false,
            built_in: false,
            secrets: Vec::new(),
        }
    }
}

impl Plan {
    /// Longest time that an output may take for a stop, in milliseconds.
    pub fn stop_ms_of(&self, output: &OutputPlan) -> u64 {
        let of_store = if let OutputKind::Whisper(store) = &output.kind { store.stop_timeout_ms } else { 0 };
        self.stop_timeout_ms.max(of_store)
    }

    /// Longest time that all outputs may take for a stop, in milliseconds.
    pub fn stop_ms(&self) -> u64 {
        self.outputs.iter().map(|output| self.stop_ms_of(output)).fold(self.stop_timeout_ms, u64::max)
    }

    /// Most readers.
    pub const READERS_MAX: usize = 64;

    /// Most readers by default.
    pub const READERS_DEFAULT_MAX: usize = 8;

    /// Readers on a machine with this many cores; the shard needs one of them.
    pub fn readers_on(&self, cores: usize) -> usize {
        self.readers.unwrap_or_else(|| cores.saturating_sub(1).clamp(1, Plan::READERS_DEFAULT_MAX))
    }
}

#[test]
fn the_default_number_of_readers_leaves_one_core_to_the_shard() {
    let mut plan = Plan::default();
    for (cores, readers) in [(0, 1), (1, 1), (2, 1), (3, 2), (9, 8), (10, 8), (128, 8)] {
        assert_eq!(plan.readers_on(cores), readers, "{cores} cores");
    }
    plan.readers = Some(Plan::READERS_MAX);
    assert_eq!(plan.readers_on(1), Plan::READERS_MAX, "the file decides");
}

/// Settings of the HTTP server.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpPlan {
    /// Host names that requests may use, in addition to addresses and `localhost`; in lower case.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages elsewhere that may read data, such as `https://wiki.example.org`; in lower case.
    pub allowed_origins: Vec<String>,
    /// File with the token that requests must have. `None`: no token is needed.
    pub token_file: Option<PemFile>,
    /// TLS of its connections. `None`: no TLS.
    pub tls: Option<Box<ListenTls>>,
    /// Most connections at once.
    pub connections_max: usize,
    /// Most connections of one client.
    pub peer_connections_max: usize,
}

impl HttpPlan {
    /// Default of `listen`.
    pub const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8680);

    /// Default of `max_connections`.
    pub const CONNECTIONS_MAX: usize = 256;
}

impl Default for HttpPlan {
    fn default() -> HttpPlan {
        HttpPlan {
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            token_file: None,
            tls: None,
            connections_max: HttpPlan::CONNECTIONS_MAX,
            peer_connections_max: HttpPlan::CONNECTIONS_MAX / 2,
        }
    }
}

/// Why a source's lines cannot be acknowledged as safe or delivered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Against<'a> {
    /// They become part of an aggregate, which is in memory.
    Aggregated(&'a TransformPlan),
    /// The output's queue is in memory.
    InMemory(&'a OutputPlan),
    /// The output sends datagrams, whose delivery cannot be confirmed.
    Datagrams(&'a OutputPlan),
}

impl Plan {
    /// The first obstacle for acknowledging the lines of `source` under that condition; `None` without one.
    pub fn against(&self, source: SourceId, when: AckWhen) -> Option<Against<'_>> {
        if when == AckWhen::Accepted {
            return None;
        }
        let feeds = self.feeds_of(source);
        let takes = |transform: &&TransformPlan| transform.from.iter().any(|feed| feeds.contains(feed));
        let mut transforms = self.transforms.iter().filter(takes);
        if let Some(transform) = transforms.find(|transform| transform.kind.aggregates()) {
            return Some(Against::Aggregated(transform));
        }
        let takes = |output: &&OutputPlan| output.from.iter().any(|feed| feeds.contains(feed));
        let mut outputs = self.outputs.iter().filter(takes);
        if when == AckWhen::Safe {
            return outputs.find(|output| !output.queue_kind.is_disk()).map(Against::InMemory);
        }
        let sends_datagrams = |kind: &OutputKind| matches!(kind.facts().link, Link::Datagrams { .. });
        outputs.find(|output| sends_datagrams(&output.kind)).map(Against::Datagrams)
    }

    /// Why lines of `source` may be dropped for room although its clients rely on their acknowledgement: the first output on their way
    /// whose queue makes room that way. None for `accepted`, which promises a place in the queue and no more.
    pub fn drops_acked(&self, source: SourceId, when: AckWhen) -> Option<&OutputPlan> {
        let feeds = self.feeds_of(source);
        let drops = |output: &&OutputPlan| match output.queue.when_full {
            WhenFull::Wait | WhenFull::BlockWhileUp | WhenFull::DropOldest => true,
            WhenFull::Block | WhenFull::DropNewest => false,
        };
        let takes = |output: &&OutputPlan| output.from.iter().any(|feed| feeds.contains(feed));
        let mut outputs = self.outputs.iter().filter(takes).filter(drops);
        outputs.next().filter(|_| when != AckWhen::Accepted)
    }

    /// Sources whose dialect has events and service checks, and from which something reads, but nothing that takes these: they
    /// end as `filtered`.
    pub fn sources_with_unread_events(&self) -> impl Iterator<Item = &SourcePlan> {
        let sources =
            self.sources.iter().enumerate().map(|(at, source)| (Feed::Source(SourceId(at as u16)), source));
        sources
            .filter(|(feed, source)| {
                let gives_events = source.kind.facts().node.gives.contains(&RecordKind::Events);
                let has_events = match source.kind.reading().dialect {
                    Dialect::Dogstatsd | Dialect::Union => gives_events,
                    Dialect::Etsy | Dialect::Perl => false,
                };
                let takes = |kind: RecordKind| {
                    let takes = move |output: &OutputPlan| output.kind.takes().contains(&kind);
                    self.outputs.iter().any(|output| output.from.contains(feed) && takes(output))
                };
                // What takes packets gets events in them.
                let streams = self.streams().any(|(_, transform, _)| transform.from.contains(feed));
                let is_read = streams || takes(RecordKind::Events) || takes(RecordKind::Packets);
                has_events
                    && !is_read
                    && self.transforms.iter().any(|transform| transform.from.contains(feed))
            })
            .map(|(_, source)| source)
    }

    /// The name of a member of a relay's cluster; empty for an unknown one.
    pub fn member_name(&self, node: MemberNode) -> &str {
        match node {
            MemberNode::Output(id) => self.outputs.get(id.index()).map_or("", |output| &output.name),
            MemberNode::Relay(id) => self.transforms.get(id.index()).map_or("", |transform| &transform.name),
        }
    }

    /// The name of the source or transform of an edge; empty for an unknown one.
    pub fn name_of(&self, feed: Feed) -> &str {
        match feed {
            Feed::Source(id) => self.sources.get(id.index()).map_or("", |source| &source.name),
            Feed::Transform(id) => self.transforms.get(id.index()).map_or("", |transform| &transform.name),
        }
    }

    /// The names of several edges.
    pub(crate) fn names_of<'a>(&'a self, feeds: &'a [Feed]) -> impl Iterator<Item = &'a str> {
        feeds.iter().map(|feed| self.name_of(*feed))
    }

    /// The edges with the unchanged records of `source`: from the source, and from transforms that forward records and
    /// that it reaches only through such transforms.
    pub fn feeds_of(&self, source: SourceId) -> Vec<Feed> {
        let mut feeds = vec![Feed::Source(source)];
        let forwards = |(_, transform): &(usize, &TransformPlan)| transform.kind.facts().forwards;
        let all: Vec<_> = self.transforms.iter().enumerate().filter(forwards).collect();
        // At most one pass for each step of the longest chain.
        loop {
            let before = feeds.len();
            for (at, transform) in &all {
                let feed = Feed::Transform(TransformId(*at as u16));
                if !feeds.contains(&feed) && transform.from.iter().any(|from| feeds.contains(from)) {
                    feeds.push(feed);
                }
            }
            if feeds.len() == before {
                return feeds;
            }
        }
    }

    /// The relays by their indexes in [`Plan::relays`]: each comes after the relays that feed it.
    pub fn relays_in_order(&self) -> Vec<usize> {
        let relays: Vec<_> = self.relays().collect();
        let mut is_placed = vec![true; self.transforms.len()];
        relays.iter().for_each(|(id, ..)| is_placed[id.index()] = false);
        let mut order = Vec::with_capacity(relays.len());
        // One pass for each step of the longest chain, of at most `RELAYS_IN_A_ROW_MAX` relays.
        loop {
            let before = order.len();
            for (at, (id, transform, _)) in relays.iter().enumerate() {
                let is_fed = |from: TransformId| is_placed.get(from.index()).copied().unwrap_or(true);
                if !is_placed[id.index()] && transform.transforms().all(is_fed) {
                    is_placed[id.index()] = true;
                    order.push(at);
                }
            }
            if order.len() == before {
                debug_assert_eq!(order.len(), relays.len(), "a checked plan has no circles");
                return order;
            }
        }
    }

    /// Whether the names at a relay contain tags. That depends on its sources; the first one decides. For a relay that
    /// no source feeds, the first relay that feeds it decides.
    pub fn tags_are_named(&self, relay: &str) -> bool {
        let mut next = self.transforms.iter().find(|transform| transform.name == relay);
        for _ in 0..=RELAYS_IN_A_ROW_MAX {
            let Some(transform) = next else { return false };
            if let Some(source) = transform.sources().next() {
                let source = self.sources.get(source.index());
                return source.is_some_and(|source| source.kind.facts().names_have_tags);
            }
            let feeding = transform.transforms().filter_map(|id| self.transforms.get(id.index()));
            next = feeding.into_iter().find(|transform| transform.kind.facts().forwards);
        }
        false
    }
}

/// An edge to an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// Raw packets or events of a source.
    Source(SourceId),
    /// The results of a transform.
    Transform(TransformId),
}

/// The format of a management port's replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagementReplies {
    /// Node statsd.
    Node,
    /// Net::Statsd::Server.
    Perl,
    /// Node's cluster proxy (spec statsd §13).
    Proxy {
        /// The cluster whose live endpoints `status` lists: an index into [`Plan::clusters`].
        cluster: usize,
    },
}

/// carbon-cache's query port, CarbonLink (spec graphite §1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarbonLinkPlan {
    /// The listen address.
    pub listen: SocketAddr,
    /// Most clients at once; half of them may be of one peer.
    pub connections_max: usize,
}

/// What an empty section means.
impl Default for CarbonLinkPlan {
    fn default() -> CarbonLinkPlan {
        CarbonLinkPlan::at(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7002))
    }
}

impl CarbonLinkPlan {
    /// A port with the defaults, at this address.
    pub fn at(listen: SocketAddr) -> CarbonLinkPlan {
        CarbonLinkPlan { listen, connections_max: 256 }
    }
}

/// A StatsD management port (spec statsd §11).
#[derive(Clone, Debug, PartialEq)]
pub struct ManagementPlan {
    /// The listen address.
    pub listen: SocketAddr,
    /// The format of its replies.
    pub replies: ManagementReplies,
    /// Initial reply to `health`.
    pub healthy: bool,
    /// Reply to `config`: key, or `key > sub`, and value.
    pub config: Vec<(String, String)>,
    /// Reject the `del*` commands, `health up` and `health down`.
    pub read_only: bool,
    /// Most clients at once.
    pub connections_max: usize,
    /// Most clients of one peer; `None` for half of all.
    pub connections_per_peer_max: Option<usize>,
}

/// What an empty section means.
impl Default for ManagementPlan {
    fn default() -> ManagementPlan {
        ManagementPlan::at(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8126))
    }
}

impl ManagementPlan {
    /// A port with the defaults, at this address.
    pub fn at(listen: SocketAddr) -> ManagementPlan {
        ManagementPlan {
            listen,
            replies: ManagementReplies::Node,
            healthy: true,
            config: Vec::new(),
            read_only: false,
            connections_max: model::limits::MANAGEMENT_CONNECTIONS_MAX,
            connections_per_peer_max: None,
        }
    }

    /// Most clients of one peer at once.
    pub fn connections_per_peer_max(&self) -> usize {
        let half = || model::limits::connections_per_peer(self.connections_max);
        self.connections_per_peer_max.unwrap_or_else(half)
    }
}
