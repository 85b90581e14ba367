//! Queues on disk: what they took is there again after any end of the daemon, and is delivered once.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use crate::support::{Builder, Daemon, FakeGraphite, Manner, wait_for};

fn config(outputs: &[(&str, &FakeGraphite)], queue: &str) -> String {
    let mut toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n".to_owned();
    for (name, endpoint) in outputs {
        toml += &format!(
            "[outputs.{name}]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\nmin_retry_delay = \"20ms\"\n\
             max_retry_delay = \"100ms\"\nqueue = {{ {queue} }}\n",
            endpoint.to()
        );
    }
    toml
}

const DISK: &str = "kind = \"disk\"";

/// An endpoint that refuses.
fn away() -> FakeGraphite {
    let mut endpoint = FakeGraphite::new();
    endpoint.refuse();
    endpoint
}

/// Sends a line for each number, and waits until every output has its copy.
#[track_caller]
fn send(daemon: &Daemon, numbers: std::ops::Range<u64>, outputs: &[&str]) {
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    let count = numbers.end - numbers.start;
    let had: Vec<u64> = outputs.iter().map(|name| Daemon::number(&daemon.output(name), "copies")).collect();
    let lines: String = numbers.map(|number| format!("id.{number}:1|c\n")).collect();
    stream.write_all(lines.as_bytes()).expect("it reads");
    for (name, had) in outputs.iter().zip(had) {
        daemon.wait_output(name, "copies", had + count);
    }
}

/// Waits until everything is synced: until then the files are open, and read whatever becomes of their folder.
fn wait_synced(daemon: &Daemon, output: &str) {
    let unsynced = || Daemon::number(&daemon.output(output), "disk/blocks_unsynced");
    wait_for("the queue to be synced", || (unsynced() == 0).then_some(()));
}

/// How often each number has come.
fn came(endpoint: &FakeGraphite) -> BTreeMap<u64, u64> {
    let mut times = BTreeMap::new();
    for line in String::from_utf8_lossy(&endpoint.bytes()).lines() {
        let number = line.strip_prefix("id.").and_then(|rest| rest.strip_suffix(":1|c"));
        let number = number.and_then(|number| number.parse().ok()).expect("a line of ours, whole");
        *times.entry(number).or_default() += 1;
    }
    times
}

/// Waits until nothing waits, and finds that each number came once.
#[track_caller]
fn assert_all_came(daemon: &Daemon, output: &str, endpoint: &FakeGraphite, numbers: std::ops::Range<u64>) {
    daemon.wait_output(output, "queued", 0);
    daemon.assert_sums_hold();
    let want: BTreeMap<u64, u64> = numbers.map(|number| (number, 1)).collect();
    // What its kernel has, its thread may not have read yet.
    let lines = || endpoint.bytes().iter().filter(|byte| **byte == b'\n').count();
    wait_for("the endpoint to read", || (lines() >= want.len()).then_some(()));
    assert_eq!(came(endpoint), want);
}

fn kill(daemon: &mut Daemon) {
    daemon.signal("KILL");
    assert!(!daemon.wait_exit().success());
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the queue has a folder")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "segment"))
        .collect();
    found.sort();
    found
}

#[test]
fn what_waits_survives_a_kill_and_is_delivered_once() {
    let mut endpoint = away();
    let mut daemon = Builder::native(&config(&[("copy", &endpoint)], DISK)).start();
    send(&daemon, 0..1000, &["copy"]);
    kill(&mut daemon);
    daemon.start_again();
    daemon.wait_logged("1000 records");
    daemon.wait_output("copy", "queued", 1000);
    send(&daemon, 1000..1500, &["copy"]);
    kill(&mut daemon);
    daemon.start_again();
    daemon.wait_output("copy", "queued", 1500);
    endpoint.come_back();
    assert_all_came(&daemon, "copy", &endpoint, 0..1500);
    // The cursor is written as well, and segments that are done with are gone: nothing is sent again.
    wait_for("the cursor to be synced", || {
        (Daemon::number(&daemon.output("copy"), "disk/segments") == 0).then_some(())
    });
    daemon.stop();
    daemon.start_again();
    send(&daemon, 1500..1600, &["copy"]);
    assert_all_came(&daemon, "copy", &endpoint, 0..1600);
    daemon.stop();
}

