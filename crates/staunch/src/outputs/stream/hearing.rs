//! Replies of an endpoint: a limit on reading, so that other tasks have their turn.
//!
//! Graphite and StatsD never reply, and OpenTSDB replies to lines that it rejects. Replies are counted, one line is logged
//! once a minute, and they are dropped. An endpoint that sends without end would keep its task, and the thread of all
//! outputs and connections, busy with reading. After [`AT_ONCE_BYTES_MAX`] it is not read for [`REST_NS`], so its own
//! kernel makes it wait. Not here: sockets (`stream`).

/// Most bytes that are read without a pause.
const AT_ONCE_BYTES_MAX: usize = 64 * 1024;

/// Length of the pause.
const REST_NS: u64 = model::SECOND_NS / 100;

/// Most bytes of a reply that are quoted.
const QUOTED_BYTES_MAX: usize = 80;

/// The beginning of a TLS alert: its type, and the first half of a version 3.x.
const TLS_ALERT: [u8; 2] = [21, 3];

/// The bytes read from an endpoint.
#[derive(Debug, Default)]
pub struct Hearing {
    /// Since the last pause.
    heard: usize,
    /// The end of the pause; 0 for none.
    until_ns: u64,
    /// Whether it has sent anything yet, and whether that was a TLS alert.
    begin: Option<bool>,
}

impl Hearing {
    /// Notes bytes that were read.
    pub fn heard(&mut self, bytes: &[u8], now_ns: impl FnOnce() -> u64) {
        if !bytes.is_empty() {
            self.begin.get_or_insert_with(|| bytes.starts_with(&TLS_ALERT));
        }
        self.heard += bytes.len();
        if self.heard >= AT_ONCE_BYTES_MAX {
            (self.heard, self.until_ns) = (0, now_ns() + REST_NS);
        }
    }

    /// The first bytes were a TLS alert: the endpoint expects TLS.
    pub fn is_tls_alert(&self) -> bool {
        self.begin == Some(true)
    }

    /// Nanoseconds until the end of the pause.
    pub fn rest_ns(&self, now_ns: impl FnOnce() -> u64) -> u64 {
        if self.until_ns == 0 { 0 } else { self.until_ns.saturating_sub(now_ns()) }
    }
}

/// The first line of a reply, which identifies HTTP servers and other programs.
#[derive(Debug, Default)]
pub struct FirstLine(Vec<u8>);

impl FirstLine {
    /// Notes bytes that were read.
    pub fn heard(&mut self, bytes: &[u8]) {
        let room = (QUOTED_BYTES_MAX + 1).saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The line, escaped and cut; `None` without a reply.
    pub fn quoted(&self) -> Option<String> {
        let line = self.0.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let cut = if line.len() > QUOTED_BYTES_MAX { "…" } else { "" };
        let line = line[..line.len().min(QUOTED_BYTES_MAX)].trim_ascii();
        (!line.is_empty()).then(|| format!("{}{cut}", line.escape_ascii()))
    }
}

/// How often a line of an endpoint's answers is logged at most.
const LOGGED_EVERY_NS: u64 = 60 * model::SECOND_NS;

/// What an endpoint has answered since it was last taken.
#[derive(Debug, Default)]
pub struct Answers {
    lines: u64,
    first: FirstLine,
    logged_ns: Option<u64>,
}

impl Answers {
    /// This was read.
    pub fn heard(&mut self, bytes: &[u8]) {
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.first.heard(bytes);
    }

    /// Lines that have ended since, and the first of them; none while none has.
    pub fn take(&mut self) -> Option<(u64, Option<String>)> {
        if self.lines == 0 {
            return None;
        }
        let quoted = std::mem::take(&mut self.first).quoted();
        Some((std::mem::take(&mut self.lines), quoted))
    }

    /// True once a minute.
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        let is_due =
            self.logged_ns.is_none_or(|logged_ns| now_ns.saturating_sub(logged_ns) >= LOGGED_EVERY_NS);
        if is_due {
            self.logged_ns = Some(now_ns);
        }
        is_due
    }
}

#[test]
fn answers_are_counted_by_line_and_logged_once_a_minute() {
    let mut answers = Answers::default();
    answers.heard(b"put: illegal");
    assert_eq!(answers.take(), None, "the line has not ended");
    answers.heard(b" argument: x\nput: y\n");
    assert_eq!(answers.take(), Some((2, Some("put: illegal argument: x".to_owned()))));
    assert_eq!(answers.take(), None);
    let due = [5, 5 + LOGGED_EVERY_NS - 1, 5 + LOGGED_EVERY_NS].map(|now_ns| answers.is_due(now_ns));
    assert_eq!(due, [true, false, true]);
}

#[test]
fn the_first_line_of_an_answer_is_quoted_escaped_and_cut() {
    let long = "x".repeat(QUOTED_BYTES_MAX);
    let longer = format!("{long}y");
    for (said, want) in [
        (
            &[&b"HTTP/1.1 400 Bad Request\r\nServer: a\r\n"[..]][..],
            Some("HTTP/1.1 400 Bad Request".to_owned()),
        ),
        (&[b"ERR", b"OR\nmore"], Some("ERROR".to_owned())),
        (&[b"\x1b[31m\xff"], Some("\\x1b[31m\\xff".to_owned())),
        (&[long.as_bytes()], Some(long.clone())),
        (&[longer.as_bytes(), &[b'z'; 4096]], Some(format!("{long}…"))),
        (&[b"\r\n"], None),
        (&[], None),
    ] {
        let mut line = FirstLine::default();
        said.iter().for_each(|bytes| line.heard(bytes));
        assert_eq!(line.quoted(), want, "{said:?}");
        assert!(line.0.len() <= QUOTED_BYTES_MAX + 1);
    }
}

#[test]
fn an_endpoint_that_sends_without_end_is_read_with_pauses() {
    let mut hearing = Hearing::default();
    let unasked = || panic!("who is quiet costs no look at the clock");
    for _ in 1..AT_ONCE_BYTES_MAX {
        hearing.heard(b"x", unasked);
    }
    assert_eq!(hearing.rest_ns(unasked), 0, "at the limit");
    hearing.heard(b"x", || 5);
    assert_eq!((hearing.rest_ns(|| 5), hearing.rest_ns(|| 6)), (REST_NS, REST_NS - 1), "past it");
    assert_eq!(hearing.rest_ns(|| 5 + REST_NS), 0);
    let (mut bytes, mut now_ns) = (0, 0);
    while now_ns < model::SECOND_NS {
        now_ns += hearing.rest_ns(|| now_ns);
        hearing.heard(&[0; 4096], || now_ns);
        bytes += 4096;
    }
    assert!(bytes <= 102 * AT_ONCE_BYTES_MAX, "{bytes} bytes in a second");
}

#[test]
fn an_alert_of_tls_differs_from_other_answers() {
    for (said, want) in [
        (&[&[21, 3, 3, 0, 2, 2, 40][..]][..], true),
        (&[b"", &[21, 3, 1], b"more"], true),
        (&[b"ERROR", &[21, 3, 3]], false),
        (&[b""], false),
    ] {
        let mut hearing = Hearing::default();
        for bytes in said {
            hearing.heard(bytes, || 0);
        }
        assert_eq!(hearing.is_tls_alert(), want, "{said:?}");
    }
}
