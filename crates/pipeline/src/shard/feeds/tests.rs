use std::sync::atomic::AtomicUsize;
use std::task::Wake;

use streams::riemann::engine::Setup;
use streams::riemann::files::{Files, Recorded};

use super::*;

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn feed() -> Arc<Feed> {
    Arc::new(Feed { channel: "c".into(), query: "true".into(), state: Mutex::default() })
}

/// A config that runs.
fn engine(config: &str) -> Engine {
    let mut files = Files { main: "riemann.config".to_owned(), ..Files::default() };
    files.texts.insert("riemann.config".to_owned(), Ok(config.to_owned()));
    let host = Box::new(Recorded::new(files, 1));
    Engine::load("riemann.config", host, Setup::DEFAULT).unwrap_or_else(|error| panic!("{config}: {error}"))
}

/// A subscriber of channel `c`.
fn subscribe(
    feeds: &mut Feeds,
    engine: &mut Engine,
    query: &str,
) -> Result<(Subscriber, Option<Pump>), WatchError> {
    let compiled = Arc::new(Query::new(query).expect("it is a query"));
    feeds.subscribe(engine, "c", (query, &compiled))
}

/// What a subscriber reads at once.
fn read(subscriber: &mut Subscriber, bell: &Arc<Bell>, bytes_max: usize) -> (Poll<Received>, Vec<String>) {
    let waker = Waker::from(Arc::clone(bell));
    let mut got = Vec::new();
    let poll = subscriber.poll(&mut Context::from_waker(&waker), bytes_max, &mut got);
    (poll, got.iter().map(|message| message.to_string()).collect())
}

#[test]
fn subscribers_read_the_messages_after_their_begin_in_pieces() {
    let (feed, lost, bell) = (feed(), Arc::default(), Arc::<Bell>::default());
    feed.state().push("before".into(), 100);
    let mut subscriber = Subscriber::of(&feed, &lost);
    assert_eq!(read(&mut subscriber, &bell, 100), (Poll::Pending, vec![]));
    for message in ["a", "bb", "c"] {
        feed.state().push(message.into(), 100);
    }
    assert_eq!(
        read(&mut subscriber, &bell, 2),
        (Poll::Ready(Received::Messages), vec!["a".into(), "bb".into()])
    );
    assert_eq!(read(&mut subscriber, &bell, 1), (Poll::Ready(Received::Messages), vec!["c".into()]));
    assert_eq!(read(&mut subscriber, &bell, 1).0, Poll::Pending);
    feed.state().is_closed = true;
    assert_eq!(read(&mut subscriber, &bell, 1).0, Poll::Ready(Received::Closed));
}

#[test]
fn a_subscriber_that_is_too_slow_loses_messages_and_learns_how_many() {
    let (feed, lost, bell) = (feed(), Arc::new(AtomicU64::new(0)), Arc::<Bell>::default());
    let mut subscriber = Subscriber::of(&feed, &lost);
    for message in ["1234", "5678", "90"] {
        feed.state().push(message.into(), 10);
    }
    assert_eq!(read(&mut subscriber, &bell, 1).1, ["1234"], "10 bytes may be unread");
    feed.state().push("x".into(), 10);
    assert_eq!(read(&mut subscriber, &bell, 1).1, ["5678"], "what is lost was read");
    for message in ["yyyyy", "zzz"] {
        feed.state().push(message.into(), 10);
    }
    assert_eq!(read(&mut subscriber, &bell, 1).0, Poll::Ready(Received::Lost(1)));
    assert_eq!(lost.load(Relaxed), 1);
    assert_eq!(read(&mut subscriber, &bell, 100).1, ["x", "yyyyy", "zzz"]);
}

