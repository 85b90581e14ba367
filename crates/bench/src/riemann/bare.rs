//! The bare loop beside the daemon: reads one connection, finds where its messages end, and replies `ok` to each. It decodes nothing.
//! It is a lower limit.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use sys::{self, CpuClock};

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// Its reply to everything, with its length.
const REPLY: [u8; 6] = [0, 0, 0, 2, 0x10, 0x01];

/// A bare loop on its own thread, for one connection. It ends with the connection.
#[derive(Debug)]
pub(super) struct BareLoop {
    address: SocketAddr,
    clock: CpuClock,
    thread: JoinHandle<()>,
}

impl BareLoop {
    /// Starts a loop on `core`, or anywhere without one.
    ///
    /// # Errors
    /// When the system gives no socket or thread, there is no such core, or the CPU time of a thread cannot be read.
    pub(super) fn start(core: Option<usize>) -> io::Result<BareLoop> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (started, wait_for_start) = sync_channel(1);
        let thread = thread::Builder::new().name("bare-loop".into()).spawn(move || {
            let ready = core.map_or(Ok(()), sys::pin_to_core).and_then(|()| CpuClock::of_this_thread());
            let runs = ready.is_ok();
            // The receiver is gone only when `start` has already failed.
            let _gone = started.send(ready);
            if runs {
                // An error ends the loop; missing replies are reported.
                let _ended = serve(&listener);
            }
        })?;
        let clock =
            wait_for_start.recv().map_err(|_| io::Error::other("the bare loop's thread has ended"))??;
        Ok(BareLoop { address, clock, thread })
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

fn serve(listener: &TcpListener) -> io::Result<()> {
    let (mut connection, _peer) = listener.accept()?;
    connection.set_nodelay(true)?;
    let (mut buffer, mut replies) = (vec![0; READ_BYTES], Vec::new());
    // Bytes of the message at hand that have not come, and those of a length that have.
    let (mut missing, mut length, mut length_bytes) = (0, [0; 4], 0);
    loop {
        let got = match connection.read(&mut buffer)? {
            0 => return Ok(()),
            got => got,
        };
        let mut rest = &buffer[..got];
        while !rest.is_empty() {
            if missing == 0 {
                length[length_bytes] = rest[0];
                (length_bytes, rest) = (length_bytes + 1, &rest[1..]);
                if length_bytes == length.len() {
                    (missing, length_bytes) = (u32::from_be_bytes(length) as usize, 0);
                }
                continue;
            }
            let here = missing.min(rest.len());
            (missing, rest) = (missing - here, &rest[here..]);
            if missing == 0 {
                replies.extend_from_slice(&REPLY);
            }
        }
        connection.write_all(&replies)?;
        replies.clear();
    }
}
