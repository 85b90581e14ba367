//! Shared data types of all crates: sample, series, batch, outcome, receipt. No logic beyond them.
//!
//! Path of a packet: these types are passed between its steps.
//! Not here: parsing (`wire`), computing (`process`), queues and delivery (`deliver`), I/O (`staunch`).
//! No dependencies, no I/O, no clock: the time is passed in as [`Now`].

pub mod account;
pub mod ack;
pub mod batch;
pub mod disk;
pub mod event;
pub mod flushed;
pub mod id;
pub mod java;
pub mod limits;
mod memory;
pub mod now;
pub mod outcome;
pub mod peer;
pub mod point;
pub mod receipt;
pub mod sample;
pub mod series;
pub mod tree;

pub use account::{Figure, Losses, OutputAccount, OutputSum, RecordAccount, RecordSum, SourceAccount};
pub use ack::{AckMark, AckWhen};
pub use batch::{
    BATCH_BYTES_MIN, Batch, Batches, PacketBatch, Packets, Points, Records, SampleView, Samples, Tally,
};
pub use disk::{Disk, DiskError, Reserved};
pub use event::{
    Entries, EventLimit, EventRef, EventTime, EventWriter, Events, EventsBuilder, EventsEnd, EventsView,
    Items, NumberRef, Ratio, TextField, ValueRef,
};
pub use flushed::{FlushInfo, Flushed, Label};
pub use id::{ConnectionId, OutputId, SourceId, TransformId};
pub use now::{Now, SECOND_NS};
pub use outcome::{CopyOutcome, Dropped, Filtered, Internal, Outcome, Reject, RejectedByPeer, Unacked};
pub use peer::{Peer, PeerKey};
pub use point::Point;
pub use receipt::Receipt;
pub use sample::{Extra, GaugeOp, Kind, Sample, Value};
pub use series::{Canonical, RawKey, SeriesRef, Span};
pub use tree::{EntryKind, FileFacts, FileTree, FileVersion, FolderId, TreeFile};
