//! Hot restarts: nothing is lost between two processes, nothing counted twice, and one of them is always there.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use staunch::daemon::hot_restart::link::Link;
use staunch::daemon::hot_restart::message::{Message, VERSION};

use crate::acks::Client;
use crate::support::{Builder, Daemon, FakeGraphite, Manner, Random, udp, wait_for};

/// Pause between two packets: what comes in half a second fits the smallest receive buffer of a machine.
const PAUSE: Duration = Duration::from_millis(1);

fn config(to: &str, window: &str) -> String {
    format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\", \"tcp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"{window}\"\ncheckpoint = \"100ms\"\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{to}\"]\n\
         min_retry_delay = \"50ms\"\nmax_retry_delay = \"200ms\"\n"
    )
}

/// The same with an output whose endpoint reads nothing: once it is [`filled`] the hand-over waits for it.
fn slow_config(to: &str, window: &str, hangs: &FakeGraphite) -> String {
    hangs.behave(Manner::Hang);
    format!(
        "{}[sources.bulk]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.slow]\ntype = \"tcp\"\nfrom = [\"bulk\"]\nto = [\"{}\"]\n",
        config(to, window),
        hangs.to()
    )
}

/// Gives the slow output more than its endpoint's kernel takes.
fn fill(daemon: &Daemon) {
    let lines = vec![b'x'; 1000].into_iter().chain(*b":1|c\n").collect::<Vec<u8>>().repeat(2000);
    let mut stream = TcpStream::connect(daemon.at("bulk", "tcp")).expect("it listens");
    stream.write_all(&lines).expect("it reads");
    drop(stream);
    daemon.wait_source("bulk", "routed", 2000);
    assert!(Daemon::number(&daemon.output("slow"), "queued") > 0, "{}", daemon.output("slow"));
}

