//! Options of all named sections: their type and their edges.

use super::types::{AGGREGATE, NAMED, OUTPUTS};
use crate::options::field::rows;
use crate::options::row::Default::Required;
use crate::options::row::Type::{Names, Text};
use crate::options::section::Section::{TransformRelay, TransformStreams};

rows! {
    OF_NAMED: ();
    in NAMED {
        "type": Text, Required, "",
            "What kind of source, transform or output it is.";
    }
    in AGGREGATE {
        "from": Names, Required, "[\"app\"]",
            "Sources that feed it.",
            "Sources of one aggregation must have the same dialect and the same reading options.";
    }
    in [TransformRelay] {
        "from": Names, Required, "[\"lines\"]",
            "Sources of points that feed it.";
    }
    in [TransformStreams] {
        "from": Names, Required, "[\"riemann\"]",
            "Sources of events that feed it.";
    }
    in OUTPUTS {
        "from": Names, Required, "[\"stats\"]",
            "What feeds it.",
            "Sources and transforms that give what it takes; see [Kinds of records](one-daemon.md#kinds-of-records).";
    }
}
