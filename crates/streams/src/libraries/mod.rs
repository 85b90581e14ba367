//! Functions of values that configs use besides Clojure's own, one file a namespace (spec riemann §12).
//!
//! Not here: what declares something or has an effect (`riemann`), streams (`nodes`), folds (`folds`).

mod cheshire;
mod clj_time;
mod events;
mod graphite;
mod logging;
mod mail;
mod time;

#[cfg(test)]
mod tests;

use crate::language::world::World;

/// Adds these namespaces.
pub fn add(world: &World) {
    for (namespace, natives) in [
        ("riemann.common", events::NATIVES),
        ("riemann.common", mail::NATIVES),
        ("riemann.streams", events::PREDICATES),
        ("riemann.graphite", graphite::NATIVES),
        ("riemann.time", time::NATIVES),
        ("cheshire.core", cheshire::NATIVES),
        ("clojure.tools.logging", logging::NATIVES),
    ] {
        world.add_functions(namespace, natives);
    }
    clj_time::add(world);
}
