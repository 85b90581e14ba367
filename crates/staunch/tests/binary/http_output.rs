//! Outputs of type `http`: what arrives, what an answer means for the records, and what a server that fails, hangs or answers
//! errors does to them and to other outputs.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::support::{Builder, Daemon, wait_for};

/// What a server does with a request.
#[derive(Clone, Debug)]
enum Manner {
    /// Answers: status line without the version, more headers, body.
    Answer(&'static str, &'static str, &'static str),
    /// Answers nothing, and keeps the connection.
    Hang,
    /// Closes the connection without an answer.
    Close,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
struct Request {
    head: String,
    body: String,
}

/// A server that does what its script says, and then answers 200. Each connection has a thread.
struct Server {
    at: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    fn new(script: &[Manner]) -> Server {
        Server::with(script, None)
    }

    fn with(script: &[Manner], tls: Option<Arc<rustls::ServerConfig>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        let script = Arc::new(Mutex::new(script.iter().cloned().collect::<VecDeque<_>>()));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let server = Server { at, requests: Arc::clone(&requests) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, requests, tls) = (Arc::clone(&script), Arc::clone(&requests), tls.clone());
                std::thread::spawn(move || match tls {
                    None => serve(stream, &script, &requests),
                    Some(tls) => {
                        let session = rustls::ServerConnection::new(tls).expect("good settings");
                        serve(rustls::StreamOwned::new(session, stream), &script, &requests);
                    }
                });
            }
        });
        server
    }

    fn wait(&self, number: usize) -> Vec<Request> {
        wait_for("the requests", || {
            let requests = self.requests.lock().expect("no thread panics");
            (requests.len() >= number).then(|| requests.clone())
        })
    }
}

fn serve(mut stream: impl Read + Write, script: &Mutex<VecDeque<Manner>>, requests: &Mutex<Vec<Request>>) {
    while let Some(request) = request(&mut stream) {
        requests.lock().expect("no thread panics").push(request);
        let manner = script.lock().expect("no thread panics").pop_front();
        match manner.unwrap_or(Manner::Answer("200 OK", "", "")) {
            Manner::Answer(status, headers, body) => {
                let answer =
                    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
                if stream.write_all(answer.as_bytes()).and_then(|()| stream.flush()).is_err() {
                    return;
                }
            }
            Manner::Hang => std::thread::sleep(Duration::from_secs(60)),
            Manner::Close => return,
        }
    }
}

fn request(stream: &mut impl Read) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
    stream.read_exact(&mut body).ok()?;
    Some(Request { head, body: String::from_utf8(body).ok()? })
}

/// A config: DogStatsD events to an HTTP output with these options.
fn config(options: &str) -> String {
    format!(
        "[sources.in]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.web]\ntype = \"http\"\nfrom = [\"in\"]\nmin_retry_delay = \"1ms\"\nmax_retry_delay = \"50ms\"\n{options}\n"
    )
}

/// Sends an event for each title.
fn send(daemon: &Daemon, titles: &[&str]) {
    let mut stream = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
    for title in titles {
        let event = format!("_e{{{},4}}:{title}|text|d:1700000000|h:web1\n", title.len());
        stream.write_all(event.as_bytes()).expect("it reads");
    }
}

fn wait_delivered(daemon: &Daemon, delivered: u64) {
    daemon.wait_output("web", "delivered", delivered);
    daemon.assert_sums_hold();
}

