//! What the daemon needs of the system and does not get: a log that is read, files that can be read, room in files,
//! threads. It goes on without, hears SIGTERM, and says what it can.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::daemon::STAUNCH;
use crate::support::{Builder, Daemon, udp, wait_for};

const CONFIG: &str = "stop_timeout = \"1s\"\n[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
    [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"100ms\"\n\
    [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\npath = \"points\"\n";

/// A daemon without anybody who reads its stderr: what it says goes to `stderr`.
struct Unheard {
    child: Child,
    folder: tempfile::TempDir,
}

impl Unheard {
    /// Starts it and waits until it has begun to write points.
    fn start(stderr: impl Into<Stdio>) -> Unheard {
        Unheard::start_with("", stderr)
    }

    /// The same with more in its config.
    fn start_with(more: &str, stderr: impl Into<Stdio>) -> Unheard {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("in.sock");
        let config = CONFIG.replace("udp://127.0.0.1:0", &format!("unixgram://{}", socket.display()));
        std::fs::write(
            folder.path().join("staunch.toml"),
            format!("{config}{more}[http]\nenabled = false\n"),
        )
        .expect("written");
        let mut command = Command::new(STAUNCH);
        command.args(["run", "staunch.toml"]).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        let unheard = Unheard { child: command.spawn().expect("it starts"), folder };
        unheard.wait_points("up");
        unheard
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Sends a counter until a point of it is written.
    fn wait_points(&self, name: &str) {
        let socket = UnixDatagram::unbound().expect("a socket");
        wait_for("points in the file", || {
            // Not there yet, or busy.
            let _sent = socket.send_to(format!("{name}:1|c").as_bytes(), self.path("in.sock"));
            let points = std::fs::read_to_string(self.path("points")).unwrap_or_default();
            points.contains(name).then_some(())
        });
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("there is a kill").success());
    }

    fn end(mut self) -> ExitStatus {
        self.signal("TERM");
        wait_for("its end", || self.child.try_wait().expect("it is our child"))
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        // It has ended already, in a test that went well.
        let _ended = self.child.kill();
        let _code = self.child.wait();
    }
}

/// A pipe that is full, or nearly: a writer blocks until somebody reads.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (from, mut to) = std::io::pipe().expect("a pipe");
    let filler = to.try_clone().expect("a descriptor");
    // On a thread: where pipes are small it waits for a reader, too.
    let _filling = std::thread::spawn(move || to.write_all(&[0; 65_536]));
    (from, filler)
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let (mut from, to) = full_pipe();
    let daemon = Unheard::start(to);
    daemon.signal("HUP");
    let socket = UnixDatagram::unbound().expect("a socket");
    socket.send_to(b"no sample at all", daemon.path("in.sock")).expect("it is there");
    daemon.wait_points("after");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&heard);
    let _reading = std::thread::spawn(move || {
        let mut some = vec![0; 1 << 16];
        while let Ok(len) = from.read(&mut some).map(|len| len.min(some.len())) {
            into.lock().expect("nobody panics").extend_from_slice(&some[..len]);
            if len == 0 {
                return;
            }
        }
    });
    let said = |what: &str| String::from_utf8_lossy(&heard.lock().expect("nobody panics")).contains(what);
    wait_for("the next words", || {
        daemon.signal("HUP");
        said("reloaded").then_some(())
    });
    assert_eq!(daemon.end().code(), Some(0));
}

/// What a config is warned of comes before the banner.
#[test]
fn warnings_that_nobody_reads_keep_no_daemon_from_starting() {
    let (_from, to) = full_pipe();
    let more = "[sources.unused]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n";
    let daemon = Unheard::start_with(more, to);
    assert_eq!(daemon.end().code(), Some(0));
    // What a relay's flags are warned of likewise.
    let (_from, to) = full_pipe();
    let folder = tempfile::tempdir().expect("a folder");
    let listen = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let listen = listen.expect("a port is free").port();
    let text = format!("match * send to blackhole;\nlisten type linemode 127.0.0.1:{listen} proto tcp;\n");
    std::fs::write(folder.path().join("relay.conf"), text).expect("written");
    let mut command = Command::new(STAUNCH);
    command.args(["relay", "-f", "relay.conf", "-P", "relay.pid", "--http", "127.0.0.1:0", "unused"]);
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(to);
    let mut relay = command.spawn().expect("it starts");
    let is_up = || folder.path().join("relay.pid").metadata().is_ok_and(|file| file.len() > 0);
    let up = (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        is_up()
    });
    relay.kill().expect("it is our child");
    relay.wait().expect("it is our child");
    assert!(up, "it waits for somebody who reads its warnings");
}

