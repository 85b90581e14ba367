//! From a checked `[sources.NAME]` to its plan, and back.

use wire::graphite::input::Compatibility;
use wire::statsd::{Dialect, Options};

use super::fields::Fields;
use super::origins::{is_origin, not_an_origin};
use super::transport;
use super::value::Checked;
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::Section;
use crate::options::field::{Table, Words};
use crate::options::table::sources::{LISTENER, READING};
use crate::options::table::transport::SOURCE_TRANSPORT;
use crate::options::table::{opentsdb, riemann};
use crate::plan::{
    CarbonOwnPlan, Carries, Compression, GraphiteSource, Listen, OwnPlan, RelayOwnPlan, RiemannEncoding,
    RiemannSource, SourceKind, SourcePlan,
};

/// The plan of an empty section of a StatsD source.
pub fn default_plan(name: &str) -> SourcePlan {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 8125));
    SourcePlan {
        name: name.to_owned(),
        kind: SourceKind::Statsd(Options::of(Dialect::Union)),
        listen: vec![Listen::Udp(address), Listen::Tcp(address)],
        receive_buffer_bytes: 64 << 20,
        connections_max: model::limits::CONNECTIONS_MAX,
        connections_per_peer_max: None,
        idle_timeout_ms: 3_600_000,
        line_bytes_max: model::limits::LINE_BYTES_MAX,
        tail_counts: true,
        ack_when: None,
        compression: Compression::Plain,
        tls: None,
    }
}

/// The plan of an empty section of a source of points.
pub fn graphite_plan(name: &str, compatibility: Compatibility) -> SourcePlan {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 2003));
    SourcePlan {
        kind: SourceKind::Graphite(GraphiteSource::of(compatibility)),
        listen: vec![Listen::Udp(address), Listen::Tcp(address)],
        tail_counts: false,
        ..default_plan(name)
    }
}

/// The plan of an empty section of self-metrics.
pub fn own_plan(name: &str) -> SourcePlan {
    let RelayOwnPlan { every_ms, prefix, .. } = RelayOwnPlan::empty(None);
    let kind = SourceKind::Own(OwnPlan { every_ms, prefix });
    SourcePlan { kind, listen: Vec::new(), ..default_plan(name) }
}

/// A type of source: its default for an empty section, and the reader of its own options. [`fields`] prints them.
struct SourceType {
    section: Section,
    empty: fn(&str) -> SourcePlan,
    /// Reads the options that are not about listening; the positions are those of its listeners.
    read: fn(&Fields, &mut SourcePlan, &[Place], &mut Vec<Diagnostic>),
}

