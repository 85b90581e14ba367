//! What a relay says of itself: under carbon-c-relay's names, where its statement sends it, and on over a reload.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::relay_log::free_port;
use crate::support::{Builder, Daemon, FakeGraphite, wait_for};

/// Rules of a relay whose statistics go to a place of their own.
fn conf(data: &FakeGraphite, statistics: &FakeGraphite) -> String {
    let place = |endpoint: &FakeGraphite| endpoint.to().trim_start_matches("tcp://").to_owned();
    format!(
        "listen type linemode 127.0.0.1:{} proto tcp;\n\
         cluster data forward {};\ncluster own forward {};\n\
         statistics submit every 1 seconds prefix with x.\\.1 send to own stop;\n\
         match ^gone send to blackhole;\nmatch * send to data stop;\n",
        free_port(),
        place(data),
        place(statistics)
    )
}

/// Values of a figure, in order of arrival.
fn reported(statistics: &FakeGraphite, name: &str) -> Vec<u64> {
    let text = String::from_utf8_lossy(&statistics.bytes()).into_owned();
    let prefix = format!("x.web1_example.{name} ");
    let of_name = text.lines().filter_map(|line| line.strip_prefix(&prefix)?.split(' ').next());
    of_name.map(|value| value.parse().expect("an integer")).collect()
}

fn send(daemon: &Daemon, lines: &str) {
    let mut client = TcpStream::connect(daemon.at("lines", "tcp")).expect("it listens");
    client.write_all(lines.as_bytes()).expect("it reads");
}

#[test]
fn statistics_go_where_their_statement_says_and_on_over_a_reload() {
    let (data, statistics) = (FakeGraphite::new(), FakeGraphite::new());
    let text = conf(&data, &statistics);
    let mut daemon = Builder::relay(&text).args(&["-H", "web1.example"]).start();
    send(&daemon, "a.b 1 2\na.c 1 2\ngone.x 1 2\nbad\n");
    wait_for("the lines in a report", || {
        (reported(&statistics, "metricsSent").last()? >= &2).then_some(())?;
        (reported(&statistics, "disconnects").last() == Some(&1)).then_some(())
    });
    for (name, want) in [("metricsBlackholed", 1), ("metricsDiscarded", 1), ("connections", 1)] {
        assert_eq!(reported(&statistics, name).last(), Some(&want), "{name}");
    }
    assert_eq!(data.bytes(), b"a.b 1 2\na.c 1 2\n", "no rule sees statistics");
    let page = daemon.json("/api/v1/relay");
    let row = &page["relays"][0];
    assert_eq!((Daemon::number(row, "blackholed"), Daemon::number(row, "unmatched")), (1, 0), "{page}");
    let reports = reported(&statistics, "metricsReceived").len();
    let known = |daemon: &Daemon| {
        let row = relay_row(daemon);
        Daemon::number(&row, "names_found") + Daemon::number(&row, "names_decided")
    };
    let before = known(&daemon);
    daemon.reload(&text.replace("match * ", "rewrite ^b into c;\nmatch * "), "done");
    assert!(before > 0 && known(&daemon) >= before, "what is remembered is forgotten, not what was counted");
    send(&daemon, "b.x 1 2\n");
    wait_for("a report after the reload", || {
        (reported(&statistics, "metricsReceived").len() > reports + 1).then_some(())?;
        (reported(&statistics, "connections").last() == Some(&2)).then_some(())
    });
    let received = reported(&statistics, "metricsReceived");
    assert!(received.is_sorted(), "a reload begins nothing anew: {received:?}");
    assert!(String::from_utf8_lossy(&data.bytes()).ends_with("c.x 1 2\n"));
    daemon.assert_sums_hold();
    daemon.stop();
}

/// The one row of `/api/v1/relay`.
fn relay_row(daemon: &Daemon) -> serde_json::Value {
    daemon.json("/api/v1/relay")["relays"][0].clone()
}

/// Waits until nothing of another process is left but its successor.
fn replace(old: &mut Daemon) -> Daemon {
    let mut new = old.successor();
    new.wait_ready();
    assert!(old.wait_exit().success(), "{}", old.stderr());
    new
}

