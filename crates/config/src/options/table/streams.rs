//! Options of the transform `streams`.

use crate::options::field::rows;
use crate::options::row::Default::Required;
use crate::options::row::Type::Path;
use crate::options::section::Section::TransformStreams;
use crate::plan::StreamsTransform;

rows! {
    STREAMS: StreamsTransform = |_| StreamsTransform::of_file(std::path::PathBuf::new());
    in [TransformStreams] {
        "file" => file: Path, Required, "\"/etc/riemann/riemann.config\"",
            "The Riemann config.",
            "Its servers are not opened: `from` has the sources. The outputs that it makes are outputs of the daemon, and `(staunch/output \"NAME\")` is a stream to an output of this file.";
    }
}
