//! TLS and decompression between a connection's socket and its lines.
//!
//! Path of a byte: the socket -> [`Wrapping::read_once`] -> `rustls` -> `wire::compression::Decompressor` ->
//! `Intake::stream`. Not here: turns (`stream`), certificates (`tls`), compression formats (`wire::compression`).
//! Invariant: the socket is read only when all earlier data was passed on. An idle connection holds only what rustls
//! and its decompressor need: keys and an incomplete record, and a window or an incomplete block.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use model::{Batches, PeerKey};
use pipeline::{Broken, Intake};
use rustls::ServerConnection;
use wire::compression::Decompressor;

use super::handshakes::{Handshake, Handshakes, STALL};
use super::reading::{End, read_scratch, take_apart};
use super::socket::Stream;
use crate::sources::listener::StreamSource;
use crate::sources::log_throttle::LogThrottle;
use sys::clock::Clock;

/// Timeout for the first byte of a handshake.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Timeout for a slot, from the first byte on. Peers take turns, so only a peer with many handshakes waits for long.
const PLACE_MAX: Duration = Duration::from_secs(30);

/// Timeout of a handshake with a slot.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Memory that the decompressor of a connection may always have: a window of up to 80 KiB, and a block of a small
/// message.
const UNPACKER_FREE_BYTES: usize = 160 * 1024;

/// Most bytes over TLS without data: a handshake, then an incomplete record or messages without data. rustls buffers up
/// to 64 KiB of that; a record has at most 18 KiB, and a handshake with a long chain of client certificates, or
/// hundreds of names in one, 10 to 20 KiB.
const WITHOUT_DATA_BYTES_MAX: usize = 32 * 1024;

thread_local! {
    // One buffer for all connections of the runtime's thread: it is only used between two awaits.
    static UNWRAPPED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    // Each reader has its own slots, because its connections are all on its thread.
    static HANDSHAKES: Arc<Handshakes> = Arc::default();
}

static FAILED: LogThrottle = LogThrottle::new();

/// A handshake with a place, and how long its client may still take while others wait for that. What others cost, and its own
/// steps, is not the client's fault.
struct Patience {
    one: Handshake,
    stall: Duration,
    left: Duration,
}

impl Patience {
    /// Waits for the client.
    async fn wait(&mut self, ready: impl Future<Output = io::Result<()>>) -> Result<(), String> {
        let since_ns = Clock::mono_ns();
        let ready = tokio::select! {
            biased;
            ready = ready => ready,
            () = self.one.is_needed(self.left, self.stall) => {
                return Err("it was slow, and other clients waited".to_owned());
            }
        };
        self.left = self.left.saturating_sub(Duration::from_nanos(Clock::mono_ns().saturating_sub(since_ns)));
        ready.map_err(|error| error.to_string())
    }
}

/// The TLS and compression state of a connection.
pub(in crate::sources) struct Wrapping {
    tls: Option<Box<ServerConnection>>,
    /// Bytes given to rustls since it last returned data.
    without_data: usize,
    /// It ends because of a TLS error, not because of its socket.
    tls_broken: bool,
    /// Decrypted lines of an uncompressed stream.
    plain: Vec<u8>,
    decompressor: Option<Decompressor>,
    /// How it ends after earlier data was passed on.
    end: Option<Ending>,
}

/// Why no more data follows.
enum Ending {
    Unpackable(&'static str),
    /// The decompressed data, or its size, ends the connection.
    Unreadable(Broken),
    /// The peer has closed its side.
    Closed,
    Broken(String),
}

/// Logs a failed handshake, one a minute for each source.
pub(in crate::sources) fn tell_failed(source: &str, from: &str, why: &str, failed: u64) {
    if may_log_now(source) {
        tracing::warn!("source `{source}`: a TLS handshake with {from} failed: {why} ({failed} so far)");
    }
}

/// The same for a connection that is closed after its handshake because of a TLS error.
pub(in crate::sources) fn tell_closed(source: &str, from: &str, why: &str) {
    if may_log_now(source) {
        tracing::warn!("source `{source}`: a TLS connection from {from} is closed: {why}");
    }
}

fn may_log_now(source: &str) -> bool {
    FAILED.note(source, Clock::mono_ns()).is_some()
}

impl Wrapping {
    /// For a connection that was not read yet; `None` without TLS and compression, and for one that another process has
    /// begun to read.
    pub(in crate::sources) fn new(source: &StreamSource, begun: bool) -> Option<Wrapping> {
        let decompressor = Decompressor::new(source.plan.compression);
        if begun || (decompressor.is_none() && source.tls.is_none()) {
            return None;
        }
        let mut wrapping = Wrapping {
            tls: None,
            without_data: 0,
            tls_broken: false,
            plain: Vec::new(),
            decompressor,
            end: None,
        };
        if let Some(config) = &source.tls {
            match ServerConnection::new(config.clone()) {
                Ok(tls) => wrapping.tls = Some(Box::new(tls)),
                Err(error) => wrapping.end = Some(Ending::Broken(error.to_string())),
            }
        }
        Some(wrapping)
    }

