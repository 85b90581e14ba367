//! Names and lines of points.

use std::io::{self, BufWriter, Write};
use std::net::{SocketAddr, TcpStream};

/// What each server measures; ten of them share a folder.
const KINDS: [&str; 10] =
    ["user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "total"];

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 20;

/// How names are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Their number.
    pub(super) count: u64,
    /// How many of them belong to one server.
    pub(super) of_server: u64,
}

impl Names {
    /// Ten for each server: `servers.web12.cpu.user`.
    pub(super) fn of(count: u64) -> Names {
        Names { count, of_server: KINDS.len() as u64 }
    }

    /// Appends the name of a number.
    fn push(self, number: u64, to: &mut impl Write) -> io::Result<()> {
        let (server, kind) = (number / self.of_server, number % self.of_server);
        match KINDS.get(kind as usize) {
            Some(kind) => write!(to, "servers.web{server}.cpu.{kind}"),
            None => write!(to, "servers.web{server}.cpu.core{kind}"),
        }
    }
}

/// Sends one point of each name with this time over a connection of its own, and closes it.
///
/// # Errors
/// Those of the connection.
pub(super) fn send(to: SocketAddr, names: Names, times: impl IntoIterator<Item = u64>) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(BUFFER_BYTES, TcpStream::connect(to)?);
    for time in times {
        for number in 0..names.count {
            names.push(number, &mut to)?;
            writeln!(to, " {}.25 {time}", (number * 7 + time / 10) % 1000)?;
        }
    }
    to.flush()
}

#[test]
fn servers_share_the_first_kinds() {
    let name = |names: Names, number| {
        let mut text = Vec::new();
        names.push(number, &mut text).expect("memory takes it");
        String::from_utf8(text).expect("ASCII")
    };
    let names = Names::of(100);
    assert_eq!(
        (name(names, 0), name(names, 19)),
        ("servers.web0.cpu.user".into(), "servers.web1.cpu.total".into())
    );
    assert_eq!(name(Names { count: 100, of_server: 100 }, 57), "servers.web0.cpu.core57");
}
