//! Fan-out with endpoints that are dead, blocked, unknown or too narrow: each is named and counted, and none of them
//! costs the others a datagram (spec statsd §14, §17 A13).

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::support::traffic::send_all;
use crate::support::{Builder, Daemon, PATIENCE, udp, wait_for};

/// Longer than any UDP datagram may be, and still one that a unix socket takes in.
const OVERSIZE_BYTES: usize = 65_520;

/// Packets of a reader that expects so many, in order of arrival.
fn read_unix(path: &Path, packets: usize) -> JoinHandle<Vec<Vec<u8>>> {
    let socket = UnixDatagram::bind(path).expect("a path of our own");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
    std::thread::spawn(move || read(packets, |buffer| socket.recv(buffer)))
}

fn read(packets: usize, mut receive: impl FnMut(&mut [u8]) -> std::io::Result<usize>) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; 70_000];
    let mut got = Vec::new();
    while got.len() < packets {
        match receive(&mut buffer) {
            Ok(len) => got.push(buffer[..len].to_vec()),
            Err(_nothing_more) => break,
        }
    }
    got
}

/// The row of an output whose sum holds, and what is neither delivered nor lost yet.
#[track_caller]
fn settled(daemon: &Daemon, name: &str) -> (Value, u64) {
    let row = daemon.output(name);
    let number = |member: &str| Daemon::number(&row, member);
    let lost = number("dropped")
        + number("rejected_by_peer")
        + number("filtered")
        + number("expired")
        + number("internal");
    assert_eq!(number("copies"), number("delivered") + lost + number("queued"), "{row}");
    (row.clone(), number("queued"))
}