/// Sends one packet after the other until it is stopped.
struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Flood {
    fn begin(to: SocketAddr) -> Flood {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (until, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = std::thread::spawn(move || {
            let socket = udp(to);
            while !until.load(SeqCst) {
                socket.send(b"hits:1|c").expect("somebody has the port");
                count.fetch_add(1, SeqCst);
                std::thread::sleep(PAUSE);
            }
        });
        Flood { stop, sent, thread }
    }

    /// Waits until so many more packets have been sent.
    fn wait_for_more(&self, packets: u64) {
        let until = self.sent.load(SeqCst) + packets;
        wait_for("packets to be sent", || (self.sent.load(SeqCst) >= until).then_some(()));
    }

    /// Ends, whatever became of the packets.
    fn end_unheard(self) {
        self.stop.store(true, SeqCst);
        // It panics when nobody has the port any more.
        let _nobody = self.thread.join();
    }

    fn end(self) -> u64 {
        self.stop.store(true, SeqCst);
        self.thread.join().expect("the sender does not panic");
        self.sent.load(SeqCst)
    }
}

/// Starts a successor and waits until it is alone.
#[track_caller]
fn replace(old: &mut Daemon) -> Daemon {
    let mut new = old.successor();
    new.wait_ready();
    let status = old.wait_exit();
    assert!(status.success(), "{status}:\n{}\n--- the new one:\n{}", old.stderr(), new.stderr());
    assert!(!old.stderr().contains("panicked") && !new.stderr().contains("panicked"), "{}", old.stderr());
    new
}

#[test]
fn what_is_sent_over_three_restarts_is_counted_once() {
    // Windows that end all the time, and one that is open over all of it.
    for window in ["1s", "1h"] {
        let graphite = FakeGraphite::new();
        let mut daemon = Builder::native(&config(&graphite.to(), window)).start();
        let (udp_at, tcp_at) = (daemon.at("app", "udp"), daemon.at("app", "tcp"));
        udp(udp_at).send(b"level:42|g").expect("somebody has the port");
        let flood = Flood::begin(udp_at);
        let mut sent_by_tcp = 0;
        for _ in 0..3 {
            let mut stream = TcpStream::connect(tcp_at).expect("somebody listens at any time");
            stream.write_all(b"hits:1|c\nhits:1|c\n").expect("it reads");
            sent_by_tcp += 2;
            // One that ends by itself is not waited for.
            let _open = (window == "1s").then_some(stream);
            flood.wait_for_more(40);
            daemon = replace(&mut daemon);
            flood.wait_for_more(40);
            assert_eq!((daemon.at("app", "udp"), daemon.at("app", "tcp")), (udp_at, tcp_at));
        }
        let hits = flood.end() + sent_by_tcp;
        daemon.wait_source("app", "aggregated", hits + 1);
        daemon.assert_sums_hold();
        let row = daemon.source("app");
        assert_eq!((Daemon::number(&row, "received"), Daemon::number(&row, "kernel_dropped")), (hits + 1, 0));
        daemon.stop();
        assert_eq!(graphite.total("stats_counts.hits"), hits as f64, "{}", daemon.stderr());
        let levels = graphite.of("stats.gauges.level");
        assert!(levels.iter().all(|point| point.value == 42.0) && !levels.is_empty(), "{levels:?}");
        if window == "1h" {
            assert_eq!(graphite.of("stats_counts.hits").len(), 1, "no window was closed for a restart");
        }
    }
}

/// A client with acknowledgements: sends numbered lines, some at a time, each time until all of them are acknowledged.
fn send_acked(client: &mut Client, lines: std::ops::Range<u64>) {
    for first in lines.clone().step_by(10) {
        let some = first..lines.end.min(first + 10);
        // The last line comes in two pieces, and what is in between happens in the middle of it.
        let text: String = some.clone().map(|number| format!("n{number}:1|c\n")).collect();
        let (head, tail) = text.split_at(text.len() - 4);
        client.send(head);
        client.send(tail);
        client.wait_reply(&format!("ack {}", some.end));
    }
}

#[test]
fn a_client_with_acknowledgements_sees_nothing_of_restarts() {
    let table = [("accepted", "memory"), ("safe", "disk"), ("delivered", "memory"), ("delivered", "disk")];
    for (when, queue) in table {
        let (graphite, carbon) = (FakeGraphite::new(), FakeGraphite::new());
        let mut aggregates = String::new();
        // Of an aggregate nothing more can be acknowledged.
        if when == "accepted" {
            aggregates = format!(
                "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"300ms\"\n\
                 expiry = {{ counters = \"delete\" }}\n\
                 [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{}\"]\n",
                carbon.to()
            );
        }
        let toml = format!(
            "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\", \"unix-frames://frames\"]\n\
             ack_when = \"{when}\"\n\
             [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\n\
             queue = {{ kind = \"{queue}\" }}\n{aggregates}",
            graphite.to()
        );
        let mut daemon = Builder::native(&toml).start();
        let at = daemon.at("app", "tcp");
        let ended = Arc::new(AtomicBool::new(false));
        let (until, acked) = (Arc::clone(&ended), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&acked);
        let mut frames =
            std::os::unix::net::UnixStream::connect(daemon.folder.path().join("frames")).expect("it listens");
        let sender = std::thread::spawn(move || {
            let mut client = Client::connect(at);
            while !until.load(SeqCst) {
                let begin = count.load(SeqCst);
                send_acked(&mut client, begin..begin + 20);
                count.store(begin + 20, SeqCst);
            }
            client.end();
            assert_eq!(client.reply(), "", "everything was acknowledged");
        });
        frames.write_all(b"\x05\0\0\0f").expect("it reads");
        for _ in 0..3 {
            let before = acked.load(SeqCst);
            wait_for("acknowledgements", || (acked.load(SeqCst) > before + 100).then_some(()));
            daemon = replace(&mut daemon);
            assert_eq!(Daemon::number(&daemon.source("app"), "connections_open"), 2);
        }
        frames.write_all(b":1|c").expect("it reads");
        ended.store(true, SeqCst);
        sender.join().expect("no line was acknowledged twice, or not at all");
        let sent = acked.load(SeqCst);
        daemon.wait_source("app", "acks/lines_acked", sent + 1);
        daemon.wait_output("copy", "queued", 0);
        let (row, copies) = (daemon.source("app"), daemon.output("copy"));
        assert_eq!(Daemon::number(&row, "connections_accepted"), 2, "{row}");
        assert_eq!(Daemon::number(&row, "received"), sent + 1, "{row}");
        assert_eq!(Daemon::number(&copies, "copies"), sent + 1, "{copies}");
        daemon.assert_sums_hold();
        daemon.stop();
        let stored = graphite.bytes();
        let stored = String::from_utf8(stored).expect("it is text");
        let numbers: Vec<u64> = stored
            .lines()
            .filter_map(|line| line.strip_prefix('n')?.split(':').next()?.parse().ok())
            .collect();
        assert!(numbers.iter().copied().eq(0..sent), "{when}, {queue}: {} of {sent}", numbers.len());
        assert_eq!(stored.lines().filter(|line| *line == "f:1|c").count(), 1, "a frame in two pieces");
        if when == "accepted" {
            let counted = carbon.points().into_iter();
            let counted = counted.filter(|point| point.name.starts_with("stats_counts.n"));
            assert_eq!(counted.map(|point| point.value).sum::<f64>(), sent as f64, "{}", daemon.stderr());
        }
    }
}

#[test]
fn lines_queued_for_an_endpoint_that_is_down_are_acknowledged_by_the_new_process() {
    for queue in ["memory", "disk"] {
        let mut graphite = FakeGraphite::new();
        graphite.refuse();
        let toml = format!(
            "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"delivered\"\n\
             [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\n\
             min_retry_delay = \"20ms\"\nmax_retry_delay = \"100ms\"\nqueue = {{ kind = \"{queue}\" }}\n",
            graphite.to()
        );
        let mut daemon = Builder::native(&toml).start();
        let at = daemon.at("app", "tcp");
        let (mut open, mut ended) = (Client::connect(at), Client::connect(at));
        open.send("n0:1|c\nn1:1|c\n");
        daemon.wait_source("app", "routed", 2);
        // One that sends nothing more, as `nc -N`: its last line has no end.
        ended.send("n2:1|c\nn3:1|c");
        ended.end();
        daemon.wait_source("app", "routed", 4);
        for _ in 0..2 {
            daemon = replace(&mut daemon);
            daemon.wait_source("app", "acks/lines_unacked", 4);
        }
        open.send("n4:1|c\n");
        daemon.wait_source("app", "routed", 5);
        graphite.come_back();
        open.wait_reply("ack 3");
        ended.wait_reply("ack 2");
        assert_eq!(ended.reply(), "", "everything was acknowledged");
        daemon.wait_source("app", "acks/lines_unacked", 0);
        let row = daemon.source("app");
        assert_eq!(Daemon::number(&row, "acks/lines_acked"), 5, "{row}");
        daemon.assert_sums_hold();
        daemon.stop();
        let stored = String::from_utf8(graphite.bytes()).expect("it is text");
        assert_eq!(stored, "n0:1|c\nn1:1|c\nn2:1|c\nn3:1|c\nn4:1|c\n", "{queue}");
    }
}

#[test]
fn lines_of_an_output_that_the_new_process_lacks_are_acknowledged_by_the_old_one() {
    let mut graphite = FakeGraphite::new();
    graphite.refuse();
    let toml = |output: &str, to: &str| {
        format!(
            "stop_timeout = \"200ms\"\n\
             [sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"delivered\"\n\
             [outputs.{output}]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{to}\"]\n"
        )
    };
    let mut daemon = Builder::native(&toml("one", &graphite.to())).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\n");
    daemon.wait_source("app", "routed", 1);
    let other = FakeGraphite::new();
    daemon.rewrite(&toml("two", &other.to()));
    let mut new = replace(&mut daemon);
    assert_eq!((client.reply(), client.reply()), ("err 0 stopped".to_owned(), String::new()));
    assert_eq!(Daemon::number(&new.source("app"), "acks/failed/stopped"), 1);
    // It connects again and sends from the first line on that was not acknowledged.
    let mut again = Client::connect(new.at("app", "tcp"));
    again.send("a:1|c\n");
    again.wait_reply("ack 1");
    new.stop();
    assert_eq!(String::from_utf8_lossy(&other.bytes()), "a:1|c\n");
}

/// Reads numbered lines from `read` until it has nothing more to give.
fn numbers(mut read: impl FnMut(&mut [u8]) -> usize) -> Vec<u64> {
    let (mut text, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let len = read(&mut buffer);
        if len == 0 {
            break;
        }
        text.extend_from_slice(&buffer[..len]);
        if text.last() != Some(&b'\n') && len < 64 {
            text.push(b'\n');
        }
    }
    let text = String::from_utf8(text).expect("it is text");
    let number = |line: &str| line.strip_prefix('n')?.split(':').next()?.parse().ok();
    text.lines().filter_map(number).collect()
}

#[test]
fn copies_arrive_once_and_in_order_over_restarts() {
    let copy = |to: &str, kind: &str| {
        format!(
            "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
             [outputs.copy]\ntype = \"{kind}\"\nfrom = [\"app\"]\nto = [\"{to}\"]\n"
        )
    };
    // Unix datagrams: to their receiver the kernel loses none, however late it reads.
    for kind in ["unix", "tcp"] {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("packets");
        let packets = UnixDatagram::bind(&path).expect("a path of our own");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let to = match kind {
            "unix" => format!("unixgram://{}", path.display()),
            _ => format!("tcp://{}", listener.local_addr().expect("it is bound")),
        };
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let receiver = std::thread::spawn(move || {
            packets.set_read_timeout(Some(Duration::from_millis(5))).expect("a time-out can be set");
            listener.set_nonblocking(true).expect("a socket can be asked not to block");
            let mut got = Vec::new();
            // Two more looks after the end: what had come by then has been seen.
            let mut looks = 2;
            while looks > 0 {
                looks -= u32::from(until.load(SeqCst));
                got.extend(numbers(|buffer| packets.recv(buffer).unwrap_or(0)));
                if let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nonblocking(false).expect("a socket can be asked to block");
                    got.extend(numbers(|buffer| stream.read(buffer).unwrap_or(0)));
                }
            }
            got
        });
        let mut daemon = Builder::native(&copy(&to, kind)).start();
        let at = daemon.at("app", "udp");
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (until, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let sender = std::thread::spawn(move || {
            let socket = udp(at);
            for number in 0.. {
                if until.load(SeqCst) {
                    return;
                }
                socket.send(format!("n{number}:1|c\n").as_bytes()).expect("somebody has the port");
                count.store(number + 1, SeqCst);
                std::thread::sleep(PAUSE);
            }
        });
        for _ in 0..3 {
            let before = sent.load(SeqCst);
            wait_for("packets", || (sent.load(SeqCst) > before + 200).then_some(()));
            daemon = replace(&mut daemon);
        }
        stop.store(true, SeqCst);
        sender.join().expect("the sender does not panic");
        let sent = sent.load(SeqCst);
        daemon.wait_source("app", "received", sent);
        daemon.wait_output("copy", "delivered", sent);
        let row = daemon.output("copy");
        assert_eq!((Daemon::number(&row, "copies"), Daemon::number(&row, "resent")), (sent, 0), "{row}");
        daemon.stop();
        ended.store(true, SeqCst);
        let got = receiver.join().expect("the receiver does not panic");
        assert!(got.iter().copied().eq(0..sent), "{kind}: {} of {sent}, {}", got.len(), daemon.stderr());
    }
}

#[test]
fn a_successor_that_cannot_start_changes_nothing() {
    let graphite = FakeGraphite::new();
    let good = config(&graphite.to(), "1h");
    let mut daemon = Builder::native(&good).start();
    let socket = udp(daemon.at("app", "udp"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = format!("tcp://{}", listener.local_addr().expect("it is bound"));
    let table = [
        ("nonsense".to_owned(), "error: 1 error"),
        (good.replace("tcp://127.0.0.1:0", &taken), "in use"),
        (
            good.replace("udp://127.0.0.1:0", "udp://127.0.0.2:0").replace(", \"tcp://127.0.0.1:0\"", ""),
            "another daemon",
        ),
    ];
    let rounds = table.len() as u64;
    for (config, word) in table {
        daemon.rewrite(&config);
        let mut new = daemon.successor();
        assert!(!new.wait_exit().success());
        new.wait_logged(word);
        socket.send(b"hits:1|c").expect("the old one has the port");
    }
    daemon.wait_source("app", "aggregated", rounds);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), rounds as f64);
}

/// Most successors that are killed or stopped, until one of each was on the way.
const ROUNDS_MAX: usize = 24;

#[test]
fn a_successor_that_is_killed_or_stopped_on_the_way_leaves_one_that_goes_on() {
    let mut random = Random::new(0x7A6B_1E55);
    let mut went_on = [0; 2];
    // On a busy machine a successor may have taken over before the signal reaches it: that round says nothing.
    for round in 0..ROUNDS_MAX {
        if round >= 4 && went_on.iter().all(|&rounds| rounds > 0) {
            break;
        }
        let stopped = round % 4 >= 2;
        // Only one that is stopped must be given up on, and soon; one that goes on has all the time that it needs.
        let (signal, timeout) = if stopped { ("STOP", "500ms") } else { ("KILL", "1m") };
        let graphite = FakeGraphite::new();
        let queue = if round % 2 == 0 { "memory" } else { "disk" };
        let queue = format!("queue = {{ kind = \"{queue}\" }}\n");
        let hangs = FakeGraphite::new();
        let toml = slow_config(&graphite.to(), "1h", &hangs) + &queue;
        let mut daemon = Builder::native(&format!("hot_restart_timeout = \"{timeout}\"\n{toml}")).start();
        let flood = Flood::begin(daemon.at("app", "udp"));
        let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
        stream.write_all(b"hits:1|c\nhits:").expect("it reads");
        // Makes the hand-over take a quarter of a second.
        fill(&daemon);
        let new = daemon.successor();
        wait_for("the hand-over to begin", || {
            daemon.stderr().contains("requests a hot restart").then_some(())
        });
        std::thread::sleep(Duration::from_millis(random.below(300) as u64));
        let had_taken = new.stderr().contains("hot restart done");
        new.signal(signal);
        if had_taken || daemon.stderr().contains("hot restart done") {
            // The new one was there already: that it is gone now is no matter of the hand-over.
            assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
            flood.end_unheard();
            continue;
        }
        let went_on_or_left = wait_for("the end of the hand-over", || {
            let acked = daemon.stderr();
            let left = acked.contains("hot restart done");
            (left || acked.contains("; continuing")).then_some(left)
        });
        if went_on_or_left {
            assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
            flood.end_unheard();
            continue;
        }
        went_on[usize::from(stopped)] += 1;
        flood.wait_for_more(100);
        stream.write_all(b"1|c\n").expect("its connection goes on");
        let mut again = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens again");
        again.write_all(b"hits:1|c\n").expect("it reads");
        let hits = flood.end() + 3;
        daemon.wait_source("app", "aggregated", hits);
        daemon.assert_sums_hold();
        // And another one may try, with all the time that it needs.
        daemon.reload(&format!("hot_restart_timeout = \"1m\"\n{toml}"), "done");
        daemon = replace(&mut daemon);
        hangs.behave(Manner::Accept);
        daemon.stop();
        assert_eq!(graphite.total("stats_counts.hits"), hits as f64, "round {round}: {}", daemon.stderr());
    }
    assert!(
        went_on.iter().all(|&rounds| rounds > 0),
        "killed or stopped before they had taken over: {went_on:?}"
    );
}

/// How far [`a_process_that_asks`] goes before it does nothing more.
const STEPS: [&str; 6] = ["connected", "asked", "offered", "ready", "half", "yours"];

/// The step at which the old process pauses, and the file that says that it has come there.
const STEP: &str = "STAUNCH_TEST_HOT_RESTART_STEP";
const THERE: &str = "STAUNCH_TEST_HOT_RESTART_THERE";

/// No test, but a process of one: asks for everything and never says that it goes on.
#[test]
fn a_process_that_asks() {
    let (Ok(last), Some(there)) = (std::env::var(STEP), std::env::var_os(THERE)) else { return };
    let folder = std::path::Path::new(&there).parent().expect("it is in a folder").to_owned();
    let reached = |step: &str| {
        if step == last {
            std::fs::write(&there, step).expect("the folder is ours");
            loop {
                std::thread::park();
            }
        }
    };
    let mut link = Link::connect(&folder.join("staunch-data/control.sock")).expect("somebody listens");
    let deadline_ns = u64::MAX;
    reached("connected");
    let program = "of a test".to_owned();
    link.send(&Message::Hello { version: VERSION, program }, deadline_ns).expect("it listens");
    reached("asked");
    let mut places = Vec::new();
    let outputs = loop {
        match link.receive(deadline_ns).expect("an offer") {
            Message::Sockets(some) => places.extend(some),
            Message::Offered { outputs, .. } => break outputs,
            other => panic!("{other:?}"),
        }
    };
    reached("offered");
    let (sockets, outputs) = ((0..places.len() as u32).collect(), (0..outputs.len() as u32).collect());
    let kept = pipeline::Kept { aggregations: vec!["stats".to_owned()], relays: Vec::new() };
    let ready = Message::Ready { sockets, outputs, kept };
    link.send(&ready, deadline_ns).expect("it listens");
    reached("ready");
    loop {
        match link.receive(deadline_ns).expect("everything") {
            Message::State { .. } => reached("half"),
            Message::Yours { .. } => reached("yours"),
            _ => {}
        }
    }
}

/// Starts that process and waits until it is at `step`.
fn ask_up_to(step: &str, daemon: &Daemon) -> std::process::Child {
    let there = daemon.folder.path().join(step);
    let child = std::process::Command::new(std::env::current_exe().expect("we are a file"))
        .args(["--exact", "hot_restart::a_process_that_asks", "--nocapture"])
        .env(STEP, step)
        .env(THERE, &there)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    wait_for(step, || there.exists().then_some(()));
    child
}

#[test]
fn one_that_hangs_or_dies_at_any_step_leaves_the_old_one_as_it_was() {
    let graphite = FakeGraphite::new();
    let queue = "queue = { kind = \"disk\" }\n";
    let toml = config(&graphite.to(), "1h") + queue;
    let mut daemon = Builder::native(&format!("hot_restart_timeout = \"1s\"\n{toml}")).start();
    // More state than a socket holds, so that half of it can be sent.
    let names: String = (0..4000).map(|number| format!("{}.{number}:1|c\n", "x".repeat(60))).collect();
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    stream.write_all(names.as_bytes()).expect("it reads");
    daemon.wait_source("app", "aggregated", 4000);
    let flood = Flood::begin(daemon.at("app", "udp"));
    let mut hits = 0;
    for step in STEPS {
        for signal in ["STOP", "KILL"] {
            stream.write_all(b"hits:1|").expect("it goes on");
            let ends = |daemon: &Daemon| daemon.stderr().matches("; continuing").count();
            let before = ends(&daemon);
            let mut child = ask_up_to(step, &daemon);
            let id = child.id().to_string();
            let sent = std::process::Command::new("/bin/kill").args([&format!("-{signal}"), &id]).status();
            assert!(sent.expect("kill can be run").success());
            // One that says nothing is forgotten without a word, and holds up nobody.
            if step != "connected" {
                wait_for("the end of it", || (ends(&daemon) > before).then_some(()));
                child.wait().expect("it has been killed");
            }
            stream.write_all(b"c\n").expect("it goes on");
            hits += 1;
            flood.wait_for_more(10);
            // Already gone is as good.
            let _gone = child.kill();
            child.wait().expect("it has been killed");
            std::fs::remove_file(daemon.folder.path().join(step)).expect("it was there");
        }
    }
    daemon.rewrite(&toml);
    daemon.signal("HUP");
    wait_for("the reload", || daemon.stderr().contains("reloaded").then_some(()));
    let mut new = replace(&mut daemon);
    let hits = hits + flood.end();
    new.wait_source("app", "aggregated", hits + 4000);
    let row = new.source("app");
    assert_eq!(Daemon::number(&row, "connections_accepted"), 1, "{row}");
    new.assert_sums_hold();
    new.stop();
    assert_eq!(graphite.total("stats_counts.hits"), hits as f64, "{}", new.stderr());
}

#[test]
fn when_the_old_one_dies_on_the_way_the_successor_goes_on() {
    let graphite = FakeGraphite::new();
    let queue = "queue = { kind = \"disk\" }\n";
    let hangs = FakeGraphite::new();
    let daemon = Builder::native(&(slow_config(&graphite.to(), "1h", &hangs) + queue)).start();
    let at = daemon.at("app", "udp");
    let socket = udp(at);
    socket.send(b"level:42|g").expect("it has the port");
    daemon.wait_source("app", "aggregated", 1);
    wait_for("a checkpoint with the gauge beside our own counters", || {
        let page = daemon.json("/api/v1/accounts");
        (Daemon::number(&page["checkpoints"][0], "series") > 3).then_some(())
    });
    // Makes the hand-over take a quarter of a second.
    fill(&daemon);
    let mut new = daemon.successor();
    wait_for("the hand-over to begin", || new.stderr().contains("continue in this process").then_some(()));
    daemon.signal("KILL");
    new.wait_ready();
    new.wait_logged("died during the hot restart");
    assert_eq!(new.at("app", "udp"), at);
    socket.send(b"hits:1|c").expect("it has the port");
    new.wait_source("app", "aggregated", 1);
    new.assert_sums_hold();
    new.stop();
    assert_eq!(graphite.total("stats_counts.hits"), 1.0, "{}", new.stderr());
    assert_eq!(graphite.total("stats.gauges.level"), 42.0, "{}", new.stderr());
}

#[test]
fn what_waits_for_an_endpoint_that_is_away_goes_on_with_the_successor() {
    for kind in ["memory", "disk"] {
        let mut graphite = FakeGraphite::new();
        let queue = format!("queue = {{ kind = \"{kind}\" }}\n");
        let mut daemon = Builder::native(&(config(&graphite.to(), "100ms") + &queue)).start();
        graphite.refuse();
        let socket = udp(daemon.at("app", "udp"));
        for hits in 1..=5 {
            socket.send(b"hits:1|c").expect("it is there");
            daemon.wait_source("app", "aggregated", hits);
            let waiting = || Daemon::number(&daemon.output("carbon"), "queued");
            let before = waiting();
            wait_for("a flush", || (waiting() > before).then_some(()));
        }
        for _ in 0..2 {
            let waited = Daemon::number(&daemon.output("carbon"), "queued");
            daemon = replace(&mut daemon);
            let row = daemon.output("carbon");
            let waiting = Daemon::number(&row, "queued");
            assert!(waiting >= waited && Daemon::number(&row, "copies") >= waiting, "{kind}: {row}");
            daemon.assert_sums_hold();
        }
        graphite.come_back();
        wait_for("everything to arrive", || (graphite.total("stats_counts.hits") >= 5.0).then_some(()));
        daemon.stop();
        assert_eq!(graphite.total("stats_counts.hits"), 5.0, "{kind}");
        let times: Vec<u64> = graphite.of("stats_counts.hits").iter().map(|point| point.time_s).collect();
        assert!(times.is_sorted(), "{kind}: {times:?}");
    }
}

/// Lines of a reader that takes its time, and how often each came.
struct SlowReader {
    listener: TcpListener,
    counts: Vec<u64>,
}

impl SlowReader {
    fn new(lines: u64) -> SlowReader {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        socket2::SockRef::from(&listener).set_recv_buffer_size(4096).expect("it is a socket");
        SlowReader { listener, counts: vec![0; lines as usize] }
    }

    fn count(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).expect("lines are ASCII");
        // The last one of a connection may be cut off.
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let number =
                line.trim_start_matches('n').split(':').next().and_then(|digits| digits.parse().ok());
            let number: usize = number.unwrap_or_else(|| panic!("{line:?}"));
            self.counts[number] += 1;
        }
    }

    fn all_came(&self) -> bool {
        self.counts.iter().all(|count| *count > 0)
    }
}

