//! Which names a config knows, and where they are (spec riemann §7.2).

use std::sync::Arc;

use arcstr::{ArcStr, literal};

use super::{
    alerts, clients, indexing, mailer, outputs, points, posts, publishing, services, testing, timing,
};
use crate::language::namespace::{Named, Namespaces};
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

/// Names of `riemann.config` that have a namespace of their own in Riemann: files of a config require them by it.
const HOMES: &[(&str, &[&str])] = &[
    ("riemann.clickhouse", &["clickhouse"]),
    ("riemann.datadog", &["datadog"]),
    ("riemann.elasticsearch", &["elasticsearch", "elasticsearch-bulk"]),
    ("riemann.email", &["mailer"]),
    ("riemann.graphite", &["graphite"]),
    ("riemann.hipchat", &["hipchat"]),
    ("riemann.influxdb", &["influxdb"]),
    ("riemann.influxdb2", &["influxdb2"]),
    ("riemann.kafka", &["kafka"]),
    ("riemann.kairosdb", &["kairosdb"]),
    ("riemann.librato", &["librato-metrics"]),
    ("riemann.logstash", &["logstash"]),
    ("riemann.mailgun", &["mailgun"]),
    ("riemann.msteams", &["msteams"]),
    ("riemann.nagios", &["nagios"]),
    ("riemann.opentsdb", &["opentsdb"]),
    ("riemann.opsgenie", &["opsgenie"]),
    ("riemann.pagerduty", &["pagerduty"]),
    ("riemann.plugin", &["load-plugin", "load-plugins"]),
    ("riemann.prometheus", &["prometheus", "prometheus-batch"]),
    ("riemann.pushover", &["pushover"]),
    ("riemann.rabbitmq", &["rabbitmq"]),
    ("riemann.repl", &["repl-server"]),
    ("riemann.service", &["service!"]),
    ("riemann.shinken", &["shinken"]),
    ("riemann.slack", &["slack"]),
    ("riemann.sns", &["sns-publisher"]),
    ("riemann.telegram", &["telegram"]),
    ("riemann.transport.graphite", &["graphite-server"]),
    ("riemann.transport.opentsdb", &["opentsdb-server"]),
    ("riemann.transport.rabbitmq", &["rabbitmq-transport"]),
    ("riemann.transport.sse", &["sse-server"]),
    ("riemann.transport.tcp", &["tcp-server"]),
    ("riemann.transport.udp", &["udp-server"]),
    ("riemann.transport.websockets", &["ws-server"]),
    ("riemann.twilio", &["twilio"]),
    ("riemann.victorops", &["victorops"]),
    ("riemann.xymon", &["xymon"]),
    ("riemann.zabbix", &["zabbix"]),
];

/// Functions of Clojure's other namespaces: the namespace, its name there, and that of `clojure.core`.
const OTHER_NAMES: &[(&str, &str, &str)] =
    &[("clojure.pprint", "pprint", "prn"), ("clojure.edn", "read-string", "read-string")];

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
    add_homes(&world);
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

/// Whether a namespace has only names of `riemann.config`.
pub(super) fn is_home(namespaces: &Namespaces, space: &str) -> bool {
    let names = HOMES.iter().find(|(home, _)| *home == space).map_or(0, |(_, names)| names.len());
    names > 0 && namespaces.get(space).is_some_and(|found| found.names.len() == names)
}

/// The namespaces that have names of others.
fn add_homes(world: &World) {
    let config = literal!("riemann.config");
    let mut namespaces = world.namespaces();
    let found = |namespaces: &Namespaces, space: &str, name: &str| {
        let entry = namespaces.find(space, name).map(|named| named.entry.clone());
        entry.unwrap_or_else(|| panic!("{space} has no {name}"))
    };
    let homes =
        HOMES.iter().flat_map(|(space, names)| names.iter().map(|name| (*space, *name, &*config, *name)));
    let others = OTHER_NAMES.iter().map(|(space, name, of)| (*space, *name, "clojure.core", *of));
    for (space, name, from, of) in homes.chain(others) {
        let entry = found(&namespaces, from, of);
        let home = ArcStr::from(space);
        let space = namespaces.make(&home);
        space.is_native = true;
        space.names.insert(ArcStr::from(name), Named { home: home.clone(), entry });
    }
}

/// Gives the config its `core`, an atom with a map.
pub(super) fn intern_core(world: &World) {
    let core = world.intern(&literal!("riemann.config"), &literal!("core"));
    core.set(Value::Atom(Arc::new(Atom::new(Sort::Atom, Value::map([])))));
}
