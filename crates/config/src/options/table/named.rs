//! What sections with names have in common: their type, and what feeds them.

use super::{AGGREGATE, NAMED, OUTPUTS, row};
use crate::options::Default::Required;
use crate::options::Section::TransformRelay;
use crate::options::{Row, Type};

/// In the order of the reference.
pub(super) const ROWS: &[Row] = &[
    // Every named section
    row(NAMED, "type", Type::Text, Required, "", "What kind of source, transform or output it is.", ""),
    row(
        AGGREGATE,
        "from",
        Type::Names,
        Required,
        "[\"app\"]",
        "Sources that feed it.",
        "Sources of one aggregation must have the same dialect and the same reading options.",
    ),
    row(
        &[TransformRelay],
        "from",
        Type::Names,
        Required,
        "[\"lines\"]",
        "Sources of points that feed it.",
        "",
    ),
    row(
        OUTPUTS,
        "from",
        Type::Names,
        Required,
        "[\"stats\"]",
        "What feeds it.",
        "`graphite`, `graphite_file`, `console` and `perl_file` take from transforms, `event_file` from sources, `udp`, `tcp` and `unix` from both. From a relay take `graphite` and `graphite_file`, which then take from nothing else. From a source of points take `graphite`, `graphite_file`, and `udp`, `tcp` and `unix` without options that look into lines.",
    ),
];
