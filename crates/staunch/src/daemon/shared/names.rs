//! Listeners and clients as text.

use std::net::IpAddr;

use config::plan::Listen;
use model::Peer;

/// A listener as users write it.
pub fn shown(listen: &Listen) -> String {
    match listen {
        Listen::Udp(address) => format!("udp://{address}"),
        Listen::Tcp(address) => format!("tcp://{address}"),
        Listen::UnixStream { path, .. } => format!("unix://{}", path.display()),
        Listen::UnixDatagram { path, .. } => format!("unixgram://{}", path.display()),
        Listen::UnixFrames { path, .. } => format!("unix-frames://{}", path.display()),
    }
}

/// A client by its address, which a unix socket does not report.
pub fn peer(address: Option<IpAddr>) -> Peer {
    address.map_or(Peer::UNKNOWN, |address| Peer::cut(address.to_canonical().to_string().as_bytes()))
}
