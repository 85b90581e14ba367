//! carbon-cache's query protocol, CarbonLink: what graphite-web asks about points that are not in their files yet (spec graphite §1.5).
//!
//! Path of a request: a frame with a length of four bytes -> **[`request`]** -> the store -> **[`Reply`]** -> a frame.
//! Not here: frames (`frame`), the opcodes (`pickle`), points.
//! Invariants: any bytes give a request or an error; the work is linear in the message, and a request has at most [`NAMES_MAX`] names.

use crate::pickle::{Items, Pickle, PickleError, PickleReader, ValueRef};

/// Most bytes of a request.
pub const REQUEST_BYTES_MAX: usize = 64 << 20;

/// Most names of one request.
pub const NAMES_MAX: usize = 100_000;

/// Most bytes of the names of one request together. A pickle can name a long string many times.
pub const NAMES_BYTES_MAX: usize = 16 << 20;

/// Opcodes' work between two looks at the limit of a request.
const STEP_BYTES: usize = 1 << 20;

/// A question. Texts are as sent: names are not in normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// `cache-query`: the points of one series.
    Points(Vec<u8>),
    /// `cache-query-bulk`: the points of several series.
    PointsOfMany(Vec<Vec<u8>>),
    /// `get-metadata`: a property of a file.
    GetMetadata {
        /// The series.
        name: Vec<u8>,
        /// The property.
        key: Vec<u8>,
    },
    /// `set-metadata`: the same, changed.
    SetMetadata {
        /// The series.
        name: Vec<u8>,
        /// The property.
        key: Vec<u8>,
        /// Its new value.
        value: Vec<u8>,
    },
}

/// Why a message is no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadRequest {
    /// It is no pickle of plain data: the connection is closed.
    Pickle(PickleError),
    /// It is a pickle, but nothing that can be answered; the client gets this text.
    Content(String),
}

impl BadRequest {
    fn content(why: impl Into<String>) -> BadRequest {
        BadRequest::Content(why.into())
    }
}

/// Decodes the message of a frame.
///
/// # Errors
/// It is no pickle, or no request that can be answered.
pub fn request(message: &[u8]) -> Result<Request, BadRequest> {
    let mut reader = PickleReader::default();
    let pickle = loop {
        if let Some(pickle) = reader.step(message, STEP_BYTES).map_err(BadRequest::Pickle)? {
            break pickle;
        }
    };
    of(&pickle, message)
}

fn of(pickle: &Pickle, message: &[u8]) -> Result<Request, BadRequest> {
    let ValueRef::Dict(dict) = pickle.root(message) else {
        return Err(BadRequest::content("a request is a dict"));
    };
    let kind = text(dict, b"type")?;
    match &*kind {
        b"cache-query" => Ok(Request::Points(text(dict, b"metric")?)),
        b"cache-query-bulk" => names(dict).map(Request::PointsOfMany),
        b"get-metadata" => {
            Ok(Request::GetMetadata { name: text(dict, b"metric")?, key: text(dict, b"key")? })
        }
        b"set-metadata" => Ok(Request::SetMetadata {
            name: text(dict, b"metric")?,
            key: text(dict, b"key")?,
            value: text(dict, b"value")?,
        }),
        other => {
            let shown: String = String::from_utf8_lossy(other).chars().take(100).collect();
            Err(BadRequest::Content(format!("Invalid request type \"{shown}\"")))
        }
    }
}

/// The value of a key of a dict: the last one, if it has several.
fn value<'a>(dict: Items<'a>, key: &[u8]) -> Result<ValueRef<'a>, BadRequest> {
    let pairs = (0..dict.len() / 2).rev();
    let found = pairs
        .map(|pair| 2 * pair)
        .find(|at| matches!(dict.nth(*at), Some(ValueRef::Text(text)) if text == key));
    let missing = || BadRequest::Content(format!("the request has no `{}`", String::from_utf8_lossy(key)));
    found.and_then(|at| dict.nth(at + 1)).ok_or_else(missing)
}

