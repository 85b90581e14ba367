//! What a newcomer meets: a start without a file, help that fits, pipes that close, ports that are taken.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::daemon::STAUNCH;
use crate::support::{Builder, Daemon, wait_for};

/// The built-in plan has a port that tests cannot move, so they take turns.
static STANDARD_PORT: Mutex<()> = Mutex::new(());

const STANDARD: &str = "127.0.0.1:8125";

fn turn() -> MutexGuard<'static, ()> {
    STANDARD_PORT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_standard_port() -> Option<(UdpSocket, TcpListener)> {
    Some((UdpSocket::bind(STANDARD).ok()?, TcpListener::bind(STANDARD).ok()?))
}

/// The ports of Graphite, which the built-in plan has too.
fn graphite_ports_are_free() -> bool {
    UdpSocket::bind("127.0.0.1:2003").is_ok()
        && ["127.0.0.1:2003", "127.0.0.1:2004"].iter().all(|at| TcpListener::bind(at).is_ok())
}

/// False when another program has the port for a long time.
fn standard_port_is_free() -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        if take_standard_port().is_some() && graphite_ports_are_free() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    crate::support::skip("first_run", &format!("another program has {STANDARD}, 2003 or 2004"));
    false
}

fn first_run() -> Daemon {
    Builder::bare().args(&["--http", "127.0.0.1:0", "--management", "127.0.0.1:0"]).start()
}

/// Local addresses of all sockets of a process that listen, as `/proc/net` writes them: hexadecimal.
fn local_addresses(pid: u32) -> Vec<String> {
    let inodes: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("it is our child")
        .filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut addresses = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let text = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.get(9).is_some_and(|inode| inodes.iter().any(|known| known == inode)) {
                addresses.push(words[1].to_owned());
            }
        }
    }
    addresses
}

#[test]
fn a_first_run_listens_on_loopback_only_and_its_tip_works() {
    let _turn = turn();
    if !standard_port_is_free() {
        return;
    }
    let mut daemon = first_run();
    let banner = daemon.stderr();
    assert!(banner.contains("no config file: built-in defaults, loopback only"), "{banner}");
    let ports =
        ["udp://127.0.0.1:8125", "tcp://127.0.0.1:8125", "udp://127.0.0.1:2003", "tcp://127.0.0.1:2004"];
    for part in ports.into_iter().chain(["staunch-data", "(at most 80 MiB)"]) {
        assert!(banner.contains(part), "{part} is missing:\n{banner}");
    }
    assert_eq!(daemon.management().ip().to_string(), "127.0.0.1");
    assert!(!banner.contains("WARN"), "{banner}");

    let addresses = local_addresses(daemon.pid());
    let ports = addresses.iter().filter(|address| address.starts_with("0100007F:")).count();
    assert!(ports >= 4 && ports == addresses.len(), "only 127.0.0.1: {addresses:?}");

    let tip = banner.lines().find_map(|line| line.strip_prefix("try it:")).expect("a tip").trim();
    match Command::new("bash").args(["-c", tip]).status() {
        Ok(status) => assert!(status.success(), "{tip}"),
        Err(error) => {
            return crate::support::skip("first_run", &format!("no bash to paste the tip into: {error}"));
        }
    }
    daemon.wait_source("statsd", "aggregated", 1);
    let series = daemon.json("/api/v1/series?name=hello.*");
    assert_eq!(series["series"][0]["name"], "hello.world", "{series}");

    // The URL to click shows the counter, once it is flushed; here are its values.
    let url = banner.lines().find_map(|line| Some(line.trim().split_once("/render?")?.1));
    let url = format!("/render?{}&format=json", url.expect("a URL"));
    let value = || {
        let answer = daemon.json(&url);
        let points = answer[0]["datapoints"].as_array()?.clone();
        points.iter().find_map(|point| point[0].as_f64())
    };
    let value = wait_for("the flush", value);
    assert_eq!(value, 1.0);
    let mut line = TcpStream::connect("127.0.0.1:2003").expect("it listens");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    writeln!(line, "servers.web1.load 1.5 {now}").expect("it reads");
    daemon.wait_source("graphite", "routed", 1);
    daemon.stop();
    let tree = daemon.folder.path().join("staunch-data/store/whisper");
    for file in ["stats_counts/hello/world.wsp", "servers/web1/load.wsp"] {
        assert!(tree.join(file).is_file(), "{file}");
    }
}