#[test]
fn what_a_slow_endpoint_has_acknowledged_is_counted_once_and_the_rest_of_its_block_sent_again() {
    const LINES: u64 = 40_000;
    for kind in ["memory", "disk"] {
        let mut reader = SlowReader::new(LINES);
        let to = reader.listener.local_addr().expect("it is bound");
        let mut daemon = Builder::native(&format!(
            "[sources.bulk]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
             [outputs.slow]\ntype = \"tcp\"\nfrom = [\"bulk\"]\nto = [\"tcp://{to}\"]\nqueue = {{ kind = \"{kind}\" }}\n"
        ))
        .start();
        let mut first = reader.listener.accept().expect("the daemon connects").0;
        let lines: String = (0..LINES).map(|n| format!("n{n:0>60}:1|c\n")).collect();
        TcpStream::connect(daemon.at("bulk", "tcp"))
            .expect("it listens")
            .write_all(lines.as_bytes())
            .expect("it reads");
        daemon.wait_source("bulk", "routed", LINES);
        // Blocks of 64 KiB: some are acknowledged whole, and one in part.
        let mut bytes = vec![0; 200_000];
        first.read_exact(&mut bytes).expect("there is more");
        wait_for("acknowledgements", || {
            (Daemon::number(&daemon.output("slow"), "delivered") > 1000).then_some(())
        });
        let mut successor = daemon.successor();
        successor.wait_ready();
        assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
        daemon = successor;
        let row = daemon.output("slow");
        let (copies, queued) = (Daemon::number(&row, "copies"), Daemon::number(&row, "queued"));
        assert!(copies == LINES && queued > 0 && queued < LINES - 1000, "{kind}: {row}");
        // The end of the connection may be a reset.
        let _reset = first.read_to_end(&mut bytes);
        reader.count(&bytes);
        let mut second = reader.listener.accept().expect("the daemon connects").0;
        bytes.clear();
        let mut chunk = vec![0; 1 << 16];
        while !bytes.ends_with(&lines.as_bytes()[lines.len() - 70..]) {
            let read = second.read(&mut chunk).expect("it is open");
            bytes.extend_from_slice(&chunk[..read]);
        }
        reader.count(&bytes);
        assert!(reader.all_came());
        daemon.wait_output("slow", "delivered", LINES);
        let row = daemon.output("slow");
        let twice = reader.counts.iter().sum::<u64>() - LINES;
        assert_eq!(Daemon::number(&row, "copies"), LINES, "{kind}: {row}");
        assert!(Daemon::number(&row, "resent") >= twice, "{kind}: {twice} came twice: {row}");
        daemon.assert_sums_hold();
        daemon.stop();
    }
}

