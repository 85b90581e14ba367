//! What the HTTP server refuses, and whom it makes room for: requests for other names, without a token, with bodies that
//! nobody wants, and connections that never ask.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::support::{Builder, Daemon, FakeGraphite, udp, wait_for};

/// A daemon with more in `[http]`.
fn start(more: &str) -> (Daemon, FakeGraphite) {
    let graphite = FakeGraphite::new();
    let toml = crate::sources::config(&["udp://127.0.0.1:0"], &graphite);
    let toml = format!("{toml}\n[http]\nlisten = \"127.0.0.1:0\"\n{more}");
    (Builder::native(&toml).start(), graphite)
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket has time-outs");
    stream
}

/// The status of the answer to a head, of whose body nothing is sent.
fn status(at: SocketAddr, head: &str) -> u16 {
    let mut stream = connect(at);
    write!(stream, "{head}\r\n\r\n").expect("it reads");
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).expect("an answer, whatever the body");
    std::str::from_utf8(&begin[9..]).ok().and_then(|status| status.parse().ok()).expect("a status")
}

/// True when the other side has closed it.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket can be so");
    match stream.read(&mut [0; 512]) {
        Ok(len) => len == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// A count of HTTP's account.
fn counted(daemon: &Daemon, table: &str, reason: &str) -> u64 {
    daemon.json("/api/v1/accounts")["http"][table][reason].as_u64().unwrap_or(0)
}

#[test]
fn requests_are_answered_only_for_addresses_and_allowed_names() {
    let (mut daemon, _graphite) = start("allowed_hosts = [\"Staunch.example.org\"]");
    let at = daemon.http();
    let table = [
        ("127.0.0.1", 200),
        ("localhost:8680", 200),
        ("[::1]", 200),
        ("staunch.example.org:8680", 200),
        ("evil.example:8680", 421),
        ("127.0.0.1.evil.example", 421),
    ];
    for (host, want) in table {
        for path in ["/metrics", "/api/v1/accounts", "/api/v1/series", "/"] {
            let found = status(at, &format!("GET {path} HTTP/1.1\r\nHost: {host}"));
            assert_eq!(found, want, "{path} of {host}");
        }
        for path in ["/healthz", "/ready"] {
            assert_eq!(status(at, &format!("GET {path} HTTP/1.1\r\nHost: {host}")), 200, "{path} of {host}");
        }
    }
    assert_eq!(status(at, "GET /metrics HTTP/1.0"), 200, "no browser asks without a Host");
    assert_eq!(status(at, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example"), 421);
    assert_eq!(counted(&daemon, "requests_refused", "host"), 9);
    daemon.stop();
}

#[test]
fn bodies_are_refused_by_their_heads() {
    let (mut daemon, _graphite) = start("");
    let at = daemon.http();
    let here = format!("Host: {at}");
    let bytes = "Content-Type: application/octet-stream";
    let replay = "POST /api/v1/queues/carbon/replay HTTP/1.1";
    let table = [
        (format!("{replay}\r\nHost: evil.example\r\n{bytes}\r\nContent-Length: 30000000"), 421),
        (format!("{replay}\r\n{here}\r\nContent-Type: text/plain\r\nContent-Length: 30000000"), 403),
        (format!("{replay}\r\n{here}\r\n{bytes}\r\nOrigin: http://a.b\r\nContent-Length: 30000000"), 403),
        (format!("{replay}\r\n{here}\r\nContent-Type: application/json\r\nContent-Length: 30000000"), 415),
        (format!("{replay}\r\n{here}\r\n{bytes}\r\nContent-Length: 33554433"), 413),
        (format!("{}\r\n{here}\r\n{bytes}\r\nContent-Length: 9", replay.replace("carbon", "nobody")), 404),
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 30000000".to_owned(), 421),
    ];
    for (head, want) in table {
        assert_eq!(status(at, &head), want, "{head}");
    }
    let refused = ["host", "change", "token"].map(|why| counted(&daemon, "requests_refused", why));
    assert_eq!(refused, [2, 2, 0]);
    let logged = daemon
        .wait_logged_times("http: a request of 127.0.0.1 was refused: the Content-Type must be one of", 1);
    assert!(!logged.contains("of another origin"), "once a minute for each reason: {logged}");
    daemon.stop();
}

#[test]
fn heads_have_a_bound() {
    let (mut daemon, _graphite) = start("");
    let at = daemon.http();
    let with = |headers: usize| {
        let more: String = (0..headers).map(|at| format!("\r\nX-{at}: y")).collect();
        status(at, &format!("GET / HTTP/1.1\r\nHost: {at}{more}"))
    };
    assert_eq!((with(63), with(64)), (200, 431), "64 headers and one more");
    let long = |bytes: usize| {
        let mut stream = connect(at);
        let head = format!("GET / HTTP/1.1\r\nHost: {at}\r\nX: {}\r\n\r\n", "y".repeat(bytes));
        // It may close before it has read everything.
        let _closed = stream.write_all(head.as_bytes());
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).map(|()| begin[9..] == *b"200").unwrap_or(false)
    };
    assert!(long(100_000) && !long(300_000), "128 KiB in all");
    daemon.stop();
}

#[test]
fn connections_that_never_ask_make_room_for_those_that_do() {
    let (mut daemon, _graphite) = start("max_connections = 8\nmax_connections_per_peer = 4");
    let at = daemon.http();
    let mut idle: Vec<TcpStream> = (0..4).map(|_| connect(at)).collect();
    for stream in &mut idle {
        stream.write_all(b"GET /healthz HT").expect("it reads");
    }
    for _ in 0..8 {
        assert_eq!(daemon.get("/healthz").status, 200, "past the bound");
    }
    wait_for("the oldest to be closed", || idle.iter_mut().any(is_closed).then_some(()));
    let mut more: Vec<TcpStream> = (0..40).map(|_| connect(at)).collect();
    wait_for("all but four to be closed", || {
        let open = more.iter_mut().chain(&mut idle).filter_map(|stream| (!is_closed(stream)).then_some(()));
        (open.count() <= 4).then_some(())
    });
    assert_eq!(daemon.get("/healthz").status, 200);
    assert!(counted(&daemon, "ended", "replaced") >= 40, "all but four of 44");
    assert!(counted(&daemon, "ended", "orderly") >= 8, "those that had their answer");
    assert_eq!(counted(&daemon, "ended", "refused_per_peer"), 0);
    daemon.stop();
}

#[test]
fn connections_past_a_limit_are_counted_when_nobody_can_give_way() {
    let (mut daemon, _graphite) = start("max_connections = 2\nmax_connections_per_peer = 1");
    let at = daemon.http();
    let mut busy = connect(at);
    let kind = "Content-Type: application/octet-stream\r\nContent-Length: 9";
    write!(busy, "POST /api/v1/queues/carbon/replay HTTP/1.1\r\nHost: {at}\r\n{kind}\r\n\r\n")
        .expect("it reads");
    // Its body never comes. Until its head was read it gives way to those that come.
    std::thread::sleep(Duration::from_millis(300));
    let mut more: Vec<TcpStream> = (0..3).map(|_| connect(at)).collect();
    wait_for("all three to be closed", || more.iter_mut().all(is_closed).then_some(()));
    drop(busy);
    wait_for("the place to be free", || daemon.answers().then_some(()));
    wait_for("their count", || {
        let text = daemon.get("/metrics").body;
        let sample = "staunch_http_connections_ended_total{reason=\"refused_per_peer\"} ";
        // The look for a free place may have been refused as well.
        let refused = text.lines().find_map(|line| line.strip_prefix(sample)?.parse::<u64>().ok());
        refused.filter(|refused| *refused >= 3)
    });
    daemon.wait_logged("127.0.0.1 has 1 connections, each with a request");
    assert!(!daemon.stderr().contains("all connections"), "{}", daemon.stderr());
    daemon.stop();
}

#[test]
fn two_peers_that_keep_all_connections_busy_lock_out_nobody() {
    let (mut daemon, _graphite) = start("max_connections = 4\nmax_connections_per_peer = 2");
    let at = daemon.http();
    let kind = "Content-Type: application/octet-stream\r\nContent-Length: 9\r\nExpect: 100-continue";
    let mut busy: Vec<TcpStream> = [2, 2, 3, 3]
        .into_iter()
        .map(|last| {
            let mut stream = connect_from([127, 0, 0, last], at);
            write!(stream, "POST /api/v1/queues/carbon/replay HTTP/1.1\r\nHost: {at}\r\n{kind}\r\n\r\n")
                .expect("it reads");
            let mut goes_on = [0; 25];
            stream.read_exact(&mut goes_on).expect("its body is wanted, and never comes");
            assert!(goes_on.starts_with(b"HTTP/1.1 100"), "{}", goes_on.escape_ascii());
            stream
        })
        .collect();
    let mut third = connect(at);
    let mut ask = || {
        write!(third, "GET /healthz HTTP/1.1\r\nHost: {at}\r\n\r\n").expect("it reads");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nok\n") {
            let mut byte = [0];
            assert_eq!(third.read(&mut byte).expect("an answer"), 1, "{}", answer.escape_ascii());
            answer.push(byte[0]);
        }
    };
    ask();
    wait_for("the oldest to be closed", || is_closed(&mut busy[0]).then_some(()));
    // It has one now, and the other one two: no fewer than it would have then.
    wait_for("its next one to be closed", || is_closed(&mut connect_from([127, 0, 0, 2], at)).then_some(()));
    ask();
    assert_eq!(busy.iter_mut().filter_map(|stream| (!is_closed(stream)).then_some(())).count(), 3);
    drop(busy);
    wait_for("their count", || {
        let text = daemon.get("/metrics").body;
        let ended = |reason: &str| {
            let sample = format!("staunch_http_connections_ended_total{{reason=\"{reason}\"}} ");
            text.lines().find_map(|line| line.strip_prefix(&sample)?.parse::<u64>().ok())
        };
        (ended("preempted")? == 1 && ended("refused")? >= 1).then_some(())
    });
    daemon.wait_logged("127.0.0.3 has most, 2");
    daemon.stop();
}

fn connect_from(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a descriptor is free");
    socket.set_recv_buffer_size(4096).expect("a socket has a buffer");
    socket.bind(&SocketAddr::from((from, 0)).into()).expect("it is on loopback");
    socket.connect(&to.into()).expect("it listens");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket has time-outs");
    stream
}

/// The status of an answer of which no more is read, and the connection that it comes on.
fn unread(to: SocketAddr, from: [u8; 4], path: &str) -> (u16, TcpStream) {
    let mut stream = connect_from(from, to);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {to}\r\n\r\n").expect("it reads");
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).expect("an answer");
    let status = std::str::from_utf8(&begin[9..]).ok().and_then(|status| status.parse().ok());
    (status.expect("a status"), stream)
}

