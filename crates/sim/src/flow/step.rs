//! A flow file as steps: what is asked, not yet done.

use std::collections::BTreeMap;

use model::Kind;

use crate::glob::Glob;

/// One step with its place.
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
    /// Its lines when it stands in the flow file, by the `config` that they belong to: (line from 1, text). Each
    /// text has the bytes of its line at the same columns.
    pub(crate) groups: Vec<Vec<(usize, String)>>,
    /// What an original's file sees as its environment.
    pub(crate) env: BTreeMap<String, String>,
}

/// How a configuration is written, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// TOML in the flow file.
    Toml,
    /// YAML in the flow file.
    Yaml,
    /// A native file beside the flow file.
    File(String),
    /// An original's file: beside the flow file, or in it.
    Statsd { file: Option<String>, compat: Option<Compat> },
    /// A relay.conf: beside the flow file, or in it.
    Relay { file: Option<String> },
}

/// Whose file an original's file is; when it is not said, the file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compat {
    Node,
    Perl,
}

/// What an endpoint is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Up,
    Down,
    Hang,
    /// The connection breaks after so many more bytes.
    Cut {
        after: u64,
    },
}

/// What should have arrived.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expected {
    Point { name: String, value: Figure, at: Option<At> },
    Line(Vec<u8>),
    Packet(Vec<u8>),
    Event(Vec<u8>),
    Contains(Vec<u8>),
    Member { path: String, value: String },
}

/// A number as it was written.
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

/// Numbers of an account by word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) exactly: bool,
    /// None stands for `some`: any number above 0.
    pub(crate) numbers: Vec<(String, Option<u64>)>,
}

/// What the shard should hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Held {
    One { kind: Kind, value: Figure },
    Number(u64),
}

/// A reload that must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: Option<String>,
}