fn text(dict: Items<'_>, key: &[u8]) -> Result<Vec<u8>, BadRequest> {
    match value(dict, key)? {
        ValueRef::Text(text) => Ok(text.to_vec()),
        _ => Err(BadRequest::Content(format!("`{}` is not a string", String::from_utf8_lossy(key)))),
    }
}

fn names(dict: Items<'_>) -> Result<Vec<Vec<u8>>, BadRequest> {
    let ValueRef::Items(names) = value(dict, b"metrics")? else {
        return Err(BadRequest::content("`metrics` is not a list"));
    };
    if names.len() > NAMES_MAX {
        return Err(BadRequest::Content(format!("`metrics` has more than {NAMES_MAX} names")));
    }
    let mut bytes = 0;
    let name = |value: ValueRef<'_>| {
        let ValueRef::Text(name) = value else {
            return Err(BadRequest::content("a name in `metrics` is not a string"));
        };
        bytes += name.len();
        if bytes > NAMES_BYTES_MAX {
            return Err(BadRequest::Content(format!("`metrics` has more than {NAMES_BYTES_MAX} bytes")));
        }
        Ok(name.to_vec())
    };
    names.iter().map(name).collect()
}

/// A reply while it is written: a frame with a pickle of protocol 2.
#[derive(Debug)]
pub struct Reply(Vec<u8>);

impl Reply {
    /// The points of one series.
    pub fn points(points: impl Iterator<Item = (i64, f64)>) -> Vec<u8> {
        let mut reply = Reply::dict();
        reply.text(b"datapoints");
        reply.list(points);
        reply.0.push(b's');
        reply.end()
    }

    /// The points of several series: begins the reply, to which each series is added.
    pub fn of_many() -> Reply {
        let mut reply = Reply::dict();
        reply.text(b"datapointsByMetric");
        reply.0.push(b'}');
        reply
    }

    /// Adds a series to [`Reply::of_many`].
    pub fn add(&mut self, name: &[u8], points: impl Iterator<Item = (i64, f64)>) {
        self.text(name);
        self.list(points);
        self.0.push(b's');
    }

    /// The frame of [`Reply::of_many`].
    pub fn finish(mut self) -> Vec<u8> {
        self.0.push(b's');
        self.end()
    }

    /// A dict of texts, such as `{'error': …}`.
    pub fn texts(pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut reply = Reply::dict();
        for (key, value) in pairs {
            reply.text(key.as_bytes());
            reply.text(value.as_bytes());
            reply.0.push(b's');
        }
        reply.end()
    }

    fn dict() -> Reply {
        // Room for the length.
        Reply(b"\0\0\0\0\x80\x02}".to_vec())
    }

