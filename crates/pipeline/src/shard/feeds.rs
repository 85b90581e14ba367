//! Clients that subscribe to the events of a Riemann config: what each of them has not read yet (spec riemann §6).
//!
//! Path of an event: `AllStreams::push` -> the effects of the config -> [`Feeds::publish`] (JSON, once for all) -> each [`Feed`] whose query
//! it matches -> [`Subscriber::next`], on the thread of the connection.
//! All subscribers with the same query share one [`Feed`]: its latest messages, and each subscriber's place in them. A subscriber that
//! sleeps costs nothing but its place. One that is too slow has lost messages, finds it out when it reads, and is closed by its connection.
//! The shard wakes one task of a feed, its [`Pump`], which wakes the subscribers on their own thread: the shard does not wake thousands.
//! Not here: which queries an event matches (`streams`), sockets.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use model::EventsBuilder;
use streams::event::Event;
use streams::query::Query;
use streams::riemann::engine::Engine;
use streams::riemann::record;
use streams::riemann::watching::{Shape, WATCHES_MAX, WatchError, WatchId};
use wire::riemann::json::{self, Absent};

/// Bytes of messages that the subscribers of one query may have unread.
const UNREAD_BYTES_MAX: usize = 1 << 20;
/// The same of all queries of a config.
const ALL_UNREAD_BYTES_MAX: usize = 256 << 20;
/// Longest message; a longer one is not sent.
const MESSAGE_BYTES_MAX: usize = ALL_UNREAD_BYTES_MAX / WATCHES_MAX;
const _: () = assert!(MESSAGE_BYTES_MAX <= UNREAD_BYTES_MAX, "each message fits");

/// Counts of a config's subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriberFigures {
    /// Subscribers.
    pub open: u64,
    /// Their different queries.
    pub queries: u64,
    /// Events that went to at least one query.
    pub published: u64,
    /// Messages that subscribers lost because they were too slow.
    pub lost: u64,
    /// Events that were too long to be sent.
    pub too_long: u64,
    /// Subscribers that were closed because their query took too much work for each event.
    pub too_slow: u64,
}

/// The messages for one query.
#[derive(Debug)]
struct Feed {
    channel: Box<str>,
    query: Box<str>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The latest messages.
    messages: VecDeque<Arc<str>>,
    /// The number of the first of them.
    first: u64,
    bytes: usize,
    /// Subscribers that wait, by their numbers.
    waiting: BTreeMap<u64, Waker>,
    /// The task that wakes them, if it runs and waits.
    pump: Option<Waker>,
    /// There are messages for which they were not woken.
    is_dirty: bool,
    subscribers: u64,
    next_number: u64,
    /// The config is gone.
    is_closed: bool,
    /// The config has ended its query.
    is_too_slow: bool,
}

impl State {
    /// The number of the next message.
    fn end(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    fn push(&mut self, message: Arc<str>, bytes_max: usize) {
        self.bytes += message.len();
        self.messages.push_back(message);
        while self.bytes > bytes_max {
            let Some(oldest) = self.messages.pop_front() else { break };
            self.bytes -= oldest.len();
            self.first += 1;
        }
    }
}

impl Feed {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the subscribers that wait, by their pump if there is one.
    fn wake(&self) {
        let pump = {
            let mut state = self.state();
            if !std::mem::take(&mut state.is_dirty) {
                return;
            }
            state.pump.clone()
        };
        match pump {
            Some(pump) => pump.wake(),
            None => self.wake_all(),
        }
    }

    /// Wakes them here, outside of the lock.
    fn wake_all(&self) {
        let waiting = std::mem::take(&mut self.state().waiting);
        waiting.into_values().for_each(Waker::wake);
    }

    /// Ends it: its config is gone, or nobody reads it.
    fn close(&self) {
        let mut state = self.state();
        (state.is_closed, state.is_dirty) = (true, true);
        drop(state);
        self.wake();
    }
}

/// The task that wakes the subscribers of a feed, on their thread. It ends with the feed.
#[derive(Debug)]
pub struct Pump(Arc<Feed>);

impl Future for Pump {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.state();
        let is_closed = state.is_closed;
        state.pump = (!is_closed).then(|| cx.waker().clone());
        drop(state);
        self.0.wake_all();
        if is_closed { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        // From now on the shard wakes them.
        self.0.state().pump = None;
        self.0.wake_all();
    }
}

/// What a subscriber gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Messages.
    Messages,
    /// It was too slow: so many messages are lost.
    Lost(u64),
    /// There is no config any more.
    Closed,
    /// Its query takes too much work for each event.
    TooSlow,
}

/// A client of a feed.
#[derive(Debug)]
pub struct Subscriber {
    feed: Arc<Feed>,
    number: u64,
    /// The number of the next message to read.
    at: u64,
    lost: Arc<AtomicU64>,
}

impl Subscriber {
    fn of(feed: &Arc<Feed>, lost: &Arc<AtomicU64>) -> Subscriber {
        let mut state = feed.state();
        let number = state.next_number;
        state.next_number += 1;
        state.subscribers += 1;
        Subscriber { feed: Arc::clone(feed), number, at: state.end(), lost: Arc::clone(lost) }
    }

    /// Waits for messages, and appends at least one and about `bytes_max` bytes of them. Cancel-safe.
    pub fn next<'a>(&'a mut self, bytes_max: usize, into: &'a mut Vec<Arc<str>>) -> Next<'a> {
        Next { subscriber: self, bytes_max, into }
    }

