//! Resolves names of endpoints in the background (spec statsd §14 R7).
//!
//! A name is resolved at once and then whenever its TTL has passed. The result is in a [`Following`], which the
//! output's task reads without waiting. When a lookup fails, the last valid addresses stay. DNS and the hosts file are
//! used first, because of the TTL; then the system's resolver (getaddrinfo, on its own threads). Not here: the choice
//! among the addresses (`locator`).

use std::future::pending;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Most addresses of one name that are used.
const ADDRESSES_MAX: usize = 64;

/// When a name is resolved again.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Shortest interval, also after a failure.
    ttl_min: Duration,
    /// Longest interval.
    ttl_max: Duration,
    /// The interval without a TTL.
    ttl_unknown: Duration,
}

const PACE: Pace = Pace {
    ttl_min: Duration::from_secs(5),
    ttl_max: Duration::from_secs(300),
    ttl_unknown: Duration::from_secs(30),
};

/// Resolves names. One for the whole daemon.
#[derive(Debug)]
pub struct Names {
    dns: Option<TokioResolver>,
    /// Whether the system's resolver is used when DNS has no answer.
    system: bool,
    pace: Pace,
}

/// The known addresses of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its addresses, IPv4 first; the last valid ones when later lookups failed.
    pub addresses: Vec<SocketAddr>,
    /// Why the last lookup failed, in the system's words.
    pub trouble: Option<String>,
}

/// A name that is resolved repeatedly as long as this lives.
#[derive(Debug)]
pub struct Following {
    latest: watch::Receiver<Answer>,
    _asking: JoinSet<()>,
}

impl Names {
    /// Resolves with the machine's settings: its DNS servers and hosts file, then getaddrinfo.
    pub fn of_system() -> Names {
        let dns = TokioResolver::builder_tokio().and_then(|mut builder| {
            let options = builder.options_mut();
            options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
            // A second cache would only delay new answers.
            options.cache_size = 0;
            builder.build()
        });
        let dns = dns.inspect_err(|error| {
            // Only a debug message: most endpoints are addresses, and getaddrinfo may resolve the names.
            tracing::debug!("cannot read the DNS settings of this machine ({error}): TTLs are unknown");
        });
        Names { dns: dns.ok(), system: true, pace: PACE }
    }

