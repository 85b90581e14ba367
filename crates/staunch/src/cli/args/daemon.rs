//! Options of every command that runs a daemon: addresses, and hot restart.

use std::net::SocketAddr;

/// Addresses that override those of a config.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Ports {
    /// Address of the HTTP API, or `off`.
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<Port>,
    /// Address of the StatsD management port, or `off`.
    #[arg(long, value_name = "ADDR")]
    pub(crate) management: Option<Port>,
}

/// An address or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// Switched off.
    Off,
    /// Listen here.
    At(SocketAddr),
}

impl std::str::FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Port, String> {
        if text == "off" {
            return Ok(Port::Off);
        }
        if let Ok(port) = text.trim_start_matches(':').parse() {
            return Ok(Port::At(SocketAddr::from(([127, 0, 0, 1], port))));
        }
        let wanted = "expected an address such as 127.0.0.1:8680, a port on 127.0.0.1, or `off`";
        text.parse().map(Port::At).map_err(|_| wanted.into())
    }
}

/// Hot restart.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct HotRestart {
    /// Hot restart: replace the running process.
    ///
    /// The running process is found by its data directory. It passes its sockets, its state and its queued records to the new
    /// process, and exits; no packet is lost. If the new process fails before it has everything, the running one continues.
    /// If no process is running, this is a normal start. Linux only.
    #[arg(long, alias = "take-over")]
    pub(crate) hot_restart: bool,
}

#[test]
fn ports_are_addresses_ports_or_off() {
    let at = |text: &str| Port::At(text.parse().expect("an address"));
    for (text, want) in [
        ("off", Some(Port::Off)),
        ("8126", Some(at("127.0.0.1:8126"))),
        (":8126", Some(at("127.0.0.1:8126"))),
        ("0.0.0.0:80", Some(at("0.0.0.0:80"))),
        ("[::1]:80", Some(at("[::1]:80"))),
        ("localhost:80", None),
        ("65536", None),
        ("", None),
    ] {
        assert_eq!(text.parse::<Port>().ok(), want, "{text:?}");
    }
}
