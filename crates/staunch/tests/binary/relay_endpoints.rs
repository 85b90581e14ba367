//! What `staunch relay` writes to endpoints that are no plain stream of lines: files, syslog, datagrams.
//!
//! Beside the original: `compat/relay_endpoints.py`. A relay.conf names ports, so each test has a loopback address of its
//! own, which Linux has plenty of.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::support::{Builder, FakeGraphite, wait_for, wait_until_equal};

/// A loopback address that no other test process uses.
fn own_address(number: u8) -> SocketAddr {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, 100 + number, high, low], 2003))
}

/// A socket that takes datagrams, and how a relay.conf calls it.
fn datagrams() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    let at = socket.local_addr().expect("it is bound").to_string();
    (socket, at)
}

fn next(socket: &UdpSocket) -> String {
    let mut packet = [0; 2048];
    let len = socket.recv(&mut packet).expect("a datagram");
    String::from_utf8_lossy(&packet[..len]).into_owned()
}

#[track_caller]
fn assert_holds(file: &Path, want: &str) {
    wait_until_equal(&file.display().to_string(), &want.to_owned(), || {
        std::fs::read_to_string(file).unwrap_or_default()
    });
}

/// `<30>1 2024-03-13T15:42:30.000Z SRC …` without the time, which is today's.
#[track_caller]
fn untimed(message: &str) -> String {
    let (time, rest) = message.strip_prefix("<30>1 ").and_then(|rest| rest.split_once(' ')).expect("a head");
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{message}");
    rest.to_owned()
}

#[test]
fn every_kind_of_endpoint_names_the_client_as_the_original_does() {
    let at = own_address(0);
    let (syslog, (plain, plain_at), (udp, udp_at)) = (FakeGraphite::new(), datagrams(), datagrams());
    let syslog_at = syslog.to();
    let syslog_at = syslog_at.trim_start_matches("tcp://");
    let config = format!(
        "cluster all file plain.log; cluster who file ip who.log;
         cluster stream forward {syslog_at} type syslog;
         cluster messages forward {udp_at} proto udp type syslog;
         cluster datagrams forward {plain_at} proto udp;
         rewrite ^re into renamed;
         match * send to all who stream messages datagrams;
         listen type linemode {at} proto tcp {at} proto udp relay.sock proto unix;"
    );
    let mut daemon = Builder::relay(&config).start();
    let folder = daemon.folder.path().to_owned();
    let ip = at.ip();
    let steps: &[(&str, String, &str)] = &[
        ("tcp", "127.0.0.1".into(), "by.tcp 1 2"),
        ("tcp", "127.0.0.1".into(), "re.tcp;k=v .50  1.7e9"),
        ("unix", "(unknown)".into(), "by.unix 1 2"),
        // A datagram each, from two clients of one socket.
        ("own", ip.to_string(), "by.own 1 2"),
        ("udp", "127.0.0.1".into(), "by.udp 1 2"),
    ];
    let (mut want_plain, mut want_who) = (String::new(), String::new());
    for (way, client, line) in steps {
        let line_sent = format!("{line}\n");
        match *way {
            "tcp" => TcpStream::connect(at).expect("it listens").write_all(line_sent.as_bytes()),
            "unix" => {
                let mut stream = UnixStream::connect(folder.join("relay.sock")).expect("it listens");
                stream.write_all(line_sent.as_bytes())
            }
            _ => {
                let from = if *way == "own" { (ip, 0) } else { ([127, 0, 0, 1].into(), 0) };
                let socket = UdpSocket::bind(from).expect("a free port");
                socket.send_to(line_sent.as_bytes(), at).map(|_sent| ())
            }
        }
        .expect("it reads");
        let line = line.replace("re.tcp", "renamed.tcp");
        want_plain += &format!("{line}\n");
        want_who += &format!("{client} {line}\n");
        assert_holds(&folder.join("plain.log"), &want_plain);
        assert_holds(&folder.join("who.log"), &want_who);
        assert_eq!(next(&plain), format!("{line}\n"));
        let message = format!("{client} carbon-c-relay - - - {line}\n");
        assert_eq!(untimed(&next(&udp)), message);
        let all = wait_for("the message", || {
            let all = String::from_utf8_lossy(&syslog.bytes()).into_owned();
            (all.lines().count() == want_plain.lines().count()).then_some(all)
        });
        assert_eq!(untimed(all.lines().last().unwrap_or_default()) + "\n", message);
    }
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn a_file_that_was_moved_away_is_opened_anew_at_a_signal() {
    let at = own_address(1);
    let config = |more: &str| {
        format!("{more} cluster all file all.log; match * send to all; listen type linemode {at} proto tcp;")
    };
    let mut daemon = Builder::relay(&config("")).start();
    let (file, moved) = (daemon.folder.path().join("all.log"), daemon.folder.path().join("all.log.1"));
    let mut client = TcpStream::connect(at).expect("it listens");
    let conf = daemon.file.clone().expect("it has one");
    // With nothing else changed, and with a change.
    for (turn, text) in [config(""), config("cluster more file more.log;")].iter().enumerate() {
        client.write_all(format!("before.{turn} 1 2\n").as_bytes()).expect("it reads");
        assert_holds(&file, &format!("before.{turn} 1 2\n"));
        daemon.hang_up("done", || {
            std::fs::rename(&file, &moved).expect("it can be moved");
            std::fs::write(&conf, text).expect("it can be written");
        });
        wait_for("the file", || file.exists().then_some(()));
        client.write_all(format!("behind.{turn} 1 2\n").as_bytes()).expect("it reads");
        assert_holds(&file, &format!("behind.{turn} 1 2\n"));
        assert_holds(&moved, &format!("before.{turn} 1 2\n"));
        std::fs::remove_file(&file).expect("it is there");
        daemon.hang_up("done", || {});
        wait_for("the file", || file.exists().then_some(()));
    }
    daemon.assert_sums_hold();
    daemon.stop();
}
