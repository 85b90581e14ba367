//! Replies of the management port, byte for byte: [`Replies`] for lines, [`Dump`] for tables of series.
//!
//! No state here: the owner of the state calls these writers with the requested values.

use super::Form;
use crate::number::js_format;
use crate::text::{integer, json_number, json_string, single_quoted};

/// Writes the replies of one mode. Each function appends to `out`. [`Replies::end`] ends a reply that has several
/// parts.
#[derive(Clone, Copy, Debug)]
pub struct Replies {
    form: Form,
}

/// One endpoint, for `targets`.
#[derive(Clone, Copy, Debug)]
pub struct TargetFigures<'a> {
    /// The output's name.
    pub name: &'a str,
    /// `up`, `degraded` or `down`.
    pub state: &'a str,
    /// Seconds in this state.
    pub since_s: u64,
    /// Copies delivered.
    pub delivered: u64,
    /// Copies dropped, rejected by peer or expired.
    pub lost: u64,
    /// Copies queued.
    pub waiting: u64,
    /// Bytes queued.
    pub queued_bytes: u64,
    /// The last error in words; empty for none.
    pub last_error: &'a str,
}

impl Replies {
    /// A writer for the replies of `form`.
    pub fn new(form: Form) -> Replies {
        Replies { form }
    }

    /// Answer to `help`.
    pub fn help(self, read_only: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.form {
            Form::Node if read_only => b"Commands: stats, counters, timers, gauges, health, config, quit\n\n",
            Form::Perl if read_only => b"Commands: stats, counters, timers, gauges, quit\r\n\r\n",
            Form::Node => {
                b"Commands: stats, counters, timers, gauges, delcounters, deltimers, delgauges, health, config, quit\n\n"
            }
            Form::Perl => {
                b"Commands: stats, counters, timers, gauges, delcounters, deltimers, delgauges, quit\r\n\r\n"
            }
        });
    }

    /// Answer to `help` where nobody compares it with the original's: with our extensions.
    pub fn help_with_extensions(self, read_only: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Commands: stats, counters, timers, gauges, sets");
        if !read_only {
            out.extend_from_slice(b", delcounters, deltimers, delgauges, delsets");
        }
        out.extend_from_slice(match self.form {
            Form::Node => b", health, config, targets, drops, quit\n\n",
            Form::Perl => b", targets, drops, quit\r\n\r\n",
        });
    }

    /// First lines of the answer to `stats`. [`Replies::stat`] and [`Replies::end`] follow.
    pub fn stats_begin(self, uptime_s: u64, last_message_ago_s: u64, bad_lines: u64, out: &mut Vec<u8>) {
        line(&[b"uptime"], uptime_s, out);
        line(&[b"messages.last_msg_seen"], last_message_ago_s, out);
        line(&[b"messages.bad_lines_seen"], bad_lines, out);
    }

    /// One figure of one output for `stats`: `graphite.flush_time: 3`.
    pub fn stat(self, output: &str, figure: &str, value: u64, out: &mut Vec<u8>) {
        line(&[output.as_bytes(), b".", figure.as_bytes()], value, out);
    }

    /// One time (Unix seconds) for `stats`, written as seconds ago, as all statistics whose name starts with `last_`.
    pub fn stat_ago(self, output: &str, figure: &str, then_s: u64, now_s: u64, out: &mut Vec<u8>) {
        self.stat(output, figure, now_s.saturating_sub(then_s), out);
    }

    /// One name that was deleted.
    pub fn deleted(self, name: &[u8], out: &mut Vec<u8>) {
        for piece in [b"deleted: ", name, b"\n"] {
            out.extend_from_slice(piece);
        }
    }

    /// One name that matched no series. Perl mode answers `deleted` all the same.
    pub fn not_found(self, name: &[u8], out: &mut Vec<u8>) {
        if self.form == Form::Perl {
            return self.deleted(name, out);
        }
        for piece in [b"metric ".as_slice(), name, b" not found\n"] {
            out.extend_from_slice(piece);
        }
    }

    /// End of the answer to a delete command; Perl mode writes an empty line before it.
    pub fn delete_end(self, out: &mut Vec<u8>) {
        if self.form == Form::Perl {
            out.push(b'\n');
        }
        self.end(out);
    }

    /// End of the answers to `stats`, `targets` and `drops`.
    pub fn end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"END\n\n");
    }

    /// Answer to `health`.
    pub fn health(self, up: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(if up { b"health: up\n" } else { b"health: down\n" });
    }

    /// Answer to `config`: pairs of a key, or `key > member`, and its value. It has no end line.
    pub fn config<'a>(self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>, out: &mut Vec<u8>) {
        out.push(b'\n');
        for (key, value) in pairs {
            for piece in [key, ": ", value, "\n"] {
                out.extend_from_slice(piece.as_bytes());
            }
        }
    }

    /// Answer to an unknown command.
    pub fn error(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ERROR\n");
    }

    /// Answer to a command that changes state, on a read-only port. Its first word is that of [`Replies::error`],
    /// which clients of the original programs recognise.
    pub fn refused_read_only(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ERROR: read only\n");
    }

    /// One endpoint of the answer to `targets`; then [`Replies::end`].
    pub fn target(self, target: &TargetFigures<'_>, out: &mut Vec<u8>) {
        let name = target.name.as_bytes();
        words(name, b".state", target.state, out);
        line(&[name, b".since"], target.since_s, out);
        line(&[name, b".delivered"], target.delivered, out);
        line(&[name, b".lost"], target.lost, out);
        line(&[name, b".waiting"], target.waiting, out);
        line(&[name, b".queued_bytes"], target.queued_bytes, out);
        if !target.last_error.is_empty() {
            words(name, b".last_error", target.last_error, out);
        }
    }

    /// One reason of the answer to `drops`: `app.rejected.bad_value: 3`; then [`Replies::end`]. `owner` is the
    /// source or output, the rest is one entry of its [`model::Losses`].
    pub fn drop(self, owner: &str, family: &str, reason: &str, count: u64, out: &mut Vec<u8>) {
        line(&[owner.as_bytes(), b".", family.as_bytes(), b".", reason.as_bytes()], count, out);
    }
}

