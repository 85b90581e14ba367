//! An open file: created or opened, with its header and what is known of its archives.

use std::sync::Arc;

use model::{DiskError, FileTree, TreeFile};

use super::error::FileError;
use crate::codec::u32_be;
use crate::whisper::format::{
    ARCHIVES_MAX, AggregationMethod, Archive, Damage, Header, PREFIX_BYTES, is_factor,
};

/// Size of the writes that fill a new file with zeros.
const ZEROS_BYTES: usize = 16 << 10;

/// How the bytes of a new file are made. In each case the file reads as zeros behind its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Space {
    /// Zeros are written: the space is in use, on every file system.
    #[default]
    Zeros,
    /// Only the last byte is written: blocks are used when points come. The least work, but the disk can get full later.
    Sparse,
    /// The file system reserves the space without writing it.
    Allocate,
}

/// Archives whose bases a [`Known`] has. Those of further ones, which few files have, are read.
const KNOWN_BASES: usize = 4;

/// What a caller can keep of a file that it closes, to open it again without reading it. Valid as long as nobody else
/// changes the file.
#[derive(Clone, Debug)]
pub struct Known {
    header: Arc<Header>,
    bases: [u32; KNOWN_BASES],
}

impl Known {
    /// The header of the file.
    pub fn header(&self) -> &Arc<Header> {
        &self.header
    }

    /// The same with an equal header, which other files may have too.
    pub(crate) fn with_header(self, header: Arc<Header>) -> Known {
        debug_assert_eq!(self.header, header);
        Known { header, ..self }
    }
}

/// An open whisper file.
#[derive(Debug)]
pub struct WhisperFile<F> {
    pub(super) file: F,
    header: Arc<Header>,
    /// Times in the first slots of the archives; 0 where nothing was written yet or nothing is known.
    bases: [u32; ARCHIVES_MAX],
}

/// What [`WhisperFile::open_unless_unfinished`] finds.
#[derive(Debug)]
pub enum Opened<F> {
    /// A whisper file.
    Whole(WhisperFile<F>),
    /// A file whose creation did not end.
    Unfinished {
        /// The file.
        file: F,
        /// The header that it should have.
        header: Arc<Header>,
        /// It has no bytes.
        is_empty: bool,
    },
}

/// The first bytes of a file, in which its header is.
struct Start {
    /// Size of the file.
    bytes: u64,
    prefix: [u8; PREFIX_BYTES],
}

impl Start {
    fn read(file: &impl TreeFile) -> Result<Start, DiskError> {
        let mut start = Start { bytes: file.size()?, prefix: [0; PREFIX_BYTES] };
        let length = start.prefix().len();
        file.read_at(0, &mut start.prefix[..length])?;
        Ok(start)
    }

    fn prefix(&self) -> &[u8] {
        &self.prefix[..self.bytes.min(PREFIX_BYTES as u64) as usize]
    }

    fn header(&self) -> Result<Header, Damage> {
        Header::parse(self.prefix(), self.bytes)
    }

    /// Whether it is a part of this header, perhaps nothing, and then zeros.
    fn is_unfinished(&self, header: &Header) -> bool {
        let (has, wants) = (self.prefix(), header.to_bytes());
        let same = has.iter().zip(&wants).take_while(|(has, wants)| has == wants).count();
        let mut rest = has.iter().skip(same);
        self.bytes <= header.file_bytes() && same < wants.len() && rest.all(|byte| *byte == 0)
    }

    fn opened<F: TreeFile>(&self, file: F, header: Header) -> WhisperFile<F> {
        let mut opened = WhisperFile { file, header: Arc::new(header), bases: [0; ARCHIVES_MAX] };
        let first = opened.archive(0).offset as usize;
        if let Some(base) = u32_be(self.prefix(), first) {
            opened.remember(0, base);
        }
        opened
    }
}

/// Creates a file and the folders of its path. If that fails, the file is removed.
///
/// # Errors
/// [`DiskError::Exists`] if there is one of this path, or what the disk reports.
pub fn create_in<T: FileTree>(
    tree: &T,
    path: &str,
    header: &Arc<Header>,
    space: Space,
) -> Result<WhisperFile<T::File>, DiskError> {
    let file = tree.create(path)?;
    WhisperFile::create(file, header, space).inspect_err(|_| {
        // The first error is the one to report. What is left is an empty or short file, which `Damage` names.
        let _ = tree.remove(path);
    })
}

/// Replacements of a file that a writer follows while it waits for the lock.
const REPLACEMENTS_MAX: usize = 16;

/// Locks an open file of a tree, and waits as long as others have it locked. When the file was replaced meanwhile, as a resize
/// does, the one that has the path now is locked instead: what is written to the old one would be lost.
///
/// # Errors
/// What the disk reports; [`DiskError::Deleted`] when the path had a new file again and again.
pub fn lock_in<T: FileTree>(tree: &T, path: &str, mut file: T::File) -> Result<T::File, DiskError> {
    for _ in 0..REPLACEMENTS_MAX {
        file.lock()?;
        if tree.is_current(path, &file)? {
            return Ok(file);
        }
        file = tree.open(path)?;
    }
    Err(DiskError::Deleted)
}