/// How many records an output is said to have lost at the stop.
fn lost_at_stop(stderr: &str, name: &str) -> u64 {
    let begin = format!("output `{name}`: ");
    let line =
        stderr.lines().find(|line| line.contains(&begin) && line.contains("not delivered before the stop"));
    let rest = line.and_then(|line| line.split(&begin).nth(1));
    rest.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn endpoints_that_are_dead_blocked_unknown_or_narrow_are_named_and_harmless() {
    let live = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    live.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
    let live_at = live.local_addr().expect("it is bound");
    // What does not come from its peer is refused there, and nobody else gets the port.
    let dead = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    dead.connect(live_at).expect("a loopback address");
    let dead_at = dead.local_addr().expect("it is bound");
    let toml = format!(
        "stop_timeout = \"1s\"\n\
         [sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\", \"unixgram://in\"]\n\
         [outputs.live]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://{live_at}\"]\n\
         [outputs.dead]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://{dead_at}\"]\n\
         [outputs.nowhere]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://nothing.invalid:8125\"]\n\
         [outputs.wide]\ntype = \"unix\"\nfrom = [\"app\"]\nto = [\"unixgram://wide\"]\n\
         [outputs.blocked]\ntype = \"unix\"\nfrom = [\"app\"]\nto = [\"unixgram://blocked\"]\n"
    );
    let builder = Builder::native(&toml);
    let folder = builder.folder().to_owned();
    // Few enough to fit into the receive buffer of a reader that does not get to run.
    let mut packets: Vec<Vec<u8>> = (0..200).map(|n| format!("n{n}:1|c").into_bytes()).collect();
    packets.push(Vec::new());
    let all = packets.len() + 1;
    let wide = read_unix(&folder.join("wide"), all);
    let _never_read = UnixDatagram::bind(folder.join("blocked")).expect("a path of our own");
    let live = std::thread::spawn(move || read(all - 1, |buffer| live.recv(buffer)));
    let mut daemon = builder.start();
    let oversize = vec![b'x'; OVERSIZE_BYTES];
    let unix = UnixDatagram::unbound().expect("a socket");
    unix.send_to(&oversize, folder.join("in")).expect("it is there");
    send_all(&udp(daemon.at("app", "udp")), &packets);

    let mut got = live.join().expect("it read");
    got.sort();
    packets.sort();
    assert!(got == packets, "{} of {} packets", got.len(), packets.len());
    packets.push(oversize);
    packets.sort();
    let mut got = wide.join().expect("it read");
    got.sort();
    assert!(got == packets, "{} of {} packets", got.len(), packets.len());
    let all = all as u64;
    daemon.wait_output("live", "losses/dropped/too_big", 1);
    daemon.wait_output("live", "errors_by/EMSGSIZE", 1);
    daemon.wait_output("live", "delivered", all - 1);
    daemon.wait_output("wide", "delivered", all);
    daemon.wait_output("live", "losses_bytes/dropped/too_big", OVERSIZE_BYTES as u64);
    wait_for("the dead one to be down", || (daemon.output("dead")["state"] == "down").then_some(()));
    wait_for("the unknown one to be down", || {
        (daemon.output("nowhere")["last_error"] == "unresolved").then_some(())
    });
    let line = "output `nowhere` is down: unresolved, for ";
    wait_for("a line below `ready`", || daemon.get("/ready").body.contains(line).then_some(()));
    for name in ["live", "dead", "nowhere", "wide", "blocked"] {
        assert_eq!(Daemon::number(&daemon.output(name), "copies"), all, "{name}");
        assert_eq!(Daemon::number(&daemon.output(name), "connects") == 0, name == "nowhere", "{name}");
    }
    let (dead, waits) = settled(&daemon, "dead");
    assert!(dead["last_error"] == "refused" && Daemon::number(&dead, "errors_by/ECONNREFUSED") > 0, "{dead}");
    assert!(waits > 0 && Daemon::number(&dead, "rejected_by_peer") > 0, "{dead}");
    let (nowhere, waits_for_name) = settled(&daemon, "nowhere");
    assert!(nowhere["state"] == "down" && waits_for_name == all, "{nowhere}");
    let (blocked, waits_for_room) = settled(&daemon, "blocked");
    assert!(waits_for_room > 0, "{blocked}");
    assert_eq!(Daemon::number(&blocked, "delivered") + waits_for_room, all, "{blocked}");
    // None of them holds up the stop, and each record that they lose is logged.
    daemon.stop();
    let stderr = daemon.stderr();
    assert_eq!(lost_at_stop(&stderr, "nowhere"), waits_for_name, "{stderr}");
    assert_eq!(lost_at_stop(&stderr, "blocked"), waits_for_room, "{stderr}");
    assert!(lost_at_stop(&stderr, "live") + lost_at_stop(&stderr, "wide") == 0, "{stderr}");
    assert!(stderr.contains("nothing can be sent to udp://nothing.invalid:8125 ("), "{stderr}");
    assert!(stderr.contains(&format!("the port of udp://{dead_at} is closed")), "{stderr}");
    assert!(stderr.contains("count as `rejected_by_peer`"), "{stderr}");
}

#[test]
fn one_blocked_endpoint_among_five_costs_the_other_four_nothing() {
    const PACKETS: usize = 50_000;
    const RECORDS_MAX: u64 = 10_000;
    let live: Vec<String> = (0..4).map(|at| format!("live{at}")).collect();
    let to: Vec<String> = live.iter().map(|path| format!("unixgram://{path}")).collect();
    let toml = format!(
        "stop_timeout = \"1s\"\n\
         [sources.app]\ntype = \"statsd\"\nlisten = [\"unixgram://in\"]\n\
         [outputs.live]\ntype = \"unix\"\nfrom = [\"app\"]\nto = {to:?}\n\
         [outputs.blocked]\ntype = \"unix\"\nfrom = [\"app\"]\nto = [\"unixgram://blocked\"]\n\
         [outputs.blocked.queue]\nmax_records = {RECORDS_MAX}\n"
    );
    let builder = Builder::native(&toml);
    let folder = builder.folder().to_owned();
    let readers: Vec<_> = live.iter().map(|path| read_unix(&folder.join(path), PACKETS)).collect();
    let _never_read = UnixDatagram::bind(folder.join("blocked")).expect("a path of our own");
    let mut daemon = builder.start();
    let socket = UnixDatagram::unbound().expect("a socket");
    socket.connect(folder.join("in")).expect("it is there");
    for number in 0..PACKETS {
        // A unix socket that is full makes its sender wait: nothing is lost on the way in.
        socket.send(format!("n{number}:1|c").as_bytes()).expect("it is there");
    }
    for reader in readers {
        let got = reader.join().expect("it read");
        assert_eq!(got.len(), PACKETS);
        for (number, packet) in got.iter().enumerate() {
            assert_eq!(packet[..], *format!("n{number}:1|c").as_bytes(), "each once, in order");
        }
    }
    let all = PACKETS as u64;
    daemon.wait_source("app", "routed", all);
    for path in &live {
        daemon.wait_output(&format!("live/{path}"), "delivered", all);
    }
    let (blocked, waits) = settled(&daemon, "blocked");
    assert_eq!(Daemon::number(&blocked, "copies"), all);
    assert!(waits > 0 && waits <= RECORDS_MAX, "{blocked}");
    assert!(Daemon::number(&blocked, "queued_high") <= RECORDS_MAX, "{blocked}");
    assert_eq!(Daemon::number(&blocked, "losses/dropped/queue_full"), Daemon::number(&blocked, "dropped"));
    assert!(Daemon::number(&blocked, "dropped") >= all - 2 * RECORDS_MAX, "{blocked}");
    let states: BTreeSet<String> = ["up", "degraded", "starting", "down"].map(str::to_owned).into();
    assert!(blocked["state"].as_str().is_some_and(|state| states.contains(state)), "{blocked}");
    daemon.stop();
    assert_eq!(lost_at_stop(&daemon.stderr(), "blocked"), waits, "{}", daemon.stderr());
}

/// Writes lines until nobody takes them any more.
fn write_until_it_waits(stream: &mut std::net::TcpStream) {
    const MOST_BYTES: usize = 256 << 20;
    stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a time-out can be set");
    // Long ones: what makes it wait is bytes, and what takes its time is lines.
    let line = |number: u32| format!("some.rather.long.name.of.a.series.that.fills.buffers.{number}:1|c\n");
    let lines: Vec<u8> = (0..1000).flat_map(|number| line(number).into_bytes()).collect();
    let mut taken = 0;
    // A stream that is cut off in a line goes on behind it, wherever that is.
    while let Ok(written) = stream.write(&lines[taken % lines.len()..]) {
        taken += written;
        assert!(taken < MOST_BYTES, "nobody waits");
    }
}

#[test]
fn a_connection_that_waits_for_an_endpoint_loses_nothing_and_its_sum_holds() {
    let never_read = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let to = never_read.local_addr().expect("it is bound");
    let config = |more: &str| {
        format!(
            "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
             [outputs.slow]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://{to}\"]\nwrite_timeout = \"1h\"\n\
             {more}\nqueue = {{ max_bytes = \"1MiB\", when_full = \"block\" }}\n"
        )
    };
    for more in ["", "mode = \"repack\"", "tags_add = [\"datacenter:somewhere-far-away\"]"] {
        let mut daemon = Builder::native(&config(more)).start();
        let mut client = std::net::TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
        write_until_it_waits(&mut client);
        // What the connection holds in its hands has no outcome and is in flight, or something would seem to be missing.
        let waits = || {
            let row = daemon.source("app");
            (row["balanced"] == true && Daemon::number(&row, "in_flight") > 0).then_some(row)
        };
        wait_for("a sum that holds while it waits", waits);
        let (slow, waiting) = settled(&daemon, "slow");
        assert!(waiting > 0 && Daemon::number(&slow, "dropped") == 0, "{more}: {slow}");
        assert!(Daemon::number(&slow, "queued_bytes_high") <= 1 << 20, "{more}: {slow}");
        if more.is_empty() {
            wait_for("a word that clients wait", || {
                daemon.stderr().contains("output `slow`: its queue is full").then_some(())
            });
            assert!(Daemon::number(&daemon.output("slow"), "stalled_for_s") >= 5);
        }
        drop(client);
        daemon.signal("KILL");
        daemon.wait_exit();
    }
}

#[test]
fn a_changed_endpoint_has_waited_with_no_less_than_waits_now() {
    let config = |kind: &str| {
        format!(
            "stop_timeout = \"100ms\"\n[sources.app]\ntype = \"statsd\"\nlisten = [\"unixgram://in\"]\n\
             [outputs.gone]\ntype = \"unix\"\nfrom = [\"app\"]\nto = [\"{kind}://nobody\"]\n"
        )
    };
    let builder = Builder::native(&config("unixgram"));
    let into = builder.folder().join("in");
    let mut daemon = builder.start();
    let socket = UnixDatagram::unbound().expect("a socket");
    socket.connect(into).expect("it is there");
    let send = || (0..100).for_each(|_| _ = socket.send(b"a:1|c").expect("it is there"));
    send();
    daemon.wait_output("gone", "queued", 100);
    daemon.reload(&config("unix"), "done");
    send();
    daemon.wait_output("gone", "queued", 200);
    let row = daemon.output("gone");
    assert_eq!(Daemon::number(&row, "queued_high"), 200, "{row}");
    assert!(Daemon::number(&row, "queued_bytes_high") >= Daemon::number(&row, "queued_bytes"), "{row}");
    daemon.stop();
}

#[test]
fn the_probes_of_an_orchestrator_are_answered() {
    let mut daemon = Builder::native(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://127.0.0.1:9\"]\n\
         [[management]]\nlisten = \"127.0.0.1:0\"\n",
    )
    .start();
    let answer = |path: &str| {
        let answer = daemon.get(path);
        (answer.status, answer.body)
    };
    // On a machine that is slow enough, one answer may come too late.
    let alive = || (answer("/healthz") == (200, "ok\n".into())).then_some(());
    wait_for("a sign of life", alive);
    assert_eq!(answer("/ready"), (200, "ready\n".into()));
    let mut management = std::net::TcpStream::connect(daemon.management()).expect("it is there");
    management.write_all(b"health down\n").expect("it is read");
    wait_for("the order to be taken", || (answer("/ready").0 == 503).then_some(()));
    assert_eq!(answer("/ready").1, "switched down by `health down`\n");
    wait_for("a sign of life all the same", alive);
    daemon.stop();
}

/// A management port of a node that says whether it is well.
fn node(is_up: &Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    let is_up = Arc::clone(is_up);
    // Ends with the test's process: it holds nothing but its port.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0; 8];
            let answer = if is_up.load(SeqCst) { "health: up\n" } else { "health: down\n" };
            if stream.read_exact(&mut request).is_ok() && request == *b"health\r\n" {
                // The client may be gone.
                let _gone = stream.write_all(answer.as_bytes());
            }
        }
    });
    at
}

