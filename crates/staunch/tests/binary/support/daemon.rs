//! One daemon as a process: started from a config, read from its ports, ended by its id.
//!
//! Configs name port 0; where it really listens the banner and `/api/v1/accounts` tell, so that tests side by side
//! never meet. Dropping a [`Daemon`] kills it.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use serde_json::Value;
use tempfile::TempDir;

use super::http::{self, Answer};
use super::wait_for;

/// The binary under test.
pub(crate) const STAUNCH: &str = env!("CARGO_BIN_EXE_staunch");

/// Another binary that is tested in its place.
static INSTEAD: OnceLock<PathBuf> = OnceLock::new();

/// Tests this binary from now on, such as one of an earlier version. For programs that run cases one after the other.
#[allow(dead_code, reason = "only benches are given another binary")]
pub(crate) fn test_instead(binary: PathBuf) {
    INSTEAD.set(binary).expect("this is said once, before anything is started");
}

/// The binary that is started.
pub(crate) fn binary() -> &'static Path {
    INSTEAD.get().map_or(Path::new(STAUNCH), PathBuf::as_path)
}

/// Text of an output stream so far, filled by a thread.
type Heard = Arc<Mutex<Vec<u8>>>;

/// What a daemon is started with.
#[derive(Debug)]
pub(crate) struct Builder {
    folder: TempDir,
    args: Vec<String>,
    file: Option<PathBuf>,
    stdout_closed: bool,
    environment: Vec<(String, String)>,
    /// A command that ends as the binary behind it.
    under: Vec<String>,
}

/// A daemon that runs.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    /// Its working directory, with its config and data. Shared with the processes after hot restarts.
    pub(crate) folder: Arc<TempDir>,
    /// The config that it was started with.
    pub(crate) file: Option<PathBuf>,
    stdout: Heard,
    stderr: Heard,
    readers: Vec<JoinHandle<()>>,
    args: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Builder {
    /// `staunch run FILE`, with HTTP on a free port.
    pub(crate) fn native(toml: &str) -> Builder {
        Builder::with_file("staunch.toml", "run", &whole(toml))
    }

    /// `staunch statsd FILE`, with HTTP and the management port on free ports.
    pub(crate) fn node(config: &str) -> Builder {
        Builder::with_file("config.js", "statsd", config).args(&[
            "--http",
            "127.0.0.1:0",
            "--management",
            "127.0.0.1:0",
        ])
    }

    /// `staunch relay -f FILE`, with HTTP on a free port.
    pub(crate) fn relay(config: &str) -> Builder {
        let mut builder = Builder::with_file("relay.conf", "relay", config);
        builder.args.insert(1, "-f".into());
        builder.args(&["--http", "127.0.0.1:0"])
    }

    /// `staunch riemann FILE`, with HTTP on a free port.
    pub(crate) fn riemann(config: &str) -> Builder {
        Builder::with_file("riemann.config", "riemann", config).args(&["--http", "127.0.0.1:0"])
    }

    /// `staunch run` and nothing else.
    pub(crate) fn bare() -> Builder {
        let folder = TempDir::new().expect("a folder for the test");
        Builder {
            folder,
            args: vec!["run".into()],
            file: None,
            stdout_closed: false,
            environment: Vec::new(),
            under: Vec::new(),
        }
    }

    fn with_file(name: &str, verb: &str, text: &str) -> Builder {
        let mut builder = Builder::bare();
        let file = builder.folder.path().join(name);
        std::fs::write(&file, text).expect("the config can be written");
        builder.args = vec![verb.into(), name.into()];
        builder.file = Some(file);
        builder
    }

    /// The folder that it will run in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// More arguments.
    #[must_use]
    pub(crate) fn args(mut self, args: &[&str]) -> Builder {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Builder {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// It may have so many files open.
    #[must_use]
    #[allow(dead_code, reason = "not every program needs it")]
    pub(crate) fn files_max(self, files_max: u32) -> Builder {
        let limited = format!("ulimit -n {files_max} && exec \"$0\" \"$@\"");
        self.under(&["/bin/sh", "-c", &limited])
    }

    /// Starts it by a command that becomes it (`exec`), such as one that mounts something first.
    #[must_use]
    #[allow(dead_code, reason = "not every program needs it")]
    pub(crate) fn under(mut self, command: &[&str]) -> Builder {
        self.under = command.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Its stdout is a pipe that nobody reads.
    #[must_use]
    pub(crate) fn closed_stdout(mut self) -> Builder {
        self.stdout_closed = true;
        self
    }

    /// Starts it, without waiting.
    pub(crate) fn spawn(self) -> Daemon {
        let Builder { folder, args, file, stdout_closed, environment, under } = self;
        let Process { child, stdout, stderr, readers } =
            Process::start_under(&under, folder.path(), &args, &environment, stdout_closed);
        let folder = Arc::new(folder);
        Daemon { child, folder, file, stdout, stderr, readers, args, environment }
    }

    /// Starts it and waits until `/ready` says 200.
    #[track_caller]
    pub(crate) fn start(self) -> Daemon {
        let mut daemon = self.spawn();
        daemon.wait_ready();
        daemon
    }

    /// Starts what is expected to end by itself, and gives its exit code with its stderr.
    #[track_caller]
    pub(crate) fn run_to_end(self) -> (i32, String) {
        let mut daemon = self.spawn();
        let code = daemon.wait_exit().code().expect("it was not killed");
        (code, daemon.stderr())
    }
}

struct Process {
    child: Child,
    stdout: Heard,
    stderr: Heard,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    fn start(
        folder: &Path,
        args: &[String],
        environment: &[(String, String)],
        stdout_closed: bool,
    ) -> Process {
        Process::start_under(&[], folder, args, environment, stdout_closed)
    }

    fn start_under(
        under: &[String],
        folder: &Path,
        args: &[String],
        environment: &[(String, String)],
        stdout_closed: bool,
    ) -> Process {
        let mut command = match under {
            [] => Command::new(binary()),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(binary());
                command
            }
        };
        let mut child = command
            .args(args)
            .current_dir(folder)
            .env_remove("STAUNCH_LOG")
            .env_remove("RUST_BACKTRACE")
            .envs(environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let (stderr, reader) = listen(child.stderr.take().expect("it is piped"));
        let mut readers = vec![reader];
        let piped = child.stdout.take().expect("it is piped");
        let mut stdout = Heard::default();
        if !stdout_closed {
            let (heard, reader) = listen(piped);
            stdout = heard;
            readers.push(reader);
        }
        Process { child, stdout, stderr, readers }
    }
}

fn listen(stream: impl Read + Send + 'static) -> (Heard, JoinHandle<()>) {
    let heard = Heard::default();
    let into = Arc::clone(&heard);
    let reader = std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while stream.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
            into.lock().expect("no reader panics").append(&mut line);
        }
    });
    (heard, reader)
}