#[test]
fn what_the_kernel_dropped_before_is_not_counted_again() {
    let toml =
        config("tcp://127.0.0.1:9", "1h").replace("[transforms", "receive_buffer = \"4KiB\"\n[transforms");
    let mut daemon = Builder::native(&toml).start();
    let socket = udp(daemon.at("app", "udp"));
    let mut sent = 0;
    for _ in 0..2 {
        daemon.signal("STOP");
        for _ in 0..1000 {
            socket.send(b"hits:1|c").expect("the kernel drops without a word");
        }
        sent += 1000;
        daemon.signal("CONT");
        wait_for("every packet to be accounted for", || {
            let row = daemon.source("app");
            let accounted = Daemon::number(&row, "packets") + Daemon::number(&row, "kernel_dropped");
            assert!(accounted <= sent, "{row}");
            (accounted == sent).then_some(())
        });
        let (before, old_row) =
            (Daemon::number(&daemon.source("app"), "kernel_dropped"), daemon.source("app"));
        daemon = replace(&mut daemon);
        let row = daemon.source("app");
        assert_eq!(Daemon::number(&row, "kernel_dropped"), before, "{row}");
        assert_eq!(row["sockets"][0]["kernel_dropped"], old_row["sockets"][0]["kernel_dropped"], "{row}");
    }
    assert!(Daemon::number(&daemon.source("app"), "kernel_dropped") > 0);
}

