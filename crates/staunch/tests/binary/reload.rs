//! SIGHUP: a broken file changes nothing, a good one changes what it says and nothing else.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{Builder, Daemon, FakeGraphite, http, udp, wait_for};

fn config(listen: &[&str], outputs: &[(&str, &FakeGraphite)]) -> String {
    let mut toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = {listen:?}\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n"
    );
    for (name, graphite) in outputs {
        toml += &format!(
            "[outputs.{name}]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{}\"]\nmin_retry_delay = \"50ms\"\nmax_retry_delay = \"200ms\"\n",
            graphite.to()
        );
    }
    toml
}

const UDP: &str = "udp://127.0.0.1:0";
const TCP: &str = "tcp://127.0.0.1:0";

#[test]
fn a_broken_file_changes_nothing_and_is_shown() {
    let graphite = FakeGraphite::new();
    let good = config(&[UDP], &[("carbon", &graphite)]);
    let mut daemon = Builder::native(&good).start();
    let at = daemon.at("app", "udp");
    udp(at).send(b"hits:1|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    daemon.reload("[sources.app\n", "refused");
    daemon.reload("", "refused");
    daemon.reload(&good.replace("type = \"aggregate\"", "type = \"agregate\""), "refused");
    let parts = ["nothing changed", "staunch.toml:6:", "^^^"];
    wait_for("the mistake with line and caret", || {
        let logged = daemon.stderr();
        parts.iter().all(|part| logged.contains(part)).then_some(())
    });
    assert_eq!(daemon.at("app", "udp"), at);
    let ready = daemon.get("/ready");
    assert!(ready.status == 200 && ready.body.starts_with("ready\nreload refused at "), "{}", ready.body);
    assert!(ready.body.contains(" UTC: C007 at staunch.toml:6\n"), "{}", ready.body);
    udp(at).send(b"hits:10|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 2);
    daemon.reload(&good, "done");
    assert!(!daemon.get("/ready").body.contains("reload"));
    std::fs::remove_file(daemon.file.as_ref().expect("it has one")).expect("it was there");
    daemon.signal("HUP");
    wait_for("a word about it", || daemon.stderr().contains("cannot read staunch.toml").then_some(()));
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), 11.0);
}

#[test]
fn a_reload_prints_only_warnings_that_are_new() {
    let graphite = FakeGraphite::new();
    let good = config(&[UDP], &[("carbon", &graphite)]);
    let unused = |name: &str| format!("[sources.{name}]\ntype = \"statsd\"\nlisten = [\"{UDP}\"]\n");
    let mut daemon = Builder::native(&(good.clone() + &unused("spare"))).start();
    daemon.wait_logged_times("source `spare`", 1);
    // It is in another line now, and still the same.
    let moved = format!("# a comment\n{}{good}", unused("spare"));
    daemon.reload(&moved, "done");
    daemon.reload(&(moved + &unused("other")), "done");
    let said = daemon.wait_logged_times("source `other`", 1);
    assert_eq!(said.matches("source `spare`").count(), 1, "{said}");
    daemon.reload(&good, "done");
    daemon.reload(&(good.clone() + &unused("spare")), "done");
    // It was gone, and is back.
    daemon.wait_logged_times("source `spare`", 2);
    daemon.stop();
}

#[test]
fn a_reload_over_http_replies_with_its_result_and_diagnostics() {
    let graphite = FakeGraphite::new();
    let good = config(&[UDP], &[("carbon", &graphite)]);
    let daemon = Builder::native(&good).start();
    let file = daemon.file.clone().expect("it has one");
    let post = |kind| http::post(daemon.http(), "/api/v1/reload", kind, "{}").expect("an answer");
    let reload = || post("application/json");
    assert!(daemon.get("/api/v1/config").body.contains("window = \"1h\""));
    std::fs::write(&file, good.replace("\"aggregate\"", "\"agregate\"")).expect("it can be written");
    let refused = reload();
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(
        refused.body.contains("\"refused\"") && refused.body.contains("staunch.toml:5:8"),
        "{}",
        refused.body
    );
    assert!(daemon.get("/api/v1/config").body.contains("window = \"1h\""), "nothing changed");
    std::fs::write(&file, good.replace("\"1h\"", "\"2h\"")).expect("it can be written");
    let done = reload();
    assert!(done.status == 200 && done.body.contains("\"done\""), "{}", done.body);
    assert!(daemon.get("/api/v1/config").body.contains("window = \"2h\""));
    assert_eq!(post("text/plain").status, 403, "a form of a web page");
}

#[test]
fn each_line_of_a_json_log_is_an_object_with_time_level_and_message() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let folder = tempfile::TempDir::new().expect("a folder for the test");
    let text =
        "sources.app = { type = \"statsd\", listen = [\"udp://127.0.0.1:0\"] }\nhttp.enabled = false\n";
    std::fs::write(folder.path().join("a.toml"), text).expect("it can be written");
    let mut child = Command::new(crate::support::daemon::STAUNCH)
        .args(["--log-format", "json", "run", "a.toml"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut log = Vec::new();
    // The banner comes when everything is there.
    while !log.last().is_some_and(|line: &String| line.contains("(source app)")) {
        log.push(lines.next().expect("one more line").expect("it is text"));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("it runs").success());
    log.extend(lines.map_while(Result::ok));
    assert!(child.wait().expect("it ends").success());
    for line in log {
        let line: serde_json::Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
        assert!(["info", "warn"].iter().any(|level| line["level"] == *level), "{line}");
        assert!(line["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
        assert!(line["message"].is_string(), "{line}");
    }
}

#[test]
fn what_is_in_flight_survives() {
    let graphite = FakeGraphite::new();
    let toml = config(&[UDP], &[("carbon", &graphite)]);
    let mut daemon = Builder::native(&toml).start();
    let socket = udp(daemon.at("app", "udp"));
    socket.send(b"hits:1|c\nload:70|g\nusers:a|s\nusers:b|s\ntime:5|ms").expect("it is there");
    daemon.wait_source("app", "aggregated", 5);
    daemon.reload(&toml.replace("window = \"1h\"", "window = \"2h\"\npercentiles = [50]"), "done");
    socket.send(b"hits:10|c\nload:+7|g\nusers:b|s\nusers:c|s\ntime:7|ms").expect("it is there");
    daemon.wait_source("app", "aggregated", 10);
    daemon.assert_sums_hold();
    daemon.stop();
    let last = |name: &str| graphite.of(name).last().map(|point| point.value);
    assert_eq!(last("stats_counts.hits"), Some(11.0));
    assert_eq!(last("stats.gauges.load"), Some(77.0));
    assert_eq!(last("stats.sets.users.count"), Some(3.0));
    assert_eq!(last("stats.timers.time.sum"), Some(12.0));
    assert_eq!(last("stats.timers.time.upper_50"), Some(5.0), "the new thresholds");
}

#[test]
fn listeners_open_and_close_and_the_others_stay() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&[UDP], &[("carbon", &graphite)])).start();
    let kept = daemon.at("app", "udp");
    daemon.reload(&config(&[UDP, TCP, "unixgram://packets.sock"], &[("carbon", &graphite)]), "done");
    assert_eq!(daemon.at("app", "udp"), kept);
    let tcp = daemon.at("app", "tcp");
    let mut stream = TcpStream::connect(tcp).expect("the new listener is open");
    stream.write_all(b"hits:1|c\n").expect("it reads");
    let path = daemon.folder.path().join("packets.sock");
    let unix = std::os::unix::net::UnixDatagram::unbound().expect("a socket");
    unix.send_to(b"hits:10|c", &path).expect("the new listener is open");
    udp(kept).send(b"hits:100|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 3);

    daemon.reload(&config(&[UDP], &[("carbon", &graphite)]), "done");
    assert_eq!(daemon.at("app", "udp"), kept);
    wait_for("the removed listener to be closed", || TcpStream::connect(tcp).is_err().then_some(()));
    assert!(!path.exists(), "its file is gone");
    udp(kept).send(b"hits:1000|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 4);
    daemon.assert_sums_hold();
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), 1111.0);
}

#[test]
fn a_taken_port_refuses_the_reload() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&[UDP], &[("carbon", &graphite)])).start();
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let place = format!("udp://{}", taken.local_addr().expect("it is bound"));
    daemon.reload(&config(&[UDP, TCP, &place], &[("carbon", &graphite)]), "refused");
    wait_for("a word about it", || daemon.stderr().contains(&place).then_some(()));
    assert_eq!(daemon.places("app").len(), 1);
    daemon.stop();
}