    /// True for a connection that ends because of a TLS error, not because of its socket.
    pub(in crate::sources) fn is_tls_broken(&self) -> bool {
        self.tls_broken
    }

    pub(in crate::sources) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Does the TLS handshake. Data right after it is kept. Not cancel-safe: close the connection then.
    ///
    /// # Errors
    /// The reason in words.
    pub(in crate::sources) async fn shake_hands(
        &mut self,
        (stream, from): (&Stream, PeerKey),
    ) -> Result<(), String> {
        match tokio::time::timeout(SILENCE_MAX, stream.readable()).await {
            Ok(Ok(())) => self.shake_hands_within(HANDSHAKE_MAX, STALL, (stream, from)).await,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_elapsed) => Err("the client sent nothing".to_owned()),
        }
    }

    async fn shake_hands_within(
        &mut self,
        limit: Duration,
        stall: Duration,
        (stream, peer): (&Stream, PeerKey),
    ) -> Result<(), String> {
        let all = HANDSHAKES.with(Arc::clone);
        let place = tokio::time::timeout(PLACE_MAX, all.begin(peer)).await;
        let Ok(one) = place else { return Err("too many other handshakes were in progress".to_owned()) };
        let mut patience = Patience { one, stall, left: stall };
        // At the timeout the connection is closed.
        let done = tokio::time::timeout(limit, self.shake(stream, (&all, peer), &mut patience));
        done.await.unwrap_or_else(|_elapsed| Err("it took too long".to_owned()))?;
        match (&self.end, self.is_handshaking()) {
            (Some(Ending::Broken(why)), true) => Err(why.clone()),
            (Some(_), true) => Err("the client went away".to_owned()),
            _ => Ok(()),
        }
    }

