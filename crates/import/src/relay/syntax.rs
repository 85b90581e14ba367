//! Statements as written: the parser creates them and the check reads them. Names are not resolved here.

use process::aggregation_rules::{Compute, Stamp};
use process::relay::Distribution;

use super::document::{Compression, Lines, ListenTls, Proto, ServerTls, Span};

/// A name, expression, path or number as written, quotes resolved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    pub text: String,
    pub span: Span,
}

/// One statement with its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    pub kind: StatementKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum StatementKind {
    Cluster {
        name: Word,
        kind: ClusterSyntax,
    },
    Match(MatchSyntax),
    Rewrite {
        pattern: Word,
        into: Word,
    },
    Aggregate(AggregateSyntax),
    /// `statistics`, or `send statistics to`.
    Statistics(StatisticsSyntax),
    Listen {
        compression: Compression,
        tls: Option<ListenTls>,
        receptors: Vec<ReceptorSyntax>,
    },
    Include(Word),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ClusterSyntax {
    Servers {
        word: &'static str,
        distribution: Distribution,
        use_all: bool,
        replication: Option<Word>,
        dynamic: bool,
        hosts: Vec<HostSyntax>,
    },
    File {
        ip: bool,
        paths: Vec<Word>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct HostSyntax {
    pub address: Word,
    pub instance: Option<Word>,
    pub proto: Proto,
    pub lines: Lines,
    pub compression: Compression,
    pub tls: ServerTls,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct MatchSyntax {
    pub patterns: Vec<Word>,
    pub validate: Option<ValidateSyntax>,
    pub route_using: Option<Word>,
    pub send: Option<SendSyntax>,
    pub stop: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ValidateSyntax {
    pub pattern: Word,
    pub log: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum SendSyntax {
    Blackhole,
    Clusters(Vec<Word>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct AggregateSyntax {
    pub patterns: Vec<Word>,
    pub every: Word,
    pub expire: Word,
    pub timestamp: Stamp,
    pub computes: Vec<(String, Compute, Word)>,
    pub send: Option<SendSyntax>,
    pub stop: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StatisticsSyntax {
    pub every: Option<Word>,
    pub reset: bool,
    pub prefix: Option<Word>,
    pub send: Option<(SendSyntax, Span)>,
    pub stop: bool,
    /// The old form, `send statistics to`.
    pub old_form: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReceptorSyntax {
    pub address: Word,
    /// None for `proto unix`.
    pub proto: Option<Proto>,
}
