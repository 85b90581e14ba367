//! A10: one peer that takes what there is to take of connections: management clients that do not read, and such as dump all
//! the time, silent TLS clients, a source's whole number of connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::CertifiedKey;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::asker;
use crate::attacker::{Manner, Target};
use crate::finding::End;
use crate::scene::{Attack, Scene};
use crate::support::Daemon;
use crate::support::bench::Bench;
use crate::web_page::command;

const GROWS_MAX: u64 = 64 << 20;

/// Time between two looks at `/metrics`, and the longest wait for one.
const METRICS_EVERY: Duration = Duration::from_millis(150);
const METRICS_MAX: Duration = Duration::from_secs(5);

/// What an honest client waits for its handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(3);

/// A line over TLS; how long the handshake took.
fn honest(at: SocketAddr, roots: &RootCertStore) -> Option<Duration> {
    let since = Instant::now();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").ok()?;
    let stream = TcpStream::connect_timeout(&at, HANDSHAKE_MAX).ok()?;
    stream.set_read_timeout(Some(HANDSHAKE_MAX)).ok()?;
    let mut stream = StreamOwned::new(ClientConnection::new(Arc::new(config), name).ok()?, stream);
    stream.write_all(b"honest 1 1700000000\n").ok()?;
    stream.flush().ok()?;
    let took = since.elapsed();
    stream.conn.send_close_notify();
    let _sent = stream.flush();
    let _end = stream.sock.shutdown(std::net::Shutdown::Write);
    let mut rest = [0; 64];
    let _closed = stream.sock.read(&mut rest);
    Some(took)
}

pub(crate) fn run(bench: &Bench) -> End {
    let folder = tempfile::tempdir().expect("a folder for a certificate");
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let file = folder.path().join("both.pem");
    std::fs::write(&file, signing_key.serialize_pem() + &cert.pem()).expect("the folder is ours");
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a certificate");
    let few = 64;
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.few]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nmax_connections = {few}\n\
         [sources.tls]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\ntls = {{ cert = \"{}\" }}\n\
         [transforms.counts]\ntype = \"aggregate\"\nfrom = [\"app\", \"few\"]\nwindow = \"1h\"\n\
         [outputs.counted]\ntype = \"graphite_file\"\nfrom = [\"counts\", \"tls\"]\nmax_files = 1\n\
         [management]\nlisten = \"127.0.0.1:0\"\n",
        file.display()
    );
    let mut scene = Scene::start(bench, &toml, GROWS_MAX);
    let mut client = TcpStream::connect(scene.daemon.at("app", "tcp")).expect("it listens");
    let series = bench.pick(1_000, 20_000);
    let mut lines = Vec::new();
    for name in 0..series {
        writeln!(lines, "some.service.host.requests.{name}:1|c").expect("memory takes it");
    }
    client.write_all(&lines).expect("it reads");
    scene.daemon.wait_source("app", "aggregated", series);
    scene.is_before();
    unread_answers(bench, &mut scene);
    dumps(bench, &mut scene);
    silent_tls(bench, &mut scene, &roots);
    all_connections(bench, &mut scene, few);
    End::Ran(scene.end("one peer takes all connections"))
}

fn unread_answers(bench: &Bench, scene: &mut Scene<'_>) {
    let management = scene.daemon.management();
    let asks = Attack::new(Target::Tcp(management), Manner::Unread, "counters\n".repeat(100))
        .on(bench.pick(40, 256));
    let held = scene.attack(vec![asks], bench.pick(2.0, 8.0));
    let health = command(management, "health");
    scene.finding.promise(health.as_deref().is_some_and(|health| health.contains("up")), || {
        format!("`health` is answered with {health:?} while 1 peer holds its connections")
    });
    held.end();
}

/// Clients that loop `counters` and read, while `/metrics` is asked for.
fn dumps(bench: &Bench, scene: &mut Scene<'_>) {
    let http = scene.http;
    let asks = std::thread::spawn(move || {
        let ask = |_| {
            std::thread::sleep(METRICS_EVERY);
            asker::get(http, "/metrics", METRICS_MAX).is_some_and(|(status, _)| status == 200)
        };
        (0..10).map(ask).filter(|answered| *answered).count()
    });
    let target = Target::Tcp(scene.daemon.management());
    let dumps = Attack::new(target, Manner::Flood, "counters\n".repeat(100)).on(64);
    let held = scene.attack(vec![dumps], bench.pick(2.0, 8.0));
    let answered = asks.join().unwrap_or(0);
    scene.finding.promise(answered == 10, || {
        format!("/metrics answered {answered} of 10 while 64 management clients loop `counters`")
    });
    held.end();
}

fn silent_tls(bench: &Bench, scene: &mut Scene<'_>, roots: &RootCertStore) {
    let Target::Tcp(at) = scene.tcp("tls") else { unreachable!("it is TCP") };
    let silent = Attack::new(Target::Tcp(at), Manner::Silent, "").on(520);
    let held = scene.attack(vec![silent], bench.pick(1.5, 2.0));
    let took = honest(at, roots);
    scene.finding.figure(match took {
        Some(took) => format!("handshake beside 520 silent connections: {} ms", took.as_millis()),
        None => "no handshake beside 520 silent connections".into(),
    });
    scene.finding.promise(took.is_some(), || {
        format!("520 silent connections: no other client gets its handshake within {HANDSHAKE_MAX:?}")
    });
    held.end();
}

fn all_connections(bench: &Bench, scene: &mut Scene<'_>, few: u64) {
    let all = Attack::new(scene.tcp("few"), Manner::Hold(1), "attack:1|c\n").on(few);
    let held = scene.attack(vec![all], bench.pick(0.5, 2.0));
    let had = scene.source("few").map_or(0, |row| Daemon::number(&row, "aggregated"));
    let at = scene.daemon.at("few", "tcp");
    let sent = TcpStream::connect(at).and_then(|mut stream| stream.write_all(b"honest:1|c\n"));
    let counted = scene.wait("another peer's line", || {
        let row = scene.source("few")?;
        (Daemon::number(&row, "aggregated") > had).then_some(())
    });
    scene.finding.promise(sent.is_ok() && counted.is_some(), || {
        format!("one peer takes all {few} connections of a source, and no other gets one")
    });
    held.end();
}
