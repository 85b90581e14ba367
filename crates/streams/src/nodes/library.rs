//! Streams, their macros and folds as names of the language.

use super::forms;
use super::table::STREAMS;
use crate::folds::table::FOLDS;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Expansion};
use crate::language::world::{Library, World};
use crate::macros;
use crate::value::Value;

/// Adds `riemann.streams` and `riemann.folds`.
pub fn add(world: &World) {
    world.add_functions("riemann.streams", STREAMS.iter().map(|stream| &stream.native));
    world.add(Library { namespace: "riemann.streams", natives: &[], macros: MACROS });
    world.add_functions("riemann.folds", FOLDS.iter().map(|fold| &fold.native));
}

macros! {
    /// The streams that are macros; [`forms::MACROS`] has their arguments.
    pub MACROS = {
        "by", 0, ANY, "Streams of their own for each value of the fields.", |e, a| expand(e, "by", a);
        "by-builder", 0, ANY, "As by, with a name for the value.", |e, a| expand(e, "by-builder", a);
        "changed-state", 0, ANY, "Passes events whose state is another than before.", |e, a| expand(e, "changed-state", a);
        "where", 0, ANY, "Passes events for which an expression is true.", |e, a| expand(e, "where", a);
        "split", 0, ANY, "Passes to the stream of the first expression that is true.", |e, a| expand(e, "split", a);
        "splitp", 0, ANY, "Passes to the stream of the first test that a function accepts.", |e, a| expand(e, "splitp", a);
        "project", 0, ANY, "The vector of the last event of each expression.", |e, a| expand(e, "project", a);
        "apdex", 0, ANY, "The share of satisfied events, every dt seconds.", |e, a| expand(e, "apdex", a);
        "pipe", 0, ANY, "Streams one below the other, written one after the other.", |e, a| expand(e, "pipe", a);
        "exception-stream", 0, ANY, "Gives a stream what others throw.", |e, a| expand(e, "exception-stream", a);
        "else", 0, ANY, "The streams of the other events, in where.", |e, a| expand(e, "else", a);
    }
}

fn expand(expansion: &Expansion<'_, '_>, name: &str, arguments: &[Value]) -> Outcome {
    let form = Value::list(std::iter::once(Value::symbol(name)).chain(arguments.iter().cloned()));
    let expanded = forms::expand(&form).map_err(|error| error.within(&expansion.at))?;
    expanded.ok_or_else(|| EvalError::illegal_argument(format!("`{name}` is no macro of the streams")))
}
