//! `staunch bench`, as far as it starts daemons of its own and is not for a quiet machine only.

use std::process::Command;

use serde_json::Value;

use crate::support::daemon::STAUNCH;

/// A hundredth of what it is meant for. What it measures is judged by nobody here.
#[test]
fn a_daemon_is_started_on_a_queue_in_each_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = ["--json", "queue", "--runs", "1", "--megabytes", "1", "--start-gigabytes", "0.01"];
    let output = Command::new(STAUNCH).arg("bench").args(small).arg("--folder").arg(folder.path()).output();
    let output = output.expect("it starts");
    let logged = String::from_utf8_lossy(&output.stderr);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {logged}"));
    let start = &report["scenarios"][1];
    let rows = start["rows"].as_array().unwrap_or_else(|| panic!("no rows: {report}"));
    for who in ["stopped", "killed", "damaged"] {
        for what in ["cold, first line", "cold, ready", "warm, first line", "warm, ready"] {
            let row = rows.iter().find(|row| row["who"] == who && row["what"] == what);
            let row = row.unwrap_or_else(|| panic!("no {who}, {what}: {start}"));
            assert!(row["runs"][0].as_f64().is_some_and(|ms| ms > 0.0), "{row}");
        }
    }
    assert_eq!(start["checks"].as_array().map(Vec::len), Some(1));
    assert_eq!(folder.path().read_dir().expect("it is there").count(), 0, "nothing is left behind");
}

/// A two-hundredth of what it is meant for. How fast it was is judged by nobody here, whether all arrived is.
#[test]
fn a_relay_is_measured_and_every_line_is_where_it_belongs() {
    let folder = tempfile::tempdir().expect("a folder");
    let small =
        ["--json", "relay", "--runs", "1", "--lines", "20000", "--scenario", "disk", "--without-original"];
    let output = Command::new(STAUNCH).arg("bench").args(small).arg("--folder").arg(folder.path()).output();
    let output = output.expect("it starts");
    let logged = String::from_utf8_lossy(&output.stderr);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {logged}"));
    let rows = report["scenarios"][0]["rows"].as_array().unwrap_or_else(|| panic!("no rows: {report}"));
    let figure = |who: &str, what: &str| {
        let row = rows.iter().find(|row| row["who"] == who && row["what"] == what);
        row.and_then(|row| row["runs"][0].as_f64()).unwrap_or_else(|| panic!("no {who}, {what}: {report}"))
    };
    assert_eq!(figure("staunch", "lines astray"), 0.0);
    for (who, what) in [
        ("bare loop", "CPU per line"),
        ("staunch", "CPU per line"),
        ("staunch", "times the bare loop"),
        ("staunch", "lines per second"),
        ("staunch", "memory, peak"),
    ] {
        assert!(figure(who, what) > 0.0, "{who}, {what}: {report}");
    }
    assert_eq!(folder.path().read_dir().expect("it is there").count(), 0, "nothing is left behind");
}