#[test]
fn of_two_successors_one_is_left() {
    let graphite = FakeGraphite::new();
    let mut old = Builder::native(&config(&graphite.to(), "1h")).start();
    let flood = Flood::begin(old.at("app", "udp"));
    flood.wait_for_more(50);
    let mut both = [old.successor(), old.successor()];
    assert!(old.wait_exit().success(), "{}", old.stderr());
    let gone = wait_for("one of them to have taken over from the other", || {
        both.iter_mut().position(|daemon| !daemon.is_alive())
    });
    let [first, second] = &mut both;
    let (gone, left) = if gone == 0 { (first, second) } else { (second, first) };
    assert!(gone.wait_exit().success(), "{}", gone.stderr());
    left.wait_ready();
    flood.wait_for_more(50);
    let hits = flood.end();
    left.wait_source("app", "aggregated", hits);
    left.assert_sums_hold();
    left.stop();
    assert_eq!(graphite.total("stats_counts.hits"), hits as f64, "{}", left.stderr());
}

#[test]
fn places_may_come_and_go_with_a_successor() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (kept, gone) = (folder.path().join("kept"), folder.path().join("gone"));
    let unix = |path: &std::path::Path| format!("unix://{}", path.display());
    let graphite = FakeGraphite::new();
    let with = |places: &[String]| {
        let places: Vec<String> = places.iter().map(|place| format!("\"{place}\"")).collect();
        let both = "\"udp://127.0.0.1:0\", \"tcp://127.0.0.1:0\"";
        config(&graphite.to(), "1h").replace(both, &format!("\"udp://127.0.0.1:0\", {}", places.join(", ")))
    };
    let mut daemon = Builder::native(&with(&[unix(&kept), unix(&gone)])).start();
    let send = |path: &std::path::Path| {
        let mut stream = std::os::unix::net::UnixStream::connect(path).expect("somebody listens");
        stream.write_all(b"hits:1|c\n").expect("it reads");
    };
    send(&gone);
    daemon.wait_source("app", "aggregated", 1);
    daemon.rewrite(&with(&[unix(&kept), "tcp://127.0.0.1:0".to_owned()]));
    daemon = replace(&mut daemon);
    assert!(kept.exists() && !gone.exists());
    send(&kept);
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it is new");
    stream.write_all(b"hits:1|c\n").expect("it reads");
    daemon.wait_source("app", "aggregated", 3);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), 3.0);
    assert!(!kept.exists());
}