#[test]
fn an_endpoint_whose_check_says_down_leaves_its_cluster_and_comes_back() {
    let is_up = [Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true))];
    let ports = [node(&is_up[0]), node(&is_up[1])];
    let ends = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").expect("a free port"));
    let names = ends.each_ref().map(|end| format!("copy/{}", end.local_addr().expect("it is bound")));
    let to = ends.each_ref().map(|end| format!("udp://{}", end.local_addr().expect("it is bound")));
    let checked = ports.map(|at| at.to_string());
    let unchecked = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = {to:?}\nsharding = \"jump\"\nrequired = true\n"
    );
    let check = format!("[outputs.copy.check]\nkind = \"management\"\nat = {checked:?}\nevery = \"2s\"\n");
    // The checks come with a reload, and go with one.
    let mut daemon = Builder::native(&unchecked).start();
    daemon.reload(&format!("{unchecked}{check}"), "done");
    let socket = udp(daemon.at("app", "udp"));
    let keys = || (0..100).map(|number| format!("key{number}:1|c"));
    let copies =
        |daemon: &Daemon| names.each_ref().map(|name| Daemon::number(&daemon.output(name), "copies"));
    send_all(&socket, keys());
    daemon.wait_source("app", "routed", 100);
    let [first, second] = copies(&daemon);
    assert!(first > 0 && second > 0 && first + second == 100, "{first} and {second}");

    is_up[1].store(false, SeqCst);
    wait_for("the second to be down", || (daemon.output(&names[1])["state"] == "down").then_some(()));
    let ready = daemon.get("/ready");
    let want = format!("output `{}` is required and down: check_", names[1]);
    assert!(ready.status == 503 && ready.body.starts_with(&want), "{}", ready.body);
    let before = copies(&daemon);
    send_all(&socket, keys());
    daemon.wait_source("app", "routed", 200);
    assert_eq!(copies(&daemon), [before[0] + 100, before[1]], "the first gets all keys");

    is_up[1].store(true, SeqCst);
    wait_for("the second to be back", || (daemon.output(&names[1])["state"] != "down").then_some(()));
    wait_for("the daemon to be ready", || (daemon.get("/ready").status == 200).then_some(()));
    let before = copies(&daemon);
    send_all(&socket, keys());
    daemon.wait_source("app", "routed", 300);
    assert_eq!(copies(&daemon), [before[0] + first, before[1] + second], "each key is where it was");

    is_up[0].store(false, SeqCst);
    wait_for("the first to be down", || (daemon.output(&names[0])["state"] == "down").then_some(()));
    daemon.reload(&unchecked, "done");
    wait_for("the first to be let go", || (daemon.output(&names[0])["state"] != "down").then_some(()));
    let before = copies(&daemon);
    send_all(&socket, keys());
    daemon.wait_source("app", "routed", 400);
    assert_eq!(copies(&daemon), [before[0] + first, before[1] + second], "without checks all are there");
    daemon.assert_sums_hold();
    daemon.stop();
}