#[test]
fn a_stop_with_the_endpoint_down_keeps_everything_and_does_not_wait() {
    let mut endpoint = away();
    let mut daemon = Builder::native(&config(&[("copy", &endpoint)], DISK)).start();
    send(&daemon, 0..300, &["copy"]);
    wait_for("the endpoint to be down", || (daemon.output("copy")["state"] == "down").then_some(()));
    // The stop's timeout of these tests is 50 s, which a test that waited for it would tell by itself.
    daemon.stop();
    let logged = daemon.stderr();
    assert!(logged.contains("output `copy`: 300 records queued on disk for the next start"), "{logged}");
    assert!(!logged.contains("not delivered before the stop"), "{logged}");
    daemon.start_again();
    endpoint.come_back();
    assert_all_came(&daemon, "copy", &endpoint, 0..300);
    daemon.stop();
}

#[test]
fn a_stop_with_the_endpoint_up_drains() {
    let endpoint = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&[("copy", &endpoint)], DISK)).start();
    send(&daemon, 0..5000, &["copy"]);
    daemon.stop();
    assert_eq!(came(&endpoint).len(), 5000);
    assert!(!daemon.stderr().contains("queued on disk"), "{}", daemon.stderr());
}

#[test]
fn a_data_directory_has_one_daemon() {
    let endpoint = away();
    let toml = config(&[("copy", &endpoint)], DISK);
    let daemon = Builder::native(&toml).start();
    let data = daemon.folder.path().join("staunch-data");
    let second = format!("data_dir = {:?}\n{toml}", data.display().to_string());
    let (code, logged) = Builder::native(&second).run_to_end();
    assert_ne!(code, 0);
    for part in ["in use by another daemon", &format!("process {}", daemon.pid()), "hint:", "data_dir"] {
        assert!(logged.contains(part), "{logged}");
    }
    // The same file again: that its ports are taken as well is not said.
    let taken = toml.replace("127.0.0.1:0", &daemon.at("app", "tcp").to_string());
    let again = format!("data_dir = {:?}\n{taken}", data.display().to_string());
    let (_, logged) = Builder::native(&again).run_to_end();
    assert!(logged.contains("in use by another daemon") && !logged.contains("cannot listen"), "{logged}");
    // One that keeps nothing there may share it.
    let third =
        format!("data_dir = {:?}\n{}", data.display().to_string(), config(&[("copy", &endpoint)], ""));
    Builder::native(&third).start();
}

#[test]
fn a_damaged_segment_gives_back_what_is_whole_and_is_reported() {
    let mut endpoint = away();
    let mut daemon = Builder::native(&config(&[("copy", &endpoint)], DISK)).start();
    let folder = daemon.folder.path().join("staunch-data/queues/copy");
    for part in 0..4 {
        send(&daemon, part * 100..(part + 1) * 100, &["copy"]);
    }
    kill(&mut daemon);
    let segment = segments(&folder).pop().expect("there is one");
    let mut bytes = fs::read(&segment).expect("it can be read");
    let place = bytes.windows(7).position(|at| at == b"id.250:").expect("it is there");
    bytes[place] ^= 0x20;
    fs::write(&segment, bytes).expect("it can be written");
    daemon.start_again();
    endpoint.come_back();
    daemon.wait_output("copy", "queued", 0);
    daemon.assert_sums_hold();
    let row = daemon.output("copy");
    let came = came(&endpoint);
    let lost = Daemon::number(&row, "losses/dropped/damaged");
    assert!(lost > 0 && came.len() as u64 + lost == 400, "{lost} lost of 400, {} came: {row}", came.len());
    assert!(!came.contains_key(&250) && came.values().all(|times| *times == 1));
    assert_eq!(Daemon::number(&row, "disk/damaged_ranges"), 1);
    assert!(Daemon::number(&row, "disk/quarantined_bytes") > 0);
    wait_for("a word about it", || daemon.stderr().contains("quarantine").then_some(()));
    daemon.stop();
}

