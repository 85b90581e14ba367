//! What a line is turned into for receivers that read another dialect.

/// How tags are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagFormat {
    /// As they came, each in its own style.
    Keep,
    /// Not at all, for receivers that know none.
    Drop,
    /// All in one `#` field: `|#k:v,bare`. A `,` or `|` in a tag from a name becomes `_`.
    Dogstatsd,
    /// All in the name: `;k=v`, sorted, without doubles (spec statsd §5.7).
    ///
    /// Bytes that would end the tag or the name become `_` (`;`, `:`, `|`, white space, in keys also `=`, `!`, `^`), and
    /// so does a `~` before a value. A bare tag gets the plan's `bare_tag_value`. A tag without key or value is left
    /// out: carbon would refuse the whole name for it.
    Graphite,
}

/// What becomes of DogStatsD's type `d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distributions {
    /// It stays.
    Keep,
    /// It becomes `h`; `ms`, when histograms become timers.
    Histograms,
    /// It becomes `ms`.
    Timers,
}

/// What becomes of gauges that begin with a sign or with `=`, where the receiver takes a sign for a change of the
/// stored value and knows no `=` (spec statsd §1, §16.16).
///
/// An absolute value below 0 takes two lines there: `g:0|g` and then `g:-5|g`. A receiver that loses the packet between
/// the two has the gauge at 0 until the next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauges {
    /// They stay as they are.
    Keep,
    /// A sign is a change to the sender too: only `=-5` needs two lines, and `=5` loses its `=`. Signed values with a
    /// time (`T`), which are absolute in every dialect, are written as absolute.
    SignsAreChanges,
    /// A sign is part of the number to the sender: `-5` needs two lines, and `+5` loses its sign.
    SignsAreParts,
}

/// Fields that are taken away, for receivers that refuse lines with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    /// `c:`, the container id.
    pub container: bool,
    /// `e:`, external data.
    pub external: bool,
    /// `card:`, the tags' cardinality.
    pub cardinality: bool,
    /// `T`, the time: the sample becomes one of now.
    pub time: bool,
    /// Fields that no version of the protocol has, and repeated ones but the last; the own fields of events stay.
    pub unknown: bool,
}

impl Strip {
    /// No field.
    pub const NONE: Strip =
        Strip { container: false, external: false, cardinality: false, time: false, unknown: false };
    /// All that node does not know.
    pub const ALL: Strip =
        Strip { container: true, external: true, cardinality: true, time: true, unknown: true };
}

/// The form that lines are put into; each switch works without the others.
///
/// As soon as one is set, a CR at the end of lines and white space around types go too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// How tags are written.
    pub tags: TagFormat,
    /// One line for each value, for receivers that know neither `1:2:3|ms` nor `1|c:2|c`. A `:` in a set's member
    /// becomes `_`, and bits without a type are left out.
    pub one_value_per_line: bool,
    /// What becomes of `d`.
    pub distributions: Distributions,
    /// `h` becomes `ms`. Classic receivers refuse timers below 0, which histograms may be.
    pub histograms_as_timers: bool,
    /// What becomes of gauges with a sign.
    pub gauges: Gauges,
    /// Fields that are taken away.
    pub strip: Strip,
    /// Events and service checks go through; otherwise they are left out.
    pub events: bool,
}

impl Form {
    /// Everything as it came.
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

    /// Tags go into the name; all else stays.
    pub const GRAPHITE_TAGS: Form = Form { tags: TagFormat::Graphite, ..Form::KEEP };

    /// DogStatsD before version 1.1: `#` tags, one value per line, no container id, external data, time or
    /// cardinality (spec statsd §5.1).
    pub const DOGSTATSD_1_0: Form =
        Form { tags: TagFormat::Dogstatsd, one_value_per_line: true, strip: Strip::ALL, ..Form::KEEP };

    /// The ready-made forms and their names.
    pub const NAMED: [(&'static str, Form); 5] = [
        ("keep", Form::KEEP),
        ("etsy", Form::ETSY),
        ("etsy_tags", Form::ETSY_TAGS),
        ("graphite_tags", Form::GRAPHITE_TAGS),
        ("dogstatsd_1_0", Form::DOGSTATSD_1_0),
    ];

    /// The ready-made form of that name.
    pub fn named(name: &str) -> Option<Form> {
        Form::NAMED.into_iter().find(|(own, _)| *own == name).map(|(_, form)| form)
    }
}
