//! The protocol of a connection or datagram of a source: the next protocol is a variant here.
//!
//! Path of a packet: `Intake` frames it by [`Protocol::framing`] -> **[`Protocol::read`]** -> the protocol's parser in
//! `wire` -> `samples::batches`, `points::batches` or `events::batches`, by its kind of record. Not here: framing itself
//! (`framing`), messages on connections, which are read one after the other (`points`, `events`).

use std::sync::Arc;

use config::kinds::RecordKind;
use config::plan::{
    CarbonOwnPlan, Carries, GraphiteSource, RelayOwnPlan, RiemannEncoding, RiemannSource, SourceKind,
};
use model::{Now, Span};
use wire::frame::{LengthFramer, LengthOrder, LineEnd, LineFramer};
use wire::graphite::input::{Compatibility, MessageEncoding, Options, Parsed, Reader};
use wire::statsd::{self, Parser};
use wire::{opentsdb, riemann};

use crate::intake::events;
use crate::intake::framing::Framing;

/// Most replies to `version` for one read: a client has one under way, if any.
const VERSION_REPLIES_MAX: usize = 64;

/// A protocol with what reads it: made once for each source, shared by its intakes.
#[derive(Clone)]
pub(crate) enum Protocol {
    /// StatsD lines and packets.
    Statsd(Arc<Parser>),
    /// Graphite lines.
    GraphiteLines(Arc<Reader>),
    /// Lines of OpenTSDB.
    OpenTsdb(Arc<opentsdb::Reader>),
    /// Messages of many Graphite points, each behind its length.
    GraphiteMessages(MessageReading),
    /// Riemann's messages: datagrams, or each behind its length.
    Riemann(RiemannSource),
    /// Events of Riemann's clients as lines: of JSON, in bodies of requests and frames of WebSockets; of Graphite; of OpenTSDB.
    RiemannLines(RiemannSource),
}

/// What connections carry. A connection ends when a reload changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    Lines,
    /// Messages of Graphite points.
    Graphite(MessageEncoding),
    /// Messages of Riemann.
    Riemann,
}

/// How messages of one source are read.
#[derive(Clone)]
pub(crate) struct MessageReading {
    pub(crate) reader: Arc<Reader>,
    pub(crate) form: MessageEncoding,
    pub(crate) message_bytes_max: usize,
}

/// The result of one read: the protocol fills the one of its kind of record.
pub(crate) struct Found<'a> {
    pub(crate) samples: &'a mut statsd::Parsed,
    pub(crate) points: &'a mut Parsed,
    pub(crate) events: &'a mut events::Parsed,
    /// The protocol's reply to the client of a connection, besides acknowledgements. The protocol limits its size for
    /// each read. None for datagrams, which have no reply.
    pub(crate) replies: Option<&'a mut ProtocolReplies>,
}

/// Replies of a protocol to the messages of one read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtocolReplies {
    /// The replies that are known, one after the other.
    pub bytes: Vec<u8>,
    /// Queries, each with the place among `bytes` where its reply belongs. The shard answers them after the records of the read.
    pub queries: Vec<(usize, String)>,
}

impl ProtocolReplies {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.queries.clear();
    }

    /// The next reply is that to a query.
    pub(crate) fn query(&mut self, text: &str) {
        self.queries.push((self.bytes.len(), text.to_owned()));
    }

    /// True without any reply.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.queries.is_empty()
    }

    /// The memory that they take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.queries.iter().map(|(_, text)| text.capacity()).sum::<usize>()
    }
}

impl Protocol {
    /// The protocol of a source. `parser` reads lines of StatsD; `seed` is the seed of the hashes of names.
    pub(crate) fn of(kind: &SourceKind, parser: &Arc<Parser>, seed: u64) -> Protocol {
        let lines = |reading: Options| Protocol::GraphiteLines(Arc::new(Reader::new(reading, seed)));
        match kind {
            SourceKind::Statsd(_) | SourceKind::Own(_) => Protocol::Statsd(Arc::clone(parser)),
            SourceKind::Graphite(GraphiteSource { reading, carries, message_bytes_max }) => match carries {
                // Which bodies are messages is known with each request.
                Carries::Lines | Carries::Http => lines(*reading),
                Carries::Messages(form) => {
                    let reader = Arc::new(Reader::new(*reading, seed));
                    let (form, message_bytes_max) = (*form, *message_bytes_max);
                    Protocol::GraphiteMessages(MessageReading { reader, form, message_bytes_max })
                }
            },
            SourceKind::OpenTsdb => Protocol::OpenTsdb(Arc::new(opentsdb::Reader::new(seed))),
            SourceKind::Riemann(source) => match source.encoding {
                RiemannEncoding::Messages => Protocol::Riemann(source.clone()),
                RiemannEncoding::Http | RiemannEncoding::Graphite | RiemannEncoding::Opentsdb => {
                    Protocol::RiemannLines(source.clone())
                }
            },
            SourceKind::RelayOwn(_) => lines(RelayOwnPlan::reading()),
            SourceKind::CarbonOwn(_) => lines(CarbonOwnPlan::reading()),
        }
    }

