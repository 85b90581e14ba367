//! Header and size of a file.

use std::sync::Arc;

use model::TreeFile;

use crate::whisper::file::{FileError, WhisperFile};
use crate::whisper::format::Header;

/// What `whisper-info` prints.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// The header with the archives.
    pub header: Arc<Header>,
    /// Size of the file.
    pub bytes: u64,
    /// Bytes behind the last archive, which nobody uses.
    pub unused_bytes: u64,
}

/// Header and size of an open file.
///
/// # Errors
/// The disk failed.
pub fn info(file: &WhisperFile<impl TreeFile>) -> Result<Info, FileError> {
    let bytes = file.file().size()?;
    let header = Arc::clone(file.header());
    let unused_bytes = bytes.saturating_sub(header.file_bytes());
    Ok(Info { header, bytes, unused_bytes })
}
