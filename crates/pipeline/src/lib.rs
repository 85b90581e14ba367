//! Intake, shard and wiring, from a checked plan. No I/O, no clock.
//!
//! Path of a packet: [`Intake`] frames and parses it into [`model::Batches`]; [`Shard::push`] aggregates them or
//! routes it raw; at a window's end [`Shard::tick`] encodes what the aggregation gives into [`Routed`] blocks,
//! which the caller appends to the outputs' queues.
//! Not here: sockets, threads and timers (`staunch`), queues and retries (`deliver`).
//! Invariant: a record that enters an intake leaves the shard with exactly one outcome in its source's account.

mod accounts;
mod acks;
mod aggregation;
mod batch;
mod broken;
pub mod checkpoints;
mod clusters;
mod complaints;
mod encode;
mod exchange;
mod first_line;
mod framing;
mod inspect;
mod intake;
mod line_prefix;
mod lines;
mod moves;
mod packets;
mod points;
mod relay;
mod reload;
mod replies;
mod results;
mod rotation;
mod routes;
mod samples;
mod scratch;
mod shard;
mod state;
mod unfinished;

pub use accounts::Accounts;
pub use acks::{Acks, Answer, Inherited, MARKS_MAX, Queues, Taking};
pub use broken::Broken;
pub use complaints::Complaint;
pub use encode::{BLOCK_BYTES, OutputFigures, Routed};
pub use exchange::{Exchange, Look, Outside};
pub use framing::Unfinished;
pub use inspect::{
    DumpCursor, DumpRow, DumpSlice, Held, SLICE_BYTES_MAX, SLICE_SERIES_MAX, SeriesCopy, SeriesRow,
    SeriesSlice,
};
pub use intake::{Intake, IntakeMaker};
pub use moves::{Moves, MovingQueues};
pub use relay::{FedFigures, RelayFigures, RelayState};
pub use reload::{merge_plans, predecessor};
pub use replies::Told;
pub use rotation::Rotation;
pub use scratch::Scratch;
pub use shard::{BusyNames, Shard, ShardFigures};
pub use state::{BeforeLast, Kept, SavedState};
pub use unfinished::UnfinishedFull;
