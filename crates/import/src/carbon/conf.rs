//! carbon.conf: the section of a relay or an aggregator as settings (spec graphite §4.2).
//!
//! Not here: the list of keys (`keys`), rule files (`relay`, `rewrite`, `aggregation`, `lists`), the plan made from the
//! settings (`plan`).

use std::collections::BTreeSet;

use graphite::whisper::Space;
use process::sharding::CarbonHash;

use super::ini::{self, Entry};
use super::instances::{self, AGGREGATOR_CACHE, CACHE, INSTANCE, STORAGE_DIR, program_and_instance};
use super::relay::{CarbonDestination, listed};
use super::{Invocation, keys};
use crate::report::{Reports, all_of, did_you_mean};
use config::diagnostic::{Code, Diagnostic, Place};

/// How a relay chooses destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// `constant`: every destination gets every record.
    Constant,
    /// `rules`: relay-rules.conf.
    Rules,
    /// `consistent-hashing`.
    Hashing,
    /// `aggregated-consistent-hashing`: by the names of aggregates.
    AggregatedHashing,
    /// `fast-hashing`: by the order of the destinations' hashes.
    FastHashing,
    /// `fast-aggregated-hashing`: by the order of hashes, and the names of aggregates.
    FastAggregatedHashing,
}

impl Method {
    /// By the names that aggregation rules make of a name.
    pub(super) fn is_aggregated(self) -> bool {
        matches!(self, Method::AggregatedHashing | Method::FastAggregatedHashing)
    }

    /// Without a hash ring of many points.
    pub(super) fn is_fast(self) -> bool {
        matches!(self, Method::FastHashing | Method::FastAggregatedHashing)
    }

    fn hashes(self) -> bool {
        !matches!(self, Method::Constant | Method::Rules)
    }
}

const METHODS: [(&str, Method); 6] = [
    ("constant", Method::Constant),
    ("rules", Method::Rules),
    ("consistent-hashing", Method::Hashing),
    ("aggregated-consistent-hashing", Method::AggregatedHashing),
    ("fast-hashing", Method::FastHashing),
    ("fast-aggregated-hashing", Method::FastAggregatedHashing),
];

/// Format that destinations expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// `line`
    Lines,
    /// `pickle`, the default.
    Pickle,
}

const SENT: &str = "supported protocols, each with other ports in DESTINATIONS,";
const PROTOCOLS: [(&str, Protocol); 2] = [("pickle", Protocol::Pickle), ("line", Protocol::Lines)];

/// Words of `DESTINATION_TRANSPORT`, and whether they mean TLS.
const TRANSPORTS: [(&str, bool); 4] = [("none", false), ("ssl", true), ("None", false), ("", false)];

/// Words of `ROUTER_HASH_TYPE`; none for the method's own.
const HASHES: [(&str, Option<CarbonHash>); 5] = [
    ("carbon_ch", Some(CarbonHash::CarbonCh)),
    ("fnv1a_ch", Some(CarbonHash::Fnv1aCh)),
    ("mmh3_ch", Some(CarbonHash::Mmh3Ch)),
    ("None", Some(CarbonHash::CarbonCh)),
    ("", None),
];

/// Default of `REWRITE_RULES` for an aggregator.
pub(super) const REWRITE_RULES: &str = "rewrite-rules.conf";

/// Files of USE_WHITELIST, beside carbon.conf.
const BLACKLIST: &str = "blacklist.conf";
const WHITELIST: &str = "whitelist.conf";

/// The programs in messages.
const SECTIONS: &str = "[cache], [relay], [aggregator] or [aggregator-cache]";

