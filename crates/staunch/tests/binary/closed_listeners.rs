//! Listeners that somebody closes from outside, as `ss -K` does: they listen again.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::acks::Client;
use crate::support::{Builder, Daemon, FakeGraphite, nobody, wait_for};

/// Closes what the daemon listens at there.
fn close(daemon: &Daemon, at: SocketAddr) -> io::Result<()> {
    let process = pidfd_open(Pid::from_raw(daemon.pid() as i32).expect("it runs"), PidfdFlags::empty())?;
    let table = std::fs::read_to_string(format!("/proc/{}/net/tcp", daemon.pid()))?;
    // Number, local address, remote address, state, …, inode.
    let inode = table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let listens = words.get(1)?.ends_with(&format!(":{:04X}", at.port())) && words.get(3) == Some(&"0A");
        listens.then(|| words.get(9).map(|inode| format!("socket:[{inode}]")))?
    });
    let inode = inode.expect("it listens");
    for entry in std::fs::read_dir(format!("/proc/{}/fd", daemon.pid()))? {
        let entry = entry?;
        // One may have gone meanwhile.
        let is_it = std::fs::read_link(entry.path()).is_ok_and(|to| to.to_str() == Some(&inode));
        if let (true, Some(number)) = (is_it, entry.file_name().to_str().and_then(|name| name.parse().ok())) {
            let socket = pidfd_getfd(&process, number, PidfdGetfdFlags::empty())?;
            return socket2::SockRef::from(&socket).shutdown(Shutdown::Both);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

#[test]
fn listeners_that_are_closed_from_outside_listen_again() {
    let (graphite, lines, http, management) = (FakeGraphite::new(), nobody(), nobody(), nobody());
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://{lines}\"]\nack_when = \"accepted\"\n\
         [outputs.store]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\n\
         [http]\nlisten = \"{http}\"\n[management]\nlisten = \"{management}\"\n",
        graphite.to()
    );
    let mut daemon = Builder::native(&toml).start();
    for at in [lines, http, management] {
        match close(&daemon, at) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                println!("skipped: a container that lets nobody have sockets of its children: {error}");
                return daemon.stop();
            }
            Err(error) => panic!("the listener at {at}: {error}"),
        }
    }
    for at in [lines, http, management] {
        wait_for("somebody to listen again", || TcpStream::connect(at).ok());
    }
    let mut client = Client::connect(lines);
    client.send("a:1|c\n");
    assert_eq!(client.reply(), "ack 1");
    assert_eq!(daemon.get("/healthz").status, 200);
    let mut client = Client::connect(management);
    client.send("health\n");
    assert_eq!(client.reply(), "health: up");
    daemon.wait_logged("http listens again");
    daemon.wait_logged(&format!("{management} listens again"));
    daemon.stop();
}