#[test]
fn counters_go_on_over_a_hot_restart_and_are_reported_once() {
    for reset in [false, true] {
        let (data, statistics) = (FakeGraphite::new(), FakeGraphite::new());
        let mut text = conf(&data, &statistics);
        if reset {
            text = text
                .replace("submit every 1 seconds", "submit every 1 seconds reset counters after interval");
        }
        let mut daemon = Builder::relay(&text).args(&["-H", "web1.example"]).start();
        let mut points = 0;
        for restart in 0..3 {
            send(&daemon, "a.b 1 2\na.c 1 2\ngone.x 1 2\nbad\n");
            points += 3;
            wait_for("the lines to be counted", || {
                (Daemon::number(&relay_row(&daemon), "blackholed") == restart + 1).then_some(())
            });
            // Counts that were not reported yet are in the next report.
            daemon = replace(&mut daemon);
            let row = relay_row(&daemon);
            let counted = |figure: &str| Daemon::number(&row, figure);
            assert_eq!(counted("blackholed"), restart + 1, "{row}");
            assert!(
                counted("points") >= points && counted("names_found") + counted("names_decided") >= points,
                "{row}"
            );
        }
        let sum_or_last = |name: &str| -> u64 {
            let reported = reported(&statistics, name);
            if reset { reported.iter().sum() } else { reported.last().copied().unwrap_or(0) }
        };
        wait_for("everything to be reported", || (sum_or_last("metricsDiscarded") == 3).then_some(()));
        let reports = reported(&statistics, "metricsBlackholed").len();
        wait_for("one more report", || {
            (reported(&statistics, "metricsBlackholed").len() > reports).then_some(())
        });
        for (name, want) in [("metricsBlackholed", 3), ("metricsDiscarded", 3)] {
            assert_eq!(sum_or_last(name), want, "reset: {reset}, {name}: {:?}", reported(&statistics, name));
        }
        if !reset {
            for name in [
                "metricsReceived",
                "metricsSent",
                "connections",
                "dispatch_wallTime_us",
                "dispatch_sleepTime_us",
            ] {
                let reported = reported(&statistics, name);
                assert!(reported.is_sorted(), "{name}: {reported:?}");
            }
        }
        daemon.assert_sums_hold();
        daemon.stop();
    }
}

#[test]
fn windows_of_aggregation_rules_go_on_over_hot_restarts_and_are_reported_once() {
    let data = FakeGraphite::new();
    let text = format!(
        "listen type linemode 127.0.0.1:{} proto tcp;\ncluster data forward {};\n\
         aggregate ^r\\.([a-z]+)$ every 1 seconds expire after 2 seconds \
         compute count write to n.\\1 compute sum write to s.\\1 send to data stop;\n",
        free_port(),
        data.at()
    );
    let mut daemon = Builder::relay(&text).args(&["-s"]).start();
    let mut client = TcpStream::connect(daemon.at("lines", "tcp")).expect("it listens");
    let ended = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&ended);
    let sender = std::thread::spawn(move || {
        let mut sent = 0;
        while !until.load(SeqCst) {
            let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
            client.write_all(format!("r.a 2 {now_s}\nr.b 3 {now_s}\n").as_bytes()).expect("somebody reads");
            sent += 2;
            std::thread::sleep(Duration::from_millis(1));
        }
        sent
    });
    let fed = |daemon: &Daemon, how: &str| Daemon::number(&relay_row(daemon), how);
    for _ in 0..3 {
        let before = fed(&daemon, "rolled_up");
        wait_for("more lines", || (fed(&daemon, "rolled_up") > before + 100).then_some(()));
        daemon = replace(&mut daemon);
        assert!(fed(&daemon, "aggregation_rule_series") > 0, "windows are open all the time");
    }
    ended.store(true, SeqCst);
    let sent: u64 = sender.join().expect("the sender does not panic");
    wait_for("all windows to be emitted", || (fed(&daemon, "aggregation_rule_series") == 0).then_some(()));
    assert_eq!(fed(&daemon, "rolled_up"), sent, "each of them was read");
    // A machine that stands still may make a point late; it is counted so.
    let counted = (fed(&daemon, "fed/counted") + fed(&daemon, "fed/counted_late")) / 2;
    daemon.assert_sums_hold();
    daemon.stop();
    let points = data.points();
    let windows: BTreeSet<(String, u64)> =
        points.iter().map(|point| (point.name.clone(), point.time_s)).collect();
    assert_eq!(windows.len(), points.len(), "a window is emitted once: {points:?}");
    let (a, b) = (data.total("n.a"), data.total("n.b"));
    assert_eq!(a + b, counted as f64, "{points:?}");
    assert_eq!((data.total("s.a"), data.total("s.b")), (2.0 * a, 3.0 * b));
}

#[test]
fn reports_can_be_lines_for_people_or_of_the_log() {
    let (data, statistics) = (FakeGraphite::new(), FakeGraphite::new());
    let text = || conf(&data, &statistics);
    let mut log = Builder::relay(&text()).args(&["-d", "-H", "web1.example"]).start();
    let mut screen = Builder::relay(&text()).args(&["-S"]).start();
    wait_for("a report in the log", || {
        log.stdout().contains("] x.web1_example.dispatcher1.metricsReceived 0 ").then_some(())
    });
    wait_for("a line on stdout", || {
        let text = screen.stdout();
        let (_, behind) = text.split_once("worker\n")?;
        (behind.lines().nth(1)?.split_whitespace().count() == 9).then_some(())
    });
    log.stop();
    screen.stop();
    assert!(statistics.bytes().is_empty(), "no points");
}
