//! Connections of outputs that send requests: the endpoint's addresses, TCP, TLS.
//!
//! Not here: what is sent on a connection (`http`, `mail`, `riemann`).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use deliver::endpoint::Failure;
use model::OutputId;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::daemon::shared::Shared;
use crate::outputs::addresses::locator::{Found, Locator};
use crate::outputs::socket::StreamSocket;

/// Why there is no connection, with words for people.
pub(super) type NotConnected = (Failure, String);

/// An output, and the source of its current settings.
pub(super) type Of = (Arc<Shared>, OutputId);

/// The addresses of the endpoint, when they are known.
pub(super) async fn addresses(locator: &mut Locator) -> Result<Vec<SocketAddr>, NotConnected> {
    loop {
        match locator.find() {
            Found::NotYet => locator.changed().await,
            Found::Nowhere(why, words) => return Err((why, words)),
            Found::Addresses(addresses) => return Ok(addresses),
            Found::Path(_) => return Err((Failure::ConnectFailed, "no address".to_owned())),
        }
    }
}

/// A new connection; the attempts together take `within` at most.
pub(super) async fn connect(
    locator: &mut Locator,
    within: Duration,
    of: &Of,
) -> Result<TcpStream, NotConnected> {
    let addresses = addresses(locator).await?;
    let socket = StreamSocket::tcp(&addresses, within).await.map_err(|error| failed(&error))?;
    of.0.wiring.load().outlets[of.1.index()].account.connects.fetch_add(1, Relaxed);
    match socket {
        StreamSocket::Tcp(stream) => Ok(stream),
        StreamSocket::Unix(_) => Err((Failure::ConnectFailed, "no address".to_owned())),
    }
}

fn failed(error: &io::Error) -> NotConnected {
    (Failure::ConnectFailed, tls::words::connecting(error, "tls.ca"))
}

/// The connection after the handshake of TLS. Without the settings nothing is sent, so that nothing is sent in clear text.
pub(super) async fn encrypt(stream: TcpStream, of: &Of) -> Result<TlsStream<TcpStream>, NotConnected> {
    let settings = of.0.wiring.load().certificates.of_output(of.1);
    let settings = settings.ok_or_else(|| (Failure::TlsFailed, "no certificates".to_owned()))?;
    let connector = tokio_rustls::TlsConnector::from(settings.config);
    let connected = connector.connect(settings.name, stream).await;
    connected.map_err(|error| (Failure::TlsFailed, tls::words::connecting(&error, "tls.ca")))
}
