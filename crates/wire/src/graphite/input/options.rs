//! How a listener reads Graphite lines: the compatibility and its switches.

/// Whose reading of a line holds (spec graphite §1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compatibility {
    /// Ours: refuses whatever the next reader may refuse or read otherwise, and says why.
    Strict,
    /// carbon's: what Python makes of a line.
    Carbon,
    /// carbon-c-relay's: cleans the name and looks at nothing else.
    CRelay,
    /// go-carbon's: exactly one blank between fields.
    GoCarbon,
}

impl Compatibility {
    /// Every compatibility.
    pub const ALL: [Compatibility; 4] =
        [Compatibility::Strict, Compatibility::Carbon, Compatibility::CRelay, Compatibility::GoCarbon];

    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Compatibility::Strict => "strict",
            Compatibility::Carbon => "carbon",
            Compatibility::CRelay => "c-relay",
            Compatibility::GoCarbon => "go-carbon",
        }
    }
}

/// What of a name holds, and whether its tags are part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NameForm {
    /// Dots and tags in order; tags stand beside the name, which relays go by.
    #[default]
    Bare,
    /// Dots and tags in order; tags are part of the name.
    Tagged,
    /// As it was sent, tags and dots as they are: what carbon's relay hashes and sends on.
    AsSent,
}

impl NameForm {
    /// Every form.
    pub const ALL: [NameForm; 3] = [NameForm::Bare, NameForm::Tagged, NameForm::AsSent];

    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            NameForm::Bare => "bare",
            NameForm::Tagged => "tagged",
            NameForm::AsSent => "as_sent",
        }
    }
}

/// Switches of one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whose reading holds.
    pub compatibility: Compatibility,
    /// A line without a time means now; otherwise it is refused. `c-relay` looks at no times.
    pub missing_time_is_now: bool,
    /// Longest name without its tags, as it goes on, in bytes; 0 for none.
    pub name_bytes_max: u32,
    /// What of a name holds. `c-relay` has rules of its own.
    pub names: NameForm,
    /// `c-relay` only: bytes that names keep besides letters, digits and the dot.
    pub kept: Kept,
}

impl Options {
    /// What a compatibility means when nothing else is said.
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

/// `-c` of carbon-c-relay when it is not given.
impl Default for Kept {
    fn default() -> Kept {
        Kept::new(b"-_:#")
    }
}
