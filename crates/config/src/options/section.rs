//! The kinds of tables in a file: heading and purpose of each, in the order of the reference. For sources, transforms
//! and outputs, also the records that they take and give: the one table of kinds (`crate::kinds` reads it).
//!
//! A kind of source, transform or output has one line here. The options of every kind (`type`, `from`, `queue`), the
//! checks of edges, the schema, the reference and the docs page follow from it. CONTRIBUTING.md lists the other places for
//! a new kind.

use crate::kinds::NodeKind;
use crate::kinds::RecordKind::{Aggregates, Events, Packets, Points, Samples};

/// The three families of named sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// `[sources.NAME]`.
    Sources,
    /// `[transforms.NAME]`.
    Transforms,
    /// `[outputs.NAME]`.
    Outputs,
}

impl Family {
    /// All families, in the order of a record's path.
    pub const ALL: [Family; 3] = [Family::Sources, Family::Transforms, Family::Outputs];

    /// The key in the file: `sources`, `transforms`, `outputs`.
    pub fn key(self) -> &'static str {
        match self {
            Family::Sources => "sources",
            Family::Transforms => "transforms",
            Family::Outputs => "outputs",
        }
    }

    /// The singular: `source`, `transform`, `output`.
    pub fn one(self) -> &'static str {
        match self {
            Family::Sources => "source",
            Family::Transforms => "transform",
            Family::Outputs => "output",
        }
    }

    /// Its types with their sections.
    pub fn types(self) -> impl Iterator<Item = (&'static str, Section)> {
        let of =
            move |section: &Section| Some((section.node()?, *section)).filter(|((of, _), _)| *of == self);
        Section::ALL.iter().filter_map(of).map(|((_, word), section)| (word, section))
    }
}

/// One line for each: its name here; its heading in TOML, or its family, its `type`, and `[what it takes] => [what it
/// gives]`; its purpose. `or "WORD" [..] => [..]` is for a kind that takes or gives something else with this
/// `encoding`.
macro_rules! sections {
    ($(
        $name:ident: $($heading:literal)?
            $($family:ident $word:literal [$($takes:ident)*] => [$($gives:ident)*]
                $(or $encoding:literal [$($or_takes:ident)*] => [$($or_gives:ident)*])*)?,
            $about:literal;
    )+) => {
        /// A kind of table in the file; each has its own options.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Section {
            $(#[doc = $about] $name,)+
        }

        impl Section {
            /// Every section, in the order of the reference.
            pub const ALL: &[Section] = &[$(Section::$name,)+];

            /// The family and the `type` of a source, transform or output.
            pub const fn node(self) -> Option<(Family, &'static str)> {
                match self { $(Section::$name => sections!(@node $($family $word)?),)+ }
            }

            /// The heading in TOML.
            pub fn heading(self) -> String {
                match self { $(Section::$name => sections!(@heading $($heading)? $($family $word)?),)+ }
            }

            /// Its purpose in a sentence or two.
            pub fn about(self) -> &'static str {
                match self { $(Section::$name => $about,)+ }
            }
        }

        /// All kinds of nodes: sources, transforms, outputs.
        pub const NODES: &[NodeKind] = &[$(
            $(
                NodeKind {
                    section: Section::$name,
                    word: $word,
                    encoding: None,
                    takes: &[$($takes),*],
                    gives: &[$($gives),*],
                },
                $(NodeKind {
                    section: Section::$name,
                    word: $word,
                    encoding: Some($encoding),
                    takes: &[$($or_takes),*],
                    gives: &[$($or_gives),*],
                },)*
            )?
        )+];
    };
    (@node) => { None };
    (@node $family:ident $word:literal) => { Some((Family::$family, $word)) };
    (@heading $heading:literal) => { $heading.to_owned() };
    (@heading $family:ident $word:literal) => {
        format!("[{}.NAME] type = \"{}\"", Family::$family.key(), $word)
    };
}

