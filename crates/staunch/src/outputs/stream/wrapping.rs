//! Compression and encryption between a sender's lines and its socket.
//!
//! Path of a line: `StreamSender::poll` returns `Write` -> [`Wrapping::take`] -> `wire::compression::Compressor` ->
//! `rustls` -> [`Wrapping::unsent`] -> the socket -> [`Wrapping::unacked`] -> `StreamSender::on_acked`. Not here:
//! sockets except for the handshake (`stream`), outcomes (`deliver::stream`), compression formats
//! (`wire::compression`), certificates (`tls`).
//! Invariant: no lines are accepted while bytes for the socket are pending, so a connection buffers the output of one
//! flush.

use std::io::{self, Read, Write};

use deliver::stream::Marks;
use rustls::ClientConnection;
use wire::compression::{Compression, Compressor, FLUSH_BYTES};

use crate::outputs::socket::StreamSocket;
use crate::outputs::stream::hearing::FirstLine;
use tls::ForEndpoint;

/// Bytes of one read of a handshake.
const HANDSHAKE_BYTES: usize = 4 * 1024;

/// The compression and encryption of one connection.
#[derive(Debug)]
pub struct Wrapping {
    compressor: Option<Compressor>,
    /// Compressed or plain bytes that are not encrypted yet.
    packed: Vec<u8>,
    /// Bytes of lines since the last flush.
    since_flush: usize,
    tls: Option<Box<ClientConnection>>,
    marks: Marks,
    /// Bytes for the socket, and how many of them it accepted.
    wire: Vec<u8>,
    written: usize,
    /// Bytes that the socket accepted since the handshake.
    sent: u64,
}

