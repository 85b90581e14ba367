//! C1: the daemon's clock is at the ends of what others can count: 1970, 2038 and 2106, and passes the latter two while the
//! daemon runs. Windows bear the clock's labels, and a stop and a start go on.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::finding::{End, Finding, worse};
use crate::scene::Scene;
use crate::support::Builder;
use crate::support::bench::Bench;
use crate::support::fake_clock::{library, set_clock, with_clock};

const GROWS_MAX: u64 = 64 << 20;

/// Where the clock begins: the era, and the second.
const ERAS: [(&str, i64); 3] = [("1970", 3), ("2038", (1 << 31) - 3), ("2106", (1 << 32) - 3)];

/// How far a label may be from the clock.
const LABEL_S_MAX: i64 = 3;

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("this is after 1970").as_secs() as i64
}

pub(crate) fn run(bench: &Bench) -> End {
    let Some(library) = library() else {
        return End::Skipped("libfaketime is not installed (Debian: `apt install faketime`)".into());
    };
    let mut whole: Option<Box<Finding>> = None;
    for (era, second) in bench.pick(&ERAS[1..2], &ERAS[..]) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let to = listener.local_addr().expect("it is bound");
        let offset_s = *second - now_s();
        let labels: Arc<Mutex<Vec<i64>>> = Arc::default();
        let into = Arc::clone(&labels);
        // It ends with the bench: nothing waits for it.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let label =
                        line.strip_prefix("stats_counts.hits ").and_then(|rest| rest.split(' ').nth(1));
                    let off = label
                        .and_then(|label| label.parse::<i64>().ok())
                        .map(|label| label - now_s() - offset_s);
                    into.lock().expect("no reader panics").extend(off);
                }
            }
        });
        let toml = format!(
            "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
             [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\nself_counters = \"none\"\ncheckpoint = \"1s\"\n\
             [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://{to}\"]\nqueue = {{ kind = \"disk\" }}\n{}",
            Scene::innocent()
        );
        let (builder, clock) = with_clock(Builder::native(&toml), &library);
        set_clock(&clock, offset_s);
        let mut scene = Scene::of(bench, builder, GROWS_MAX);
        let mut client = TcpStream::connect(scene.daemon.at("app", "tcp")).expect("it listens");
        for _ in 0..2 {
            for _ in 0..20 {
                client.write_all(b"hits:1|c\n").expect("it reads");
                std::thread::sleep(Duration::from_millis(100));
            }
            scene.attack(Vec::new(), 0.5).end();
        }
        let seen = labels.lock().expect("no reader panics").clone();
        let wrong = seen.iter().filter(|off| off.abs() > LABEL_S_MAX).count();
        scene.finding.promise(seen.len() >= 2, || format!("{era}: {} windows in 5 s", seen.len()));
        scene.finding.promise(wrong == 0, || format!("{era}: labels are off by {seen:?} s"));
        scene.finding.figure(format!("{era}: {} windows", seen.len()));
        let finding = scene.end("clock at 1970, 2038, 2106");
        whole = Some(match whole {
            Some(before) => worse(before, finding),
            None => finding,
        });
    }
    End::Ran(whole.expect("there are eras"))
}