/// The settings of the section, with the original's defaults for missing keys.
#[derive(Debug)]
pub(super) struct Conf {
    pub(super) is_aggregator: bool,
    /// The store of a cache.
    pub(super) store: Option<StoreConf>,
    /// Address and port of lines over TCP; none when the port is 0.
    pub(super) lines: Option<(String, u16)>,
    pub(super) datagrams: Option<(String, u16)>,
    pub(super) pickle: Option<(String, u16)>,
    pub(super) pickle_bytes_max: Option<u64>,
    pub(super) protobuf: Option<(String, u16)>,
    pub(super) connections_max: Option<u64>,
    pub(super) idle_timeout_s: Option<u64>,
    pub(super) method: Method,
    pub(super) destinations: Vec<CarbonDestination>,
    pub(super) protocol: Protocol,
    /// `DESTINATION_TRANSPORT = ssl`, and `DESTINATION_SSL_CA` if there is one.
    pub(super) tls: Option<Option<String>>,
    pub(super) replication: u8,
    pub(super) diverse: bool,
    pub(super) hash: CarbonHash,
    pub(super) dynamic: bool,
    pub(super) queue_records_max: Option<u64>,
    pub(super) flow_control: bool,
    /// `CONF_DIR`: the folder of the rule files; empty for that of carbon.conf.
    pub(super) conf_dir: String,
    pub(super) relay_rules: String,
    pub(super) rewrite_rules: String,
    pub(super) aggregation_rules: String,
    pub(super) forward_all: bool,
    /// The two lists apply.
    pub(super) lists: bool,
    pub(super) blacklist: String,
    pub(super) whitelist: String,
    /// Tags are sorted before a name is hashed.
    pub(super) tags_in_order: bool,
    /// `CARBON_METRIC_INTERVAL`: seconds between two reports of own metrics; 0 for none.
    pub(super) report_every_s: u64,
    /// `CARBON_METRIC_PREFIX`
    pub(super) report_prefix: String,
}

/// The settings of carbon-cache.py's store.
#[derive(Debug)]
pub(super) struct StoreConf {
    /// `LOCAL_DATA_DIR`: the folder of the whisper files.
    pub(super) folder: String,
    pub(super) new_files: Space,
    pub(super) lock: bool,
    /// Most points in memory; none for `inf`.
    pub(super) points_max: Option<u64>,
    pub(super) updates_per_second_max: u32,
    pub(super) creates_per_minute_max: u32,
    pub(super) hash_tagged_names: bool,
    /// CarbonLink.
    pub(super) queries: Option<(String, u16)>,
}

