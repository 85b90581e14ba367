//! Records of outputs that send requests, as their queues contain them: one line each.
//!
//! A line has the target of the request, its headers that depend on the event (`Name: value`) and its part of the body, with
//! tabs between them. An empty target is that of the output. Tabs, line feeds and backslashes within them are escaped. So a
//! queue on disk can be sent by a daemon whose templates have changed.

/// A record as it is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Target and headers, as they are written: records of the same ones may share a request.
    pub head: &'a [u8],
    body: &'a [u8],
}

/// Appends a line with its LF.
pub fn record_line<'a>(
    target: &[u8],
    headers: impl Iterator<Item = &'a [u8]>,
    body: &[u8],
    out: &mut Vec<u8>,
) {
    escape(target, out);
    for header in headers {
        out.push(b'\t');
        escape(header, out);
    }
    out.push(b'\t');
    escape(body, out);
    out.push(b'\n');
}

/// Reads a line without its LF. One without a tab is a body.
pub fn record(line: &[u8]) -> Record<'_> {
    match memchr::memrchr(b'\t', line) {
        Some(at) => Record { head: &line[..at], body: &line[at + 1..] },
        None => Record { head: b"", body: line },
    }
}

impl<'a> Record<'a> {
    /// Appends its part of the body.
    pub fn body(self, out: &mut Vec<u8>) {
        unescape(self.body, out);
    }

    /// The target, and each header that depends on the event.
    pub fn head_fields(self) -> impl Iterator<Item = Vec<u8>> + 'a {
        self.head.split(|byte| *byte == b'\t').map(|field| {
            let mut out = Vec::new();
            unescape(field, &mut out);
            out
        })
    }
}

fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            byte => out.push(*byte),
        }
    }
}

fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => out.push(match bytes.next() {
                Some(b't') => b'\t',
                Some(b'n') => b'\n',
                Some(other) => *other,
                None => b'\\',
            }),
            byte => out.push(*byte),
        }
    }
}

#[test]
fn records_are_read_as_they_were_written() {
    for (target, headers, body) in [
        (&b""[..], vec![], &b"{\"a\":\"\\n\"}"[..]),
        (b"/a?b", vec![&b"X: 1"[..], b"Y: a\tb"], b"line\nline\t\\"),
        (b"", vec![&b"X: "[..]], b""),
    ] {
        let mut line = Vec::new();
        record_line(target, headers.iter().copied(), body, &mut line);
        assert_eq!((line.pop(), line.contains(&b'\n')), (Some(b'\n'), false));
        let read = record(&line);
        let mut fields = read.head_fields();
        assert_eq!(fields.next().as_deref(), Some(target));
        assert_eq!(fields.collect::<Vec<_>>(), headers);
        let mut out = Vec::new();
        read.body(&mut out);
        assert_eq!(out, body);
    }
}