    /// Begins to resolve `host`. An address needs no lookup.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn follow(self: &Arc<Names>, host: &str, port: u16) -> Following {
        let mut asking = JoinSet::new();
        let first = match host.parse::<IpAddr>() {
            Ok(address) => Answer { addresses: vec![(address, port).into()], trouble: None },
            Err(_a_name) => Answer::default(),
        };
        let known = !first.addresses.is_empty();
        let (answers, latest) = watch::channel(first);
        if !known {
            let (names, host) = (Arc::clone(self), host.to_owned());
            asking.spawn(async move { names.keep_asking(&host, port, answers).await });
        }
        Following { latest, _asking: asking }
    }

    async fn keep_asking(&self, host: &str, port: u16, answers: watch::Sender<Answer>) {
        loop {
            let pause = match self.ask(host).await {
                Ok((addresses, ttl)) => {
                    let addresses = in_order(&addresses, port);
                    answers.send_if_modified(|answer| answer.take_good(host, addresses));
                    ttl.clamp(self.pace.ttl_min, self.pace.ttl_max)
                }
                Err(trouble) => {
                    answers.send_if_modified(|answer| answer.take_trouble(host, trouble));
                    self.pace.ttl_min
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Addresses of `host`, at least one, and their TTL; or the first error.
    async fn ask(&self, host: &str) -> Result<(Vec<IpAddr>, Duration), String> {
        let mut trouble = None;
        if let Some(dns) = &self.dns {
            match dns.lookup_ip(host).await {
                Ok(found) => {
                    let addresses: Vec<IpAddr> = found.iter().collect();
                    let ttl_s = found.as_lookup().answers().iter().map(|record| record.ttl).min();
                    if !addresses.is_empty() {
                        return Ok((addresses, Duration::from_secs(ttl_s.unwrap_or(0).into())));
                    }
                }
                Err(error) => trouble = Some(error.to_string()),
            }
        }
        if self.system {
            match tokio::net::lookup_host((host, 0)).await {
                Ok(found) => {
                    let addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
                    if !addresses.is_empty() {
                        return Ok((addresses, self.pace.ttl_unknown));
                    }
                }
                // Users know the system's messages best.
                Err(error) => trouble = Some(error.to_string()),
            }
        }
        Err(trouble.unwrap_or_else(|| "the name has no address".to_owned()))
    }
}

/// Each address once, IPv4 first (most StatsD and Graphite listeners are IPv4), otherwise in the order of the answer.
fn in_order(addresses: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    let mut ordered: Vec<SocketAddr> = Vec::new();
    let v4 = addresses.iter().filter(|address| address.is_ipv4());
    for address in v4.chain(addresses.iter().filter(|address| address.is_ipv6())) {
        let address = SocketAddr::from((*address, port));
        if !ordered.contains(&address) && ordered.len() < ADDRESSES_MAX {
            ordered.push(address);
        }
    }
    ordered
}

impl Answer {
    /// True when the answer changed.
    fn take_good(&mut self, host: &str, addresses: Vec<SocketAddr>) -> bool {
        let mut answer = Answer { addresses, trouble: None };
        // Servers rotate addresses in every answer; a new order alone is no change.
        let same = answer.addresses.len() == self.addresses.len()
            && answer.addresses.iter().all(|address| self.addresses.contains(address));
        if same {
            std::mem::swap(&mut answer.addresses, &mut self.addresses);
        } else if !self.addresses.is_empty() {
            tracing::info!("`{host}` now resolves to {:?}", answer.addresses);
        }
        let news = !same || self.trouble.is_some();
        *self = answer;
        news
    }

    /// True when the error changed.
    fn take_trouble(&mut self, host: &str, trouble: String) -> bool {
        if self.trouble.is_none() && !self.addresses.is_empty() {
            tracing::warn!("cannot resolve `{host}` ({trouble}); using its last addresses");
        }
        let news = self.trouble.as_ref() != Some(&trouble);
        self.trouble = Some(trouble);
        news
    }
}

impl Following {
    /// The current answer.
    pub fn answer(&mut self) -> Answer {
        self.latest.borrow_and_update().clone()
    }

    /// Resolves when the answer has changed since the last call of [`Self::answer`]. Cancel-safe.
    pub async fn changed(&mut self) {
        if self.latest.changed().await.is_err() {
            // It is an address: no lookups.
            pending().await
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;
    use std::sync::{Mutex, MutexGuard};

    use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
    use hickory_resolver::net::runtime::TokioRuntimeProvider;

    use super::*;

    /// The server's answers: a name's IPv4 addresses, or none.
    type Zone = BTreeMap<&'static str, Vec<Ipv4Addr>>;

    /// A DNS server for the names of a test, with TTL 0.
    #[derive(Debug)]
    pub(crate) struct Dns {
        zone: Arc<Mutex<Zone>>,
        pub(crate) names: Arc<Names>,
        _serving: JoinSet<()>,
    }

    impl Dns {
        pub(crate) async fn new() -> Dns {
            let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
            let at = socket.local_addr().expect("it is bound");
            let zone = Arc::new(Mutex::new(Zone::new()));
            let mut serving = JoinSet::new();
            let served = Arc::clone(&zone);
            serving.spawn(async move {
                let mut question = [0; 1500];
                while let Ok((len, from)) = socket.recv_from(&mut question).await {
                    let answer = answer(&question[..len], &lock(&served));
                    let _gone = socket.send_to(&answer, from).await;
                }
            });
            let mut udp = ConnectionConfig::udp();
            udp.port = at.port();
            let server = NameServerConfig::new(at.ip(), true, vec![udp]);
            let config = ResolverConfig::from_name_servers(vec![server]);
            let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
            builder.options_mut().cache_size = 0;
            builder.options_mut().attempts = 1;
            let dns = builder.build().expect("a resolver");
            let soon = Duration::from_millis(20);
            let pace = Pace { ttl_min: soon, ttl_max: soon, ttl_unknown: soon };
            let names = Arc::new(Names { dns: Some(dns), system: false, pace });
            Dns { zone, names, _serving: serving }
        }

        pub(crate) fn set(&self, name: &'static str, addresses: &[[u8; 4]]) {
            let addresses = addresses.iter().map(|octets| Ipv4Addr::from(*octets)).collect();
            lock(&self.zone).insert(name, addresses);
        }

        pub(crate) fn remove(&self, name: &'static str) {
            lock(&self.zone).remove(name);
        }
    }

    fn lock(zone: &Mutex<Zone>) -> MutexGuard<'_, Zone> {
        zone.lock().expect("nobody panics with it")
    }

    /// The answer to one query (RFC 1035 §4); NXDOMAIN for an unknown name.
    fn answer(question: &[u8], zone: &Zone) -> Vec<u8> {
        let (mut at, mut name) = (12, String::new());
        while question[at] != 0 {
            let label = &question[at + 1..at + 1 + usize::from(question[at])];
            name.push_str(&String::from_utf8_lossy(label).to_lowercase());
            name.push('.');
            at += 1 + label.len();
        }
        let end = at + 5;
        let asks_v4 = question[at + 1..at + 3] == [0, 1];
        let found = zone.get(name.as_str());
        let addresses: &[Ipv4Addr] = found.filter(|_| asks_v4).map_or(&[], |found| found);
        let mut answer = question[..2].to_vec();
        answer.extend([
            0x85,
            if found.is_some() { 0 } else { 3 },
            0,
            1,
            0,
            addresses.len() as u8,
            0,
            0,
            0,
            0,
        ]);
        answer.extend_from_slice(&question[12..end]);
        for address in addresses {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
            answer.extend(address.octets());
        }
        answer
    }

    async fn wait_for(following: &mut Following, what: &str, seen: impl Fn(&Answer) -> bool) -> Answer {
        let wait = async {
            loop {
                let answer = following.answer();
                if seen(&answer) {
                    return answer;
                }
                following.changed().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap_or_else(|_| panic!("{what}"))
    }

    #[tokio::test]
    async fn a_name_is_resolved_again_and_keeps_its_last_valid_addresses() {
        let dns = Dns::new().await;
        dns.set("carbon.test.", &[[127, 0, 0, 1], [127, 0, 0, 2], [127, 0, 0, 1]]);
        let mut following = dns.names.follow("carbon.test.", 2003);
        let first = wait_for(&mut following, "the first answer", |answer| !answer.addresses.is_empty()).await;
        let mut addresses = first.addresses.clone();
        addresses.sort_unstable();
        assert_eq!(addresses, ["127.0.0.1:2003", "127.0.0.2:2003"].map(|at| at.parse().expect("an address")));
        dns.set("carbon.test.", &[[127, 0, 0, 3]]);
        let moved = wait_for(&mut following, "the change", |answer| answer.addresses.len() == 1).await;
        assert_eq!(moved.addresses, ["127.0.0.3:2003".parse().expect("an address")]);
        dns.remove("carbon.test.");
        let failing = wait_for(&mut following, "the failure", |answer| answer.trouble.is_some()).await;
        assert_eq!(failing.addresses, moved.addresses);
        dns.set("carbon.test.", &[[127, 0, 0, 3]]);
        let well = wait_for(&mut following, "the recovery", |answer| answer.trouble.is_none()).await;
        assert_eq!(well, moved);
    }

    #[tokio::test]
    async fn an_unresolvable_name_reports_the_reason() {
        let dns = Dns::new().await;
        let mut following = dns.names.follow("nowhere.test.", 1);
        let answer = wait_for(&mut following, "the failure", |answer| answer.trouble.is_some()).await;
        assert!(answer.addresses.is_empty(), "{answer:?}");
    }

    #[tokio::test]
    async fn an_address_needs_no_lookup() {
        // Without any resolver.
        let names = Arc::new(Names { dns: None, system: false, pace: PACE });
        for (host, want) in [("127.0.0.1", "127.0.0.1:9"), ("::1", "[::1]:9")] {
            let answer = names.follow(host, 9).answer();
            assert_eq!(answer.addresses, [want.parse().expect("an address")], "{host}");
        }
        let answer = names.ask("localhost").await;
        assert_eq!(answer, Err("the name has no address".to_owned()));
    }

    #[tokio::test]
    async fn the_systems_resolver_is_used_when_dns_has_no_answer() {
        let dns = Dns::new().await;
        let names = Names { dns: dns.names.dns.clone(), system: true, pace: PACE };
        // Only inet_aton parses it as an address: DNS sees an unknown name.
        let answer = names.ask("127.1").await;
        assert_eq!(answer, Ok((vec![IpAddr::from([127, 0, 0, 1])], PACE.ttl_unknown)));
    }

    #[test]
    fn addresses_are_deduplicated_and_limited() {
        let addresses: Vec<IpAddr> =
            ["::1", "10.0.0.2", "10.0.0.1", "10.0.0.2"].map(|at| at.parse().expect("an address")).to_vec();
        let shown: Vec<String> = in_order(&addresses, 5).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.2:5", "10.0.0.1:5", "[::1]:5"]);
        let many: Vec<IpAddr> = (0..1000_u32).map(|at| Ipv4Addr::from(at).into()).collect();
        assert_eq!(in_order(&many[..ADDRESSES_MAX], 5).len(), ADDRESSES_MAX);
        assert_eq!(in_order(&many, 5).len(), ADDRESSES_MAX);
    }
}
