//! The steps of a flow file, parsed but not run.

use std::collections::BTreeMap;

use model::Kind;

use crate::glob::Glob;

/// One step and its line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// Line in the flow file, from 1.
    pub(crate) line: usize,
    pub(crate) what: What,
}

/// What a step does or checks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Config(Config),
    Seed(u64),
    Send { source: String, packet: Vec<u8> },
    Stream { source: String, connection: String, bytes: Vec<u8> },
    Frames { source: String, connection: String, packet: Vec<u8> },
    Close { source: String, connection: String, orderly: bool },
    Advance { ms: u64 },
    Wall { back: bool, ms: u64 },
    Endpoint { output: String, order: Order },
    Expect { output: String, expected: Expected },
    Absent { output: String, names: Glob },
    Only { output: String, all: bool },
    Count { output: String, number: u64, names: Glob },
    Reply { source: String, connection: String, text: Option<String> },
    Outcomes { source: String, figures: Figures },
    Copies { output: String, figures: Figures },
    Series { names: Glob, held: Held },
    Delete { kind: Kind, name: String },
    Reload { refused: Option<Refused>, config: Config },
    Crash { power: bool },
    Stop,
}

/// A configuration, in any of its forms.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Config {
    pub(crate) form: Option<Form>,
    /// For a configuration inside the flow file: its lines, grouped by `config` (line from 1, text). Each text keeps
    /// the columns of its line.
    pub(crate) groups: Vec<Vec<(usize, String)>>,
    /// The environment for an original program's file.
    pub(crate) env: BTreeMap<String, String>,
}

/// The form of a configuration, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// TOML in the flow file.
    Toml,
    /// YAML in the flow file.
    Yaml,
    /// A native file beside the flow file.
    File(String),
    /// A StatsD config file of an original: beside the flow file, or in it.
    Statsd { file: Option<String>, compat: Option<Compat> },
    /// A relay.conf: beside the flow file, or in it.
    Relay { file: Option<String> },
}

/// The original program of a config file. Without it, the file's contents decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compat {
    Node,
    Perl,
}

/// The state of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Up,
    Down,
    Hang,
    /// The connection breaks after this many more bytes.
    Cut {
        after: u64,
    },
}

/// An expected arrival.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expected {
    Point { name: String, value: Figure, at: Option<At> },
    Line(Vec<u8>),
    Packet(Vec<u8>),
    Event(Vec<u8>),
    Contains(Vec<u8>),
    Member { path: String, value: String },
}

/// A number with its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Figure {
    /// `any`
    Any,
    Text(String),
}

/// Label of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Unix seconds.
    Second(u64),
    /// Milliseconds after the flow's start.
    After { ms: u64 },
}

/// The numbers of an account, by word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) exactly: bool,
    /// `None` is the word `some`: any number above 0.
    pub(crate) numbers: Vec<(String, Option<u64>)>,
}

/// An expected state of the shard's series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Held {
    One { kind: Kind, value: Figure },
    Number(u64),
}

/// A reload that must be rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: Option<String>,
}