sections! {
    Top: "Top level",
        "Options of the daemon itself.";
    SourceStatsd: Sources "statsd" [] => [Packets Samples Events],
        "Receives StatsD samples, and DogStatsD events and service checks, as datagrams or on streams.";
    SourceGraphite: Sources "graphite" [] => [Packets Points],
        "Takes in Graphite points, as lines in datagrams and on streams or as pickle or protobuf on streams, and hands each on as a line. See [Graphite](graphite.md).";
    SourceOpenTsdb: Sources "opentsdb" [] => [Packets Points],
        "Takes in `put` lines of OpenTSDB's collectors, and hands each on as a Graphite point with tags. See [OpenTSDB](opentsdb.md).";
    SourceRiemann: Sources "riemann" [] => [Events],
        "Receives events of Riemann's clients, as protobuf messages on streams and in datagrams. See [Riemann](riemann.md).";
    SourceSelf: Sources "self" [] => [Packets Samples] or "carbon-c-relay" [] => [Packets Points]
        or "carbon" [] => [Packets Points],
        "The daemon's own figures as StatsD lines, for outputs and aggregations. It has no listener, and its lines are not counted as traffic.";
    SourceTls: "[sources.NAME.tls]",
        "Encrypts the connections of a source. The files are read again at each reload; open connections do not change. See [Graphite](graphite.md#tls).";
    TransformAggregate: Transforms "aggregate" [Samples] => [Aggregates Points],
        "Aggregates the samples of each window to one value per counter, gauge and set, and several per timer.";
    Histogram: "[[transforms.NAME.histograms]]",
        "Counts a timer's values by bins. If there are several entries, the first one whose `name_contains` matches the timer applies.";
    Expiry: "[transforms.NAME.expiry]",
        "Expiry of series without samples in a window. `expiry = \"5m\"` sets all four kinds.";
    KeyFlush: "[transforms.NAME.key_flush]",
        "A regular report of the names with the most lines. Without this table there is no report.";
    TransformRelay: Transforms "relay" [Points] => [Points],
        "Routes Graphite points by their names: copies and shards them among outputs, renames them, aggregates several into one. See [the relay as configuration](relay-native.md).";
    RelayCluster: "[transforms.NAME.clusters.CLUSTER]",
        "A group of outputs of a relay, and the sharding of points among them.";
    RelayRule: "[[transforms.NAME.rules]]",
        "One rule of a relay. With `into` it is a rewrite, with `compute` an aggregation rule, otherwise a route.";
    RelayStatistics: "[transforms.NAME.statistics]",
        "Destination of a relay's own figures.";
    TransformStreams: Transforms "streams" [Events Points] => [Events Points],
        "Runs a Riemann config over events: its streams, index and queries. Points become events, as in Riemann's `graphite-server`. See [Riemann](riemann.md#points-as-events).";
    OutputGraphite: Outputs "graphite" [Aggregates Points] => [],
        "Sends aggregates to carbon, a relay, or another program with its protocol.";
    OutputGraphiteFile: Outputs "graphite_file" [Aggregates Points] => [],
        "Writes aggregates as Graphite lines to a file of bounded size.";
    OutputWhisper: Outputs "whisper" [Aggregates Points] => [],
        "Stores points in whisper files, and answers Graphite's queries about them. See [the Graphite store](graphite-store.md).";
    WhisperSchema: "[[outputs.NAME.schemas]]",
        "Archives of new whisper files. The first entry whose pattern is found in the name applies.";
    OutputCompat: "[outputs.NAME.compat]",
        "Behaviour of Python's whisper library that is not the default.";
    WhisperAggregation: "[[outputs.NAME.aggregations]]",
        "Aggregation of new whisper files. The first entry whose pattern is found in the name applies.";
    OutputOpenTsdb: Outputs "opentsdb" [Aggregates Points] => [],
        "Sends points and aggregates to OpenTSDB, or to whatever else reads its `put` lines. See [OpenTSDB](opentsdb.md#send-points-to-opentsdb).";
    OutputConsole: Outputs "console" [Aggregates] => [],
        "Prints the aggregates of each window as one document, for first tests.";
    OutputPerlFile: Outputs "perl_file" [Aggregates] => [],
        "Appends to a file in the format of Net::Statsd::Server's file backend. The file is not rotated.";
    OutputUdp: Outputs "udp" [Packets Aggregates] => [],
        "Sends each packet of a source as a datagram, unchanged or processed by lines according to its options.";
    OutputTcp: Outputs "tcp" [Packets Aggregates] => [],
        "Sends each packet of a source over TCP, unchanged or processed by lines according to its options.";
    OutputUnix: Outputs "unix" [Packets Aggregates] => [],
        "Sends each packet of a source to a unix socket, as a datagram or over a stream, unchanged or processed by lines according to its options.";
    OutputEventFile: Outputs "event_file" [Events] => [],
        "Writes events and service checks as JSON lines to a file of bounded size.";
    OutputHttp: Outputs "http" [Events] => [],
        "Sends events to an HTTP server, in batches or one by one. See [HTTP output](http-output.md).";
    OutputEmail: Outputs "email" [Events] => [],
        "Sends events by mail. See [Email](email.md).";
    OutputRiemann: Outputs "riemann" [Events] => [],
        "Sends events to another Riemann, in acknowledged messages. See [Riemann output](riemann-output.md).";
    Aggregates: "[outputs.NAME.aggregates]",
        "Aggregates as samples, for an output of packets that takes from a transform: counters as their sums, gauges as their values, sets as their members, timers as the values of the window.";
    OutputTls: "[outputs.NAME.tls]",
        "Encrypts the connections to the endpoints, whose certificates are always verified. `tls = {}` verifies them with the system's authorities. The files are read again at each reload. See [Graphite](graphite.md#tls).";
    Check: "[outputs.NAME.check]",
        "Regular health checks of each endpoint. In a cluster, other endpoints take the keys of an endpoint that is down until it is up again.";
    Queue: "[outputs.NAME.queue]",
        "The queue between the pipeline and an output. Each endpoint has its own.";
    Http: "[http]",
        "`/healthz`, `/ready`, `/metrics` and `/api/v1`.";
    HttpTls: "[http.tls]",
        "Encrypts the connections of the HTTP server, with the same options as a source's `tls`. The files are read again at each reload; open connections do not change.";
    GraphiteApi: "[graphite_api]",
        "graphite-web's API on the HTTP server: `/render`, `/metrics/find` and others. See [graphite-web's API](graphite-api.md).";
    Management: "[management]",
        "The management port of the originals (`stats`, `health`, `delcounters` …). For several ports, use `[[management]]`.";
    CarbonLink: "[carbonlink]",
        "carbon-cache's query port: a graphite-web that reads the files of an output `whisper` asks here for points that are not in them yet. Not needed for queries to Staunch.";
}

