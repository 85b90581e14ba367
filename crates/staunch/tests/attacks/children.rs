//! Processes of the bench itself: attackers, the innocent sender, the bare receiver. Started from this very program with
//! `--child ROLE`, that begin and end at lines on their stdin, and ended by their ids.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child as Process, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cage::Cage;

/// The first argument of a child.
const CHILD: &str = "--child";

/// No child lives longer, whatever becomes of its parent.
const LIFE_MAX: Duration = Duration::from_secs(900);

/// Longest wait for the last words of a child.
const LAST_WORDS_MAX: Duration = Duration::from_secs(10);

/// What a child was started with: `name=value`.
#[derive(Debug)]
pub(crate) struct Words(Vec<(String, String)>);

impl Words {
    /// One of them.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The role and the words of this process, when it is a child. Waits until the parent says that it may begin.
pub(crate) fn role() -> Option<(String, Words)> {
    let mut args = std::env::args().skip(1);
    if args.next()? != CHILD {
        return None;
    }
    let role = args.next()?;
    let words = args.map(|word| {
        let (name, value) = word.split_once('=').unwrap_or((&word, ""));
        (name.to_owned(), value.to_owned())
    });
    let words = Words(words.collect());
    let mut line = String::new();
    // Without a parent it has nothing to do, and says so by the flag that it looks at next.
    let _begun = std::io::stdin().read_line(&mut line);
    Some((role, words))
}

/// Whether a child's parent wants it to end.
#[derive(Debug)]
pub(crate) struct Over(Arc<AtomicBool>);

impl Over {
    /// Listens to the parent.
    pub(crate) fn of_parent() -> Over {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        std::thread::spawn(move || {
            let mut line = String::new();
            let _end = std::io::stdin().read_line(&mut line);
            ended.store(true, SeqCst);
            // It may hang in a call that does not end: then nobody waits for it.
            std::thread::sleep(LAST_WORDS_MAX);
            std::process::exit(1);
        });
        std::thread::spawn(|| {
            std::thread::sleep(LIFE_MAX);
            std::process::exit(1);
        });
        Over(over)
    }

    /// True from then on.
    pub(crate) fn is_so(&self) -> bool {
        self.0.load(SeqCst)
    }
}

/// A child, seen from its parent. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    stdout: BufReader<ChildStdout>,
}

impl Child {
    /// Starts one; in a cage it is put there before it begins.
    pub(crate) fn start(role: &str, words: &[String], cage: Option<&Cage>) -> Child {
        let own = std::env::current_exe().expect("we have a name");
        let mut command = Command::new(own);
        command.arg(CHILD).arg(role).args(words);
        if matches!(cage, Some(Cage::Pauses)) {
            command.arg("pauses=1");
        }
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("we can start ourselves");
        if let Some(cage) = cage {
            cage.take(process.id());
        }
        let stdout = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut child = Child { process, stdout };
        child.say("go");
        child
    }

    fn say(&mut self, word: &str) {
        if let Some(stdin) = &mut self.process.stdin {
            // One that has ended already is found out by what it does not say.
            let _heard = writeln!(stdin, "{word}");
        }
    }

    /// Its next line.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).ok().filter(|len| *len > 0)?;
        Some(line.trim_end().to_owned())
    }

    /// Ends it; its last line as a document, or null.
    pub(crate) fn end(mut self) -> Value {
        self.say("end");
        let mut last = None;
        while let Some(line) = self.line() {
            last = Some(line);
        }
        last.and_then(|line| serde_json::from_str(&line).ok()).unwrap_or(Value::Null)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(1);
        while Instant::now() < deadline {
            if self.process.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // It may have ended meanwhile.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}
