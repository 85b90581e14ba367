//! The messages of a hot restart, as bytes and back.
//!
//! A frame is a kind, a length and that many bytes. Numbers are little-endian; texts and lists follow their length. The
//! layout of [`Message::Hello`] and [`Message::Refused`] never changes, so that different versions can at least
//! exchange an error. Pure. Not here: the order of messages (`old`, `new`), sockets (`link`).
//! Invariant: any byte string gives one message that encodes to the same bytes, or an error.

use model::{AckWhen, Figure};
use pipeline::{AckProgress, Kept};

/// Our version of the protocol. Peers with another one are rejected.
pub const VERSION: u16 = 6;

/// Kind and length.
pub const HEADER_BYTES: usize = 5;

/// Longest body of a frame. Longer data is sent in parts.
pub const BODY_BYTES_MAX: usize = 2 << 20;

/// Bytes of one part.
pub const PART_BYTES: usize = 1 << 20;
const _: () = assert!(PART_BYTES + 8 <= BODY_BYTES_MAX, "a part fits a frame");

/// Kind of the only message whose body is raw bytes.
const PART: u8 = 10;

/// The use of a passed socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A source's listener.
    Source,
    /// HTTP.
    Http,
    /// A management port.
    Management,
    /// The control socket of this connection.
    Control,
    /// Not a socket: the lock of the data directory.
    Lock,
    /// CarbonLink.
    CarbonLink,
}

/// The identity of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its use.
    pub role: Role,
    /// Its source; empty for other uses.
    pub source: String,
    /// Its address in the plan.
    pub listen: String,
    /// Its actual address.
    pub at: String,
}

/// An output, identified by the properties that must be equal for its queue to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputName {
    /// Its name in the plan.
    pub name: String,
    /// Type, endpoint and encoding.
    pub what: String,
}

/// A passed connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Number of its listening socket.
    pub socket: u32,
    /// Bytes of its incomplete line or frame.
    pub len: u64,
    /// The rest of a line that is too long must be discarded.
    pub discarding: bool,
    /// Acknowledgements of its client, if it has any.
    pub acks: Option<AckProgress>,
    /// Numbers of the outputs for which its lines wait.
    pub outputs: Vec<u32>,
}

/// The owner of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A source.
    Source,
    /// An output.
    Output,
    /// A relay.
    Relay,
    /// Last report of a source of relays' statistics.
    Reports,
    /// An edge: the name consists of the transform and the node that feeds it, one per line.
    Edge,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// From the new process: its version.
    Hello {
        /// Version of the protocol.
        version: u16,
        /// Version of the program, for people.
        program: String,
    },
    /// From the old process: rejected. The old process continues.
    Refused {
        /// The reason, for people.
        why: String,
    },
    /// From the old process: the next sockets. The same number of descriptors comes with it.
    Sockets(Vec<Place>),
    /// From the old process: all sockets were sent.
    Offered {
        /// Version of the program, for people.
        program: String,
        /// Its process id, because the control socket shows the id of the process that created it.
        pid: u32,
        /// Its outputs.
        outputs: Vec<OutputName>,
        /// The service manager's watchdog interval, in microseconds; 0 without one.
        watchdog_us: u64,
    },
    /// From the new process: its listeners are open and its plan is complete. It continues these, by number.
    Ready {
        /// Sockets.
        sockets: Vec<u32>,
        /// Outputs.
        outputs: Vec<u32>,
        /// Aggregations and relays.
        kept: Kept,
    },
    /// From the old process: an account.
    Account {
        /// The kind of owner.
        owner: Owner,
        /// Its name.
        name: String,
        /// Its figures.
        figures: Vec<Figure>,
    },
    /// From the old process: kernel drops of a socket.
    Drops {
        /// Number of the socket.
        socket: u32,
        /// The kernel's counter at the last read.
        seen: u32,
        /// Packets counted as dropped there.
        dropped: u64,
    },
    /// From the old process: the state of an aggregation follows, in parts.
    State {
        /// Its name.
        transform: String,
        /// Bytes of all parts.
        len: u64,
    },
    /// From the old process: a block of an output's queue follows, in parts.
    Left {
        /// Number of the output.
        output: u32,
        /// Bytes of all parts.
        len: u64,
    },
    /// From the old process: the reading position of a queue on disk follows, in parts.
    Unsettled {
        /// The output's name: the output with this name continues the queue, with any endpoint.
        output: String,
        /// Bytes of all parts.
        len: u64,
    },
    /// From the old process: the next connections. The same number of descriptors comes with it; their announced data
    /// follows in order, in parts.
    Connections(Vec<Connection>),
    /// From the old process: a part of announced data.
    Part(Vec<u8>),
    /// From the old process: everything has been sent and is not changed any more.
    Yours {
        /// Start of the pause, in monotonic nanoseconds: all processes of a machine share that clock.
        paused_ns: u64,
    },
    /// From the new process: it continues, and reads the sockets from now on.
    Taken,
}

