//! What stands between a connection's socket and its lines: TLS, and within it a packed stream.
//!
//! Path of a byte: the socket -> [`Wrapping::read_once`] -> `rustls` -> `wire::compression::Decompressor` -> `Intake::stream`.
//! Not here: who reads when (`stream`), certificates (`tls`), how streams are packed (`wire::compression`).
//! Invariant: the socket is read only when everything before has been given on; an idle connection holds what rustls and its
//! decompressor cannot do without: keys and a part of a record, and a window or a part of a block.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use model::{Batches, PeerKey};
use pipeline::{Broken, Intake};
use rustls::ServerConnection;
use wire::compression::Decompressor;

use crate::sources::handshakes::{Handshake, Handshakes, STALL};
use crate::sources::log_throttle::LogThrottle;
use crate::sources::stream::{End, Stream, StreamSource, read_scratch, take_apart};
use sys::clock::Clock;

/// Longest silence before a handshake.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Longest wait for a place, from the first byte on. Peers take turns: only one that is in its own way waits for long.
const PLACE_MAX: Duration = Duration::from_secs(30);

/// Longest handshake, from the moment on that it has its place.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// What the decompressor of a connection may always hold: a window of up to 80 KiB, and a block as long as a small message.
const UNPACKER_FREE_BYTES: usize = 160 * 1024;

/// What a client may send over TLS without a byte of data coming of it: its handshake, and then a part of a record or of a
/// message between two of them. rustls keeps up to 64 KiB of that; a record has 18 KiB at most, and a handshake with a long chain
/// of client certificates, or hundreds of names in one, 10 to 20 KiB.
const WITHOUT_DATA_BYTES_MAX: usize = 32 * 1024;

thread_local! {
    // One buffer for all connections of the runtime's thread: it is in use only between two awaits.
    static UNWRAPPED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    // Each reader has places of its own: its connections are all on its thread.
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

/// What a connection's bytes go through.
pub(super) struct Wrapping {
    tls: Option<Box<ServerConnection>>,
    /// Bytes that rustls was given since it last gave some.
    without_data: usize,
    /// It ends for what came of TLS, and not for its socket.
    tls_broken: bool,
    /// Decrypted, and for nobody to unpack: lines.
    plain: Vec<u8>,
    decompressor: Option<Decompressor>,
    /// How it ends once everything before has been handed on.
    end: Option<Ending>,
}

/// Why nothing follows any more.
enum Ending {
    Unpackable(&'static str),
    /// What was unpacked, or how much of it waits, ends the connection.
    Unreadable(Broken),
    /// The peer has said that it is done.
    Closed,
    Broken(String),
}

/// Tells of a failed handshake, one a minute for each source.
pub(super) fn tell_failed(source: &str, from: &str, why: &str, failed: u64) {
    if is_told_now(source) {
        tracing::warn!("source `{source}`: a TLS handshake with {from} failed: {why} ({failed} so far)");
    }
}

/// The same for a connection that is closed behind its handshake for what came of TLS.
pub(super) fn tell_closed(source: &str, from: &str, why: &str) {
    if is_told_now(source) {
        tracing::warn!("source `{source}`: a TLS connection from {from} is closed: {why}");
    }
}

fn is_told_now(source: &str) -> bool {
    FAILED.note(source, Clock::mono_ns()).is_some()
}

impl Wrapping {
    /// For a connection that nothing was read of; none where its bytes are lines, and for one that another process has
    /// begun to read as lines.
    pub(super) fn new(source: &StreamSource, begun: bool) -> Option<Wrapping> {
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

    /// True for a connection that ends for what came of TLS, and not for its socket.
    pub(super) fn is_tls_broken(&self) -> bool {
        self.tls_broken
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Does what comes before the first byte. What comes right behind it is kept. Not cancel-safe: the connection is to be
    /// closed then.
    ///
    /// # Errors
    /// In words.
    pub(super) async fn shake_hands(&mut self, (stream, from): (&Stream, PeerKey)) -> Result<(), String> {
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
        // A handshake that is left is over: the connection is closed.
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
                    // Tickets for a next time. Who has said all and gone wants none, and what he said counts.
                    Err(_gone) if !self.is_handshaking() => break,
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        Ok(())
    }

    /// True when there may be lines, or an end, without another read of the socket.
    pub(super) fn has_more(&self) -> bool {
        let unpacks = self.decompressor.as_ref().is_some_and(Decompressor::has_more);
        unpacks || !self.plain.is_empty() || self.end.is_some()
    }

    /// One read of what is there, or else of the socket. `None` when there was nothing to read after all.
    pub(super) fn read_once(
        &mut self,
        stream: &Stream,
        intake: &mut Intake,
    ) -> Result<Option<Batches<'static>>, End> {
        let unpacks = self.decompressor.as_ref().is_some_and(Decompressor::has_more);
        if !unpacks && self.plain.is_empty() {
            if let Some(end) = self.end.take() {
                if let Some(tls) = &mut self.tls {
                    // A client that ends in order may wait for the same word from us.
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
                // With TLS an end is said; one that is not may be somebody else's doing.
                Err(End::Orderly) if self.tls.is_some() => {
                    return Err(match self.ended(Ending::Closed, intake) {
                        End::Orderly => End::CutOff,
                        end => end,
                    });
                }
                Err(End::Orderly) => return Err(self.ended(Ending::Closed, intake)),
                Err(end) => return Err(end),
            }
            // What rustls has to say need not be said now: an answer to a new key, or why it ends.
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

    /// Bytes of the socket.
    fn take(&mut self, bytes: &[u8]) {
        match (&self.tls, &mut self.decompressor) {
            (Some(_), _) => self.decrypt(bytes),
            (None, Some(decompressor)) => decompressor.push(bytes),
            (None, None) => self.plain.extend_from_slice(bytes),
        }
    }

    /// Gives what is decrypted to the decompressor, or keeps it as lines. What came before an error is given as well.
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
            // What an idle connection keeps is the decompressor's state.
            self.plain = Vec::new();
        }
    }

    /// Writes what rustls has to say, as far as the socket takes it. True when there is more.
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

    /// How it has ended. A stream that ends within a block has lost something.
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

    use super::*;
    use crate::sources::handshakes::HANDSHAKES_PER_PEER_MAX;

    /// Not what a socket pair itself would say.
    const PEER: PeerKey = PeerKey::V4(0x0a00_0001);

    /// A server's end of a connection, and a client's with the socket that it has.
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
    fn a_handshake_ends_in_time_or_is_ended() {
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
    fn the_time_for_a_handshake_begins_with_its_place() {
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
    fn what_rustls_holds_of_a_message_that_never_ends_is_bounded() {
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
    fn data_is_not_bounded_by_what_may_come_without() {
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
    fn a_burst_of_handshakes_is_one_for_each_turn_of_the_others() {
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

    /// True when something has come; it is not taken.
    fn is_readable(socket: &UnixStream) -> bool {
        let socket = socket2::SockRef::from(socket);
        socket.peek(&mut [std::mem::MaybeUninit::uninit()]).is_ok()
    }

    #[test]
    fn one_that_takes_long_gives_way_to_those_that_wait() {
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