#[test]
fn a_page_of_long_names_ends_early_and_the_cursors_lead_on() {
    let (mut daemon, _graphite) = start("");
    let socket = udp(daemon.at("app", "udp"));
    let name = "n".repeat(4_000);
    let packets =
        (0..20).map(|at| (0..15).map(|n| format!("{name}.{}:1|c\n", at * 15 + n)).collect::<String>());
    crate::support::traffic::send_all(&socket, packets);
    daemon.wait_source("app", "aggregated", 300);
    for query in ["limit=1000", "limit=1000&name=n*"] {
        let (mut seen, mut next, mut pages) = (std::collections::BTreeSet::new(), Some(0), 0);
        while let Some(cursor) = next {
            let answer = daemon.get(&format!("/api/v1/series?{query}&cursor={cursor}"));
            assert!(answer.status == 200 && answer.body.len() <= 512 * 1024, "{}", answer.body.len());
            let page: serde_json::Value = serde_json::from_str(&answer.body).expect("it is JSON");
            for row in page["series"].as_array().expect("rows") {
                let row = row["name"].as_str().expect("a name").to_owned();
                assert!(!row.starts_with("nn") || seen.insert(row), "each once");
            }
            next = page["next"].as_u64();
            pages += 1;
        }
        assert_eq!((seen.len(), pages), (300, 3), "{query}");
    }
    daemon.stop();
}

