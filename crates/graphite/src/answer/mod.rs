//! Answers of graphite-web's API as bytes (spec graphite §6.3 to §6.9).
//!
//! Path of an answer: series of [`render`](crate::query::render), or what a search found -> **a function of this folder** -> the body of
//! the reply. Pure: parameters are values. Not here: HTTP, parameters as text, images.
//!
//! | file | job |
//! |---|---|
//! | `json` | JSON texts and numbers as Python writes them, series as JSON |
//! | `text` | series as csv and raw |
//! | `charts` | series for the charts dygraph and rickshaw |
//! | `values` | series and names as nested values, for `pickle` and `msgpack` |
//! | `protobuf` | series and names as carbonapi's messages |
//! | `find` | names that a search found: tree, completer, nodes, paths, lists |
//! | `functions` | the table of functions |

pub mod charts;
pub mod find;
pub mod functions;
pub mod json;
pub mod msgpack;
pub mod pickle;
pub mod protobuf;
pub mod text;
mod values;