#[test]
fn a_reload_keeps_the_queue_also_when_the_name_leads_elsewhere() {
    let first = away();
    let mut daemon = Builder::native(&config(&[("copy", &first)], DISK)).start();
    send(&daemon, 0..100, &["copy"]);
    // Bounds change at once, the kind does not.
    daemon.reload(&config(&[("copy", &first)], "kind = \"disk\", max_bytes = \"1GiB\""), "done");
    assert_eq!(Daemon::number(&daemon.output("copy"), "max_bytes"), 1 << 30);
    daemon.reload(&config(&[("copy", &first)], "kind = \"memory\""), "done");
    let note = "the new `queue.kind` of output `copy` takes effect at the next start only";
    wait_for("a note", || daemon.stderr().contains(note).then_some(()));
    send(&daemon, 100..200, &["copy"]);
    // Removed, and back under the same name with another endpoint: the one queue goes on.
    let (second, other) = (away(), FakeGraphite::new());
    daemon.reload(&config(&[("other", &other)], ""), "done");
    daemon.wait_output("copy", "queued", 200);
    daemon.reload(&config(&[("copy", &second)], DISK), "done");
    send(&daemon, 200..300, &["copy"]);
    daemon.wait_output("copy", "queued", 300);
    let third = FakeGraphite::new();
    let refused = || Daemon::number(&daemon.output("copy"), "errors_by/ECONNREFUSED");
    let before = refused();
    daemon.reload(&config(&[("copy", &third)], DISK), "done");
    assert_all_came(&daemon, "copy", &third, 0..300);
    assert!(refused() >= before && before > 0, "what its account counted still has the system's word");
    let rows = daemon.json("/api/v1/accounts")["outputs"].to_string();
    assert_eq!(rows.matches("\"name\":\"copy\"").count(), 1, "{rows}");
    daemon.stop();
    assert_eq!((came(&first).len(), came(&second).len()), (0, 0));
}

#[test]
fn a_queue_without_its_output_is_logged_and_comes_back_with_its_output() {
    let mut endpoint = away();
    let toml = config(&[("copy", &endpoint)], DISK);
    let other = config(&[("other", &endpoint)], DISK);
    let mut daemon = Builder::native(&toml).start();
    send(&daemon, 0..10, &["copy"]);
    kill(&mut daemon);
    daemon.rewrite(&other);
    daemon.start_again();
    daemon.wait_logged("queues/copy is the queue of output `copy`");
    endpoint.come_back();
    daemon.reload(&toml, "done");
    assert_all_came(&daemon, "copy", &endpoint, 0..10);
    daemon.stop();
}

#[test]
fn a_queue_that_cannot_be_opened_ends_the_start() {
    let endpoint = away();
    let builder = Builder::native(&config(&[("copy", &endpoint)], DISK));
    let queues = builder.folder().join("staunch-data/queues");
    fs::create_dir_all(&queues).expect("a folder");
    fs::write(queues.join("copy"), "not a folder").expect("written");
    let (code, logged) = builder.run_to_end();
    assert_ne!(code, 0);
    for part in
        ["cannot open the queue on disk of output `copy`", "queues/copy", "hint:", "kind = \"memory\""]
    {
        assert!(logged.contains(part), "{logged}");
    }
}