/// All types.
const TYPES: &[SourceType] = &[
    SourceType {
        section: Section::SourceStatsd,
        empty: default_plan,
        read: |fields, plan, _, wrong| plan.kind = SourceKind::Statsd(options(fields, wrong)),
    },
    SourceType {
        section: Section::SourceGraphite,
        empty: |name| graphite_plan(name, Compatibility::Strict),
        read: |fields, plan, places, wrong| {
            let source = graphite(fields, wrong);
            transport::check_listener(plan.tls.as_deref(), fields, wrong);
            let carried = (&source, plan.compression, fields.place_of("tls").is_some());
            unfit_listeners(carried, &plan.listen, places, wrong);
            if source.carries == Carries::Http {
                no_transport_of_http(fields, wrong);
            }
            plan.kind = SourceKind::Graphite(source);
        },
    },
    SourceType {
        section: Section::SourceOpenTsdb,
        empty: |name| SourcePlan {
            kind: SourceKind::OpenTsdb,
            listen: vec![Listen::Tcp(std::net::SocketAddr::from(([127, 0, 0, 1], 4242)))],
            tail_counts: false,
            ..default_plan(name)
        },
        read: |fields, plan, places, wrong| {
            fields.fill(plan, &opentsdb::LISTENER);
            let why = "OpenTSDB's lines come on streams: write `tcp://` or `unix://`";
            let is_unfit =
                |listen: &Listen| listen.is_datagram() || matches!(listen, Listen::UnixFrames { .. });
            for (_, place) in plan.listen.iter().zip(places).filter(|(listen, _)| is_unfit(listen)) {
                wrong.push(unfit_listener("points", *place, why));
            }
        },
    },
    SourceType {
        section: Section::SourceRiemann,
        empty: |name| {
            let address = std::net::SocketAddr::from(([127, 0, 0, 1], 5555));
            SourcePlan {
                kind: SourceKind::Riemann(RiemannSource::default()),
                listen: vec![Listen::Tcp(address), Listen::Udp(address)],
                tail_counts: false,
                ..default_plan(name)
            }
        },
        read: |fields, plan, places, wrong| {
            let source = riemann(fields, wrong);
            transport::check_listener(plan.tls.as_deref(), fields, wrong);
            let is_encrypted = fields.place_of("tls").is_some();
            let (is_http, is_opentsdb) = match source.encoding {
                RiemannEncoding::Http => (true, false),
                RiemannEncoding::Opentsdb => (false, true),
                RiemannEncoding::Messages | RiemannEncoding::Graphite => (false, false),
            };
            if is_http {
                no_transport_of_http(fields, wrong);
            }
            plan.kind = SourceKind::Riemann(source);
            for (listen, place) in plan.listen.iter().zip(places) {
                let why = match listen {
                    Listen::UnixFrames { .. } => "these frames are DogStatsD's: write `unix://`",
                    _ if listen.is_datagram() && is_http => {
                        "HTTP comes on streams: write `tcp://` or `unix://`"
                    }
                    _ if listen.is_datagram() && is_opentsdb => {
                        "OpenTSDB's lines come on streams: write `tcp://` or `unix://`"
                    }
                    _ if listen.is_datagram() && is_encrypted => ONLY_STREAMS_ENCRYPTED,
                    _ => continue,
                };
                wrong.push(unfit_listener("events", *place, why));
            }
        },
    },
    SourceType {
        section: Section::SourceSelf,
        empty: own_plan,
        read: |fields, plan, _, wrong| plan.kind = own(fields, wrong),
    },
];

/// A source of Riemann's events with default options.
pub fn riemann_plan(name: &str) -> SourcePlan {
    (type_of(Section::SourceRiemann).empty)(name)
}

fn type_of(section: Section) -> &'static SourceType {
    TYPES.iter().find(|one| one.section == section).expect("a test looks for each section of a source")
}

