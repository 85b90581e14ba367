//! Options of the source `opentsdb`, beside those of every source that listens.

use crate::options::field::rows;
use crate::options::row::Default::Toml;
use crate::options::row::Type::{Flag, Listen};
use crate::options::section::Section::SourceOpenTsdb;
use crate::plan::SourcePlan;

rows! {
    LISTENER: SourcePlan;
    in [SourceOpenTsdb] {
        "listen": Listen,
            Toml("[\"tcp://127.0.0.1:4242\"]"), "[\"tcp://0.0.0.0:4242\", \"unix:///run/opentsdb.sock\"]",
            "Where it listens.",
            "`tcp://ADDRESS:PORT` or `unix://PATH`: OpenTSDB has no datagrams.";
        "tail_counts" => tail_counts: Flag, Toml("false"), "true",
            "Whether the last line of a connection counts although its line feed never came.",
            "A line that is cut may end in another tag.";
    }
}