impl Wrapping {
    /// For a new connection; `None` without compression and TLS.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(compression: Compression, tls: Option<&ForEndpoint>) -> io::Result<Option<Wrapping>> {
        let compressor = Compressor::new(compression);
        if compressor.is_none() && tls.is_none() {
            return Ok(None);
        }
        let tls = tls.map(|tls| ClientConnection::new(tls.config.clone(), tls.name.clone()));
        Ok(Some(Wrapping {
            compressor,
            packed: Vec::new(),
            since_flush: 0,
            tls: tls.transpose().map_err(io::Error::other)?.map(Box::new),
            marks: Marks::default(),
            wire: Vec::new(),
            written: 0,
            sent: 0,
        }))
    }

    /// Does the TLS handshake, if there is one: the endpoint's certificate is verified here. The caller has a timeout.
    /// Not cancel-safe: close the connection then.
    ///
    /// # Errors
    /// Errors of the socket, and messages about the endpoint's certificate or ours.
    pub async fn shake_hands(&mut self, socket: &StreamSocket) -> io::Result<()> {
        let mut buffer = [0; HANDSHAKE_BYTES];
        while let Some(tls) = &mut self.tls
            && (tls.is_handshaking() || tls.wants_write())
        {
            while tls.wants_write() {
                tls.write_tls(&mut self.wire)?;
            }
            let mut unsent = &self.wire[..];
            while !unsent.is_empty() {
                socket.writable().await?;
                match socket.try_write(unsent) {
                    Ok(len) => unsent = &unsent[len..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            self.wire.clear();
            if !tls.is_handshaking() {
                break;
            }
            socket.readable().await?;
            match socket.try_read(&mut buffer) {
                Ok(0) => return Err(tls::words::ended_early()),
                Ok(len) => {
                    if let Err(error) = self.receive(&buffer[..len], &mut FirstLine::default()) {
                        // Sends the reason to the endpoint, if it still reads.
                        let _unsent = socket.try_write(&self.wire);
                        return Err(error);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The endpoint's first bytes are not a handshake.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(tls::words::ended_early());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// True when there is a handshake before the first line.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Receives replies. They are dropped except for the first line, because Graphite never replies. False when the
    /// endpoint has closed its side.
    ///
    /// # Errors
    /// When they are invalid.
    pub fn receive(&mut self, mut bytes: &[u8], said: &mut FirstLine) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else {
            said.heard(bytes);
            return Ok(true);
        };
        let mut open = true;
        while !bytes.is_empty() && open {
            tls.read_tls(&mut bytes)?;
            let state = tls.process_new_packets();
            // Data from rustls is sent before further lines: a reply to a key update, or the reason for the end.
            while tls.wants_write() {
                tls.write_tls(&mut self.wire)?;
            }
            open =
                !state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?.peer_has_closed();
            let mut thrown = Vec::new();
            match tls.reader().read_to_end(&mut thrown) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
            said.heard(&thrown);
        }
        Ok(open)
    }

    /// Accepts the first bytes of `lines`, and returns how many: 0 while bytes for the socket are pending.
    ///
    /// # Errors
    /// When they cannot be encrypted.
    pub fn take(&mut self, lines: &[u8]) -> io::Result<usize> {
        if !self.unsent().is_empty() {
            return Ok(0);
        }
        let lines = &lines[..lines.len().min(FLUSH_BYTES - self.since_flush)];
        let taken = match &mut self.compressor {
            Some(compressor) => compressor.push(lines, &mut self.packed),
            None => {
                self.packed.extend_from_slice(lines);
                lines.len()
            }
        };
        debug_assert_eq!(taken, lines.len(), "a compressor has the same room");
        self.marks.take(taken);
        self.since_flush += taken;
        if self.since_flush == FLUSH_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    /// Makes all accepted lines readable for the endpoint, once it has received the pending bytes.
    ///
    /// # Errors
    /// When they cannot be encrypted.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.since_flush == 0 {
            return Ok(());
        }
        if let Some(compressor) = &mut self.compressor {
            compressor.flush(&mut self.packed);
        }
        self.encrypt()?;
        self.since_flush = 0;
        self.marks.flushed(self.made());
        Ok(())
    }

    /// True when nothing is pending for a flush or for the socket.
    pub fn is_at_rest(&self) -> bool {
        self.since_flush == 0 && self.unsent().is_empty()
    }

    /// The pending bytes for the socket.
    pub fn unsent(&self) -> &[u8] {
        &self.wire[self.written..]
    }

    /// The socket accepted the first `bytes` of [`Self::unsent`].
    pub fn on_sent(&mut self, bytes: usize) {
        self.written += bytes;
        self.sent += bytes as u64;
        if self.written == self.wire.len() {
            self.wire.clear();
            self.written = 0;
        }
    }

    /// Bytes of lines that the peer cannot decode yet, when it has not acknowledged the last `unacked` bytes accepted
    /// by the socket.
    pub fn unacked(&mut self, unacked: u64) -> u64 {
        self.marks.unacked(self.sent.saturating_sub(unacked))
    }

    /// Ends the stream in its format. It is no loss if the peer does not receive that.
    ///
    /// # Errors
    /// When it cannot be encrypted.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(compressor) = &mut self.compressor {
            compressor.finish(&mut self.packed);
        }
        self.encrypt()?;
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            while tls.wants_write() {
                tls.write_tls(&mut self.wire)?;
            }
        }
        Ok(())
    }

    fn encrypt(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            self.wire.append(&mut self.packed);
            return Ok(());
        };
        let mut rest = &self.packed[..];
        while !rest.is_empty() {
            // As much as it has room for; the result is sent at once.
            let len = tls.writer().write(rest)?;
            rest = &rest[len..];
            while tls.wants_write() {
                tls.write_tls(&mut self.wire)?;
            }
        }
        self.packed.clear();
        Ok(())
    }

    /// Bytes made for the socket.
    fn made(&self) -> u64 {
        self.sent + self.unsent().len() as u64
    }
}

#[cfg(test)]
mod tests {
    use wire::compression::Decompressor;

    use super::*;

    fn wrapping(compression: Compression) -> Wrapping {
        Wrapping::new(compression, None).expect("nothing is encrypted").expect("it is packed")
    }

    #[test]
    fn lines_count_as_arrived_when_the_peer_can_decode_them() {
        for compression in [Compression::Gzip, Compression::Lz4, Compression::Snappy] {
            let mut wrapping = wrapping(compression);
            let mut decompressor = Decompressor::new(compression).expect("it is packed");
            let lines: Vec<u8> = (0..9_000).flat_map(|n| format!("a.b.{n} {n} 17\n").into_bytes()).collect();
            let (mut taken, mut got, mut arrived) = (0, Vec::new(), 0_u64);
            let mut turn = 0;
            while (arrived as usize) < lines.len() {
                turn += 1;
                let now = wrapping
                    .take(&lines[taken..lines.len().min(taken + 3_000 * (turn % 7))])
                    .expect("memory");
                assert!(now == 0 || wrapping.unsent().len() <= 2 * FLUSH_BYTES);
                taken += now;
                if turn % 3 == 0 || taken == lines.len() {
                    wrapping.flush().expect("memory");
                }
                // The socket accepts some bytes, and some of these are acknowledged.
                let sent = wrapping.unsent().len().min(700 * (turn % 5));
                let bytes = wrapping.unsent()[..sent].to_vec();
                wrapping.on_sent(sent);
                let on_the_way = bytes.len() * (turn % 2);
                decompressor.push(&bytes);
                while decompressor.has_more() {
                    decompressor.decompress(&mut got).expect("it is good");
                }
                let unacked = wrapping.unacked(on_the_way as u64);
                arrived = taken as u64 - unacked;
                assert!(arrived as usize <= got.len(), "{arrived} of {} bytes that can be read", got.len());
            }
            assert!(got == lines, "{compression:?}");
            wrapping.finish().expect("memory");
            decompressor.push(wrapping.unsent());
            decompressor.decompress(&mut got).expect("it is good");
            assert!(got == lines && decompressor.end().is_ok());
        }
    }

    /// A sender and its connections without sockets: bytes arrive in pieces, and sometimes a connection ends with some
    /// of them in flight.
    /// them on the way.
    #[test]
    fn a_new_stream_after_a_break_begins_with_the_first_line_in_doubt() {
        use std::sync::Arc;

        use deliver::plan::{QueueLimits, SenderPlan};
        use deliver::queue::{Appended, Block, MemoryQueue, Queue as _};
        use deliver::stream::{Action, CloseReason, StreamSender};
        use model::{Now, OutputAccount};

        for (seed, compression) in (0..24).map(|seed| (seed, Compression::ALL[1 + seed as usize % 3])) {
            let mut random = Lcg(seed);
            let account = Arc::new(OutputAccount::default());
            let mut queue = MemoryQueue::new(QueueLimits::default(), Arc::clone(&account));
            let mut sender = StreamSender::new(SenderPlan::default(), Arc::clone(&account), seed);
            let mut now = Now::default().plus_ns(1_000_000_000);
            let lines: Vec<String> = (0..4_000_u64).map(|n| format!("a.b.{n} {} 17\n", n * 7)).collect();
            for some in lines.chunks(37) {
                let block = Block::lines(some.concat().into_bytes(), some.len() as u32, now.mono_ns);
                assert!(matches!(queue.append(block, now), Appended::Kept));
            }
            // The peer's data on this connection, the data in flight, and all lines that it has read.
            let mut link: Option<(Wrapping, Vec<u8>, Vec<u8>)> = None;
            let mut read: Vec<String> = Vec::new();
            let mut connections = 0;
            while queue.copies() + sender.waiting_copies() > 0 {
                now = now.plus_ns(20_000_000);
                let pick = random.below(12);
                if let Some((wrapping, had, on_the_way)) = &mut link {
                    on_the_way.drain(..random.below(on_the_way.len() + 1)).for_each(|byte| had.push(byte));
                    if pick < 8 {
                        let unacked = wrapping.unacked(on_the_way.len() as u64);
                        sender.on_acked(unacked, now);
                    } else if pick == 11 && connections < 30 {
                        keep_whole(&mut read, compression, had);
                        link = None;
                        sender.on_closed(CloseReason::Broken, now);
                    }
                }
                match sender.poll(&mut queue, now) {
                    Action::Connect => {
                        connections += 1;
                        let wrapping = wrapping(compression);
                        link = Some((wrapping, Vec::new(), Vec::new()));
                        sender.on_connected(now);
                    }
                    Action::Write(bytes) => {
                        let (wrapping, _, on_the_way) = link.as_mut().expect("it is connected");
                        let taken = wrapping.take(&bytes[..bytes.len().min(1 + random.below(3_000))]);
                        let taken = taken.expect("memory");
                        sender.on_written(taken, now);
                        if pick < 3 {
                            wrapping.flush().expect("memory");
                        }
                        let sent = random.below(wrapping.unsent().len() + 1);
                        on_the_way.extend_from_slice(&wrapping.unsent()[..sent]);
                        wrapping.on_sent(sent);
                    }
                    Action::Close(why) => panic!("{why:?}: the peer was never so slow"),
                    Action::WaitUntil(_) | Action::Idle => {
                        if let Some((wrapping, _, on_the_way)) = &mut link {
                            wrapping.flush().expect("memory");
                            on_the_way.extend_from_slice(wrapping.unsent());
                            wrapping.on_sent(wrapping.unsent().len());
                        }
                    }
                }
                assert!(account.sum(queue.copies() + sender.waiting_copies()).holds());
            }
            let (_, had, _) = link.expect("it is still connected");
            keep_whole(&mut read, compression, &had);
            assert!(connections > 3, "{connections} connections");
            assert_eq!(read.concat(), lines.concat(), "seed {seed}, {compression:?}");
        }
    }

    /// Reads a stream as far as it arrived: it continues after the last line, or with an earlier one.
    fn keep_whole(read: &mut Vec<String>, compression: Compression, stream: &[u8]) {
        let mut decompressor = Decompressor::new(compression).expect("it is packed");
        decompressor.push(stream);
        let mut text = Vec::new();
        while decompressor.has_more() {
            decompressor.decompress(&mut text).expect("what came is good");
        }
        let text = String::from_utf8(text).expect("lines");
        let whole: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        let Some(first) = whole.first().filter(|line| line.ends_with('\n')) else { return };
        let again = read.iter().position(|line| line == first).unwrap_or(read.len());
        for (at, line) in whole.into_iter().filter(|line| line.ends_with('\n')).enumerate() {
            match read.get(again + at) {
                Some(known) => assert_eq!(*known, line, "in the same order"),
                None => read.push(line),
            }
        }
    }

    struct Lcg(u64);

    impl Lcg {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }
    }
}
