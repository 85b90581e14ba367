//! F19: `kill -9` again and again while events go through a Riemann config with counters, windows, forks of `by`, `changed-state` and an
//! index.
//!
//! After each start the index must be that of a run of the first so many events, and these events must have come at most a checkpoint
//! interval before the kill. The client goes on with the event after them. What the streams remember besides the index shows in what comes
//! next: at the end the index must be that of a run without a kill.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::{Duration, Instant};

use model::{EventRef, EventTime, EventsBuilder, NumberRef, TextField};
use wire::riemann::{self, Limits};

use crate::finding::{Bench, End, Finding, median};
use crate::support::{Builder, Daemon};

/// What the index gets: sums of all events, of each service, of the last five, of each ten, of each second of their time; and the number
/// of changes of the state of the service that changed last.
const STREAMS: &str = "
(def i (index))
(defn as [service & children] (apply smap (fn [e] {:host \"f19\" :service (if (fn? service) (service e) service)
                                                   :metric (:metric e) :time (:time e) :ttl 1e12}) children))
(streams
  (counter (as \"sum\" i))
  (by :service (counter (as (fn [e] (str \"fork-\" (:service e))) i)))
  (changed-state {:init \"ok\"} (with :metric 1 (counter (as \"changes\" i))))
  (moving-event-window 5 (combine folds/sum (as \"last-five\" i)))
  (fixed-event-window 10 (combine folds/sum (as \"ten\" i)))
  (fixed-time-window 1 (combine folds/sum (as \"second\" i))))";

/// Events of a second of their own time.
const EVENTS_PER_S: u64 = 50;

/// Events of one write, whose replies are read before the next one.
const CHUNK: u64 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// What a checkpoint may take beside its interval, in full runs.
const CHECKPOINT_MAX_S: f64 = 1.0;

/// How a run is done.
#[derive(Clone, Copy)]
struct Form {
    kills: u64,
    services: u64,
    /// Time between two checkpoints, and the longest life of a process.
    interval_s: f64,
    life_s: f64,
}

/// One life of the daemon.
struct Life {
    /// The event after each chunk that was answered, and when it was.
    answered: Vec<(u64, Instant)>,
    /// The event after the last one that was written.
    written: u64,
}

pub(crate) fn run(bench: &Bench) -> End {
    let short = Form { kills: 4, services: 40, interval_s: 0.2, life_s: 0.8 };
    let form = bench.pick(short, Form { kills: 60, services: 2_000, interval_s: 5.0, life_s: 12.0 });
    let folder = tempfile::tempdir().expect("a folder");
    let mut daemon = start(bench, folder.path());
    let mut random = bench.random();
    let mut finding = Finding::default();
    let (mut next, mut again, mut windows) = (0, 0, Vec::new());
    for at in 0..form.kills {
        let ms = 50 + random.below((form.life_s * 1e3) as usize) as u64;
        let (life, killed) = live(&mut daemon, form, next, Duration::from_millis(ms));
        daemon.start_again();
        let index = index(&daemon);
        let kept = kept(&index);
        let whole = kept.is_some_and(|kept| index == expected(kept, form.services));
        finding.promise(whole, || format!("after {kept:?} events the index is {index:?}"));
        let kept = kept.unwrap_or_default();
        finding.promise(kept <= life.written, || format!("{kept} of {} events came", life.written));
        again += life.written - kept.min(life.written);
        let lost = life.answered.iter().find(|(after, _)| *after > kept);
        windows.push(lost.map_or(0.0, |(_, when)| killed.duration_since(*when).as_secs_f64()));
        next = kept;
        bench.say(|| format!("{at} of {} kills", form.kills));
    }
    // On to an end that shows the last restart as well.
    let end = next + 20 * form.services;
    let last = send(&daemon, form, next..end);
    let index = index(&daemon);
    finding.promise(index == expected(end, form.services), || format!("after {end} events: {index:?}"));
    daemon.stop();
    (finding.sent, finding.arrived) = (last.written, kept(&index).unwrap_or_default());
    finding.done = format!("{} kills -9, {} forks", form.kills, form.services);
    let longest = windows.iter().copied().fold(0.0, f64::max);
    finding.figure(format!(
        "{again} events sent again; state of {:.1} s (median), {longest:.1} s at most before the kill",
        median(windows)
    ));
    finding.promise_exact();
    if bench.full {
        finding.promise(longest <= form.interval_s + CHECKPOINT_MAX_S, || {
            format!("the state was that of {longest:.2} s before")
        });
    }
    End::Ran(finding)
}

/// `staunch riemann`, or, for checkpoints in a fraction of a second, its streams in a native file.
fn start(bench: &Bench, folder: &std::path::Path) -> Daemon {
    let head = "(instrumentation {:enabled? false})";
    if bench.full {
        return Builder::riemann(&format!("{head}\n(tcp-server {{:port 0}})\n{STREAMS}")).start();
    }
    let file = folder.join("riemann.config");
    std::fs::write(&file, format!("{head}\n{STREAMS}")).expect("the folder is ours");
    Builder::native(&format!(
        "data_dir = \"{}\"\n[sources.riemann]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [transforms.all]\ntype = \"streams\"\nfrom = [\"riemann\"]\nfile = \"{}\"\ncheckpoint = \"200ms\"\n",
        folder.join("data").display(),
        file.display()
    ))
    .start()
}

/// Kills the daemon while a client sends: that goes on until nobody answers any more.
fn live(daemon: &mut Daemon, form: Form, next: u64, kill_after: Duration) -> (Life, Instant) {
    let killed = std::thread::scope(|scope| {
        let sender = scope.spawn(|| send(daemon, form, next..u64::MAX));
        std::thread::sleep(kill_after);
        daemon.signal("KILL");
        let killed = Instant::now();
        (sender.join().expect("no sender panics"), killed)
    });
    let _status = daemon.wait_exit();
    killed
}

/// Sends these events until the end, or until nobody answers.
fn send(daemon: &Daemon, form: Form, events: Range<u64>) -> Life {
    let mut life = Life { answered: Vec::new(), written: events.start };
    let Ok(mut client) = TcpStream::connect(daemon.at("riemann", "tcp")) else { return life };
    let mut next = events.start;
    while next < events.end {
        let end = (next + CHUNK).min(events.end);
        let sent: Vec<u8> = (next..end).flat_map(|number| framed(&message(number, form.services))).collect();
        life.written = end;
        if client.write_all(&sent).is_err() || !(next..end).all(|_| reply(&mut client).is_some()) {
            return life;
        }
        next = end;
        life.answered.push((next, Instant::now()));
        std::thread::sleep(PAUSE);
    }
    life
}

fn service(number: u64, services: u64) -> u64 {
    number % services
}

/// The state changes with every seventh event of a service.
fn state(number: u64, services: u64) -> &'static str {
    if (number / services / 7).is_multiple_of(2) { "ok" } else { "bad" }
}

fn message(number: u64, services: u64) -> Vec<u8> {
    let mut events = EventsBuilder::default();
    let mut event = events.event();
    event.plain_text(TextField::Host, "f19");
    event.plain_text(TextField::Service, &format!("s{}", service(number, services)));
    event.plain_text(TextField::State, state(number, services));
    event.metric(NumberRef::I64(number.cast_signed()));
    event.time(EventTime::Seconds(1_700_000_000 + (number / EVENTS_PER_S).cast_signed()));
    event.finish();
    let mut out = Vec::new();
    riemann::request(None, events.view().iter(), &mut out);
    out
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(riemann::framed(&mut out, |out| out.extend_from_slice(message)), "messages are short");
    out
}

/// The next reply; none when the connection ends.
fn reply(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    client.read_exact(&mut length).ok()?;
    let mut reply = vec![0; u32::from_be_bytes(length) as usize];
    client.read_exact(&mut reply).ok()?;
    Some(reply)
}

/// Services and metrics in the index, sorted.
fn index(daemon: &Daemon) -> Vec<(String, u64)> {
    let mut client = TcpStream::connect(daemon.at("riemann", "tcp")).expect("it listens");
    let mut query = Vec::new();
    riemann::request(Some("true"), std::iter::empty(), &mut query);
    client.write_all(&framed(&query)).expect("it reads");
    let reply = reply(&mut client).expect("an answer");
    let mut events = EventsBuilder::default();
    riemann::decode(&reply, EventTime::Seconds(0), Limits::default(), &mut events).expect("a message");
    let shown = |event: EventRef<'_>| {
        let metric = match event.metric() {
            Some(NumberRef::I64(metric)) => metric.cast_unsigned(),
            _ => u64::MAX,
        };
        (event.service().unwrap_or_default().to_owned(), metric)
    };
    let mut all: Vec<(String, u64)> = events.view().iter().map(shown).collect();
    all.sort();
    all
}

/// How many events there were, by the sum of the numbers under it. None if there is no such number.
fn kept(index: &[(String, u64)]) -> Option<u64> {
    let Some((_, sum)) = index.iter().find(|(service, _)| service == "sum") else {
        return index.is_empty().then_some(0);
    };
    let count = (2.0 * *sum as f64).sqrt() as u64;
    (count.saturating_sub(2)..count + 3).find(|count| *count > 0 && count * (count - 1) / 2 == *sum)
}

/// The index after so many events.
fn expected(count: u64, services: u64) -> Vec<(String, u64)> {
    let sum = |range: Range<u64>| range.sum::<u64>();
    let mut all = Vec::new();
    let mut add =
        |service: &str, metric: Option<u64>| all.extend(metric.map(|metric| (service.to_owned(), metric)));
    add("sum", (count > 0).then(|| sum(0..count)));
    add("last-five", (count > 0).then(|| sum(count.saturating_sub(5)..count)));
    let ended = |length: u64, open: u64| {
        (open / length).checked_sub(1).map(|last| sum(last * length..(last + 1) * length))
    };
    add("ten", ended(10, count));
    // A second ends with the first event of the next one.
    add("second", ended(EVENTS_PER_S, count.saturating_sub(1)));
    let mut changes = (0..count).filter(|number| {
        let before = number.checked_sub(services).map_or("ok", |before| state(before, services));
        state(*number, services) != before
    });
    // Each service has a counter of its own; the last change is in the index.
    add("changes", changes.next_back().map(|number| number / services / 7));
    for fork in 0..services.min(count) {
        let sum = (fork..count).step_by(services as usize).sum::<u64>();
        add(&format!("fork-s{fork}"), Some(sum));
    }
    all.sort();
    all
}