/// The mistake in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// It is too long.
    #[error("a frame is too long")]
    TooLong,
    /// Its kind is unknown.
    #[error("a message has an unknown type")]
    Kind,
    /// It is too short or too long, or has an invalid value.
    #[error("a message cannot be parsed")]
    Body,
}

impl Message {
    fn kind(&self) -> u8 {
        match self {
            Message::Hello { .. } => 1,
            Message::Refused { .. } => 2,
            Message::Sockets(_) => 3,
            Message::Offered { .. } => 4,
            Message::Ready { .. } => 5,
            Message::Account { .. } => 6,
            Message::Drops { .. } => 7,
            Message::State { .. } => 8,
            Message::Left { .. } => 9,
            Message::Unsettled { .. } => 14,
            Message::Part(_) => PART,
            Message::Yours { .. } => 11,
            Message::Taken => 12,
            Message::Connections(_) => 13,
        }
    }

    /// The whole frame.
    ///
    /// # Errors
    /// `TooLong` when it is longer than a receiver accepts.
    pub fn encode(&self) -> Result<Vec<u8>, Bad> {
        let mut out = vec![self.kind(), 0, 0, 0, 0];
        match self {
            Message::Hello { version, program } => {
                out.extend_from_slice(&version.to_le_bytes());
                put_text(&mut out, program);
            }
            Message::Refused { why } => put_text(&mut out, why),
            Message::Sockets(places) => put_list(&mut out, places, |out, place| {
                out.push(place.role as u8);
                for text in [&place.source, &place.listen, &place.at] {
                    put_text(out, text);
                }
            }),
            Message::Offered { program, pid, outputs, watchdog_us } => {
                put_text(&mut out, program);
                out.extend_from_slice(&pid.to_le_bytes());
                put_list(&mut out, outputs, |out, output| {
                    put_text(out, &output.name);
                    put_text(out, &output.what);
                });
                out.extend_from_slice(&watchdog_us.to_le_bytes());
            }
            Message::Ready { sockets, outputs, kept } => {
                for numbers in [sockets, outputs] {
                    put_list(&mut out, numbers, |out, number| out.extend_from_slice(&number.to_le_bytes()));
                }
                for names in [&kept.aggregations, &kept.relays] {
                    put_list(&mut out, names, |out, name| put_text(out, name));
                }
            }
            Message::Account { owner, name, figures } => {
                out.push(*owner as u8);
                put_text(&mut out, name);
                put_list(&mut out, figures, |out, figure| {
                    put_text(out, &figure.family);
                    put_text(out, &figure.reason);
                    out.extend_from_slice(&figure.count.to_le_bytes());
                    out.extend_from_slice(&figure.bytes.to_le_bytes());
                });
            }
            Message::Drops { socket, seen, dropped } => {
                out.extend_from_slice(&socket.to_le_bytes());
                out.extend_from_slice(&seen.to_le_bytes());
                out.extend_from_slice(&dropped.to_le_bytes());
            }
            Message::State { transform, len } => {
                put_text(&mut out, transform);
                out.extend_from_slice(&len.to_le_bytes());
            }
            Message::Left { output, len } => {
                out.extend_from_slice(&output.to_le_bytes());
                out.extend_from_slice(&len.to_le_bytes());
            }
            Message::Unsettled { output, len } => {
                put_text(&mut out, output);
                out.extend_from_slice(&len.to_le_bytes());
            }
            Message::Connections(connections) => put_list(&mut out, connections, put_connection),
            Message::Part(bytes) => out.extend_from_slice(bytes),
            Message::Yours { paused_ns } => out.extend_from_slice(&paused_ns.to_le_bytes()),
            Message::Taken => {}
        }
        let body = out.len() - HEADER_BYTES;
        if body > BODY_BYTES_MAX {
            return Err(Bad::TooLong);
        }
        out[1..HEADER_BYTES].copy_from_slice(&(body as u32).to_le_bytes());
        Ok(out)
    }

