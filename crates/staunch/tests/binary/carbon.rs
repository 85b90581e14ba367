//! `staunch carbon` and links with the names of carbon's programs: start, stop, status, rule files, and what is stored.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::daemon::STAUNCH;
use crate::support::{http, nobody, wait_for};

/// A root as carbon's: `bin`, `conf`, `storage`. What still runs when it is dropped is stopped.
struct Root {
    folder: TempDir,
    program: &'static str,
    lines: u16,
    http: u16,
}

impl Root {
    fn new(program: &'static str, section: &str) -> Root {
        let root = Root {
            folder: TempDir::new().expect("a folder for the test"),
            program,
            lines: nobody().port(),
            http: nobody().port(),
        };
        for folder in ["bin", "conf"] {
            fs::create_dir(root.path(folder)).expect("the root is empty");
        }
        std::os::unix::fs::symlink(STAUNCH, root.link()).expect("a new folder");
        let name = program.strip_prefix("carbon-").expect("its names begin so");
        let lines = root.lines;
        root.conf(
            "carbon.conf",
            &format!(
                "[{name}]\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {lines}\n\
                 PICKLE_RECEIVER_PORT = 0\nCACHE_QUERY_PORT = 0\nCARBON_METRIC_INTERVAL = 0\n{section}"
            ),
        );
        root.conf("storage-schemas.conf", "[all]\npattern = .*\nretentions = 1s:1h\n");
        root
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn link(&self) -> PathBuf {
        self.path("bin").join(format!("{}.py", self.program))
    }

    fn conf(&self, name: &str, text: &str) {
        fs::write(self.path("conf").join(name), text).expect("the folder is there");
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(self.link());
        for name in ["GRAPHITE_ROOT", "GRAPHITE_CONF_DIR", "GRAPHITE_STORAGE_DIR", "STAUNCH_LOG"] {
            command.env_remove(name);
        }
        command.args(args).current_dir(self.folder.path()).output().expect("it runs")
    }

    /// Its exit code and what it says on stdout.
    fn said(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.run(args);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn start(&self) {
        let http = format!("127.0.0.1:{}", self.http);
        let output = self.run(&["start", "--http", &http]);
        assert!(output.status.success(), "{output:?}");
    }

    fn stop(&self) {
        assert_eq!(self.said(&["stop"]).0, Some(0));
        wait_for("it to end", || (self.said(&["status"]).0 == Some(1)).then_some(()));
    }

    fn send(&self, lines: &str) {
        let at = SocketAddr::from(([127, 0, 0, 1], self.lines));
        TcpStream::connect(at).and_then(|mut stream| stream.write_all(lines.as_bytes())).expect("it listens");
    }

    fn get(&self, path: &str) -> String {
        http::get(SocketAddr::from(([127, 0, 0, 1], self.http)), path).expect("it answers").body
    }

    /// The values of a series in the last minute.
    fn values(&self, name: &str) -> Vec<f64> {
        let answer = self.get(&format!("/render?format=json&from=-1min&until=%2B1min&target={name}"));
        // Until the store is open the answer is a sentence.
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let points = answer[0]["datapoints"].as_array().cloned().unwrap_or_default();
        points.iter().filter_map(|point| point[0].as_f64()).collect()
    }

    fn wait_values(&self, name: &str, want: &[f64]) {
        wait_for(&format!("{name} to be {want:?}"), || (self.values(name) == want).then_some(()));
    }

    fn log(&self, instance: &str) -> String {
        let (program, path) = (self.program, "storage/log");
        let log = self.path(path).join(program).join(format!("{program}-{instance}/console.log"));
        fs::read_to_string(log).unwrap_or_default()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _stopped = self.run(&["stop"]);
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn is_there(path: &Path) -> bool {
    path.exists()
}

#[test]
fn a_link_with_carbons_name_starts_stops_and_shows_its_status() {
    let root = Root::new("carbon-cache", "");
    let not = "carbon-cache (instance a) is not running\n";
    assert_eq!(root.said(&["status"]), (Some(1), not.to_owned()));
    let pid_file = root.path("storage/carbon-cache-a.pid");
    let none = format!("Pidfile {} does not exist\n", pid_file.display());
    assert_eq!(root.said(&["stop"]), (Some(0), none));
    root.start();
    let pid = fs::read_to_string(&pid_file).expect("it is written before the start returns");
    let runs = format!("carbon-cache (instance a) is running with pid {}\n", pid.trim());
    assert_eq!(root.said(&["status"]), (Some(0), runs));
    let again = format!("carbon-cache (instance a) is already running with pid {}\n", pid.trim());
    assert_eq!(root.said(&["start"]), (Some(1), again));
    root.send(&format!("servers.web1.load 2.5 {}\n", now()));
    root.wait_values("servers.*.load", &[2.5]);
    // Another instance is another daemon.
    assert_eq!(root.said(&["status", "--instance=b"]).0, Some(1));
    root.stop();
    assert!(!is_there(&pid_file));
    assert!(is_there(&root.path("storage/whisper/servers/web1/load.wsp")), "{}", root.log("a"));
    assert!(root.log("a").trim_end().ends_with("stopped"), "{}", root.log("a"));
}

#[test]
fn a_start_says_that_the_http_port_is_in_use() {
    // Unless another program has it already, which is as good.
    let _taken = TcpListener::bind("127.0.0.1:8680");
    let root = Root::new("carbon-cache", "");
    let output = root.run(&["start"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let want = "  http          none: 127.0.0.1:8680 is in use; --http ADDR opens it elsewhere\n";
    assert!(output.status.success() && said.contains(want), "{said}");
    assert!(!said.contains("fanout") && !said.contains("--health"), "{said}");
    assert!(root.log("a").contains("move it with `--http ADDR`; continuing without it"), "{}", root.log("a"));
    root.stop();
}

#[test]
fn rule_files_are_read_again_when_they_change() {
    let root = Root::new("carbon-cache", "USE_WHITELIST = True\n");
    root.start();
    root.send(&format!("a.kept 1 {}\n", now()));
    root.wait_values("a.kept", &[1.0]);
    root.conf("blacklist.conf", "^b\\.\n");
    wait_for("the new list", || root.log("a").contains("reloaded").then_some(()));
    root.send(&format!("b.dropped 1 {0}\na.last 1 {0}\n", now()));
    root.wait_values("a.last", &[1.0]);
    assert_eq!(root.values("b.dropped"), [0.0; 0]);
    // A mistake changes nothing and is in the log.
    root.conf("blacklist.conf", "(\n");
    wait_for("the refusal", || root.log("a").contains("blacklist.conf:1").then_some(()));
    root.send(&format!("b.dropped 1 {0}\na.more 1 {0}\n", now()));
    root.wait_values("a.more", &[1.0]);
    assert_eq!(root.values("b.dropped"), [0.0; 0]);
    root.stop();
}

#[test]
fn an_aggregator_cache_stores_results() {
    let root = Root::new("carbon-aggregator-cache", "FORWARD_ALL = False\n");
    root.conf("aggregation-rules.conf", "all.<what> (1) = sum web*.<what>\n");
    root.start();
    let time = now();
    root.send(&format!("web1.hits 2 {time}\nweb2.hits 3 {time}\n"));
    root.wait_values("all.hits", &[5.0]);
    assert_eq!(root.values("web1.hits"), [0.0; 0], "FORWARD_ALL is off");
    root.stop();
}

#[test]
fn mistakes_are_shown_and_nothing_is_started() {
    let root = Root::new("carbon-relay", "RELAY_METHOD = no-such\n");
    let output = root.run(&["start"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("carbon.conf:7") && said.contains("no-such"), "{said}");
    assert!(!is_there(&root.path("storage/carbon-relay-a.pid")));
    for (args, want) in [
        (&["start", "--rewrite-rules", "x"][..], "no --rewrite-rules"),
        (&["start", "--config", "none.conf"][..], "none.conf"),
        (&["restart"][..], "restart"),
    ] {
        let output = root.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(want), "{args:?}: {said}");
    }
}

#[test]
fn a_start_warns_of_an_instance_that_writes_to_the_same_files() {
    let root = Root::new("carbon-cache", "[cache:b]\nLINE_RECEIVER_PORT = 0\nUDP_RECEIVER_PORT = 0\n");
    // It has no receiver, so it does not start: the warning comes first.
    let output = root.run(&["--instance=b", "start"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("warning[I019]: [cache:b] and [cache] write to the same files"), "{said}");
    assert!(said.contains("set `WHISPER_LOCK_WRITES = True` for all of them, or run one instance"), "{said}");
}

#[test]
fn links_show_their_own_usage_or_say_that_there_is_no_such_script() {
    let folder = TempDir::new().expect("a folder for the test");
    for (name, code, want) in [
        ("whisper-info.py", 2, "Usage: whisper-info.py <PATH> [FIELD]"),
        ("rrd2whisper.py", 2, "staunch: rrd2whisper.py is not in Staunch: "),
    ] {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(STAUNCH, &link).expect("a new link");
        let output = Command::new(link).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && said.contains(want), "{name}: {said}");
    }
}

#[test]
fn a_pid_file_of_another_program_ends_nobody() {
    let root = Root::new("carbon-cache", "");
    fs::create_dir(root.path("storage")).expect("a new folder");
    let pid_file = root.path("storage/carbon-cache-a.pid");
    let mut other = Command::new("sleep").arg("600").spawn().expect("it is on every system");
    fs::write(&pid_file, format!("{}\n", other.id())).expect("the folder is there");
    let (code, said) = root.said(&["stop"]);
    assert_eq!(code, Some(0));
    assert!(said.contains(&format!("No process with pid {} running", other.id())), "{said}");
    assert_eq!(other.try_wait().expect("it is our child"), None, "it was not ended");
    other.kill().and_then(|()| other.wait()).expect("it is our child");
    fs::write(&pid_file, "nonsense").expect("the folder is there");
    let (code, said) = root.said(&["status"]);
    assert!(code == Some(1) && said.contains("removing corrupted pidfile"), "{said}");
    assert!(!is_there(&pid_file));
}

#[test]
fn a_cache_keeps_its_own_metrics_under_carbons_names() {
    let root = Root::new("carbon-cache", "");
    let lines = root.lines;
    root.conf(
        "carbon.conf",
        &format!(
            "[cache]\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {lines}\nPICKLE_RECEIVER_PORT = 0\n\
             CACHE_QUERY_PORT = 0\nCARBON_METRIC_INTERVAL = 1\nCARBON_METRIC_PREFIX = mine\n"
        ),
    );
    root.start();
    root.send("a.b 1 -1\na.c 2 -1\n");
    let received = wait_for("the figure", || {
        let values = root.values("sumSeries(mine.agents.*.metricsReceived)");
        values.contains(&2.0).then_some(values)
    });
    assert!(received.iter().sum::<f64>() == 2.0, "{received:?}");
    let names = root.get("/metrics/expand?query=mine.agents.*-a.*");
    for name in
        ["updateOperations", "committedPoints", "creates", "memUsage", "cpuUsage", "activeConnections"]
    {
        assert!(names.contains(name), "{name} in {names}");
    }
    assert!(root.get("/metrics/expand?query=mine.agents.*-a.cache.*").contains("cache.size"));
    root.stop();
}