fn text(heard: &Heard) -> String {
    String::from_utf8_lossy(&heard.lock().expect("no reader panics")).into_owned()
}

impl Daemon {
    /// What it said on stderr so far.
    pub(crate) fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// Waits until it has logged `text` so often, and gives what it has said. A thread of its own writes the log: what was
    /// logged before an answer may be there after it.
    #[track_caller]
    pub(crate) fn wait_logged_times(&self, text: &str, times: usize) -> String {
        let said = wait_for(&format!("{text:?} in the log, {times} times"), || {
            Some(self.stderr()).filter(|said| said.matches(text).count() >= times)
        });
        assert_eq!(said.matches(text).count(), times, "{text:?} in {said}");
        said
    }

    /// Waits until it has logged `text`.
    #[track_caller]
    pub(crate) fn wait_logged(&self, text: &str) {
        wait_for(&format!("{text:?} in the log"), || self.stderr().contains(text).then_some(()));
    }

    /// What it wrote on stdout so far.
    pub(crate) fn stdout(&self) -> String {
        text(&self.stdout)
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// True while it runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_none()
    }

    /// Waits until it takes records.
    #[track_caller]
    pub(crate) fn wait_ready(&mut self) {
        wait_for("the daemon to be ready", || {
            assert!(self.is_alive(), "the daemon ended:\n{}", self.stderr());
            let at = self.http_at()?;
            http::get(at, "/ready").filter(|answer| answer.status == 200)
        });
    }

    /// The banner's line about `what`, without that word and without what stands in brackets at its end.
    pub(crate) fn banner(&self, what: &str) -> Option<String> {
        let text = self.stderr();
        let line = text.lines().find_map(|line| line.strip_prefix("  ")?.strip_prefix(what))?;
        Some(line.split("  (").next().unwrap_or(line).trim().to_owned())
    }

