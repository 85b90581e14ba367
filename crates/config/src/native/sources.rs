//! A checked `[sources.NAME]` to its plan.

use model::AckWhen;
use wire::graphite::input::{Compatibility, Kept, MessageEncoding, NameForm};
use wire::statsd::{Dialect, GaugeSign, Options};

use super::fields::Fields;
use super::transport;
use super::value::Checked;
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::Section;
use crate::plan::{
    Compression, GraphiteSource, Listen, OwnPlan, RelayOwnPlan, RelayReport, SourceKind, SourcePlan,
};

/// A source as an empty section means it.
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

/// A source of points as an empty section means it.
pub fn graphite_plan(name: &str, compatibility: Compatibility) -> SourcePlan {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 2003));
    SourcePlan {
        kind: SourceKind::Graphite(GraphiteSource::of(compatibility)),
        listen: vec![Listen::Udp(address), Listen::Tcp(address)],
        tail_counts: false,
        ..default_plan(name)
    }
}

/// Self-metrics as an empty section means them.
pub fn own_plan(name: &str) -> SourcePlan {
    let own = OwnPlan { every_ms: 10_000, prefix: "staunch".into() };
    SourcePlan { kind: SourceKind::Own(own), listen: Vec::new(), ..default_plan(name) }
}

/// The plan, and the place of each of its listeners.
pub(super) fn build(
    name: &str,
    section: Section,
    fields: &Fields,
    wrong: &mut Vec<Diagnostic>,
) -> (SourcePlan, Vec<Place>) {
    if section == Section::SourceSelf {
        return (own(name, fields, wrong), Vec::new());
    }
    let points = section == Section::SourceGraphite;
    let mut plan = if points { graphite_plan(name, Compatibility::Strict) } else { default_plan(name) };
    let mut places = vec![fields.place; plan.listen.len()];
    if fields.place_of("listen").is_some() {
        // When it was wrong there are none: the default would give follow-up mistakes about addresses.
        let listen = match fields.other("listen") {
            Some(Checked::Listen(listen)) => &listen[..],
            _ => &[],
        };
        plan.listen = listen.iter().map(|(listen, _)| listen.clone()).collect();
        places = listen.iter().map(|(_, place)| *place).collect();
    }
    Fields::set(&mut plan.receive_buffer_bytes, fields.whole("receive_buffer"));
    Fields::set(&mut plan.connections_max, fields.whole_usize("max_connections"));
    plan.connections_per_peer_max = fields.whole_usize("max_connections_per_peer");
    fields.peer_has_no_more(plan.connections_max, "max_connections", wrong);
    Fields::set(&mut plan.idle_timeout_ms, fields.whole("idle_timeout"));
    Fields::set(&mut plan.line_bytes_max, fields.whole_usize("max_line_bytes"));
    Fields::set(&mut plan.tail_counts, fields.flag("tail_counts"));
    if points {
        let source = graphite(fields, wrong);
        plan.compression = transport::compression(fields);
        plan.tls = transport::listen(name, fields, wrong);
        let carried = (&source, plan.compression, fields.node("tls").is_some());
        unfit_listeners(carried, &plan.listen, &places, wrong);
        plan.kind = SourceKind::Graphite(source);
        return (plan, places);
    }
    let word = fields.word("ack_when");
    plan.ack_when = AckWhen::ALL.into_iter().find(|when| Some(when.word()) == word);
    plan.kind = SourceKind::Statsd(options(fields, wrong));
    (plan, places)
}

fn graphite(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> GraphiteSource {
    let word = fields.word("compatibility");
    let compatibility = Compatibility::ALL.into_iter().find(|known| Some(known.word()) == word);
    let compatibility = compatibility.unwrap_or(Compatibility::Strict);
    let mut source = GraphiteSource::of(compatibility);
    source.messages = match fields.word("encoding") {
        Some("pickle") => Some(MessageEncoding::Pickle),
        Some("protobuf") => Some(MessageEncoding::Protobuf),
        _ => None,
    };
    Fields::set(&mut source.message_bytes_max, fields.whole_usize("max_message_bytes"));
    source.reading.missing_time_is_now = fields.word("missing_timestamp") == Some("now");
    Fields::set(&mut source.reading.name_bytes_max, fields.whole_u32("max_name_bytes"));
    let names = fields.word("names");
    source.reading.names =
        NameForm::ALL.into_iter().find(|known| Some(known.word()) == names).unwrap_or_default();
    if let Some(text) = fields.text("name_characters") {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let place = fields.place_of("name_characters").unwrap_or(fields.place);
            let message = "`name_characters` has characters that names must not contain";
            let label = "printable ASCII only, and no blank";
            wrong.push(Diagnostic::error(Code::BadValue, message).at(place).label(label));
        }
        source.reading.kept = Kept::new(text.as_bytes());
    }
    let relay = compatibility == Compatibility::CRelay;
    let idle_options = [
        ("name_characters", relay, "only `compatibility = \"c-relay\"` changes names"),
        ("names", !relay, "`c-relay` has `name_characters`"),
        ("missing_timestamp", !relay, "`c-relay` does not check the time"),
        ("max_message_bytes", source.messages.is_some(), "its connections carry lines"),
        ("max_line_bytes", source.messages.is_none(), "its connections carry messages"),
    ];
    for (key, watched, why) in idle_options {
        if let Some(place) = fields.place_of(key).filter(|_| !watched) {
            let message = format!("`{key}` has no effect: {why}");
            wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored"));
        }
    }
    source
}

