//! F1: `kill -9` in a loop, under load that is acknowledged as safe.
//!
//! Clients send, keep what is not acknowledged and send it again to the next instance. Every record that was ever
//! acknowledged must arrive. What arrives twice was in flight at a kill: unacknowledged at a client, waiting for its
//! outcome, or delivered by an instance that could not note it any more. Now and then the endpoint does not read when the kill comes, so that what
//! was acknowledged is on disk and nowhere else.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::acked::AckedClient;
use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding};
use crate::oracle::Form;
use crate::support::{Builder, Daemon};

const CLIENTS: u64 = 2;

/// Records that a client lets wait for their ack.
const WINDOW: u64 = 1_000;

/// Records between the first ids of two clients.
const IDS: u64 = 20_000_000;

/// Acknowledged records between two kills, at least.
const ROUND_RECORDS: u64 = 1_000;

/// Each so many rounds the endpoint does not read.
const SILENT_EVERY: u64 = 4;

/// What an instance delivered in so long before its end it may not have noted: that counts as in flight.
const UNWRITTEN: Duration = Duration::from_millis(50);

const PATIENCE: Duration = Duration::from_secs(60);

/// A port that nobody else gets although the daemon that listens there comes and goes.
fn held_port() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a descriptor is free");
    socket.set_reuse_address(true).expect("a socket can be asked to share its port");
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
    let at = socket.local_addr().ok().and_then(|at| at.as_socket()).expect("it is bound");
    (socket, at)
}

/// Everything that came to the endpoint.
fn lines(endpoint: &Endpoint) -> u64 {
    let count = endpoint.oracle.count();
    count.arrived + count.twice
}

pub(crate) fn run(bench: &Bench) -> End {
    let kills: u64 = bench.pick(20, 200);
    let endpoint = Endpoint::new(Form::Line);
    let (_port, at) = held_port();
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://{at}\"]\nack_when = \"safe\"\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\nmin_retry_delay = \"20ms\"\nmax_retry_delay = \"100ms\"\n\
         write_timeout = \"1h\"\nqueue = {{ kind = \"disk\" }}\n",
        endpoint.to()
    );
    let mut daemon = Builder::native(&toml).start();
    let clients: Vec<_> = (0..CLIENTS).map(|client| AckedClient::start(at, client * IDS, WINDOW)).collect();
    let acked = || clients.iter().map(|client| client.progress.acked.load(SeqCst)).sum::<u64>();
    let mut random = bench.random();
    let mut finding = Finding::default();
    let (mut in_flight, mut damaged) = (0, 0);
    for kill in 0..kills {
        endpoint.be_silent(kill % SILENT_EVERY == SILENT_EVERY - 1);
        let before = acked();
        let went_on = bench.wait("acks", PATIENCE, || (acked() >= before + ROUND_RECORDS).then_some(()));
        finding.promise(went_on.is_some(), || format!("no acks after {kill} kills:\n{}", daemon.stderr()));
        if went_on.is_none() {
            break;
        }
        let early = lines(&endpoint);
        std::thread::sleep(UNWRITTEN + Duration::from_millis(random.below(30) as u64));
        let row = daemon.output("copy");
        in_flight += Daemon::number(&row, "queued") + CLIENTS * WINDOW;
        damaged += Daemon::number(&row, "losses/dropped/damaged");
        daemon.signal("KILL");
        daemon.wait_exit();
        in_flight += lines(&endpoint) - early;
        endpoint.be_silent(false);
        daemon.start_again();
        bench.say(|| format!("{kill} of {kills} kills, {} records acknowledged", acked()));
    }
    let again: u64 = clients.iter().map(|client| client.progress.again.load(SeqCst)).sum();
    let errors = |client: &AckedClient| client.progress.errors.lock().expect("nobody panics with it").clone();
    let errors: Vec<String> = clients.iter().flat_map(errors).collect();
    let ids: Vec<_> = clients.into_iter().map(AckedClient::finish).collect();
    let empty = bench.wait("the queue to drain", PATIENCE, || {
        (Daemon::number(&daemon.output("copy"), "queued") == 0).then_some(())
    });
    finding.promise(empty.is_some(), || "the queue did not drain".into());
    finding.sent = ids.iter().map(|ids| ids.end - ids.start).sum();
    let sent = finding.sent;
    let _read =
        bench.wait("the endpoint to read", PATIENCE, || (endpoint.oracle.arrived() >= sent).then_some(()));
    finding.add(&endpoint.oracle.count());
    let missing: usize = ids.into_iter().map(|ids| endpoint.oracle.missing(ids).len()).sum();
    finding.done = format!("{kills} kills -9, ack_when safe");
    finding.promise(missing == 0, || format!("{missing} acknowledged records never arrived"));
    let (twice, each) = (finding.twice, |count: u64| count / kills);
    finding.figure(format!(
        "for each kill {} twice, of {} in flight; {} of them sent again by {CLIENTS} clients with at most \
         {WINDOW} unacknowledged",
        each(twice),
        each(in_flight),
        each(again)
    ));
    finding.promise(twice <= in_flight, || format!("{twice} arrived twice, {in_flight} were in flight"));
    // The client sends again, as after any end of its connection: nothing is lost by it.
    if !errors.is_empty() {
        finding.figure(format!("{damaged} copies torn by kills; clients got {errors:?}"));
    }
    daemon.assert_sums_hold();
    daemon.stop();
    End::Ran(finding)
}
