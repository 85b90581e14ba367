//! The store of whisper files: what it took is in its files after any end of the daemon.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::ops::Range;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use graphite::whisper::WhisperFile;
use model::FileTree as _;
use sys::tree::Tree;

use crate::disk_queue::SmallDisk;
use crate::support::{Builder, Daemon, wait_for};

fn config(tree: &Path, more: &str) -> String {
    format!(
        "[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.store]\ntype = \"whisper\"\nfrom = [\"lines\"]\npath = \"{}\"\n{more}",
        tree.display()
    )
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64 / 10 * 10
}

/// Sends a point of each series at a time, and waits until all are in the queue or in files.
fn send(daemon: &Daemon, series: Range<u32>, time: i64, value: f64) {
    let mut stream = TcpStream::connect(daemon.at("lines", "tcp")).expect("it listens");
    let had = Daemon::number(&daemon.output("store"), "copies");
    let count = u64::from(series.end - series.start);
    let lines: String = series.map(|series| format!("hosts.h{series}.load {value} {time}\n")).collect();
    stream.write_all(lines.as_bytes()).expect("it reads");
    daemon.wait_output("store", "copies", had + count);
}

/// The points of a series in its file.
fn stored(tree: &Path, series: u32, since: i64) -> Vec<(i64, f64)> {
    let tree = Tree::open_read_only(tree.to_owned()).expect("a folder");
    let file = tree.open_to_read(&format!("hosts/h{series}/load.wsp")).expect("it was written");
    let file = WhisperFile::open(file).expect("it is whole");
    let fetched = file.fetch(since - 10, now(), now()).expect("it reads").expect("it covers that");
    fetched.points().collect()
}

#[test]
fn points_survive_kills_and_are_all_in_their_files_after_a_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    let mut daemon = Builder::native(&config(&tree, "")).start();
    let start = now() - 100;
    send(&daemon, 0..200, start, 1.0);
    daemon.signal("KILL");
    assert!(!daemon.wait_exit().success());
    daemon.start_again();
    daemon.wait_output("store", "queued", 200);
    send(&daemon, 0..300, start + 10, 2.0);
    send(&daemon, 0..300, start + 10, 2.5);
    daemon.wait_output("store", "queued", 800);
    daemon.assert_sums_hold();
    assert!(!tree.join("hosts").exists(), "the points are younger than `write_after`");
    daemon.stop();
    for series in 0..300 {
        let first = (series < 200).then_some((start, 1.0));
        let want: Vec<(i64, f64)> = first.into_iter().chain([(start + 10, 2.5)]).collect();
        assert_eq!(stored(&tree, series, start), want, "h{series}");
    }
    daemon.start_again();
    daemon.wait_output("store", "queued", 0);
    daemon.wait_logged("300 whisper files in 302 folders");
    daemon.stop();
}

#[test]
fn a_block_is_delivered_once_its_points_are_in_synced_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    let rules = "write_after = \"1s\"\nschemas = [{ pattern = \"\", retentions = \"10s:1h\" }]\n";
    let mut daemon = Builder::native(&config(&tree, rules)).start();
    send(&daemon, 0..50, now(), 1.0);
    send(&daemon, 0..1, now() - 7_200, 1.0);
    daemon.wait_output("store", "delivered", 50);
    daemon.wait_output("store", "losses/dropped/before_retention", 1);
    daemon.wait_output("store", "queued", 0);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn a_folder_with_another_writer_is_not_used_until_that_one_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    let mut first = Builder::native(&config(&tree, "")).start();
    first.wait_logged("0 whisper files in 1 folder");
    let mut second = Builder::native(&config(&tree, "")).start();
    second.wait_logged("another Staunch writes to this folder");
    send(&second, 0..10, now(), 1.0);
    assert_eq!(second.output("store")["state"], "down");
    let ready = second.get("/ready").body;
    let why = ready.lines().find(|line| line.starts_with("output `store` is down: open_failed, for "));
    assert!(why.is_some_and(|why| why.contains("another Staunch writes to this folder")), "{ready}");
    let (code, _, said) = command(&second, &["drain", "--output", "store"]);
    let wanted = ["503", "the store `store` cannot be opened: another Staunch writes to this folder"];
    assert!(code != 0 && wanted.iter().all(|part| said.contains(part)), "{code} {said}");
    let (code, _, said) = command(&second, &["drain", "--output", "other"]);
    let wanted = ["404", "there is no output of type whisper `other`; those are: store"];
    assert!(code != 0 && wanted.iter().all(|part| said.contains(part)), "{code} {said}");
    first.stop();
    wait_for("the second one to open it", || (second.output("store")["state"] == "up").then_some(()));
    second.stop();
    assert_eq!(stored(&tree, 3, now() - 600).len(), 1);
}