#[test]
fn what_waits_for_the_next_start_is_said_until_the_file_agrees_again() {
    let graphite = FakeGraphite::new();
    let toml = config(&[UDP], &[("carbon", &graphite)]);
    let mut daemon = Builder::native(&toml).start();
    let note = "the new `receive_buffer` of source `app` takes effect at the next start only";
    let logged = |daemon: &Daemon| daemon.stderr().matches(note).count();
    let other = toml.replace("[transforms", "receive_buffer = \"300KiB\"\n[transforms");
    for (file, want) in [(&other, 1), (&other, 2), (&toml, 2), (&toml, 2), (&other, 3)] {
        daemon.reload(file, "done");
        wait_for("a note", || (logged(&daemon) == want).then_some(()));
    }
    daemon.stop();
}

#[test]
fn outputs_come_and_go_and_the_others_stay() {
    let (one, other, third) = (FakeGraphite::new(), FakeGraphite::new(), FakeGraphite::new());
    let short = |toml: String| toml.replace("window = \"1h\"", "window = \"1s\"");
    let mut daemon = Builder::native(&short(config(&[UDP], &[("one", &one)]))).start();
    let socket = udp(daemon.at("app", "udp"));
    socket.send(b"hits:1|c").expect("it is there");
    wait_for("a flush", || (one.total("stats_counts.hits") == 1.0).then_some(()));

    daemon.reload(&short(config(&[UDP], &[("one", &one), ("other", &other)])), "done");
    socket.send(b"hits:10|c").expect("it is there");
    wait_for("a flush", || (other.total("stats_counts.hits") == 10.0).then_some(()));
    assert_eq!(one.connections(), 1, "its connection was not touched");

    daemon.reload(&short(config(&[UDP], &[("other", &other)])), "done");
    socket.send(b"hits:100|c").expect("it is there");
    wait_for("a flush", || (other.total("stats_counts.hits") == 110.0).then_some(()));
    assert_eq!(one.total("stats_counts.hits"), 11.0, "it gets nothing any more");
    wait_for("its connection to be closed", || (one.open() == 0).then_some(()));

    // The same name for another endpoint.
    daemon.reload(&short(config(&[UDP], &[("other", &third)])), "done");
    socket.send(b"hits:1000|c").expect("it is there");
    wait_for("a flush", || (third.total("stats_counts.hits") == 1000.0).then_some(()));
    assert_eq!(other.total("stats_counts.hits"), 110.0);
    daemon.assert_sums_hold();
    let page = daemon.json("/api/v1/accounts");
    let names: Vec<&str> =
        page["outputs"].as_array().expect("rows").iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "other").count(), 1, "one row a name: {names:?}");
    daemon.stop();
}

