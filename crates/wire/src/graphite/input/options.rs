//! How a listener parses Graphite lines: the compatibility mode and its options.

/// The program whose line parsing is used (spec graphite §1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compatibility {
    /// Ours: rejects every line that another parser may reject or read differently, and logs why.
    Strict,
    /// carbon's: as Python parses a line.
    Carbon,
    /// carbon-c-relay's: sanitises the name and does not validate the rest.
    CRelay,
    /// go-carbon's: exactly one space between fields.
    GoCarbon,
}

impl Compatibility {
    /// Every compatibility mode.
    pub const ALL: [Compatibility; 4] =
        [Compatibility::Strict, Compatibility::Carbon, Compatibility::CRelay, Compatibility::GoCarbon];

    /// The value in config files.
    pub fn word(self) -> &'static str {
        match self {
            Compatibility::Strict => "strict",
            Compatibility::Carbon => "carbon",
            Compatibility::CRelay => "c-relay",
            Compatibility::GoCarbon => "go-carbon",
        }
    }
}

/// How names are normalised, and whether tags are part of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NameForm {
    /// Normalised dots and tags; tags are separate from the name, which relays route by.
    #[default]
    Bare,
    /// Normalised dots and tags; tags are part of the name.
    Tagged,
    /// As sent, with its tags and dots: carbon's relay hashes and forwards this.
    AsSent,
}

/// Options of one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Compatibility mode.
    pub compatibility: Compatibility,
    /// Lines without a time get the current time; otherwise they are rejected. `c-relay` does not check times.
    pub missing_time_is_now: bool,
    /// Longest name without its tags, after normalising, in bytes; 0 for no limit.
    pub name_bytes_max: u32,
    /// Normalisation of names. `c-relay` has rules of its own.
    pub names: NameForm,
    /// `c-relay` only: bytes that names keep in addition to letters, digits and the dot.
    pub kept: Kept,
}

impl Options {
    /// The default options of a compatibility mode.
    pub fn of(compatibility: Compatibility) -> Options {
        Options {
            compatibility,
            missing_time_is_now: false,
            name_bytes_max: 0,
            names: NameForm::default(),
            kept: Kept::default(),
        }
    }
}

impl Options {
    /// Whether the tags of a line are part of its name.
    pub fn names_have_tags(&self) -> bool {
        match self.compatibility {
            Compatibility::CRelay => self.kept.has(b';'),
            Compatibility::Strict | Compatibility::Carbon | Compatibility::GoCarbon => {
                self.names != NameForm::Bare
            }
        }
    }
}

/// A set of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept([u64; 4]);

impl Kept {
    /// The set of the bytes of `text`.
    pub fn new(text: &[u8]) -> Kept {
        let mut words = [0_u64; 4];
        for byte in text {
            words[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
        Kept(words)
    }

    /// True when `byte` is in it.
    pub fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    /// The bytes in it, ascending.
    pub fn bytes(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|byte| self.has(*byte))
    }
}

/// carbon-c-relay's default of `-c`.
impl Default for Kept {
    fn default() -> Kept {
        Kept::new(b"-_:#")
    }
}
