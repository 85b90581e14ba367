//! F6: the wall clock steps an hour back, two ahead, two back, and then by days and years, under load.
//!
//! The daemon runs under libfaketime, whose offset is read from a file that the case rewrites; the monotonic clock is
//! left alone, as it is when an operator or NTP sets a clock. The endpoint is away when the clock steps ahead, so that
//! by the wall clock what waits for it is an hour old, which must count for nothing. After each step by days or years the
//! labels are watched: from the third window on they must be those of the clock.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding};
use crate::load::Client;
use crate::oracle::Form;
use crate::support::fake_clock::{library, set_clock, with_clock};
use crate::support::{Builder, Daemon};

/// Offsets in seconds, one after the other.
const STEPS_S: [i64; 4] = [-3600, 0, 3600, -3600];

const DAY_S: i64 = 86_400;
const YEAR_S: i64 = 365 * DAY_S;

/// Offsets behind them, with the endpoint there.
const JUMPS_S: [i64; 8] = [0, DAY_S, 0, -YEAR_S, 0, -DAY_S, YEAR_S, 0];

/// Windows after a step whose labels need not be those of the clock yet.
const WRONG_MAX: usize = 2;

/// Before these of them the endpoint is sent away (the first) and kept away.
const AWAY: std::ops::RangeInclusive<usize> = 2..=3;

/// Longest wait for a window to arrive: far below the hour that a daemon led by the wall clock would take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Records between two looks.
const CHUNK: u64 = 50;

/// How far the daemon's clock is from ours, in seconds.
fn offset_s(daemon: &Daemon) -> i64 {
    let here = SystemTime::now().duration_since(UNIX_EPOCH).expect("this is after 1970").as_millis() as i64;
    let there = daemon.json("/api/v1/accounts")["time_ms"].as_i64().unwrap_or(0);
    (there - here) / 1000
}

fn start(endpoint: &Endpoint, library: &Path) -> (Daemon, PathBuf) {
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nidle_timeout = \"10m\"\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\nself_counters = \"none\"\n\
         expiry = {{ counters = \"delete\" }}\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{}\"]\nmax_retry_delay = \"500ms\"\n\
         queue = {{ max_age = \"10m\" }}\n",
        endpoint.to()
    );
    let builder = Builder::native(&toml);
    let (builder, clock) = with_clock(builder, library);
    let daemon = builder.start();
    (daemon, clock)
}

pub(crate) fn run(bench: &Bench) -> End {
    let Some(library) = library() else {
        return End::Skipped("libfaketime is not installed (Debian: `apt install faketime`)".into());
    };
    let windows = bench.pick(1, 20);
    let mut endpoint = Endpoint::new(Form::Point);
    let (mut daemon, clock) = start(&endpoint, &library);
    let mut client = Client::new(daemon.at("app", "tcp"), 0);
    let mut finding = Finding::default();
    let mut hits = 0;
    for (at, &step_s) in [0].iter().chain(&STEPS_S).enumerate() {
        let away = AWAY.contains(&at);
        if at == *AWAY.start() {
            // What its kernel has and it has not read would go with it: the window of doubt is not the subject here.
            let all = client.next;
            bench.wait("the endpoint to read", PATIENCE, || (endpoint.oracle.arrived() >= all).then_some(()));
            endpoint.go_away();
        }
        step(bench, &mut finding, (&daemon, &clock), step_s);
        let mut load = || {
            client.send_at_once(CHUNK);
            client.write(b"hits:1|c\n");
            hits += 1;
        };
        let waiting = || Daemon::number(&daemon.output("carbon"), "queued");
        let (points, before) = (endpoint.oracle.points("hits").len(), waiting());
        let flushed = bench.wait("windows to end", PATIENCE, || {
            load();
            let there = if away {
                waiting() > before
            } else {
                endpoint.oracle.points("hits").len() >= points + windows
            };
            there.then_some(())
        });
        finding.promise(flushed.is_some(), || format!("no window ended after the step to {step_s:+} s"));
        if at == *AWAY.end() {
            endpoint.come_back();
        }
    }
    for step_s in JUMPS_S {
        let mut load = || {
            client.send_at_once(CHUNK);
            client.write(b"hits:1|c\n");
            hits += 1;
        };
        step(bench, &mut finding, (&daemon, &clock), step_s);
        follow(bench, &mut finding, &endpoint, step_s, &mut load);
    }
    finding.sent = client.next;
    drop(client);
    daemon.wait_source("app", "aggregated", finding.sent + hits);
    daemon.stop();
    account(bench, &mut finding, &endpoint, hits);
    End::Ran(finding)
}

/// Sets the clock, and waits until the daemon sees it.
fn step(bench: &Bench, finding: &mut Finding, (daemon, clock): (&Daemon, &Path), step_s: i64) {
    set_clock(clock, step_s);
    let stepped = bench.wait("the daemon's clock to step", PATIENCE, || {
        ((offset_s(daemon) - step_s).abs() < 60).then_some(())
    });
    finding.promise(stepped.is_some(), || {
        format!("the clock did not follow to {step_s:+} s: nothing was shown")
    });
}

/// Loads until windows behind the step have come, and looks at their labels.
fn follow(bench: &Bench, finding: &mut Finding, endpoint: &Endpoint, step_s: i64, load: &mut impl FnMut()) {
    let before = endpoint.oracle.points("hits").len();
    // The one more ended before the step, and was on its way.
    let wrong = WRONG_MAX + 1;
    let later = bench.wait("windows to end", PATIENCE, || {
        load();
        endpoint.oracle.points("hits").get(before + wrong).map(|(label_s, _)| *label_s as i64)
    });
    let here = SystemTime::now().duration_since(UNIX_EPOCH).expect("this is after 1970").as_secs() as i64;
    // What a machine under load takes is far below a day.
    let right = |label_s: i64| (label_s - here - step_s).abs() < 600;
    finding.promise(later.is_some_and(right), || {
        format!(
            "{wrong} windows after the step to {step_s:+} s a label is {later:?}, and the clock is {}",
            here + step_s
        )
    });
}

fn account(bench: &Bench, finding: &mut Finding, endpoint: &Endpoint, hits: u64) {
    endpoint.read_to_the_end(bench);
    finding.add(&endpoint.oracle.count());
    let points = endpoint.oracle.points("hits");
    let mut labels: Vec<u64> = points.iter().map(|(second, _)| *second).collect();
    // A point that was sent again is the same point.
    labels.dedup();
    let windows = labels.len();
    labels.sort_unstable();
    labels.dedup();
    let hours = STEPS_S.map(|step_s| format!("{:+}", step_s / 3600)).join(" ");
    let days = JUMPS_S.map(|step_s| format!("{:+}", step_s / DAY_S)).join(" ");
    finding.done = format!("clock {hours} h, {days} days");
    finding.figure(format!(
        "{} windows, the sum of a counter over them {} of {hits}",
        windows,
        endpoint.oracle.total("hits")
    ));
    // The clock comes to no time twice, whatever its steps.
    finding.promise(labels.len() == windows, || {
        format!("two windows have one label: {windows} windows, {} labels", labels.len())
    });
    finding.promise(endpoint.oracle.total("hits") == hits as f64, || {
        "a counter's sum is not what was sent".into()
    });
    finding.promise_exact();
}
