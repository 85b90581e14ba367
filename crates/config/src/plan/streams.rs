//! A Riemann config as a transform of a plan.

use std::path::PathBuf;
use std::sync::Arc;

use model::OutputId;
use streams::riemann::files::Files;

/// Default of `checkpoint`.
const CHECKPOINT_MS_DEFAULT: u64 = 5_000;

/// A Riemann config with the outputs that it sends to.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamsTransform {
    /// Its main file.
    pub file: PathBuf,
    /// Milliseconds between two checkpoints of what its streams remember; 0 for none.
    pub checkpoint_ms: u64,
    /// What it asked for while it was evaluated. None until then.
    pub loaded: Option<LoadedStreams>,
}

/// A Riemann config that was evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedStreams {
    /// Its files, with which it is evaluated again where it runs.
    pub files: Arc<Files>,
    /// The outputs that it declares, in its order.
    pub outputs: Vec<StreamsOutput>,
    /// Names of sources whose events go through a function of the config first, and the numbers of the servers that have it.
    pub parsers: Vec<(String, usize)>,
}

/// An output of a Riemann config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsOutput {
    /// The output of the plan.
    pub id: OutputId,
    /// Whether the config makes it; otherwise a section of the native file does.
    pub is_own: bool,
}

impl StreamsTransform {
    /// A config that is not evaluated yet.
    pub fn of_file(file: PathBuf) -> StreamsTransform {
        StreamsTransform { file, checkpoint_ms: CHECKPOINT_MS_DEFAULT, loaded: None }
    }

    /// Its outputs, in its order; none before it was evaluated.
    pub fn outputs(&self) -> &[StreamsOutput] {
        self.loaded.as_ref().map_or(&[], |loaded| &loaded.outputs)
    }

    /// The same, to give them other ids.
    pub(crate) fn outputs_mut(&mut self) -> &mut [StreamsOutput] {
        self.loaded.as_mut().map_or(&mut [], |loaded| &mut loaded.outputs)
    }
}
