//! A13: questions for the way of a name through a relay with many expressions, by clients that hang up, and new names beside them.

use std::fmt::Write as _;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::asker;
use crate::attacker::{Manner, Target};
use crate::finding::End;
use crate::payloads;
use crate::scene::{Attack, Scene};
use crate::support::bench::Bench;

/// What a router remembers of its searches, that of the lines and that of the question.
const GROWS_MAX: u64 = 192 << 20;

/// Threads more than before: those that such work is done on, of which one is at work.
const THREADS_MORE_MAX: usize = 8;

/// Longest wait for the way of another name afterwards.
const ANSWER_MAX: Duration = Duration::from_secs(10);

pub(crate) fn run(bench: &Bench) -> End {
    let (rules, names) = (bench.pick(40, 300), bench.pick(200, 1_000));
    let mut toml = "[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.points]\ntype = \"graphite_file\"\nfrom = [\"relay\"]\nmax_files = 1\n\
         [transforms.relay]\ntype = \"relay\"\nfrom = [\"lines\"]\n\
         [transforms.relay.clusters]\nstorage = { type = \"forward\", to = [\"points\"] }\n"
        .to_owned();
    for rule in 0..rules {
        let most = rule % 40 + 1;
        let expression = format!(r"[a-z]{{1,{most}}}[0-9]{{2}}[a-y]\.[0-9]");
        writeln!(toml, "[[transforms.relay.rules]]\nmatch = ['{expression}']\nto = \"blackhole\"")
            .expect("memory takes it");
    }
    toml.push_str("[[transforms.relay.rules]]\nto = [\"storage\"]\n");
    let mut scene = Scene::start(bench, &toml, GROWS_MAX);
    let threads = threads(scene.daemon.pid());
    let path = format!("/api/v1/relay/explain?name={}", ["abcdefgh1"; 400].join("."));
    let get = payloads::get(&path);
    let goes = Attack::new(Target::Tcp(scene.http), Manner::HangUp, get.clone()).on(bench.pick(8, 40));
    let waits = Attack::new(Target::Tcp(scene.http), Manner::Ask, get).on(bench.pick(4, 20));
    let mut client = TcpStream::connect(scene.daemon.at("lines", "tcp")).expect("it listens");
    let mut begun = 0;
    for round in 0..2 {
        // New names, which meet all rules, wait for their searches while the next round begins.
        for name in 0..names {
            writeln!(client, "new{round}.name{name}.{} 1 1700000000", "a".repeat(60)).expect("it reads");
        }
        let held = scene.attack(vec![goes.clone(), waits.clone()], bench.pick(1.5, 5.0));
        begun += held.end().begun;
    }
    let after = self::threads(scene.daemon.pid());
    scene.finding.figure(format!("{begun} questions begun; {threads} threads before, {after} after"));
    scene.finding.promise(after <= threads + THREADS_MORE_MAX, || {
        format!("{after} threads work on questions that nobody waits for any more; {threads} before")
    });
    scene.daemon.wait_source("lines", "routed", 2 * names);
    let answer = asker::document(scene.http, "/api/v1/relay/explain?name=a.b", ANSWER_MAX);
    scene.finding.promise(answer.is_some_and(|way| way["copies"] == 1), || {
        format!("the way of another name is not explained within {ANSWER_MAX:?}")
    });
    End::Ran(scene.end(format!("{rules} expressions, names of 4,000 bytes")))
}

fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, |tasks| tasks.count())
}
