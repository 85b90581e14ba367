//! Options of the source and of the output `opentsdb`, beside those that others have too.

use crate::options::field::rows;
use crate::options::row::Default::{Required, Toml};
use crate::options::row::Scheme;
use crate::options::row::Type::{Endpoints, Flag, Listen, Text};
use crate::options::section::Section::{OutputOpenTsdb, SourceOpenTsdb};
use crate::plan::{OutputKind, SourcePlan};

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

rows! {
    PUT: OutputKind;
    in [OutputOpenTsdb] {
        "to": Endpoints(&[Scheme::Tcp]), Required, "[\"tcp://10.0.0.5:4242\"]",
            "Endpoints; each gets every point.",
            "With several endpoints each is an output of its own, called `NAME/host:port`.";
        "default_tag" => OpenTsdb { default_tag }: Text, Toml("\"source=staunch\""), "\"host=web1\"",
            "The tag of a point without tags, `name=value`.",
            "OpenTSDB refuses points without a tag.";
    }
}
