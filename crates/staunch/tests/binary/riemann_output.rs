//! Outputs of type `riemann`, and `forward` of Riemann configs: what another Riemann gets, and what its replies mean for the events.

use std::collections::{BTreeSet, VecDeque};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use model::{EventTime, EventsBuilder};
use wire::riemann::{self, Limits};

use crate::encrypted::certificates;
use crate::riemann::{connect, framed, reply};
use crate::riemann_config::{config, message};
use crate::support::{Builder, Daemon, nobody, wait_for};

/// What the server does with a message.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Replies `ok`.
    Accept,
    /// Replies with an error, whatever is in it.
    Refuse,
    /// Replies with an error if the message has the service `bad`.
    RefuseBad,
    /// Closes the connection without a reply.
    Close,
    /// Replies what is no message.
    Babble,
}

/// A server that does what its script says, and the last of it for ever. It remembers the services of each message.
struct Server {
    at: SocketAddr,
    messages: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Server {
    fn new(script: &[Manner]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        let messages = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&messages);
        let mut script: VecDeque<Manner> = script.iter().copied().collect();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                while let Some(services) = read(&mut stream) {
                    let manner = if script.len() > 1 { script.pop_front() } else { script.front().copied() };
                    let is_bad = services.iter().any(|service| service == "bad");
                    seen.lock().expect("no thread panics").push(services);
                    let mut answer = Vec::new();
                    match manner.unwrap_or(Manner::Accept) {
                        Manner::Refuse => riemann::error_reply("not now", &mut answer),
                        Manner::RefuseBad if is_bad => riemann::error_reply("it threw", &mut answer),
                        Manner::Accept | Manner::RefuseBad => answer.extend_from_slice(riemann::OK_REPLY),
                        Manner::Close => break,
                        Manner::Babble => answer.extend_from_slice(b"\x32\x05x"),
                    }
                    if stream.write_all(&framed(&answer)).is_err() {
                        break;
                    }
                }
            }
        });
        Server { at, messages }
    }

    fn messages(&self) -> Vec<Vec<String>> {
        self.messages.lock().expect("no thread panics").clone()
    }
}

/// The services of the next message; none at the end of the connection.
fn read(stream: &mut TcpStream) -> Option<Vec<String>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut bytes).ok()?;
    let mut events = EventsBuilder::default();
    riemann::decode(&bytes, EventTime::Seconds(0), Limits::default(), &mut events).expect("a message");
    Some(events.view().iter().map(|event| event.service().unwrap_or_default().to_owned()).collect())
}

/// A config of a source and an output with these options.
fn native(to: &str, options: &str) -> String {
    format!(
        "[sources.in]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.far]\ntype = \"riemann\"\nfrom = [\"in\"]\nto = [\"{to}\"]\n\
         min_retry_delay = \"1ms\"\nmax_retry_delay = \"50ms\"\n{options}\n"
    )
}

/// Sends events of these services in one message, and waits for the reply.
fn send(to: SocketAddr, services: &[&str]) {
    let mut client = connect(to);
    // Messages one after the other are one message of all their events.
    let all: Vec<u8> =
        services.iter().flat_map(|service| message(service, 1, 60.0, None)[4..].to_vec()).collect();
    client.write_all(&framed(&all)).expect("it reads");
    assert_eq!(reply(&mut client), riemann::OK_REPLY);
}

#[test]
fn events_are_sent_again_until_their_message_is_acknowledged() {
    let server = Server::new(&[Manner::Close, Manner::Babble, Manner::Accept]);
    let mut daemon = Builder::native(&native(&format!("tcp://{}", server.at), "")).start();
    send(daemon.at("in", "tcp"), &["a", "b"]);
    daemon.wait_output("far", "delivered", 2);
    send(daemon.at("in", "tcp"), &["c"]);
    daemon.wait_output("far", "delivered", 3);
    daemon.assert_sums_hold();
    let far = daemon.output("far");
    assert!(Daemon::number(&far, "in_doubt") >= 4, "{far}");
    let ab = ["a".to_owned(), "b".to_owned()].to_vec();
    assert_eq!(server.messages(), [ab.clone(), ab.clone(), ab, vec!["c".to_owned()]]);
    daemon.stop();
}

