//! A15: what clients and a colleague's config can do to Riemann's streams: new hosts without an end, streams that throw, loop, recurse and
//! search for each event, numbers that are none, replies that nobody reads, a mail server that hangs, and a reload every second.
//!
//! Beside each of them an honest client sends events and waits for their replies; a counter of the config must have all of them at the end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::{EventTime, EventsBuilder, NumberRef, TextField};
use wire::riemann::{self, Limits};

use crate::attacker::{Manner, Target};
use crate::finding::End;
use crate::payloads;
use crate::scene::{Attack, Scene};
use crate::support::Builder;
use crate::support::bench::Bench;

/// Longest wait of the honest client for one reply, when it gives up.
const REPLY_MAX: Duration = Duration::from_secs(30);

/// The config; `MAIL` is the port of a mail server that hangs.
const STREAMS: &str = "
(instrumentation {:enabled? false})
(def i (index))
(def mail (mailer {:host \"127.0.0.1\" :port MAIL :from \"staunch@ops.test\"}))
(periodically-expire 1)
(streams
  (where (host \"honest\") (counter (smap (fn [e] (assoc e :service \"sum\" :ttl 3600)) i)))
  (where (not (host \"honest\"))
    (by :host (counter (fn [e] nil)))
    (where (service \"index\") i)
    (where (service \"throws\") (fn [e] (throw (RuntimeException. \"no\"))))
    (where (service \"loops\") (fn [e] (loop [] (recur))))
    (where (service \"recurses\") (fn [e] ((fn deep [n] (+ 1 (deep n))) 1)))
    (where (service \"searches\") (where (description #\"^(a+)+\\1b$\") i))
    (where (service \"mails\") (mail \"oncall@ops.test\"))
    (where (service \"numbers\")
      (rate 1 i) (ddt i) (ewma 0.5 i) (percentiles 1 [0.5 1] i) (fixed-time-window 1 (smap folds/mean i))
      (moving-time-window 5 (combine folds/std-dev i)) (adjust [:metric * 1000] i) (stable 1 :state i))))";

/// Events of an attack, framed, `each` in a message.
fn events(each: usize, count: usize, write: impl Fn(usize, &mut model::EventWriter<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    for first in (0..count).step_by(each) {
        let mut events = EventsBuilder::default();
        for number in first..(first + each).min(count) {
            let mut event = events.event();
            write(number, &mut event);
            event.finish();
        }
        let mut message = Vec::new();
        riemann::request(None, events.view().iter(), &mut message);
        out.extend_from_slice(&payloads::riemann_framed(&message));
    }
    out
}

/// Events of one service.
fn of_service(service: &str, count: usize) -> Vec<u8> {
    events(1, count, |number, event| {
        event.plain_text(TextField::Host, "attack");
        event.plain_text(TextField::Service, service);
        event.plain_text(TextField::Description, &("a".repeat(60) + "c"));
        event.metric(NumberRef::I64(number as i64));
    })
}

/// Events whose numbers are none, or are far away.
fn numbers() -> Vec<u8> {
    const METRICS: [f64; 6] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -0.0, 5e-324];
    const TIMES: [i64; 5] = [i64::MAX, i64::MIN, 0, -1, 4_000_000_000];
    const TTLS: [f32; 6] = [-1.0, 0.0, f32::MAX, f32::INFINITY, f32::NAN, 1e-30];
    events(10, METRICS.len() * TIMES.len() * TTLS.len(), |number, event| {
        event.plain_text(TextField::Host, "attack");
        event.plain_text(TextField::Service, "numbers");
        event.plain_text(TextField::State, if number % 2 == 0 { "ok" } else { "bad" });
        event.metric(NumberRef::F64(METRICS[number % METRICS.len()]));
        event.time(EventTime::Seconds(TIMES[number / METRICS.len() % TIMES.len()]));
        event.ttl_s(TTLS[number / METRICS.len() / TIMES.len()]);
    })
}

pub(crate) fn run(bench: &Bench) -> End {
    let mail = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = mail.local_addr().expect("it listens").port();
    let hosts = bench.pick(2_000, 10_000_000);
    // 10 million hosts are more than there may be forks: some 300 bytes each, and the queue of events behind them.
    let mut scene = start(bench, port, bench.pick(256 << 20, 4 << 30));
    let Target::Tcp(at) = scene.tcp("riemann") else { unreachable!("it is TCP") };
    let over = Arc::new(AtomicBool::new(false));
    let honest = honest(at, Arc::clone(&over));
    let once = |payload: Vec<u8>| Attack::new(Target::Tcp(at), Manner::Hold(1), payload);
    // In short, a debug build has done the events of an attack soon after it.
    let flood = |payload: Vec<u8>| match bench.full {
        true => Attack::new(Target::Tcp(at), Manner::Flood, payload),
        false => once(payload),
    };
    let new_hosts =
        events(100, hosts, |number, event| event.plain_text(TextField::Host, &format!("h{number}")));
    let query = payloads::riemann_framed(b"\x3a\x06\x0a\x04true");
    let rounds: Vec<(&str, Vec<Attack>)> = vec![
        ("new hosts", vec![flood(new_hosts)]),
        ("a stream that throws", vec![flood(of_service("throws", 200)).on(2)]),
        ("a loop without an end", vec![once(of_service("loops", bench.pick(2, 20))).on(2)]),
        ("recursion without an end", vec![once(of_service("recurses", bench.pick(2, 20))).on(2)]),
        ("a search that backtracks", vec![once(of_service("searches", bench.pick(2, 20))).on(2)]),
        ("a mail server that hangs", vec![flood(of_service("mails", 100))]),
        ("numbers that are none", vec![flood(numbers())]),
        (
            "replies that nobody reads",
            vec![
                Attack::new(Target::Tcp(at), Manner::Unread, of_service("index", 20)).on(bench.pick(2, 50)),
                Attack::new(Target::Tcp(at), Manner::Unread, query).on(bench.pick(2, 50)),
            ],
        ),
    ];
    for (what, attacks) in rounds {
        let held = scene.attack(attacks, bench.pick(0.3, 10.0));
        let counted = held.end();
        if !scene.daemon.is_alive() || scene.accounts().is_none() {
            scene.finding.promise(false, || format!("nothing answers after {what}"));
            break;
        }
        scene.finding.promise(counted.bytes_sent > 0, || format!("{what}: nothing was sent"));
    }
    reloads(bench, &mut scene, flood(of_service("index", 100)));
    over.store(true, SeqCst);
    let (sent, mut waits) = honest.join().unwrap_or_default();
    judge(&mut scene, at, sent);
    waits.sort_unstable();
    let most = waits.last().copied().unwrap_or(REPLY_MAX);
    scene.finding.figure(format!("{sent} honest events, a reply after {} ms at most", most.as_millis()));
    scene.finding.promise(most < REPLY_MAX, || "the honest client got no reply".into());
    drop(mail);
    End::Ran(scene.end(format!("streams, {hosts} hosts")))
}

fn start(bench: &Bench, mail: u16, grows_max: u64) -> Scene<'_> {
    let toml = format!(
        "[sources.riemann]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [transforms.all]\ntype = \"streams\"\nfrom = [\"riemann\"]\nfile = \"riemann.config\"\n{}",
        Scene::innocent()
    );
    let builder = Builder::native(&toml);
    let streams = STREAMS.replace("MAIL", &mail.to_string());
    std::fs::write(builder.folder().join("riemann.config"), streams).expect("the folder is ours");
    Scene::of(bench, builder, grows_max)
}

/// Sends an event and waits for its reply, until it is over; gives their number, and what each took.
fn honest(at: SocketAddr, over: Arc<AtomicBool>) -> JoinHandle<(u64, Vec<Duration>)> {
    let message = events(1, 1, |_, event| {
        event.plain_text(TextField::Host, "honest");
        event.plain_text(TextField::Service, "event");
        event.metric(NumberRef::I64(1));
    });
    std::thread::spawn(move || {
        let (mut sent, mut waits) = (0, Vec::new());
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.set_read_timeout(Some(REPLY_MAX)).expect("it is a socket");
        while !over.load(SeqCst) {
            let since = Instant::now();
            if stream.write_all(&message).is_err() || stream.read_exact(&mut [0; 6]).is_err() {
                waits.push(REPLY_MAX);
                break;
            }
            sent += 1;
            waits.push(since.elapsed());
            std::thread::sleep(Duration::from_millis(5));
        }
        (sent, waits)
    })
}

/// A reload every second, with another stream each time, while events come.
fn reloads(bench: &Bench, scene: &mut Scene<'_>, flood: Attack) {
    let file = scene.path("riemann.config");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let times = bench.pick(2, 20);
    for number in 0..times {
        let changed = format!("{text}\n(streams (where (service \"never-{number}\") i))\n");
        if std::fs::write(&file, changed).is_ok() {
            scene.daemon.signal("HUP");
        }
        scene.attack(vec![flood.clone()], bench.pick(0.5, 1.0)).end();
    }
    let done = scene.wait("the reloads", || {
        let (_, page) = crate::asker::get(scene.http, "/metrics", Duration::from_secs(5))?;
        let line = page.lines().find(|line| line.starts_with("staunch_reloads_total{result=\"done\"}"))?;
        // Two that come while one is under way are one.
        (line.rsplit(' ').next()?.parse::<u64>().ok()? > 0).then_some(())
    });
    scene.finding.promise(done.is_some(), || "no reload was done".into());
}

/// The honest client's events are all counted, and what the attacks did has its names.
fn judge(scene: &mut Scene<'_>, at: SocketAddr, sent: u64) {
    let mut last = None;
    let whole = scene.wait("the honest client's sum", || {
        last = sum(at);
        (last == Some(sent)).then_some(())
    });
    scene.finding.promise(whole.is_some(), || {
        format!("the honest client sent {sent} events, and its sum is {last:?}")
    });
    let page = crate::asker::get(scene.http, "/metrics", Duration::from_secs(5)).map(|(_, page)| page);
    let page = page.unwrap_or_default();
    let number = |name: &str| {
        let line = page.lines().find(|line| line.starts_with(&format!("{name}{{")))?;
        line.rsplit(' ').next()?.parse::<f64>().ok()
    };
    let (threw, forks) = (number("staunch_streams_exceptions_total"), number("staunch_streams_forks"));
    scene.finding.figure(format!("{threw:?} exceptions, {forks:?} forks"));
    scene
        .finding
        .promise(threw.is_some_and(|threw| threw > 0.0), || format!("{threw:?} exceptions are counted"));
    scene
        .finding
        .promise(forks.is_some_and(|forks| (1.0..=4e6).contains(&forks)), || format!("{forks:?} forks"));
}

/// What the counter of the honest client's events is at.
fn sum(at: SocketAddr) -> Option<u64> {
    let mut client = TcpStream::connect(at).ok()?;
    client.set_read_timeout(Some(REPLY_MAX)).ok()?;
    let mut query = Vec::new();
    riemann::request(Some("service = \"sum\""), std::iter::empty(), &mut query);
    client.write_all(&payloads::riemann_framed(&query)).ok()?;
    let mut length = [0; 4];
    client.read_exact(&mut length).ok()?;
    let mut reply = vec![0; u32::from_be_bytes(length) as usize];
    client.read_exact(&mut reply).ok()?;
    let mut events = EventsBuilder::default();
    riemann::decode(&reply, EventTime::Seconds(0), Limits::default(), &mut events).ok()?;
    match events.view().iter().next()?.metric()? {
        NumberRef::I64(sum) => u64::try_from(sum).ok(),
        _ => None,
    }
}
