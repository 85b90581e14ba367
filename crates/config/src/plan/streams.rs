//! A Riemann config as a transform of a plan.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use model::OutputId;
use streams::riemann::engine::Engine;
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
    /// Its files, by which it is compared with that of another plan.
    pub files: Arc<Files>,
    /// Its streams, for the shard that runs them.
    pub engine: LoadedEngine,
    /// The outputs that it declares, in its order.
    pub outputs: Vec<StreamsOutput>,
    /// Names of sources whose events go through a function of the config first, and the numbers of the servers that have it.
    pub parsers: Vec<(String, usize)>,
}

/// The streams of a config that was evaluated, until a shard takes them: they are evaluated but once, where files are read, so that what was
/// checked is what runs, and no shard waits for it. All are equal, since they are compared by their files.
#[derive(Clone, Debug, Default)]
pub struct LoadedEngine(Arc<Mutex<Option<Box<Engine>>>>);

impl LoadedEngine {
    /// To be taken once.
    pub(crate) fn of(engine: Engine) -> LoadedEngine {
        LoadedEngine(Arc::new(Mutex::new(Some(Box::new(engine)))))
    }

    /// The streams, if nobody has taken them.
    pub fn take(&self) -> Option<Box<Engine>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl PartialEq for LoadedEngine {
    fn eq(&self, _: &LoadedEngine) -> bool {
        true
    }
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
