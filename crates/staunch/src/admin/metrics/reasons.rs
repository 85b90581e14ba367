//! Which reasons a node can count: their series are there from the start, at 0, so that `increase()` sees the first loss.
//!
//! Path: the plan -> **[`of_source`], [`of_edge`], [`of_output`]** -> rows of `super`, with what was counted put over the zeros.
//! Each reason is decided by a match without `_`, so that a new one does not compile until it is decided here.
//! A reason that was counted has its row in any case: a gap in this table hides no loss.
//! Not here: what was counted (`accounts`), bytes of losses, whose series begin with the first loss (docs/metrics.md).

use std::collections::HashMap;

use config::kinds::RecordKind;
use config::plan::{
    Carries, Destination, Feed, HttpEncoding, LinesPlan, Link, Listen, OutputKind, OutputPlan, Plan,
    RiemannEncoding, SourceKind, SourcePlan, TransformPlan, Written,
};
use foldhash::fast::FixedState;
use model::{Dropped, Filtered, Internal, Reject, RejectedByPeer};
use wire::compression::Compression;
use wire::statsd::Dialect;

use crate::admin::accounts::LossTable;

/// The nodes of a plan by their names. Of several outputs of one name the last one is in force.
pub(super) struct Nodes<'a> {
    plan: &'a Plan,
    sources: HashMap<&'a str, &'a SourcePlan, FixedState>,
    transforms: HashMap<&'a str, &'a TransformPlan, FixedState>,
    outputs: HashMap<&'a str, &'a OutputPlan, FixedState>,
    /// Members of clusters whose endpoints are shared out by key.
    shared_out: HashMap<&'a str, (), FixedState>,
}

