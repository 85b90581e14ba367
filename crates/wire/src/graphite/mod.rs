//! Graphite: encoding for carbon (`encoder`), and parsing as carbon and the relays do (`input`).

mod encoder;
pub mod input;
mod line_prefix;
mod name;
mod namespace;
mod pickle;
mod stored;

pub(crate) use name::replace_bad_bytes;
pub(crate) use stored::{number, whole};

pub use encoder::{Encoded, Encoder, OwnFigures};
pub use line_prefix::LinePrefix;
pub use name::NAME_BYTES_MAX;
pub use namespace::{Namespace, Numbers};
pub use pickle::{
    FRAME_BYTES_MAX, FRAME_POINTS_BYTES_MAX, PickleReject, pickle_frame, pickle_frames, pickle_point,
};
pub use stored::{StoredPoint, stored_point};

#[cfg(test)]
mod tests;
