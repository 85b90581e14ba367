//! The worst known inputs for each parser: a name that is referenced as often as possible, the smallest valid element
//! repeated, the largest one once, and input that has to be scanned repeatedly.

use super::{Parser, Writer};
use crate::compression::{Compression, Compressor};
use crate::frame::{LengthOrder, LineEnd};
use crate::graphite::input::{Compatibility, MessageEncoding};
use crate::statsd::Dialect;

/// A worst-case input of any size for a parser.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// Its description.
    pub name: &'static str,
    /// The parser that reads it.
    pub parser: Parser,
    /// Generates it with about this many bytes.
    pub make: fn(usize) -> Vec<u8>,
}

/// All known inputs.
pub fn inputs() -> Vec<Input> {
    let mut inputs = Vec::new();
    for dialect in [Dialect::Etsy, Dialect::Perl, Dialect::Dogstatsd, Dialect::Union] {
        inputs.extend(STATSD.map(|(name, make)| Input { name, parser: Parser::Statsd(dialect), make }));
    }
    for compatibility in Compatibility::ALL {
        let parser = Parser::Graphite(compatibility);
        inputs.extend(GRAPHITE.map(|(name, make)| Input { name, parser, make }));
    }
    inputs.extend(STATSD.map(|(name, make)| Input { name, parser: Parser::Parts, make }));
    for writer in Writer::all() {
        let parser = Parser::Written(writer);
        inputs.extend(STATSD.map(|(name, make)| Input { name, parser, make }));
    }
    inputs.extend(OPENTSDB.map(|(name, make)| Input { name, parser: Parser::OpenTsdb, make }));
    inputs.extend(RIEMANN.map(|(name, make)| Input { name, parser: Parser::Riemann, make }));
    inputs.extend(EVENT_JSON.map(|(name, make)| Input { name, parser: Parser::EventJson, make }));
    inputs.extend(OTHERS.map(|(name, parser, make)| Input { name, parser, make }));
    inputs
}

type Make = fn(usize) -> Vec<u8>;

const STATSD: [(&str, Make); 19] = [
    ("short lines", |bytes| b"a:1|c\n".repeat(bytes / 6)),
    ("a long name with many values", |bytes| {
        [&b"n".repeat(bytes / 2), &b":1"[..].repeat(bytes / 4)[..], b"|c"].concat()
    }),
    ("a long name with many bits", |bytes| {
        [&b"n".repeat(bytes / 2), &b":1|c"[..].repeat(bytes / 8)[..]].concat()
    }),
    ("a long name with bits of all kinds", |bytes| {
        [&b"n".repeat(bytes / 2), &b":1|c:1|g:1|ms:1|s"[..].repeat(bytes / 34)[..]].concat()
    }),
    ("a long name with many values and a time", |bytes| {
        [&b"n".repeat(bytes / 16), &b":1"[..].repeat(bytes / 2)[..], b"|c|T1700000000"].concat()
    }),
    ("a long name with many bits and a time", |bytes| {
        [&b"n".repeat(bytes / 16), &b":1|g"[..].repeat(bytes / 4)[..], b"|#t|T1700000000"].concat()
    }),
    ("many values, a container and a time, again and again", |bytes| {
        b"n:1:2:3|c|@0.5|#k:v|c:1|T1700000000\nn:1:2:3|c|T1700000001\n".repeat(bytes / 61)
    }),
    ("a long name with many timers", |bytes| {
        [&b"n".repeat(bytes / 2), &b":1|ms"[..].repeat(bytes / 10)[..]].concat()
    }),
    ("a long name with many members", |bytes| {
        let members = (0..bytes / 16).map(|n| format!(":{n:05}|s"));
        [&b"n".repeat(bytes / 2), members.collect::<String>().as_bytes()].concat()
    }),
    ("many values and a long rate", |bytes| {
        [b"n", &b":1"[..].repeat(bytes / 4)[..], b"|c|@0.1", &b"0"[..].repeat(bytes / 2)].concat()
    }),
    ("many bits and a long rate", |bytes| {
        [b"n", &b":1|c"[..].repeat(bytes / 8)[..], b"|#t|@0.1", &b"0"[..].repeat(bytes / 2)].concat()
    }),
    ("many values and blanks behind their type", |bytes| {
        [b"n", &b":1"[..].repeat(bytes / 4)[..], b"|c", &b" "[..].repeat(bytes / 2)].concat()
    }),
    ("many values and long tags", |bytes| {
        [b"n", &b":1"[..].repeat(bytes / 4)[..], b"|c|#", &b"t:v,"[..].repeat(bytes / 8)].concat()
    }),
    ("many fields", |bytes| [b"n:1|c", &b"|@1"[..].repeat(bytes / 3)[..]].concat()),
    ("colons", |bytes| b":".repeat(bytes)),
    ("bars", |bytes| [b"n:1", &b"|"[..].repeat(bytes)[..]].concat()),
    ("line feeds", |bytes| b"\n".repeat(bytes)),
    ("a long number", |bytes| [b"n:", &b"9"[..].repeat(bytes)[..], b"|c"].concat()),
    ("an event with many fields", |bytes| [b"_e{1,1}:a|b", &b"|#t,u|k:a"[..].repeat(bytes / 9)[..]].concat()),
];