/// The plan, and the place of each of its listeners.
pub(super) fn build(name: &str, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> (SourcePlan, Vec<Place>) {
    let of = type_of(fields.section);
    let mut plan = (of.empty)(name);
    let mut places = vec![fields.place; plan.listen.len()];
    let listens = fields.section.row("listen").is_some();
    if listens && fields.place_of("listen").is_some() {
        // After an error there are none: the default would cause further errors about addresses.
        let listen = match fields.other("listen") {
            Some(Checked::Listen(listen)) => &listen[..],
            _ => &[],
        };
        plan.listen = listen.iter().map(|(listen, _)| listen.clone()).collect();
        places = listen.iter().map(|(_, place)| *place).collect();
    }
    fields.fill(&mut plan, &LISTENER);
    fields.fill(&mut plan, &SOURCE_TRANSPORT);
    if listens {
        fields.peer_has_no_more(plan.connections_max, "max_connections", wrong);
    }
    (of.read)(fields, &mut plan, &places, wrong);
    (plan, places)
}

fn graphite(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> GraphiteSource {
    let source: GraphiteSource = fields.read();
    if fields
        .value("name_characters")
        .is_some_and(|text: String| !text.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        let message = "`name_characters` has characters that names must not contain";
        let label = "printable ASCII only, and no space";
        fields.wrong("name_characters", Code::BadValue, message, label, wrong);
    }
    let relay = source.reading.compatibility == Compatibility::CRelay;
    let idle_options = [
        ("name_characters", relay, "only `compatibility = \"c-relay\"` changes names"),
        ("names", !relay, "`c-relay` has `name_characters`"),
        ("missing_timestamp", !relay, "`c-relay` does not check the time"),
        ("max_message_bytes", source.carries != Carries::Lines, "its connections carry lines"),
        ("max_line_bytes", !matches!(source.carries, Carries::Messages(_)), "its connections carry messages"),
    ];
    for (key, watched, why) in idle_options {
        if !watched {
            fields.ignored(key, format!("`{key}` has no effect: {why}"), wrong);
        }
    }
    source
}

fn riemann(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> RiemannSource {
    let mut source: RiemannSource = fields.read();
    if source.encoding != RiemannEncoding::Http {
        let message = "`allowed_origins` has no effect without `encoding = \"http\"`";
        fields.ignored("allowed_origins", message.to_owned(), wrong);
    }
    if source.encoding != RiemannEncoding::Graphite {
        fields.ignored("tags", "`tags` has no effect without `encoding = \"graphite\"`".to_owned(), wrong);
    }
    let origins = fields.texts("allowed_origins");
    for (origin, place) in origins.iter().filter(|(origin, _)| *origin != "*" && !is_origin(origin)) {
        wrong.push(not_an_origin(origin, *place));
    }
    source.allowed_origins = origins.iter().map(|(origin, _)| origin.to_ascii_lowercase()).collect();
    source
}

/// Options of connections that HTTP does not have.
fn no_transport_of_http(fields: &Fields, wrong: &mut Vec<Diagnostic>) {
    for (key, label) in [
        ("tls", "not encrypted here: put a proxy in front that ends TLS"),
        ("transport", "bodies are not compressed"),
    ] {
        if fields.place_of(key).is_none() {
            continue;
        }
        let message = format!("`{key}` has no meaning with `encoding = \"http\"`");
        fields.wrong(key, Code::BadValue, message, label, wrong);
    }
}

/// Listeners that cannot receive the source's data.
fn unfit_listeners(
    (source, compression, encrypted): (&GraphiteSource, Compression, bool),
    listen: &[Listen],
    places: &[Place],
    wrong: &mut Vec<Diagnostic>,
) {
    for (listen, place) in listen.iter().zip(places) {
        let why = match listen {
            Listen::UnixFrames { .. } => "these frames are DogStatsD's: write `unix://`",
            _ if listen.is_datagram() && source.carries != Carries::Lines => {
                "messages and HTTP come on streams: write `tcp://` or `unix://`"
            }
            _ if listen.is_datagram() && compression != Compression::Plain => {
                "only streams are compressed (`transport`): write `tcp://` or `unix://`"
            }
            _ if listen.is_datagram() && encrypted => ONLY_STREAMS_ENCRYPTED,
            _ => continue,
        };
        wrong.push(unfit_listener("points", *place, why));
    }
}

const ONLY_STREAMS_ENCRYPTED: &str = "only streams are encrypted (`tls`): write `tcp://` or `unix://`";

fn unfit_listener(records: &str, place: Place, why: &str) -> Diagnostic {
    let message = format!("a source of {records} cannot use this listener");
    Diagnostic::error(Code::BadValue, message).at(place).label(why)
}

fn own(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> SourceKind {
    let own: RelayOwnPlan = fields.read();
    let carbon: CarbonOwnPlan = fields.read();
    let (of_relays, of_carbon) = match fields.word("encoding") {
        Some("carbon-c-relay") => (true, false),
        Some("carbon") => (false, true),
        _ => (false, false),
    };
    let gives_points = of_relays || of_carbon;
    let fits = |byte: u8| match gives_points {
        true => byte.is_ascii_graphic(),
        false => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
    };
    if !own.prefix.bytes().all(fits) {
        let label = match gives_points {
            true => "printable ASCII only, and no space",
            false => "letters, digits, `_`, `-` and `.` only",
        };
        fields.wrong("prefix", Code::BadValue, "`prefix` cannot begin a name", label, wrong);
    }
    if !of_carbon {
        fields.ignored(
            "program",
            "`program` has no effect without `encoding = \"carbon\"`".to_owned(),
            wrong,
        );
    }
    if of_relays {
        return SourceKind::RelayOwn(own);
    }
    for key in ["reset", "report"] {
        let message = format!("`{key}` has no effect without `encoding = \"carbon-c-relay\"`");
        fields.ignored(key, message, wrong);
    }
    let RelayOwnPlan { every_ms, prefix, .. } = own;
    if of_carbon {
        return SourceKind::CarbonOwn(CarbonOwnPlan { every_ms, prefix, ..carbon });
    }
    SourceKind::Own(OwnPlan { every_ms, prefix })
}

fn options(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Options {
    let options: Options = fields.read();
    let dialect = options.dialect;
    let union = dialect == Dialect::Union;
    let idle_options = [
        ("gauge_sign", union),
        ("allow_negative_timers", union),
        ("sanitize", dialect != Dialect::Dogstatsd),
        ("compat_quirks", dialect == Dialect::Etsy || !options.compat_quirks),
    ];
    for (key, watched) in idle_options {
        if !watched {
            let word = Dialect::word(&dialect).unwrap_or_default();
            fields.ignored(key, format!("`{key}` has no effect in the dialect `{word}`"), wrong);
        }
    }
    options
}

/// The section of a source.
pub(super) fn fields(source: &SourcePlan) -> Fields {
    let section = source.kind.facts().node.section;
    let default = (type_of(section).empty)("");
    let mut fields = Fields::node(section, std::iter::empty());
    let listen = source.listen.iter().map(|listen| (listen.clone(), Place::new(0, 0)));
    fields.give_value("listen", Checked::Listen(listen.collect()));
    fields.give(&LISTENER, source, &default);
    fields.give(&opentsdb::LISTENER, source, &default);
    fields.give(&riemann::LISTENER, source, &default);
    fields.give(&SOURCE_TRANSPORT, source, &default);
    match &source.kind {
        SourceKind::Statsd(options) => {
            fields.give_table(options);
        }
        SourceKind::Graphite(points) => {
            fields.give_table(points);
        }
        SourceKind::OpenTsdb => {}
        SourceKind::Riemann(messages) => {
            fields.give_table(messages);
        }
        SourceKind::Own(OwnPlan { every_ms, prefix }) => {
            let own =
                RelayOwnPlan { every_ms: *every_ms, prefix: prefix.clone(), ..RelayOwnPlan::empty(None) };
            fields.give_table(&own);
        }
        SourceKind::CarbonOwn(own) => {
            fields.give_value("encoding", Checked::Word("carbon"));
            let (every_ms, prefix) = (own.every_ms, own.prefix.clone());
            fields.give_table(&RelayOwnPlan { every_ms, prefix, ..RelayOwnPlan::empty(None) });
            fields.give_table(own);
        }
        SourceKind::RelayOwn(own) => {
            fields.give_value("encoding", Checked::Word("carbon-c-relay"));
            fields.give_table(own);
        }
    }
    fields
}

/// The first option in which two sources parse differently, except for values derived from the rest of the plan.
pub(super) fn difference(one: &Options, other: &Options) -> Option<&'static str> {
    let mut options = READING.fields.iter();
    options.find(|option| (option.get)(one) != (option.get)(other)).map(|option| option.key)
}

#[test]
fn each_type_of_source_is_read() {
    for (word, section) in crate::options::Family::Sources.types() {
        assert_eq!(TYPES.iter().filter(|one| one.section == section).count(), 1, "{word}");
        assert_eq!((type_of(section).empty)("s").kind.facts().node.section, section, "{word}");
    }
}
