//! Hot restart: a new process continues with the sockets, the state and the queues of the running one.
//!
//! | new process (`staunch run --hot-restart`) | old process |
//! |---|---|
//! | checks its whole config, then connects to `<data_dir>/control.sock` | |
//! | | sends its sockets, each with its identity (`Sockets`, `Offered`) |
//! | uses those in its plan, opens the missing ones, reports that (`Ready`) | |
//! | | pauses connections; stops reading datagrams, which stay in the kernel from now on |
//! | | pauses aggregations; its outputs deliver within [`old::DRAIN_MAX`] and stop |
//! | | sends the possible acknowledgements; sends accounts, states, the rest of queues and connections, and `Yours`:
//! nothing changes any more |
//! | builds everything from that, reads queues on disk without changing them, sends `Taken` (`Refused` when one cannot
//! be opened), and only then opens them and reads | |
//! | | ends |
//!
//! Until `Taken` the old process has everything and continues with it after any failure: an error, a timeout on either
//! side, a disk that hangs, the end of the new process. Steps that cannot be undone (last flushes, ends of connections)
//! are delayed until then. From `Taken` on the new process has everything. `Taken` either reaches the old process or
//! fails for the new one, because the old one first closes its receiving direction and then reads once more. If the
//! connection ends without `Refused`, the old process has died; the new one verifies that (pidfd) before it continues.
//! Records of a series keep their order, because the new outputs start after the old ones have ended.
//!
//! Not here: the format of states (`pipeline`) and of blocks (`deliver`).

#[cfg(target_os = "linux")]
pub mod control;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
pub mod handed;
#[cfg(target_os = "linux")]
pub mod link;
pub mod message;
#[cfg(target_os = "linux")]
pub mod new;
#[cfg(target_os = "linux")]
pub mod old;
pub mod output_name;

#[cfg(target_os = "linux")]
pub use control::{Asked, Control};
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Asked, Control, Inheritance, ask};
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{EndsHere, hand_over};
pub use handed::Handed;
#[cfg(target_os = "linux")]
pub use new::{Inheritance, ask};
#[cfg(target_os = "linux")]
pub(crate) use old::{EndsHere, hand_over};
