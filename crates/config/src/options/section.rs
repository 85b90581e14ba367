//! The kinds of tables in a file: heading and purpose of each, in the order of the reference. For sources, transforms and
//! outputs, also the records that they take and give: the one table of kinds (`crate::kinds` says how it is read).
//!
//! A kind of source, transform or output is a line here. From the line follow the options that every kind has (`type`, `from`,
//! `queue`), the checks of edges, the schema, the reference and the docs page. CONTRIBUTING.md lists what else a kind needs.

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
    /// The three, in the order of a record's path.
    pub const ALL: [Family; 3] = [Family::Sources, Family::Transforms, Family::Outputs];

    /// The key in the file: `sources`, `transforms`, `outputs`.
    pub fn key(self) -> &'static str {
        match self {
            Family::Sources => "sources",
            Family::Transforms => "transforms",
            Family::Outputs => "outputs",
        }
    }

    /// One of them: `source`, `transform`, `output`.
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

/// One line for each: its name here; its heading in TOML, or its family, its `type`, and `[what it takes] => [what it gives]`;
/// what it is for. `or "WORD" [..] => [..]` is for a kind that takes or gives something else with this `encoding`.
macro_rules! sections {
    ($(
        $name:ident: $($heading:literal)?
            $($family:ident $word:literal [$($takes:ident)*] => [$($gives:ident)*]
                $(or $encoding:literal [$($or_takes:ident)*] => [$($or_gives:ident)*])?)?,
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

            /// How it is written in TOML.
            pub fn heading(self) -> String {
                match self { $(Section::$name => sections!(@heading $($heading)? $($family $word)?),)+ }
            }

            /// What it is for, in a sentence or two.
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
                },)?
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
        "What belongs to no source, transform or output.";
    SourceStatsd: Sources "statsd" [] => [Packets Samples Events],
        "Takes in StatsD samples, and DogStatsD events and service checks, as datagrams or on streams.";
    SourceGraphite: Sources "graphite" [] => [Packets Points],
        "Takes in Graphite points, as lines in datagrams and on streams or as pickle or protobuf on streams, and hands each on as a line. See [Graphite](graphite.md).";
    SourceOpenTsdb: Sources "opentsdb" [] => [Packets Points],
        "Takes in `put` lines of OpenTSDB's collectors, and hands each on as a Graphite point with tags. See [OpenTSDB](opentsdb.md).";
    SourceSelf: Sources "self" [] => [Packets Samples] or "carbon-c-relay" [] => [Packets Points],
        "The daemon's own figures as StatsD lines, for outputs and aggregations to take from. It listens nowhere, and its lines are not counted as traffic.";
    SourceTls: "[sources.NAME.tls]",
        "Encrypts the connections of a source. The files are read again at each reload; connections that are open stay as they are. See [Graphite](graphite.md#tls).";
    TransformAggregate: Transforms "aggregate" [Samples] => [Aggregates Points],
        "Turns the samples of each window into one value per counter, gauge and set, and several per timer.";
    Histogram: "[[transforms.NAME.histograms]]",
        "Counts a timer's values by bins. Of several entries the first whose `name_contains` fits a timer applies.";
    Expiry: "[transforms.NAME.expiry]",
        "What becomes of a series that saw no sample in a window. `expiry = \"5m\"` sets all four at once.";
    KeyFlush: "[transforms.NAME.key_flush]",
        "A regular report of the names that got the most lines. Without this table there is none.";
    TransformRelay: Transforms "relay" [Points] => [Points],
        "Sends Graphite points on by their names: copies and shares them out among outputs, gives them other names, rolls many up into few. See [the relay as configuration](relay-native.md).";
    RelayCluster: "[transforms.NAME.clusters.CLUSTER]",
        "Outputs of a relay, and how points are shared out among them.";
    RelayRule: "[[transforms.NAME.rules]]",
        "One rule of a relay: `into` makes it a rewrite, `compute` an aggregation rule; otherwise it is a route.";
    RelayStatistics: "[transforms.NAME.statistics]",
        "Where a relay's own figures go.";
    OutputGraphite: Outputs "graphite" [Aggregates Points] => [],
        "Sends aggregates to carbon, a relay, or whatever speaks its protocol.";
    OutputGraphiteFile: Outputs "graphite_file" [Aggregates Points] => [],
        "Writes aggregates as Graphite lines to a file of bounded size.";
    OutputOpenTsdb: Outputs "opentsdb" [Aggregates Points] => [],
        "Sends points and aggregates to OpenTSDB, or to whatever else reads its `put` lines. See [OpenTSDB](opentsdb.md#send-points-to-opentsdb).";
    OutputConsole: Outputs "console" [Aggregates] => [],
        "Prints each window's aggregates as one document, to try things out.";
    OutputPerlFile: Outputs "perl_file" [Aggregates] => [],
        "Appends to a file in the form of Net::Statsd::Server's file backend. The file is not rotated.";
    OutputUdp: Outputs "udp" [Packets Aggregates] => [],
        "Sends each packet of a source on as a datagram: byte for byte, or what its options make of the lines.";
    OutputTcp: Outputs "tcp" [Packets Aggregates] => [],
        "Sends each packet of a source on over TCP: byte for byte, or what its options make of the lines.";
    OutputUnix: Outputs "unix" [Packets Aggregates] => [],
        "Sends each packet of a source on to a unix socket, as a datagram or over a stream: byte for byte, or what its options make of the lines.";
    OutputEventFile: Outputs "event_file" [Events] => [],
        "Writes events and service checks as JSON lines to a file of bounded size.";
    Aggregates: "[outputs.NAME.aggregates]",
        "How an output of packets that takes from a transform writes aggregates as samples: counters as their sums, gauges as their values, sets as their members, timers as the values of the window.";
    OutputTls: "[outputs.NAME.tls]",
        "Encrypts the connections to the endpoints, whose certificates are always verified. `tls = {}` verifies them by the system's authorities. The files are read again at each reload. See [Graphite](graphite.md#tls).";
    Check: "[outputs.NAME.check]",
        "Asks each endpoint regularly whether it is well. A cluster gives the keys of an endpoint that is down to the others until it is up.";
    Queue: "[outputs.NAME.queue]",
        "What stands between the pipeline and an output that is slow or away. Each endpoint has a queue of its own.";
    Http: "[http]",
        "`/healthz`, `/ready`, `/metrics` and `/api/v1`.";
    HttpTls: "[http.tls]",
        "Encrypts the connections of the HTTP server, with the files of a source's `tls`. They are read again at each reload; connections that are open stay as they are.";
    Management: "[management]",
        "The management port of the originals (`stats`, `health`, `delcounters` …). Several: `[[management]]`.";
}