#[test]
fn an_output_that_moves_while_its_endpoint_is_dead_keeps_its_account() {
    let (mut dead, new) = (FakeGraphite::new(), FakeGraphite::new());
    let short = |toml: String| toml.replace("window = \"1h\"", "window = \"1s\"");
    let mut daemon = Builder::native(&short(config(&[UDP], &[("carbon", &dead)]))).start();
    dead.refuse();
    udp(daemon.at("app", "udp")).send(b"hits:1|c").expect("it is there");
    wait_for("points to wait", || (Daemon::number(&daemon.output("carbon"), "queued") > 0).then_some(()));
    daemon.reload(&short(config(&[UDP], &[("carbon", &new)])), "done");
    wait_for("a flush", || (!new.points().is_empty()).then_some(()));
    daemon.assert_sums_hold();
    assert!(
        Daemon::number(&daemon.output("carbon"), "queued") > 0,
        "what waits for the old endpoint still waits"
    );
    dead.come_back();
    wait_for("nothing to wait", || (Daemon::number(&daemon.output("carbon"), "queued") == 0).then_some(()));
    daemon.assert_sums_hold();
    daemon.stop();
    // The flush with this count came before the reload or behind it.
    assert_eq!(dead.total("stats_counts.hits") + new.total("stats_counts.hits"), 1.0);
    assert!(!dead.points().is_empty(), "the old endpoint got what waited for it");
}

