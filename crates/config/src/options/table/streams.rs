//! Options of the transform `streams`.

use super::types::{HOUR, duration_or_off};
use crate::options::field::rows;
use crate::options::row::Default::{Required, Toml};
use crate::options::row::Type::Path;
use crate::options::section::Section::TransformStreams;
use crate::plan::StreamsTransform;

rows! {
    STREAMS: StreamsTransform = |_| StreamsTransform::of_file(std::path::PathBuf::new());
    in [TransformStreams] {
        "file" => file: Path, Required, "\"/etc/riemann/riemann.config\"",
            "The Riemann config.",
            "Its servers are not opened: `from` has the sources. The outputs that it makes are outputs of the daemon, and `(staunch/output \"NAME\")` is a stream to an output of this file.";
        "checkpoint" => checkpoint_ms: duration_or_off(100, HOUR), Toml("\"5s\""), "\"30s\"",
            "Interval of checkpoints: what the streams remember and the index are written to `data_dir` to survive a crash.",
            "After `kill -9`, the streams go on as they were at most that long before. `off`: a restart begins without state, as in Riemann.";
    }
}
