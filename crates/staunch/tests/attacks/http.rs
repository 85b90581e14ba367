//! A6: HTTP: large bodies of requests that may not be made, requests that are never finished, answers that are read
//! byte by byte.

use std::io::Write;
use std::net::TcpStream;

use crate::attacker::{LASTING, Manner, Target};
use crate::finding::End;
use crate::payloads;
use crate::scene::{Attack, Scene};
use crate::support::bench::Bench;

const GROWS_MAX: u64 = 96 << 20;

pub(crate) fn run(bench: &Bench) -> End {
    let (posts, body, half_open, series) =
        bench.pick((40, 4 << 20, 400, 2_000), (40, 31 << 20, 8_000, 100_000));
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [transforms.counts]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n\
         [outputs.counted]\ntype = \"graphite_file\"\nfrom = [\"counts\"]\nmax_files = 1\n";
    let mut scene = Scene::start(bench, toml, GROWS_MAX);
    let http = Target::Tcp(scene.http);
    let mut client = TcpStream::connect(scene.daemon.at("app", "tcp")).expect("it listens");
    let mut lines = Vec::new();
    for name in 0..series {
        writeln!(lines, "some.service.host.requests.{name}:1|c").expect("memory takes it");
    }
    client.write_all(&lines).expect("it reads");
    scene.daemon.wait_source("app", "aggregated", series);
    scene.is_before();
    // Bodies without their last byte: what is held meanwhile shows.
    let mut request =
        payloads::post("/api/v1/queues/counted/replay", "evil.example", "text/plain", &vec![b'x'; body]);
    request.pop();
    let posting = Attack::new(http.clone(), Manner::Hold(1), request).on(posts);
    let counted = scene.attack(vec![posting], bench.pick(3.0, 15.0)).end();
    scene.finding.figure(format!("{} MB of bodies sent", counted.bytes_sent / 1_000_000));
    // Slow readers of answers as large as there are.
    let sip = Attack::new(http.clone(), Manner::Sip, payloads::get("/api/v1/series?limit=1000"))
        .on(bench.pick(50, 500))
        .by(4);
    scene.attack(vec![sip], bench.pick(1.5, 10.0)).end();
    // Requests that are never finished.
    let begun = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    let half = Attack::new(http, Manner::Hold(1), begun).on(half_open);
    let counted = scene.attack(vec![half], bench.pick(2.0, LASTING.as_secs_f64() + 10.0)).end();
    scene.finding.figure(format!(
        "{} of {} half-open requests ended by the daemon",
        counted.closed, counted.connected
    ));
    if bench.full {
        scene.finding.promise(counted.lasting == 0 && counted.closed > 0, || {
            format!("{} requests were still half open after {LASTING:?}", counted.lasting)
        });
    }
    End::Ran(scene.end(format!("{posts} POSTs, {half_open} half-open requests")))
}