#[test]
fn one_client_that_does_not_read_leaves_room_for_the_answers_of_others() {
    let (mut daemon, _graphite) = start("");
    let socket = udp(daemon.at("app", "udp"));
    let name = "n".repeat(4_000);
    let packets =
        (0..100).map(|at| (0..10).map(|n| format!("{name}.{}:1|c\n", at * 10 + n)).collect::<String>());
    crate::support::traffic::send_all(&socket, packets);
    daemon.wait_source("app", "aggregated", 1_000);
    // Half a MB each, of which the kernel takes some for a client that does not read.
    let path = "/api/v1/series?limit=1000";
    let held: Vec<TcpStream> = (0..6)
        .map(|_| {
            let (_status, mut stream) = unread(daemon.http(), [127, 0, 0, 2], path);
            for _more in 0..7 {
                write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", daemon.http()).expect("it is open");
            }
            stream
        })
        .collect();
    let others = [("/metrics", 3), (path, 3), ("/api/v1/accounts", 4)];
    for (path, last) in others {
        assert_eq!(unread(daemon.http(), [127, 0, 0, last], path).0, 200, "{path} of another client");
    }
    drop(held);
    wait_for("its room to be given back", || {
        (unread(daemon.http(), [127, 0, 0, 2], path).0 == 200).then_some(())
    });
    daemon.stop();
}

