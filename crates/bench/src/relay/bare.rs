//! The bare loop beside a relay: reads one connection and writes the same bytes to the endpoints in turn, without
//! parsing them. It is a lower limit, since a relay has to parse.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use sys::{self, CpuClock};

/// Bytes of one read, and so of one write.
const READ_BYTES: usize = 64 * 1024;

/// A bare loop on its own thread, for one connection. It ends with the connection.
#[derive(Debug)]
pub(super) struct BareRelay {
    address: SocketAddr,
    clock: CpuClock,
    thread: JoinHandle<()>,
}

impl BareRelay {
    /// Starts a loop on `core`, or anywhere without one, in front of the endpoints `to`.
    ///
    /// # Errors
    /// When the system gives no socket or thread, there is no such core, or the CPU time of a thread cannot be read.
    pub(super) fn start(core: Option<usize>, to: &[SocketAddr]) -> io::Result<BareRelay> {
        let to = to.iter().map(TcpStream::connect).collect::<io::Result<Vec<TcpStream>>>()?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (started, wait_for_start) = sync_channel(1);
        let thread = thread::Builder::new().name("bare-relay".into()).spawn(move || {
            let ready = core.map_or(Ok(()), sys::pin_to_core).and_then(|()| CpuClock::of_this_thread());
            let runs = ready.is_ok();
            // The receiver is gone only when `start` has already failed.
            let _gone = started.send(ready);
            if runs {
                // An error ends the loop; missing lines are reported.
                let _ended = relay(&listener, &to);
            }
        })?;
        let clock =
            wait_for_start.recv().map_err(|_| io::Error::other("the bare loop's thread has ended"))??;
        Ok(BareRelay { address, clock, thread })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// CPU time so far, in nanoseconds.
    ///
    /// # Errors
    /// When the loop has ended.
    pub(super) fn cpu_ns(&self) -> io::Result<u64> {
        self.clock.read_ns()
    }

    /// Waits for its end. Call it after the connection has ended.
    pub(super) fn join(self) {
        // A panic in the loop has been printed by the thread itself.
        let _panicked = self.thread.join();
    }
}

fn relay(listener: &TcpListener, to: &[TcpStream]) -> io::Result<()> {
    let (mut connection, _peer) = listener.accept()?;
    let mut buffer = vec![0; READ_BYTES];
    for mut endpoint in to.iter().cycle() {
        match connection.read(&mut buffer)? {
            0 => break,
            got => endpoint.write_all(&buffer[..got])?,
        }
    }
    Ok(())
}
