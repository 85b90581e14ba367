//! What is kept of a file between two writes: the second one then reads only the points that it aggregates.
//!
//! Other programs may change or replace a file at any time. So its version is noted after a write, and what was kept counts only if the file
//! that is opened next still has it.

use std::sync::Arc;

use model::{FileVersion, TreeFile};

use super::new_file::MaybeNew;
use crate::whisper::{FileError, Header, Known, Space, WhisperFile};

/// After so many writes a file is read anew. A kernel that counts time in ticks hides a change in the same tick as the write before it, which
/// then matters for so many writes only.
pub(super) const USES_MAX: u8 = 15;

/// Most different headers of the files of a part of which something is kept. Files with further ones are read at each write.
pub(super) const HEADERS_MAX: usize = 64;

/// See the module's header.
#[derive(Debug)]
pub(super) struct Kept {
    version: FileVersion,
    known: Known,
    /// Writes that read neither header nor bases, since the last one that did.
    uses: u8,
}

impl Kept {
    /// What to keep of a file after a write. `before` was used to open it.
    pub(super) fn of<F: TreeFile>(
        file: &WhisperFile<MaybeNew<F>>,
        before: Option<Box<Kept>>,
    ) -> Option<Box<Kept>> {
        // The points are written: an error here only costs the next write its reads.
        let version = file.file().version().ok().flatten()?;
        let known = file.known();
        Some(match before {
            Some(mut kept) => {
                (kept.version, kept.known, kept.uses) = (version, known, kept.uses + 1);
                kept
            }
            None => Box::new(Kept { version, known, uses: 0 }),
        })
    }
}

/// Opens a file that others may have changed meanwhile. None is left of what was kept if that was not used. `locked`: the caller has waited
/// for its lock, and others may have changed it since it was opened.
pub(super) fn open<F: TreeFile>(
    file: F,
    kept: &mut Option<Box<Kept>>,
    (space, locked): (Space, bool),
    header: impl FnOnce() -> Option<Arc<Header>>,
) -> Result<WhisperFile<MaybeNew<F>>, FileError> {
    let file = MaybeNew::known(file);
    if let Some(before) = &*kept
        && before.uses < USES_MAX
        && (if locked { file.version() } else { file.opened_version() })? == Some(before.version)
    {
        return Ok(WhisperFile::open_known(file, before.known.clone()));
    }
    *kept = None;
    WhisperFile::open_or_begin(file, space, header)
}

/// Headers of files: one of all equal ones.
#[derive(Debug, Default)]
pub(super) struct Headers(Vec<Arc<Header>>);

impl Headers {
    /// Lets `kept` share its header. False when there are too many different ones.
    pub(super) fn share(&mut self, kept: &mut Kept) -> bool {
        // Those that were used before share theirs.
        if kept.uses > 0 {
            return true;
        }
        let header = kept.known.header();
        let same = self.0.iter().find(|one| *one == header).map(Arc::clone);
        if same.is_none() && self.0.len() >= HEADERS_MAX {
            self.0.retain(|one| Arc::strong_count(one) > 1);
        }
        match same {
            Some(same) => kept.known = kept.known.clone().with_header(same),
            None if self.0.len() < HEADERS_MAX => self.0.push(Arc::clone(header)),
            None => return false,
        }
        true
    }
}