/// What `top --once` says on stderr; nothing when it has shown the figures.
fn top(api: &str, more: &[&str], token_file: &str) -> String {
    let mut top = Command::new(env!("CARGO_BIN_EXE_staunch"));
    let top = top.args(["top", "--once", "--api", api]).args(more).env("STAUNCH_TOKEN_FILE", token_file);
    let output = top.output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("it is text");
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    said
}

#[test]
fn with_a_token_everything_but_health_needs_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "0123456789abcdef\n").expect("it can be written");
    let (mut daemon, _graphite) = start(&format!("token_file = \"{}\"", file.display()));
    let at = daemon.http();
    let with = |method: &str, path: &str, token: &str| {
        let kind = "Content-Type: application/json\r\nContent-Length: 0";
        status(at, &format!("{method} {path} HTTP/1.1\r\nHost: {at}\r\nAuthorization: {token}\r\n{kind}"))
    };
    let drop = "/api/v1/queues/nobody/drop";
    for (token, get, post) in [
        ("Bearer 0123456789abcdef", 200, 404),
        ("Bearer 0123456789abcdeF", 401, 401),
        ("Basic 0123456789abcdef", 401, 401),
    ] {
        assert_eq!((with("GET", "/metrics", token), with("POST", drop, token)), (get, post), "{token}");
        assert_eq!((with("GET", "/healthz", token), with("GET", "/ready", token)), (200, 200));
    }
    // The log has the client, once for many requests, and not the token.
    let logged =
        daemon.wait_logged_times("http: a request of 127.0.0.1 was refused: it had a wrong token", 1);
    assert!(logged.contains("`http.token_file` requires one (1 refused since the last message)"), "{logged}");
    assert!(!logged.contains("0123456789abcde"), "{logged}");
    assert_eq!(status(at, "GET /metrics HTTP/1.1\r\nHost: \u{1b}evil.example"), 400);
    assert_eq!(status(at, "GET /metrics HTTP/1.1\r\nHost: evil.example"), 421);
    daemon.wait_logged(
        "http: a request of 127.0.0.1 was refused: its Host `evil.example` is not in `http.allowed_hosts`",
    );
    std::fs::write(&file, "another-token-of-ours").expect("it can be written");
    daemon.signal("HUP");
    wait_for("the new token to hold", || {
        (with("GET", "/metrics", "Bearer another-token-of-ours") == 200).then_some(())
    });
    assert_eq!(with("GET", "/metrics", "Bearer 0123456789abcdef"), 401, "the old one is none any more");
    let head = "GET /api/v1/accounts HTTP/1.0\r\nAuthorization: Bearer another-token-of-ours";
    let mut stream = connect(at);
    write!(stream, "{head}\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let body = text.split_once("\r\n\r\n").expect("a head").1;
    let accounts: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert!(accounts["http"]["requests_refused"]["token"].as_u64() >= Some(5), "{accounts}");
    let file = file.display().to_string();
    assert_eq!(top(&at.to_string(), &[], &file), "", "our own tools have it from a file");
    assert_eq!(top(&at.to_string(), &["--token-file", &file], ""), "");
    let without = top(&at.to_string(), &[], "");
    assert!(without.contains("needs the token") && without.contains("--token-file FILE"), "{without}");
    let other = folder.path().join("other");
    std::fs::write(&other, "fedcba9876543210").expect("it can be written");
    let wrong = top(&at.to_string(), &["--token-file", &other.display().to_string()], &file);
    assert!(wrong.contains(&format!("the token in {} is not the daemon's", other.display())), "{wrong}");
    daemon.stop();
}

