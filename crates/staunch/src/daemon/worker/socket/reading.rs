//! Whether a datagram socket can be read: after an error it rests for a moment and is read again, unless the error is
//! permanent.

use std::io;

use model::SECOND_NS;

/// Rest after a transient error. Packets wait in the socket meanwhile.
const PAUSE_NS: u64 = SECOND_NS / 100;

/// A repeated error is logged at most once in this time.
const LOG_EVERY_NS: u64 = 60 * SECOND_NS;

/// State of one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    state: State,
    /// When an error was last logged, monotonic nanoseconds.
    logged_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Works,
    /// Not before this.
    Rests { until_ns: u64 },
    /// Never again.
    Ended,
}

/// What to log about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Nothing: it was logged a moment ago.
    None,
    /// That the socket is read again in a moment.
    Passing,
    /// That it is left alone from now on.
    Final,
}

impl Reading {
    /// True when it may be read; `now_ns` is only called when the time matters.
    #[inline]
    pub fn is_due(&self, now_ns: impl FnOnce() -> u64) -> bool {
        match self.state {
            State::Works => true,
            State::Rests { until_ns } => now_ns() >= until_ns,
            State::Ended => false,
        }
    }

    /// True when poll may wait for it: a socket that rests would be ready all the time.
    pub fn is_watched(&self) -> bool {
        self.state == State::Works
    }

    /// When it has to be read again; never when it is watched, or ended.
    pub fn due_ns(&self) -> u64 {
        match self.state {
            State::Rests { until_ns } => until_ns,
            State::Works | State::Ended => u64::MAX,
        }
    }

    /// Reading has worked.
    #[inline]
    pub fn works(&mut self) {
        self.state = State::Works;
    }

    /// Reading has failed.
    pub fn failed(&mut self, error: &io::Error, now_ns: u64) -> Word {
        if sys::is_final_for_reading(error) {
            self.state = State::Ended;
            return Word::Final;
        }
        self.state = State::Rests { until_ns: now_ns + PAUSE_NS };
        if self.logged_ns.is_some_and(|logged_ns| now_ns.saturating_sub(logged_ns) < LOG_EVERY_NS) {
            return Word::None;
        }
        self.logged_ns = Some(now_ns);
        Word::Passing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::errno;

    #[test]
    fn an_error_that_passes_is_a_rest_and_no_end() {
        for number in [errno::ENOBUFS, errno::ENOMEM, errno::ECONNREFUSED, errno::EHOSTUNREACH] {
            let mut reading = Reading::default();
            assert!(reading.is_due(|| panic!("nobody need know the time")) && reading.is_watched());
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(reading.failed(&error, 5), Word::Passing, "{error}");
            assert_eq!(reading.due_ns(), 5 + PAUSE_NS);
            assert!(
                !reading.is_watched() && !reading.is_due(|| 4 + PAUSE_NS) && reading.is_due(|| 5 + PAUSE_NS)
            );
            assert_eq!(reading.failed(&error, 5 + PAUSE_NS), Word::None, "it goes on");
            reading.works();
            assert!(reading.is_watched() && reading.due_ns() == u64::MAX);
            assert_eq!(reading.failed(&error, LOG_EVERY_NS), Word::None);
            assert_eq!(reading.failed(&error, 5 + LOG_EVERY_NS), Word::Passing);
        }
    }

    #[test]
    fn a_socket_that_is_none_ends() {
        for number in [errno::EBADF, errno::ENOTSOCK] {
            let mut reading = Reading::default();
            assert_eq!(reading.failed(&io::Error::from_raw_os_error(number), 0), Word::Final);
            assert!(!reading.is_due(|| u64::MAX) && !reading.is_watched() && reading.due_ns() == u64::MAX);
        }
    }
}