    /// The header of a part of this length; its bytes follow unchanged.
    ///
    /// # Errors
    /// `TooLong` when a receiver would not accept it.
    pub fn part_header(len: usize) -> Result<[u8; HEADER_BYTES], Bad> {
        if len > BODY_BYTES_MAX {
            return Err(Bad::TooLong);
        }
        let [a, b, c, d] = (len as u32).to_le_bytes();
        Ok([PART, a, b, c, d])
    }

    /// Length of the body after the header of a part; `None` for another message.
    ///
    /// # Errors
    /// `TooLong`: not a valid frame.
    pub fn part_len(header: [u8; HEADER_BYTES]) -> Result<Option<usize>, Bad> {
        let len = Message::body_len(header)?;
        Ok((header[0] == PART).then_some(len))
    }

    /// Length of the body after a header.
    ///
    /// # Errors
    /// `TooLong`: not a valid frame.
    pub fn body_len(header: [u8; HEADER_BYTES]) -> Result<usize, Bad> {
        let [_, len @ ..] = header;
        let len = u32::from_le_bytes(len) as usize;
        if len > BODY_BYTES_MAX { Err(Bad::TooLong) } else { Ok(len) }
    }

    /// The message of a frame of this kind with this body.
    ///
    /// # Errors
    /// When it is invalid.
    pub fn decode(kind: u8, body: &[u8]) -> Result<Message, Bad> {
        if kind == PART {
            return Ok(Message::Part(body.to_vec()));
        }
        let mut body = Body(body);
        let message = body.message(kind)?.ok_or(Bad::Body)?;
        // Further bytes have an unknown meaning.
        if body.0.is_empty() { Ok(message) } else { Err(Bad::Body) }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn put_list<T>(out: &mut Vec<u8>, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    out.extend_from_slice(&(items.len() as u32).to_le_bytes());
    items.iter().for_each(|item| put(out, item));
}

fn put_connection(out: &mut Vec<u8>, connection: &Connection) {
    let Connection { socket, len, discarding, acks, outputs } = connection;
    out.extend_from_slice(&socket.to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.push(u8::from(*discarding));
    // 0 is a client without acknowledgements.
    out.push(acks.map_or(0, |acks| 1 + acks.when as u8));
    if let Some(acks) = acks {
        for count in [acks.lines, acks.rejected, acks.acked] {
            out.extend_from_slice(&count.to_le_bytes());
        }
    }
    put_list(out, outputs, |out, number| out.extend_from_slice(&number.to_le_bytes()));
}

/// The rest of a body. Each reading method returns `None` at its end.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    /// `None` when the body does not fit the kind.
    fn message(&mut self, kind: u8) -> Result<Option<Message>, Bad> {
        Ok(match kind {
            1 => self.hello(),
            2 => self.text().map(|why| Message::Refused { why }),
            3 => self.list(Body::place).map(Message::Sockets),
            4 => self.offered(),
            5 => self.ready(),
            6 => self.account(),
            7 => self.drops(),
            8 => self.state(),
            9 => self.left(),
            11 => self.u64().map(|paused_ns| Message::Yours { paused_ns }),
            12 => Some(Message::Taken),
            13 => self.list(Body::connection).map(Message::Connections),
            14 => self.unsettled(),
            _ => return Err(Bad::Kind),
        })
    }

    fn hello(&mut self) -> Option<Message> {
        Some(Message::Hello { version: u16::from_le_bytes(self.array()?), program: self.text()? })
    }

    fn place(&mut self) -> Option<Place> {
        let role = match self.array()? {
            [0] => Role::Source,
            [1] => Role::Http,
            [2] => Role::Management,
            [3] => Role::Control,
            [4] => Role::Lock,
            [5] => Role::CarbonLink,
            _ => return None,
        };
        Some(Place { role, source: self.text()?, listen: self.text()?, at: self.text()? })
    }

    fn offered(&mut self) -> Option<Message> {
        let output = |body: &mut Self| Some(OutputName { name: body.text()?, what: body.text()? });
        let (program, pid, outputs) = (self.text()?, self.u32()?, self.list(output)?);
        Some(Message::Offered { program, pid, outputs, watchdog_us: self.u64()? })
    }

    fn ready(&mut self) -> Option<Message> {
        let (sockets, outputs) = (self.list(Body::u32)?, self.list(Body::u32)?);
        let (aggregations, relays) = (self.list(Body::text)?, self.list(Body::text)?);
        Some(Message::Ready { sockets, outputs, kept: Kept { aggregations, relays } })
    }

    fn account(&mut self) -> Option<Message> {
        let owner = match self.array()? {
            [0] => Owner::Source,
            [1] => Owner::Output,
            [2] => Owner::Relay,
            [3] => Owner::Reports,
            [4] => Owner::Edge,
            _ => return None,
        };
        let figure = |body: &mut Self| {
            let (family, reason) = (body.text()?, body.text()?);
            Some(Figure { family, reason, count: body.u64()?, bytes: body.u64()? })
        };
        Some(Message::Account { owner, name: self.text()?, figures: self.list(figure)? })
    }

    fn drops(&mut self) -> Option<Message> {
        Some(Message::Drops { socket: self.u32()?, seen: self.u32()?, dropped: self.u64()? })
    }

    fn state(&mut self) -> Option<Message> {
        Some(Message::State { transform: self.text()?, len: self.u64()? })
    }

    fn left(&mut self) -> Option<Message> {
        Some(Message::Left { output: self.u32()?, len: self.u64()? })
    }

    fn unsettled(&mut self) -> Option<Message> {
        Some(Message::Unsettled { output: self.text()?, len: self.u64()? })
    }

    fn connection(&mut self) -> Option<Connection> {
        let (socket, len) = (self.u32()?, self.u64()?);
        let [discarding @ (0 | 1), when] = self.array()? else { return None };
        let acks = match when.checked_sub(1) {
            None => None,
            Some(when) => {
                let when = *AckWhen::ALL.get(usize::from(when))?;
                Some(AckProgress { when, lines: self.u64()?, rejected: self.u64()?, acked: self.u64()? })
            }
        };
        let outputs = self.list(Body::u32)?;
        Some(Connection { socket, len, discarding: discarding == 1, acks, outputs })
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let len = self.u32()? as usize;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    /// A list. Its items are read one by one, so that a wrong length costs no memory.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = self.u32()?;
        let mut items = Vec::new();
        for _ in 0..len {
            if self.0.is_empty() {
                return None;
            }
            items.push(item(self)?);
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_of_each() -> Vec<Message> {
        let text = |text: &str| text.to_owned();
        let place =
            |role| Place { role, source: text("app"), listen: text("udp://[::]:0"), at: text("udp://é") };
        let roles = [Role::Source, Role::Http, Role::Management, Role::Control, Role::Lock, Role::CarbonLink];
        let figure = Figure { family: text("dropped"), reason: text(""), count: u64::MAX, bytes: 1 };
        let acks = |when| AckProgress { when, lines: u64::MAX, rejected: 1, acked: 2 };
        let connection = |acks: Option<AckProgress>| {
            let outputs = if acks.is_some() { vec![3, 0] } else { Vec::new() };
            Connection { socket: 1, len: 2, discarding: acks.is_none(), acks, outputs }
        };
        let [accepted, safe, delivered] = AckWhen::ALL.map(|when| connection(Some(acks(when))));
        let connections = [connection(None), accepted, safe, delivered];
        let output = OutputName { name: text("carbon"), what: text("graphite tcp://x:1 lines") };
        vec![
            Message::Hello { version: VERSION, program: text("0.1.0") },
            Message::Refused { why: text("") },
            Message::Sockets(roles.map(place).to_vec()),
            Message::Sockets(Vec::new()),
            Message::Offered { program: text("x"), pid: 9, outputs: vec![output], watchdog_us: 7 },
            Message::Ready {
                sockets: vec![0, u32::MAX],
                outputs: Vec::new(),
                kept: Kept { aggregations: vec![text("a b")], relays: vec![text("c")] },
            },
            Message::Account { owner: Owner::Source, name: text("app"), figures: vec![figure; 2] },
            Message::Account { owner: Owner::Output, name: text(""), figures: Vec::new() },
            Message::Account { owner: Owner::Relay, name: text("relay"), figures: Vec::new() },
            Message::Account { owner: Owner::Reports, name: text("own"), figures: Vec::new() },
            Message::Account { owner: Owner::Edge, name: text("ring\nlines"), figures: Vec::new() },
            Message::Drops { socket: 1, seen: 2, dropped: 3 },
            Message::State { transform: text("stats"), len: 5 },
            Message::Left { output: 3, len: 1 << 40 },
            Message::Unsettled { output: text("carbon"), len: 148 },
            Message::Connections(connections.to_vec()),
            Message::Part(vec![0, 255]),
            Message::Part(Vec::new()),
            Message::Yours { paused_ns: 6 },
            Message::Taken,
        ]
    }

    fn decode(frame: &[u8]) -> Result<Message, Bad> {
        let (header, body) = frame.split_first_chunk::<HEADER_BYTES>().expect("a whole header");
        assert_eq!(Message::body_len(*header).expect("not too long"), body.len());
        Message::decode(header[0], body)
    }

    #[test]
    fn messages_decode_to_themselves() {
        for message in one_of_each() {
            let frame = message.encode().expect("not too long");
            assert_eq!(decode(&frame), Ok(message));
        }
    }

    #[test]
    fn any_bytes_are_one_message_or_an_error() {
        for message in one_of_each() {
            let frame = message.encode().expect("not too long");
            let (kind, body) = (frame[0], &frame[HEADER_BYTES..]);
            let heard = |kind: u8, body: &[u8]| match Message::decode(kind, body) {
                Ok(other) => {
                    let again = other.encode().expect("not too long");
                    assert_eq!((again[0], &again[HEADER_BYTES..]), (kind, body), "{other:?}");
                    true
                }
                Err(_) => false,
            };
            for len in 0..body.len() {
                assert!(!heard(kind, &body[..len]) || kind == PART, "{message:?} cut to {len} bytes");
            }
            assert!(
                !heard(kind, &[body, &[0]].concat()) || kind == PART,
                "{message:?} with a byte behind it"
            );
            for other in 0..=u8::MAX {
                heard(other, body);
            }
            for bit in 0..body.len() * 8 {
                let mut flipped = body.to_vec();
                flipped[bit / 8] ^= 1 << (bit % 8);
                heard(kind, &flipped);
            }
        }
    }

    /// Two versions can tell each other why not: these frames are as version 0.1.0 makes them.
    #[test]
    fn greetings_and_refusals_of_version_0_1_0_are_understood() {
        let hello = Message::Hello { version: 3, program: "0.1.0".to_owned() };
        let refused = Message::Refused { why: "stop it first".to_owned() };
        for (frame, message) in [
            (&b"\x01\x0b\0\0\0\x03\0\x05\0\0\x000.1.0"[..], hello),
            (b"\x02\x11\0\0\0\x0d\0\0\0stop it first", refused),
        ] {
            assert_eq!(decode(frame), Ok(message.clone()));
            assert_eq!(message.encode().expect("not too long"), frame);
        }
        assert_ne!(VERSION, 3, "accounts of version 0.1.0 name outcomes with other words");
    }

    /// A change of any layout changes this sum, and asks for another [`VERSION`].
    #[test]
    fn the_layout_belongs_to_the_version() {
        let frames: Vec<u8> =
            one_of_each().iter().flat_map(|message| message.encode().expect("not too long")).collect();
        let sum = frames.iter().fold(0u32, |sum, byte| sum.rotate_left(5).wrapping_add(u32::from(*byte)));
        assert_eq!((VERSION, frames.len(), sum), (6, 807, 2_876_107_630), "new version, new sum");
    }

    #[test]
    fn each_mistake_has_an_error() {
        let text_without_end = [&9u32.to_le_bytes()[..], b"12345678"].concat();
        let no_utf8 = [&1u32.to_le_bytes()[..], &[0xff]].concat();
        let endless_list = u32::MAX.to_le_bytes();
        let table: [(u8, &[u8], Bad); 8] = [
            (0, b"", Bad::Kind),
            (15, b"", Bad::Kind),
            (2, &text_without_end, Bad::Body),
            (2, &no_utf8, Bad::Body),
            (3, &endless_list, Bad::Body),
            (5, &endless_list, Bad::Body),
            (12, b"x", Bad::Body),
            (7, b"123", Bad::Body),
        ];
        for (kind, body, want) in table {
            assert_eq!(Message::decode(kind, body), Err(want), "kind {kind}: {body:?}");
        }
        let len = |len: u32| {
            let mut header = [PART, 0, 0, 0, 0];
            header[1..].copy_from_slice(&len.to_le_bytes());
            Message::body_len(header)
        };
        assert_eq!(len(BODY_BYTES_MAX as u32), Ok(BODY_BYTES_MAX));
        assert_eq!(len(BODY_BYTES_MAX as u32 + 1), Err(Bad::TooLong));
        assert!(Message::Part(vec![0; BODY_BYTES_MAX]).encode().is_ok());
        assert_eq!(Message::part_header(BODY_BYTES_MAX + 1), Err(Bad::TooLong));
        let frame = Message::Part(vec![7; 300]).encode().expect("not too long");
        let header = Message::part_header(300).expect("not too long");
        assert_eq!((&header[..], Message::part_len(header)), (&frame[..HEADER_BYTES], Ok(Some(300))));
        assert_eq!(Message::Part(vec![0; BODY_BYTES_MAX + 1]).encode(), Err(Bad::TooLong));
    }
}