#[test]
fn a_log_whose_reader_has_ended_stops_nothing() {
    let (from, to) = std::io::pipe().expect("a pipe");
    drop(from);
    let daemon = Unheard::start(to);
    daemon.signal("HUP");
    daemon.wait_points("after");
    assert_eq!(daemon.end().code(), Some(0));
}

/// Each relay logs each bad line, up to 32 a second, on the thread that receives.
#[test]
fn a_log_that_is_read_a_page_at_a_time_delays_no_record_and_says_what_it_lacks() {
    const BAD: usize = 32;
    const RELAYS: usize = 512;
    let listen = super::relay_log::free_port();
    let relay = |at: usize| {
        format!(
            "[transforms.r{at}]\ntype = \"relay\"\nfrom = [\"lines\"]\n[[transforms.r{at}.rules]]\n\
             validate = '^1 '\non_invalid = \"log\"\n"
        )
    };
    let more = format!(
        "[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:{listen}\"]\n{}\
         [outputs.all]\ntype = \"graphite_file\"\nfrom = [\"lines\"]\npath = \"all\"\n",
        (0..RELAYS).map(relay).collect::<String>()
    );
    const DROPPED: &str = " log messages were dropped here: the log was not read";
    let (mut from, to) = std::io::pipe().expect("a pipe");
    let slow = Arc::new(AtomicBool::new(true));
    let is_slow = Arc::clone(&slow);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&heard);
    let reading = std::thread::spawn(move || {
        let mut page = vec![0; 4096];
        while let Ok(len @ 1..) = from.read(&mut page) {
            into.lock().expect("nobody panics").extend_from_slice(&page[..len]);
            if is_slow.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
    let heard = || String::from_utf8_lossy(&heard.lock().expect("nobody panics")).into_owned();
    let daemon = Unheard::start_with(&more, to);
    let mut client = TcpStream::connect(("127.0.0.1", listen)).expect("it listens");
    let text: String = (0..BAD).map(|at| format!("{}{at} 2 1700000000\n", "n".repeat(250))).collect();
    client.write_all(text.as_bytes()).expect("it is read");
    wait_for("all points", || {
        let points = std::fs::read_to_string(daemon.path("all")).unwrap_or_default();
        (points.lines().count() == BAD).then_some(())
    });
    client.write_all(b"after 1 1700000000\n").expect("it is read");
    wait_for("the next one", || {
        std::fs::read_to_string(daemon.path("all")).unwrap_or_default().contains("after").then_some(())
    });
    slow.store(false, Relaxed);
    // From then on the queue has room for the last line of a stop.
    wait_for("the number of dropped messages", || heard().contains(DROPPED).then_some(()));
    assert_eq!(daemon.end().code(), Some(0));
    reading.join().expect("no panic");
    let heard = heard();
    let with = |what: &str| heard.lines().filter(|line| line.contains(what)).count();
    assert_eq!(with("   staunch.toml"), 1, "the banner");
    let dropped = heard.lines().filter_map(|line| line.strip_prefix("staunch: ")?.strip_suffix(DROPPED));
    let dropped: usize = dropped.map(|count| count.parse::<usize>().expect("a number")).sum();
    let shown = with("dropping metric due to validation error");
    assert!(dropped > 0 && shown + dropped >= BAD * RELAYS, "{shown} {dropped}");
    assert!(
        heard.lines().last().is_some_and(|line| line.ends_with(" stopped")),
        "{:?}",
        heard.lines().last()
    );
}

/// Both go to stderr, and the console's thread has its lock while it writes.
#[test]
fn a_console_that_nobody_reads_keeps_no_log_waiting() {
    let (_from, to) = full_pipe();
    let more = "[outputs.console]\ntype = \"console\"\nencoding = \"perl\"\nfrom = [\"stats\"]\n";
    let daemon = Unheard::start_with(more, to);
    daemon.wait_points("first");
    daemon.signal("HUP");
    daemon.wait_points("after");
    assert_eq!(daemon.end().code(), Some(0));
}

#[test]
fn a_config_that_became_a_pipe_is_refused_and_sigterm_is_heard() {
    let mut daemon = Builder::native(CONFIG).start();
    let file = daemon.file.clone().expect("it has one");
    daemon.hang_up("refused", || {
        std::fs::remove_file(&file).expect("it was there");
        assert!(Command::new("mkfifo").arg(&file).status().expect("there is mkfifo").success());
    });
    wait_for("a word about it", || daemon.stderr().contains("read at the start only").then_some(()));
    daemon.stop();
}

/// A pipe that nobody writes to is opened for ever.
#[test]
fn a_pipe_that_is_included_refuses_a_start_and_a_reload() {
    let listen = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let listen = listen.expect("a port is free").port();
    let text = format!(
        "cluster c forward 127.0.0.1:1;\nmatch * send to c;\nlisten type linemode 127.0.0.1:{listen} proto tcp;\n"
    );
    let mut daemon = Builder::relay(&text).start();
    let pipe = daemon.folder.path().join("pipe.conf");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo").success());
    let with_pipe = text + "include pipe.conf;\n";
    daemon.reload(&with_pipe, "refused");
    wait_for("a word about it", || daemon.stderr().contains("is a pipe or a device").then_some(()));
    daemon.stop();
    let builder = Builder::relay(&with_pipe);
    let pipe = builder.folder().join("pipe.conf");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo").success());
    let mut daemon = builder.spawn();
    assert!(!daemon.wait_exit().success());
    daemon.wait_logged("is a pipe or a device");
}

/// The names that its pattern has to go through are without end: reading it takes for ever.
#[test]
fn sigterm_is_heard_while_a_config_is_being_read() {
    let listen = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let listen = listen.expect("a port is free").port();
    let text = |more: &str| {
        format!(
            "cluster c forward 127.0.0.1:1;\nmatch * send to c;\nlisten type linemode 127.0.0.1:{listen} proto tcp;\n{more}"
        )
    };
    let mut daemon = Builder::relay(&text("")).start();
    let folder = daemon.folder.path().join("again");
    std::fs::create_dir(&folder).expect("a folder");
    for at in 0..10 {
        std::os::unix::fs::symlink(".", folder.join(at.to_string())).expect("a link to its own folder");
    }
    let endless = format!("include again/{}none.conf;\n", "*/".repeat(12));
    std::fs::write(daemon.file.as_ref().expect("it has one"), text(&endless)).expect("written");
    daemon.signal("HUP");
    let said =
        |daemon: &Daemon, what: &str| (daemon.stdout() + &daemon.stderr()).contains(what).then_some(());
    wait_for("the reload to begin", || said(&daemon, "reloading config from"));
    daemon.signal("HUP");
    wait_for("a word on the other one", || said(&daemon, "is still being read"));
    assert_eq!(daemon.get("/healthz").status, 200);
    daemon.stop();
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_not_the_end() {
    let mut daemon = Builder::native(CONFIG).start();
    let pid = daemon.pid().to_string();
    let limited = Command::new("prlimit").args(["--fsize=64", "--pid", &pid]).status();
    if !limited.is_ok_and(|status| status.success()) {
        crate::support::skip("exhausted", "no prlimit here");
        return daemon.stop();
    }
    let socket = udp(daemon.at("app", "udp"));
    wait_for("the output to be down", || {
        socket.send(b"a.name.that.is.long.enough.for.the.limit:1|c").expect("it is there");
        (daemon.output("file")["state"] == "down").then_some(())
    });
    assert_eq!(daemon.get("/healthz").status, 200, "everything else goes on");
    daemon.stop();
}

/// Each of the queues has a segment that cannot be opened (ELOOP), as on a disk that fails.
#[test]
fn a_start_waits_once_for_all_failing_queues_and_hears_sigterm_meanwhile() {
    let queue = |at: usize| {
        format!(
            "[outputs.o{at}]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://127.0.0.1:1\"]\n\
             [outputs.o{at}.queue]\nkind = \"disk\"\n"
        )
    };
    let queues: String = (0..3).map(queue).collect();
    let builder = Builder::native(&format!("data_dir = \"data\"\n{CONFIG}{queues}"));
    let segment = "0000000000000001.segment";
    let folders = [0, 1, 2].map(|at| builder.folder().join(format!("data/queues/o{at}")));
    for folder in &folders {
        std::fs::create_dir_all(folder).expect("a folder");
        std::os::unix::fs::symlink(segment, folder.join(segment)).expect("a link to itself");
    }
    let mut daemon = builder.spawn();
    wait_for("the start to wait", || daemon.stderr().contains("; retrying").then_some(()));
    daemon.signal("TERM");
    assert_eq!(daemon.wait_exit().code(), Some(0), "{}", daemon.stderr());
    // The wait itself ends with an error, and passes over what the disk fails to give.
    for folder in &folders {
        assert!(folder.join(segment).is_symlink(), "nothing is passed over for want of time");
    }
    daemon.start_again();
}

/// Comes from an address of loopback; true when the connection stays.
#[cfg(target_os = "linux")]
fn comes(from: [u8; 4], to: std::net::SocketAddr, held: &mut Vec<std::net::TcpStream>) -> bool {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&std::net::SocketAddr::from((from, 0)).into()).expect("all of 127/8 is ours");
    if socket.connect(&to.into()).is_err() {
        return false;
    }
    socket.set_read_timeout(Some(std::time::Duration::from_millis(100))).expect("it is one");
    let mut stream = std::net::TcpStream::from(socket);
    let stays = stream.read(&mut [0]).is_err_and(|error| {
        matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
    });
    held.push(stream);
    stays
}

/// Comes so many times from one address, and gives how many connections stay.
#[cfg(target_os = "linux")]
fn stay(daemon: &Daemon, connections: usize) -> u64 {
    daemon.wait_source("a", "connections_open", 0);
    let counts = || {
        let row = daemon.source("a");
        let count = |name: &str| Daemon::number(&row, name);
        (count("connections_open"), count("connections_accepted") + count("connections_refused_per_peer"))
    };
    let (_, before) = counts();
    let at = daemon.at("a", "tcp");
    let _held: Vec<_> = (0..connections).filter_map(|_| TcpStream::connect(at).ok()).collect();
    wait_for("an end of each connection's wait", || {
        let (open, seen) = counts();
        (seen == before + connections as u64).then_some(open)
    })
}

#[test]
#[cfg(target_os = "linux")]
fn descriptors_are_divided_again_for_the_outputs_that_a_reload_adds_and_takes_away() {
    let output = |at: usize| {
        format!("[outputs.o{at}]\ntype = \"graphite_file\"\nfrom = [\"a\"]\npath = \"more{at}\"\n")
    };
    let config = |outputs: std::ops::Range<usize>| {
        let outputs: String = outputs.map(output).collect();
        format!("{CONFIG}[sources.a]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n{outputs}")
    };
    let mut daemon = Builder::native(&config(0..1)).files_max(600).start();
    // Of 600 files 208 are kept; of the rest 245 are the sources', and one peer has half of them.
    assert_eq!(stay(&daemon, 130), 122);
    daemon.reload(&config(0..23), "done");
    // 296 are kept.
    assert_eq!(stay(&daemon, 130), 95);
    daemon.reload(&config(0..1), "done");
    // Those that have nothing to send any more need none, which the next reload finds.
    wait_for("the outputs to be gone", || {
        daemon.reload(&config(0..1), "done");
        (stay(&daemon, 130) == 122).then_some(())
    });
    daemon.stop();
}

#[test]
#[cfg(target_os = "linux")]
fn where_descriptors_are_few_one_peer_leaves_some_to_others_and_one_source_to_another() {
    let config = format!(
        "{CONFIG}[sources.a]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\", \"unix://a.sock\"]\n\
         [sources.b]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.points]\ntype = \"graphite_file\"\nfrom = [\"a\", \"b\"]\npath = \"more\"\n"
    );
    // Half of them are for peers, and of these some 60 for sources.
    let mut daemon = Builder::native(&config).files_max(200).start();
    let (a, b) = (daemon.at("a", "tcp"), daemon.at("b", "tcp"));
    let mut held = Vec::new();
    let mut taken = 0;
    while comes([127, 0, 0, 2], a, &mut held) {
        taken += 1;
        assert!(taken < 100, "there is a bound");
    }
    assert!(taken >= 20, "{taken}: about half of the sources' share");
    daemon.wait_source("a", "connections_refused_per_peer", 1);
    assert!(!comes([127, 0, 0, 2], b, &mut held), "over all sources");
    assert!(comes([127, 0, 0, 3], a, &mut held) && comes([127, 0, 0, 4], b, &mut held));
    // Two peers take the rest of what one source may have.
    while comes([127, 0, 0, 3], a, &mut held) {}
    assert!(!comes([127, 0, 0, 5], a, &mut held), "nothing is left for this source");
    assert!(comes([127, 0, 0, 5], b, &mut held), "the other one has a part of its own");
    daemon.wait_logged("source `a` refuses connections of 127.0.0.2, which has ");
    daemon.wait_logged("This process may have 200 files open: connections of sources have ");
    daemon.wait_logged("Raise it: LimitNOFILE= in the systemd unit, `ulimit -n` in the shell that starts it");
    drop(held);
    daemon.wait_source("a", "connections_open", 0);
    // A process is a peer where there are no addresses.
    let path = daemon.folder.path().join("a.sock");
    let locals: Vec<_> =
        (0..80).filter_map(|_| std::os::unix::net::UnixStream::connect(&path).ok()).collect();
    wait_for("refusals", || {
        let row = daemon.source("a");
        let all =
            Daemon::number(&row, "connections_open") + Daemon::number(&row, "connections_refused_per_peer");
        (all > locals.len() as u64).then_some(())
    });
    assert_eq!(Daemon::number(&daemon.source("a"), "connections_open"), taken);
    let mut held = Vec::new();
    assert!(comes([127, 0, 0, 6], a, &mut held));
    drop(locals);
    daemon.stop();
}