impl<F: TreeFile> WhisperFile<F> {
    /// Makes an empty file into a whisper file without points. Other files may have the same header.
    ///
    /// # Errors
    /// What the disk reports. The file is not usable then, and to be removed.
    pub fn create(file: F, header: &Arc<Header>, space: Space) -> Result<WhisperFile<F>, DiskError> {
        let head = header.to_bytes();
        let bytes = header.file_bytes();
        debug_assert!(bytes > head.len() as u64, "an archive has a point");
        // The size comes first: after a power loss, a file that has its header is then whole.
        match space {
            Space::Zeros => {
                file.extend(bytes)?;
                let zeros = [0; ZEROS_BYTES];
                let mut at = head.len() as u64;
                while at < bytes {
                    let length = (bytes - at).min(ZEROS_BYTES as u64);
                    file.write_at(at, &zeros[..length as usize])?;
                    at += length;
                }
            }
            Space::Sparse => file.extend(bytes)?,
            Space::Allocate => {
                file.allocate(bytes)?;
            }
        }
        file.write_at(0, &head)?;
        Ok(WhisperFile { file, header: Arc::clone(header), bases: [0; ARCHIVES_MAX] })
    }

    /// Opens a file: reads and checks its header.
    ///
    /// # Errors
    /// Which damage it has, or what the disk reports.
    pub fn open(file: F) -> Result<WhisperFile<F>, FileError> {
        let start = Start::read(&file)?;
        let header = start.header()?;
        Ok(start.opened(file, header))
    }

    /// Opens a file. An unfinished one gets its header; what else it has stays.
    ///
    /// # Errors
    /// Which damage it has, or what the disk reports.
    pub fn open_or_begin(
        file: F,
        space: Space,
        header: impl FnOnce() -> Option<Arc<Header>>,
    ) -> Result<WhisperFile<F>, FileError> {
        match WhisperFile::open_unless_unfinished(file, header)? {
            Opened::Whole(file) => Ok(file),
            Opened::Unfinished { file, header, is_empty } => {
                // Zeros would go over what is there.
                let space = if is_empty { space } else { Space::Sparse };
                Ok(WhisperFile::create(file, &header, space)?)
            }
        }
    }

    /// Opens a file, or finds that it is unfinished: it begins with a part of the header that it should have, or nothing, and then zeros. An
    /// end between its creation and its first write leaves such a file, or a power loss before its first sync.
    ///
    /// # Errors
    /// Which other damage it has, or what the disk reports.
    pub fn open_unless_unfinished(
        file: F,
        header: impl FnOnce() -> Option<Arc<Header>>,
    ) -> Result<Opened<F>, FileError> {
        let start = Start::read(&file)?;
        let damage = match start.header() {
            Ok(header) => return Ok(Opened::Whole(start.opened(file, header))),
            Err(damage) => damage,
        };
        match header().filter(|header| start.is_unfinished(header)) {
            Some(header) => Ok(Opened::Unfinished { file, header, is_empty: start.bytes == 0 }),
            None => Err(damage.into()),
        }
    }

    /// Opens a file that was known when it was closed, without reading it.
    pub fn open_known(file: F, known: Known) -> WhisperFile<F> {
        let mut bases = [0; ARCHIVES_MAX];
        bases[..KNOWN_BASES].copy_from_slice(&known.bases);
        WhisperFile { file, header: known.header, bases }
    }

    /// What is known of the file.
    pub fn known(&self) -> Known {
        let (bases, _) = self.bases.split_first_chunk().expect("ARCHIVES_MAX is more");
        Known { header: Arc::clone(&self.header), bases: *bases }
    }

    /// Its header.
    pub fn header(&self) -> &Arc<Header> {
        &self.header
    }

    /// The file itself, for locks and syncs.
    pub fn file(&self) -> &F {
        &self.file
    }

    /// Changes how points are aggregated from now on; the method before it. Points that are already aggregated stay.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn set_method(&mut self, method: AggregationMethod) -> Result<AggregationMethod, DiskError> {
        self.file.write_at(0, &method.number().to_be_bytes())?;
        let before = self.header.method;
        Arc::make_mut(&mut self.header).method = method;
        Ok(before)
    }

    /// Changes the xFilesFactor from now on; the one before it. None, and nothing is written, when it is not between 0
    /// and 1.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn set_x_files_factor(&mut self, x_files_factor: f32) -> Result<Option<f32>, DiskError> {
        if !is_factor(x_files_factor) {
            return Ok(None);
        }
        self.file.write_at(8, &x_files_factor.to_bits().to_be_bytes())?;
        let before = self.header.x_files_factor;
        Arc::make_mut(&mut self.header).x_files_factor = x_files_factor;
        Ok(Some(before))
    }

    /// Writes the header again: after a sync that failed, it may be in the system's memory only.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn rewrite_header(&self) -> Result<(), DiskError> {
        self.file.write_at(0, &self.header.to_bytes())
    }

    pub(super) fn archive(&self, index: usize) -> Archive {
        self.header.archives()[index]
    }

    /// The base of an archive: the time in its first slot, 0 for an empty archive. From memory if it is there.
    pub(super) fn base(&mut self, index: usize) -> Result<u32, DiskError> {
        if self.bases[index] != 0 {
            return Ok(self.bases[index]);
        }
        let base = self.read_base(index)?;
        self.remember(index, base);
        Ok(base)
    }

    /// The same without changing what is known.
    pub(super) fn known_base(&self, index: usize) -> Result<u32, DiskError> {
        match self.bases[index] {
            0 => self.read_base(index),
            base => Ok(base),
        }
    }

    fn read_base(&self, index: usize) -> Result<u32, DiskError> {
        let mut bytes = [0; 4];
        self.file.read_at(u64::from(self.archive(index).offset), &mut bytes)?;
        Ok(u32::from_be_bytes(bytes))
    }

    /// Keeps a base. Each later time in the first slot differs from it by whole turns of the ring, so it stays
    /// good; except in a damaged archive whose base is no multiple of the step, which is read each time.
    pub(super) fn remember(&mut self, index: usize, base: u32) {
        self.bases[index] = if base.is_multiple_of(self.archive(index).step) { base } else { 0 };
    }

    /// After a write that failed nothing is known.
    pub(super) fn forget_bases(&mut self) {
        self.bases = [0; ARCHIVES_MAX];
    }
}