/// A disk of its own, of `megabytes`. None where the system does not let us.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// A file system that cannot reserve room. None where the system has none, or does not let us.
    fn without_fallocate(at: &Path, image: &Path, megabytes: u64) -> Option<SmallDisk> {
        fs::create_dir_all(at).expect("a folder");
        let file = fs::File::create(image).expect("an image");
        file.set_len(megabytes << 20).expect("its size");
        let done = |command: &mut std::process::Command| {
            command.output().is_ok_and(|output| output.status.success()).then_some(())
        };
        done(std::process::Command::new("mkfs.ext2").args(["-q", "-F"]).arg(image))?;
        done(std::process::Command::new("mount").args(["-o", "loop"]).arg(image).arg(at))?;
        Some(SmallDisk(at.to_owned()))
    }

    pub(crate) fn mount(at: &Path, megabytes: u64) -> Option<SmallDisk> {
        fs::create_dir_all(at).expect("a folder");
        let size = format!("size={megabytes}m");
        let mount =
            std::process::Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        mount.ok()?.status.success().then(|| SmallDisk(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // It is lazy, in case that somebody has a file open there.
        let _unmounted = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_makes_connections_wait_and_loses_nothing_of_theirs() {
    let builder = Builder::bare();
    let data = builder.folder().join("disk");
    match SmallDisk::mount(&data, 2) {
        Some(disk) => waits_for_room(&data, disk),
        None => crate::support::skip("disk_queue", "nothing can be mounted here"),
    }
}

/// Where room cannot be reserved, it is measured.
#[test]
fn a_full_disk_without_fallocate_makes_connections_wait_as_well() {
    let builder = Builder::bare();
    let (data, image) = (builder.folder().join("disk"), builder.folder().join("image"));
    match SmallDisk::without_fallocate(&data, &image, 4) {
        Some(disk) => waits_for_room(&data, disk),
        None => crate::support::skip("disk_queue", "no ext2 can be mounted here"),
    }
}

fn waits_for_room(data: &Path, _disk: SmallDisk) {
    let mut endpoint = away();
    // However long a busy machine takes: with `wait`, records are dropped after `max_wait`.
    let block = format!("{DISK}, when_full = \"block\"");
    let toml =
        format!("data_dir = {:?}\n{}", data.display().to_string(), config(&[("copy", &endpoint)], &block));
    let mut daemon = Builder::native(&toml).start();
    let count = 300_000u64;
    let stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    let mut writer = stream.try_clone().expect("a second handle");
    let sender = std::thread::spawn(move || {
        let lines: String = (0..count).map(|number| format!("id.{number}:1|c\n")).collect();
        writer.write_all(lines.as_bytes()).expect("it is read in the end");
    });
    wait_for("the disk to be full", || daemon.stderr().contains("no space left").then_some(()));
    wait_for("the disk to take nothing", || {
        let error = daemon.output("copy")["disk"]["write_error"].clone();
        error.as_str().is_some_and(|error| error.contains("no space left")).then_some(())
    });
    assert!(daemon.get("/metrics").body.contains("staunch_queue_write_waits{output=\"copy\"} 1"));
    endpoint.come_back();
    sender.join().expect("it sends all");
    daemon.wait_output("copy", "copies", count);
    assert_all_came(&daemon, "copy", &endpoint, 0..count);
    let copy = daemon.output("copy");
    assert!(copy["disk"]["write_error"].is_null(), "{copy}");
    assert_eq!(
        (Daemon::number(&copy, "dropped"), Daemon::number(&copy, "disk/blocks_damaged")),
        (0, 0),
        "{copy}"
    );
    drop(stream);
    daemon.stop();
}

/// What was read of a connection that waits for room has nobody else who could send it again.
#[test]
fn a_stop_while_a_connection_waits_for_room_keeps_all_that_was_read() {
    for when_full in ["when_full = \"block\"", "when_full = \"wait\", max_wait = \"10s\""] {
        let mut endpoint = away();
        let (mut daemon, read) = stopped_while_a_source_waits(&endpoint, &format!("{DISK}, {when_full}"));
        assert!(!daemon.stderr().contains("lost as"), "{when_full}: {}", daemon.stderr());
        daemon.start_again();
        endpoint.come_back();
        daemon.wait_output("copy", "queued", 0);
        let came = came(&endpoint);
        assert!(came.len() as u64 >= read, "{when_full}: {} of {read}", came.len());
        assert!(came.keys().copied().eq(0..came.len() as u64), "{when_full}: without a gap");
        daemon.stop();
    }
}

/// In memory nothing outlives the process: each record that was read is counted under the stop, and none as dropped for room.
#[test]
fn a_stop_while_a_connection_waits_for_room_in_memory_counts_all_that_was_read() {
    for when_full in ["when_full = \"block\"", "when_full = \"wait\", max_wait = \"10s\""] {
        let endpoint = away();
        let queue = format!("kind = \"memory\", {when_full}");
        let (daemon, read) = stopped_while_a_source_waits(&endpoint, &queue);
        let log = daemon.stderr();
        assert!(!log.contains("queue_full"), "{when_full}: {log}");
        let lost = log.lines().filter_map(|line| {
            let (before, _) = line.split_once(" records lost as `stopped`")?;
            before.rsplit(' ').next()?.parse::<u64>().ok()
        });
        let lost: u64 = lost.sum();
        assert!(lost >= read, "{when_full}: {lost} of {read}: {log}");
    }
}

/// Fills a queue of 8 MiB for an endpoint that is away, and stops the daemon while its source waits for room. Gives the number
/// of records that were read before.
#[track_caller]
fn stopped_while_a_source_waits(endpoint: &FakeGraphite, queue: &str) -> (Daemon, u64) {
    let queue = format!("{queue}, max_bytes = \"8MiB\"");
    let toml = format!("stop_timeout = \"200ms\"\n{}", config(&[("copy", endpoint)], &queue));
    let mut daemon = Builder::native(&toml).start();
    let at = daemon.at("app", "tcp");
    let sender = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(at).expect("it listens");
        let lines: String = (0..2_000_000).map(|number| format!("id.{number}:1|c\n")).collect();
        // It ends with the daemon.
        let _broken = stream.write_all(lines.as_bytes());
    });
    wait_for("a source that waits", || (Daemon::number(&daemon.output("copy"), "stalls") > 0).then_some(()));
    wait_for("all that is read while it waits", || {
        let read = Daemon::number(&daemon.source("app"), "received");
        std::thread::sleep(std::time::Duration::from_millis(300));
        (Daemon::number(&daemon.source("app"), "received") == read).then_some(())
    });
    let (read, queued) =
        (Daemon::number(&daemon.source("app"), "received"), Daemon::number(&daemon.output("copy"), "queued"));
    assert!(read > queued, "some of it waits in memory: {read} {queued}");
    daemon.signal("TERM");
    daemon.wait_exit();
    sender.join().expect("it sees the connection end");
    (daemon, read)
}

/// The folder is away for a moment, as a disk that comes back: nothing can be written, and it is not for want of room.
#[test]
fn a_disk_that_fails_for_a_moment_costs_nothing() {
    for when_full in ["block", "drop_newest"] {
        let mut endpoint = away();
        let queue = format!("{DISK}, when_full = \"{when_full}\"");
        let mut daemon = Builder::native(&config(&[("copy", &endpoint)], &queue)).start();
        let folder = daemon.folder.path().join("staunch-data/queues/copy");
        let elsewhere = daemon.folder.path().join("elsewhere");
        fs::rename(&folder, &elsewhere).expect("it is ours");
        let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
        let lines: String = (0..100).map(|number| format!("id.{number}:1|c\n")).collect();
        stream.write_all(lines.as_bytes()).expect("it reads");
        wait_for("a write to fail", || {
            (Daemon::number(&daemon.output("copy"), "disk/write_errors") > 0).then_some(())
        });
        fs::rename(&elsewhere, &folder).expect("it is ours");
        daemon.wait_output("copy", "copies", 100);
        endpoint.come_back();
        assert_all_came(&daemon, "copy", &endpoint, 0..100);
        assert_eq!(Daemon::number(&daemon.output("copy"), "losses/dropped/disk_failed"), 0, "{when_full}");
        daemon.stop();
    }
}

#[test]
fn a_reload_says_what_the_outputs_that_it_removes_still_hold() {
    let (kept, gone) = (FakeGraphite::new(), away());
    for (queue, place, then) in [
        (DISK, "on disk in ./staunch-data/queues/gone;", "stays there until an output of that name"),
        ("kind = \"memory\"", "in memory;", "is dropped as `stopped`"),
    ] {
        let both = config(&[("kept", &kept), ("gone", &gone), ("empty", &kept)], queue);
        let mut daemon = Builder::native(&("stop_timeout = \"1s\"\n".to_owned() + &both)).start();
        send(&daemon, 0..100, &["kept", "gone", "empty"]);
        daemon.wait_output("empty", "delivered", 100);
        let one = "stop_timeout = \"1s\"\n".to_owned() + &config(&[("kept", &kept)], queue);
        daemon.reload(&one, "done");
        let logged = |name: &str| {
            let stderr = daemon.stderr();
            let begin = format!("output `{name}` was removed or changed by the reload: ");
            stderr.lines().find_map(|line| Some(line.split_once(&begin)?.1.to_owned()))
        };
        let left = wait_for("what waits for one of them", || logged("gone"));
        let empty = wait_for("that nothing waits for the other", || logged("empty"));
        assert_eq!(empty, "its queue is empty");
        assert!(left.starts_with("100 records (") && left.contains(place) && left.contains(then), "{left}");
        assert_eq!(logged("kept"), None);
        daemon.stop();
    }
}

/// The thread that syncs was started for the endpoint before.
#[test]
fn a_disk_that_is_well_again_after_a_reload_is_delivered_to_the_endpoint_of_today() {
    const SEGMENTS: &str = "kind = \"disk\", max_bytes = \"2MiB\"";
    let (before, today) = (away(), FakeGraphite::new());
    let mut daemon = Builder::native(&config(&[("copy", &before)], SEGMENTS)).start();
    send(&daemon, 0..60_000, &["copy"]);
    wait_synced(&daemon, "copy");
    let folder = daemon.folder.path().join("staunch-data/queues/copy");
    let elsewhere = daemon.folder.path().join("elsewhere");
    fs::rename(&folder, &elsewhere).expect("it is ours");
    daemon.reload(&config(&[("copy", &today)], SEGMENTS), "done");
    let waits = || daemon.output("copy")["disk"]["read_error"].as_str().map(str::to_owned);
    wait_for("the endpoint of today to miss the folder", waits);
    fs::rename(&elsewhere, &folder).expect("it is ours");
    assert_all_came(&daemon, "copy", &today, 0..60_000);
    daemon.stop();
}

/// Issue 11, 4: peers that take every descriptor they can get cost a queue nothing.
#[test]
fn a_queue_of_many_segments_drains_while_peers_hold_every_descriptor_that_they_get() {
    let mut endpoint = away();
    let toml = config(&[("copy", &endpoint)], "kind = \"disk\", max_bytes = \"2MiB\"");
    let daemon = Builder::native(&toml).files_max(64).start();
    send(&daemon, 0..60_000, &["copy"]);
    wait_for("several segments", || {
        (Daemon::number(&daemon.output("copy"), "disk/segments") >= 3).then_some(())
    });
    let idle = |at: SocketAddr| (0..80).map(move |_| TcpStream::connect(at).expect("the kernel takes it"));
    let idle: Vec<TcpStream> = idle(daemon.at("app", "tcp")).chain(idle(daemon.http())).collect();
    endpoint.come_back();
    let lines = || endpoint.bytes().iter().filter(|byte| **byte == b'\n').count();
    wait_for("all to come", || (lines() >= 60_000).then_some(()));
    drop(idle);
    wait_for("the page to be there again", || daemon.answers().then_some(()));
    assert_all_came(&daemon, "copy", &endpoint, 0..60_000);
    let disk = &daemon.output("copy")["disk"];
    assert_eq!((&disk["damaged_ranges"], &disk["blocks_damaged"]), (&0.into(), &0.into()), "{disk}");
    assert_eq!(Daemon::number(&daemon.output("copy"), "dropped/damaged"), 0);
}

/// A folder that is moved away under a running daemon, and back.
#[test]
fn a_queue_waits_for_a_folder_that_is_away() {
    let mut endpoint = away();
    let toml = config(&[("copy", &endpoint)], "kind = \"disk\", max_bytes = \"2MiB\"");
    let builder = Builder::native(&toml);
    let data = builder.folder().to_owned();
    let daemon = builder.start();
    send(&daemon, 0..60_000, &["copy"]);
    wait_synced(&daemon, "copy");
    let folder = data.join(daemon.output("copy")["disk"]["folder"].as_str().expect("it has one"));
    let elsewhere = folder.with_extension("away");
    fs::rename(&folder, &elsewhere).expect("moved");
    endpoint.come_back();
    let waits = || daemon.output("copy")["disk"]["read_error"].as_str().map(str::to_owned);
    let error = wait_for("it to miss its folder", waits);
    assert!(error.contains("missing or was replaced"), "{error}");
    wait_for("the log to say so", || daemon.stderr().contains("Mount it or move it back").then_some(()));
    fs::rename(&elsewhere, &folder).expect("moved back");
    assert_all_came(&daemon, "copy", &endpoint, 0..60_000);
    assert_eq!(daemon.output("copy")["disk"]["read_error"], serde_json::Value::Null);
}

#[test]
fn a_start_without_the_folder_of_a_queue_is_refused_and_makes_no_other() {
    let endpoint = away();
    let mut daemon = Builder::native(&config(&[("copy", &endpoint)], DISK)).start();
    send(&daemon, 0..100, &["copy"]);
    daemon.stop();
    let data = daemon.folder.path().join("staunch-data");
    let (folder, elsewhere) = (data.join("queues/copy"), data.join("elsewhere"));
    fs::rename(&folder, &elsewhere).expect("nobody has it");
    let mut refused = daemon.beside();
    assert_eq!(refused.wait_exit().code(), Some(2), "{}", refused.stderr());
    refused.wait_logged("its file system is not mounted");
    assert!(!folder.exists(), "nothing is made in its place");
    fs::rename(&elsewhere, &folder).expect("it is free");
    daemon.start_again();
    daemon.wait_output("copy", "copies", 100);
    daemon.stop();
}

/// Of several connections one has nothing on its way and ends at once; the others give back what they have when their time is up.
#[test]
fn a_reload_of_an_output_with_several_connections_leaves_nothing_behind_in_its_queue() {
    const EACH: u64 = 60_000;
    let (hangs, reads) = (FakeGraphite::new(), FakeGraphite::new());
    hangs.behave(Manner::Hang);
    let toml = |to: &FakeGraphite| {
        format!(
            "[sources.points]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
             [outputs.copy]\ntype = \"graphite\"\nfrom = [\"points\"]\nto = [\"{}\"]\nconnections = 3\nqueue = {{ {DISK} }}\n",
            to.to()
        )
    };
    let mut daemon = Builder::native(&toml(&hangs)).start();
    let mut stream = TcpStream::connect(daemon.at("points", "tcp")).expect("it listens");
    let lines: String = (0..EACH)
        .map(|time| format!("one.series {time} 1700000000\nanother.one {time} 1700000000\n"))
        .collect();
    stream.write_all(lines.as_bytes()).expect("it reads");
    daemon.wait_output("copy", "copies", 2 * EACH);
    wait_for("the endpoint to take what its kernel takes", || {
        let taken = || Daemon::number(&daemon.output("copy"), "delivered");
        let before = taken();
        std::thread::sleep(std::time::Duration::from_millis(100));
        (before > 0 && taken() == before).then_some(())
    });
    daemon.reload(&toml(&reads), "done");
    daemon.wait_output("copy", "delivered", 2 * EACH);
    // All that comes was on its way to the other endpoint, or waited behind that.
    let came = || (reads.of("one.series").len() + reads.of("another.one").len()) as u64;
    wait_for("all of the rest", || {
        (came() >= Daemon::number(&daemon.output("copy"), "resent")).then_some(())
    });
    for name in ["one.series", "another.one"] {
        let values: Vec<u64> = reads.of(name).iter().map(|point| point.value as u64).collect();
        assert!(values.is_sorted_by(|one, next| one < next) && values.last() == Some(&(EACH - 1)), "{name}");
    }
    daemon.stop();
}
