//! An attack on a daemon with what is measured beside it: memory, `/healthz`, an innocent sender, the accounts; and
//! the same attack on a bare loop, for what the innocent sender loses on this machine anyway.
//!
//! Path of a case: [`Scene::start`] -> [`Scene::attack`], once or more often -> [`Scene::end`], which judges.
//! Not here: what is special to a case; it asks the daemon itself, and promises it on [`Scene::finding`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use sys::{self, Memory};
use tempfile::TempDir;

use crate::asker::{self, Asker};
use crate::attacker::{Manner, Target};
use crate::cage::Cage;
use crate::children::Child;
use crate::finding::{Finding, Loss};
use crate::innocent::BUFFER_BYTES;
use crate::support::bench::Bench;
use crate::support::{Builder, Daemon};

/// Pause between two looks at the memory.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Longest wait for what a daemon has to say after an attack.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the innocent sender may lose beside the daemon more than beside the bare loop: one in a thousand, for what the
/// machine does to either.
const NOISE: u64 = 1_000;

/// One attacking process.
#[derive(Clone, Debug)]
pub(crate) struct Attack {
    pub(crate) target: Target,
    pub(crate) manner: Manner,
    pub(crate) connections: u64,
    /// Addresses of 127.0.0.0/8 that the connections come from: so many peers.
    pub(crate) sources: u64,
    pub(crate) payload: Vec<u8>,
}

impl Attack {
    /// On one connection, by one peer.
    pub(crate) fn new(target: Target, manner: Manner, payload: impl Into<Vec<u8>>) -> Attack {
        Attack { target, manner, connections: 1, sources: 1, payload: payload.into() }
    }

    /// On so many connections.
    pub(crate) fn on(self, connections: u64) -> Attack {
        Attack { connections, ..self }
    }

    /// By so many peers.
    pub(crate) fn by(self, sources: u64) -> Attack {
        Attack { sources, ..self }
    }
}

/// See the module's header.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) daemon: Daemon,
    pub(crate) http: SocketAddr,
    pub(crate) finding: Finding,
    /// Where the innocent sender sends to; asked once, while there is an answer.
    innocent: SocketAddr,
    bench: &'a Bench,
    cage: Cage,
    /// Payloads, and sockets of the bare loop.
    folder: TempDir,
    made: Vec<(Vec<Attack>, Duration)>,
    /// Most resident bytes that are allowed above those before the attack.
    grows_max: u64,
    files: u64,
}

/// Attackers that have attacked, and still hold their connections.
#[derive(Debug)]
pub(crate) struct Held(Vec<Child>);

impl Held {
    /// They close them; says what they counted, added up.
    pub(crate) fn end(self) -> Counted {
        let reports: Vec<Value> = self.0.into_iter().map(Child::end).collect();
        let sum = |name: &str| reports.iter().filter_map(|report| report[name].as_u64()).sum();
        Counted {
            connected: sum("connected"),
            closed: sum("closed"),
            lasting: sum("lasting"),
            begun: sum("begun"),
            bytes_sent: sum("bytes_sent"),
        }
    }
}

/// What attackers counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) connected: u64,
    /// Connections that the daemon closed.
    pub(crate) closed: u64,
    /// Connections that it left open for longer than [`crate::attacker::LASTING`].
    pub(crate) lasting: u64,
    /// Payloads that were begun.
    pub(crate) begun: u64,
    pub(crate) bytes_sent: u64,
}

/// The innocent sender's part of every config.
fn innocent() -> String {
    format!(
        "[sources.innocent]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\nreceive_buffer = \"{BUFFER_BYTES}B\"\n\
         [transforms.innocent-stats]\ntype = \"aggregate\"\nfrom = [\"innocent\"]\nwindow = \"1s\"\n\
         [outputs.innocent-points]\ntype = \"graphite_file\"\nfrom = [\"innocent-stats\"]\nmax_files = 1\n"
    )
}