impl Section {
    /// What `type` says in it; none where it is no source, transform or output.
    pub fn word(self) -> Option<&'static str> {
        self.node().map(|(_, word)| word)
    }

    /// The kinds of nodes of some families, as many as there are.
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

    /// How many they are.
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
    use super::Family;
    use super::Section::{
        self, OutputEventFile, OutputGraphite, OutputGraphiteFile, OutputOpenTsdb, OutputTcp, OutputUdp,
        OutputUnix, SourceGraphite, SourceOpenTsdb, SourceStatsd, TransformAggregate,
    };

    pub(in crate::options) const SOURCES: &[Section] = &[SourceStatsd];
    pub(in crate::options) const POINTS: &[Section] = &[SourceGraphite];
    pub(in crate::options) const LISTENING: &[Section] = &[SourceStatsd, SourceGraphite, SourceOpenTsdb];
    pub(in crate::options) const AGGREGATE: &[Section] = &[TransformAggregate];
    pub(in crate::options) const OUTPUTS: &[Section] =
        &Section::of::<{ Section::number(&[Family::Outputs]) }>(&[Family::Outputs]);
    pub(in crate::options) const NAMED: &[Section] =
        &Section::of::<{ Section::number(&Family::ALL) }>(&Family::ALL);
    pub(in crate::options) const NAMING: &[Section] =
        &[OutputGraphite, OutputGraphiteFile, OutputOpenTsdb, TransformAggregate];
    pub(in crate::options) const STREAMS: &[Section] =
        &[OutputGraphite, OutputOpenTsdb, OutputTcp, OutputUnix];
    pub(in crate::options) const PACKETS: &[Section] = &[OutputUdp, OutputTcp, OutputUnix];
    pub(in crate::options) const ENDPOINTS: &[Section] =
        &[OutputGraphite, OutputOpenTsdb, OutputUdp, OutputTcp, OutputUnix];
    pub(in crate::options) const ROTATED: &[Section] = &[OutputGraphiteFile, OutputEventFile];
}
