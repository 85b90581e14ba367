//! Which names a config knows, and where they are (spec riemann §7.2).

use std::sync::Arc;

use arcstr::literal;

use super::{
    alerts, clients, indexing, mailer, outputs, points, posts, publishing, services, testing, timing,
};
use crate::language::world::{Library, World};
use crate::object::reference::{Atom, Sort};
use crate::value::Value;

/// Namespaces whose names a config uses without a prefix, besides those of `clojure.core`.
const REFERRED: &[&str] = &["riemann.streams", "riemann.test", "clojure.tools.logging"];

/// Short names of namespaces.
const ALIASES: &[(&str, &str)] = &[
    ("client", "riemann.client"),
    ("common", "riemann.common"),
    ("core", "riemann.core"),
    ("folds", "riemann.folds"),
    ("graphite", "riemann.graphite"),
    ("index", "riemann.index"),
    ("logging", "riemann.logging"),
    ("pubsub", "riemann.pubsub"),
    ("query", "riemann.query"),
    ("service", "riemann.service"),
    ("str", "clojure.string"),
    ("string", "clojure.string"),
    ("test", "riemann.test"),
    ("time", "riemann.time"),
];

/// Names of other namespaces that a config uses without a prefix.
const NAMES: &[(&str, &[&str])] = &[
    ("riemann.client", &["tcp-client", "udp-client", "multi-client"]),
    ("riemann.common", &["event", "expired?"]),
    ("riemann.graphite", &["graphite-path-basic", "graphite-path-percentiles", "graphite-path-tags"]),
    ("riemann.time", &["unix-time", "linear-time", "once!", "every!"]),
];

/// All namespaces, for one config.
pub(super) fn world() -> World {
    let world = crate::language::clojure();
    crate::nodes::library::add(&world);
    crate::libraries::add(&world);
    for (namespace, natives) in [
        ("riemann.config", services::NATIVES),
        ("riemann.config", services::MISSING),
        ("riemann.test", testing::FUNCTIONS),
        ("riemann.time.controlled", testing::CONTROLLED),
        ("riemann.config", indexing::CONFIG),
        ("riemann.config", publishing::CONFIG),
        ("riemann.config", outputs::CONFIG),
        ("riemann.config", clients::CONFIG),
        ("riemann.client", clients::NATIVES),
        ("riemann.config", posts::NATIVES),
        ("riemann.config", points::NATIVES),
        ("riemann.config", alerts::NATIVES),
        ("riemann.config", mailer::NATIVES),
        ("riemann.streams", publishing::STREAMS),
        ("riemann.core", publishing::CORE),
        ("riemann.pubsub", publishing::PUBSUB),
        ("riemann.index", indexing::INDEX),
        ("riemann.query", indexing::QUERY),
        ("riemann.logging", services::LOGGING),
        ("riemann.time", timing::NATIVES),
        ("staunch", outputs::STAUNCH),
    ] {
        world.add_functions(namespace, natives);
    }
    for namespace in ["riemann.test", "clojure.test"] {
        world.add(Library { namespace, natives: &[], macros: testing::MACROS });
    }
    let config = literal!("riemann.config");
    world.namespaces().make(&config).is_native = false;
    REFERRED.iter().for_each(|space| world.refer_all(&config, space));
    for (space, names) in NAMES {
        world.refer(&config, space, names);
    }
    ALIASES.iter().for_each(|(alias, to)| world.alias(&config, alias, to));
    world
}

/// Gives the config its `core`, an atom with a map.
pub(super) fn intern_core(world: &World) {
    let core = world.intern(&literal!("riemann.config"), &literal!("core"));
    core.set(Value::Atom(Arc::new(Atom::new(Sort::Atom, Value::map([])))));
}
