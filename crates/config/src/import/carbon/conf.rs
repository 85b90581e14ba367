//! carbon.conf: the section of a relay or an aggregator as settings (spec graphite §4.2).
//!
//! Not here: rule files (`relay`, `rewrite`, `aggregation`), what becomes of the settings (`plan`).

use process::placement::CarbonHash;

use super::ini::{self, Entry};
use super::relay::{CarbonDestination, destination};
use crate::diagnostic::{Code, Diagnostic, Place, nearest};

/// How a relay chooses destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// `constant`: each gets everything.
    Constant,
    /// `rules`: relay-rules.conf.
    Rules,
    /// `consistent-hashing`.
    Hashing,
    /// `aggregated-consistent-hashing`: by the names of aggregates.
    AggregatedHashing,
}

const METHODS: [(&str, Method); 4] = [
    ("constant", Method::Constant),
    ("rules", Method::Rules),
    ("consistent-hashing", Method::Hashing),
    ("aggregated-consistent-hashing", Method::AggregatedHashing),
];

/// What the section says, with the original's defaults in place of what it does not.
#[derive(Debug)]
pub(super) struct Conf {
    pub(super) is_aggregator: bool,
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
    /// Destinations take lines, and not pickle.
    pub(super) sends_lines: bool,
    pub(super) destinations_place: Option<Place>,
    pub(super) replication: u8,
    pub(super) diverse: bool,
    pub(super) hash: CarbonHash,
    pub(super) dynamic: bool,
    pub(super) queue_records_max: Option<u64>,
    pub(super) flow_control: bool,
    pub(super) relay_rules: String,
    pub(super) rewrite_rules: String,
    pub(super) aggregation_rules: String,
    pub(super) forward_all: bool,
}

/// Keys that are carried over.
const KEYS: [&str; 27] = [
    "LINE_RECEIVER_INTERFACE",
    "LINE_RECEIVER_PORT",
    "ENABLE_UDP_LISTENER",
    "UDP_RECEIVER_INTERFACE",
    "UDP_RECEIVER_PORT",
    "PICKLE_RECEIVER_INTERFACE",
    "PICKLE_RECEIVER_PORT",
    "PICKLE_RECEIVER_MAX_LENGTH",
    "PROTOBUF_RECEIVER_INTERFACE",
    "PROTOBUF_RECEIVER_PORT",
    "MAX_RECEIVER_CONNECTIONS",
    "METRIC_CLIENT_IDLE_TIMEOUT",
    "RELAY_METHOD",
    "DESTINATIONS",
    "DESTINATION_PROTOCOL",
    "REPLICATION_FACTOR",
    "DIVERSE_REPLICAS",
    "ROUTER_HASH_TYPE",
    "DYNAMIC_ROUTER",
    "MAX_QUEUE_SIZE",
    "USE_FLOW_CONTROL",
    "RELAY_RULES",
    "REWRITE_RULES",
    "AGGREGATION_RULES",
    "FORWARD_ALL",
    "CONF_DIR",
    "USE_INSECURE_UNPICKLER",
];

/// Keys of other daemons, of logs and of how the process runs: nothing is lost without them.
const OTHERS: [&str; 38] = [
    "USER",
    "LOG_DIR",
    "STORAGE_DIR",
    "LOCAL_DATA_DIR",
    "PID_DIR",
    "WHITELISTS_DIR",
    "ENABLE_LOGROTATION",
    "LOG_UPDATES",
    "LOG_CREATES",
    "LOG_CACHE_HITS",
    "LOG_CACHE_QUEUE_SORTS",
    "LOG_LISTENER_CONN_SUCCESS",
    "LOG_LISTENER_CONN_LOST",
    "LOG_AGGREGATOR_MISSES",
    "TCP_KEEPALIVE",
    "TCP_KEEPIDLE",
    "TCP_KEEPINTVL",
    "TCP_KEEPCNT",
    "MAX_DATAPOINTS_PER_MESSAGE",
    "TIME_TO_DEFER_SENDING",
    "QUEUE_LOW_WATERMARK_PCT",
    "MAX_QUEUE_SIZE_HARD_PCT",
    "USE_RATIO_RESET",
    "MIN_RESET_STAT_FLOW",
    "MIN_RESET_RATIO",
    "MIN_RESET_INTERVAL",
    "DYNAMIC_ROUTER_MAX_RETRIES",
    "CACHE_METRIC_NAMES_MAX",
    "CACHE_METRIC_NAMES_TTL",
    "MAX_CACHE_SIZE",
    "CACHE_QUERY_INTERFACE",
    "CACHE_QUERY_PORT",
    "ENABLE_MANHOLE",
    "MANHOLE_INTERFACE",
    "MANHOLE_PORT",
    "MANHOLE_USER",
    "MANHOLE_PUBLIC_KEY",
    "ENABLE_AMQP",
];