const GRAPHITE: [(&str, Make); 8] = [
    ("short lines", |bytes| b"a 1 2\n".repeat(bytes / 6)),
    ("the shortest lines", |bytes| b"a \n".repeat(bytes / 3)),
    ("a long name", |bytes| [&b"n".repeat(bytes)[..], b" 1 2\n"].concat()),
    ("dots", |bytes| [&b"."[..].repeat(bytes)[..], b"a 1 2\n"].concat()),
    ("blanks", |bytes| [b"a", &b" "[..].repeat(bytes)[..], b"1 2\n"].concat()),
    ("carriage returns", |bytes| b"\r".repeat(bytes)),
    ("many tags out of order", |bytes| {
        let tags = (0..bytes / 8).map(|n| format!(";{:05}=v", n * 7919 % 100_000));
        format!("a{} 1 2\n", tags.collect::<String>()).into_bytes()
    }),
    ("many tags in braces", |bytes| {
        let tags = (0..bytes / 10).map(|n| format!("{:05}=\"\\\\\"", n * 7919 % 100_000)).collect::<Vec<_>>();
        format!("a{{{}}} 1 2\n", tags.join(",")).into_bytes()
    }),
];

const OPENTSDB: [(&str, Make); 6] = [
    ("short puts", |bytes| b"p a 1 1\n".repeat(bytes / 8)),
    ("commands", |bytes| b"version\n".repeat(bytes / 8)),
    ("the shortest lines", |bytes| b"p\n".repeat(bytes / 2)),
    ("a long metric", |bytes| [b"p ", &b"n".repeat(bytes)[..], b" 1 1\n"].concat()),
    ("blanks", |bytes| [b"p", &b" "[..].repeat(bytes)[..], b"a 1 1\n"].concat()),
    ("many tags out of order", |bytes| {
        let tags = (0..bytes / 8).map(|n| format!(" {:05}=v", n * 7919 % 100_000));
        format!("p a 1 1{}\n", tags.collect::<String>()).into_bytes()
    }),
];