#[test]
fn a_file_that_is_replaced_while_the_daemon_waits_for_its_lock_gets_the_points() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    let rules =
        "lock = true\nwrite_after = \"1s\"\nschemas = [{ pattern = \"\", retentions = \"10s:1h\" }]\n";
    let mut daemon = Builder::native(&config(&tree, rules)).start();
    let start = now() - 60;
    send(&daemon, 0..1, start, 1.0);
    daemon.wait_output("store", "queued", 0);
    let path = tree.join("hosts/h0/load.wsp");
    let lock = fs::File::open(&path).expect("it was written");
    lock.lock().expect("free");
    send(&daemon, 0..1, start + 10, 2.0);
    // Long enough that the daemon has opened the file, in all likelihood; if not, it opens the new one at once.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    fs::copy(&path, tree.join("new")).expect("copied");
    fs::rename(tree.join("new"), &path).expect("replaced");
    drop(lock);
    daemon.wait_output("store", "queued", 0);
    daemon.stop();
    assert_eq!(stored(&tree, 0, start), [(start, 1.0), (start + 10, 2.0)]);
}

#[test]
fn a_folder_that_cannot_be_used_is_named_and_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    fs::write(&tree, "a file where the folder should be").expect("written");
    let mut daemon = Builder::native(&config(&tree, "")).start();
    daemon.wait_logged("whisper is down");
    let answer = daemon.get("/metrics/find?query=*");
    assert_eq!(answer.status, 503, "{}", answer.body);
    let why = "output `store` cannot be opened: Not a directory (os error 20); it is tried again";
    assert!(answer.body.contains(why), "{}", answer.body);
    assert_eq!(daemon.output("store")["last_error"], "open_failed");
    send(&daemon, 0..10, now(), 1.0);
    fs::remove_file(&tree).expect("it is there");
    daemon.wait_logged("whisper is back");
    daemon.stop();
    assert_eq!(stored(&tree, 9, now() - 600).len(), 1);
}

