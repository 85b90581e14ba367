//! The result of parsing packets.

use model::{EventsBuilder, Extra, Reject, Sample, Span};

/// The result of parsing packets. Reuse it: [`Parsed::clear`] keeps the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// Observations, in order of arrival.
    pub samples: Vec<Sample>,
    /// Rare fields of samples, see [`Sample::extra`]. At most 65,535; equal consecutive ones are stored once.
    pub extras: Vec<Extra>,
    /// Events and service checks, in order of arrival.
    pub events: EventsBuilder,
    /// Lines, valid or not: node's `metrics_received`.
    pub lines: u64,
    /// Records rejected, by [`Reject::index`]. A line of several bits may be rejected in part.
    pub rejects: [u64; Reject::COUNT],
    /// The first invalid line and its reason, for the log message.
    pub first_reject: Option<(Reject, Span)>,
    /// `etsy`: lines whose last tag includes the fields after it (spec §2.2, §16.29).
    pub glued_tag_fields: u64,
    /// Optional fields of events and checks that are unknown or invalid.
    pub event_fields_ignored: u64,
    /// The name of every line that has one, valid or not, when [`Options::count_names`](super::Options::count_names) is set.
    pub names: Vec<Span>,
    /// Places of an event's tags in its line, while they are sorted.
    pub(super) tag_places: Vec<Span>,
}

// Not derived: the standard library has no default of such a long array.
impl Default for Parsed {
    fn default() -> Parsed {
        Parsed {
            samples: Vec::new(),
            extras: Vec::new(),
            events: EventsBuilder::default(),
            lines: 0,
            rejects: [0; Reject::COUNT],
            first_reject: None,
            glued_tag_fields: 0,
            event_fields_ignored: 0,
            names: Vec::new(),
            tag_places: Vec::new(),
        }
    }
}

impl Parsed {
    /// Empties it, and keeps the memory.
    pub fn clear(&mut self) {
        let Parsed { samples, extras, events, names, .. } = self;
        samples.clear();
        extras.clear();
        events.clear();
        names.clear();
        self.lines = 0;
        self.rejects = [0; Reject::COUNT];
        self.first_reject = None;
        self.glued_tag_fields = 0;
        self.event_fields_ignored = 0;
    }

    /// Gives memory back, so that each array keeps at most so many bytes. Call it when it is empty.
    pub fn shrink_to(&mut self, bytes_max: usize) {
        let Parsed { samples, extras, events, names, tag_places, .. } = self;
        samples.shrink_to(bytes_max / size_of::<Sample>());
        extras.shrink_to(bytes_max / size_of::<Extra>());
        events.shrink_to(bytes_max);
        names.shrink_to(bytes_max / size_of::<Span>());
        tag_places.shrink_to(bytes_max / size_of::<Span>());
    }

    /// Rejected records of all reasons.
    pub fn rejected(&self) -> u64 {
        self.rejects.iter().sum()
    }

    /// All records that need an outcome: samples, events and rejected records.
    pub fn records(&self) -> u64 {
        (self.samples.len() + self.events.len()) as u64 + self.rejected()
    }

    pub(super) fn reject(&mut self, why: Reject, count: u64, line: Span) {
        self.rejects[why.index()] += count;
        if self.first_reject.is_none() {
            self.first_reject = Some((why, line));
        }
    }
}
