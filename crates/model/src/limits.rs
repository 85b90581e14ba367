//! Limits on memory that clients can make the daemon use. Each is the default of an option or a constant of a protocol.

/// Largest datagram of any socket: the buffer size of UDP and unix datagram readers.
pub const DATAGRAM_BYTES_MAX: usize = 65_535;

/// Longest line on a stream, LF excluded; longer ones are discarded up to their LF as `line_too_long`.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// Longest piece of a line that the log quotes, in bytes before they are escaped.
pub const QUOTED_BYTES_MAX: usize = 100;

/// Most bytes of unfinished lines and frames of all connections together, above the share that each may always have.
pub const UNFINISHED_BYTES_MAX: u64 = 256 << 20;

/// Longest series name with its tags, in the dialects that limit it.
pub const KEY_BYTES_MAX: usize = 4 * 1024;

/// Most tags on one sample, in the dialects that limit them.
pub const TAGS_MAX: usize = 256;

/// Most tags of one event, whatever the options allow. A line of [`LINE_BYTES_MAX`] bytes has fewer.
pub const EVENT_TAGS_MAX: usize = 1 << 16;

/// Most values in the attributes of one event, those in lists and maps included.
pub const EVENT_ENTRIES_MAX: usize = 1024;

/// Most lists and maps around one value of an event.
pub const EVENT_NESTING_MAX: usize = 32;

/// Most recipients of a mail, copies included.
pub const MAIL_RECIPIENTS_MAX: usize = 100;

/// Most distinct series of one source before new ones are dropped as `series_max`.
pub const SERIES_MAX: u32 = 2_000_000;

/// Most bytes of the keys, values and members of one aggregation: 2 KiB for each of [`SERIES_MAX`] series.
pub const SERIES_BYTES_MAX: u64 = 4 << 30;

/// Members that a set keeps exactly before it becomes an estimate.
pub const SET_EXACT_MAX: usize = 4096;

/// Values that one timer keeps in a window before further ones are dropped as `timer_values_max`.
pub const TIMER_VALUES_MAX: usize = 1_000_000;

/// Most connections that one stream listener serves at once.
pub const CONNECTIONS_MAX: usize = 10_000;

/// Most outputs of a plan, including those removed by reloads since the start: an [`OutputId`](crate::OutputId) has 16
/// bits.
pub const OUTPUTS_MAX: usize = 1 << 16;
/// Most clients that one management port serves at once.
pub const MANAGEMENT_CONNECTIONS_MAX: usize = 256;

/// Default limit of connections of one peer: half of all, so that one peer cannot use up all of them.
pub const fn connections_per_peer(connections_max: usize) -> usize {
    if connections_max < 2 { 1 } else { connections_max / 2 }
}