#[test]
fn one_that_is_still_delivering_after_it_was_replaced_keeps_nobody_waiting() {
    let (mut away, here) = (FakeGraphite::new(), FakeGraphite::new());
    away.refuse();
    let toml = |to: &str, output: &str| {
        let toml = config(to, "100ms").replace("[outputs.carbon]", &format!("[outputs.{output}]"));
        format!("stop_timeout = \"10m\"\n{toml}")
    };
    let mut first = Builder::native(&toml(&away.to(), "one")).start();
    let socket = udp(first.at("app", "udp"));
    socket.send(b"hits:1|c").expect("it is there");
    first.wait_source("app", "aggregated", 1);
    // A flush may have been before it: the next one is behind it.
    let waiting = Daemon::number(&first.output("one"), "queued");
    wait_for("a flush", || (Daemon::number(&first.output("one"), "queued") > waiting).then_some(()));
    first.rewrite(&toml(&here.to(), "two"));
    let mut daemon = first.successor();
    daemon.wait_ready();
    for _ in 0..4 {
        daemon = replace(&mut daemon);
    }
    assert!(first.is_alive(), "it delivers what the others do not have:\n{}", first.stderr());
    away.come_back();
    assert!(first.wait_exit().success(), "{}", first.stderr());
    assert_eq!(away.total("stats_counts.hits"), 1.0);
    daemon.stop();
}

