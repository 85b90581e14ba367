//! Riemann as its configs see it: what they declare, how events and time reach their streams, and what leaves them.
//!
//! - [`engine`]: a loaded config that runs. [`declared`]: what it declared. [`surroundings`]: the index, channels and effects.
//! - `namespaces`: which names a config knows; `lints`: traps of configs; `dispatch`: events to all top-level streams. `services`, `indexing`, `publishing`, `timing`, `outputs`, `clients`, `posts`, `points`, `alerts`, `mailer`: what they do. [`watching`]: subscribers outside.
//! - [`state`]: what streams remember, as bytes that outlive the process. [`replay`]: recorded events under virtual time.
//! - [`files`]: what a config asked of the world while it was loaded. [`mod@record`]: events between batches and the language.
//! - [`mod@reference`]: the page of all functions. [`parts`]: which streams run natively.
//!
//! Not here: the streams (`nodes`), functions of values only (`libraries`), sockets, queues and files (the daemon).

mod alerts;
mod clients;
pub mod declared;
mod dispatch;
pub mod engine;
pub mod files;
mod indexing;
mod instrumentation;
mod lints;
mod mailer;
mod namespaces;
mod options;
pub mod outputs;
pub mod parts;
mod points;
mod posts;
mod publishing;
mod reaper;
pub mod record;
pub mod reference;
pub mod replay;
mod services;
mod shown;
pub mod state;
pub mod surroundings;
pub mod testing;
mod timing;
mod trees;
pub mod watching;

#[cfg(test)]
pub(crate) mod tests;
