//! The conversions of a rewriting output, for receivers of another dialect.

/// How tags are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagFormat {
    /// As they arrived, each in its own style.
    Keep,
    /// No tags, for receivers without tag support.
    Drop,
    /// All in one `#` field: `|#k:v,bare`. A `,` or `|` in a tag from a name becomes `_`.
    Dogstatsd,
    /// All in the name: `;k=v`, sorted and deduplicated (spec statsd §5.7).
    ///
    /// Bytes that would end the tag or the name become `_` (`;`, `:`, `|`, white space, in keys also `=`, `!`, `^`),
    /// and so does a `~` before a value. A bare tag gets the plan's `bare_tag_value`. A tag without key or value is
    /// omitted: carbon would reject the whole name for it.
    Graphite,
}

/// Conversion of DogStatsD's type `d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distributions {
    /// Unchanged.
    Keep,
    /// To `h`; to `ms` when histograms become timers.
    Histograms,
    /// To `ms`.
    Timers,
}

/// Conversion of gauges that begin with a sign or with `=`, for receivers that read a sign as a change of the stored
/// value and do not support `=` (spec statsd §1, §16.16).
///
/// An absolute value below 0 takes two lines then: `g:0|g` and `g:-5|g`. If the packet is lost between the two, the
/// receiver's gauge is 0 until the next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauges {
    /// Unchanged.
    Keep,
    /// The sender writes a sign for a change too: only `=-5` needs two lines, and `=5` becomes `5`. Signed values
    /// with a time (`T`), which are absolute in every dialect, are written as absolute.
    SignsAreChanges,
    /// The sender's sign is part of the number: `-5` needs two lines, and `+5` becomes `5`.
    SignsAreParts,
}

/// Fields that are removed, for receivers that reject lines with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    /// `c:`, the container id.
    pub container: bool,
    /// `e:`, external data.
    pub external: bool,
    /// `card:`, the tags' cardinality.
    pub cardinality: bool,
    /// `T`, the time: the receiver uses its own time.
    pub time: bool,
    /// Fields that no version of the protocol defines, and all but the last of repeated ones. Events keep their own
    /// fields.
    pub unknown: bool,
}

impl Strip {
    /// No field.
    pub const NONE: Strip =
        Strip { container: false, external: false, cardinality: false, time: false, unknown: false };
    /// All fields that node does not support.
    pub const ALL: Strip =
        Strip { container: true, external: true, cardinality: true, time: true, unknown: true };
}

/// The conversions; each is independent of the others.
///
/// With any of them, CRs at the end of lines and white space around types are removed too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// How tags are written.
    pub tags: TagFormat,
    /// One line for each value, for receivers that support neither `1:2:3|ms` nor `1|c:2|c`. A `:` in a set's member
    /// becomes `_`, and bits without a type are omitted.
    pub one_value_per_line: bool,
    /// Conversion of `d`.
    pub distributions: Distributions,
    /// `h` becomes `ms`. Classic receivers reject timers below 0, which histograms may be.
    pub histograms_as_timers: bool,
    /// Conversion of gauges with a sign.
    pub gauges: Gauges,
    /// Fields that are removed.
    pub strip: Strip,
    /// Keep events and service checks; otherwise they are omitted.
    pub events: bool,
}

impl Form {
    /// No conversion.
    pub const KEEP: Form = Form {
        tags: TagFormat::Keep,
        one_value_per_line: false,
        distributions: Distributions::Keep,
        histograms_as_timers: false,
        gauges: Gauges::Keep,
        strip: Strip::NONE,
        events: true,
    };

    /// For node and other classic servers without tags.
    pub const ETSY: Form = Form {
        tags: TagFormat::Drop,
        one_value_per_line: true,
        distributions: Distributions::Timers,
        histograms_as_timers: true,
        gauges: Gauges::SignsAreChanges,
        strip: Strip::ALL,
        events: false,
    };

    /// For node: as [`Form::ETSY`], with the tags in the name.
    pub const ETSY_TAGS: Form = Form { tags: TagFormat::Graphite, ..Form::ETSY };

    /// Move tags into the name; no other conversion.
    pub const GRAPHITE_TAGS: Form = Form { tags: TagFormat::Graphite, ..Form::KEEP };

    /// DogStatsD before version 1.1: `#` tags, one value per line, no container id, external data, time or
    /// cardinality (spec statsd §5.1).
    pub const DOGSTATSD_1_0: Form =
        Form { tags: TagFormat::Dogstatsd, one_value_per_line: true, strip: Strip::ALL, ..Form::KEEP };

    /// The predefined conversions and their names.
    pub const NAMED: [(&'static str, Form); 5] = [
        ("keep", Form::KEEP),
        ("etsy", Form::ETSY),
        ("etsy_tags", Form::ETSY_TAGS),
        ("graphite_tags", Form::GRAPHITE_TAGS),
        ("dogstatsd_1_0", Form::DOGSTATSD_1_0),
    ];

    /// The predefined conversion of this name.
    pub fn named(name: &str) -> Option<Form> {
        Form::NAMED.into_iter().find(|(own, _)| *own == name).map(|(_, form)| form)
    }
}