impl<'a> Scene<'a> {
    /// A daemon with this config and the innocent sender's, and a bound on what it may grow to.
    pub(crate) fn start(bench: &'a Bench, toml: &str, grows_max: u64) -> Scene<'a> {
        Scene::of(bench, Builder::native(&(toml.to_owned() + &innocent())), grows_max)
    }

    /// The same, from a builder whose config has [`Scene::innocent`] in it.
    pub(crate) fn of(bench: &'a Bench, builder: Builder, grows_max: u64) -> Scene<'a> {
        Scene::with(bench, builder.start(), grows_max)
    }

    /// The same, with a daemon that runs already.
    pub(crate) fn with(bench: &'a Bench, daemon: Daemon, grows_max: u64) -> Scene<'a> {
        let (http, innocent) = (daemon.http(), daemon.at("innocent", "udp"));
        let mut scene = Scene {
            daemon,
            http,
            innocent,
            finding: Finding::default(),
            bench,
            cage: Cage::new(),
            folder: TempDir::new().expect("a folder for payloads"),
            made: Vec::new(),
            grows_max,
            files: 0,
        };
        scene.is_before();
        scene
    }

    /// The innocent sender's part, for configs that are made by hand.
    pub(crate) fn innocent() -> String {
        innocent()
    }

    /// What is resident now is what was before the attack.
    pub(crate) fn is_before(&mut self) {
        // The kernel forgets what was the most so far.
        let _forgets = std::fs::write(format!("/proc/{}/clear_refs", self.daemon.pid()), "5");
        let now = self.memory().resident;
        self.finding.resident = [now, now, now];
    }

    /// Nothing once it is gone: that is judged elsewhere.
    fn memory(&self) -> Memory {
        sys::memory_of(self.daemon.pid()).unwrap_or(Memory { resident: 0, resident_high: 0 })
    }

    /// Keeps the most that was resident since [`Scene::is_before`].
    fn see_memory(&mut self) {
        let most = self.memory().resident_high;
        self.finding.resident[1] = self.finding.resident[1].max(most);
    }

    /// Where a source listens.
    pub(crate) fn tcp(&self, source: &str) -> Target {
        Target::Tcp(self.daemon.at(source, "tcp"))
    }

    /// A path in the daemon's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.daemon.folder.path().join(name)
    }

    /// Attacks for so long, beside the innocent sender and somebody who asks for `/healthz`. The connections stay.
    pub(crate) fn attack(&mut self, attacks: Vec<Attack>, seconds: f64) -> Held {
        let lasts = Duration::from_secs_f64(seconds);
        let asker = Asker::new(self.http, self.answer_max());
        let sender = self.sender(self.innocent);
        let mut held: Vec<Child> = attacks.iter().map(|attack| self.attacker(attack, lasts, None)).collect();
        let until = Instant::now() + lasts;
        while Instant::now() < until && self.daemon.is_alive() {
            self.see_memory();
            std::thread::sleep(LOOK_EVERY);
        }
        for child in &mut held {
            let _attacked = child.line();
        }
        self.finding.innocent.sent += sender.end()["sent"].as_u64().unwrap_or(0);
        self.finding.asked = self.finding.asked.and(asker.end());
        self.see_memory();
        self.made.push((attacks, lasts));
        Held(held)
    }

    /// Longest wait for an answer of `/healthz`. A debug build beside other work is not asked for what the page promises.
    fn answer_max(&self) -> Duration {
        Duration::from_secs(self.bench.pick(5, 1))
    }

    fn sender(&self, to: SocketAddr) -> Child {
        // A debug build is not asked for more than it can.
        let rate = self.bench.pick(5_000, 50_000);
        Child::start("innocent", &[format!("udp={to}"), format!("rate={rate}")], None)
    }

    fn attacker(&mut self, attack: &Attack, lasts: Duration, instead: Option<&Target>) -> Child {
        let file = self.folder.path().join(format!("payload-{}", self.files));
        self.files += 1;
        std::fs::write(&file, &attack.payload).expect("the folder is ours");
        let words = [
            instead.unwrap_or(&attack.target).words(),
            format!("manner={}", attack.manner.word()),
            format!("connections={}", attack.connections),
            format!("sources={}", attack.sources),
            format!("milliseconds={}", lasts.as_millis()),
            format!("payload={}", file.display()),
        ];
        Child::start("attacker", &words, Some(&self.cage))
    }

    /// Waits for something; None after a while.
    pub(crate) fn wait<T>(&self, what: &str, see: impl FnMut() -> Option<T>) -> Option<T> {
        self.bench.wait(what, PATIENCE, see)
    }

    /// The accounts, when the daemon answers.
    pub(crate) fn accounts(&self) -> Option<Value> {
        asker::document(self.http, "/api/v1/accounts", Duration::from_secs(5))
    }

    /// The row of a source.
    pub(crate) fn source(&self, name: &str) -> Option<Value> {
        row(&self.accounts()?["sources"], name)
    }

    /// That no more was counted at a source than `most` records.
    pub(crate) fn promise_at_most(&mut self, source: &str, most: u64) {
        let got = self.source(source).map(|row| Daemon::number(&row, "received"));
        self.finding.promise(got.is_some_and(|got| got <= most), || match got {
            Some(got) => format!("`{source}` counts {got} records, and at most {most} were sent"),
            None => format!("the account of `{source}` cannot be read"),
        });
    }

    /// Judges what every case is judged by.
    pub(crate) fn end(mut self, done: impl Into<String>) -> Box<Finding> {
        self.finding.done = done.into();
        // Once more, when nobody attacks: what it keeps.
        let until = Instant::now() + self.bench.pick(Duration::from_millis(200), Duration::from_secs(2));
        while Instant::now() < until {
            self.see_memory();
            std::thread::sleep(LOOK_EVERY);
        }
        self.finding.resident[2] = self.memory().resident;
        self.judge_accounts();
        let [before, peak, _] = self.finding.resident;
        let (grown, most) = (peak.saturating_sub(before), self.grows_max);
        self.finding.promise(grown <= most, || {
            format!("memory grew by {} MB; the bound is {} MB", grown / 1_000_000, most / 1_000_000)
        });
        let (asked, answer_max) = (self.finding.asked, self.answer_max());
        self.finding.promise(asked.is_good(), || {
            format!("/healthz answered {} of {} within {answer_max:?}", asked.answered, asked.asked)
        });
        let stderr = self.daemon.stderr();
        let panic: Vec<&str> = stderr.lines().skip_while(|line| !line.contains("panicked")).take(2).collect();
        self.finding.promise(panic.is_empty(), || panic.join(" "));
        let alive = self.daemon.is_alive();
        self.finding.promise(alive, || "the daemon is gone".into());
        if self.bench.full {
            self.compare();
        } else {
            // Without a bare loop beside it: a busy machine takes some packets of a debug build, and not most of them.
            let Loss { sent, lost } = self.finding.innocent;
            self.finding.promise(lost <= sent / 2, || format!("the innocent sender lost {lost} of {sent}"));
        }
        Box::new(self.finding)
    }

    fn judge_accounts(&mut self) {
        let sent = self.finding.innocent.sent;
        let mut last = None;
        let settled = self.bench.wait("the accounts", PATIENCE, || {
            let page = self.accounts()?;
            let row = row(&page["sources"], "innocent")?;
            let whole = Daemon::number(&row, "received") + Daemon::number(&row, "kernel_dropped") == sent;
            let balanced = ["sources", "outputs"].iter().all(|rows| {
                page[rows].as_array().is_some_and(|rows| rows.iter().all(|row| row["balanced"] == true))
            });
            last = Some(row);
            (whole && balanced).then_some(())
        });
        let number = |name: &str| last.as_ref().map_or(0, |row| Daemon::number(row, name));
        let (received, dropped) = (number("received"), number("kernel_dropped"));
        self.finding.innocent.lost = sent.saturating_sub(received);
        let said = last.is_some();
        self.finding.promise(settled.is_some(), || {
            if said {
                format!("{sent} packets, {received} received and {dropped} dropped: the account is not exact")
            } else {
                "the accounts cannot be read".into()
            }
        });
    }

    /// The same attacks on the bare loop.
    fn compare(&mut self) {
        let words = [format!("folder={}", self.folder.path().display())];
        let mut bare = Child::start("bare", &words, None);
        let at = bare.line().and_then(|line| serde_json::from_str::<Value>(&line).ok()).expect("it listens");
        let at = |name: &str| at[name].as_str().and_then(|at| at.parse().ok()).expect("an address");
        let mut loss = Loss::default();
        for (now, lasts) in std::mem::take(&mut self.made) {
            let sender = self.sender(at("innocent"));
            let mut held = Vec::new();
            for attack in &now {
                let instead = match attack.target {
                    Target::Tcp(_) => Target::Tcp(at("tcp")),
                    Target::Udp(_) => Target::Udp(at("udp")),
                    Target::Unix(_) => Target::Unix(self.folder.path().join("stream")),
                    Target::Unixgram(_) => Target::Unixgram(self.folder.path().join("packets")),
                };
                held.push(self.attacker(attack, lasts, Some(&instead)));
            }
            for child in &mut held {
                let _attacked = child.line();
            }
            loss.sent += sender.end()["sent"].as_u64().unwrap_or(0);
            Held(held).end();
        }
        let received = bare.end()["received"].as_u64().unwrap_or(0);
        loss.lost = loss.sent.saturating_sub(received);
        self.finding.bare = Some(loss);
        let beside = self.finding.innocent;
        let most = loss.lost + beside.sent / NOISE;
        self.finding.promise(beside.lost <= most, || {
            format!(
                "the innocent sender lost {} of {}; beside a bare loop {} of {}",
                beside.lost, beside.sent, loss.lost, loss.sent
            )
        });
    }
}

fn row(rows: &Value, name: &str) -> Option<Value> {
    rows.as_array()?.iter().find(|row| row["name"] == name).cloned()
}