/// Reads the section of a daemon, such as `relay` or `relay:b`: keys in the second one override those in the first. The
/// default instance is `a`.
pub(super) fn read(text: &str, invocation: &Invocation, wrong: &mut Vec<Diagnostic>) -> Option<Conf> {
    let sections = ini::sections(text, wrong);
    let wanted = &*invocation.section;
    let layers = layers(&sections, wanted, wrong)?;
    instances::warn_unknown(&sections, wrong);
    let (program, _) = program_and_instance(wanted);
    let has_store = matches!(program, CACHE | AGGREGATOR_CACHE);
    for section in &layers {
        keys::tell(section, has_store, wrong);
    }
    let is_aggregator = matches!(program, "aggregator" | AGGREGATOR_CACHE);
    let storage_dir = invocation.storage_dir.as_deref().unwrap_or(STORAGE_DIR);
    if has_store {
        instances::warn_shared_files(&sections, wanted, storage_dir, wrong);
    }
    let mut reader = Reader { layers: &layers, wrong };
    let first = layers[0];
    let store = has_store.then(|| reader.store(storage_dir));
    let (method, method_place) = match &store {
        Some(_) => (Method::Constant, None),
        None => reader.method(is_aggregator),
    };
    let destinations = if store.is_some() { Vec::new() } else { reader.destinations(method) };
    let destinations_place = reader.get("DESTINATIONS").map(|entry| entry.place);
    reader.listens_everywhere(&instances::shown(&layers, wanted), store.is_some());
    reader.unpickler();
    if destinations.is_empty() && store.is_none() && method != Method::Rules {
        let place = destinations_place.or(method_place).unwrap_or(first.place);
        let message = "DESTINATIONS is empty: there is no endpoint to send to";
        reader.wrong.error(Code::MissingKey, place, message);
    }
    Some(Conf {
        is_aggregator,
        store,
        lines: reader.address("LINE_RECEIVER", Some(2003)),
        datagrams: if reader.flag("ENABLE_UDP_LISTENER", false) {
            reader.address("UDP_RECEIVER", Some(2003))
        } else {
            None
        },
        pickle: reader.address("PICKLE_RECEIVER", Some(2004)),
        pickle_bytes_max: reader.number("PICKLE_RECEIVER_MAX_LENGTH", 64, 64 << 20),
        protobuf: reader.address("PROTOBUF_RECEIVER", None),
        connections_max: reader.number("MAX_RECEIVER_CONNECTIONS", 1, 1_000_000),
        idle_timeout_s: reader.number("METRIC_CLIENT_IDLE_TIMEOUT", 1, 86_400 * 365),
        method,
        protocol: reader.keyword("DESTINATION_PROTOCOL", Protocol::Pickle, &PROTOCOLS, SENT),
        tls: reader.tls(),
        destinations,
        replication: reader.number("REPLICATION_FACTOR", 1, 255).unwrap_or(1) as u8,
        diverse: reader.flag("DIVERSE_REPLICAS", true),
        hash: reader.hash(method),
        dynamic: reader.flag("DYNAMIC_ROUTER", false),
        queue_records_max: reader.number("MAX_QUEUE_SIZE", 1, 1 << 30),
        flow_control: reader.flag("USE_FLOW_CONTROL", true),
        conf_dir: reader.text("CONF_DIR", ""),
        relay_rules: given(&invocation.rules, !is_aggregator)
            .unwrap_or_else(|| reader.text("RELAY_RULES", "relay-rules.conf")),
        rewrite_rules: given(&invocation.rewrite_rules, true)
            .unwrap_or_else(|| reader.text("REWRITE_RULES", REWRITE_RULES)),
        aggregation_rules: given(&invocation.rules, is_aggregator)
            .unwrap_or_else(|| reader.text("AGGREGATION_RULES", "aggregation-rules.conf")),
        forward_all: reader.flag("FORWARD_ALL", true),
        lists: reader.flag("USE_WHITELIST", false),
        blacklist: given(&invocation.blacklist, true).unwrap_or_else(|| BLACKLIST.to_owned()),
        whitelist: given(&invocation.whitelist, true).unwrap_or_else(|| WHITELIST.to_owned()),
        tags_in_order: reader.flag("TAG_RELAY_NORMALIZED", false),
        report_every_s: reader.number("CARBON_METRIC_INTERVAL", 0, 86_400).unwrap_or(60),
        report_prefix: reader.text("CARBON_METRIC_PREFIX", "carbon"),
    })
}

/// A file that the command line names, if the option is meant.
fn given(file: &Option<String>, is_meant: bool) -> Option<String> {
    file.clone().filter(|_| is_meant)
}

/// The section `wanted`, and that of its program; at least one. None when an error was reported.
fn layers<'a, 'b>(
    sections: &'a [ini::Section<'b>],
    wanted: &str,
    wrong: &mut Vec<Diagnostic>,
) -> Option<Vec<&'a ini::Section<'b>>> {
    let (program, instance) = program_and_instance(wanted);
    let layers = instances::layers(sections, wanted);
    let Some(first) = layers.first() else {
        let names: Vec<String> = sections.iter().map(|section| format!("[{}]", section.name)).collect();
        let report = wrong.error(Code::MissingKey, None, format!("there is no section [{wanted}]"));
        report.hint(match &names[..] {
            [] => format!("expected a carbon.conf with the section {SECTIONS}"),
            names => format!("expected {SECTIONS}; there is {}", names.join(", ")),
        });
        return None;
    };
    if first.name == program && instance != INSTANCE {
        let message = format!("no section [{wanted}]; the settings of [{program}] are used");
        let report = wrong.warning(Code::ImportNoEffect, first.place, message);
        report.hint("carbon reports no error; check the instance name");
    }
    Some(layers)
}

struct Reader<'a, 'b> {
    /// The section of the instance, and that of the program.
    layers: &'a [&'a ini::Section<'b>],
    wrong: &'a mut Vec<Diagnostic>,
}

