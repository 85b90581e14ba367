//! Parser for one management command.

use model::Kind;

use super::Form;
use crate::number::js_trim;

/// A client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// List of commands.
    Help,
    /// Statistics of the daemon.
    Stats,
    /// All series of one kind with their current values.
    Dump {
        /// Which kind.
        kind: Kind,
        /// As JSON: requested by `counters json`; always so in Perl mode.
        json: bool,
    },
    /// Delete series of one kind.
    Delete {
        /// Which kind.
        kind: Kind,
        /// Their names.
        names: Names<'a>,
    },
    /// Show the health state, after setting it if a state is given.
    Health {
        /// The state to set.
        set: Option<bool>,
    },
    /// The configuration.
    Config,
    /// Close the connection.
    Quit,
    /// State of each endpoint (our extension).
    Targets,
    /// Dropped records by reason (our extension).
    Drops,
    /// Unknown command: answered with an error.
    Unknown,
}

impl<'a> Command<'a> {
    /// Parses one command. Words are case-sensitive, except `up` and `down` after `health`.
    ///
    /// Node splits at single spaces, so two in a row produce an empty word. Perl splits at runs of white space, and
    /// has no `health` and no `config`.
    pub fn parse(form: Form, text: &'a [u8]) -> Command<'a> {
        let text = js_trim(text);
        let is_end = |byte: &u8| match form {
            Form::Node => *byte == b' ',
            Form::Perl => byte.is_ascii_whitespace(),
        };
        let (word, rest) = match text.iter().position(is_end) {
            Some(end) => (&text[..end], Some(&text[end + 1..])),
            None => (text, None),
        };
        let names = Names { form, rest };
        let dump = |kind| Command::Dump { kind, json: form == Form::Perl || names.first() == Some(b"json") };
        let delete = |kind| Command::Delete { kind, names };
        match word {
            b"help" => Command::Help,
            b"stats" => Command::Stats,
            b"counters" => dump(Kind::Counter),
            b"timers" => dump(Kind::Timer),
            b"gauges" => dump(Kind::Gauge),
            b"sets" => dump(Kind::Set),
            b"delcounters" => delete(Kind::Counter),
            b"deltimers" => delete(Kind::Timer),
            b"delgauges" => delete(Kind::Gauge),
            b"delsets" => delete(Kind::Set),
            b"quit" => Command::Quit,
            b"targets" => Command::Targets,
            b"drops" => Command::Drops,
            b"config" if form == Form::Node => Command::Config,
            b"health" if form == Form::Node => Command::Health { set: names.first().and_then(up_or_down) },
            _ => Command::Unknown,
        }
    }
}

fn up_or_down(word: &[u8]) -> Option<bool> {
    if word.eq_ignore_ascii_case(b"up") {
        Some(true)
    } else if word.eq_ignore_ascii_case(b"down") {
        Some(false)
    } else {
        None
    }
}

/// The words after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names<'a> {
    form: Form,
    rest: Option<&'a [u8]>,
}

impl<'a> Names<'a> {
    /// Each word, in order. In node mode it may be empty, and is then a series name like any other.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let perl = self.form == Form::Perl;
        let words = self.rest.into_iter().flat_map(move |rest| {
            rest.split(move |byte| if perl { byte.is_ascii_whitespace() } else { *byte == b' ' })
        });
        words.filter(move |word| !(perl && word.is_empty()))
    }

    fn first(self) -> Option<&'a [u8]> {
        self.iter().next()
    }
}

/// Which series a name in a delete command matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern<'a> {
    /// The series of exactly this name.
    Exact(&'a [u8]),
    /// Every series whose name starts with this.
    Prefix(&'a [u8]),
}

impl<'a> Pattern<'a> {
    /// In node mode a final `.*` matches every name that starts with the text before the `*`, dot included; any
    /// other `*` is a plain character. Perl mode has no patterns.
    pub fn of(form: Form, name: &'a [u8]) -> Pattern<'a> {
        match name.strip_suffix(b"*") {
            Some(prefix) if form == Form::Node && prefix.ends_with(b".") => Pattern::Prefix(prefix),
            _ => Pattern::Exact(name),
        }
    }
}