const RIEMANN: [(&str, Make); 10] = [
    ("empty events", |bytes| b"\x32\x00".repeat(bytes / 2)),
    ("events with empty texts", |bytes| b"\x32\x02\x22\x00".repeat(bytes / 4)),
    ("empty tags", |bytes| message(&b"\x3a\x00".repeat(bytes.min(1 << 17) / 2))),
    ("empty attributes", |bytes| {
        b"\x32\x10\x4a\x02\x0a\x00\x4a\x02\x0a\x00\x4a\x02\x0a\x00\x4a\x02\x0a\x00".repeat(bytes / 18)
    }),
    ("a long text that is not UTF-8", |bytes| {
        message(&[&b"\x22"[..], &length(bytes), &b"\xff".repeat(bytes)].concat())
    }),
    ("a text again and again", |bytes| message(&b"\x22\x04host".repeat(bytes / 6))),
    ("an overriding attribute again and again", |bytes| {
        message(&b"\x4a\x08\x0a\x04host\x12\x00".repeat(bytes / 10))
    }),
    ("unknown fields", |bytes| message(&b"\x18\x00".repeat(bytes / 2))),
    ("groups", |bytes| message(&[b"\x0b".repeat(90), b"\x0c".repeat(90)].concat().repeat(bytes / 180))),
    ("states and queries", |bytes| b"\x22\x02\x08\x01\x2a\x03\x0a\x01q".repeat(bytes / 9)),
];

const EVENT_JSON: [(&str, Make); 8] = [
    ("blanks", |bytes| b" ".repeat(bytes)),
    ("empty tags", |bytes| [b"{\"tags\":[\"\"", &b",\"\"".repeat(bytes / 3)[..], b"]}"].concat()),
    ("tags again and again", |bytes| {
        [&b"{\"tags\":[\"a\"]"[..], &b",\"tags\":[\"a\"]".repeat(bytes / 13)[..], b"}"].concat()
    }),
    ("items", |bytes| [b"{\"a\":[0", &b",0".repeat(bytes / 2)[..], b"]}"].concat()),
    ("nested lists", |bytes| [b"{\"a\":", &b"[".repeat(bytes)[..]].concat()),
    ("a text with escapes", |bytes| [b"{\"a\":\"", &b"\\n".repeat(bytes / 2)[..], b"\"}"].concat()),
    ("a text that is not UTF-8", |bytes| [b"{\"a\":\"", &b"\xff".repeat(bytes)[..], b"\"}"].concat()),
    ("a long number", |bytes| [b"{\"a\":", &b"9".repeat(bytes)[..], b"}"].concat()),
];

const PICKLE: Parser = Parser::Message(MessageEncoding::Pickle);
const PROTOBUF: Parser = Parser::Message(MessageEncoding::Protobuf);

