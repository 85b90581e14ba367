//! Intake, shard and wiring, from a checked plan. No I/O, no clock.
//!
//! Path of a packet: [`Intake`] frames and parses it into [`model::Batches`]; [`Shard::push`] aggregates them or routes
//! them raw; at a window's end [`Shard::tick`] encodes the aggregation's results into [`Routed`] blocks, which the
//! caller appends to the outputs' queues. Not here: sockets, threads and timers (`staunch`), queues and retries
//! (`deliver`).
//! Invariant: a record that enters an intake leaves the shard with exactly one outcome in its source's account.

mod accounts;
mod acks;
pub mod checkpoints;
mod encode;
mod exchange;
mod intake;
mod packet_lines;
mod reload;
mod rotation;
mod shard;
pub mod storing;
mod turn;

pub use accounts::Accounts;
pub use acks::{Acks, Answer, Inherited, MARKS_MAX, Queues, Taking};
pub use encode::{BLOCK_BYTES, OutputFigures, Routed, Said};
pub use exchange::{Exchange, Look, Outside};
pub use intake::{
    AckProgress, Broken, Complaint, Intake, IntakeMaker, ProtocolReplies, Scratch, Unfinished, UnfinishedFull,
};
pub use reload::{merge_plans, predecessor};
pub use rotation::Rotation;
pub use shard::{
    BeforeLast, BusyNames, ChainExplanation, ChainVisit, DumpCursor, DumpRow, DumpSlice, FedFigures, Held,
    IndexQuery, Kept, MATCHES_MAX, Pump, Received, RelayFigures, RelayState, RelayToAsk, RestoredStreams,
    SLICE_BYTES_MAX, SLICE_SERIES_MAX, SavedState, SentBy, SeriesCopy, SeriesRow, SeriesSlice, Shard,
    ShardFigures, StreamsFigures, Subscribed, Subscriber, SubscriberFigures, Subscription, explain_chain,
};
pub use turn::{Host, Moves, MovingQueues, Outputs, Taken, Turn, TurnLimits};
