//! `staunch top` as a person sees it on a terminal, and as a script reads it from a pipe.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::support::daemon::STAUNCH;
use crate::support::pty::Terminal;
use crate::support::traffic::send_all;
use crate::support::{Builder, Daemon, udp, wait_for};

/// A source with an output that is there and one that is not.
fn start() -> (Daemon, std::net::UdpSocket) {
    let live = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let at = live.local_addr().expect("it is bound");
    let toml = format!(
        "stop_timeout = \"1s\"\n[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [outputs.live]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://{at}\"]\n\
         [outputs.dead]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://127.0.0.1:1\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\n"
    );
    (Builder::native(&toml).start(), live)
}

fn api(daemon: &Daemon) -> String {
    daemon.http().to_string()
}

/// Packets of one good and one bad line each.
fn send(daemon: &Daemon, packets: usize) {
    send_all(&udp(daemon.at("app", "udp")), (0..packets).map(|_| "hits:1|c\nbad"));
}

#[test]
fn a_person_sees_rates_states_and_losses() {
    let (mut daemon, _live) = start();
    let mut top = Terminal::start(&["top", "--api", &api(&daemon)], &[]);
    top.wait_rows("the first frame", |rows| rows[2].starts_with(" SOURCES  1"));
    send(&daemon, 50);
    let rows = top.wait_rows("what was sent", |rows| rows[3].split_whitespace().nth(7) == Some("50"));
    assert_eq!(rows[0], format!("{:<72}balanced", format!("staunch top  {}", api(&daemon))));
    assert!(
        rows[1].contains(" UTC, received 100, delivered ")
            && rows[1].ends_with(", rejected 50, no other loss"),
        "{rows:#?}"
    );
    assert!(rows[3].starts_with(" app "), "{rows:#?}");
    assert!(rows[4].starts_with("[OUTPUTS] 2 "), "{rows:#?}");
    assert_eq!(rows[23], "quit   sources   outputs   pause   ? help");
    let rows = top.wait_rows("both outputs' states", |rows| {
        let state = |row: &str| row.split_whitespace().nth(1).map(str::to_owned);
        (state(&rows[5]).as_deref(), state(&rows[6]).as_deref()) == (Some("up"), Some("down"))
    });
    assert!(rows[5].starts_with(" live") && rows[6].starts_with(">dead"), "{rows:#?}");
    // The output that is down is selected by itself.
    top.wait_rows("the selected output in full", |rows| {
        rows[19].starts_with("dead  graphite  down for ")
            && rows[20].starts_with("last error ")
            && rows[20].contains(" ago: connect_failed: ")
            && rows[21].contains("Connection refused")
            && rows[22] == "nothing lost"
    });
    top.press("s");
    top.wait_rows("the source in full", |rows| {
        rows[22].starts_with("app  statsd  udp://127.0.0.1:") && rows[21] == "lost: no_type 50"
    });
    top.press("?");
    top.wait_rows("help", |rows| rows.iter().any(|row| row.contains("share of the queue's limit")));
    top.press("?p");
    top.wait_rows("a pause", |rows| rows[1].starts_with("PAUSED at "));
    let colours = top.look(|screen| {
        let cells = (0..24).flat_map(|row| (0..80).map(move |column| (row, column)));
        let cells = cells.filter_map(|(row, column)| screen.cell(row, column));
        cells
            .filter(|cell| cell.fgcolor() != vt100::Color::Default)
            .map(vt100::Cell::fgcolor)
            .collect::<Vec<_>>()
    });
    assert!(!colours.is_empty(), "states have colours");
    assert!(colours.iter().all(|colour| matches!(colour, vt100::Color::Idx(0..16))), "{colours:?}");
    top.press("q");
    let (status, rows) = top.wait_restored();
    assert!(status.success(), "{status}: {rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("Since the start: 100 records received, ")), "{rows:#?}");
    assert!(rows.iter().any(|row| row == "Rejected as bad input: no_type 50."), "{rows:#?}");
    assert!(rows.iter().any(|row| row == "Nothing else was lost."), "{rows:#?}");
    daemon.stop();
}

#[test]
fn a_daemon_that_is_away_is_shown_as_such_and_comes_back() {
    let (mut daemon, _live) = start();
    let mut top = Terminal::start(&["top", "--api", &api(&daemon)], &[("NO_COLOR", "1")]);
    top.wait_rows("a frame", |rows| rows[3].starts_with(" app "));
    daemon.signal("STOP");
    let rows = top.wait_rows("that it is away", |rows| rows[1].starts_with("AWAY since "));
    assert!(rows[1].contains(" UTC (") && rows[1].contains("no answer within"), "{rows:#?}");
    assert!(rows[3].starts_with(" app "), "what was known stays: {rows:#?}");
    let plain = top.look(|screen| {
        let cell = |column| screen.cell(3, column).expect("it is on the screen");
        (0..80).all(|column| cell(column).fgcolor() == vt100::Color::Default)
    });
    assert!(plain, "no colour under NO_COLOR");
    assert!(top.look(|screen| screen.cell(3, 1).expect("it is on the screen").dim()), "greyed");
    daemon.signal("CONT");
    top.wait_rows("that it is back", |rows| rows[1].contains(" UTC, received "));
    daemon.stop();
    top.wait_rows("that it is away again", |rows| {
        rows[1].starts_with("AWAY since ") && rows[1].contains("cannot connect")
    });
    top.signal("TERM");
    let (status, rows) = top.wait_restored();
    assert!(status.success(), "{status}: {rows:#?}");
}

#[test]
fn a_terminal_may_change_its_size() {
    let (daemon, _live) = start();
    let mut top = Terminal::start(&["top", "--api", &api(&daemon)], &[]);
    top.wait_rows("a frame", |rows| rows[3].starts_with(" app "));
    for (rows_now, columns) in [(40, 120), (24, 80), (10, 60)] {
        top.resize(rows_now, columns);
        top.wait_rows("a frame of the new size", |rows| {
            rows.len() == usize::from(rows_now)
                && rows[usize::from(rows_now) - 1].starts_with("quit ")
                && rows[3].starts_with(" app ")
                && rows[0].len() == usize::from(columns)
        });
    }
    top.press("q");
    assert!(top.wait_restored().0.success());
}

#[test]
fn the_terminal_is_given_back_on_control_c() {
    let (daemon, _live) = start();
    let mut top = Terminal::start(&["top", "--api", &api(&daemon)], &[]);
    top.wait_rows("a frame", |rows| rows[3].starts_with(" app "));
    assert!(top.look(|screen| screen.alternate_screen() && screen.hide_cursor()));
    top.press("\u{3}");
    let (status, _) = top.wait_restored();
    assert!(status.success(), "{status}");
}

#[test]
fn a_keyboard_that_is_gone_keeps_no_top_from_its_end() {
    let (daemon, _live) = start();
    let (mut top, keyboard) = Terminal::start_with_keys_of_another(&["top", "--api", &api(&daemon)]);
    top.wait_rows("a frame", |rows| rows[3].starts_with(" app "));
    // The kernel says so with SIGHUP. A reader gets the end of input, again and again.
    drop(keyboard);
    assert!(top.wait_end().success());
}

#[test]
fn once_on_a_terminal_is_text_that_stays() {
    let (daemon, _live) = start();
    let top = Terminal::start(&["top", "--once", "--api", &api(&daemon)], &[]);
    let (status, rows) = top.wait_restored();
    assert!(status.success(), "{status}: {rows:#?}");
    assert!(rows[0].starts_with("staunch top  127.0.0.1:") && rows[3].starts_with(" app "), "{rows:#?}");
    let last = rows.iter().rposition(|row| !row.is_empty()).expect("it wrote something");
    assert!(rows[last - 1].starts_with("Since the start: 0 records received, 0 copies"), "{rows:#?}");
    assert_eq!(rows[last], "Nothing was lost.", "{rows:#?}");
}

fn status(api: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let run = Command::new(STAUNCH).args(["status", "--api", api]).args(more).output();
    let run = run.expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    (run.status.code(), text(run.stdout), text(run.stderr))
}

#[test]
fn status_says_by_its_exit_code_whether_somebody_has_to_look() {
    let (mut daemon, _live) = start();
    send(&daemon, 3);
    let api = api(&daemon);
    wait_for("an output that is down", || daemon.get("/ready").body.contains("is down").then_some(()));
    let (code, text, _) = status(&api, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains(": ready, balanced\n") && text.contains("\nwarnings\n  output `dead` is down"),
        "{text}"
    );
    assert!(text.contains("received 6 = rejected 3 + aggregated 3"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (_, json, _) = status(&api, &["--json", "--no-wait"]);
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!((&json["interval_s"], &json["sources"][0]["received"]), (&Value::Null, &6.into()), "{json}");
    daemon.stop();
    let (code, text, error) = status(&api, &[]);
    assert_eq!((code, text.as_str()), (Some(2), ""), "{error}");
    assert!(error.starts_with(&format!("staunch: no daemon answers at {api}: cannot connect")), "{error}");
    assert!(error.contains("--api HOST:PORT") && error.contains("--config FILE"), "{error}");
}

#[test]
fn status_of_a_daemon_without_trouble_is_0() {
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n[outputs.file]\ntype = \"graphite_file\"\n\
        from = [\"stats\"]\n[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\n";
    let mut daemon = Builder::native(toml).start();
    let (code, text, _) = status(&api(&daemon), &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("\nwarnings: none\n"), "{text}");
    daemon.stop();
}

struct Piped {
    child: Child,
    /// None once nobody reads.
    lines: Option<BufReader<ChildStdout>>,
}

impl Piped {
    fn start(api: &str) -> Piped {
        let child = Command::new(STAUNCH)
            .args(["top", "--api", api])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.expect("the binary starts");
        let lines = child.stdout.take().map(BufReader::new);
        Piped { child, lines }
    }

    /// The next line.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.as_mut().expect("it is read").read_line(&mut line).expect("it is UTF-8");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn a_pipe_gets_a_json_object_a_second() {
    let (mut daemon, _live) = start();
    let mut top = Piped::start(&api(&daemon));
    let first = top.next();
    assert_eq!((&first["reachable"], &first["interval_s"]), (&Value::Bool(true), &Value::Null), "{first}");
    assert_eq!(first["sources"][0]["packets_per_s"], Value::Null, "one look has no rates");
    send(&daemon, 40);
    let (mut packets, mut records, mut copies) = (0.0, 0.0, 0.0);
    while copies < 39.9 || packets < 39.9 {
        let line = top.next();
        let seconds = line["interval_s"].as_f64().expect("there was a look before");
        let counted = |row: &Value, rate: &str| row[rate].as_f64().expect("a rate") * seconds;
        packets += counted(&line["sources"][0], "packets_per_s");
        records += counted(&line["sources"][0], "records_per_s");
        copies += counted(&line["outputs"][0], "delivered_per_s");
    }
    // Rates times seconds are the counts again.
    assert!((packets - 40.0).abs() < 0.01 && (records - 80.0).abs() < 0.01, "{packets} {records}");
    let last = top.next();
    assert_eq!((&last["sums"], &last["sources"][0]["rejected"]), (&"hold".into(), &40.into()), "{last}");
    assert_eq!(last["outputs"][0]["state"], "up", "{last}");
    daemon.stop();
    let away =
        wait_for("a line without the daemon", || Some(top.next()).filter(|line| line["reachable"] == false));
    assert!(away["error"].is_string() && away["away_since_ms"].is_u64(), "{away}");
    // Nobody reads any more: that is an end like any other.
    drop(top.lines.take());
    let status = wait_for("the end", || top.child.try_wait().expect("it is our child"));
    let mut said = String::new();
    std::io::Read::read_to_string(top.child.stderr.as_mut().expect("it is piped"), &mut said).expect("UTF-8");
    assert!(status.success() && said.is_empty(), "{status}: {said}");
}

#[test]
fn once_gives_one_line_with_rates_or_a_reason() {
    let (mut daemon, _live) = start();
    let once = |api: &str| {
        let run = Command::new(STAUNCH).args(["top", "--json", "--once", "--api", api]).output();
        let run = run.expect("the binary starts");
        (run.status.code(), String::from_utf8_lossy(&run.stdout).into_owned(), run.stderr)
    };
    let api = api(&daemon);
    let (code, stdout, _) = once(&api);
    assert_eq!((code, stdout.lines().count()), (Some(0), 1), "{stdout}");
    let line: Value = serde_json::from_str(&stdout).expect("it is JSON");
    assert_eq!(
        (&line["api"], &line["sources"][0]["packets_per_s"]),
        (&api.as_str().into(), &0.0.into()),
        "{line}"
    );
    daemon.stop();
    let (code, stdout, stderr) = once(&api);
    let stderr = String::from_utf8_lossy(&stderr);
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.starts_with("staunch: ") && stderr.contains("cannot connect"), "{stderr}");
}

#[test]
fn a_relay_shows_what_becomes_of_points_and_who_is_down() {
    let live = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = live.local_addr().expect("it is bound");
    let toml = format!(
        "stop_timeout = \"1s\"\n[sources.lines]\ntype = \"graphite\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [outputs.dead]\ntype = \"graphite\"\nfrom = [\"relay\"]\nto = [\"tcp://127.0.0.1:1\"]\n\
         [outputs.live]\ntype = \"graphite\"\nfrom = [\"relay\"]\nto = [\"tcp://{at}\"]\n\
         [transforms.relay]\ntype = \"relay\"\nfrom = [\"lines\"]\n\
         [transforms.relay.clusters]\nspare = {{ type = \"failover\", to = [\"dead\", \"live\"] }}\n\
         [[transforms.relay.rules]]\nmatch = ['^a\\.']\nto = [\"spare\"]\n"
    );
    let mut daemon = Builder::native(&toml).start();
    let mut top = Terminal::start(&["top", "--api", &api(&daemon)], &[]);
    let lines = || (0..50).map(|number| format!("a.b{number} 1 1700000000\nc.d 1 1700000000\n"));
    send_all(&udp(daemon.at("lines", "udp")), lines());
    let rows = top.wait_rows("the names and who is out", |rows| {
        rows[5].split_whitespace().last() == Some("51")
            && rows[7].starts_with(" spare ")
            && rows[7].split_whitespace().nth(4) == Some("1")
    });
    assert!(rows[4].starts_with(" RELAYS  1 ") && rows[6].starts_with(" CLUSTERS  1 "), "{rows:#?}");
    let cells: Vec<&str> = rows[7].split_whitespace().collect();
    assert_eq!(cells[..5], ["spare", "failover", "1", "1", "1"], "{rows:#?}");
    top.press("c");
    top.wait_rows("the cluster in full", |rows| {
        rows[20].starts_with("spare  failover of relay relay, ")
            && rows[21] == "down: dead"
            && rows[22] == "failed over: dead"
    });
    top.press("q");
    let (status, rows) = top.wait_restored();
    assert!(status.success(), "{status}: {rows:#?}");
    let page = daemon.json("/api/v1/relay");
    assert_eq!((&page["relays"][0]["points"], &page["relays"][0]["unmatched"]), (&100.into(), &50.into()));
    daemon.stop();
}