#[test]
fn an_event_that_is_refused_is_rejected_and_those_around_it_are_not() {
    let server = Server::new(&[Manner::RefuseBad]);
    let mut daemon = Builder::native(&native(&format!("tcp://{}", server.at), "")).start();
    send(daemon.at("in", "tcp"), &["a", "bad", "b"]);
    daemon.wait_output("far", "delivered", 2);
    daemon.wait_output("far", "losses/rejected_by_peer/by_peer", 1);
    daemon.assert_sums_hold();
    let each: Vec<String> = server.messages().iter().map(|services| services.join(" ")).collect();
    assert_eq!(each, ["a bad b", "a", "bad", "bad", "bad", "b"]);
    daemon.stop();
    let log = daemon.stderr();
    assert!(log.contains("the endpoint rejected 1 record") && log.contains("it threw"), "{log}");
}

#[test]
fn an_endpoint_that_refuses_for_a_while_gets_the_event_later() {
    let server = Server::new(&[Manner::Refuse, Manner::Refuse, Manner::Accept]);
    let mut daemon = Builder::native(&native(&format!("tcp://{}", server.at), "")).start();
    send(daemon.at("in", "tcp"), &["a"]);
    daemon.wait_output("far", "delivered", 1);
    assert_eq!(server.messages().len(), 3);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn messages_have_no_more_events_than_the_option_allows() {
    let server = Server::new(&[Manner::Accept]);
    let options = "max_batch_events = 2\nmax_batch_delay = \"100ms\"";
    let mut daemon = Builder::native(&native(&format!("tcp://{}", server.at), options)).start();
    send(daemon.at("in", "tcp"), &["a", "b", "c"]);
    daemon.wait_output("far", "delivered", 3);
    let sizes: Vec<usize> = server.messages().iter().map(Vec::len).collect();
    assert_eq!(sizes, [2, 1]);
    daemon.stop();
}

const FAR: &str = "[sources.in]\ntype = \"riemann\"\nlisten = [\"LISTEN\"]\n\
     [outputs.events]\ntype = \"event_file\"\nfrom = [\"in\"]\npath = \"events\"\n";

/// The services in the file of the receiver.
fn written(far: &Daemon) -> BTreeSet<String> {
    let text = std::fs::read_to_string(far.folder.path().join("events")).unwrap_or_default();
    let services = text.lines().filter_map(|line| line.split("\"service\":\"").nth(1)?.split('"').next());
    services.map(str::to_owned).collect()
}

#[test]
fn every_acknowledged_event_arrives_although_the_receiver_is_killed() {
    let mut far = Builder::native(&FAR.replace("LISTEN", "tcp://127.0.0.1:0")).start();
    let port = far.at("in", "tcp").port();
    let streams = format!(
        "(def far (riemann.client/tcp-client :host \"127.0.0.1\" :port {port}))
         (streams (where (not (service \"dropped\")) (batch 10 1/10 (async-queue! :far {{:queue-size 1000}} (forward far)))))"
    );
    let mut near = Builder::riemann(&config(&streams)).start();
    let output = format!("streams/127.0.0.1:{port}");
    let name = |number: usize| format!("s{number}");
    let send_all = |near: &Daemon, numbers: std::ops::Range<usize>| {
        let mut client = connect(near.at("riemann", "tcp"));
        for number in numbers {
            client.write_all(&message(&name(number), 1, 60.0, None)).expect("it reads");
            assert_eq!(reply(&mut client), riemann::OK_REPLY);
        }
    };
    let wait_written = |far: &Daemon, count: usize| {
        let want: BTreeSet<String> = (0..count).map(name).collect();
        wait_for("all events", || (written(far) == want).then_some(()));
    };
    send_all(&near, 0..100);
    wait_written(&far, 100);
    far.signal("KILL");
    far.wait_exit();
    // What is acknowledged now waits here.
    send_all(&near, 100..300);
    wait_for("the failure", || (near.output(&output)["last_error"] == "connect_failed").then_some(()));
    far.rewrite(&FAR.replace("LISTEN", &format!("tcp://127.0.0.1:{port}")));
    far.start_again();
    wait_written(&far, 300);
    send_all(&near, 300..310);
    wait_written(&far, 310);
    near.wait_output(&output, "delivered", 310);
    near.assert_sums_hold();
    far.assert_sums_hold();
    near.stop();
    far.stop();
}

#[test]
fn timers_that_events_set_run_in_a_config_that_has_no_others() {
    let mut far = Builder::native(&FAR.replace("LISTEN", "tcp://127.0.0.1:0")).start();
    let port = far.at("in", "tcp").port();
    let streams =
        format!("(streams (batch 10 1/10 (forward (tcp-client {{:host \"127.0.0.1\" :port {port}}}))))");
    let mut near = Builder::riemann(&config(&streams)).start();
    // It has nothing to do any more, and no time at which to look.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    send(near.at("riemann", "tcp"), &["a"]);
    far.wait_output("events", "delivered", 1);
    near.stop();
    far.stop();
}

#[test]
fn events_go_encrypted_with_a_certificate_of_the_client() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let tls = format!("tls = {{ cert = \"{}\", client_ca = \"{}\" }}", file("both.pem"), file("ca.pem"));
    let text =
        FAR.replace("LISTEN", "tcp://127.0.0.1:0").replacen("\n[outputs", &format!("\n{tls}\n[outputs"), 1);
    let mut far = Builder::native(&text).start();
    let streams = format!(
        "(streams (forward (tcp-client {{:host \"127.0.0.1\" :port {} :tls? true :key \"{}\" :cert \"{}\" :ca-cert \"{}\"}})))",
        far.at("in", "tcp").port(),
        file("client.key"),
        file("client.pem"),
        file("ca.pem")
    );
    let mut near = Builder::riemann(&config(&streams)).start();
    send(near.at("riemann", "tcp"), &["a", "b"]);
    far.wait_output("events", "delivered", 2);
    near.wait_output(&format!("streams/{}", far.at("in", "tcp")), "delivered", 2);
    near.stop();
    far.stop();
}

#[test]
fn datagrams_carry_several_events_and_long_ones_alone() {
    let mut far = Builder::native(&FAR.replace("LISTEN", "udp://127.0.0.1:0")).start();
    let text = native(&format!("udp://{}", far.at("in", "udp")), "max_batch_delay = \"100ms\"");
    let mut near = Builder::native(&text).start();
    let (long, longer) = ("l".repeat(10_000), "t".repeat(20_000));
    send(near.at("in", "tcp"), &["a", "b", &long, "c", &longer]);
    far.wait_output("events", "delivered", 4);
    near.wait_output("far", "delivered", 4);
    near.wait_output("far", "losses/dropped/too_big", 1);
    assert_eq!(Daemon::number(&far.source("in"), "packets"), 3);
    near.assert_sums_hold();
    near.stop();
    far.stop();
}

/// A request of an HTTP client: its first line and its body. It is answered with 200.
fn answer(listener: &TcpListener) -> (String, String) {
    let (mut stream, _) = listener.accept().expect("it connects");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head
        .to_ascii_lowercase()
        .split("content-length: ")
        .nth(1)
        .map(|rest| rest.split("\r\n").next().unwrap_or_default().parse().expect("a length"));
    let mut body = vec![0; length.expect("it has a body")];
    stream.read_exact(&mut body).expect("a body");
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("it reads");
    (head.lines().next().unwrap_or_default().to_owned(), String::from_utf8_lossy(&body).into_owned())
}

#[test]
fn an_alert_survives_a_kill_while_its_endpoint_is_away() {
    let at = nobody();
    let streams = format!(
        "(streams (where (service \"bad\") (slack {{:webhook_uri \"http://{at}/hook\"}} {{:channel \"#ops\" :formatter (fn [events] {{:text (:service (first events))}})}})))"
    );
    let mut daemon = Builder::riemann(&config(&streams)).start();
    let output = format!("streams/{at}");
    send(daemon.at("riemann", "tcp"), &["bad", "good"]);
    daemon.wait_output(&output, "queued", 1);
    wait_for("an attempt", || (daemon.output(&output)["last_error"] == "connect_failed").then_some(()));
    daemon.signal("KILL");
    daemon.wait_exit();
    daemon.start_again();
    daemon.wait_output(&output, "queued", 1);
    let listener = TcpListener::bind(at).expect("the port is still free");
    let (line, body) = answer(&listener);
    assert_eq!(line, "POST /hook HTTP/1.1");
    assert!(body.starts_with("payload=") && body.contains("%22text%22%3A%22bad%22"), "{body}");
    daemon.wait_output(&output, "delivered", 1);
    daemon.assert_sums_hold();
    daemon.stop();
}