#[test]
fn a_transform_that_goes_hands_over_its_open_window() {
    let graphite = FakeGraphite::new();
    let toml = config(&[UDP], &[("carbon", &graphite)]);
    let mut daemon = Builder::native(&toml).start();
    let socket = udp(daemon.at("app", "udp"));
    socket.send(b"hits:1|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    daemon.reload(
        &toml.replace("transforms.stats", "transforms.other").replace("[\"stats\"]", "[\"other\"]"),
        "done",
    );
    socket.send(b"hits:10|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 2);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), 11.0);
}

#[test]
fn sockets_that_stay_lose_nothing_during_reloads() {
    let graphite = FakeGraphite::new();
    let lean = config(&[UDP, TCP], &[("carbon", &graphite)]);
    let mut daemon = Builder::native(&lean).start();
    let (at, tcp) = (daemon.at("app", "udp"), daemon.at("app", "tcp"));
    let over = Arc::new(AtomicBool::new(false));
    let sent = Arc::new(AtomicU64::new(0));
    let (ended, count) = (Arc::clone(&over), Arc::clone(&sent));
    let sender = std::thread::spawn(move || {
        let socket = udp(at);
        let mut stream = TcpStream::connect(tcp).expect("it listens");
        while !ended.load(SeqCst) {
            socket.send(b"hits:1|c").expect("it is there");
            stream.write_all(b"hits:1|c\n").expect("it reads");
            count.fetch_add(2, SeqCst);
            std::thread::sleep(Duration::from_micros(500));
        }
    });
    for round in 0..6 {
        let with_more = format!(
            "{}\n[sources.extra{round}]\ntype = \"statsd\"\nlisten = [\"{UDP}\"]\n\
             [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\n\
             [outputs.copy]\ntype = \"udp\"\nfrom = [\"extra{round}\"]\nto = [\"udp://127.0.0.1:9\"]\n",
            lean.replace("window = \"1h\"", "window = \"30m\"")
        );
        daemon.reload(&with_more, "done");
        daemon.reload(&lean, "done");
    }
    over.store(true, SeqCst);
    sender.join().expect("the sender only stops");
    let sent = sent.load(SeqCst);
    assert!(sent > 100);
    wait_for("every line to be accounted for", || {
        let row = daemon.source("app");
        assert_eq!(Daemon::number(&row, "kernel_dropped"), 0, "{row}");
        (Daemon::number(&row, "aggregated") == sent).then_some(())
    });
    daemon.assert_sums_hold();
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), sent as f64);
}