fn line(name: &[&[u8]], value: u64, out: &mut Vec<u8>) {
    for piece in name {
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(b": ");
    integer(value, out);
    out.push(b'\n');
}

/// A line whose value is text; line ends within it become spaces.
fn words(name: &[u8], figure: &[u8], value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(figure);
    out.extend_from_slice(b": ");
    out.extend(value.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
    out.push(b'\n');
}

/// Writes the answer to `counters`, `timers`, `gauges` or `sets`, a value at a time: `begin`, entries, `end`.
///
/// As text: node's object notation, one entry per line, names always quoted, nothing truncated. As JSON: one line, with
/// a space after each `:` and `,`.
#[derive(Debug)]
pub struct Dump {
    json: bool,
    entries: u64,
    /// Number of values written to the current list.
    values: u64,
}

impl Dump {
    /// Begins the answer. `json` as [`super::Command::Dump`] says.
    pub fn begin(json: bool, out: &mut Vec<u8>) -> Dump {
        out.push(b'{');
        Dump { json, entries: 0, values: 0 }
    }

    /// A counter or gauge with its value.
    pub fn number(&mut self, name: &[u8], value: f64, out: &mut Vec<u8>) {
        self.name(name, out);
        self.value(value, out);
    }

    /// Begins a timer or a set. [`Dump::list_number`] or [`Dump::list_text`] adds each of its values, and
    /// [`Dump::list_end`] ends it.
    pub fn list_begin(&mut self, name: &[u8], out: &mut Vec<u8>) {
        self.name(name, out);
        out.push(b'[');
        self.values = 0;
    }

    /// A value of a timer.
    pub fn list_number(&mut self, value: f64, out: &mut Vec<u8>) {
        self.next_value(out);
        self.value(value, out);
    }

    /// A member of a set.
    pub fn list_text(&mut self, member: &[u8], out: &mut Vec<u8>) {
        self.next_value(out);
        self.text(member, out);
    }

    /// The end of a timer or set.
    pub fn list_end(&mut self, out: &mut Vec<u8>) {
        if self.values > 0 && !self.json {
            out.push(b' ');
        }
        out.push(b']');
    }

    /// Ends the answer.
    pub fn end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.json || self.entries == 0 { b"}" } else { b" }" });
        out.extend_from_slice(b"\nEND\n\n");
    }

    fn name(&mut self, name: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(match (self.entries, self.json) {
            (0, true) => b"",
            (0, false) => b" ",
            (_, true) => b", ",
            (_, false) => b",\n  ",
        });
        self.entries += 1;
        self.text(name, out);
        out.extend_from_slice(b": ");
    }

    fn text(&self, text: &[u8], out: &mut Vec<u8>) {
        if self.json { json_string(text, out) } else { single_quoted(text, out) }
    }

    fn value(&self, value: f64, out: &mut Vec<u8>) {
        if self.json { json_number(value, out) } else { js_format(value, out) }
    }

    fn next_value(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(match (self.values, self.json) {
            (0, true) => b"",
            (0, false) => b" ",
            _ => b", ",
        });
        self.values += 1;
    }
}