#[test]
fn a_read_only_tree_answers_queries_and_gets_its_points_when_that_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    let Some(_disk) = SmallDisk::mount(&tree, 8) else {
        return crate::support::skip("whisper_store", "nothing can be mounted here");
    };
    let remount = |how: &str| {
        let options = format!("remount,{how}");
        let ran = std::process::Command::new("mount").args(["-o", &options]).arg(&tree).status();
        assert!(ran.expect("it runs").success());
    };
    let rules = "write_after = \"1s\"\nschemas = [{ pattern = \"\", retentions = \"10s:1h\" }]\n";
    let mut daemon = Builder::native(&config(&tree, rules)).start();
    let start = now() - 60;
    send(&daemon, 0..3, start, 1.0);
    daemon.wait_output("store", "queued", 0);
    daemon.stop();
    remount("ro");
    daemon.start_again();
    daemon.wait_logged("Read-only file system");
    daemon.wait_logged("3 whisper files");
    send(&daemon, 2..5, start + 10, 2.0);
    let found = daemon.get("/metrics/find?query=hosts.*");
    assert_eq!(found.body.matches("hosts.h").count(), 5, "{}", found.body);
    let answer = |series: u32| {
        let target = format!("/render?format=raw&from=-5min&target=hosts.h{series}.load");
        daemon.get(&target).body.matches(".0").count()
    };
    assert_eq!((answer(1), answer(2), answer(4)), (1, 2, 1));
    let store = daemon.output("store");
    assert_eq!((&store["state"], &store["last_error"]), (&"down".into(), &"write_failed".into()));
    assert_eq!(Daemon::number(&store, "queued"), 3);
    let (code, _, said) = command(&daemon, &["drain"]);
    let down = said.contains("the store is down: ") && said.contains("Read-only file system");
    assert!(code != 0 && down && said.contains("3 points are not in their files"), "{code} {said}");
    // Another daemon is the first to lock it.
    let other = fs::File::open(tree.join(".staunch-writer")).expect("it is there");
    other.lock().expect("nobody has it");
    remount("rw");
    let (_, _, said) = command(&daemon, &["delete", "--yes", "hosts.h0.load"]);
    assert!(said.contains("another Staunch writes to it"), "{said}");
    assert_eq!(stored(&tree, 0, start).len(), 1, "its file is left alone");
    drop(other);
    daemon.wait_output("store", "queued", 0);
    daemon.stop();
    assert_eq!(stored(&tree, 2, start), [(start, 1.0), (start + 10, 2.0)]);
    assert_eq!(stored(&tree, 4, start), [(start + 10, 2.0)]);
}

/// Steps of the archives of a series.
fn steps(tree: &Path, series: u32) -> Vec<u32> {
    let tree = Tree::open_read_only(tree.to_owned()).expect("a folder");
    let file = tree.open_to_read(&format!("hosts/h{series}/load.wsp")).expect("it was written");
    let file = WhisperFile::open(file).expect("it is whole");
    file.header().archives().iter().map(|archive| archive.step).collect()
}

#[test]
fn files_that_cannot_be_written_are_named_and_hold_up_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    // Folders in the place of files.
    for series in 0..100 {
        fs::create_dir_all(tree.join(format!("hosts/h{series}/load.wsp"))).expect("a new folder");
    }
    let rules = "write_after = \"1s\"\nschemas = [{ pattern = \"\", retentions = \"10s:1h\" }]\n";
    let mut daemon = Builder::native(&config(&tree, rules)).start();
    send(&daemon, 0..300, now(), 1.0);
    daemon.wait_logged("its points wait");
    let written = |series: u32| tree.join(format!("hosts/h{series}/load.wsp")).is_file();
    wait_for("the others to be written", || (100..300).all(written).then_some(()));
    assert_eq!(daemon.output("store")["state"], "up");
    let named = daemon.stderr().lines().filter(|line| line.contains("its points wait")).count();
    assert!((1..=20).contains(&named), "{named} lines");
    let store = &daemon.json("/api/v1/stores")["stores"][0];
    assert!(store["files_bad"].as_u64() >= Some(100), "{store}");
    let (bad, first) = (&store["bad_files"], &store["bad_files"][0]);
    assert_eq!(bad.as_array().map(Vec::len), Some(20), "{bad}");
    assert!(first["path"].as_str().is_some_and(|path| path.ends_with("/load.wsp")), "{first}");
    assert!(first["error"].as_str().is_some_and(|error| !error.is_empty()), "{first}");
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn online_migration_changes_existing_files_in_the_background() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    let rules = |archives: &str| {
        format!("write_after = \"1s\"\nschemas = [{{ pattern = \"\", retentions = \"{archives}\" }}]\n")
    };
    let mut daemon = Builder::native(&config(&tree, &rules("10s:1h"))).start();
    let start = now() - 60;
    send(&daemon, 0..30, start, 1.0);
    daemon.wait_output("store", "queued", 0);
    daemon.stop();
    let mut daemon = Builder::native(&config(&tree, &rules("10s:2h,1m:1d"))).start();
    daemon.wait_logged("30 whisper files");
    daemon.stop();
    assert_eq!(steps(&tree, 0), [10], "off by default");
    let more = format!("{}online_migration = true\n", rules("10s:2h,1m:1d"));
    let mut daemon = Builder::native(&config(&tree, &more)).start();
    daemon.wait_logged("migration ended: 30 files looked at, 30 changed, 0 failed");
    send(&daemon, 0..30, start + 10, 2.0);
    daemon.wait_output("store", "queued", 0);
    daemon.stop();
    for series in 0..30 {
        assert_eq!(steps(&tree, series), [10, 60]);
        assert_eq!(stored(&tree, series, start), [(start, 1.0), (start + 10, 2.0)], "h{series}");
    }
}

