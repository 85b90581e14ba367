//! A8: the wall clock jumps ahead (or back) for two seconds, and is right again.
//!
//! Samples and points come all the time, the points with the right time. Two windows after the clock is right again,
//! windows of samples are labelled right and aggregation rules have results.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::finding::{End, Finding};
use crate::scene::Scene;
use crate::support::bench::Bench;
use crate::support::fake_clock::{library, set_clock, with_clock};
use crate::support::{Builder, Daemon};

const GROWS_MAX: u64 = 64 << 20;

const DAY_S: i64 = 86_400;

/// Time that the clock is wrong.
const WRONG: Duration = Duration::from_secs(2);

/// Seconds after which results are right again: two windows of a second, an aggregation rule's time to expire, and a second for
/// what is under way.
const RIGHT_AFTER_S: u64 = 2 + 2 + 1;

/// Points that arrived: when, the name, and the second on its label.
type Points = Arc<Mutex<Vec<(u64, String, u64)>>>;

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("this is after 1970").as_secs()
}

fn endpoint() -> (String, Points) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let to = format!("tcp://{}", listener.local_addr().expect("it is bound"));
    let points = Points::default();
    let into = Arc::clone(&points);
    // It ends with the bench: nothing waits for it.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let into = Arc::clone(&into);
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let mut words = line.split(' ');
                    let name = words.next().unwrap_or_default().to_owned();
                    let label = words.nth(1).and_then(|second| second.parse().ok()).unwrap_or(0);
                    into.lock().expect("no reader panics").push((now_s(), name, label));
                }
            });
        }
    });
    (to, points)
}

fn start<'a>(bench: &'a Bench, library: &Path, to: &str) -> (Scene<'a>, std::path::PathBuf) {
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.points]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\nself_counters = \"none\"\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{to}\"]\n\
         [outputs.rolled]\ntype = \"graphite\"\nfrom = [\"relay\"]\nto = [\"{to}\"]\n\
         [transforms.relay]\ntype = \"relay\"\nfrom = [\"points\"]\n\
         clusters = {{ all = {{ type = \"forward\", to = [\"rolled\"] }} }}\n\
         [[transforms.relay.rules]]\nmatch = \"^in$\"\nevery = \"1s\"\nexpire = \"2s\"\ncompute = {{ sum = \"rolled\" }}\nto = \"all\"\nstop = true\n"
    );
    let builder = Builder::native(&(toml + &Scene::innocent()));
    let (builder, clock) = with_clock(builder, library);
    (Scene::of(bench, builder, GROWS_MAX), clock)
}

/// A sample and a point every 20 ms, until it is over.
fn traffic(daemon: &Daemon, over: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let mut samples = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    let mut points = TcpStream::connect(daemon.at("points", "tcp")).expect("it listens");
    let over = Arc::clone(over);
    std::thread::spawn(move || {
        while !over.load(SeqCst) {
            let sent = samples.write_all(b"hits:1|c\n");
            let _until_it_ends =
                sent.and_then(|()| points.write_all(format!("in 1 {}\n", now_s()).as_bytes()));
            std::thread::sleep(Duration::from_millis(20));
        }
    })
}

fn judge(finding: &mut Finding, points: &Points, right_at: u64, until: u64, word: &str) {
    let points = points.lock().expect("no reader panics").clone();
    let after = right_at + RIGHT_AFTER_S;
    let mut of = |name: &str| {
        let labels: Vec<i64> = points
            .iter()
            .filter(|(at, known, _)| known == name && (after..until).contains(at))
            .map(|(at, _, label)| *label as i64 - *at as i64)
            .collect();
        let wrong = labels.iter().filter(|label| label.abs() > RIGHT_AFTER_S as i64).count();
        finding.promise(wrong == 0, || {
            format!(
                "{word}: {wrong} of {} points of `{name}` are labelled wrong: by {:?} s",
                labels.len(),
                labels.iter().max_by_key(|label| label.abs())
            )
        });
        finding.promise(!labels.is_empty(), || {
            format!("{word}: no point of `{name}` came from {RIGHT_AFTER_S} s after the clock was right, for {} s", until - after)
        });
    };
    of("stats_counts.hits");
    of("rolled");
}

pub(crate) fn run(bench: &Bench) -> End {
    let Some(library) = library() else {
        return End::Skipped("libfaketime is not installed (Debian: `apt install faketime`)".into());
    };
    let jumps: &[(i64, &str)] = bench.pick(
        &[(DAY_S, "a day ahead")],
        &[
            (DAY_S, "a day ahead"),
            (-DAY_S, "a day back"),
            (365 * DAY_S, "a year ahead"),
            (-365 * DAY_S, "a year back"),
        ],
    );
    let mut whole: Option<Box<Finding>> = None;
    for (jump_s, word) in jumps {
        let (to, points) = endpoint();
        let (mut scene, clock) = start(bench, &library, &to);
        let over = Arc::new(AtomicBool::new(false));
        let sender = traffic(&scene.daemon, &over);
        std::thread::sleep(WRONG);
        set_clock(&clock, *jump_s);
        std::thread::sleep(WRONG);
        set_clock(&clock, 0);
        let (right_at, since) = (now_s(), Instant::now());
        scene.attack(Vec::new(), RIGHT_AFTER_S as f64 + bench.pick(2.0, 6.0)).end();
        let until = right_at + since.elapsed().as_secs();
        over.store(true, SeqCst);
        sender.join().expect("it only sends");
        judge(&mut scene.finding, &points, right_at, until, word);
        let late = scene.accounts().map(|page| page["sources"].to_string().matches("\"late\"").count());
        scene.finding.figure(format!("{word}: points late at {} sources", late.unwrap_or(0)));
        let finding = scene.end("clock wrong for 2 s");
        whole = Some(match whole {
            Some(before) => crate::finding::worse(before, finding),
            None => finding,
        });
    }
    End::Ran(whole.expect("there is a jump"))
}
