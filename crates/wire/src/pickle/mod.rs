//! Decodes Python pickles of plain data: numbers, strings, lists, tuples and dicts. No opcode that runs code is
//! supported.
//!
//! Path of a packet: a frame of a Graphite pickle listener -> [`PickleReader::step`], repeated until it is complete
//! -> [`Pickle::root`] -> `graphite::input` converts it to points. The opcodes are a closed list (spec graphite §1.2)
//! that covers carbon's own restricted unpickler for protocols 0 to 5. A class, a function or a persistent id makes
//! the whole message invalid.
//! Not here: frames (`frame`), the layout of a list of points (`graphite::input`), writing (`graphite::pickle`).
//! Invariants: no input makes it panic or recurse. Memory is bounded by [`VALUES_MAX`] values of 16 bytes each on the
//! stack, in containers and in the memo, and by the message's own length for strings. Each byte of a message costs a
//! bounded number of steps and of bytes: no opcode scans bytes that another one has read. A step is bounded for any
//! message.

mod machine;
#[cfg(test)]
pub(crate) mod tests;
mod value;

pub use machine::PickleReader;
pub use value::{DEPTH_MAX, Items, LISTS_MAX, Pickle, PickleError, VALUES_MAX, ValueRef};