/// Keys that do something in the original and nothing here, with what does it.
const NOT_HERE: [(&str, &str); 12] = [
    ("USE_WHITELIST", "write rules with `to = \"blackhole\"` for what is not wanted"),
    ("CARBON_METRIC_PREFIX", "the relay's figures are at /metrics"),
    ("CARBON_METRIC_INTERVAL", "the relay's figures are at /metrics"),
    ("MAX_AGGREGATION_INTERVALS", "a window is told once: `expire` says for how long it takes points"),
    ("WRITE_BACK_FREQUENCY", "a window is told once: `expire` says for how long it takes points"),
    ("DESTINATION_TRANSPORT", "write `tls` in the output"),
    ("DESTINATION_SSL_CA", "write `tls` in the output"),
    ("DESTINATION_POOL_REPLICAS", "write a cluster with `share = \"lb\"`"),
    ("TAG_RELAY_NORMALIZED", "names are placed as they are received"),
    ("ENABLE_TAGS", "tagged names are relayed as they are"),
    ("GRAPHITE_URL", "tagged names are relayed as they are"),
    ("AMQP_HOST", "points do not come from a broker"),
];

/// Reads the section `wanted`, such as `relay` or `relay:b`: what stands in the second overrides the first.
pub(super) fn read(text: &str, wanted: &str, wrong: &mut Vec<Diagnostic>) -> Option<Conf> {
    let sections = ini::sections(text, wrong);
    let program = wanted.split_once(':').map_or(wanted, |(program, _)| program);
    let find = |name: &str| sections.iter().find(|section| section.name == name);
    let (own, base) = (find(wanted).filter(|_| wanted != program), find(program));
    let Some(first) = own.or(base) else {
        let names: Vec<&str> = sections.iter().map(|section| section.name).collect();
        let diagnostic = Diagnostic::error(Code::MissingKey, format!("there is no section [{wanted}]"));
        let all = if names.is_empty() {
            "there are none".into()
        } else {
            format!("sections are {}", names.join(", "))
        };
        wrong.push(diagnostic.hint(all));
        return None;
    };
    let layers: Vec<&ini::Section> = own.into_iter().chain(base).collect();
    for section in &layers {
        keys(section, wrong);
    }
    let mut reader = Reader { layers: &layers, wrong };
    let is_aggregator = program == "aggregator";
    let (method, method_place) = reader.method(is_aggregator);
    let destinations = reader.destinations();
    let destinations_place = reader.get("DESTINATIONS").map(|entry| entry.place);
    if destinations.is_empty() && method != Method::Rules {
        let diagnostic = Diagnostic::error(Code::MissingKey, "DESTINATIONS is empty: nothing could be sent");
        reader.wrong.push(diagnostic.at(destinations_place.or(method_place).unwrap_or(first.place)));
    }
    Some(Conf {
        is_aggregator,
        lines: reader.address("LINE_RECEIVER", Some(2003)),
        datagrams: if reader.flag("ENABLE_UDP_LISTENER", false) {
            reader.address("UDP_RECEIVER", Some(2003))
        } else {
            None
        },
        pickle: reader.address("PICKLE_RECEIVER", Some(2004)),
        pickle_bytes_max: reader.number("PICKLE_RECEIVER_MAX_LENGTH", 64, 1 << 30),
        protobuf: reader.address("PROTOBUF_RECEIVER", None),
        connections_max: reader.number("MAX_RECEIVER_CONNECTIONS", 1, 1_000_000),
        idle_timeout_s: reader.number("METRIC_CLIENT_IDLE_TIMEOUT", 1, 86_400 * 365),
        method,
        sends_lines: reader.text("DESTINATION_PROTOCOL", "pickle") == "line",
        destinations,
        destinations_place,
        replication: reader.number("REPLICATION_FACTOR", 1, 255).unwrap_or(1) as u8,
        diverse: reader.flag("DIVERSE_REPLICAS", true),
        hash: reader.hash(),
        dynamic: reader.flag("DYNAMIC_ROUTER", false),
        queue_records_max: reader.number("MAX_QUEUE_SIZE", 1, 1 << 30),
        flow_control: reader.flag("USE_FLOW_CONTROL", true),
        relay_rules: reader.text("RELAY_RULES", "relay-rules.conf"),
        rewrite_rules: reader.text("REWRITE_RULES", "rewrite-rules.conf"),
        aggregation_rules: reader.text("AGGREGATION_RULES", "aggregation-rules.conf"),
        forward_all: reader.flag("FORWARD_ALL", true),
    })
}

