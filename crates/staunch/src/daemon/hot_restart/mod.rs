//! Hot restart: a new process goes on where this one is, with its sockets, its state and its queues.
//!
//! | new process (`staunch run --hot-restart`) | old process |
//! |---|---|
//! | checks its config whole, then asks at `<data_dir>/control.sock` | |
//! | | gives its sockets, each with its place (`Sockets`, `Offered`) |
//! | takes those of its plan, opens what is missing, says so (`Ready`) | |
//! | | lets connections come to rest; stops reading datagrams, which wait in the kernel from here on |
//! | | brings aggregations to rest; its outputs deliver what they can within [`old::DRAIN_MAX`] and stop |
//! | | answers who can be answered; sends accounts, state, what is left in queues and of connections, and that it touches nothing any more (`Yours`) |
//! | builds everything from that, reads what is in queues on disk and changes nothing there, says `Taken` (`Refused` when one cannot be opened), and only then opens them and reads | |
//! | | ends |
//!
//! Until `Taken` the old process has everything and goes on with it whatever happens: an error, a time-out on either
//! side, a disk that hangs, the end of the new process. What cannot be undone (last flushes, connections that end) is put
//! aside until then. From `Taken` on the new one has. `Taken` either reaches the old process or fails
//! for the new one, since the old one first makes sure that nothing can reach it any more and then looks once more.
//! An end of the conversation without a word (`Refused`) means that the old process has died, which the new one makes
//! sure of (pidfd) before it goes on.
//! A series' records keep their order, because the new outputs start after the old ones have ended.
//!
//! Not here: what the state looks like (`pipeline`), what a block looks like (`deliver`).

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

use config::plan::{Link, OutputPlan, StreamLink};

use crate::admin::accounts::output_word;
use message::OutputName;

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

/// What an output must have in common with one of another process for its queue to go on there. A queue on disk goes with
/// the output's name.
pub fn name_of(output: &OutputPlan) -> OutputName {
    let facts = output.kind.facts();
    let place = match &facts.link {
        Link::Stream(StreamLink { to, .. }) | Link::Datagrams { to, .. } => Some(to.to_string()),
        Link::File { path, .. } => Some(path.display().to_string()),
        Link::Stdout | Link::Stderr => None,
    };
    let what = match output.queue_kind.is_disk() {
        true => "queue on disk".to_owned(),
        false => {
            let word = Some(output_word(&output.kind));
            let parts = [word, place.as_deref(), facts.encoding];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
    };
    OutputName { name: output.name.clone(), what }
}
