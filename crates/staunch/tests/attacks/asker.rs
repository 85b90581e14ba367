//! Asks `/healthz` fifty times a second, on a new connection each time. Those that are due while one waits for its answer
//! have theirs when it has: each counts from when it was due.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Time between two questions.
const EVERY: Duration = Duration::from_millis(20);

/// What it found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    /// Questions.
    pub(crate) asked: u64,
    /// Those that were answered in time.
    pub(crate) answered: u64,
    /// The longest time without an answer that was asked for.
    pub(crate) slowest: Duration,
}

impl Asked {
    /// 99 of 100, and there was a question.
    pub(crate) fn is_good(&self) -> bool {
        self.asked > 0 && self.answered * 100 >= self.asked * 99
    }

    /// Both.
    pub(crate) fn and(self, other: Asked) -> Asked {
        Asked {
            asked: self.asked + other.asked,
            answered: self.answered + other.answered,
            slowest: self.slowest.max(other.slowest),
        }
    }
}

/// One that asks until it is stopped.
#[derive(Debug)]
pub(crate) struct Asker {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Asked>,
}

impl Asker {
    /// Begins. An answer that takes longer than `answer_max` is none.
    pub(crate) fn new(http: SocketAddr, answer_max: Duration) -> Asker {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        Asker { over, thread: std::thread::spawn(move || ask(http, answer_max, &ends)) }
    }

    /// Ends.
    pub(crate) fn end(self) -> Asked {
        self.over.store(true, SeqCst);
        self.thread.join().expect("it only asks")
    }
}

fn ask(http: SocketAddr, answer_max: Duration, over: &AtomicBool) -> Asked {
    let mut asked = Asked::default();
    let mut due = Instant::now();
    // When the first question was due that has no answer yet.
    let mut waits_since = due;
    while !over.load(SeqCst) {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let patience = answer_max.saturating_sub(due.elapsed());
        let good =
            !patience.is_zero() && get(http, "/healthz", patience).is_some_and(|(status, _)| status == 200);
        let end = Instant::now();
        asked.slowest = asked.slowest.max(end.saturating_duration_since(waits_since));
        // An answer answers all that are due; without one only the first has waited in vain.
        loop {
            asked.asked += 1;
            asked.answered += u64::from(good);
            due += EVERY;
            if !good || due > end {
                break;
            }
        }
        if good {
            waits_since = due;
        }
    }
    asked
}

/// Status and body of a GET; none when they are not there in time.
pub(crate) fn get(http: SocketAddr, path: &str, patience: Duration) -> Option<(u16, String)> {
    request(http, &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"), patience)
}

/// Status and body of the answer to a request; none when they are not there in time.
pub(crate) fn request(http: SocketAddr, text: &str, patience: Duration) -> Option<(u16, String)> {
    let deadline = Instant::now() + patience;
    let left = || Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero());
    let mut stream = TcpStream::connect_timeout(&http, left()?).ok()?;
    stream.set_write_timeout(left()).ok()?;
    stream.write_all(text.as_bytes()).ok()?;
    let mut answer = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        stream.set_read_timeout(Some(left()?)).ok()?;
        match stream.read(&mut buffer).ok()? {
            0 => break,
            len => answer.extend_from_slice(&buffer[..len]),
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// GET of a JSON document; none when it is not there in time.
pub(crate) fn document(http: SocketAddr, path: &str, patience: Duration) -> Option<Value> {
    let (_, body) = get(http, path, patience).filter(|(status, _)| *status == 200)?;
    serde_json::from_str(&body).ok()
}