#[test]
fn a_stop_that_comes_during_a_hand_over_is_done_after_it() {
    let graphite = FakeGraphite::new();
    let toml = format!("hot_restart_timeout = \"1s\"\n{}", config(&graphite.to(), "1h"));
    for step in ["offered", "yours"] {
        let mut daemon = Builder::native(&toml).start();
        udp(daemon.at("app", "udp")).send(b"hits:1|c").expect("it is there");
        daemon.wait_source("app", "aggregated", 1);
        let mut child = ask_up_to(step, &daemon);
        daemon.stop();
        daemon.wait_logged("; continuing");
        // It may have been ended already.
        let _gone = child.kill();
        child.wait().expect("it is our child");
    }
    assert_eq!(graphite.total("stats_counts.hits"), 2.0);
}

#[test]
fn many_connections_go_on_and_none_is_lost_before_it_is_accepted() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite.to(), "1h")).start();
    let at = daemon.at("app", "tcp");
    // More than one message about connections takes.
    let mut open: Vec<TcpStream> = (0..600).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    open.iter_mut().for_each(|stream| stream.write_all(b"hits:1").expect("it reads"));
    daemon.wait_source("app", "connections_open", 600);
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (until, count) = (Arc::clone(&stop), Arc::clone(&sent));
    let sender = std::thread::spawn(move || {
        while !until.load(SeqCst) {
            let mut stream = TcpStream::connect(at).expect("somebody listens at any time");
            stream.write_all(b"hits:1|c\n").expect("somebody reads it");
            count.fetch_add(1, SeqCst);
            // On a busy machine a hand-over takes seconds: those that wait for it must be fewer than one peer may have.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    for _ in 0..2 {
        let before = sent.load(SeqCst);
        wait_for("connections", || (sent.load(SeqCst) > before + 50).then_some(()));
        daemon = replace(&mut daemon);
    }
    stop.store(true, SeqCst);
    sender.join().expect("no connection was refused");
    open.iter_mut().for_each(|stream| stream.write_all(b"|c\n").expect("it reads"));
    let hits = sent.load(SeqCst) + 600;
    daemon.wait_source("app", "aggregated", hits);
    let row = daemon.source("app");
    assert_eq!(Daemon::number(&row, "connections_accepted"), hits, "{row}");
    assert_eq!(Daemon::number(&row, "received"), hits, "{row}");
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), hits as f64, "{}", daemon.stderr());
}