#[test]
fn a_taken_port_is_a_warning_without_a_config() {
    let _turn = turn();
    // When another program has the port, that is as good.
    let taken = take_standard_port();
    let mut daemon = first_run();
    let logged = daemon.stderr();
    for scheme in ["udp", "tcp"] {
        let line = logged
            .lines()
            .find(|line| line.contains("WARN") && line.contains(&format!("{scheme}://{STANDARD}")));
        let line = line.unwrap_or_else(|| panic!("no warning about {scheme}:\n{logged}"));
        assert!(line.contains("in use") && line.contains("staunch run FILE"), "{line}");
    }
    assert_eq!(daemon.banner("statsd").as_deref(), Some("nowhere"), "{logged}");
    let ready = daemon.get("/ready");
    assert_eq!((ready.status, &*ready.body), (200, "ready\nsource `statsd` listens nowhere\n"));
    assert!(logged.contains("nowhere  (source statsd)\n"), "{logged}");
    daemon.stop();
    drop(taken);
}

#[test]
fn what_is_open_to_a_network_is_said_once() {
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://0.0.0.0:0\"]\n\
                [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://127.0.0.1:1\"]\n\
                [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n\
                [http]\nlisten = \"0.0.0.0:0\"\n[management]\nlisten = \"0.0.0.0:0\"\n";
    let mut daemon = Builder::native(toml).start();
    for warning in
        ["the HTTP server is open to a network, without a token", "the management port is open to a network"]
    {
        daemon.wait_logged_times(warning, 1);
    }
    let logged = daemon.stderr();
    let warned = logged.lines().filter(|line| line.contains("WARN") && line.contains("is open to a network"));
    assert_eq!(warned.count(), 2, "{logged}");
    for line in
        ["(source app, open to the network)", "  -> graphite      tcp://127.0.0.1:1  (output carbon)\n"]
    {
        assert!(logged.contains(line), "{line}: {logged}");
    }
    let open = logged.lines().filter(|line| line.ends_with("  (open to the network)")).count();
    assert_eq!(open, 2, "HTTP and management: {logged}");
    daemon.stop();
}

/// Two would write the same files of results.
#[test]
fn a_second_run_in_the_same_folder_is_refused() {
    let _turn = turn();
    let mut daemon = first_run();
    let second = Command::new(STAUNCH)
        .args(["run", "--http", "127.0.0.1:0", "--management", "127.0.0.1:0"])
        .current_dir(daemon.folder.path())
        .output()
        .expect("the binary starts");
    let logged = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success(), "{logged}");
    for part in ["in use by another daemon", &format!("process {}", daemon.pid()), "hint: stop that one"] {
        assert!(logged.contains(part), "{logged}");
    }
    daemon.stop();
}

#[test]
fn taken_ports_are_one_error_with_a_config() {
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let management = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let http = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = [udp.local_addr(), tcp.local_addr(), management.local_addr(), http.local_addr()]
        .map(|at| at.expect("it is bound").to_string());
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://{}\", \"tcp://{}\"]\n\
         [outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://127.0.0.1:9\"]\n\
         [management]\nlisten = \"{}\"\n",
        at[0], at[1], at[2]
    );
    let (code, logged) = Builder::native(&toml).args(&["--http", &at[3]]).run_to_end();
    assert_ne!(code, 0, "{logged}");
    for at in at {
        assert!(logged.contains(&at), "{at} is not named:\n{logged}");
    }
    assert!(logged.lines().all(|line| line.starts_with("staunch: cannot ")), "{logged}");
    // The way out of this verb: `--health` is that of a fan-out.
    assert!(["`--http ADDR`", "`--management ADDR`"].iter().all(|way| logged.contains(way)), "{logged}");
    assert!(!logged.contains("--health"), "{logged}");
}

fn help(args: &[&str]) -> String {
    let output = Command::new(STAUNCH).args(args).output().expect("the binary starts");
    assert!(output.status.success(), "{args:?}");
    assert!(output.stderr.is_empty(), "help is data: {args:?}");
    String::from_utf8(output.stdout).expect("help is text")
}

fn assert_fits(args: &[&str]) -> String {
    let text = help(args);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= 80, "{args:?}: a line of {widest} characters\n{text}");
    assert!(text.lines().count() <= 24, "{args:?}: {} lines\n{text}", text.lines().count());
    text
}

/// The verbs that a help text lists: what stands behind two spaces; wrapped lines have more.
fn verbs(text: &str) -> Vec<&str> {
    let lines =
        text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verb = |line| str::strip_prefix(line, "  ")?.split(' ').next().filter(|verb| !verb.is_empty());
    lines.filter_map(verb).filter(|verb| *verb != "help").collect()
}