    fn http_at(&self) -> Option<SocketAddr> {
        // The tips come behind it: when they are there, so is the rest.
        self.stderr().contains("/api/v1/").then_some(())?;
        self.banner("http ")?.strip_prefix("http://")?.strip_suffix('/')?.parse().ok()
    }

    /// Address of the HTTP server.
    #[track_caller]
    pub(crate) fn http(&self) -> SocketAddr {
        self.http_at().expect("the banner names the HTTP address")
    }

    /// Address of the management port.
    #[track_caller]
    pub(crate) fn management(&self) -> SocketAddr {
        let line = self.banner("management ").expect("the banner names the management port");
        line.strip_prefix("tcp://").and_then(|at| at.parse().ok()).expect("an address")
    }

    /// GET of a path.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        http::try_get(self.http(), path).unwrap_or_else(|why| {
            // Of a process that has just ended, the last words may still be in the pipe.
            std::thread::sleep(std::time::Duration::from_millis(500));
            let state =
                std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
            panic!("no answer to GET {path}: {why}\nthe process: {state}\n{}", self.stderr())
        })
    }

    /// True when its HTTP port takes one more connection and answers.
    pub(crate) fn answers(&self) -> bool {
        http::get(self.http(), "/healthz").is_some()
    }

    /// GET of a JSON document.
    #[track_caller]
    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "GET {path}: {}", answer.body);
        serde_json::from_str(&answer.body).expect("the API speaks JSON")
    }

    /// The row of a source in `/api/v1/accounts`.
    #[track_caller]
    pub(crate) fn source(&self, name: &str) -> Value {
        row(&self.json("/api/v1/accounts")["sources"], name)
    }

    /// The row of an output in `/api/v1/accounts`.
    #[track_caller]
    pub(crate) fn output(&self, name: &str) -> Value {
        row(&self.json("/api/v1/accounts")["outputs"], name)
    }

    /// All places of a source, such as `udp://127.0.0.1:41234`.
    #[track_caller]
    pub(crate) fn places(&self, source: &str) -> Vec<String> {
        let row = self.source(source);
        let places = row["listen"].as_array().expect("a list of places");
        places.iter().map(|place| place.as_str().expect("a text").to_owned()).collect()
    }

    /// Where a source listens under `scheme` (`udp`, `tcp`).
    #[track_caller]
    pub(crate) fn at(&self, source: &str, scheme: &str) -> SocketAddr {
        let begin = format!("{scheme}://");
        let places = self.places(source);
        let place = places.iter().find_map(|place| place.strip_prefix(&begin));
        place.and_then(|at| at.parse().ok()).unwrap_or_else(|| panic!("no {scheme} among {places:?}"))
    }

    /// The number at `path` of a row. Losses are 0 until there are some: of `losses/rejected/bad_value` only the first word
    /// has to be there.
    #[track_caller]
    pub(crate) fn number(row: &Value, path: &str) -> u64 {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let found = row.get(first).unwrap_or_else(|| panic!("no `{first}` in {row}"));
        let rest = rest.split('/').filter(|key| !key.is_empty());
        rest.into_iter().try_fold(found, |row, key| row.get(key)).and_then(Value::as_u64).unwrap_or(0)
    }

    /// Waits until a number of a source's row has the value.
    #[track_caller]
    pub(crate) fn wait_source(&self, name: &str, path: &str, want: u64) {
        super::wait_until_equal(&format!("`{path}` of source `{name}`"), &want, || {
            Daemon::number(&self.source(name), path)
        });
    }

    /// Waits until a number of an output's row has the value.
    #[track_caller]
    pub(crate) fn wait_output(&self, name: &str, path: &str, want: u64) {
        super::wait_until_equal(&format!("`{path}` of output `{name}`"), &want, || {
            Daemon::number(&self.output(name), path)
        });
    }

    /// Both sums of every row hold, once nothing moves.
    #[track_caller]
    pub(crate) fn assert_sums_hold(&self) {
        wait_for("both sums to hold", || {
            let page = self.json("/api/v1/accounts");
            let holds = |rows: &str| {
                page[rows].as_array().is_some_and(|rows| rows.iter().all(|row| row["balanced"] == true))
            };
            (holds("sources") && holds("outputs")).then_some(())
        });
    }

    /// Writes another config over the one it was started with.
    pub(crate) fn rewrite(&self, toml: &str) {
        let file = self.file.as_ref().expect("it was started with a file");
        let native = file.extension().is_some_and(|ending| ending == "toml");
        let text = if native { whole(toml) } else { toml.to_owned() };
        std::fs::write(file, text).expect("it can be written");
    }

    /// Rewrites the config, sends SIGHUP, and waits until the reload is `done` or `refused`.
    #[track_caller]
    pub(crate) fn reload(&self, toml: &str, result: &str) {
        self.hang_up(result, || self.rewrite(toml));
    }

    /// Sends SIGHUP after a change, and waits until the reload is `done` or `refused`.
    #[track_caller]
    pub(crate) fn hang_up(&self, result: &str, change: impl FnOnce()) {
        let sample = format!("staunch_reloads_total{{result=\"{result}\"}} ");
        let count = || {
            let text = self.get("/metrics").body;
            let value =
                text.lines().find_map(|line| line.strip_prefix(&sample)).expect("reloads are counted");
            value.parse::<u64>().expect("a count")
        };
        let before = count();
        change();
        self.signal("HUP");
        wait_for("the reload", || (count() == before + 1).then_some(()));
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("/bin/kill").args([format!("-{name}"), self.pid().to_string()]).status();
        assert!(sent.expect("kill can be run").success(), "SIG{name} could not be sent");
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait_exit(&mut self) -> ExitStatus {
        let status = wait_for("the daemon to end", || self.child.try_wait().expect("it is our child"));
        for reader in self.readers.drain(..) {
            reader.join().expect("no reader panics");
        }
        status
    }

    /// SIGTERM, and exit code 0.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        self.signal("TERM");
        let status = self.wait_exit();
        assert!(status.success(), "{status}:\n{}", self.stderr());
        assert!(!self.stderr().contains("panicked"), "{}", self.stderr());
    }

    /// Starts another one beside it, in the same folder and with the same command line and `--hot-restart`. Does not wait.
    pub(crate) fn successor(&self) -> Daemon {
        self.successor_without("")
    }

    /// Starts another one with the same command line beside it, which takes nothing over. Does not wait.
    pub(crate) fn beside(&self) -> Daemon {
        self.another(self.args.clone(), "")
    }

    /// The same as [`Self::successor`], without a variable of its environment.
    pub(crate) fn successor_without(&self, variable: &str) -> Daemon {
        let mut args = self.args.clone();
        if !args.iter().any(|arg| arg == "--hot-restart") {
            args.push("--hot-restart".to_owned());
        }
        self.another(args, variable)
    }

    fn another(&self, args: Vec<String>, variable: &str) -> Daemon {
        let kept = self.environment.iter().filter(|(name, _)| name != variable);
        let environment: Vec<_> = kept.cloned().collect();
        let Process { child, stdout, stderr, readers } =
            Process::start(self.folder.path(), &args, &environment, false);
        let (folder, file) = (Arc::clone(&self.folder), self.file.clone());
        Daemon { child, folder, file, stdout, stderr, readers, args, environment }
    }

    /// Starts it once more after its end: same folder, same command line.
    #[track_caller]
    pub(crate) fn start_again(&mut self) {
        assert!(!self.is_alive(), "it still runs");
        let Process { child, stdout, stderr, readers } =
            Process::start(self.folder.path(), &self.args, &self.environment, false);
        (self.child, self.stdout, self.stderr, self.readers) = (child, stdout, stderr, readers);
        self.wait_ready();
    }
}

/// A config with HTTP on a free port, unless it says where. A stop ends as soon as everything is delivered; where a test does not say how
/// long it may take at most, it is longer than a machine under load needs.
fn whole(toml: &str) -> String {
    let stop = if toml.contains("stop_timeout") { "" } else { "stop_timeout = \"50s\"\n" };
    let http = if toml.contains("[http]") { "" } else { "\n[http]\nlisten = \"127.0.0.1:0\"\n" };
    // For a run of all tests with so many readers: `STAUNCH_TEST_READERS=3 cargo test -p staunch --test binary`.
    let readers = match std::env::var("STAUNCH_TEST_READERS") {
        Ok(number) if !toml.starts_with("readers") => format!("readers = {number}\n"),
        _ => String::new(),
    };
    format!("{stop}{readers}{toml}{http}")
}

#[track_caller]
fn row(rows: &Value, name: &str) -> Value {
    let found = rows.as_array().and_then(|rows| rows.iter().find(|row| row["name"] == name));
    found.unwrap_or_else(|| panic!("no row `{name}` in {rows}")).clone()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the daemon's stderr:\n{}", self.stderr());
        }
        // It may have ended already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
