//! The thread that writes checkpoints. The shard's thread hands it pieces and never waits for it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::board::Board;
use super::files::{self, NewFile};

/// Pieces that may wait for the disk; the shard's thread goes on saving when there is room again.
const PIECES_MAX: usize = 8;

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Piece {
    /// A checkpoint begins; one that was not ended is void.
    Begin { name: String, begun_ns: u64 },
    /// Its next bytes.
    Bytes(Vec<u8>),
    /// It is whole.
    End { series: u64 },
    /// It is void.
    Void,
    /// The aggregation is gone, or wants no checkpoints any more.
    Remove { name: String },
}

/// The way to the thread.
#[derive(Debug)]
pub(super) struct Keeper {
    pieces: SyncSender<Piece>,
    thread: JoinHandle<()>,
}

impl Keeper {
    pub(super) fn start(folder: &Path, board: &Arc<Board>) -> io::Result<Keeper> {
        let (pieces, received) = sync_channel(PIECES_MAX);
        let writer = Writer {
            folder: folder.to_owned(),
            board: Arc::clone(board),
            under_way: None,
            failing: BTreeMap::new(),
        };
        let thread = std::thread::Builder::new().name("state".into()).spawn(move || writer.run(&received))?;
        Ok(Keeper { pieces, thread })
    }

    /// Hands over a piece, or gives it back when there is no room. A thread that has ended takes anything.
    pub(super) fn try_send(&self, piece: Piece) -> Result<(), Piece> {
        match self.pieces.try_send(piece) {
            Err(TrySendError::Full(piece)) => Err(piece),
            Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
        }
    }
}

/// Checkpoints that are still to be written when the shard has ended.
#[derive(Debug)]
pub struct LastCheckpoints {
    pub(super) keeper: Keeper,
    pub(super) pieces: Vec<Piece>,
}

impl LastCheckpoints {
    /// Writes them beside whatever else goes on. Resolves when they are written; a disk that hangs keeps nobody from
    /// ending the process.
    pub fn write_aside(self) -> oneshot::Receiver<()> {
        let (written, resolved) = oneshot::channel();
        let writing = std::thread::Builder::new().name("last state".into()).spawn(move || {
            self.write();
            // Nobody may be left to be told.
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
            // When the thread has ended by a bug of ours there is nobody to write.
            let _ended = pieces.send(piece);
        }
        drop(pieces);
        if thread.join().is_err() {
            tracing::error!("the thread that writes checkpoints panicked");
        }
    }
}

struct Writer {
    folder: PathBuf,
    board: Arc<Board>,
    under_way: Option<UnderWay>,
    /// Aggregations whose last checkpoint could not be written, with the error that was told.
    failing: BTreeMap<String, String>,
}

struct UnderWay {
    name: String,
    begun_ns: u64,
    /// None once it has failed: the rest of it is thrown away.
    file: Option<NewFile>,
}

impl Writer {
    fn run(mut self, received: &Receiver<Piece>) {
        while let Ok(piece) = received.recv() {
            self.take(piece);
        }
    }

    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Begin { name, begun_ns } => {
                // The one before goes first: they share a name.
                self.under_way = None;
                let file = self.noted(&name, |folder| NewFile::create(folder, &name));
                self.under_way = Some(UnderWay { name, begun_ns, file });
            }
            Piece::Bytes(bytes) => {
                let Some(UnderWay { name, begun_ns, file: Some(mut file) }) = self.under_way.take() else {
                    return;
                };
                let file = self.noted(&name, |_| file.write(&bytes).map(|()| file));
                self.under_way = file.map(|file| UnderWay { name, begun_ns, file: Some(file) });
            }
            Piece::End { series } => {
                let Some(UnderWay { name, begun_ns, file: Some(file) }) = self.under_way.take() else {
                    return;
                };
                let Some(bytes) = self.noted(&name, |folder| file.finish(folder, &name)) else { return };
                if self.failing.remove(&name).is_some() {
                    tracing::info!("checkpoints of `{name}` can be written again");
                }
                self.board.change(&name, |row| {
                    row.written += 1;
                    row.is_failing = false;
                    (row.bytes, row.series, row.as_of_ns) = (bytes, series, Some(begun_ns));
                });
            }
            Piece::Void => self.under_way = None,
            Piece::Remove { name } => {
                self.under_way = None;
                self.failing.remove(&name);
                self.board.remove(&name);
                let _any = files::remove(&self.folder, &name);
            }
        }
    }

    /// Does a step. A failure is counted, and told when it is not the one that was told last.
    fn noted<T>(&mut self, name: &str, step: impl FnOnce(&Path) -> io::Result<T>) -> Option<T> {
        let error = match step(&self.folder) {
            Ok(done) => return Some(done),
            Err(error) => error.to_string(),
        };
        self.board.change(name, |row| {
            row.failed += 1;
            row.is_failing = true;
        });
        if self.failing.get(name) != Some(&error) {
            tracing::error!(
                "cannot write a checkpoint of `{name}` in {}: {error}. Everything else goes on; what it holds would \
                 not outlive a crash",
                self.folder.display()
            );
            self.failing.insert(name.to_owned(), error);
        }
        None
    }
}
