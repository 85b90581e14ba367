//! What the streams of a Riemann config remember: through a stop, `kill -9`, a reload and a hot restart.

use std::io::Write;

use wire::riemann;

use crate::riemann::{connect, reply};
use crate::riemann_config::{ask, config, message};
use crate::support::{Builder, Daemon, wait_for};

/// Sums by service, in the index as `sum` and in forks as `fork-NAME`; and a window whose last five events are summed.
const STREAMS: &str = "
(def i (index))
(defn as [service & children] (apply smap (fn [e] (assoc e :service (if (fn? service) (service e) service))) children))
(streams
  (counter (as \"sum\" i))
  (by :service (counter (as (fn [e] (str \"fork-\" (:service e))) i)))
  (moving-event-window 5 (combine folds/sum (as \"window\" i))))";

/// Sends events with these metrics, each of a service `s0` to `s2`, and waits for the answers.
fn send(daemon: &Daemon, metrics: std::ops::Range<i64>) {
    let mut client = connect(daemon.at("riemann", "tcp"));
    for metric in metrics {
        client.write_all(&message(&format!("s{}", metric % 3), metric, 600.0, None)).expect("it reads");
        assert_eq!(reply(&mut client), riemann::OK_REPLY);
    }
}

fn all(daemon: &Daemon) -> Vec<String> {
    ask(&mut connect(daemon.at("riemann", "tcp")), "true").expect("an answer")
}

/// What the index has after the events 0 to `count`.
fn expected(count: i64) -> Vec<String> {
    let sum = |numbers: &mut dyn Iterator<Item = i64>| numbers.sum::<i64>();
    let mut lines: Vec<String> = (0..3)
        .map(|fork| format!("fork-s{fork} {}", sum(&mut (0..count).filter(|number| number % 3 == fork))))
        .collect();
    lines.push(format!("sum {}", sum(&mut (0..count))));
    lines.push(format!("window {}", sum(&mut (count - 5..count))));
    lines
}

/// Waits for a checkpoint of all that was sent by now.
fn wait_for_a_checkpoint(daemon: &Daemon) {
    let since = std::time::Instant::now();
    wait_for("a checkpoint of now", || {
        let page = daemon.json("/api/v1/accounts");
        let age_s = page["checkpoints"][0]["age_s"].as_f64()?;
        (age_s < since.elapsed().as_secs_f64()).then_some(())
    });
}

#[test]
fn streams_and_index_go_on_after_a_stop_and_after_a_kill() {
    let mut daemon = Builder::riemann(&config(STREAMS)).start();
    send(&daemon, 0..20);
    assert_eq!(all(&daemon), expected(20));
    daemon.stop();
    daemon.start_again();
    assert_eq!(all(&daemon), expected(20));
    send(&daemon, 20..31);
    assert_eq!(all(&daemon), expected(31));
    // A checkpoint is made every five seconds.
    wait_for_a_checkpoint(&daemon);
    daemon.signal("KILL");
    daemon.wait_exit();
    daemon.start_again();
    assert_eq!(all(&daemon), expected(31));
    daemon.wait_logged("goes on with the state of");
    send(&daemon, 31..33);
    assert_eq!(all(&daemon), expected(33));
    daemon.stop();
}

#[test]
fn the_next_process_of_a_hot_restart_goes_on_with_the_streams_and_the_index() {
    let mut old = Builder::riemann(&config(STREAMS)).start();
    send(&old, 0..20);
    let mut new = old.successor();
    new.wait_ready();
    assert!(old.wait_exit().success(), "{}", old.stderr());
    send(&new, 20..31);
    assert_eq!(all(&new), expected(31));
    new.stop();
}

#[test]
fn a_reload_keeps_what_the_unchanged_streams_remember_and_lists_the_others() {
    let mut daemon = Builder::riemann(&config(STREAMS)).start();
    send(&daemon, 0..20);
    let file = daemon.file.clone().expect("it has a config");
    // Another stream before them, and a window of another length.
    let changed = STREAMS
        .replace("(counter (as \"sum\"", "#(prn %) (counter (as \"sum\"")
        .replace("window 5", "window 2");
    daemon.hang_up("done", || std::fs::write(&file, config(&changed)).expect("it can be written"));
    daemon.wait_logged("the changed config does not continue: moving-event-window (riemann.config:");
    send(&daemon, 20..21);
    let mut want = expected(21);
    want[4] = "window 20".to_owned();
    assert_eq!(all(&daemon), want);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn without_checkpoints_streams_begin_anew_and_leave_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let riemann = folder.path().join("riemann.config");
    std::fs::write(&riemann, format!("(instrumentation {{:enabled? false}})\n{STREAMS}")).expect("written");
    let native = |checkpoint: &str| {
        format!(
            "data_dir = \"{}\"\n[sources.riemann]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
             [transforms.all]\ntype = \"streams\"\nfrom = [\"riemann\"]\nfile = \"{}\"\ncheckpoint = \"{checkpoint}\"\n",
            folder.path().join("data").display(),
            riemann.display()
        )
    };
    let mut daemon = Builder::native(&native("100ms")).start();
    send(&daemon, 0..10);
    wait_for_a_checkpoint(&daemon);
    // If it began between two events, another one follows after 100 ms.
    std::thread::sleep(std::time::Duration::from_secs(2));
    daemon.signal("KILL");
    daemon.wait_exit();
    daemon.start_again();
    assert_eq!(all(&daemon), expected(10));
    daemon.stop();
    daemon.rewrite(&native("off"));
    daemon.start_again();
    assert_eq!(all(&daemon), Vec::<String>::new());
    assert_eq!(daemon.json("/api/v1/accounts")["checkpoints"], serde_json::json!([]));
    daemon.stop();
    let left = std::fs::read_dir(folder.path().join("data/state")).map_or(0, |files| files.count());
    assert_eq!(left, 0, "files of checkpoints");
}