#[test]
fn events_arrive_as_an_array_with_the_headers_of_the_output() {
    let server = Server::new(&[]);
    let builder = Builder::native(&config(&format!(
        "url = \"http://{}/in?a=b\"\nmax_batch_events = 3\nheaders = {{ Authorization = \"Bearer ${{file:secret}}\", X-Of = \"{{{{host}}}}\" }}",
        server.at
    )));
    std::fs::write(builder.folder().join("secret"), "s3cr3t\n").expect("a folder of our own");
    let mut daemon = builder.start();
    send(&daemon, &["a", "b", "c"]);
    let requests = server.wait(1);
    let object = |title: &str| {
        format!(
            "{{\"kind\":\"event\",\"service\":\"{title}\",\"time\":1700000000,\"host\":\"web1\",\"description\":\"text\",\
             \"priority\":\"normal\",\"alert\":\"info\"}}"
        )
    };
    assert_eq!(requests[0].body, format!("[{},{},{}]", object("a"), object("b"), object("c")));
    let head = &requests[0].head;
    assert!(head.starts_with("post /in?a=b http/1.1\r\n"), "{head}");
    for header in [
        "authorization: bearer s3cr3t",
        "x-of: web1",
        "content-type: application/json",
        &format!("host: {}", server.at),
    ] {
        assert!(head.lines().any(|line| line == header), "{header} in {head}");
    }
    wait_delivered(&daemon, 3);
    // Fewer than a request may have are sent when their time is over.
    send(&daemon, &["d"]);
    assert_eq!(server.wait(2)[1].body, format!("[{}]", object("d")));
    wait_delivered(&daemon, 4);
    daemon.stop();
}

#[test]
fn records_are_kept_while_a_server_has_trouble_and_rejected_when_it_says_so() {
    let server = Server::new(&[
        Manner::Answer("503 Service Unavailable", "", "down"),
        Manner::Answer("429 Too Many Requests", "Retry-After: 1\r\n", ""),
        Manner::Close,
        Manner::Answer("200 OK", "", ""),
        Manner::Answer("400 Bad Request", "", "unknown\nfield"),
        Manner::Answer("301 Moved", "Location: http://elsewhere/\r\n", ""),
    ]);
    let mut daemon = Builder::native(&config(&format!(
        "url = \"http://{}/\"\nencoding = \"template\"\nbody = \"{{{{service}}}}\"",
        server.at
    )))
    .start();
    send(&daemon, &["a"]);
    wait_delivered(&daemon, 1);
    // The server read the third request, on a connection that had answered before, and closed it.
    assert_eq!(daemon.output("web")["in_doubt"], 1);
    send(&daemon, &["b"]);
    daemon.wait_output("web", "rejected_by_peer", 1);
    send(&daemon, &["c", "d"]);
    wait_delivered(&daemon, 2);
    daemon.wait_output("web", "losses/rejected_by_peer/by_peer", 2);
    let bodies: Vec<String> = server.wait(7).into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, ["a", "a", "a", "a", "b", "c", "d"]);
    daemon.stop();
    let log = daemon.stderr();
    assert!(log.contains("it answers 503 Service Unavailable: `down`"), "{log}");
    assert!(
        log.contains("the endpoint rejected 1 record: it answers 400 Bad Request: `unknown\\nfield`"),
        "{log}"
    );
    assert_eq!(log.matches("the endpoint rejected").count(), 1, "once a minute: {log}");
}

#[test]
fn a_server_that_hangs_delays_nothing_else_and_gets_its_records_again() {
    let server = Server::new(&[Manner::Hang]);
    let options = format!(
        "url = \"http://{}/\"\ntimeout = \"300ms\"\nencoding = \"json_lines\"\nmax_batch_delay = \"0s\"\n\
         [outputs.file]\ntype = \"event_file\"\nfrom = [\"in\"]\npath = \"events\"",
        server.at
    );
    let mut daemon = Builder::native(&config(&options)).start();
    send(&daemon, &["a"]);
    server.wait(1);
    send(&daemon, &["b"]);
    daemon.wait_output("file", "delivered", 2);
    wait_delivered(&daemon, 2);
    daemon.wait_output("web", "in_doubt", 1);
    let lines: String = server.wait(2)[1..].iter().map(|request| &*request.body).collect();
    assert_eq!(lines.matches("\"service\":\"a\"").count(), 1, "{lines}");
    assert!(lines.ends_with("}\n"), "{lines}");
    daemon.wait_logged("is down (no answer in time)");
    daemon.stop();
}

