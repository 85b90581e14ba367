//! What stands between a sender's lines and its socket: they are packed, and what that makes is encrypted.
//!
//! Path of a line: `StreamSender::poll` gives `Write` -> [`Wrapping::take`] -> `wire::compression::Compressor` -> `rustls` ->
//! [`Wrapping::unsent`] -> the socket -> [`Wrapping::unacked`] -> `StreamSender::on_acked`.
//! Not here: sockets but for the handshake (`stream`), what is settled when (`deliver::stream`), how streams are packed
//! (`wire::compression`), certificates (`tls`).
//! Invariant: nothing is taken while something waits for the socket, so a connection holds what one flush makes.

use std::io::{self, Read, Write};

use deliver::stream::Marks;
use rustls::ClientConnection;
use wire::compression::{Compression, Compressor, FLUSH_BYTES};

use crate::outputs::hearing::FirstLine;
use crate::outputs::socket::StreamSocket;
use tls::ForEndpoint;

/// Bytes that one read of a handshake takes.
const HANDSHAKE_BYTES: usize = 4 * 1024;

/// What the bytes of one connection go through.
#[derive(Debug)]
pub struct Wrapping {
    compressor: Option<Compressor>,
    /// Packed, or lines as they are, and not encrypted yet.
    packed: Vec<u8>,
    /// Bytes of lines since the last flush.
    since_flush: usize,
    tls: Option<Box<ClientConnection>>,
    marks: Marks,
    /// For the socket, and how much of it the socket took.
    wire: Vec<u8>,
    written: usize,
    /// Bytes that the socket took since the handshake.
    sent: u64,
}

impl Wrapping {
    /// For a new connection; none when its lines go as they are.
    ///
    /// # Errors
    /// When nothing can be encrypted as it should be.
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

    /// Does what comes before the first line, if it is encrypted: the endpoint's certificate is verified here. The caller
    /// bounds the time. Not cancel-safe: the connection is to be closed then.
    ///
    /// # Errors
    /// Those of the socket, and in words what is wrong with the endpoint's certificate or with ours.
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
                        // It gets the reason, if it still reads.
                        let _unsent = socket.try_write(&self.wire);
                        return Err(error);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // What it makes of the first bytes is no handshake.
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

    /// Takes what the endpoint says. Answers are thrown away but for the first line: Graphite never answers. False when it has
    /// closed its side.
    ///
    /// # Errors
    /// When it cannot be followed.
    pub fn receive(&mut self, mut bytes: &[u8], said: &mut FirstLine) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else {
            said.heard(bytes);
            return Ok(true);
        };
        let mut open = true;
        while !bytes.is_empty() && open {
            tls.read_tls(&mut bytes)?;
            let state = tls.process_new_packets();
            // What rustls has to say goes before the next lines: an answer to a new key, or why it ends.
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

    /// Takes the first bytes of `lines`, and gives how many: none while something waits for the socket.
    ///
    /// # Errors
    /// When it cannot be encrypted.
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

    /// Makes all that was taken readable for the endpoint, once it has what waits for the socket then.
    ///
    /// # Errors
    /// When it cannot be encrypted.
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

    /// True when nothing waits for a flush, or for the socket.
    pub fn is_at_rest(&self) -> bool {
        self.since_flush == 0 && self.unsent().is_empty()
    }

    /// What the socket is to take.
    pub fn unsent(&self) -> &[u8] {
        &self.wire[self.written..]
    }

    /// The socket took the first `bytes` of [`Self::unsent`].
    pub fn on_sent(&mut self, bytes: usize) {
        self.written += bytes;
        self.sent += bytes as u64;
        if self.written == self.wire.len() {
            self.wire.clear();
            self.written = 0;
        }
    }

    /// Bytes of lines that the peer's kernel cannot make use of yet, when it has not acknowledged the last `unacked` bytes
    /// that the socket took.
    pub fn unacked(&mut self, unacked: u64) -> u64 {
        self.marks.unacked(self.sent.saturating_sub(unacked))
    }

    /// Ends the stream as its form wants it. It is no loss when the peer does not get that.
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
            // As much as it has room for; what that makes goes on at once.
            let len = tls.writer().write(rest)?;
            rest = &rest[len..];
            while tls.wants_write() {
                tls.write_tls(&mut self.wire)?;
            }
        }
        self.packed.clear();
        Ok(())
    }

    /// Bytes that were made for the wire.
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
    fn lines_count_as_arrived_when_the_peer_can_read_them() {
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
                // The socket takes some of it, and some of that is acknowledged.
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

    /// A sender and its connections, without sockets: bytes arrive in pieces, and now and then a connection ends with some of
    /// them on the way.
    #[test]
    fn after_a_break_a_new_stream_begins_with_the_first_line_that_may_be_missing() {
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
            // What the peer has of this connection, what is on the way to it, and the lines that it has read of all.
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

    /// Reads a stream as far as it came: it goes on with the line behind the last one, or with one that came already.
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