/// Tells of keys that are not carried over, or not known.
fn keys(section: &ini::Section<'_>, wrong: &mut Vec<Diagnostic>) {
    for (key, place) in section.keys() {
        let same = |known: &&str| known.eq_ignore_ascii_case(key);
        if KEYS.iter().any(&same) || OTHERS.iter().any(&same) {
            continue;
        }
        if let Some((known, instead)) = NOT_HERE.iter().find(|(known, _)| same(known)) {
            let warning = Diagnostic::warning(Code::NotCarriedOver, format!("{known} is not carried over"));
            wrong.push(warning.at(place).label("left out").hint((*instead).to_owned()));
            continue;
        }
        let message = format!("carbon knows no key `{key}` in a relay or an aggregator");
        let warning = Diagnostic::warning(Code::ImportUnknownKey, message).at(place).label("not heeded");
        let near = nearest(key, KEYS.into_iter()).map(|near| format!("did you mean {near}?"));
        wrong.push(Diagnostic { hint: near, ..warning });
    }
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

    /// A number within limits; none where it is `inf`, `None`, wrong, or not there.
    fn number(&mut self, key: &str, least: u64, most: u64) -> Option<u64> {
        let entry = self.get(key)?;
        if matches!(entry.value.to_ascii_lowercase().as_str(), "inf" | "none" | "") {
            return None;
        }
        let number = entry.value.parse().ok().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let message = format!("{key} is no number of {least} to {most}");
            self.wrong.push(Diagnostic::error(Code::ImportBadValue, message).at(entry.place));
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
            let place = self.get(&key).map(|entry| entry.place).unwrap_or(Place::new(0, 0));
            self.wrong.push(Diagnostic::error(Code::ImportBadValue, message).at(place));
            return None;
        }
        (port != 0).then_some((interface, port))
    }

    /// The method, and where it stands.
    fn method(&mut self, is_aggregator: bool) -> (Method, Option<Place>) {
        let Some(entry) = self.get("RELAY_METHOD") else {
            // An aggregator that says nothing has always shared its results out by their names.
            return (if is_aggregator { Method::Hashing } else { Method::Rules }, None);
        };
        if let Some((_, method)) = METHODS.iter().find(|(word, _)| *word == entry.value) {
            return (*method, Some(entry.place));
        }
        let words = METHODS.map(|(word, _)| word);
        let diagnostic = Diagnostic::error(
            Code::ImportBadValue,
            format!("RELAY_METHOD `{}` cannot be carried over", entry.value),
        );
        let hint = match nearest(&entry.value, words.into_iter()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("methods are {}", words.join(", ")),
        };
        self.wrong.push(diagnostic.at(entry.place).hint(hint));
        (Method::Constant, Some(entry.place))
    }

    fn hash(&mut self) -> CarbonHash {
        let Some(entry) = self.get("ROUTER_HASH_TYPE") else { return CarbonHash::CarbonCh };
        match entry.value.as_str() {
            "carbon_ch" | "None" | "" => CarbonHash::CarbonCh,
            "fnv1a_ch" => CarbonHash::Fnv1aCh,
            "mmh3_ch" => CarbonHash::Mmh3Ch,
            other => {
                let message = format!("ROUTER_HASH_TYPE `{other}` is not known");
                let diagnostic = Diagnostic::error(Code::ImportBadValue, message).at(entry.place);
                self.wrong.push(diagnostic.hint("types are carbon_ch, fnv1a_ch, mmh3_ch"));
                CarbonHash::CarbonCh
            }
        }
    }

    fn destinations(&mut self) -> Vec<CarbonDestination> {
        let Some(entry) = self.get("DESTINATIONS") else { return Vec::new() };
        let mut all = Vec::new();
        for text in entry.value.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            match destination(text) {
                Some(destination) => all.push(destination),
                None => {
                    let message = format!("`{text}` is no destination");
                    let diagnostic = Diagnostic::error(Code::ImportBadValue, message).at(entry.place);
                    self.wrong.push(diagnostic.hint("write HOST:PORT or HOST:PORT:INSTANCE"));
                }
            }
        }
        all
    }
}