#[test]
fn targets_of_events_divide_requests_and_a_queue_on_disk_survives_the_end() {
    let nobody = crate::support::nobody();
    let options = |at: SocketAddr| {
        config(&format!(
            "url = \"http://{at}/{{{{service}}}}\"\nqueue = {{ kind = \"disk\" }}\nencoding = \"json_lines\"\nmax_batch_delay = \"0s\""
        ))
    };
    let mut daemon = Builder::native(&options(nobody)).start();
    send(&daemon, &["a b", "a b", "c"]);
    daemon.wait_output("web", "queued", 3);
    daemon.stop();
    let server = Server::new(&[]);
    daemon.rewrite(&options(server.at));
    daemon.start_again();
    let requests = server.wait(2);
    assert!(requests[0].head.starts_with("post /a%20b http/1.1"), "{}", requests[0].head);
    assert_eq!(requests[0].body.lines().count(), 2);
    assert!(requests[1].head.starts_with("post /c http/1.1"), "{}", requests[1].head);
    wait_delivered(&daemon, 3);
    daemon.stop();
}

#[test]
fn influxdb_gets_lines_of_events_with_metrics_and_others_are_filtered() {
    let server = Server::new(&[]);
    let text = format!(
        "[sources.in]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.web]\ntype = \"http\"\nfrom = [\"in\"]\nurl = \"http://{}/write?precision=s\"\nencoding = \"influxdb\"\n\
         precision = \"s\"\nmax_batch_events = 2\n",
        server.at
    );
    let mut daemon = Builder::native(&text).start();
    let mut client = crate::riemann::connect(daemon.at("in", "tcp"));
    let mut events = model::EventsBuilder::default();
    for (service, metric) in [("cpu load", Some(2)), ("none", None), ("disk", Some(3))] {
        let mut event = events.event();
        event.plain_text(model::TextField::Service, service);
        event.plain_text(model::TextField::Host, "web1");
        if let Some(metric) = metric {
            event.metric(model::NumberRef::I64(metric));
        }
        event.time(model::EventTime::Seconds(1_700_000_000));
        event.finish();
    }
    let mut message = Vec::new();
    wire::riemann::request(None, events.view().iter(), &mut message);
    client.write_all(&crate::riemann::framed(&message)).expect("it reads");
    let body = "cpu\\ load,host=web1 value=2i 1700000000\ndisk,host=web1 value=3i 1700000000\n";
    assert_eq!(server.wait(1)[0].body, body);
    wait_delivered(&daemon, 2);
    daemon.wait_output("web", "losses/filtered/unwanted", 1);
    daemon.stop();
}

#[test]
fn the_certificate_of_an_https_server_is_verified() {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a good name");
    let cert = params.self_signed(&key).expect("it signs itself");
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("it supports them")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], private)
        .expect("they fit");
    let server = Server::with(&[], Some(Arc::new(tls)));
    let options =
        format!("url = \"https://{}/\"\nmax_batch_delay = \"0s\"\ntls = {{ ca = \"ca.pem\" }}", server.at);
    let builder = Builder::native(&config(&options));
    std::fs::write(builder.folder().join("ca.pem"), cert.pem()).expect("a folder of our own");
    let mut daemon = builder.start();
    send(&daemon, &["a"]);
    assert!(server.wait(1)[0].body.contains("\"service\":\"a\""));
    wait_delivered(&daemon, 1);
    // Another certificate: nothing is sent.
    let other =
        CertificateParams::new(Vec::new()).and_then(|params| params.self_signed(&KeyPair::generate()?));
    let path = daemon.folder.path().join("ca.pem");
    daemon.stop();
    std::fs::write(path, other.expect("it signs itself").pem()).expect("a folder of our own");
    daemon.start_again();
    send(&daemon, &["b"]);
    daemon.wait_output("web", "queued", 1);
    wait_for("the failure", || {
        (daemon.output("web")["last_error"].as_str()?.starts_with("tls_failed")).then_some(())
    });
    daemon.signal("KILL");
    daemon.wait_exit();
    assert_eq!(server.wait(1).len(), 1);
}