const OTHERS: [(&str, Parser, Make); 24] = [
    ("a bad name, repeated", PICKLE, |bytes| repeated(bytes / 2, b' ', b"2", bytes / 2)),
    ("a good name, repeated", PICKLE, |bytes| repeated(bytes / 2, b'n', b"2", bytes / 2)),
    ("a good name, repeated as often as it may be", PICKLE, |bytes| repeated(100, b'n', b"2", bytes)),
    ("a bad name, repeated as often as it may be", PICKLE, |bytes| repeated(100, b' ', b"2", bytes)),
    ("a long value, repeated", PICKLE, |bytes| {
        let value = b"1".repeat(bytes / 2);
        [b"(S'a'\n(K\x01S'", &value[..], b"'\ntt", &b"2".repeat(bytes / 2), b"l."].concat()
    }),
    ("lists", PICKLE, |bytes| [b"(", &b"]Na"[..].repeat(bytes / 3)[..], b"l."].concat()),
    ("tuples of tuples", PICKLE, |bytes| [b"N", &b"\x85"[..].repeat(bytes)[..], b"."].concat()),
    ("a place of the memo", PICKLE, |bytes| {
        [&b"N"[..].repeat(bytes)[..], b"r", &(bytes as u32).to_le_bytes(), b"."].concat()
    }),
    ("a far place of the memo", PICKLE, |_| b"Nr\x3f\x42\x0f\x00.".to_vec()),
    ("places of the memo", PICKLE, |bytes| [b"N", &b"\x94"[..].repeat(bytes)[..], b"."].concat()),
    ("a text with escapes", PICKLE, |bytes| [b"S'", &b"\\n"[..].repeat(bytes / 2)[..], b"'\n."].concat()),
    ("empty points of a bad name", PROTOBUF, |bytes| metric(bytes / 2, b' ', bytes / 4)),
    ("empty points of a good name", PROTOBUF, |bytes| metric(bytes / 2, b'n', bytes / 4)),
    ("empty points of a short name", PROTOBUF, |bytes| metric(100, b'n', bytes / 2)),
    ("empty metrics", PROTOBUF, |bytes| b"\x0a\x00".repeat(bytes / 2)),
    ("fields that nobody knows", PROTOBUF, |bytes| b"\x18\x00".repeat(bytes / 2)),
    ("a line byte by byte", Parser::Lines(LineEnd::Lf, 1), |bytes| b"x".repeat(bytes)),
    ("short lines byte by byte", Parser::Lines(LineEnd::LfOrCr, 1), |bytes| b"x\n".repeat(bytes / 2)),
    ("lines that are cut by each read", Parser::Lines(LineEnd::Lf, 7), |bytes| {
        b"x\n123456789".repeat(bytes / 11)
    }),
    ("empty frames", Parser::Frames(LengthOrder::Big, 65_536), |bytes| vec![0; bytes]),
    ("a frame byte by byte", Parser::Frames(LengthOrder::Big, 1), |bytes| {
        [&(bytes as u32 + 1).to_be_bytes(), &b"x"[..].repeat(bytes)[..]].concat()
    }),
    ("small members", Parser::Compressed(Compression::Gzip, 65_536), |bytes| small(Compression::Gzip, bytes)),
    ("small frames", Parser::Compressed(Compression::Lz4, 65_536), |bytes| small(Compression::Lz4, bytes)),
    ("small chunks", Parser::Compressed(Compression::Snappy, 65_536), |bytes| {
        small(Compression::Snappy, bytes)
    }),
];

/// A pickle of a point with a name of this many bytes that ends in `last`, followed by `again`, `times` times.
fn repeated(name_bytes: usize, last: u8, again: &[u8], times: usize) -> Vec<u8> {
    let mut message = b"\x80\x02(X".to_vec();
    message.extend_from_slice(&(name_bytes as u32).to_le_bytes());
    message.resize(message.len() + name_bytes - 1, b'n');
    message.push(last);
    message.extend_from_slice(b"K\x07K\x08\x86\x86");
    message.extend_from_slice(&again.repeat(times));
    message.extend_from_slice(b"l.");
    message
}

/// A length of protobuf in five bytes, more than most need.
fn length(len: usize) -> [u8; 5] {
    std::array::from_fn(|at| (len >> (7 * at)) as u8 & 0x7F | if at < 4 { 0x80 } else { 0 })
}

/// A message of Riemann's with one event of these fields.
fn message(fields: &[u8]) -> Vec<u8> {
    [b"\x32", &length(fields.len())[..], fields].concat()
}

/// A payload of one metric with this many points of two bytes.
fn metric(name_bytes: usize, last: u8, points: usize) -> Vec<u8> {
    let mut metric = b"\x0a".to_vec();
    metric.extend(length(name_bytes));
    metric.resize(metric.len() + name_bytes - 1, b'n');
    metric.push(last);
    metric.extend_from_slice(&b"\x12\x00".repeat(points));
    let mut payload = b"\x0a".to_vec();
    payload.extend(length(metric.len()));
    payload.extend_from_slice(&metric);
    payload
}

/// One line compressed as a complete small stream, repeated.
fn small(compression: Compression, bytes: usize) -> Vec<u8> {
    let Some(mut compressor) = Compressor::new(compression) else { return Vec::new() };
    let mut one = Vec::new();
    compressor.push(b"a 1 2\n", &mut one);
    compressor.finish(&mut one);
    one.repeat(bytes / one.len() + 1)
}