#[test]
fn why_it_is_not_ready_is_for_those_who_may_read_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "0123456789abcdef\n").expect("it can be written");
    let to = crate::support::nobody();
    let toml = |token: &str| {
        format!(
            "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
             [outputs.secret]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://{to}\"]\nrequired = true\n\
             [http]\nlisten = \"127.0.0.1:0\"\n{token}"
        )
    };
    // Neither is ever ready.
    let plain = Builder::native(&toml("")).spawn();
    let guarded = Builder::native(&toml(&format!("token_file = \"{}\"", file.display()))).spawn();
    for daemon in [&plain, &guarded] {
        wait_for("the banner", || daemon.stderr().contains("/api/v1/").then_some(()));
    }
    let answer = |daemon: &Daemon, headers: &str| {
        let mut stream = connect(daemon.http());
        write!(stream, "GET /ready HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(!head.starts_with("HTTP/1.1 200"), "the endpoint is away: {text}");
        body.to_owned()
    };
    let ours = "Host: 127.0.0.1";
    let token = "Host: localhost\r\nAuthorization: Bearer 0123456789abcdef";
    for (daemon, headers, reasons) in [
        (&plain, ours, true),
        (&plain, "Host: evil.example", false),
        (&guarded, token, true),
        (&guarded, ours, false),
        (&guarded, &token.replace("localhost", "evil.example"), false),
    ] {
        let at = daemon.banner("statsd ").and_then(|at| at.strip_prefix("udp://")?.parse().ok());
        udp(at.expect("an address")).send(b"a:1|c").expect("it is there");
        let probe = || status(daemon.http(), "GET /ready HTTP/1.1\r\nHost: 127.0.0.1") == 503;
        wait_for("the output to be down", || probe().then_some(()));
        let body = answer(daemon, headers);
        assert_eq!(body.contains("output `secret` is required and down"), reasons, "{headers}: {body}");
        assert!(reasons || body == "not ready\n", "{headers}: {body}");
    }
}

#[test]
fn a_glob_of_many_steps_ends_its_page_early_and_the_cursors_lead_on() {
    let (mut daemon, _graphite) = start("");
    let socket = crate::support::udp(daemon.at("app", "udp"));
    let packets = (0..80).map(|at| {
        (0..10).map(|n| format!("{}.{:04}:1|c\n", "a".repeat(120), at * 10 + n)).collect::<String>()
    });
    crate::support::traffic::send_all(&socket, packets);
    daemon.wait_source("app", "aggregated", 800);
    let (mut pages, mut found, mut cursor) = (0, 0, String::new());
    // More of them than any name has: each name is gone through with all that is reached.
    let pattern = "*a".repeat(500);
    loop {
        let page = daemon.json(&format!("/api/v1/series?limit=1000&name={pattern}{cursor}"));
        pages += 1;
        found += page["series"].as_array().expect("rows").len();
        match page["next"].as_u64() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, 0);
    assert!(pages > 1, "one page would have had room for all rows");
    let all = daemon.json(&format!("/api/v1/series?limit=1000&name=a{}", "*".repeat(1000)));
    assert_eq!(all["series"].as_array().expect("rows").len(), 800, "stars in a row are one");
    daemon.stop();
}

