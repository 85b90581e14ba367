//! A5: a search for names with a thousand stars, over many series.

use std::io::Write;
use std::net::TcpStream;

use crate::attacker::{Manner, Target};
use crate::finding::End;
use crate::payloads;
use crate::scene::{Attack, Scene};
use crate::support::Daemon;
use crate::support::bench::Bench;

const GROWS_MAX: u64 = 64 << 20;

pub(crate) fn run(bench: &Bench) -> End {
    let (series, stars) = bench.pick((5_000, 500), (100_000, 500));
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [transforms.counts]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n\
         [outputs.counted]\ntype = \"graphite_file\"\nfrom = [\"counts\"]\nmax_files = 1\n";
    let mut scene = Scene::start(bench, toml, GROWS_MAX);
    let mut client = TcpStream::connect(scene.daemon.at("app", "tcp")).expect("it listens");
    let mut lines = Vec::new();
    for name in 0..series {
        writeln!(lines, "{}.{name}:1|c", "a".repeat(60)).expect("memory takes it");
    }
    client.write_all(&lines).expect("it reads");
    scene.daemon.wait_source("app", "aggregated", series);
    scene.is_before();
    // `*a*a*a…b`: an `a` for each star to try, and an end that no name has. 1,024 bytes are taken.
    let glob = format!("{}b", "*a".repeat(stars));
    let ask = Attack::new(
        Target::Tcp(scene.http),
        Manner::Ask,
        payloads::get(&format!("/api/v1/series?name={glob}")),
    );
    let held = scene.attack(vec![ask], bench.pick(3.0, 10.0));
    let asked = held.end();
    scene.finding.figure(format!("{} questions begun", asked.begun));
    let row = scene.source("app");
    scene.finding.promise(row.as_ref().is_some_and(|row| Daemon::number(row, "received") == series), || {
        "the account does not have exactly the series that were sent".into()
    });
    End::Ran(scene.end(format!("glob of {stars} stars, {series} series")))
}
