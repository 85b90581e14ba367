//! One UDP or unix datagram endpoint: sends packets as its sender says (sendmmsg on a connected socket).
//!
//! Not here: what to send and what is settled (`deliver::datagram`).

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use config::plan::Destination;
use deliver::datagram::{DatagramAction, DatagramSender, SendError};
use deliver::plan::SenderPlan;

use crate::clock::Clock;
use crate::daemon::outlet::Outlet;
use crate::outputs::socket::DatagramSocket;
use crate::outputs::{publish, tell};
use crate::sys::{PacketWriter, Wait};

/// Packets of one system call.
const PACKETS_MAX: usize = 64;

/// Drives the sender of one endpoint until its outlet stops.
pub async fn run(to: Destination, plan: SenderPlan, outlet: Arc<Outlet>, seed: u64) {
    let mut sender = DatagramSender::new(plan, Arc::clone(&outlet.account), seed);
    let mut writer = PacketWriter::new(PACKETS_MAX);
    let place = to.to_string();
    let mut socket: Option<DatagramSocket> = None;
    let mut error = None;
    while !sender.stopped() {
        if outlet.is_stopping() {
            sender.begin_stop(outlet.deadline_ns());
        }
        let mut waits_for_room = false;
        // An error that followed a short count of sendmmsg waits in the socket.
        if let Some(failed) = socket.as_ref().and_then(DatagramSocket::take_error) {
            sender.on_error(send_error(&failed, &to), Clock::now());
            error = Some(failed.to_string());
        }
        let now = Clock::now();
        let action = sender.poll(&mut outlet.queue(), PACKETS_MAX, now);
        let wait = match action {
            DatagramAction::Open => {
                match DatagramSocket::open(&to).await {
                    Ok(opened) => {
                        writer.begin(opened.as_fd());
                        socket = Some(opened);
                        sender.on_opened(Clock::now());
                    }
                    Err(failed) => {
                        error = Some(failed.to_string());
                        sender.on_open_failed(Clock::now());
                    }
                }
                false
            }
            DatagramAction::Send(packets) => {
                let sent = match &socket {
                    Some(socket) => writer.send(socket.as_fd(), packets.bytes, packets.spans, Wait::No),
                    None => Err(io::ErrorKind::NotConnected.into()),
                };
                match sent {
                    Ok(packets) => sender.on_sent(packets, Clock::now()),
                    Err(failed) => {
                        let why = send_error(&failed, &to);
                        waits_for_room = why == SendError::WouldBlock;
                        error = Some(failed.to_string());
                        sender.on_error(why, Clock::now());
                    }
                }
                false
            }
            DatagramAction::WaitUntil(_) | DatagramAction::Idle => true,
        };
        while let Some(news) = sender.take_news() {
            tell(&outlet, &place, news, error.take().as_deref());
        }
        publish(&outlet, sender.waiting_copies(), sender.waiting_bytes(), sender.state());
        // A sender that has just come to its end says `Idle`, for good.
        if wait && !sender.stopped() {
            rest(&mut sender, &outlet, socket.as_ref().filter(|_| waits_for_room)).await;
        } else {
            // Other endpoints have their turn, however long this queue is.
            tokio::task::yield_now().await;
        }
    }
    sender.finish_stop(&mut outlet.queue(), Clock::now());
    publish(&outlet, 0, 0, sender.state());
    outlet.set_ended();
}

async fn rest(sender: &mut DatagramSender, outlet: &Outlet, full: Option<&DatagramSocket>) {
    let pause = match sender.wake_ns() {
        Some(at_ns) => Duration::from_nanos(at_ns.saturating_sub(Clock::mono_ns())),
        None => Duration::from_secs(3600),
    };
    let writable = async {
        match full {
            Some(socket) => socket.writable().await,
            None => std::future::pending().await,
        }
    };
    // All branches are cancel-safe: they only ask.
    tokio::select! {
        () = outlet.woken() => {}
        () = tokio::time::sleep(pause) => {}
        _room = writable => sender.on_writable(),
    }
}

fn send_error(error: &io::Error, to: &Destination) -> SendError {
    match error.raw_os_error() {
        // On UDP it tells of an earlier packet; on a unix socket nobody listens at the other end any more.
        Some(libc::ECONNREFUSED) if matches!(to, Destination::Udp(_)) => SendError::Refused,
        Some(libc::ECONNREFUSED | libc::EPIPE) => SendError::Gone,
        Some(libc::EAGAIN | libc::ENOBUFS) => SendError::WouldBlock,
        Some(libc::EMSGSIZE) => SendError::TooBig,
        Some(libc::ECONNRESET | libc::ENOTCONN) => SendError::Gone,
        _ if error.kind() == io::ErrorKind::NotConnected => SendError::Gone,
        _ => SendError::Other,
    }
}

#[cfg(test)]
mod tests {
    use config::plan::Endpoint;
    use deliver::plan::QueueLimits;
    use deliver::queue::{Block, BlockForm};
    use model::{OutputAccount, Span};

    use super::*;

    #[tokio::test]
    async fn an_endpoint_that_cannot_be_opened_does_not_hold_up_the_stop() {
        let account = Arc::new(OutputAccount::default());
        let outlet = Arc::new(Outlet::new("o", QueueLimits::default(), &account));
        let now = Clock::now();
        let form = BlockForm::Packets(Arc::new(vec![Span::new(0, 5)]));
        let bytes = Arc::new(b"a:1|c".to_vec());
        outlet.append(Block { bytes, copies: 1, form, at_ns: now.mono_ns }, now);
        outlet.stop(now.mono_ns + 100_000_000);
        // Not an address, and by its characters not a name that anybody can look up.
        let to = Destination::Udp(Endpoint { host: "not a host".into(), port: 1 });
        let ended = run(to, SenderPlan::default(), Arc::clone(&outlet), 1);
        tokio::time::timeout(Duration::from_secs(5), ended).await.expect("ends at its deadline");
        assert_eq!(account.shed(model::Shed::Stopped), 1);
        assert!(outlet.sum().holds() && outlet.sum().waiting == 0);
    }
}
