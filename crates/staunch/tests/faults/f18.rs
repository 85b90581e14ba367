//! F18: a node of a group of stores is killed, and then hangs, while another one is asked.
//!
//! Each of two nodes has series of its own, and some that both have, with other points. One is asked for all of them again and again. While
//! the other is away, each answer must be there, must have all that its own node has, and must name the one that is missing; when it is
//! back, answers must be whole again.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::finding::{Bench, End, Finding};
use crate::support::http::{Answer, get};
use crate::support::{Builder, Daemon};

/// Series of each node alone, and of both.
const SERIES: u64 = 50;

/// The longest wait for a node's answer.
const PEER_TIMEOUT: Duration = Duration::from_millis(500);

const PATIENCE: Duration = Duration::from_secs(60);

fn config(peer: Option<&Daemon>) -> String {
    let peers = peer.map(|peer| format!("\"http://{}\"", peer.http())).unwrap_or_default();
    format!(
        "[sources.app]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.store]\ntype = \"whisper\"\nfrom = [\"app\"]\n\
         schemas = [{{ pattern = \"\", retentions = \"10s:1d\" }}]\n\
         [graphite_api]\npeers = [{peers}]\npeer_timeout = \"{}ms\"\n",
        PEER_TIMEOUT.as_millis()
    )
}

/// Points of the node `who`: series of its own, and half of the points of those that both have.
fn fill(bench: &Bench, daemon: &Daemon, who: u64, first_s: u64) -> bool {
    let mut text = Vec::new();
    for series in 0..SERIES {
        for point in 0..10 {
            let time = first_s + point * 10;
            writeln!(text, "f18.n{who}.s{series} {point} {time}").expect("memory takes it");
            if point % 2 == who {
                writeln!(text, "f18.both.s{series} {point} {time}").expect("memory takes it");
            }
        }
    }
    let sent = TcpStream::connect(daemon.at("app", "tcp")).and_then(|mut to| to.write_all(&text));
    let all = SERIES * 15;
    let taken = || (Daemon::number(&daemon.output("store"), "copies") >= all).then_some(());
    sent.is_ok() && bench.wait("the points to be taken", PATIENCE, taken).is_some()
}

/// Points of an answer, and whether it names a missing node. None if there is none.
fn ask(daemon: &Daemon, first_s: u64) -> Option<(u64, bool)> {
    let path = format!("/render?format=json&target=f18.*.*&from={}&until={}", first_s - 1, first_s + 100);
    let Answer { status, head, body } = get(daemon.http(), &path)?;
    let answer: Value = serde_json::from_str(&body).ok()?;
    let points = answer.as_array()?.iter().flat_map(|one| one["datapoints"].as_array().into_iter().flatten());
    let known = points.filter(|point| point[0].as_f64().is_some()).count() as u64;
    (status == 200).then_some((known, head.contains("x-staunch-missing")))
}

pub(crate) fn run(bench: &Bench) -> End {
    let rounds = bench.pick(20, 200);
    let mut other = Builder::native(&config(None)).start();
    let mut asked = Builder::native(&config(Some(&other))).start();
    let first_s =
        SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() / 10 * 10 - 3_600;
    let mut finding = Finding::default();
    let filled = fill(bench, &asked, 0, first_s) && fill(bench, &other, 1, first_s);
    finding.promise(filled, || "the stores did not take their points".into());
    let (own, whole) = (SERIES * 15, SERIES * 30);
    let (mut answers, mut slowest) = (0, Duration::ZERO);
    let mut round = |finding: &mut Finding, asked: &Daemon, want: (u64, bool), what: &str| {
        for _ in 0..rounds {
            let began = Instant::now();
            let answer = ask(asked, first_s);
            slowest = slowest.max(began.elapsed());
            answers += u64::from(answer == Some(want));
            finding.promise(answer == Some(want), || format!("{what}: {answer:?} and not {want:?}"));
        }
    };
    round(&mut finding, &asked, (whole, false), "both are there");
    // It hangs: its kernel takes connections, and nobody answers.
    other.signal("STOP");
    round(&mut finding, &asked, (own, true), "one hangs");
    other.signal("CONT");
    let back = bench
        .wait("whole answers", PATIENCE, || (ask(&asked, first_s) == Some((whole, false))).then_some(()));
    finding.promise(back.is_some(), || "answers are not whole after a hang".into());
    round(&mut finding, &asked, (whole, false), "it goes on");
    other.signal("KILL");
    other.wait_exit();
    round(&mut finding, &asked, (own, true), "one is killed");
    finding.done = format!("{rounds} queries each with the other node there, hung, back and killed");
    (finding.sent, finding.arrived) = (4 * rounds, answers);
    finding.figure(format!(
        "slowest answer {} ms, with {} ms for a node's",
        slowest.as_millis(),
        PEER_TIMEOUT.as_millis()
    ));
    finding.promise_exact();
    asked.stop();
    End::Ran(finding)
}