    /// Bytes that are not UTF-8 are replaced: a pickle's string has to be UTF-8.
    fn text(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        self.0.push(b'X');
        self.0.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn list(&mut self, points: impl Iterator<Item = (i64, f64)>) {
        self.0.extend_from_slice(b"](");
        for (time, value) in points {
            for number in [time as f64, value] {
                self.0.push(b'G');
                self.0.extend_from_slice(&number.to_be_bytes());
            }
            self.0.push(b'\x86');
        }
        self.0.push(b'e');
    }

    fn end(mut self) -> Vec<u8> {
        self.0.push(b'.');
        let length = (self.0.len() - 4) as u32;
        self.0[..4].copy_from_slice(&length.to_be_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pickle::tests::bytes;

    #[test]
    fn requests_of_graphite_web_are_read() {
        let sent = bytes(
            "80027d7100285804000000747970657101580b00000063616368652d7175657279710258060000006d657472696371035805000000702e6d35397104752e",
        );
        assert_eq!(request(&sent), Ok(Request::Points(b"p.m59".to_vec())));
        // The text protocol, as in `pickle.dumps(request, 0)`.
        let bulk = b"(dp0\nVtype\np1\nVcache-query-bulk\np2\nsVmetrics\np3\n(lp4\nVa.b\np5\naVc\np6\nas.";
        assert_eq!(request(bulk), Ok(Request::PointsOfMany(vec![b"a.b".to_vec(), b"c".to_vec()])));
        let get = b"(dVtype\nVget-metadata\nsVmetric\nVa\nsVkey\nVaggregationMethod\ns.";
        let want = Request::GetMetadata { name: b"a".to_vec(), key: b"aggregationMethod".to_vec() };
        assert_eq!(request(get), Ok(want));
    }

    #[test]
    fn what_is_no_request_is_an_error_with_its_reason() {
        for (message, want) in [
            (&b"]."[..], "a request is a dict"),
            (b"}.", "the request has no `type`"),
            (b"(dVtype\nVx\ns.", "Invalid request type \"x\""),
            (b"(dVtype\nI5\ns.", "`type` is not a string"),
            (b"(dVtype\nVcache-query\ns.", "the request has no `metric`"),
            (b"(dVtype\nVcache-query-bulk\nsVmetrics\nVa\ns.", "`metrics` is not a list"),
            (b"(dVtype\nVcache-query-bulk\nsVmetrics\n(lI1\nas.", "a name in `metrics` is not a string"),
        ] {
            assert_eq!(request(message), Err(BadRequest::content(want)), "{message:?}");
        }
        // A name of a megabyte, seventeen times.
        let mut message =
            b"}X\x04\0\0\0typeX\x10\0\0\0cache-query-bulksX\x07\0\0\0metrics](X\0\0\x10\0".to_vec();
        message.extend([b'a'].repeat(1 << 20));
        message.extend(b"q\x01");
        message.extend(b"h\x01".repeat(16));
        message.extend(b"es.");
        let want = BadRequest::Content(format!("`metrics` has more than {NAMES_BYTES_MAX} bytes"));
        assert_eq!(request(&message), Err(want));
        assert!(matches!(request(b"cos\nsystem\n(Vls\ntR."), Err(BadRequest::Pickle(_))));
        assert!(matches!(request(b""), Err(BadRequest::Pickle(_))));
    }

    /// Reads a reply as the client does.
    fn read(frame: &[u8]) -> String {
        let (length, message) = frame.split_first_chunk::<4>().expect("a length");
        assert_eq!(u32::from_be_bytes(*length) as usize, message.len());
        let mut reader = PickleReader::default();
        let pickle = loop {
            if let Some(pickle) = reader.step(message, 64).expect("a pickle") {
                break pickle;
            }
        };
        shown(pickle.root(message))
    }

    fn shown(value: ValueRef<'_>) -> String {
        let all = |items: Items<'_>| items.iter().map(shown).collect::<Vec<_>>().join(" ");
        match value {
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            ValueRef::Float(number) => number.to_string(),
            ValueRef::Items(items) => format!("[{}]", all(items)),
            ValueRef::Dict(items) => format!("{{{}}}", all(items)),
            ValueRef::None | ValueRef::Whole(_) | ValueRef::Huge => "?".to_owned(),
        }
    }

    #[test]
    fn replies_are_read_back() {
        let points = || [(1_795_204_993, 88.5), (1_795_204_994, -0.5)].into_iter();
        assert_eq!(read(&Reply::points(points())), "{datapoints [[1795204993 88.5] [1795204994 -0.5]]}");
        assert_eq!(read(&Reply::points(std::iter::empty())), "{datapoints []}");
        let mut many = Reply::of_many();
        many.add(b"a", points().take(1));
        many.add("\u{e9}".as_bytes(), std::iter::empty());
        assert_eq!(read(&many.finish()), "{datapointsByMetric {a [[1795204993 88.5]] \u{e9} []}}");
        assert_eq!(read(&Reply::of_many().finish()), "{datapointsByMetric {}}");
        let texts = Reply::texts(&[("old_value", "sum"), ("new_value", "max")]);
        assert_eq!(read(&texts), "{old_value sum new_value max}");
    }
}
