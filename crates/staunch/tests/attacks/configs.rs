//! A11: what is left of the list that can be shown from outside: a relay.conf that starts and can never be reloaded, a
//! live socket of another kind that is unlinked, an output that leads to our own listener.

use std::fmt::Write as _;
use std::net::{IpAddr, UdpSocket};
use std::process::Command;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::finding::{End, Finding};
use crate::scene::Scene;
use crate::support::bench::Bench;
use crate::support::{Builder, Daemon, daemon};

const GROWS_MAX: u64 = 64 << 20;

/// Servers of a relay, past what a reload took at first.
const SERVERS: u16 = 4_200;

pub(crate) fn run(bench: &Bench) -> End {
    let mut scene = Scene::start(bench, "", GROWS_MAX);
    own_listener(&mut scene.finding);
    live_socket(&mut scene.finding);
    many_servers(bench, &mut scene.finding);
    scene.attack(Vec::new(), 0.5).end();
    End::Ran(scene.end("configs and sockets"))
}

/// `check` of a file; true when it finds nothing wrong.
fn passes(toml: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("staunch.toml");
    std::fs::write(&file, toml).expect("the folder is ours");
    Command::new(daemon::binary()).arg("check").arg(&file).output().expect("it starts").status.success()
}

/// An address of this machine that others reach it by, as the system would choose it. Nothing is sent.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|at| at.ip()).filter(|address| !address.is_loopback())
}

fn own_listener(finding: &mut Finding) {
    let toml = |to: IpAddr, port: u16| {
        format!(
            "[sources.points]\ntype = \"graphite\"\nlisten = [\"udp://0.0.0.0:20031\"]\n\
             [outputs.copy]\ntype = \"graphite\"\nfrom = [\"points\"]\nto = [\"udp://{to}:{port}\"]\n"
        )
    };
    let loopback = IpAddr::from([127, 0, 0, 1]);
    for own in own_address().into_iter().chain([loopback]) {
        finding.promise(!passes(&toml(own, 20_031)), || {
            format!("`check` passes points that go over UDP to {own}, where our own wildcard listener is")
        });
    }
    finding.promise(passes(&toml(loopback, 20_032)), || {
        "`check` refuses another port: this run shows nothing".into()
    });
}

/// A socket of packets in order (SOCK_SEQPACKET) at the path of a source: somebody has it, and keeps it.
fn live_socket(finding: &mut Finding) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("taken");
    let theirs = Socket::new(Domain::UNIX, Type::SEQPACKET, None).expect("a descriptor is free");
    theirs.bind(&SockAddr::unix(&path).expect("a short path")).expect("a new folder");
    theirs.listen(8).expect("it is bound");
    for scheme in ["unix", "unixgram"] {
        let toml = format!(
            "[sources.app]\ntype = \"statsd\"\nlisten = [\"{scheme}://{}\"]\n\
             [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\n\
             [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n",
            path.display()
        );
        let mut ours = Builder::native(&toml).spawn();
        // It ends, or it listens: whichever comes.
        while ours.is_alive() && !ours.stderr().contains("/api/v1/") {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let client = Socket::new(Domain::UNIX, Type::SEQPACKET, None).expect("a descriptor is free");
        let there = client.connect(&SockAddr::unix(&path).expect("a short path")).is_ok();
        finding.promise(there, || format!("`{scheme}://` unlinked a live SOCK_SEQPACKET socket"));
    }
}

fn many_servers(bench: &Bench, finding: &mut Finding) {
    let mut conf = String::from("cluster many\n  forward\n");
    for server in 0..SERVERS {
        writeln!(conf, "    127.0.0.1:{}", 20_000 + server).expect("a text takes it");
    }
    // Nothing listens there, and nothing is sent: the servers are only many.
    conf += "    proto udp\n  ;\nmatch ^never$ send to many stop;\nmatch * send to blackhole stop;\nlisten type linemode relay.sock proto unix;\n";
    let conf = conf.replace("    proto udp\n", "");
    let mut daemon = Builder::relay(&conf).spawn();
    let ready = bench.wait("the relay to start or to end", std::time::Duration::from_secs(20), || {
        (!daemon.is_alive() || daemon.stderr().contains("/api/v1/")).then_some(())
    });
    if ready.is_none() || !daemon.is_alive() {
        let why = daemon.stderr().lines().next().unwrap_or_default().to_owned();
        finding.figure(format!("a relay of {SERVERS} servers is refused at the start: {why}"));
        return;
    }
    let count = |daemon: &Daemon, result: &str| {
        let sample = format!("staunch_reloads_total{{result=\"{result}\"}} ");
        let text = crate::asker::get(daemon.http(), "/metrics", std::time::Duration::from_secs(5))
            .map(|(_, text)| text)?;
        text.lines().find_map(|line| line.strip_prefix(&sample)?.parse::<u64>().ok())
    };
    daemon.signal("HUP");
    let done = bench.wait("the reload", std::time::Duration::from_secs(20), || {
        let (done, refused) = (count(&daemon, "done")?, count(&daemon, "refused")?);
        (done + refused > 0).then_some(done > 0)
    });
    finding.promise(done == Some(true), || {
        format!("a relay of {SERVERS} servers starts and cannot be reloaded: {done:?}")
    });
}
