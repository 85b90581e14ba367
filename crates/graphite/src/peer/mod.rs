//! Series and names of other nodes: what they answer, and how it is joined with what this node has.
//!
//! Nodes are asked as graphite-webs ask each other (`/render`, `/metrics/find`), in msgpack, or in carbonapi's second protocol. Not
//! here: HTTP, and which nodes there are (`staunch::admin::graphite::peers`).
//!
//! Invariant: an answer takes memory in proportion to its bytes, and ends at the room that the request has.

mod joined;
mod msgpack;
mod protobuf;
mod received;

pub use joined::joined;
pub use received::BadAnswer;

use crate::catalog::Found;
use crate::query::{Fetched, Room};

/// The encoding of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// graphite-web's and Staunch's.
    Msgpack,
    /// carbonapi's second protocol, which go-carbon has too.
    Protobuf,
}

impl Encoding {
    /// The value of `format` that asks for it.
    pub fn format(self) -> &'static str {
        match self {
            Encoding::Msgpack => "msgpack",
            Encoding::Protobuf => "carbonapi_v2_pb",
        }
    }

    /// The encoding that a content type names.
    pub fn of_content_type(kind: &str) -> Option<Encoding> {
        let kind = kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/x-msgpack" | "application/msgpack" => Some(Encoding::Msgpack),
            "application/x-protobuf" | "application/protobuf" => Some(Encoding::Protobuf),
            _ => None,
        }
    }
}

/// The series of an answer of `/render`. Those without values are left out.
///
/// # Errors
/// When it is malformed, or has more than there is room for.
pub fn series(encoding: Encoding, answer: &[u8], room: Room) -> Result<Vec<Fetched>, BadAnswer> {
    match encoding {
        Encoding::Msgpack => msgpack::series(answer, room),
        Encoding::Protobuf => protobuf::series(answer, room),
    }
}

/// The paths of an answer of `/metrics/find`.
///
/// # Errors
/// When it is malformed, or has more than `paths_max`.
pub fn paths(encoding: Encoding, answer: &[u8], paths_max: usize) -> Result<Found, BadAnswer> {
    let mut all = Vec::new();
    let push = |path: String, is_leaf: bool| {
        if all.len() >= paths_max {
            return Err(BadAnswer::TooManyPaths);
        }
        all.push((path, is_leaf));
        Ok(())
    };
    match encoding {
        Encoding::Msgpack => msgpack::paths(answer, push)?,
        Encoding::Protobuf => protobuf::paths(answer, push)?,
    }
    Ok(Found::of_paths(all.iter().map(|(path, is_leaf)| (path.as_bytes(), *is_leaf))))
}

#[cfg(test)]
mod tests;