impl<'a> Nodes<'a> {
    pub(super) fn of(plan: &'a Plan) -> Nodes<'a> {
        let members = plan.clusters.iter().flat_map(|cluster| &cluster.members);
        let members = members.filter_map(|id| plan.outputs.get(id.index()));
        Nodes {
            plan,
            sources: plan.sources.iter().map(|source| (source.name.as_str(), source)).collect(),
            transforms: plan
                .transforms
                .iter()
                .map(|transform| (transform.name.as_str(), transform))
                .collect(),
            outputs: plan.outputs.iter().map(|output| (output.name.as_str(), output)).collect(),
            shared_out: members.map(|output| (output.name.as_str(), ())).collect(),
        }
    }

    /// What a source counted, over the zeros of what it can count.
    pub(super) fn of_source(&self, name: &str, counted: &LossTable) -> LossTable {
        let zeros = self.sources.get(name).map(|source| of_source(self.plan, source));
        over(zeros.unwrap_or_default(), counted)
    }

    /// What an edge into a transform counted, over the zeros of what it can count.
    pub(super) fn of_edge(&self, transform: &str, from: &str, counted: &LossTable) -> LossTable {
        let zeros = self.transforms.get(transform).map(|transform| {
            let is_result =
                self.transforms.get(from).is_some_and(|from| from.kind.facts().gives_aggregates());
            of_edge(transform, is_result)
        });
        over(zeros.unwrap_or_default(), counted)
    }

    /// What an output counted, over the zeros of what it can count. One that a reload removed has only what it counted.
    pub(super) fn of_output(&self, name: &str, counted: &LossTable) -> LossTable {
        let in_force = self.outputs.get(name).filter(|output| !output.from.is_empty());
        let zeros = in_force.map(|output| of_output(output, self.shared_out.contains_key(name)));
        over(zeros.unwrap_or_default(), counted)
    }
}

fn over(mut zeros: LossTable, counted: &LossTable) -> LossTable {
    for (family, reasons) in counted {
        zeros.entry(family).or_default().extend(reasons);
    }
    zeros
}

fn zero(table: &mut LossTable, family: &'static str, words: impl Iterator<Item = &'static str>) {
    let mut words = words.peekable();
    if words.peek().is_some() {
        table.entry(family).or_default().extend(words.map(|word| (word, 0)));
    }
}

/// What matters of a source: how it reads, and what its records are for.
struct Reading {
    statsd: Option<Dialect>,
    graphite: bool,
    /// Graphite's, or another protocol of points.
    points: bool,
    messages: bool,
    /// Events of Riemann, and how they come.
    riemann: Option<RiemannEncoding>,
    streams: bool,
    frames: bool,
    unix_datagrams: bool,
    /// Readers have threads of their own for its datagrams. How many there are by default depends on the machine.
    crosses_threads: bool,
    compressed: bool,
}

fn reading(plan: &Plan, source: &SourcePlan) -> Reading {
    let id = plan.sources.iter().position(|other| std::ptr::eq(other, source));
    let feeds =
        |from: &[Feed]| from.iter().any(|feed| matches!(feed, Feed::Source(of) if Some(of.index()) == id));
    let of_events = |output: &OutputPlan| output.kind.takes().contains(&RecordKind::Events);
    let listens = |is: fn(&Listen) -> bool| source.listen.iter().any(is);
    let aggregated = plan.transforms.iter().any(|transform| feeds(&transform.from));
    let events = plan.outputs.iter().any(|output| of_events(output) && feeds(&output.from));
    let (statsd, graphite) = match &source.kind {
        // Packets that are only copied are not parsed.
        SourceKind::Statsd(options) => ((aggregated || events).then_some(options.dialect), None),
        SourceKind::Graphite(graphite) => (None, Some(graphite)),
        SourceKind::OpenTsdb
        | SourceKind::Riemann(_)
        | SourceKind::Own(_)
        | SourceKind::RelayOwn(_)
        | SourceKind::CarbonOwn(_) => (None, None),
    };
    Reading {
        statsd,
        graphite: graphite.is_some(),
        points: source.kind.gives_points() && !source.kind.is_own(),
        messages: graphite.is_some_and(|graphite| graphite.carries != Carries::Lines),
        riemann: match &source.kind {
            SourceKind::Riemann(riemann) => Some(riemann.encoding),
            SourceKind::Statsd(_)
            | SourceKind::Graphite(_)
            | SourceKind::OpenTsdb
            | SourceKind::Own(_)
            | SourceKind::RelayOwn(_)
            | SourceKind::CarbonOwn(_) => None,
        },
        streams: listens(|listen| !listen.is_datagram()),
        frames: listens(|listen| matches!(listen, Listen::UnixFrames { .. })),
        unix_datagrams: listens(|listen| matches!(listen, Listen::UnixDatagram { .. })),
        crosses_threads: plan.readers != Some(1) && listens(Listen::is_datagram),
        compressed: source.compression != Compression::Plain,
    }
}

/// Zeros of a source: its own, and those of what it feeds, since its receipts end as theirs do.
fn of_source(plan: &Plan, source: &SourcePlan) -> LossTable {
    let reading = reading(plan, source);
    let mut table = LossTable::new();
    let rejects = Reject::ALL.iter().filter(|reason| rejects(**reason, &reading));
    zero(&mut table, "rejected", rejects.map(|reason| reason.word()));
    let dropped = Dropped::ALL.iter().filter(|reason| match reason {
        Dropped::Stopped => true,
        Dropped::ExchangeFull => reading.crosses_threads,
        // Of transforms and outputs.
        Dropped::SeriesMax
        | Dropped::TimerValuesMax
        | Dropped::QueueFull
        | Dropped::TooOld
        | Dropped::NoEndpoint
        | Dropped::TooBig
        | Dropped::NonFinitePoint
        | Dropped::Damaged
        | Dropped::DiskFailed
        | Dropped::ByOperator
        | Dropped::UnsafeName
        | Dropped::Late
        | Dropped::Early
        | Dropped::NotANumber
        | Dropped::AggregationRuleFull
        | Dropped::AggregateFull
        | Dropped::InFuture
        | Dropped::BeforeRetention
        | Dropped::NamesFull
        | Dropped::UnusableFile
        | Dropped::SeriesDeleted
        | Dropped::TooManyCopies
        | Dropped::TooManyRecipients
        | Dropped::Deleted => false,
    });
    zero(&mut table, "dropped", dropped.map(|reason| reason.word()));
    zero(&mut table, "internal", std::iter::once(Internal::ReceiptDropped.word()));
    let id = plan.sources.iter().position(|other| std::ptr::eq(other, source));
    let fed = plan.transforms.iter().filter(|transform| transform.sources().any(|of| Some(of.index()) == id));
    for transform in fed {
        for (family, reasons) in of_edge(transform, false) {
            table.entry(family).or_default().extend(reasons);
        }
    }
    table
}

/// Whether a source that reads like this can reject a line for a reason. `invalid` is a relay's.
fn rejects(reason: Reject, of: &Reading) -> bool {
    let extended = matches!(of.statsd, Some(Dialect::Dogstatsd | Dialect::Union));
    let event_lines = matches!(of.riemann, Some(RiemannEncoding::Graphite | RiemannEncoding::Opentsdb));
    match reason {
        Reject::NoName | Reject::BadValue => of.statsd.is_some() || of.points || event_lines,
        Reject::NonFinite => of.statsd.is_some() || of.points,
        Reject::NoType | Reject::BadRate => of.statsd.is_some(),
        // Node takes any type.
        Reject::BadType => of.statsd.is_some_and(|dialect| dialect != Dialect::Etsy),
        Reject::NegativeTimer => of.statsd.is_some_and(|dialect| dialect != Dialect::Perl),
        Reject::KeyTooLong => of.statsd.is_some_and(|dialect| dialect != Dialect::Etsy),
        Reject::TooManyTags => {
            of.riemann.is_some() || of.statsd.is_some_and(|dialect| dialect != Dialect::Etsy)
        }
        Reject::MessageTooBig => of.riemann.is_some(),
        Reject::BadEvent | Reject::BadCheck | Reject::TimestampUnsupported => extended,
        Reject::BadTimestamp => extended || of.points || event_lines,
        Reject::EmptyLine => of.statsd == Some(Dialect::Perl),
        Reject::TooManyFields => of.graphite || of.riemann == Some(RiemannEncoding::Graphite),
        Reject::BadTag | Reject::NoValue | Reject::NoTimestamp => of.points || event_lines,
        Reject::BadName | Reject::NameTooLong | Reject::NotUtf8 => of.points,
        Reject::BadMessage => of.messages || (of.riemann.is_some() && !event_lines),
        Reject::BadElement => of.messages,
        Reject::LineTooLong => of.streams && of.riemann != Some(RiemannEncoding::Messages),
        Reject::HttpRequest | Reject::TlsHandshake => of.streams && (of.riemann.is_none() || event_lines),
        Reject::TailLost | Reject::UnfinishedFull => of.streams,
        Reject::BadFrame => {
            of.frames || of.messages || (of.riemann == Some(RiemannEncoding::Messages) && of.streams)
        }
        Reject::PacketTruncated => of.unix_datagrams,
        Reject::BadCompression => of.compressed,
        Reject::Invalid => false,
    }
}

/// Zeros of an edge; `is_result`: results of an aggregation come on it.
fn of_edge(transform: &TransformPlan, is_result: bool) -> LossTable {
    let mut table = LossTable::new();
    let rejects = Reject::ALL.iter().filter(|reason| transform.kind.rejects(**reason));
    zero(&mut table, "rejected", rejects.map(|reason| reason.word()));
    let dropped = Dropped::ALL.iter().filter(|reason| match reason {
        Dropped::SeriesMax | Dropped::TimerValuesMax | Dropped::AggregateFull => {
            transform.kind.drops(**reason)
        }
        Dropped::Late | Dropped::Early | Dropped::AggregationRuleFull => transform.kind.drops(**reason),
        Dropped::NonFinitePoint | Dropped::UnsafeName => is_result,
        Dropped::Stopped | Dropped::TooManyCopies => transform.kind.drops(**reason),
        Dropped::ExchangeFull | Dropped::QueueFull | Dropped::TooOld => false,
        Dropped::NoEndpoint | Dropped::TooBig | Dropped::Damaged | Dropped::DiskFailed => false,
        Dropped::ByOperator | Dropped::NotANumber | Dropped::Deleted | Dropped::TooManyRecipients => false,
        Dropped::InFuture | Dropped::BeforeRetention | Dropped::NamesFull => false,
        Dropped::UnusableFile | Dropped::SeriesDeleted => false,
    });
    zero(&mut table, "dropped", dropped.map(|reason| reason.word()));
    table
}

/// Zeros of an output; `is_shared_out`: it is a member of a cluster that shares packets out by key.
fn of_output(output: &OutputPlan, is_shared_out: bool) -> LossTable {
    let mut table = LossTable::new();
    let dropped = Dropped::ALL.iter().filter(|reason| drops(**reason, output, is_shared_out));
    zero(&mut table, "dropped", dropped.map(|reason| reason.word()));
    let link = output.kind.facts().link;
    let datagrams = matches!(link, Link::Datagrams { .. });
    let udp = matches!(link, Link::Datagrams { to: Destination::Udp(_), .. });
    let requests = matches!(link, Link::Requests { .. });
    let rejected = RejectedByPeer::ALL.iter().filter(|reason| match reason {
        // Of unix datagrams, an endpoint that is away is no rejection: the copy stays queued.
        RejectedByPeer::ByPeer => udp || requests,
        RejectedByPeer::SendError => datagrams,
    });
    zero(&mut table, "rejected_by_peer", rejected.map(|reason| reason.word()));
    let leaves_out = match &output.kind {
        OutputKind::Http(http) => http.encoding == HttpEncoding::InfluxDb,
        OutputKind::Email(email) => email.to.is_empty(),
        OutputKind::Graphite { .. }
        | OutputKind::GraphiteDatagrams { .. }
        | OutputKind::GraphiteFile { .. }
        | OutputKind::Whisper(_)
        | OutputKind::OpenTsdb { .. }
        | OutputKind::Console { .. }
        | OutputKind::PerlFile { .. }
        | OutputKind::Packets(_)
        | OutputKind::Riemann(_)
        | OutputKind::EventFile { .. } => false,
    };
    if leaves_out {
        zero(&mut table, "filtered", [Filtered::Unwanted.word()].into_iter());
    }
    let Some(lines) = lines_of(output) else { return table };
    let filtered = Filtered::ALL.iter().filter(|reason| match reason {
        Filtered::ByName => !lines.stage.allow.is_empty() || !lines.stage.deny.is_empty(),
        Filtered::SampledOut => lines.stage.sample < 1.0 || !lines.stage.sample_names.is_empty(),
        Filtered::BadLine | Filtered::Unwanted => true,
    });
    zero(&mut table, "filtered", filtered.map(|reason| reason.word()));
    table
}

/// How an output changes and filters lines, if it does.
fn lines_of(output: &OutputPlan) -> Option<&LinesPlan> {
    if let OutputKind::Packets(packets) = &output.kind { packets.lines.as_deref() } else { None }
}

fn drops(reason: Dropped, output: &OutputPlan, is_shared_out: bool) -> bool {
    let on_disk = output.queue_kind.is_disk();
    let takes_results = output.kind.takes().contains(&RecordKind::Aggregates);
    // These write numbers, and not the text that came.
    let pickle = output.kind.facts().written == Written::Pickle;
    let stores = matches!(output.kind.facts().link, Link::Store(_));
    let numbers = pickle || stores || matches!(output.kind, OutputKind::OpenTsdb { .. });
    let target = if let OutputKind::Http(http) = &output.kind { http.target().ok() } else { None };
    // Events choose parts of its URL.
    let has_targets = target.is_some_and(|target| !target.is_fixed());
    let caps_series = lines_of(output).is_some_and(|lines| lines.stage.series_max > 0);
    match reason {
        Dropped::QueueFull | Dropped::TooBig | Dropped::Stopped | Dropped::ByOperator => true,
        Dropped::TooOld => output.queue.age_max_ms > 0,
        Dropped::NoEndpoint => is_shared_out,
        Dropped::NonFinitePoint => takes_results,
        Dropped::UnsafeName => takes_results || pickle || stores || has_targets,
        Dropped::NotANumber => numbers,
        Dropped::Damaged | Dropped::Deleted | Dropped::DiskFailed => on_disk,
        Dropped::TooManyRecipients => matches!(&output.kind, OutputKind::Email(plan) if plan.from_event),
        Dropped::SeriesMax => caps_series || stores,
        Dropped::InFuture | Dropped::BeforeRetention | Dropped::NamesFull => stores,
        Dropped::UnusableFile | Dropped::SeriesDeleted => stores,
        Dropped::TimerValuesMax | Dropped::ExchangeFull | Dropped::Late => false,
        Dropped::Early | Dropped::AggregationRuleFull | Dropped::AggregateFull => false,
        Dropped::TooManyCopies => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use config::{Format, check, diagnostic::Source};

    use super::*;

    fn plan(text: &str) -> Plan {
        let (plan, diagnostics) = check(Source { name: "test", text }, Format::Toml);
        plan.unwrap_or_else(|| panic!("{diagnostics:?}"))
    }

    fn words(table: &LossTable) -> BTreeSet<String> {
        let words = table
            .iter()
            .flat_map(|(family, reasons)| reasons.keys().map(move |word| format!("{family}.{word}")));
        words.collect()
    }

    const EVERYTHING: &str = r#"
        [sources.app]
        type = "statsd"
        dialect = "union"
        listen = ["udp://127.0.0.1:0", "tcp://127.0.0.1:0", "unixgram:///tmp/a", "unix-frames:///tmp/b"]
        [sources.perl]
        type = "statsd"
        dialect = "perl"
        listen = ["udp://127.0.0.1:0"]
        [sources.lines]
        type = "graphite"
        listen = ["tcp://127.0.0.1:0"]
        transport = "gzip"
        [sources.pickle]
        type = "graphite"
        encoding = "pickle"
        listen = ["tcp://127.0.0.1:0"]
        [transforms.stats]
        type = "aggregate"
        from = ["app"]
        [transforms.of_perl]
        type = "aggregate"
        from = ["perl"]
        [sources.riemann]
        type = "riemann"
        [transforms.relay]
        type = "relay"
        from = ["lines", "pickle", "stats"]
        [transforms.relay.clusters]
        c = { type = "forward", to = ["carbon"] }
        [[transforms.relay.rules]]
        match = ["a"]
        validate = "^1"
        to = ["c"]
        [[transforms.relay.rules]]
        match = ["b"]
        every = "10s"
        expire = "20s"
        compute = { sum = "b.sum" }
        to = ["c"]
        [outputs.carbon]
        type = "graphite"
        from = ["relay"]
        to = ["tcp://127.0.0.1:1"]
        encoding = "pickle"
        queue = { kind = "disk", max_age = "1h" }
        [outputs.udp]
        type = "udp"
        from = ["app"]
        to = ["udp://127.0.0.1:1"]
        allow = ["a*"]
        sample = 0.5
        max_series = 10
        [outputs.ring]
        type = "udp"
        from = ["app"]
        to = ["udp://127.0.0.1:2", "udp://127.0.0.1:3"]
        sharding = "statsd-node"
        [outputs.file]
        type = "graphite_file"
        from = ["stats"]
        [outputs.events]
        type = "event_file"
        from = ["app", "riemann"]
        [outputs.store]
        type = "whisper"
        from = ["relay"]
        [outputs.mail]
        type = "email"
        from = ["riemann"]
        smtp = "smtp://127.0.0.1"
        from_event = true
    "#;

    fn all(plan: &Plan) -> BTreeSet<String> {
        let nodes = Nodes::of(plan);
        let nothing = LossTable::new();
        let mut all = BTreeSet::new();
        plan.sources.iter().for_each(|source| all.extend(words(&nodes.of_source(&source.name, &nothing))));
        for transform in &plan.transforms {
            for from in &transform.from {
                all.extend(words(&nodes.of_edge(&transform.name, plan.name_of(*from), &nothing)));
            }
        }
        plan.outputs.iter().for_each(|output| all.extend(words(&nodes.of_output(&output.name, &nothing))));
        all
    }

    #[test]
    fn every_reason_that_occurs_is_a_zero_of_some_node() {
        let all = all(&plan(EVERYTHING));
        let reasons = Reject::ALL.iter().map(|reason| ("rejected", reason.word()));
        let reasons = reasons.chain(Dropped::ALL.iter().map(|reason| ("dropped", reason.word())));
        let reasons =
            reasons.chain(RejectedByPeer::ALL.iter().map(|reason| ("rejected_by_peer", reason.word())));
        let reasons = reasons.chain(Filtered::ALL.iter().map(|reason| ("filtered", reason.word())));
        let reasons = reasons.chain(Internal::ALL.iter().map(|reason| ("internal", reason.word())));
        let missing: Vec<String> = reasons
            .map(|(family, word)| format!("{family}.{word}"))
            .filter(|word| !all.contains(word))
            .collect();
        // `explain` says that it is always 0.
        assert_eq!(missing, ["internal.shard_gone"]);
    }

    #[test]
    fn a_node_has_no_reason_that_its_kind_cannot_count() {
        let plan = plan(EVERYTHING);
        let nodes = Nodes::of(&plan);
        let nothing = LossTable::new();
        let source = words(&nodes.of_source("perl", &nothing));
        for (word, there) in [
            ("rejected.empty_line", true),
            ("rejected.no_type", true),
            ("dropped.series_max", true),
            ("rejected.no_timestamp", false),
            ("rejected.line_too_long", false),
            ("rejected.bad_compression", false),
            ("dropped.queue_full", false),
            ("dropped.late", false),
        ] {
            assert_eq!(source.contains(word), there, "{word}");
        }
        let source = words(&nodes.of_source("riemann", &nothing));
        for (word, there) in [
            ("rejected.bad_message", true),
            ("rejected.bad_frame", true),
            ("rejected.message_too_big", true),
            ("rejected.too_many_tags", true),
            ("rejected.tail_lost", true),
            ("rejected.bad_element", false),
            ("rejected.line_too_long", false),
            ("rejected.http_request", false),
            ("rejected.bad_value", false),
        ] {
            assert_eq!(source.contains(word), there, "{word} of a source of events");
        }
        let output = words(&nodes.of_output("file", &nothing));
        for (word, there) in [
            ("dropped.queue_full", true),
            ("dropped.non_finite_point", true),
            ("dropped.damaged", false),
            ("dropped.too_old", false),
            ("rejected_by_peer.by_peer", false),
            ("filtered.by_name", false),
        ] {
            assert_eq!(output.contains(word), there, "{word}");
        }
        assert!(!words(&nodes.of_output("udp", &nothing)).contains("dropped.no_endpoint"));
        let copied = self::plan(
            "readers = 1\n[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n[outputs.o]\ntype = \"udp\"\nfrom = \
             [\"app\"]\nto = [\"udp://127.0.0.1:1\"]\n",
        );
        let copied = words(&Nodes::of(&copied).of_source("app", &nothing));
        assert_eq!(copied, ["dropped.stopped", "internal.receipt_dropped"].map(str::to_owned).into());
    }

    #[test]
    fn only_targets_that_events_choose_can_be_unsafe() {
        for (path, there) in [("/in", false), ("/{{host}}/in", true), ("/in?h={{host}}", true)] {
            let text = format!(
                "[sources.r]\ntype = \"riemann\"\n[outputs.o]\ntype = \"http\"\nfrom = [\"r\"]\nurl = \"http://127.0.0.1:1{path}\"\n"
            );
            let output = words(&Nodes::of(&plan(&text)).of_output("o", &LossTable::new()));
            assert_eq!(output.contains("dropped.unsafe_name"), there, "{path}");
            assert!(output.contains("dropped.too_big"), "{path}");
        }
    }

    #[test]
    fn counts_replace_zeros_and_a_reason_outside_the_table_is_shown() {
        let plan = plan(EVERYTHING);
        let nodes = Nodes::of(&plan);
        let mut counted = LossTable::new();
        counted.entry("dropped").or_default().insert("queue_full", 7);
        counted.entry("internal").or_default().insert("shard_gone", 1);
        let shown = nodes.of_output("file", &counted);
        assert_eq!((shown["dropped"]["queue_full"], shown["dropped"]["stopped"]), (7, 0));
        assert_eq!(shown["internal"]["shard_gone"], 1);
        assert_eq!(nodes.of_output("gone", &counted), counted);
    }
}
