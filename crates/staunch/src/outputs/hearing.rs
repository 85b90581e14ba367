//! What an endpoint says: how much of it is read before others have their turn.
//!
//! Graphite and StatsD never answer, and what does come is thrown away. An endpoint that talks without end would have its
//! task, and with it the thread of all outputs and connections, do nothing but read: past [`AT_ONCE_BYTES_MAX`] it is not
//! read for [`REST_NS`], which its own kernel makes it wait for.
//! Not here: sockets (`stream`).

/// Most bytes of answers that are read without a rest.
const AT_ONCE_BYTES_MAX: usize = 64 * 1024;

/// How long the rest is.
const REST_NS: u64 = model::SECOND_NS / 100;

/// How much of an endpoint's answers has been read.
#[derive(Debug, Default)]
pub struct Hearing {
    /// Since the last rest.
    heard: usize,
    /// When the rest ends; 0 for none.
    until_ns: u64,
}

impl Hearing {
    /// So many bytes were read.
    pub fn heard(&mut self, bytes: usize, now_ns: impl FnOnce() -> u64) {
        self.heard += bytes;
        if self.heard >= AT_ONCE_BYTES_MAX {
            *self = Hearing { heard: 0, until_ns: now_ns() + REST_NS };
        }
    }

    /// Nanoseconds for which nothing is to be read.
    pub fn rest_ns(&self, now_ns: impl FnOnce() -> u64) -> u64 {
        if self.until_ns == 0 { 0 } else { self.until_ns.saturating_sub(now_ns()) }
    }
}

#[test]
fn an_endpoint_that_talks_without_end_is_heard_now_and_then() {
    let mut hearing = Hearing::default();
    let unasked = || panic!("who is quiet costs no look at the clock");
    for _ in 1..AT_ONCE_BYTES_MAX {
        hearing.heard(1, unasked);
    }
    assert_eq!(hearing.rest_ns(unasked), 0, "at the limit");
    hearing.heard(1, || 5);
    assert_eq!((hearing.rest_ns(|| 5), hearing.rest_ns(|| 6)), (REST_NS, REST_NS - 1), "past it");
    assert_eq!(hearing.rest_ns(|| 5 + REST_NS), 0);
    let (mut bytes, mut now_ns) = (0, 0);
    while now_ns < model::SECOND_NS {
        now_ns += hearing.rest_ns(|| now_ns);
        hearing.heard(4096, || now_ns);
        bytes += 4096;
    }
    assert!(bytes <= 102 * AT_ONCE_BYTES_MAX, "{bytes} bytes in a second");
}
