//! Macros around bodies: what is computed later, transactions, printing.

use super::forms::{body, core, function, special};
use crate::language::machine::ANY;
use crate::macros;

macros! {
    /// Bodies.
    pub MACROS = {
        "delay", 0, ANY, "The value of a body, computed when it is needed.", |_, f| Ok(core("delay*", [function([], body(f))]));
        "lazy-seq", 0, ANY, "The sequence of a body, computed when it is needed.", |_, f| Ok(core("lazy-seq*", [function([], body(f))]));
        "lazy-cat", 0, ANY, "The values of sequences that are computed when they are needed.", |_, f| Ok(core("concat", f.iter().map(|form| core("lazy-seq", [form.clone()])).collect::<Vec<_>>()));
        "future", 0, ANY, "The value of a body, which runs at once.", |_, f| Ok(core("future-call", [function([], body(f))]));
        "dosync", 0, ANY, "The body: one thread runs a config at a time.", |_, f| Ok(body(f));
        "io!", 0, ANY, "The body.", |_, f| Ok(body(f));
        "locking", 1, ANY, "The body.", |_, f| Ok(body(f));
        "sync", 0, ANY, "The body.", |_, f| Ok(body(&f[1.min(f.len())..]));
        "time", 1, 1, "The form.", |_, f| Ok(f[0].clone());
        "bound-fn", 1, ANY, "A function.", |_, f| Ok(special("fn", f.iter().cloned()));
        "with-open", 1, ANY, "The body with names bound; there is nothing to close here.", |_, f| Ok(special("let", f.iter().cloned()));
        "with-out-str", 0, ANY, "The text that a body prints.", |_, f| Ok(core(" with-out-str", [function([], body(f))]));
        "with-bindings", 1, ANY, "The body with vars bound as a map has it.", |_, f| Ok(core(" with-bindings", [f[0].clone(), function([], body(&f[1..]))]));
    }
}