    /// As [`Subscriber::next`], for a caller that is a future itself.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        bytes_max: usize,
        into: &mut Vec<Arc<str>>,
    ) -> Poll<Received> {
        let mut state = self.feed.state();
        let Some(skipped) = self.at.checked_sub(state.first) else {
            let lost = state.first - self.at;
            self.at = state.first;
            self.lost.fetch_add(lost, Relaxed);
            return Poll::Ready(Received::Lost(lost));
        };
        let mut bytes = 0;
        // The difference is at most the number of messages in memory.
        for message in state.messages.iter().skip(skipped as usize) {
            if bytes >= bytes_max {
                break;
            }
            bytes += message.len();
            into.push(Arc::clone(message));
            self.at += 1;
        }
        if bytes > 0 {
            return Poll::Ready(Received::Messages);
        }
        if state.is_too_slow {
            return Poll::Ready(Received::TooSlow);
        }
        if state.is_closed {
            return Poll::Ready(Received::Closed);
        }
        state.waiting.insert(self.number, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let mut state = self.feed.state();
        state.subscribers -= 1;
        state.waiting.remove(&self.number);
    }
}

/// See [`Subscriber::next`].
#[derive(Debug)]
pub struct Next<'a> {
    subscriber: &'a mut Subscriber,
    bytes_max: usize,
    into: &'a mut Vec<Arc<str>>,
}

impl Future for Next<'_> {
    type Output = Received;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Received> {
        let Next { subscriber, bytes_max, into } = &mut *self;
        subscriber.poll(cx, *bytes_max, into)
    }
}

/// The feeds of one config.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    all: Vec<(WatchId, Arc<Feed>)>,
    /// Some have messages whose subscribers were not woken yet.
    is_dirty: bool,
    published: u64,
    too_long: u64,
    too_slow: u64,
    lost: Arc<AtomicU64>,
    json: Vec<u8>,
}

impl Feeds {
    /// A subscriber of a channel of the config.
    pub(super) fn subscribe(
        &mut self,
        engine: &mut Engine,
        channel: &str,
        (text, query): (&str, &Arc<Query>),
    ) -> Result<(Subscriber, Option<Pump>), WatchError> {
        let is_same = |feed: &Feed| *feed.channel == *channel && *feed.query == *text;
        if let Some((_, feed)) = self.all.iter().find(|(_, feed)| is_same(feed)) {
            return Ok((Subscriber::of(feed, &self.lost), None));
        }
        self.sweep(engine);
        let id = engine.watch(channel, Arc::clone(query))?;
        let feed = Feed { channel: channel.into(), query: text.into(), state: Mutex::default() };
        let feed = Arc::new(feed);
        let subscriber = Subscriber::of(&feed, &self.lost);
        let pump = Pump(Arc::clone(&feed));
        self.all.push((id, feed));
        Ok((subscriber, Some(pump)))
    }

    /// Removes feeds that nobody reads any more.
    pub(crate) fn sweep(&mut self, engine: &mut Engine) {
        self.all.retain(|(id, feed)| {
            let is_read = feed.state().subscribers > 0;
            if !is_read {
                engine.unwatch(*id);
                feed.close();
            }
            is_read
        });
    }

    /// The config has ended a query.
    pub(crate) fn end(&mut self, watch: WatchId) {
        let Some(at) = self.all.iter().position(|(id, _)| *id == watch) else { return };
        let (_, feed) = self.all.remove(at);
        let mut state = feed.state();
        state.is_too_slow = true;
        self.too_slow += state.subscribers;
        drop(state);
        feed.close();
    }

    /// An event for the subscribers of these queries. `one` is a buffer.
    pub(crate) fn publish(
        &mut self,
        watches: &[WatchId],
        (event, shape): (&Event, Shape),
        one: &mut EventsBuilder,
    ) {
        self.json.clear();
        if !write(event, shape, one, &mut self.json) || self.json.len() > MESSAGE_BYTES_MAX {
            self.too_long += 1;
            return;
        }
        self.published += 1;
        let message: Arc<str> = String::from_utf8_lossy(&self.json).into();
        let bytes_max = UNREAD_BYTES_MAX.min(ALL_UNREAD_BYTES_MAX / self.all.len().max(1));
        // Both are in the order of their ids.
        let mut watches = watches.iter().peekable();
        for (id, feed) in &self.all {
            if watches.next_if_eq(&id).is_some() {
                let mut state = feed.state();
                state.push(Arc::clone(&message), bytes_max);
                (state.is_dirty, self.is_dirty) = (true, true);
            }
        }
    }

    /// Wakes the subscribers of what was published.
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.is_dirty) {
            self.all.iter().for_each(|(_, feed)| feed.wake());
        }
    }

    pub(crate) fn figures(&self) -> SubscriberFigures {
        SubscriberFigures {
            open: self.all.iter().map(|(_, feed)| feed.state().subscribers).sum(),
            queries: self.all.len() as u64,
            published: self.published,
            lost: self.lost.load(Relaxed),
            too_long: self.too_long,
            too_slow: self.too_slow,
        }
    }
}

impl Drop for Feeds {
    fn drop(&mut self) {
        self.all.iter().for_each(|(_, feed)| feed.close());
    }
}

/// Appends the JSON of an event. False if it has more tags or attributes than an event may have.
pub(super) fn write(event: &Event, shape: Shape, one: &mut EventsBuilder, out: &mut Vec<u8>) -> bool {
    let absent = match shape {
        Shape::Record => Absent::Null,
        Shape::Map => Absent::Omitted,
    };
    one.clear();
    let is_written = record::write(event, one).is_ok();
    if is_written {
        one.view().iter().for_each(|event| json::encode(event, absent, out));
    }
    is_written
}

#[cfg(test)]
mod tests;