impl Section {
    /// The value of `type`; `None` if it is not a source, transform or output.
    pub fn word(self) -> Option<&'static str> {
        self.node().map(|(_, word)| word)
    }

    /// The kinds of nodes of some families.
    pub(crate) const fn of<const NUMBER: usize>(families: &[Family]) -> [Section; NUMBER] {
        let mut found = [Section::Top; NUMBER];
        let (mut at, mut section) = (0, 0);
        while section < Section::ALL.len() {
            if Section::ALL[section].is_of(families) {
                found[at] = Section::ALL[section];
                at += 1;
            }
            section += 1;
        }
        found
    }

    /// The number of kinds.
    pub(crate) const fn number(families: &[Family]) -> usize {
        let (mut number, mut section) = (0, 0);
        while section < Section::ALL.len() {
            number += Section::ALL[section].is_of(families) as usize;
            section += 1;
        }
        number
    }

    const fn is_of(self, families: &[Family]) -> bool {
        let Some((family, _)) = self.node() else { return false };
        let mut at = 0;
        while at < families.len() {
            if families[at] as u8 == family as u8 {
                return true;
            }
            at += 1;
        }
        false
    }
}

/// Sections that share options: a new kind joins the lists of those that it has.
pub(in crate::options) mod shared {
    use crate::options::section::Family;
    use crate::options::section::Section::{
        self, OutputEmail, OutputEventFile, OutputGraphite, OutputGraphiteFile, OutputHttp, OutputOpenTsdb,
        OutputRiemann, OutputTcp, OutputUdp, OutputUnix, OutputWhisper, SourceGraphite, SourceOpenTsdb,
        SourceRiemann, SourceStatsd, TransformAggregate,
    };

    pub(in crate::options) const SOURCES: &[Section] = &[SourceStatsd];
    pub(in crate::options) const POINTS: &[Section] = &[SourceGraphite];
    pub(in crate::options) const LISTENING: &[Section] =
        &[SourceStatsd, SourceGraphite, SourceOpenTsdb, SourceRiemann];
    pub(in crate::options) const LINES: &[Section] = &[SourceStatsd, SourceGraphite, SourceOpenTsdb];
    pub(in crate::options) const AGGREGATE: &[Section] = &[TransformAggregate];
    pub(in crate::options) const OUTPUTS: &[Section] =
        &Section::of::<{ Section::number(&[Family::Outputs]) }>(&[Family::Outputs]);
    pub(in crate::options) const NAMED: &[Section] =
        &Section::of::<{ Section::number(&Family::ALL) }>(&Family::ALL);
    pub(in crate::options) const NAMING: &[Section] =
        &[OutputGraphite, OutputGraphiteFile, OutputWhisper, OutputOpenTsdb, TransformAggregate];
    pub(in crate::options) const FLUSHED: &[Section] =
        &[OutputGraphite, OutputGraphiteFile, OutputWhisper, OutputOpenTsdb];
    pub(in crate::options) const STREAMS: &[Section] =
        &[OutputGraphite, OutputOpenTsdb, OutputTcp, OutputUnix];
    pub(in crate::options) const RETRIED: &[Section] =
        &[OutputGraphite, OutputOpenTsdb, OutputTcp, OutputUnix, OutputHttp, OutputEmail, OutputRiemann];
    pub(in crate::options) const PACKETS: &[Section] = &[OutputUdp, OutputTcp, OutputUnix];
    pub(in crate::options) const ENDPOINTS: &[Section] = &[
        OutputGraphite,
        OutputOpenTsdb,
        OutputUdp,
        OutputTcp,
        OutputUnix,
        OutputHttp,
        OutputEmail,
        OutputRiemann,
    ];
    pub(in crate::options) const ROTATED: &[Section] = &[OutputGraphiteFile, OutputEventFile];
}
