//! A WebSocket: messages to a subscriber, or events of a client (spec riemann §6.2).
//!
//! Path of a message: `pipeline::Subscriber` -> [`subscribed`] -> the library's frames -> the socket, with its time limit for writes.
//! Not here: its handshake (`request`).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use pipeline::{Received, Subscriber};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::connection::{Begun, Connection, PIECE_BYTES, PING_EVERY};
use super::put::Ends;
use super::request::{SocketOf, Wish};

use crate::sources::listener::{Order, ordered};
use crate::sources::stream::End;
use sys::clock::Clock;

/// A client that is silent for so long, and does not answer pings, is closed.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// Frames that a subscriber may send between two pings; they have no meaning.
const FRAMES_MAX: u32 = 1_000;
/// Longest frame of a subscriber.
const FRAME_BYTES_MAX: usize = 4 * 1024;
/// Longest frame with an event: it is in memory until it is whole. A body has longer lines.
const EVENT_BYTES_MAX: usize = 64 * 1024;
/// Bytes that one read of a socket may have: buffers of thousands of subscribers take memory.
const READ_BYTES: usize = 4 * 1024;
/// The time for the client's half of the close.
const CLOSE_MAX: Duration = Duration::from_secs(1);
/// Bytes that a reason may have in a frame.
const REASON_BYTES_MAX: usize = 120;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Why a WebSocket ends: the code and the reason for its client; none if that is gone.
type Ended = Option<(CloseCode, String)>;

/// Serves a WebSocket until its end.
pub(super) async fn serve(
    connection: &Connection<'_>,
    io: TokioIo<Upgraded>,
    wish: Wish,
    orders: &mut watch::Receiver<Order>,
) -> End {
    let Wish::Socket { of, .. } = wish else { return End::Orderly };
    let bytes_max = match of {
        Ok(SocketOf::Events) => EVENT_BYTES_MAX,
        Ok(SocketOf::Subscription(_)) | Err(_) => FRAME_BYTES_MAX,
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(READ_BYTES)
        .max_message_size(Some(bytes_max))
        .max_frame_size(Some(bytes_max));
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let ended = {
        let mut session = pin!(session(connection, &mut socket, of));
        tokio::select! {
            biased;
            ended = session.as_mut() => Ok(ended),
            _leave = connection.slot.asked_to_leave() => Err(End::Replaced),
            _order = ordered(orders) => {
                // Events are handed on to their end.
                tokio::select! {
                    biased;
                    ended = session.as_mut() => Ok(ended),
                    _handed_on = connection.handing.lock() => {
                        Ok(Some((CloseCode::Away, "the daemon stops".to_owned())))
                    }
                }
            }
        }
    };
    match ended {
        Err(end) => end,
        Ok(None) => End::Orderly,
        Ok(Some((code, reason))) => {
            tracing::debug!("WebSocket of {}: {reason}", connection.from);
            // A client that does not read is cut off.
            let _late = timeout(CLOSE_MAX, say_goodbye(&mut socket, code, &reason)).await;
            End::Orderly
        }
    }
}

/// Sends the close, and waits for that of the client.
async fn say_goodbye(socket: &mut Socket, code: CloseCode, reason: &str) {
    let end = reason.floor_char_boundary(REASON_BYTES_MAX);
    let frame = CloseFrame { code, reason: reason[..end].into() };
    if socket.close(Some(frame)).await.is_ok() {
        while let Some(Ok(_frame)) = socket.next().await {}
    }
}

async fn session(connection: &Connection<'_>, socket: &mut Socket, of: Result<SocketOf, String>) -> Ended {
    let begun = match of {
        Ok(SocketOf::Events) => return events(connection, socket).await,
        Ok(SocketOf::Subscription(of)) => connection.begin(&of).await,
        Err(why) => Err(why),
    };
    match begun {
        Ok(begun) => subscribed(socket, begun).await,
        Err(why) => Some((CloseCode::Policy, why)),
    }
}

/// Sends what the index has, and what comes later.
async fn subscribed(socket: &mut Socket, Begun { found, later }: Begun) -> Ended {
    if let Some((mut query, _room)) = found {
        let (mut json, mut bytes) = (Vec::new(), 0);
        while query.next_json(&mut json) {
            let message = String::from_utf8_lossy(&std::mem::take(&mut json)).into_owned();
            bytes += message.len();
            socket.feed(Message::text(message)).await.ok()?;
            if bytes >= PIECE_BYTES {
                socket.flush().await.ok()?;
                bytes = 0;
                tokio::task::yield_now().await;
            }
        }
        socket.flush().await.ok()?;
    }
    let Some(later) = later else { return Some((CloseCode::Normal, "these are all".to_owned())) };
    follow(socket, later).await
}

/// Sends the messages of a subscription.
async fn follow(socket: &mut Socket, mut later: Subscriber) -> Ended {
    let mut pings = interval(PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut heard_ns, mut frames) = (Clock::mono_ns(), 0);
    let mut messages: Vec<Arc<str>> = Vec::new();
    loop {
        // All branches are cancel-safe: messages and frames stay where they are.
        let received = tokio::select! {
            biased;
            frame = socket.next() => {
                frame?.ok()?;
                heard_ns = Clock::mono_ns();
                frames += 1;
                if frames > FRAMES_MAX {
                    return Some((CloseCode::Policy, "a subscriber has nothing to say".to_owned()));
                }
                continue;
            }
            _ = pings.tick() => {
                frames = 0;
                if Clock::mono_ns() - heard_ns > SILENCE_MAX.as_nanos() as u64 {
                    return Some((CloseCode::Policy, "no answer to pings".to_owned()));
                }
                socket.send(Message::Ping(Bytes::new())).await.ok()?;
                continue;
            }
            received = later.next(PIECE_BYTES, &mut messages) => received,
        };
        match received {
            Received::Messages => {
                for message in messages.drain(..) {
                    socket.feed(Message::text(&*message)).await.ok()?;
                }
                socket.flush().await.ok()?;
            }
            Received::Lost(lost) => {
                return Some((CloseCode::Again, format!("too slow: {lost} messages are lost")));
            }
            Received::TooSlow => {
                let why = "the query takes too much work for each event";
                return Some((CloseCode::Policy, why.to_owned()));
            }
            Received::Closed => return Some((CloseCode::Away, "the streams are gone".to_owned())),
        }
    }
}

/// Takes an event of each frame, and replies to it.
async fn events(connection: &Connection<'_>, socket: &mut Socket) -> Ended {
    let source = connection.updates.borrow().clone();
    let mut events = connection.events(source);
    let ended = loop {
        let frame = match socket.next().await {
            Some(Ok(frame)) => frame,
            Some(Err(_)) | None => break None,
        };
        let text = match &frame {
            Message::Text(text) => text.as_bytes(),
            Message::Binary(bytes) => bytes,
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => continue,
        };
        // A line feed is white space in JSON, and would cut the event in two.
        let mut line: Vec<u8> = text.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect();
        line.push(b'\n');
        let mut replies = Vec::new();
        match connection.take(&mut events, &line, &mut replies).await {
            Ok(()) => {}
            Err(Ends(why)) => break Some((CloseCode::Away, why.to_owned())),
        }
        let reply = replies.strip_suffix(b"\n").unwrap_or(&replies);
        if reply.is_empty() {
            break Some((CloseCode::Normal, "there is no event in the frame".to_owned()));
        }
        let reply = String::from_utf8_lossy(reply).into_owned();
        if socket.send(Message::text(reply)).await.is_err() {
            break None;
        }
    };
    connection.end(&mut events, &mut Vec::new(), false).await;
    ended
}