    async fn shake(
        &mut self,
        stream: &Stream,
        (all, peer): (&Handshakes, PeerKey),
        patience: &mut Patience,
    ) -> Result<(), String> {
        while self.is_handshaking() && self.end.is_none() {
            patience.wait(stream.readable()).await?;
            let read = || {
                read_scratch(stream, |bytes| {
                    self.decrypt(bytes);
                    Ok(())
                })
            };
            match all.step(peer, read).await {
                Ok(_some) => {}
                Err(End::Broken(why)) => return Err(why),
                Err(_end) => return Err("the client went away".to_owned()),
            }
            loop {
                match self.answer(stream) {
                    Ok(false) => break,
                    Ok(true) => patience.wait(stream.writable()).await?,
                    // Session tickets. A client that has already sent its data and disconnected needs none, and its
                    // data counts.
                    Err(_gone) if !self.is_handshaking() => break,
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        Ok(())
    }

    /// True when there may be lines, or an end, without another read of the socket.
    pub(in crate::sources) fn has_more(&self) -> bool {
        let unpacks = self.decompressor.as_ref().is_some_and(Decompressor::has_more);
        unpacks || !self.plain.is_empty() || self.end.is_some()
    }

    /// One read of buffered data, or of the socket. `None` when there was nothing to read.
    pub(in crate::sources) fn read_once(
        &mut self,
        stream: &Stream,
        intake: &mut Intake,
    ) -> Result<Option<Batches<'static>>, End> {
        let unpacks = self.decompressor.as_ref().is_some_and(Decompressor::has_more);
        if !unpacks && self.plain.is_empty() {
            if let Some(end) = self.end.take() {
                if let Some(tls) = &mut self.tls {
                    // A client that closes in order may wait for our close message.
                    tls.send_close_notify();
                    let _unsent = self.answer(stream);
                }
                return Err(self.ended(end, intake));
            }
            match read_scratch(stream, |bytes| {
                self.take(bytes);
                Ok(())
            }) {
                Ok(Some(())) => {}
                Ok(None) => return Ok(None),
                // With TLS an end is announced; otherwise a third party may have caused it.
                Err(End::Orderly) if self.tls.is_some() => {
                    return Err(match self.ended(Ending::Closed, intake) {
                        End::Orderly => End::CutOff,
                        end => end,
                    });
                }
                Err(End::Orderly) => return Err(self.ended(Ending::Closed, intake)),
                Err(end) => return Err(end),
            }
            // Pending TLS messages may wait: a reply to a key update, or the reason for the end.
            let _unsent = self.answer(stream);
        }
        UNWRAPPED.with_borrow_mut(|lines| {
            lines.clear();
            let mut broken = None;
            match &mut self.decompressor {
                Some(decompressor) => {
                    broken = decompressor.decompress(lines).err();
                    intake.set_decompressor_bytes(
                        decompressor.block_bytes().saturating_sub(UNPACKER_FREE_BYTES),
                    );
                }
                None => lines.append(&mut std::mem::take(&mut self.plain)),
            }
            let batch = take_apart(lines, intake);
            if let (Some(broken @ Broken::NoRoom(_)), Some(decompressor)) =
                (intake.broken(), &mut self.decompressor)
            {
                decompressor.discard();
                intake.set_decompressor_bytes(0);
                self.end = Some(Ending::Unreadable(broken));
                return Ok(Some(batch));
            }
            if let Some(broken) = broken {
                intake.reject_compression(broken.why());
                self.end = Some(Ending::Unpackable(broken.why()));
            }
            Ok(Some(batch))
        })
    }

    /// Adds bytes from the socket.
    fn take(&mut self, bytes: &[u8]) {
        match (&self.tls, &mut self.decompressor) {
            (Some(_), _) => self.decrypt(bytes),
            (None, Some(decompressor)) => decompressor.push(bytes),
            (None, None) => self.plain.extend_from_slice(bytes),
        }
    }

    /// Passes decrypted data to the decompressor, or keeps it as lines. Data before an error counts, too.
    fn decrypt(&mut self, mut bytes: &[u8]) {
        let Some(tls) = &mut self.tls else { return };
        let start = self.plain.len();
        while !bytes.is_empty() && self.end.is_none() {
            let (before, handshaking) = (self.plain.len(), tls.is_handshaking());
            let read = tls.read_tls(&mut bytes).and_then(|len| {
                self.without_data += len;
                let state = tls.process_new_packets();
                match tls.reader().read_to_end(&mut self.plain) {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                    _ => {}
                }
                state.map_err(io::Error::other)
            });
            if self.plain.len() > before || handshaking != tls.is_handshaking() {
                self.without_data = 0;
            }
            match read {
                Ok(state) if state.peer_has_closed() => self.end = Some(Ending::Closed),
                Ok(_) if self.without_data > WITHOUT_DATA_BYTES_MAX => {
                    let why = format!("more than {WITHOUT_DATA_BYTES_MAX} bytes of TLS without data");
                    (self.end, self.tls_broken) = (Some(Ending::Broken(why)), true);
                }
                Ok(_) => {}
                Err(error) => {
                    self.tls_broken = true;
                    self.end = Some(Ending::Broken(tls::words::connecting(&error, "tls.client_ca")));
                }
            }
        }
        if let Some(decompressor) = &mut self.decompressor {
            decompressor.push(&self.plain[start..]);
            // An idle connection keeps only the decompressor's state.
            self.plain = Vec::new();
        }
    }

    /// Writes a reply, as far as the socket accepts it, and takes the written part away. False when there is more to write.
    pub(in crate::sources) fn write(&mut self, stream: &Stream, reply: &mut &[u8]) -> io::Result<bool> {
        loop {
            // rustls takes at most 64 KiB before they are written.
            if self.answer(stream)? {
                return Ok(false);
            }
            if reply.is_empty() {
                return Ok(true);
            }
            let Some(tls) = &mut self.tls else { return stream.write_some(reply) };
            let taken = tls.writer().write(reply)?;
            if taken == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            *reply = &reply[taken..];
        }
    }

    /// Writes pending TLS messages, as far as the socket accepts them. True when there are more.
    fn answer(&mut self, stream: &Stream) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        while tls.wants_write() {
            match tls.write_tls(&mut Socket(stream)) {
                Ok(_len) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// How it has ended. A stream that ends inside a block has lost data.
    fn ended(&mut self, end: Ending, intake: &mut Intake) -> End {
        match end {
            Ending::Unpackable(why) => End::Unpackable(why),
            Ending::Unreadable(broken) => End::Unreadable(broken),
            Ending::Broken(why) => End::Broken(why),
            Ending::Closed => match self.decompressor.as_ref().map_or(Ok(()), Decompressor::end) {
                Ok(()) => End::Orderly,
                Err(broken) => {
                    intake.reject_compression(broken.why());
                    End::Unpackable(broken.why())
                }
            },
        }
    }
}

struct Socket<'a>(&'a Stream);

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use rustls::crypto::ring;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::super::handshakes::HANDSHAKES_PER_PEER_MAX;
    use super::*;

    /// An address that a socket pair does not have.
    const PEER: PeerKey = PeerKey::V4(0x0a00_0001);

    /// A server's end of a connection, and a client's with its socket.
    fn ends() -> (Wrapping, Stream, ClientConnection, UnixStream) {
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
        let key = made.signing_key.serialize_der().try_into().expect("a key");
        let provider = || Arc::new(ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("known versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("they belong together");
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a certificate");
        let client = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("known versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("a.test").expect("a name");
        let client = ClientConnection::new(Arc::new(client), name).expect("a good config");
        let tls = ServerConnection::new(Arc::new(server)).expect("a good config");
        let tls = Some(Box::new(tls));
        let wrapping = Wrapping {
            tls,
            without_data: 0,
            tls_broken: false,
            plain: Vec::new(),
            decompressor: None,
            end: None,
        };
        let (near, far) = UnixStream::pair().expect("two sockets");
        (wrapping, Stream::Unix(far), client, near)
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn a_handshake_succeeds_in_time_or_times_out() {
        run(async {
            let (mut wrapping, stream, _client, _silent) = ends();
            let limit = Duration::from_millis(1);
            let done = wrapping.shake_hands_within(limit, STALL, (&stream, PEER)).await;
            assert_eq!(done, Err("it took too long".to_owned()));
            let (mut wrapping, stream, _client, gone) = ends();
            drop(gone);
            assert_eq!(wrapping.shake_hands((&stream, PEER)).await, Err("the client went away".to_owned()));
        });
    }

    #[test]
    fn the_timeout_of_a_handshake_begins_with_its_slot() {
        run(async {
            let all = HANDSHAKES.with(Arc::clone);
            let (mut waits, stream, _client, gone) = ends();
            let mut others = Vec::new();
            for _ in 0..HANDSHAKES_PER_PEER_MAX {
                others.push(all.begin(PEER).await);
            }
            let limit = Duration::from_millis(50);
            let frees = async {
                tokio::time::sleep(4 * limit).await;
                drop(gone);
                others.clear();
            };
            let (done, ()) = tokio::join!(waits.shake_hands_within(limit, STALL, (&stream, PEER)), frees);
            assert_eq!(done, Err("the client went away".to_owned()), "and not that it took too long");
        });
    }

    #[test]
    fn memory_of_an_endless_tls_message_is_limited() {
        let (mut wrapping, ..) = run(async { ends() });
        // The beginning of a ClientHello of 65520 bytes, in records of 16 KiB.
        let mut said = 0;
        while wrapping.end.is_none() {
            let mut record = vec![0x16, 3, 1, 0x40, 0];
            record.resize(5 + 0x4000, 0);
            if said == 0 {
                record[5..9].copy_from_slice(&[1, 0, 0xff, 0xf0]);
            }
            wrapping.decrypt(&record);
            said += record.len();
        }
        assert!(matches!(&wrapping.end, Some(Ending::Broken(why)) if why.contains("without data")));
        assert!(said <= WITHOUT_DATA_BYTES_MAX + 2 * 0x4000, "{said}");
    }

    #[test]
    fn data_resets_the_limit_of_bytes_without_data() {
        run(async {
            let (mut wrapping, stream, mut client, mut socket) = ends();
            let says = async move {
                let mut wire = Vec::new();
                while client.is_handshaking() {
                    client.write_tls(&mut wire).expect("memory");
                    socket.write_all(&wire).await.expect("it listens");
                    wire.clear();
                    let mut answer = [0; 4096];
                    let len = socket.read(&mut answer).await.expect("it answers");
                    client.read_tls(&mut &answer[..len]).expect("memory");
                    client.process_new_packets().expect("a good answer");
                }
                client
            };
            let finishes = async {
                let mut client = says.await;
                let mut wire = Vec::new();
                client.write_tls(&mut wire).expect("memory");
                (client, wire)
            };
            let (mut client, wire) = tokio::select! {
                biased;
                _done = wrapping.shake_hands((&stream, PEER)) => panic!("its last word is not sent"),
                finished = finishes => finished,
            };
            wrapping.decrypt(&wire);
            assert!(!wrapping.is_handshaking());
            assert_eq!(wrapping.without_data, 0, "a long handshake takes nothing from the first record");
            for _ in 0..20 {
                client.writer().write_all(&[b'x'; 16_384]).expect("memory");
                let mut record = Vec::new();
                while client.wants_write() {
                    client.write_tls(&mut record).expect("memory");
                }
                wrapping.decrypt(&record);
            }
            assert_eq!((wrapping.plain.len(), wrapping.end.is_none()), (20 * 16_384, true));
        });
    }

    #[test]
    fn other_work_is_done_between_the_handshakes_of_a_burst() {
        run(async {
            let mut near = Vec::new();
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..20 {
                let (mut wrapping, stream, mut client, socket) = ends();
                let mut hello = Vec::new();
                client.write_tls(&mut hello).expect("memory");
                assert_eq!(socket.try_write(&hello).expect("there is room"), hello.len());
                near.push(socket);
                tasks.spawn(async move { wrapping.shake_hands((&stream, PEER)).await });
            }
            let mut answered = 0;
            while answered < near.len() {
                tokio::task::yield_now().await;
                let now = near.iter().filter(|socket| is_readable(socket)).count();
                assert!(now <= answered + 1, "{now} after {answered}");
                answered = now;
            }
            drop(near);
            while let Some(done) = tasks.join_next().await {
                assert!(done.expect("no panic").is_err(), "the client went away");
            }
        });
    }

    /// True when there is data; it is not read.
    fn is_readable(socket: &UnixStream) -> bool {
        let socket = socket2::SockRef::from(socket);
        socket.peek(&mut [std::mem::MaybeUninit::uninit()]).is_ok()
    }

    #[test]
    fn a_slow_handshake_gives_its_slot_to_waiting_ones() {
        run(async {
            let all = HANDSHAKES.with(Arc::clone);
            let (mut slow, stream, _client, near) = ends();
            let peer = PEER;
            let mut others = Vec::new();
            for _ in 1..HANDSHAKES_PER_PEER_MAX {
                others.push(all.begin(peer).await);
            }
            // It has begun, and says no more.
            near.try_write(&[0x16]).expect("there is room");
            let (mut next, other_stream, _client, gone) = ends();
            drop(gone);
            // Nothing ends here but by order: no handshake has a limit, and the slow one has the last place before the next
            // one asks. A runtime lets a task do only so much between two waits, and would turn that round.
            let (limit, stall) = (Duration::MAX, Duration::from_millis(1));
            let mut slow =
                pin!(tokio::task::unconstrained(slow.shake_hands_within(limit, stall, (&stream, PEER))));
            assert!(slow.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            let (slow, next) =
                tokio::join!(slow, next.shake_hands_within(limit, stall, (&other_stream, PEER)));
            assert_eq!(slow, Err("it was slow, and other clients waited".to_owned()));
            assert_eq!(next, Err("the client went away".to_owned()));
        });
    }

    #[test]
    fn what_a_client_said_before_it_went_away_counts() {
        run(async {
            let (mut wrapping, stream, mut client, mut socket) = ends();
            client.writer().write_all(b"a 1 2\n").expect("memory");
            let says = async move {
                let mut wire = Vec::new();
                while client.wants_write() {
                    client.write_tls(&mut wire).expect("memory");
                    socket.write_all(&wire).await.expect("it listens");
                    wire.clear();
                    if client.is_handshaking() {
                        let mut answer = [0; 4096];
                        let len = socket.read(&mut answer).await.expect("it answers");
                        client.read_tls(&mut &answer[..len]).expect("memory");
                        client.process_new_packets().expect("a good answer");
                    }
                }
                // Nobody reads the tickets that come now.
            };
            let (done, ()) = tokio::join!(wrapping.shake_hands((&stream, PEER)), says);
            assert_eq!(done, Ok(()));
            assert_eq!(wrapping.plain, b"a 1 2\n");
        });
    }
}