#[test]
fn max_bytes_removes_whole_files_only_in_a_folder_that_staunch_created() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    // 1,572,892 bytes a file: ten fit.
    let rules = "write_after = \"1s\"\nmax_bytes = \"16MiB\"\n\
                 schemas = [{ pattern = \"\", retentions = \"1s:131072s\" }]\n";
    let mut daemon = Builder::native(&config(&tree, rules)).start();
    send(&daemon, 0..5, now(), 1.0);
    daemon.wait_output("store", "queued", 0);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    send(&daemon, 5..14, now(), 1.0);
    daemon.wait_output("store", "queued", 0);
    daemon.wait_logged("`max_bytes` was reached: 5 files");
    let metrics = daemon.get("/metrics").body;
    assert!(metrics.contains("staunch_store_files_expired_total{output=\"store\"} 5"), "{metrics}");
    daemon.assert_sums_hold();
    daemon.stop();
    let left = |series: u32| tree.join(format!("hosts/h{series}/load.wsp")).exists();
    assert_eq!((0..14).filter(|series| left(*series)).collect::<Vec<_>>(), (5..14).collect::<Vec<_>>());

    let foreign = folder.path().join("foreign");
    fs::create_dir_all(foreign.join("a")).expect("created");
    let mut daemon = Builder::native(&config(&foreign, rules)).start();
    daemon.wait_logged("Staunch did not create it");
    assert_eq!(daemon.output("store")["state"], "down");
    daemon.stop();
    assert_eq!(fs::read_dir(&foreign).expect("a folder").count(), 1);
}

#[test]
fn links_that_lead_in_circles_are_followed_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    let elsewhere = folder.path().join("elsewhere");
    for (at, name) in [(&tree, "a"), (&tree, "b"), (&elsewhere, "c")] {
        fs::create_dir_all(at.join(name)).expect("created");
        // What is in it is not looked at for its name.
        fs::write(at.join(name).join("x.wsp"), b"").expect("written");
    }
    let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, tree.join(at)).expect("made");
    for number in 0..20 {
        link("../b", &format!("a/b{number}"));
        link("../a", &format!("b/a{number}"));
    }
    link(".", "a/self");
    link(elsewhere.to_str().expect("plain"), "far");
    let mut daemon = Builder::native(&config(&tree, "")).start();
    // Three folders and the root, and once more by links: to a, b and elsewhere.
    daemon.wait_logged("whisper files in 7 folders");
    let found = daemon.json("/metrics/find?query=far.c.*");
    assert_eq!(found[0]["id"], "far.c.x", "{found}");
    daemon.stop();
}

