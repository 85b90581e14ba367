//! A second decoder, derived by `prost` from the declared messages, only to compare the real one with.
//!
//! `prost` refuses a known field of another wire type, and Riemann's decoder takes it for an unknown one: such fields are removed
//! before. Compiled for tests and, under the feature `reference`, for the fuzz targets.
//! Invariant: where the two differ, one of them is wrong.

use model::{EventTime, EventsBuilder, NumberRef, TextField};
use prost::Message as _;
use prost::bytes::Buf;
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field,
};

use super::fields::GROUPS_MAX;
use super::{Limits, MessageReject, decode};

/// A message, with texts as bytes: `prost` would refuse those that are not UTF-8.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Msg {
    /// Of a reply.
    #[prost(bool, optional, tag = "2")]
    pub ok: Option<bool>,
    /// Of a reply.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub error: Option<Vec<u8>>,
    /// Legacy.
    #[prost(message, repeated, tag = "4")]
    pub states: Vec<State>,
    /// See [`Query`].
    #[prost(message, optional, tag = "5")]
    pub query: Option<Query>,
    /// See [`Event`].
    #[prost(message, repeated, tag = "6")]
    pub events: Vec<Event>,
}

/// All fields of a state are ignored.
#[derive(Clone, PartialEq, prost::Message)]
pub struct State {}

/// A query.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Query {
    /// Its text.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub string: Option<Vec<u8>>,
}

/// An event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Event {
    /// Unix seconds.
    #[prost(int64, optional, tag = "1")]
    pub time: Option<i64>,
    /// Any word.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub state: Option<Vec<u8>>,
    /// What is measured.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub service: Option<Vec<u8>>,
    /// Where.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub host: Option<Vec<u8>>,
    /// For humans.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub description: Option<Vec<u8>>,
    /// In order.
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub tags: Vec<Vec<u8>>,
    /// Seconds.
    #[prost(float, optional, tag = "8")]
    pub ttl: Option<f32>,
    /// All other fields.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<Attribute>,
    /// Unix microseconds.
    #[prost(int64, optional, tag = "10")]
    pub time_micros: Option<i64>,
    /// An integer.
    #[prost(sint64, optional, tag = "13")]
    pub metric_sint64: Option<i64>,
    /// A number of double precision.
    #[prost(double, optional, tag = "14")]
    pub metric_d: Option<f64>,
    /// A number of single precision.
    #[prost(float, optional, tag = "15")]
    pub metric_f: Option<f32>,
}

/// A field that is no standard one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Attribute {
    /// Required, which is checked after decoding.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub key: Option<Vec<u8>>,
    /// Empty if absent.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub value: Option<Vec<u8>>,
}

/// The wire types of a message's known fields.
struct Schema {
    fields: &'static [(u32, WireType)],
    messages: &'static [(u32, &'static Schema)],
}

const MSG: Schema = Schema {
    fields: &[(2, WireType::Varint), (3, WireType::LengthDelimited)],
    messages: &[(4, &NO_FIELDS), (5, &QUERY), (6, &EVENT)],
};
const NO_FIELDS: Schema = Schema { fields: &[], messages: &[] };
const QUERY: Schema = Schema { fields: &[(1, WireType::LengthDelimited)], messages: &[] };
const ATTRIBUTE: Schema =
    Schema { fields: &[(1, WireType::LengthDelimited), (2, WireType::LengthDelimited)], messages: &[] };
const EVENT: Schema = Schema {
    fields: &[
        (1, WireType::Varint),
        (2, WireType::LengthDelimited),
        (3, WireType::LengthDelimited),
        (4, WireType::LengthDelimited),
        (5, WireType::LengthDelimited),
        (7, WireType::LengthDelimited),
        (8, WireType::ThirtyTwoBit),
        (10, WireType::Varint),
        (13, WireType::Varint),
        (14, WireType::SixtyFourBit),
        (15, WireType::ThirtyTwoBit),
    ],
    messages: &[(9, &ATTRIBUTE)],
};

/// The message with its known fields of the right wire types only. `None` for what is no message.
fn known_fields(mut bytes: &[u8], schema: &Schema) -> Option<Vec<u8>> {
    let mut known = Vec::new();
    while bytes.has_remaining() {
        let begin = bytes;
        let (number, kind) = decode_key(&mut bytes).ok()?;
        let inner =
            schema.messages.iter().find(|(own, _)| *own == number && kind == WireType::LengthDelimited);
        if let Some((_, schema)) = inner {
            let len = usize::try_from(decode_varint(&mut bytes).ok()?).ok()?;
            let (inner, rest) = bytes.split_at_checked(len)?;
            bytes = rest;
            let inner = known_fields(inner, schema)?;
            encode_key(number, kind, &mut known);
            encode_varint(inner.len() as u64, &mut known);
            known.extend_from_slice(&inner);
            continue;
        }
        skip(kind, number, &mut bytes, 0)?;
        if schema.fields.contains(&(number, kind)) {
            known.extend_from_slice(&begin[..begin.len() - bytes.len()]);
        }
    }
    Some(known)
}

