//! A14: hostile queries to a store: targets of 100 KB and of 10,000 nested calls, globs with many stars over all names, expressions that
//! backtrack, windows of years, functions that make millions of points, clients that never read, and hundreds of queries at once.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::attacker::{Manner, Target};
use crate::finding::End;
use crate::scene::{Attack, Scene};
use crate::support::bench::Bench;
use crate::support::http::post;
use crate::support::{Daemon, wait_for};

/// Four queries of clients at once, each with its limit of ten million points, and their answers.
const GROWS_MAX: u64 = 1 << 30;

/// The longest time that one query may take beside nothing else.
const ALONE_MAX: Duration = Duration::from_secs(61);

/// Points of each series.
const POINTS: u64 = 20;

/// A form for `/render`, by what it is.
fn hostile() -> Vec<(&'static str, String)> {
    let target = |target: &str| {
        let encoded: String = form_urlencoded::byte_serialize(target.as_bytes()).collect();
        format!("format=json&target={encoded}")
    };
    let all = "a14.*.*";
    vec![
        ("long", target(&"a".repeat(100_000))),
        ("nested", target(&format!("{}a14.s1.x{}", "abs(".repeat(10_000), ")".repeat(10_000)))),
        ("many arguments", target(&format!("sumSeries({}a14.s1.x)", "a14.s1.x,".repeat(10_000)))),
        ("stars", target(&format!("a14.{}b.*", "*s".repeat(500)))),
        ("braces", target(&format!("a14.{}.x", "{s,s1,s2}".repeat(12)))),
        ("grep", target(&format!("grep({all},'(s+)+$y')"))),
        ("aliasSub", target(&format!("aliasSub({all},'^(.*)(.*)(.*)(.*)(.*)(.*)(.*)x$y','z')"))),
        ("exclude", target(&format!("exclude({all},'(.*.*.*.*.*.*.*.*.*)!')"))),
        ("years", format!("{}&from=-20years", target(all))),
        ("random walk", format!("{}&from=-60years", target("randomWalk('x',1)"))),
        (
            "constants",
            format!("{}&from=-30years", target("sumSeries(timeFunction('x',1),timeFunction('y',1))")),
        ),
        ("summarize", format!("{}&from=-10years", target(&format!("smartSummarize({all},'1s')")))),
        ("moving", format!("{}&from=-1d", target(&format!("movingMedian({all},'1d')")))),
        ("pairs", target(&format!("applyByNode({all},1,'sumSeries(a14.*.*)')"))),
    ]
}

pub(crate) fn run(bench: &Bench) -> End {
    let (series, seconds) = bench.pick((1_000_u64, 3.0), (10_000, 20.0));
    let toml = "[sources.app]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.store]\ntype = \"whisper\"\nfrom = [\"app\", \"innocent-stats\"]\nwrite_after = \"1s\"\n\
         schemas = [{ pattern = \"\", retentions = \"1s:1d,10s:30d\" }]\n";
    let mut scene = Scene::start(bench, toml, GROWS_MAX);
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let first_s = now_s - 600;
    let mut lines = String::new();
    for id in 0..series * POINTS {
        writeln!(lines, "a14.s{}.x {id} {}", id % series, first_s + id / series).expect("memory takes it");
    }
    let mut client = TcpStream::connect(scene.daemon.at("app", "tcp")).expect("it listens");
    client.write_all(lines.as_bytes()).expect("it reads");
    wait_for("the points to be taken", || {
        let row = scene.daemon.output("store");
        (Daemon::number(&row, "copies") >= series * POINTS).then_some(())
    });
    // Each alone: an answer, or a reason.
    let mut slowest = (Duration::ZERO, "");
    for (name, form) in hostile() {
        let began = Instant::now();
        let answer = post(scene.http, "/render", "application/x-www-form-urlencoded", &form);
        let took = began.elapsed();
        slowest = slowest.max((took, name));
        let status = answer.as_ref().map(|answer| answer.status);
        let is_right = matches!(status, Some(200 | 400 | 413 | 422));
        scene
            .finding
            .promise(is_right && took < ALONE_MAX, || format!("{name}: status {status:?} after {took:?}"));
    }
    scene.finding.figure(format!("slowest alone: {}, {} ms", slowest.1, slowest.0.as_millis()));
    scene.is_before();
    let http = Target::Tcp(scene.http);
    let request = |form: &str| {
        let head = "POST /render HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close";
        let kind = "application/x-www-form-urlencoded";
        format!("{head}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{form}", form.len())
    };
    let mut attacks: Vec<Attack> = hostile()
        .iter()
        .map(|(_, form)| {
            Attack::new(http.clone(), Manner::Ask, request(form)).on(bench.pick(1, 16)).by(bench.pick(1, 4))
        })
        .collect();
    let large = request("format=json&from=-1d&target=a14.*.x");
    attacks.push(Attack::new(http.clone(), Manner::Unread, large.clone()).on(bench.pick(4, 32)).by(4));
    attacks.push(Attack::new(http, Manner::HangUp, large).on(bench.pick(2, 16)).by(2));
    let held = scene.attack(attacks, seconds);
    scene.finding.figure(format!("{} queries begun", held.end().begun));
    // What came before is there, and what came meanwhile is accounted for.
    let path =
        format!("/render?format=json&target=countSeries(a14.*.x)&from={}&until={}", first_s - 1, first_s + 1);
    let answer = scene.daemon.get(&path);
    let answer: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let count = answer[0]["datapoints"][1][0].as_f64();
    scene.finding.promise(count == Some(series as f64), || format!("{count:?} of {series} series are found"));
    let sum = format!(
        "/render?format=json&target=sumSeries(a14.*.x)&from={}&until={}",
        first_s - 1,
        first_s + POINTS - 1
    );
    let answer: Value = serde_json::from_str(&scene.daemon.get(&sum).body).unwrap_or_default();
    let points = answer[0]["datapoints"].as_array().into_iter().flatten();
    let total: f64 = points.filter_map(|point| point[0].as_f64()).sum();
    let all = series * POINTS;
    let want = (all * (all - 1) / 2) as f64;
    scene.finding.promise(total == want, || format!("the sum of all points is {total}, and not {want}"));
    End::Ran(scene.end(format!("hostile queries over {series} series")))
}