impl<'a> Reader<'a, '_> {
    fn get(&self, key: &str) -> Option<&'a Entry<'a>> {
        let key = key.to_ascii_lowercase();
        self.layers.iter().find_map(|section| section.get(&key))
    }

    fn text(&self, key: &str, default: &str) -> String {
        self.get(key).map_or(default, |entry| &*entry.value).to_owned()
    }

    fn flag(&mut self, key: &str, default: bool) -> bool {
        let key = key.to_ascii_lowercase();
        match self.layers.iter().find(|section| section.get(&key).is_some()) {
            Some(section) => section.flag(&key, self.wrong),
            None => default,
        }
    }

    /// A number within limits; none where it is `inf`, `None`, wrong or missing.
    fn number(&mut self, key: &str, least: u64, most: u64) -> Option<u64> {
        let entry = self.get(key)?;
        if matches!(entry.value.to_ascii_lowercase().as_str(), "inf" | "none" | "") {
            return None;
        }
        let number = entry.value.parse().ok().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let message = format!("{key} is not a number from {least} to {most}");
            self.wrong.error(Code::ImportBadValue, entry.place, message);
        }
        number
    }

    /// `…_INTERFACE` and `…_PORT`; none for port 0, or without a port where there is no default.
    fn address(&mut self, prefix: &str, port: Option<u16>) -> Option<(String, u16)> {
        let port = match self.number(&format!("{prefix}_PORT"), 0, 65_535) {
            Some(port) => port as u16,
            None => port?,
        };
        let key = format!("{prefix}_INTERFACE");
        let interface = self.text(&key, "0.0.0.0");
        if interface.parse::<std::net::IpAddr>().is_err() {
            let message = format!("{key} is not an IP address; names are not looked up here");
            let place = self.get(&key).map(|entry| entry.place);
            self.wrong.error(Code::ImportBadValue, place, message);
            return None;
        }
        (port != 0).then_some((interface, port))
    }

    /// Warns about receivers that listen on every interface because no interface is configured.
    fn listens_everywhere(&mut self, daemon: &str, has_store: bool) {
        let place = self.layers[0].place;
        let mut receivers = vec!["LINE_RECEIVER", "PICKLE_RECEIVER"];
        let mut more = |needs: bool, receiver| receivers.extend(needs.then_some(receiver));
        more(has_store, "CACHE_QUERY");
        more(self.flag("ENABLE_UDP_LISTENER", false), "UDP_RECEIVER");
        more(self.get("PROTOBUF_RECEIVER_PORT").is_some(), "PROTOBUF_RECEIVER");
        let silent = |receiver: &&str| {
            let off = self.get(&format!("{receiver}_PORT")).is_some_and(|entry| entry.value == "0");
            !off && self.get(&format!("{receiver}_INTERFACE")).is_none()
        };
        let keys: Vec<String> =
            receivers.into_iter().filter(silent).map(|key| format!("{key}_INTERFACE")).collect();
        if !keys.is_empty() {
            let are = if keys.len() == 1 { "is" } else { "are" };
            let keys = all_of(&keys);
            let message = format!("{daemon} listens on every interface, 0.0.0.0: {keys} {are} not set");
            let report = self.wrong.warning(Code::ListensEverywhere, place, message).label("as carbon does");
            report.hint("if only this machine sends, set 127.0.0.1 in `listen` of the native file");
        }
    }

    /// The store of carbon-cache.py.
    fn store(&mut self, storage_dir: &str) -> StoreConf {
        let new_files =
            match (self.flag("WHISPER_SPARSE_CREATE", false), self.flag("WHISPER_FALLOCATE_CREATE", false)) {
                (true, _) => Space::Sparse,
                (false, true) => Space::Allocate,
                (false, false) => Space::Zeros,
            };
        if let Some(entry) = self.get("DATABASE").filter(|entry| entry.value != "whisper") {
            let message = format!("DATABASE `{}` is not supported", entry.value);
            self.wrong.error(Code::ImportBadValue, entry.place, message).hint("the only store is whisper");
        }
        StoreConf {
            folder: instances::storage_folder(self.layers, "LOCAL_DATA_DIR", storage_dir, "whisper"),
            new_files,
            lock: self.flag("WHISPER_LOCK_WRITES", false),
            points_max: self.number("MAX_CACHE_SIZE", 1, 1 << 40),
            updates_per_second_max: self.number("MAX_UPDATES_PER_SECOND", 1, 1_000_000).unwrap_or(0) as u32,
            creates_per_minute_max: self.number("MAX_CREATES_PER_MINUTE", 1, 1_000_000).unwrap_or(0) as u32,
            hash_tagged_names: self.flag("TAG_HASH_FILENAMES", true),
            queries: self.address("CACHE_QUERY", Some(7002)),
        }
    }

    fn unpickler(&mut self) {
        const KEY: &str = "USE_INSECURE_UNPICKLER";
        if let Some(entry) = self.get(KEY)
            && self.flag(KEY, false)
        {
            let message = "pickles never execute code in Staunch";
            let report = self.wrong.warning(Code::NotCarriedOver, entry.place, message).label("left out");
            report.hint(
                "numbers, strings, lists, tuples and dicts are read, and carbon's clients send nothing else",
            );
        }
    }

    /// The value of a key with a table of words; the default when it is missing or wrong.
    fn keyword<T: Copy>(&mut self, key: &str, default: T, table: &[(&str, T)], what: &str) -> T {
        let Some(entry) = self.get(key) else { return default };
        if let Some((_, value)) = table.iter().find(|(word, _)| *word == entry.value) {
            return *value;
        }
        let words = table.iter().map(|(word, _)| *word).filter(|word| !matches!(*word, "" | "None"));
        let report = self.wrong.error(
            Code::ImportBadValue,
            entry.place,
            format!("{key} `{}` is not supported", entry.value),
        );
        report.hint(did_you_mean(&entry.value, words, what));
        default
    }

    fn tls(&mut self) -> Option<Option<String>> {
        let is_tls = self.keyword("DESTINATION_TRANSPORT", false, &TRANSPORTS, "transports");
        is_tls.then(|| self.get("DESTINATION_SSL_CA").map(|entry| entry.value.clone()))
    }

    /// The method, and its place.
    fn method(&mut self, is_aggregator: bool) -> (Method, Option<Place>) {
        if is_aggregator {
            if let Some(entry) = self.get("RELAY_METHOD").filter(|entry| entry.value != "consistent-hashing")
            {
                let message = "an aggregator always uses consistent-hashing, and ignores RELAY_METHOD";
                let report = self.wrong.warning(Code::ImportNoEffect, entry.place, message);
                report.label("ignored by carbon").hint("remove the line");
            }
            return (Method::Hashing, None);
        }
        let place = self.get("RELAY_METHOD").map(|entry| entry.place);
        let method = place.map(|_| self.keyword("RELAY_METHOD", Method::Constant, &METHODS, "methods"));
        (method.unwrap_or(Method::Rules), place)
    }

    fn hash(&mut self, method: Method) -> CarbonHash {
        let default = if method.is_fast() { CarbonHash::Mmh3Ch } else { CarbonHash::CarbonCh };
        self.keyword("ROUTER_HASH_TYPE", Some(default), &HASHES, "types").unwrap_or(default)
    }

    fn destinations(&mut self, method: Method) -> Vec<CarbonDestination> {
        let Some(entry) = self.get("DESTINATIONS") else { return Vec::new() };
        let mut all: Vec<CarbonDestination> = Vec::new();
        let (mut seen, mut positions) = (BTreeSet::new(), BTreeSet::new());
        for (destination, text) in listed(entry, self.wrong) {
            // Carbon accepts a destination that is listed twice.
            if !seen.insert(destination.clone()) {
                continue;
            }
            let is_new = positions.insert((destination.host.clone(), destination.instance.clone()));
            if method.hashes() && !is_new {
                let message = format!("`{text}` has the ring position of another destination of its host");
                let report = self.wrong.error(Code::ImportBadValue, entry.place_of(text), message);
                let report = report.label("one host without instances");
                report.hint("give each an instance: HOST:PORT:INSTANCE; carbon does not start");
            }
            all.push(destination);
        }
        all
    }
}