/// Skips the value of a field. `prost` counts the depth of groups in another way, so they are skipped here.
fn skip(kind: WireType, number: u32, bytes: &mut &[u8], depth: usize) -> Option<()> {
    if kind != WireType::StartGroup {
        return skip_field(kind, number, bytes, DecodeContext::default()).ok();
    }
    if depth == GROUPS_MAX {
        return None;
    }
    loop {
        match decode_key(bytes).ok()? {
            (end, WireType::EndGroup) => return (end == number).then_some(()),
            (inner, kind) => skip(kind, inner, bytes, depth + 1)?,
        }
    }
}

/// The message as `prost` decodes it. `None` if it is undecodable.
fn decoded(bytes: &[u8]) -> Option<Msg> {
    let msg = Msg::decode(&*known_fields(bytes, &MSG)?).ok()?;
    let mut attributes = msg.events.iter().flat_map(|event| &event.attributes);
    attributes.all(|attribute| attribute.key.is_some()).then_some(msg)
}

/// Decodes `bytes` with both decoders.
///
/// # Panics
/// When they differ, or when a rejected message leaves something behind.
pub fn compare(bytes: &[u8]) {
    const RECEIVED: EventTime = EventTime::Micros(1_700_000_000_123_000);
    let shown = bytes.escape_ascii();
    let mut got = EventsBuilder::default();
    let mut earlier = got.event();
    earlier.text(TextField::Host, "earlier");
    earlier.finish();
    let mut want = got.clone();
    match (decode(bytes, RECEIVED, Limits::default(), &mut got), decoded(bytes)) {
        (Ok(message), Some(msg)) => {
            let overridden: usize = msg.events.iter().map(|event| write(event, RECEIVED, &mut want)).sum();
            assert_eq!(message.overridden, overridden, "{shown}");
            let (got, want): (Vec<_>, Vec<_>) = (got.view().iter().collect(), want.view().iter().collect());
            assert!(got == want, "{got:?}, not {want:?}: {shown}");
            let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
            let query = msg.query.as_ref().map(|query| query.string.as_ref().map(text).unwrap_or_default());
            assert_eq!(message.events, msg.events.len(), "{shown}");
            assert_eq!(message.query.map(String::from), query, "{shown}");
            assert_eq!(message.error.map(String::from), msg.error.as_ref().map(text), "{shown}");
            assert_eq!((message.ok, message.has_states), (msg.ok, !msg.states.is_empty()), "{shown}");
        }
        (Err(MessageReject::Undecodable), None) => assert_eq!(got, want, "a rejected message adds nothing"),
        (
            Err(MessageReject::TooManyTags | MessageReject::TooManyAttributes | MessageReject::TooManyEvents),
            _,
        ) => {
            assert!(bytes.len() > 1024, "a short message is within all limits");
            assert_eq!(got, want, "a rejected message adds nothing");
        }
        (message, msg) => panic!("{message:?}, not {msg:?}: {shown}"),
    }
}

/// Writes an event as the spec's sentences say. Gives the number of texts that attributes override.
fn write(event: &Event, received: EventTime, into: &mut EventsBuilder) -> usize {
    let attributes: Vec<(String, String)> = event
        .attributes
        .iter()
        .map(|attribute| {
            let text = |bytes: &Option<Vec<u8>>| {
                String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
            };
            (text(&attribute.key), text(&attribute.value))
        })
        .collect();
    let (mut writer, mut overridden) = (into.event(), 0);
    let fields = [
        ("host", TextField::Host, &event.host),
        ("service", TextField::Service, &event.service),
        ("state", TextField::State, &event.state),
        ("description", TextField::Description, &event.description),
    ];
    for (name, field, value) in fields {
        let overriding = attributes.iter().rfind(|(key, _)| key == name).map(|(_, value)| value.clone());
        let own = value.as_ref().map(|value| String::from_utf8_lossy(value).into_owned());
        overridden += usize::from(overriding.is_some());
        overriding.or(own).into_iter().for_each(|text| writer.text(field, text));
    }
    let integer = event.metric_sint64.map(NumberRef::I64);
    let metric = integer.or(event.metric_d.map(NumberRef::F64)).or(event.metric_f.map(NumberRef::F32));
    metric.into_iter().for_each(|metric| writer.metric(metric));
    let micros = event.time_micros.map(EventTime::Micros);
    writer.time(micros.or(event.time.map(EventTime::Seconds)).unwrap_or(received));
    event.ttl.into_iter().for_each(|ttl_s| writer.ttl_s(ttl_s));
    for tag in &event.tags {
        writer.tag(String::from_utf8_lossy(tag)).expect("the real decoder accepted them");
    }
    for (key, value) in &attributes {
        const OTHERS: [&str; 8] =
            ["host", "service", "state", "description", "metric", "tags", "time", "ttl"];
        if !OTHERS.contains(&&**key) {
            writer.text_attribute(key, value).expect("the real decoder accepted them");
        }
    }
    writer.finish();
    overridden
}
