//! A9: what a web page can make a browser on this machine send: simple POSTs to any port, and, with a name of its own
//! that leads to 127.0.0.1, requests whose answers it reads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::asker;
use crate::finding::End;
use crate::payloads;
use crate::scene::Scene;
use crate::support::Daemon;
use crate::support::bench::Bench;

const GROWS_MAX: u64 = 32 << 20;

const PATIENCE: Duration = Duration::from_secs(2);

/// Sends a request as a browser does, and gives what comes back.
fn browse(at: SocketAddr, body: &str) -> String {
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
    let request = payloads::post("/", &at.to_string(), "text/plain", body.as_bytes());
    // A reset in the middle of it is an answer, too.
    let _sent = stream.write_all(&request);
    let _half = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _until_it_closes = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// A command of an operator, and its answer up to its end.
pub(crate) fn command(at: SocketAddr, command: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(format!("{command}\n").as_bytes()).ok()?;
    let mut answer = [0; 4096];
    let len = stream.read(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer[..len]).into_owned())
}

pub(crate) fn run(bench: &Bench) -> End {
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.points]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [transforms.counts]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n\
         [outputs.counted]\ntype = \"graphite_file\"\nfrom = [\"counts\", \"points\"]\nmax_files = 1\n\
         [management]\nlisten = \"127.0.0.1:0\"\n";
    let mut scene = Scene::start(bench, toml, GROWS_MAX);
    let app = scene.daemon.at("app", "tcp");
    TcpStream::connect(app).and_then(|mut stream| stream.write_all(b"mine:1|c\n")).expect("it reads");
    scene.daemon.wait_source("app", "aggregated", 1);
    let management = scene.daemon.management();
    // The page.
    browse(management, "delcounters mine\nhealth down\n");
    browse(app, "forged:1|c\nforged:1|c\n");
    browse(scene.daemon.at("points", "tcp"), "forged 1 1700000000\nforged 1 1700000001\n");
    scene.attack(Vec::new(), bench.pick(1.0, 2.0)).end();
    let health = command(management, "health").unwrap_or_default();
    let counters = command(management, "counters").unwrap_or_default();
    scene.finding.promise(health.contains("up"), || format!("a web page set the health: {health:?}"));
    scene.finding.promise(counters.contains("mine"), || "a web page deleted a series".into());
    scene.finding.promise(!counters.contains("forged"), || "a web page counted samples".into());
    let routed = scene.source("points").map_or(0, |row| Daemon::number(&row, "routed"));
    scene.finding.promise(routed == 0, || format!("a web page sent {routed} points"));
    // DNS rebinding: the name of the page leads to us.
    let http = scene.http;
    let mut as_host = |host: &str, may: bool| {
        let request = format!("GET /api/v1/series HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let status = asker::request(http, &request, PATIENCE).map(|(status, _)| status);
        scene.finding.promise((status == Some(200)) == may, || {
            format!("`Host: {host}` is answered with {status:?}, which a page of that name reads")
        });
    };
    as_host("evil.example", false);
    as_host(&format!("evil.example:{}", http.port()), false);
    as_host(&format!("localhost:{}", http.port()), true);
    as_host(&http.to_string(), true);
    as_host("[::1]", true);
    End::Ran(scene.end("POSTs and rebinding by a page"))
}
