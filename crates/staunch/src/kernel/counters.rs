//! `/proc/net/snmp` and `/proc/net/snmp6`: UDP losses of the whole machine (spec statsd §14, R10).

/// The table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Over IPv4.
    Udp,
    /// Over IPv6. A dual-stack socket counts IPv4 packets under [`Protocol::Udp`].
    Udp6,
}

impl Protocol {
    /// The label in self-metrics.
    pub fn word(self) -> &'static str {
        match self {
            Protocol::Udp => "udp",
            Protocol::Udp6 => "udp6",
        }
    }
}

/// Counts of all sockets since the network namespace was created, with the kernel's own names. `None` for counters that
/// this kernel lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpCounters {
    /// Its protocol.
    pub protocol: Protocol,
    /// `RcvbufErrors`: dropped because a receive buffer was full.
    pub rcvbuf_errors: Option<u64>,
    /// `InErrors`: dropped for any of these reasons except `NoPorts`.
    pub in_errors: Option<u64>,
    /// `NoPorts`: sent to a closed port.
    pub no_ports: Option<u64>,
    /// `MemErrors`: dropped because all UDP sockets together used too much memory (`net.ipv4.udp_mem`).
    pub mem_errors: Option<u64>,
    /// `SndbufErrors`: not sent because a send buffer was full.
    pub sndbuf_errors: Option<u64>,
    /// `InCsumErrors`: dropped because of a wrong checksum.
    pub in_csum_errors: Option<u64>,
}

impl UdpCounters {
    fn by_name(protocol: Protocol, value: impl Fn(&str) -> Option<u64>) -> UdpCounters {
        UdpCounters {
            protocol,
            rcvbuf_errors: value("RcvbufErrors"),
            in_errors: value("InErrors"),
            no_ports: value("NoPorts"),
            mem_errors: value("MemErrors"),
            sndbuf_errors: value("SndbufErrors"),
            in_csum_errors: value("InCsumErrors"),
        }
    }
}

/// The two `Udp:` rows of `/proc/net/snmp`: names, then values. Read by name, because columns were added over time.
/// `None` when they are missing.
pub fn parse_snmp(text: &str) -> Option<UdpCounters> {
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, values) = (rows.next()?, rows.next()?);
    let value = |wanted: &str| {
        let at = names.split_ascii_whitespace().position(|name| name == wanted)?;
        values.split_ascii_whitespace().nth(at)?.parse().ok()
    };
    Some(UdpCounters::by_name(Protocol::Udp, value))
}

/// The `Udp6…` rows of `/proc/net/snmp6`, each a name and a value. `None` when there is none.
pub fn parse_snmp6(text: &str) -> Option<UdpCounters> {
    let rows = || text.lines().filter_map(|line| line.strip_prefix("Udp6")?.split_once([' ', '\t']));
    rows().next()?;
    let value = |wanted: &str| {
        let (_, value) = rows().find(|(name, _)| *name == wanted)?;
        value.trim().parse().ok()
    };
    Some(UdpCounters::by_name(Protocol::Udp6, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: UdpCounters = UdpCounters {
        protocol: Protocol::Udp,
        rcvbuf_errors: None,
        in_errors: None,
        no_ports: None,
        mem_errors: None,
        sndbuf_errors: None,
        in_csum_errors: None,
    };

    #[test]
    fn the_udp_rows_are_read_by_name() {
        let others = "Ip: Forwarding DefaultTTL\nIp: 1 64\nUdpLite: InDatagrams InErrors\nUdpLite: 7 8\n";
        let table = [
            (
                "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\n\
                 Udp: 430517 8248 2011480 2595275 2011479 3 4 5 6\n",
                Some(UdpCounters {
                    rcvbuf_errors: Some(2_011_479),
                    in_errors: Some(2_011_480),
                    no_ports: Some(8248),
                    mem_errors: Some(6),
                    sndbuf_errors: Some(3),
                    in_csum_errors: Some(4),
                    ..EMPTY
                }),
            ),
            // A kernel of 2.6.32.
            (
                "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 1 2 3 4 5 6\n",
                Some(UdpCounters {
                    rcvbuf_errors: Some(5),
                    in_errors: Some(3),
                    no_ports: Some(2),
                    sndbuf_errors: Some(6),
                    ..EMPTY
                }),
            ),
            // Another order, an unknown column, a missing value and an invalid one.
            (
                "Udp: MemErrors Future RcvbufErrors NoPorts InErrors\nUdp: 9 -1 18446744073709551615 x\n",
                Some(UdpCounters { rcvbuf_errors: Some(u64::MAX), mem_errors: Some(9), ..EMPTY }),
            ),
            ("Udp:\nUdp:\n", Some(EMPTY)),
            ("Udp: InErrors\n", None),
            ("", None),
        ];
        for (text, want) in table {
            assert_eq!(parse_snmp(&format!("{others}{text}")), want, "{text}");
            assert_eq!(parse_snmp(&format!("{text}{others}")), want, "{text}");
        }
    }

    #[test]
    fn the_udp6_rows_are_names_with_values() {
        let empty = UdpCounters { protocol: Protocol::Udp6, ..EMPTY };
        let table = [
            (
                "Ip6InReceives                   \t3\nUdp6InDatagrams                 \t1\nUdp6NoPorts                     \t2\n\
                 Udp6InErrors                    \t3\nUdp6RcvbufErrors                \t4\nUdp6SndbufErrors                \t5\n\
                 Udp6InCsumErrors                \t6\nUdp6MemErrors                   \t7\nUdpLite6InErrors \t99\n",
                Some(UdpCounters {
                    no_ports: Some(2),
                    in_errors: Some(3),
                    rcvbuf_errors: Some(4),
                    sndbuf_errors: Some(5),
                    in_csum_errors: Some(6),
                    mem_errors: Some(7),
                    ..empty
                }),
            ),
            ("Udp6RcvbufErrors 4\n", Some(UdpCounters { rcvbuf_errors: Some(4), ..empty })),
            ("Udp6RcvbufErrors\tmany\n", Some(empty)),
            ("Udp6RcvbufErrors\n", None),
            ("UdpLite6InErrors \t99\nIp6InReceives \t1\n", None),
            ("", None),
        ];
        for (text, want) in table {
            assert_eq!(parse_snmp6(text), want, "{text}");
        }
    }
}
