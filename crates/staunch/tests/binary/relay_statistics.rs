//! What a relay says of itself: under carbon-c-relay's names, where its statement sends it, and on over a reload.

use std::io::Write;
use std::net::TcpStream;

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
fn told(statistics: &FakeGraphite, name: &str) -> Vec<u64> {
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
        (told(&statistics, "metricsSent").last()? >= &2).then_some(())?;
        (told(&statistics, "disconnects").last() == Some(&1)).then_some(())
    });
    for (name, want) in [("metricsBlackholed", 1), ("metricsDiscarded", 1), ("connections", 1)] {
        assert_eq!(told(&statistics, name).last(), Some(&want), "{name}");
    }
    assert_eq!(data.bytes(), b"a.b 1 2\na.c 1 2\n", "no rule sees statistics");
    let page = daemon.json("/api/v1/relay");
    let row = &page["relays"][0];
    assert_eq!((Daemon::number(row, "blackholed"), Daemon::number(row, "unmatched")), (1, 0), "{page}");
    let reports = told(&statistics, "metricsReceived").len();
    daemon.reload(&text.replace("match * ", "rewrite ^b into c;\nmatch * "), "done");
    send(&daemon, "b.x 1 2\n");
    wait_for("a report after the reload", || {
        (told(&statistics, "metricsReceived").len() > reports + 1).then_some(())?;
        (told(&statistics, "connections").last() == Some(&2)).then_some(())
    });
    let received = told(&statistics, "metricsReceived");
    assert!(received.is_sorted(), "a reload begins nothing anew: {received:?}");
    assert!(String::from_utf8_lossy(&data.bytes()).ends_with("c.x 1 2\n"));
    daemon.assert_sums_hold();
    daemon.stop();
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