#[test]
fn with_tls_nothing_is_answered_without_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let pem = folder.path().join("http.pem");
    let both = certified.signing_key.serialize_pem() + &certified.cert.pem();
    std::fs::write(&pem, both).expect("it can be written");
    let graphite = FakeGraphite::new();
    let toml = crate::sources::config(&["udp://127.0.0.1:0"], &graphite);
    let tls = format!("tls = {{ cert = \"{}\" }}", pem.display());
    let toml = format!("{toml}\n[http]\nlisten = \"127.0.0.1:0\"\n{tls}");
    let mut daemon = Builder::native(&toml).spawn();
    let at = wait_for("the banner", || {
        let place = daemon.stderr().contains("/api/v1/").then(|| daemon.banner("http "))??;
        place.strip_prefix("https://")?.strip_suffix('/')?.parse::<SocketAddr>().ok()
    });
    let provider = rustls::crypto::ring::default_provider();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certified.cert.der().clone()).expect("a certificate");
    let config = rustls::ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .expect("they are there")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "127.0.0.1".try_into().expect("a name");
    let mut tls = rustls::ClientConnection::new(std::sync::Arc::new(config), name).expect("it can begin");
    let mut stream = connect(at);
    let mut stream = rustls::Stream::new(&mut tls, &mut stream);
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {at}\r\n\r\n").expect("a handshake");
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).expect("an answer");
    assert_eq!(&begin[9..], b"200");
    let mut plain = connect(at);
    // It may be refused at its first bytes.
    let _refused = write!(plain, "GET /healthz HTTP/1.1\r\nHost: {at}\r\n\r\n");
    let mut answer = Vec::new();
    let _reset = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "an alert at most");
    let ca = pem.display().to_string();
    let secure = format!("https://{at}");
    assert_eq!(top(&secure, &["--ca", &ca], ""), "");
    assert_eq!(top(&at.to_string(), &["--ca", &ca], ""), "");
    let plain = top(&at.to_string(), &[], "");
    assert!(plain.contains("the server speaks TLS"), "{plain}");
    let other = folder.path().join("other.pem");
    let unknown = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    std::fs::write(&other, unknown.cert.pem()).expect("it can be written");
    let unknown = top(&secure, &["--ca", &other.display().to_string()], "");
    assert!(unknown.contains("its certificate is not signed by a known CA"), "{unknown}");
    daemon.stop();
}

#[test]
fn plain_connections_end_when_a_reload_turns_tls_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let pem = folder.path().join("http.pem");
    std::fs::write(&pem, certified.signing_key.serialize_pem() + &certified.cert.pem())
        .expect("it is written");
    let (mut daemon, graphite) = start("");
    let at = daemon.http();
    let mut kept = connect(at);
    let mut ask = |path: &str| {
        write!(kept, "GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n").expect("it reads");
        let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
        // The whole answer is in one piece, and the connection stays open.
        let len = kept.read(&mut buffer).expect("an answer");
        answer.extend(&buffer[..len]);
        String::from_utf8(answer).expect("it is text")
    };
    assert!(ask("/healthz").starts_with("HTTP/1.1 200"));
    let plain = crate::sources::config(&["udp://127.0.0.1:0"], &graphite);
    let tls = format!("tls = {{ cert = \"{}\" }}", pem.display());
    let with_tls = format!("{plain}\n[http]\nlisten = \"127.0.0.1:0\"\n{tls}");
    daemon.rewrite(&with_tls);
    daemon.signal("HUP");
    daemon.wait_logged("reloaded: the new configuration is in force");
    let answer = ask("/healthz");
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("connect again with TLS"), "{answer}");
    assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    let mut rest = Vec::new();
    assert_eq!(kept.read_to_end(&mut rest).ok(), Some(0), "it is closed");
    daemon.signal("TERM");
    assert!(daemon.wait_exit().success());
}
