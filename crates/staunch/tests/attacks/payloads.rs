//! What attackers send: messages, frames and lines that are legal, or nearly.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};

/// The end of a name that no reader takes, which shows only when all of it was looked at.
const BAD_END: &[u8] = b"\n";

/// So many bytes of whole gzip members without a byte in them.
pub(crate) fn empty_members(bytes: usize) -> Vec<u8> {
    let member = GzEncoder::new(Vec::new(), Compression::default()).finish().expect("memory takes it");
    member.repeat(bytes / member.len())
}

/// A frame of carbon's: the length and the message.
fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(message.len()).expect("a message is short").to_be_bytes().to_vec();
    frame.extend_from_slice(message);
    frame
}

/// A message of Riemann with its length.
pub(crate) fn riemann_framed(message: &[u8]) -> Vec<u8> {
    framed(message)
}

/// A message of Riemann of about `bytes`, and the events in it, as many as may be: each with a host and a service of its own.
pub(crate) fn riemann_events(bytes: usize) -> (Vec<u8>, u64) {
    let mut message = Vec::new();
    let mut events = 0_u64;
    while message.len() < bytes && events < 65_536 {
        let mut event = field(4, format!("attack-{events}").as_bytes());
        event.extend_from_slice(&field(3, format!("service-{events}").as_bytes()));
        message.extend_from_slice(&field(6, &event));
        events += 1;
    }
    (framed(&message), events)
}

/// A pickle of `bytes`: a name, and references to the one point that has it.
pub(crate) fn pickle_references(name: &[u8], bytes: usize) -> Vec<u8> {
    let mut message = b"\x80\x02](X".to_vec();
    message.extend_from_slice(&(name.len() as u32).to_le_bytes());
    message.extend_from_slice(name);
    // (time, value), and (name, (time, value)).
    message.extend_from_slice(b"J\x00\x00\x00\x65K\x01\x86\x86");
    message.resize(bytes.max(message.len() + 2) - 2, b'2');
    message.extend_from_slice(b"e.");
    framed(&message)
}

/// A protobuf message of `bytes`: a name, and empty points of it.
pub(crate) fn protobuf_points(name: &[u8], bytes: usize) -> Vec<u8> {
    let mut metric = field(1, name);
    while metric.len() + 2 < bytes {
        metric.extend_from_slice(b"\x12\x00");
    }
    framed(&field(1, &metric))
}

/// A name that is refused.
pub(crate) fn bad_name(bytes: usize) -> Vec<u8> {
    let mut name = vec![b'a'; bytes];
    name.extend_from_slice(BAD_END);
    name
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut text = vec![number << 3 | 2];
    let mut len = bytes.len();
    while len >= 0x80 {
        text.push(len as u8 | 0x80);
        len >>= 7;
    }
    text.push(len as u8);
    text.extend_from_slice(bytes);
    text
}

/// One good point as pickle and as protobuf.
pub(crate) fn pickle_point() -> Vec<u8> {
    framed(b"\x80\x02](X\x06\x00\x00\x00attackJ\x00\x00\x00\x65K\x01\x86\x86e.")
}

pub(crate) fn protobuf_point() -> Vec<u8> {
    // Its time is a varint, its value a double.
    let mut point = vec![0x08, 0x80, 0x80, 0x80, 0xa8, 0x06, 0x11];
    point.extend_from_slice(&1.0_f64.to_le_bytes());
    let mut metric = field(1, b"attack");
    metric.extend_from_slice(&field(2, &point));
    framed(&field(1, &metric))
}

/// Short points: many records in few bytes.
pub(crate) fn short_points(bytes: usize) -> Vec<u8> {
    let line = b"a 1 1700000000\n";
    line.repeat(bytes.div_ceil(line.len()))
}

/// The same text, made small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Small {
    Gzip,
    Lz4,
    Snappy,
}

impl Small {
    pub(crate) const ALL: [Small; 3] = [Small::Gzip, Small::Lz4, Small::Snappy];

    /// As configs write it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Small::Gzip => "gzip",
            Small::Lz4 => "lz4",
            Small::Snappy => "snappy",
        }
    }

    /// One member, frame or block.
    pub(crate) fn frame(self, plain: &[u8]) -> Vec<u8> {
        match self {
            Small::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(plain).expect("memory takes it");
                encoder.finish().expect("memory takes it")
            }
            Small::Lz4 => {
                let info = FrameInfo::new().block_size(BlockSize::Max4MB);
                let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
                encoder.write_all(plain).expect("memory takes it");
                encoder.finish().expect("memory takes it")
            }
            Small::Snappy => {
                let mut encoder = snap::write::FrameEncoder::new(Vec::new());
                encoder.write_all(plain).expect("memory takes it");
                encoder.into_inner().expect("memory takes it")
            }
        }
    }

    /// A frame of at most `bytes`, of as many points as that takes.
    pub(crate) fn frame_of(self, bytes: usize) -> Vec<u8> {
        let (mut plain, mut best) = (64 * 1024, Vec::new());
        while plain <= 16 << 20 {
            let frame = self.frame(&short_points(plain));
            if frame.len() > bytes {
                break;
            }
            best = frame;
            plain += plain / 2;
        }
        best
    }
}

/// A POST whose body is of a web page's kind.
pub(crate) fn post(path: &str, host: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let mut text = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    text.extend_from_slice(body);
    text
}

/// GET of a path, of which the connection ends.
pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").into_bytes()
}