#[test]
fn the_help_of_every_verb_fits_a_small_terminal() {
    let text = assert_fits(&["-h"]);
    let found = verbs(&text);
    assert!(found.contains(&"run") && found.contains(&"queue"), "{found:?}");
    for verb in found.into_iter().chain(["manual"]) {
        let text = assert_fits(&[verb, "-h"]);
        verbs(&text).into_iter().for_each(|below| drop(assert_fits(&[verb, below, "-h"])));
    }
}

#[test]
fn a_word_that_means_two_things_is_explained_as_both() {
    let explained = |word: &str| {
        let run = Command::new(STAUNCH).args(["explain", word]).output().expect("the binary starts");
        assert!(run.status.success(), "{word}: {}", run.status);
        String::from_utf8(run.stdout).expect("it is text")
    };
    let (outcome, answer) = ("an outcome of the family `", "a reason of `err` lines");
    for (word, of_outcome, of_answer) in [
        ("stopped", true, true),
        ("bad_frame", true, true),
        ("unread", false, true),
        ("too_old", true, false),
    ] {
        let text = explained(word);
        assert_eq!((text.contains(outcome), text.contains(answer)), (of_outcome, of_answer), "{text}");
    }
    for word in ["rejected", "dropped", "rejected_by_peer", "filtered", "internal"] {
        let text = explained(word);
        assert!(text.contains(&format!("{word}: a family of outcomes")), "{text}");
    }
    for word in [
        "received",
        "aggregated",
        "routed",
        "in_flight",
        "copies",
        "delivered",
        "queued",
        "moved",
        "filtered",
    ] {
        let text = explained(word);
        assert!(text.contains(&format!("{word}: a field of the accounts")), "{text}");
    }
    for word in ["connect_failed", "unresolved", "check_timeout", "refused"] {
        let text = explained(word);
        assert!(text.contains(&format!("{word}: a value of `last_error`")), "{text}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in
        [&["manual", "reference"][..], &["explain"], &["manual", "schema"], &["--help"], &["manual", "man"]]
    {
        let mut child = Command::new(STAUNCH)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        drop(child.stdout.take());
        let mut logged = String::new();
        let stderr = child.stderr.as_mut().expect("it is piped");
        stderr.read_to_string(&mut logged).expect("talk is text");
        let status = child.wait().expect("it is our child");
        assert!(status.success(), "{args:?}: {status}: {logged}");
        assert_eq!(logged, "", "{args:?}");
    }
}

#[test]
fn a_console_output_whose_reader_goes_away_is_no_error() {
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
        [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\n\
        [outputs.console]\ntype = \"console\"\nfrom = [\"stats\"]\n";
    let mut daemon = Builder::native(toml).closed_stdout().start();
    wait_for("some documents to be written", || {
        (Daemon::number(&daemon.output("console"), "delivered") >= 6).then_some(())
    });
    assert!(!daemon.stderr().contains("WARN"), "{}", daemon.stderr());
    daemon.assert_sums_hold();
    daemon.stop();
}

/// Runs `staunch check` of a bad file on a terminal; none when the machine cannot make one.
fn on_a_terminal(no_color: Option<&str>) -> Option<String> {
    let folder = tempfile::TempDir::new().expect("a folder for the test");
    std::fs::write(folder.path().join("bad.toml"), "sorces = 1\n").expect("it can be written");
    let mut command = Command::new("script");
    command.args(["-qec", &format!("'{STAUNCH}' check bad.toml"), "/dev/null"]).current_dir(folder.path());
    command.env_remove("NO_COLOR").env("TERM", "xterm").stdin(Stdio::null());
    if let Some(set) = no_color {
        command.env("NO_COLOR", set);
    }
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.contains("sorces").then_some(text)
}

#[test]
fn colour_is_for_terminals_without_no_color() {
    let folder = tempfile::TempDir::new().expect("a folder for the test");
    std::fs::write(folder.path().join("bad.toml"), "sorces = 1\n").expect("it can be written");
    let output = Command::new(STAUNCH).args(["check", "bad.toml"]).current_dir(folder.path()).output();
    let output = output.expect("the binary starts");
    assert!(!output.stderr.contains(&0x1b) && output.stdout.is_empty(), "no colour in a pipe");

    let Some(coloured) = on_a_terminal(None) else {
        return crate::support::skip("first_run", "no `script` to make a terminal with");
    };
    assert!(coloured.contains('\u{1b}'), "{coloured}");
    let plain = on_a_terminal(Some("1")).expect("it worked a moment ago");
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let empty = on_a_terminal(Some("")).expect("it worked a moment ago");
    assert!(empty.contains('\u{1b}'), "an empty NO_COLOR does not count");
}