#[test]
fn answers_name_the_series_whose_files_cannot_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    fs::create_dir_all(tree.join("hosts/bad")).expect("created");
    fs::write(tree.join("hosts/bad/load.wsp"), b"these are not the bytes of a whisper file")
        .expect("written");
    let mut daemon = Builder::native(&config(&tree, "")).start();
    send(&daemon, 0..1, now() - 100, 1.0);
    let answer = crate::support::wait_for("the walk to find the file", || {
        let answer = daemon.get("/render?target=hosts.*.load&format=json&from=-5min&cacheTimeout=60");
        answer.head.contains("x-staunch-missing").then_some(answer)
    });
    assert_eq!(answer.status, 200);
    let missing =
        answer.head.lines().find(|line| line.starts_with("x-staunch-missing")).expect("it is there");
    assert!(missing.contains("hosts.bad.load (not a usable whisper file"), "{missing}");
    assert!(answer.body.contains("hosts.h0.load"), "{}", answer.body);
    // Such an answer is not kept, and a mistake in an expression is no limit.
    assert!(answer.head.contains("no-store"), "{}", answer.head);
    let wrong = daemon.get("/tags/findSeries?expr=nothing");
    assert_eq!(wrong.status, 400, "{}", wrong.body);
    assert_eq!(daemon.get("/render?target=seriesByTag('nothing')&format=json").status, 400);
    daemon.stop();
}

/// Runs `staunch whisper VERB` against a daemon.
fn command(daemon: &Daemon, words: &[&str]) -> (i32, String, String) {
    let mut command = std::process::Command::new(crate::support::daemon::STAUNCH);
    command.arg("whisper").args(words).args(["--api", &daemon.http().to_string()]);
    let done = command.stdin(std::process::Stdio::null()).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (done.status.code().unwrap_or(-1), text(done.stdout), text(done.stderr))
}

#[test]
fn series_are_deleted_renamed_and_drained_by_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    let mut daemon = Builder::native(&config(&tree, "")).start();
    let start = now() - 100;
    send(&daemon, 0..30, start, 1.0);
    assert!(!tree.join("hosts").exists(), "the points are younger than `write_after`");
    let (code, _, said) = command(&daemon, &["drain"]);
    assert_eq!((code, said.contains("all points of `store` are in their files")), (0, true), "{said}");
    assert_eq!(stored(&tree, 7, start), [(start, 1.0)]);
    daemon.wait_output("store", "queued", 0);

    let (code, _, said) = command(&daemon, &["delete", "hosts.h1*.load", "--dry-run"]);
    assert!(code == 0 && said.contains("11 series of `store` would be deleted"), "{said}");
    let (code, _, said) = command(&daemon, &["delete", "hosts.h1*.load"]);
    assert!(code == 2 && said.contains("add --yes"), "{code} {said}");
    assert!(tree.join("hosts/h1/load.wsp").exists());
    send(&daemon, 10..11, start + 10, 2.0);
    let (code, _, said) = command(&daemon, &["delete", "hosts.h1*.load", "--yes"]);
    assert!(code == 0 && said.contains("11 series deleted"), "{said}");
    assert!(!tree.join("hosts/h1/load.wsp").exists() && tree.join("hosts/h2/load.wsp").exists());
    daemon.wait_output("store", "losses/dropped/series_deleted", 1);
    let (code, _, said) = command(&daemon, &["delete", "hosts.h1*.load", "--yes"]);
    assert!(code == 1 && said.contains("no such series"), "{code} {said}");

    send(&daemon, 2..3, start + 20, 3.0);
    let (code, _, said) = command(&daemon, &["rename", "hosts.h2", "machines.m2", "--yes"]);
    assert!(code == 0 && said.contains("1 series renamed"), "{said}");
    let found = daemon.get(&format!("/render?target=machines.m2.load&format=raw&from={}", start - 10)).body;
    assert!(found.contains("1.0,None,3.0"), "{found}");
    let (code, _, said) = command(&daemon, &["rename", "hosts.h3", "hosts.h4", "--yes"]);
    assert!(code == 1 && said.contains("there is a series `hosts.h4.load` already"), "{code} {said}");
    let (code, out, _) = command(&daemon, &["rename", "hosts", "computers", "--yes", "--json"]);
    assert!(code == 0 && out.contains("\"changed\": 18"), "{out}");
    daemon.stop();
    assert!(tree.join("computers/h29/load.wsp").exists() && tree.join("machines/m2/load.wsp").exists());
    assert!(!tree.join("hosts/h29/load.wsp").exists());
}