#[test]
fn the_pump_of_a_feed_wakes_its_subscribers_and_without_one_the_shard_does() {
    let (feed, lost) = (feed(), Arc::default());
    let bells: Vec<Arc<Bell>> = (0..3).map(|_| Arc::default()).collect();
    let mut all: Vec<Subscriber> = bells.iter().map(|_| Subscriber::of(&feed, &lost)).collect();
    let woken = || bells.iter().map(|bell| bell.0.load(Relaxed)).collect::<Vec<_>>();
    let mut wait_all = |feed: &Feed| {
        for (subscriber, bell) in all.iter_mut().zip(&bells) {
            while read(subscriber, bell, 9).0 != Poll::Pending {}
        }
        feed.wake();
    };
    let publish = || {
        let mut state = feed.state();
        state.push("a".into(), 9);
        state.is_dirty = true;
        drop(state);
        feed.wake();
    };
    wait_all(&feed);
    assert_eq!(woken(), [0, 0, 0], "there is nothing new");
    publish();
    assert_eq!(woken(), [1, 1, 1], "without a pump");
    let (mut pump, bell) = (Pump(Arc::clone(&feed)), Arc::<Bell>::default());
    let waker = Waker::from(Arc::clone(&bell));
    let poll = |pump: &mut Pump| Pin::new(pump).poll(&mut Context::from_waker(&waker));
    assert_eq!(poll(&mut pump), Poll::Pending);
    wait_all(&feed);
    publish();
    assert_eq!((woken(), bell.0.load(Relaxed)), (vec![1, 1, 1], 1), "the pump first");
    assert_eq!(poll(&mut pump), Poll::Pending);
    assert_eq!(woken(), [2, 2, 2]);
    wait_all(&feed);
    feed.close();
    assert_eq!(poll(&mut pump), Poll::Ready(()));
    assert_eq!(woken(), [3, 3, 3]);
}

#[test]
fn the_end_of_a_config_ends_its_subscribers() {
    let (mut engine, mut feeds) = (engine("(streams prn)"), Feeds::default());
    let bell = Arc::<Bell>::default();
    let (mut subscriber, pump) = subscribe(&mut feeds, &mut engine, "true").expect("few");
    assert!(pump.is_some());
    let (again, pump) = subscribe(&mut feeds, &mut engine, "true").expect("few");
    assert!(pump.is_none(), "it has one");
    assert_eq!(read(&mut subscriber, &bell, 9).0, Poll::Pending);
    drop((feeds, again));
    assert_eq!(bell.0.load(Relaxed), 1);
    assert_eq!(read(&mut subscriber, &bell, 9).0, Poll::Ready(Received::Closed));
}

#[test]
fn subscribers_of_one_query_share_its_messages_until_the_last_one_has_gone() {
    let mut engine = engine("(streams (publish \"c\"))");
    let mut feeds = Feeds::default();
    let [a, b, c] =
        ["true", "true", "metric = 1"].map(|query| subscribe(&mut feeds, &mut engine, query).expect("few").0);
    let open = |feeds: &Feeds| (feeds.figures().open, feeds.figures().queries);
    assert_eq!(open(&feeds), (3, 2));
    drop((a, c));
    feeds.sweep(&mut engine);
    assert_eq!(open(&feeds), (1, 1));
    drop(b);
    feeds.sweep(&mut engine);
    assert_eq!(open(&feeds), (0, 0));
}

#[test]
fn an_event_that_is_too_long_is_not_sent() {
    let (mut one, mut feeds) = (EventsBuilder::default(), Feeds::default());
    let mut engine = engine("(streams prn)");
    let (mut subscriber, _) = subscribe(&mut feeds, &mut engine, "true").expect("few");
    let bell = Arc::<Bell>::default();
    let id = feeds.all[0].0;
    for (bytes, too_long) in [(MESSAGE_BYTES_MAX - 100, 0), (MESSAGE_BYTES_MAX, 1)] {
        let mut event = Event::default();
        event.set(streams::event::Field::Service, streams::value::Value::text(&"x".repeat(bytes)));
        feeds.publish(&[id], (&event, Shape::Map), &mut one);
        assert_eq!(feeds.figures().too_long, too_long, "{bytes} bytes");
    }
    let (_, got) = read(&mut subscriber, &bell, usize::MAX);
    assert_eq!(got.len(), 1);
    assert!(got[0].starts_with("{\"service\":\"xx") && got[0].ends_with("xx\"}"));
}

#[test]
fn subscribers_of_a_query_that_was_ended_are_closed_with_the_reason() {
    let (mut engine, mut feeds) = (engine("(streams prn)"), Feeds::default());
    let bell = Arc::<Bell>::default();
    let (mut subscriber, _pump) = subscribe(&mut feeds, &mut engine, "true").expect("few");
    let (mut other, _pump) = subscribe(&mut feeds, &mut engine, "metric = 1").expect("few");
    let ended = feeds.all[0].0;
    feeds.end(ended);
    assert_eq!(read(&mut subscriber, &bell, 9).0, Poll::Ready(Received::TooSlow));
    assert_eq!(read(&mut other, &bell, 9).0, Poll::Pending);
    assert_eq!((feeds.figures().too_slow, feeds.figures().queries), (1, 1));
}
