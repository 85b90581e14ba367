//! More than one reader: each connection keeps its order, accounts are exact, and reload, stop and hot restart lose nothing.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;

use crate::support::sections::{output, source};
use crate::support::{Builder, Daemon, FakeGraphite, wait_for};

const CLIENTS: usize = 24;

const LINES: usize = 5_000;

fn config(readers: usize, to: &FakeGraphite) -> String {
    format!("readers = {readers}\n{}{}", source("app", ""), output("carbon", "app", &to.to(), ""))
}

/// The lines of one client, numbered from `first` on.
fn lines(client: usize, first: usize) -> String {
    (first..first + LINES).map(|number| format!("client.{client} {number} 1700000000\n")).collect()
}

/// Connects so many clients that send at the same time, and leaves their connections open.
fn send(at: SocketAddr) -> Vec<JoinHandle<TcpStream>> {
    let client = |client| {
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect(at).expect("it listens");
            stream.write_all(lines(client, 0).as_bytes()).expect("it reads");
            stream
        })
    };
    (0..CLIENTS).map(client).collect()
}

fn ends(sending: Vec<JoinHandle<TcpStream>>) -> Vec<TcpStream> {
    sending.into_iter().map(|sends| sends.join().expect("the client has sent all")).collect()
}

/// Each client's numbers have arrived once, in their order, up to `end`.
fn assert_in_order(got: &FakeGraphite, end: usize) {
    let text = String::from_utf8(got.bytes()).expect("names are text");
    let mut next = [0; CLIENTS];
    for line in text.lines() {
        let (client, rest) =
            line.strip_prefix("client.").and_then(|line| line.split_once(' ')).expect("a line");
        let number = rest.split(' ').next().and_then(|number| number.parse::<usize>().ok());
        let next = &mut next[client.parse::<usize>().expect("a client")];
        assert_eq!(number, Some(*next), "client {client}");
        *next += 1;
    }
    assert_eq!(next, [end; CLIENTS]);
}

fn got(carbon: &FakeGraphite) -> usize {
    carbon.bytes().iter().filter(|byte| **byte == b'\n').count()
}

fn threads(daemon: &Daemon) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("it runs");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        let name = std::fs::read_to_string(task.ok()?.path().join("comm")).ok()?;
        Some(name.trim_end().to_owned())
    };
    let mut names: Vec<String> = tasks.filter_map(name).filter(|name| name.starts_with("reader-")).collect();
    names.sort();
    names
}

/// A thread names itself after it has begun.
fn wait_for_threads(daemon: &Daemon, readers: usize) {
    let names: Vec<String> = (0..readers).map(|reader| format!("reader-{reader}")).collect();
    wait_for(&format!("threads {names:?}"), || (threads(daemon) == names).then_some(()));
}

#[test]
fn every_connection_keeps_its_order_and_every_record_is_counted_with_two_readers() {
    let carbon = FakeGraphite::new();
    let mut daemon = Builder::native(&config(2, &carbon)).start();
    wait_for_threads(&daemon, 2);
    let all = (CLIENTS * LINES) as u64;
    let streams = ends(send(daemon.at("app", "tcp")));
    daemon.wait_source("app", "routed", all);
    daemon.wait_output("carbon", "delivered", all);
    daemon.assert_sums_hold();
    daemon.wait_source("app", "connections_open", CLIENTS as u64);
    drop(streams);
    daemon.wait_source("app", "connections_open", 0);
    daemon.stop();
    assert_in_order(&carbon, LINES);
}

#[test]
fn one_reader_starts_no_thread() {
    let carbon = FakeGraphite::new();
    let mut daemon = Builder::native(&config(1, &carbon)).start();
    let _streams = ends(send(daemon.at("app", "tcp")));
    daemon.wait_output("carbon", "delivered", (CLIENTS * LINES) as u64);
    assert!(threads(&daemon).is_empty());
    daemon.stop();
    assert_in_order(&carbon, LINES);
}

#[test]
fn a_stop_reads_what_clients_of_all_readers_have_sent() {
    let carbon = FakeGraphite::new();
    let mut daemon = Builder::native(&config(3, &carbon)).start();
    let at = daemon.at("app", "tcp");
    let mut streams = ends(send(at));
    for (client, stream) in streams.iter_mut().enumerate() {
        stream.write_all(lines(client, LINES).as_bytes()).expect("it reads");
    }
    daemon.stop();
    assert_in_order(&carbon, 2 * LINES);
}

#[test]
fn a_reload_keeps_connections_and_leaves_the_number_of_readers() {
    let carbon = FakeGraphite::new();
    let mut daemon = Builder::native(&config(2, &carbon)).start();
    let mut streams = ends(send(daemon.at("app", "tcp")));
    daemon.reload(&format!("{}{}", config(3, &carbon), source("more", "")), "done");
    daemon.wait_logged("the new `readers` takes effect at the next start only");
    for (client, stream) in streams.iter_mut().enumerate() {
        stream.write_all(lines(client, LINES).as_bytes()).expect("it reads");
    }
    TcpStream::connect(daemon.at("more", "tcp")).expect("the new source listens");
    daemon.wait_output("carbon", "delivered", (2 * CLIENTS * LINES) as u64);
    wait_for_threads(&daemon, 2);
    daemon.stop();
    assert_in_order(&carbon, 2 * LINES);
}

#[test]
#[cfg(target_os = "linux")]
fn a_hot_restart_deals_connections_out_to_more_or_fewer_readers() {
    let carbon = FakeGraphite::new();
    let mut daemon = Builder::native(&config(1, &carbon)).start();
    let mut streams = ends(send(daemon.at("app", "tcp")));
    for (restart, readers) in [(1, 3), (2, 2), (3, 1)] {
        let file = daemon.file.clone().expect("it has a file");
        let text = std::fs::read_to_string(&file).expect("it is there");
        let number =
            text.lines().find(|line| line.starts_with("readers")).expect("it has a number").to_owned();
        std::fs::write(&file, text.replace(&number, &format!("readers = {readers}"))).expect("it is ours");
        // Half of a line is with the old process, the other half comes to the new one.
        let mut whole = restart * CLIENTS * LINES;
        for (client, stream) in streams.iter_mut().enumerate() {
            let text = lines(client, restart * LINES);
            let (begin, _) = text.split_at(text.len() / 2 + 3);
            whole += begin.matches('\n').count();
            stream.write_all(begin.as_bytes()).expect("it reads");
        }
        // The endpoint reads the connections of both processes at the same time.
        wait_for("the old process to send its lines", || (got(&carbon) == whole).then_some(()));
        let mut successor = daemon.successor();
        successor.wait_ready();
        assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
        daemon = successor;
        for (client, stream) in streams.iter_mut().enumerate() {
            let text = lines(client, restart * LINES);
            let (_, rest) = text.split_at(text.len() / 2 + 3);
            stream.write_all(rest.as_bytes()).expect("it reads");
        }
        let all = ((restart + 1) * CLIENTS * LINES) as u64;
        wait_for("all to be delivered", || {
            (Daemon::number(&daemon.output("carbon"), "delivered") == all).then_some(())
        });
        wait_for_threads(&daemon, if readers == 1 { 0 } else { readers });
        daemon.assert_sums_hold();
    }
    daemon.stop();
    assert_in_order(&carbon, 4 * LINES);
}
