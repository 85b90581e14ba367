//! The thread that writes checkpoints. The shard's thread passes pieces to it and never waits for it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use pipeline::checkpoints::{Piece, Writer, Wrote};
use tokio::sync::oneshot;

use super::table::CheckpointTable;
use sys::disk::Folder;

/// Most pieces queued for the disk; the shard's thread continues saving when there is room again.
const PIECES_MAX: usize = 8;

/// The channel to the thread.
#[derive(Debug)]
pub(super) struct Keeper {
    pieces: SyncSender<Piece>,
    thread: JoinHandle<()>,
}

impl Keeper {
    pub(super) fn start(folder: &Path, table: &Arc<CheckpointTable>) -> io::Result<Keeper> {
        let (pieces, received) = sync_channel(PIECES_MAX);
        let alone = Arc::clone(table);
        let registry = Registry {
            folder: folder.to_owned(),
            table: Arc::clone(table),
            writer: None,
            failing: BTreeMap::new(),
        };
        let thread = std::thread::Builder::new().name("state".into()).spawn(move || {
            // The previous keeper may still wait for its disk. Pieces and the saver wait meanwhile.
            let _alone = alone.write_alone();
            registry.run(&received);
        })?;
        Ok(Keeper { pieces, thread })
    }

    /// Passes a piece, or returns it when there is no room. After the thread's end, pieces are dropped.
    pub(super) fn try_send(&self, piece: Piece) -> Result<(), Piece> {
        match self.pieces.try_send(piece) {
            Err(TrySendError::Full(piece)) => Err(piece),
            Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
        }
    }
}

/// Checkpoints to write after the shard has ended.
#[derive(Debug)]
pub struct LastCheckpoints {
    pub(super) keeper: Keeper,
    pub(super) pieces: Vec<Piece>,
}

impl LastCheckpoints {
    /// Writes them concurrently. Resolves when they are written. A disk that hangs does not prevent the end of the
    /// process.
    pub fn write_on_thread(self) -> oneshot::Receiver<()> {
        let (written, resolved) = oneshot::channel();
        let writing = std::thread::Builder::new().name("last state".into()).spawn(move || {
            self.write();
            // The receiver may have stopped waiting.
            let _gone = written.send(());
        });
        if let Err(error) = writing {
            tracing::error!("cannot start the thread that writes the last checkpoints: {error}");
        }
        resolved
    }

    /// Writes them, and waits for it.
    pub(super) fn write(self) {
        let Keeper { pieces, thread } = self.keeper;
        for piece in self.pieces {
            // If the thread has ended because of a bug, nothing is written.
            let _ended = pieces.send(piece);
        }
        drop(pieces);
        if thread.join().is_err() {
            tracing::error!("the thread that writes checkpoints panicked");
        }
    }
}

/// Writes pieces, counts and logs.
struct Registry {
    folder: PathBuf,
    table: Arc<CheckpointTable>,
    /// `None` before the first checkpoint, and while the folder cannot be used.
    writer: Option<Writer<Folder>>,
    /// Aggregations whose last checkpoint could not be written, with the logged error.
    failing: BTreeMap<String, String>,
}

impl Registry {
    fn run(mut self, received: &Receiver<Piece>) {
        while let Ok(piece) = received.recv() {
            self.take(piece);
        }
    }

    fn take(&mut self, piece: Piece) {
        let Some(writer) = self.writer.take().or_else(|| self.begin(&piece)) else { return };
        let writer = self.writer.insert(writer);
        match writer.take(piece) {
            Wrote::Nothing => {}
            Wrote::Whole { name, begun_ns, bytes, series, .. } => {
                if self.failing.remove(&name).is_some() {
                    tracing::info!("checkpoints of `{name}` can be written again");
                }
                self.table.change(&name, |row| {
                    row.written += 1;
                    row.is_failing = false;
                    (row.bytes, row.series, row.as_of_ns) = (bytes, series, Some(begun_ns));
                });
            }
            Wrote::Same { name, at_ns } => {
                self.table.change(&name, |row| row.as_of_ns = row.as_of_ns.map(|_before| at_ns));
            }
            Wrote::Removed { name } => {
                self.failing.remove(&name);
                self.table.remove(&name);
            }
            Wrote::Failed { name, why } => {
                // The folder may have been moved away.
                self.writer = None;
                self.failed(name, why.to_string());
            }
        }
    }

    /// A writer in the folder, if the piece needs one and it can be created.
    fn begin(&mut self, piece: &Piece) -> Option<Writer<Folder>> {
        match (piece, Folder::open(self.folder.clone())) {
            (_, Ok(folder)) => return Some(Writer::new(folder)),
            (Piece::Begin { name, .. }, Err(error)) => self.failed(name.clone(), error.to_string()),
            (Piece::Remove { name }, Err(_gone)) => self.table.remove(name),
            (_, Err(_logged)) => {}
        }
        None
    }

    /// Counts a failure, and logs it unless it is the same as the last one.
    fn failed(&mut self, name: String, error: String) {
        self.table.change(&name, |row| {
            row.failed += 1;
            row.is_failing = true;
        });
        if self.failing.get(&name) != Some(&error) {
            tracing::error!(
                "cannot write a checkpoint of `{name}` in {}: {error}. The daemon continues, but a crash would lose \
                 the open window of this aggregation",
                self.folder.display()
            );
            self.failing.insert(name, error);
        }
    }
}