#[test]
fn connections_past_the_successors_limit_are_refused_and_counted() {
    let graphite = FakeGraphite::new();
    let toml = config(&graphite.to(), "1h");
    let mut daemon = Builder::native(&toml).start();
    let at = daemon.at("app", "tcp");
    let mut streams: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    daemon.wait_source("app", "connections_open", 3);
    let mut refused = 0;
    // It is logged whatever was refused before.
    for max in [2, 1] {
        daemon.rewrite(&toml.replace("[transforms", &format!("max_connections = {max}\n[transforms")));
        daemon = replace(&mut daemon);
        refused += 1;
        let row = daemon.source("app");
        let counts = ["connections_open", "connections_accepted", "connections_refused"];
        assert_eq!(counts.map(|count| Daemon::number(&row, count)), [max, 3, refused], "{row}");
        daemon.wait_logged(&format!(
            "source `app` keeps {max} connections in the hot restart and refuses 1 more"
        ));
    }
    let open = streams.iter_mut().filter_map(|stream| {
        stream.set_nonblocking(true).expect("a socket can be asked not to block");
        let closed = matches!(stream.read(&mut [0]), Ok(0));
        (!closed).then(|| stream.write_all(b"hits:1|c\n").expect("it is open"))
    });
    assert_eq!(open.count(), 1);
    daemon.wait_source("app", "aggregated", 1);
    daemon.stop();
}

#[test]
fn connections_that_were_handed_over_count_towards_their_peer_and_stay() {
    let graphite = FakeGraphite::new();
    let toml = config(&graphite.to(), "1h");
    let mut daemon = Builder::native(&toml).start();
    let at = daemon.at("app", "tcp");
    let _streams: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    daemon.wait_source("app", "connections_open", 3);
    daemon.rewrite(&toml.replace("[transforms", "max_connections_per_peer = 2\n[transforms"));
    daemon = replace(&mut daemon);
    daemon.wait_source("app", "connections_open", 3);
    let _fourth = TcpStream::connect(at).expect("it listens");
    daemon.wait_source("app", "connections_refused_per_peer", 1);
    let row = daemon.source("app");
    let counts = ["connections_open", "connections_accepted", "connections_refused"];
    assert_eq!(counts.map(|count| Daemon::number(&row, count)), [3, 3, 0], "{row}");
    daemon.stop();
}

#[test]
fn a_socket_that_nobody_listens_at_any_more_is_nobody() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite.to(), "1h")).start();
    let control = daemon.folder.path().join("staunch-data/control.sock");
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode();
    assert_eq!(mode(&control) & 0o777, 0o600);
    daemon.signal("KILL");
    daemon.wait_exit();
    assert!(control.exists());
    let mut next = daemon.successor();
    next.wait_ready();
    next.wait_logged("hot restart: no running process at");
    let mut last = replace(&mut next);
    assert_eq!(mode(&control) & 0o777, 0o600);
    last.stop();
    assert!(!control.exists());
}

#[test]
fn without_a_process_to_replace_it_starts_as_usual() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite.to(), "1h")).args(&["--hot-restart"]).start();
    daemon.wait_logged("hot restart: no running process at");
    daemon.stop();
    assert!(!daemon.folder.path().join("staunch-data/control.sock").exists());
}

#[test]
fn an_account_that_two_endpoints_of_a_name_have_shared_goes_on_once() {
    let (first, second) = (FakeGraphite::new(), FakeGraphite::new());
    let with = |endpoint: &FakeGraphite| {
        format!(
            "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
             [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\nqueue = {{ kind = \"disk\" }}\n",
            endpoint.to()
        )
    };
    let mut daemon = Builder::native(&with(&first)).start();
    let send = |daemon: &Daemon| {
        let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
        stream.write_all(b"hits:1|c\n").expect("it reads");
    };
    send(&daemon);
    daemon.wait_output("copy", "delivered", 1);
    daemon.reload(&with(&second), "done");
    send(&daemon);
    daemon.wait_output("copy", "delivered", 2);
    daemon = replace(&mut daemon);
    let row = daemon.output("copy");
    assert_eq!((Daemon::number(&row, "copies"), Daemon::number(&row, "delivered")), (2, 2), "{row}");
    daemon.assert_sums_hold();
    daemon.stop();
}