    /// The same for messages of Graphite points. None for other protocols.
    pub(crate) fn of_messages(&self, form: MessageEncoding, message_bytes_max: usize) -> Option<Protocol> {
        match self {
            Protocol::GraphiteLines(reader) => {
                let reader = Arc::clone(reader);
                Some(Protocol::GraphiteMessages(MessageReading { reader, form, message_bytes_max }))
            }
            Protocol::GraphiteMessages(_)
            | Protocol::Statsd(_)
            | Protocol::OpenTsdb(_)
            | Protocol::Riemann(_)
            | Protocol::RiemannLines(_) => None,
        }
    }

    /// How a connection is framed.
    pub(crate) fn framing(&self, line_bytes_max: usize) -> Framing {
        match self {
            Protocol::Statsd(_) | Protocol::OpenTsdb(_) => Framing::Lines(LineFramer::new(line_bytes_max)),
            Protocol::GraphiteLines(reader) => {
                let end = match reader.options().compatibility {
                    Compatibility::CRelay => LineEnd::LfOrCr,
                    Compatibility::Strict | Compatibility::Carbon | Compatibility::GoCarbon => LineEnd::Lf,
                };
                Framing::Lines(LineFramer::ended_by(end, line_bytes_max))
            }
            Protocol::GraphiteMessages(reading) => {
                Framing::Frames(LengthFramer::ordered(LengthOrder::Big, reading.message_bytes_max))
            }
            Protocol::RiemannLines(source) => Framing::Lines(LineFramer::new(source.message_bytes_max)),
            Protocol::Riemann(source) => Framing::Frames(riemann::framer(source.message_bytes_max)),
        }
    }

    /// Whether a request of HTTP or a handshake at the begin of a connection would be taken for its lines.
    pub(crate) fn takes_any_begin(&self) -> bool {
        match self {
            Protocol::RiemannLines(source) => source.encoding == RiemannEncoding::Http,
            Protocol::Riemann(_) | Protocol::GraphiteMessages(_) => true,
            Protocol::Statsd(_) | Protocol::GraphiteLines(_) | Protocol::OpenTsdb(_) => false,
        }
    }

    /// What connections carry.
    pub(crate) fn carries(&self) -> Carried {
        match self {
            Protocol::GraphiteMessages(reading) => Carried::Graphite(reading.form),
            Protocol::Riemann(_) => Carried::Riemann,
            Protocol::Statsd(_)
            | Protocol::GraphiteLines(_)
            | Protocol::OpenTsdb(_)
            | Protocol::RiemannLines(_) => Carried::Lines,
        }
    }

    /// Whether connections carry messages, each behind its length, and not lines.
    pub(crate) fn takes_messages(&self) -> bool {
        self.carries() != Carried::Lines
    }

    /// The kind of its records. Events of StatsD come beside samples.
    pub(crate) fn gives(&self) -> RecordKind {
        match self {
            Protocol::Statsd(_) => RecordKind::Samples,
            Protocol::GraphiteLines(_) | Protocol::GraphiteMessages(_) | Protocol::OpenTsdb(_) => {
                RecordKind::Points
            }
            Protocol::Riemann(_) | Protocol::RiemannLines(_) => RecordKind::Events,
        }
    }

    /// Reads lines of a stream, or datagrams. Samples are not parsed if no route takes them (`parses`).
    pub(crate) fn read(&self, bytes: &[u8], packets: &[Span], parses: bool, now: Now, mut found: Found<'_>) {
        let now_s = now.wall_seconds();
        if let Some(replies) = &mut found.replies {
            replies.clear();
        }
        match self {
            Protocol::Statsd(_) if !parses => {}
            Protocol::Statsd(parser) => {
                packets.iter().for_each(|packet| parser.packet(bytes, *packet, now_s, found.samples));
            }
            Protocol::GraphiteLines(reader) => {
                packets.iter().for_each(|packet| reader.packet(bytes, *packet, now_s, found.points));
            }
            Protocol::OpenTsdb(reader) => {
                let read = |packet: &Span| reader.packet(bytes, *packet, found.points);
                let versions: usize = packets.iter().map(read).sum();
                if let Some(replies) = found.replies {
                    replies.bytes.extend(opentsdb::VERSION_REPLY.repeat(versions.min(VERSION_REPLIES_MAX)));
                }
            }
            Protocol::GraphiteMessages(MessageReading { reader, form, .. }) => {
                packets.iter().for_each(|packet| reader.message(*form, bytes, *packet, now_s, found.points));
            }
            Protocol::RiemannLines(source) => {
                for packet in packets {
                    let mut at = packet.at as usize;
                    for line in packet.of(bytes).split_inclusive(|byte| *byte == b'\n') {
                        let replies = found.replies.as_deref_mut().map(|replies| &mut replies.bytes);
                        let text = line.strip_suffix(b"\n").unwrap_or(line);
                        if let Err(reason) = events::line(text, source, now, found.events, replies) {
                            found.events.first_reject.get_or_insert((reason, Span::new(at, text.len())));
                        }
                        at += line.len();
                    }
                }
            }
            Protocol::Riemann(_) => {
                for packet in packets {
                    let replies = found.replies.as_deref_mut();
                    if let Err(reason) = events::message(packet.of(bytes), now, found.events, replies) {
                        found.events.first_reject.get_or_insert((reason, *packet));
                    }
                }
            }
        }
    }
}
