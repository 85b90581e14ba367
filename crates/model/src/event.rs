//! Events: DogStatsD events and service checks today, Riemann's records later.

/// What kind of event this is, and the fields that only it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A DogStatsD event (`_e{…}`).
    Event {
        /// `normal` or `low`.
        low_priority: bool,
        /// `error`, `warning`, `info` or `success`.
        alert: &'static str,
        /// Key that groups events; empty when absent.
        aggregation_key: String,
        /// Source type name; empty when absent.
        source_type: String,
    },
    /// A DogStatsD service check (`_sc|…`).
    Check,
}

/// State of the thing that the event speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventState {
    /// No state given.
    None,
    /// Check status 0.
    Ok,
    /// Check status 1.
    Warning,
    /// Check status 2.
    Critical,
    /// Check status 3.
    Unknown,
}

impl EventState {
    /// The word that Riemann uses for it; empty for none.
    pub fn word(self) -> &'static str {
        match self {
            EventState::None => "",
            EventState::Ok => "ok",
            EventState::Warning => "warning",
            EventState::Critical => "critical",
            EventState::Unknown => "unknown",
        }
    }
}

/// One event. Rare beside samples, so it owns its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind and the fields of that kind.
    pub kind: EventKind,
    /// Title of an event, name of a check.
    pub service: String,
    /// Text of an event, message of a check.
    pub description: String,
    /// State of a check.
    pub state: EventState,
    /// Host named by the client; empty when absent.
    pub host: String,
    /// Unix seconds, by the client or of arrival.
    pub time_s: u64,
    /// Tags as sent, without doubles, in order of arrival.
    pub tags: Vec<String>,
    /// DogStatsD container id; empty when absent.
    pub container: String,
    /// Optional fields that were there but not understood, and left out.
    pub fields_ignored: u32,
}

impl Event {
    /// Memory that the event holds.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Event>()
            + self.service.capacity()
            + self.description.capacity()
            + self.host.capacity()
            + self.container.capacity()
            + self.tags.iter().map(|tag| size_of::<String>() + tag.capacity()).sum::<usize>()
    }
}