#[test]
fn connections_that_are_open_are_read_as_the_new_plan_wants_it() {
    let copies = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    copies.set_read_timeout(Some(crate::support::PATIENCE)).expect("a time-out can be set");
    let to = copies.local_addr().expect("it is bound");
    let source = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n";
    let stats = "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n\
                 [outputs.points]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\npath = \"points\"\n";
    let copy = format!("[outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://{to}\"]\n");
    let mut packet = [0; 100];
    let mut copied = || {
        let len = copies.recv(&mut packet).expect("a copy");
        String::from_utf8_lossy(&packet[..len]).into_owned()
    };
    // Aggregated, and from then on copied as well: line by line, as packets.
    let mut daemon = Builder::native(&format!("{source}{stats}")).start();
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    stream.write_all(b"a:1|c\n").expect("it reads");
    daemon.wait_source("app", "aggregated", 1);
    daemon.reload(&format!("{source}{stats}{copy}"), "done");
    stream.write_all(b"b:1|c\nc:1|c\n").expect("it reads");
    assert_eq!([copied(), copied()], ["b:1|c", "c:1|c"]);
    daemon.wait_source("app", "aggregated", 3);
    daemon.stop();
    // The other way round: lines that nobody looked into are samples now.
    let mut daemon = Builder::native(&format!("{source}{copy}")).start();
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    stream.write_all(b"a:1|c\n").expect("it reads");
    assert_eq!(copied(), "a:1|c");
    daemon.reload(&format!("{source}{stats}{copy}"), "done");
    stream.write_all(b"b:1|c\nc:1|c\n").expect("it reads");
    daemon.wait_source("app", "aggregated", 2);
    daemon.assert_sums_hold();
    daemon.stop();
}

/// Threads, but for the pool's, which are kept; and descriptors. None while a queue on disk is open.
fn threads_and_descriptors(daemon: &Daemon) -> Option<(usize, usize)> {
    let process = std::path::PathBuf::from(format!("/proc/{}", daemon.pid()));
    let mut threads = 0;
    for thread in std::fs::read_dir(process.join("task")).ok()? {
        // One that ends meanwhile is looked for again.
        let name = std::fs::read_to_string(thread.ok()?.path().join("comm")).ok()?;
        if name.starts_with("sync ") {
            return None;
        }
        threads += usize::from(!name.starts_with("tokio"));
    }
    Some((threads, std::fs::read_dir(process.join("fd")).ok()?.count()))
}

#[test]
fn outputs_with_queues_on_disk_that_reloads_remove_leave_no_thread_and_no_descriptor() {
    let endpoint = FakeGraphite::new();
    let output = |name: &str, queue: &str| {
        let to = endpoint.to();
        let queue = format!("queue = {{ kind = \"{queue}\" }}");
        format!("[outputs.{name}]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{to}\"]\n{queue}\n")
    };
    let source = format!("[sources.app]\ntype = \"statsd\"\nlisten = [{TCP:?}]\n");
    let lean = source + &output("kept", "memory");
    let mut daemon = Builder::native(&lean).start();
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    let mut send_and_remove = |name: &str, times: u64| {
        daemon.reload(&(lean.clone() + &output(name, "disk")), "done");
        stream.write_all(b"a:1|c\n").expect("it reads");
        daemon.wait_output(name, "delivered", times);
        daemon.reload(&lean, "done");
    };
    // The first one brings the data directory, which stays.
    send_and_remove("again", 1);
    let before = wait_for("the first queue to be closed", || threads_and_descriptors(&daemon));
    let rounds = 50;
    for round in 1..=rounds {
        // By turns one that was there before, and a new one.
        match round % 2 {
            0 => send_and_remove("again", 1 + round / 2),
            _ => send_and_remove(&format!("other{round}"), 1),
        }
    }
    wait_for("no more threads and descriptors than before", || {
        let (threads, descriptors) = threads_and_descriptors(&daemon)?;
        (threads <= before.0 && descriptors <= before.1).then_some(())
    });
    daemon.wait_output("kept", "delivered", rounds + 1);
    daemon.assert_sums_hold();
    daemon.stop();
    let lines = endpoint.bytes().iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines as u64, 2 * (rounds + 1), "each line to each output, once");
}
