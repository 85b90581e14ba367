//! One command's text to its meaning.

use model::Kind;

use super::Form;
use crate::number::js_trim;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// List of commands.
    Help,
    /// Figures about the daemon.
    Stats,
    /// All series of one kind with what they hold now.
    Dump {
        /// Which kind.
        kind: Kind,
        /// As JSON: asked for by `counters json`; always so in the Perl form.
        json: bool,
    },
    /// Forget series of one kind.
    Delete {
        /// Which kind.
        kind: Kind,
        /// Which ones.
        names: Names<'a>,
    },
    /// Tell the health, and set it first when there is a word for it.
    Health {
        /// The state to set.
        set: Option<bool>,
    },
    /// The configuration.
    Config,
    /// Close the connection.
    Quit,
    /// State of each endpoint (ours).
    Targets,
    /// What was lost, by reason (ours).
    Drops,
    /// None of these: answered with an error.
    Unknown,
}

impl<'a> Command<'a> {
    /// Reads one command. Words are case-sensitive, but `up` and `down` behind `health`.
    ///
    /// Node splits at single blanks, so that two of them in a row hold an empty word; Perl at runs of white
    /// space, and knows neither `health` nor `config`.
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

/// The words behind a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names<'a> {
    form: Form,
    rest: Option<&'a [u8]>,
}

impl<'a> Names<'a> {
    /// Each word, in order. In the node form it may be empty, and is then the name of a series as any other.
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

/// What a name in a delete command stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern<'a> {
    /// The series of this name.
    Exact(&'a [u8]),
    /// Every series whose name starts so.
    Prefix(&'a [u8]),
}

impl<'a> Pattern<'a> {
    /// In the node form a final `.*` means every name that starts with what is before the `*`, dot included;
    /// any other `*` is a plain character. The Perl form knows no patterns.
    pub fn of(form: Form, name: &'a [u8]) -> Pattern<'a> {
        match name.strip_suffix(b"*") {
            Some(prefix) if form == Form::Node && prefix.ends_with(b".") => Pattern::Prefix(prefix),
            _ => Pattern::Exact(name),
        }
    }
}