/// Listeners that cannot carry what the source reads.
fn unfit_listeners(
    (source, compression, encrypted): (&GraphiteSource, Compression, bool),
    listen: &[Listen],
    places: &[Place],
    wrong: &mut Vec<Diagnostic>,
) {
    for (listen, place) in listen.iter().zip(places) {
        let why = match listen {
            Listen::UnixFrames { .. } => "these frames are DogStatsD's: write `unix://`",
            Listen::Udp(_) | Listen::UnixDatagram { .. } if source.messages.is_some() => {
                "messages come on streams: write `tcp://` or `unix://`"
            }
            Listen::Udp(_) | Listen::UnixDatagram { .. } if compression != Compression::Plain => {
                "only streams are compressed (`transport`): write `tcp://` or `unix://`"
            }
            Listen::Udp(_) | Listen::UnixDatagram { .. } if encrypted => {
                "only streams are encrypted (`tls`): write `tcp://` or `unix://`"
            }
            _ => continue,
        };
        let message = "a source of points cannot use this listener";
        wrong.push(Diagnostic::error(Code::BadValue, message).at(*place).label(why));
    }
}

fn own(name: &str, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> SourcePlan {
    let mut plan = own_plan(name);
    let SourceKind::Own(own) = &mut plan.kind else { return plan };
    Fields::set(&mut own.every_ms, fields.whole("every"));
    Fields::set(&mut own.prefix, fields.text("prefix"));
    let of_relays = fields.word("encoding") == Some("carbon-c-relay");
    let fits = |byte: u8| match of_relays {
        true => byte.is_ascii_graphic(),
        false => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
    };
    if !own.prefix.bytes().all(fits) {
        let place = fields.place_of("prefix").unwrap_or(fields.place);
        let label = match of_relays {
            true => "printable ASCII only, and no blank",
            false => "letters, digits, `_`, `-` and `.` only",
        };
        let message = "`prefix` cannot begin a name";
        wrong.push(Diagnostic::error(Code::BadValue, message).at(place).label(label));
    }
    if of_relays {
        let OwnPlan { every_ms, prefix } = std::mem::take(own);
        let mut own = RelayOwnPlan { every_ms, reset: false, prefix, report: RelayReport::Points };
        Fields::set(&mut own.reset, fields.flag("reset"));
        let word = fields.word("report");
        own.report =
            RelayReport::ALL.into_iter().find(|known| Some(known.word()) == word).unwrap_or_default();
        plan.kind = SourceKind::RelayOwn(own);
        return plan;
    }
    for key in ["reset", "report"] {
        if let Some(place) = fields.place_of(key) {
            let message = format!("`{key}` has no effect without `encoding = \"carbon-c-relay\"`");
            wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored"));
        }
    }
    plan
}

/// The word of a dialect in files.
pub(super) fn dialect_word(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Etsy => "etsy",
        Dialect::Perl => "perl",
        Dialect::Dogstatsd => "dogstatsd",
        Dialect::Union => "union",
    }
}

fn options(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Options {
    let dialect = match fields.word("dialect") {
        Some("etsy") => Dialect::Etsy,
        Some("perl") => Dialect::Perl,
        Some("dogstatsd") => Dialect::Dogstatsd,
        _ => Dialect::Union,
    };
    let mut options = Options::of(dialect);
    Fields::set(&mut options.compat_quirks, fields.flag("compat_quirks"));
    Fields::set(&mut options.strict_numbers, fields.flag("strict_numbers"));
    match fields.word("gauge_sign") {
        Some("delta") => options.gauge_sign = GaugeSign::Delta,
        Some("absolute") => options.gauge_sign = GaugeSign::Absolute,
        _ => {}
    }
    Fields::set(&mut options.allow_negative_timers, fields.flag("allow_negative_timers"));
    Fields::set(&mut options.sanitize, fields.flag("sanitize"));
    Fields::set(&mut options.key_bytes_max, fields.whole_u32("max_key_bytes"));
    Fields::set(&mut options.tags_max, fields.whole_u32("max_tags"));
    Fields::set(&mut options.rate_min, fields.number("min_sample_rate"));
    let union = dialect == Dialect::Union;
    let idle_options = [
        ("gauge_sign", union),
        ("allow_negative_timers", union),
        ("sanitize", dialect != Dialect::Dogstatsd),
        ("compat_quirks", dialect == Dialect::Etsy || !options.compat_quirks),
    ];
    for (key, watched) in idle_options {
        if let Some(place) = fields.place_of(key).filter(|_| !watched) {
            let message = format!("`{key}` has no effect in the dialect `{}`", dialect_word(dialect));
            wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored"));
        }
    }
    options
}

/// The first option in which two sources read differently, other than what is derived from the rest of the plan.
pub(super) fn difference(one: &Options, other: &Options) -> Option<&'static str> {
    let pairs = [
        ("dialect", one.dialect == other.dialect),
        ("compat_quirks", one.compat_quirks == other.compat_quirks),
        ("strict_numbers", one.strict_numbers == other.strict_numbers),
        ("gauge_sign", one.gauge_sign == other.gauge_sign),
        ("allow_negative_timers", one.allow_negative_timers == other.allow_negative_timers),
        ("sanitize", one.sanitize == other.sanitize),
        ("max_key_bytes", one.key_bytes_max == other.key_bytes_max),
        ("max_tags", one.tags_max == other.tags_max),
        ("min_sample_rate", one.rate_min == other.rate_min),
    ];
    pairs.into_iter().find(|(_, same)| !same).map(|(key, _)| key)
}
