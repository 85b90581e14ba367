//! E1 and E2: no more inodes, no more threads. Descriptors are A4's, disk space is F4's.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use crate::finding::End;
use crate::scene::Scene;
use crate::support::bench::Bench;
use crate::support::{Builder, Daemon};

const GROWS_MAX: u64 = 128 << 20;

/// Files and folders that the disk of E1 has room for: the daemon's own, and next to none for segments.
const INODES: u32 = 12;

/// A queue on disk whose endpoint never listens.
fn output(name: &str) -> String {
    format!(
        "[outputs.{name}]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://127.0.0.1:9\"]\nmax_retry_delay = \"1s\"\n\
         queue = {{ kind = \"disk\", when_full = \"drop_newest\" }}\n"
    )
}

const SOURCE: &str = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n";

pub(crate) fn inodes(bench: &Bench) -> End {
    let toml = format!("{SOURCE}{}{}", output("copy"), Scene::innocent());
    let builder = Builder::native(&toml);
    std::fs::create_dir(builder.folder().join("staunch-data")).expect("the folder is ours");
    let mount =
        format!("mount -t tmpfs -o size=1g,nr_inodes={INODES} attacks staunch-data && exec \"$0\" \"$@\"");
    let mut daemon = Builder::under(builder, &["unshare", "--mount", "sh", "-c", &mount]).spawn();
    let started = bench.wait("the start", std::time::Duration::from_secs(10), || {
        (!daemon.is_alive() || daemon.stderr().contains("/api/v1/")).then_some(())
    });
    if started.is_none() || !daemon.is_alive() {
        return End::Skipped(format!(
            "no file system can be mounted here, or the daemon does not start on one of {INODES} inodes: {}",
            daemon.stderr().lines().next().unwrap_or_default()
        ));
    }
    daemon.wait_ready();
    let mut scene = Scene::with(bench, daemon, GROWS_MAX);
    let mut client = TcpStream::connect(scene.daemon.at("app", "tcp")).expect("it listens");
    let mut record = vec![b'r'; 994];
    record.extend_from_slice(b":1|c\n");
    let block = record.repeat(1_000);
    // More than the segments hold that there are inodes for.
    let blocks = bench.pick(400, 800);
    for _ in 0..blocks {
        client.write_all(&block).expect("it reads");
    }
    scene.attack(Vec::new(), bench.pick(1.0, 5.0)).end();
    let sent = blocks * 1_000;
    let row = scene.wait("the records", || {
        let page = scene.accounts()?;
        let row = page["outputs"].as_array()?.iter().find(|row| row["name"] == "copy")?.clone();
        (Daemon::number(&row, "copies") == sent).then_some(row)
    });
    let number = |path: &str| row.as_ref().map_or(0, |row| Daemon::number(row, path));
    let (waiting, dropped, damaged) = (number("queued"), number("dropped"), number("losses/dropped/damaged"));
    scene.finding.figure(format!("{waiting} of {sent} records queued, {dropped} dropped with a reason"));
    scene.finding.promise(row.is_some() && waiting + dropped == sent && damaged == 0, || {
        format!("{sent} records: {waiting} queued, {dropped} dropped, {damaged} of them as damaged")
    });
    End::Ran(scene.end(format!("queue on a disk of {INODES} inodes")))
}

pub(crate) fn threads(bench: &Bench) -> End {
    let group = Path::new("/sys/fs/cgroup/pids").join(format!("staunch-attacks-{}", std::process::id()));
    if std::fs::create_dir(&group).is_err() {
        return End::Skipped(
            "no control group for processes can be made (version 1, which takes root)".into(),
        );
    }
    let base = format!("{SOURCE}{}", output("copy"));
    let mut scene = Scene::start(bench, &base, GROWS_MAX);
    let pid = scene.daemon.pid();
    let count = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(1, Iterator::count);
    let limited = std::fs::write(group.join("cgroup.procs"), pid.to_string())
        .and_then(|()| std::fs::write(group.join("pids.max"), count.to_string()));
    if limited.is_ok() {
        // Each queue on disk has a thread.
        let more: String = (0..4).map(|number| output(&format!("more-{number}"))).collect();
        scene.daemon.rewrite(&format!("{base}{more}{}", Scene::innocent()));
        scene.daemon.signal("HUP");
    }
    scene.attack(Vec::new(), bench.pick(1.5, 5.0)).end();
    let reloads =
        crate::asker::get(scene.http, "/metrics", std::time::Duration::from_secs(5)).map(|(_, text)| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("staunch_reloads_total"));
            lines.map(str::to_owned).collect::<Vec<_>>().join(" ")
        });
    scene.finding.figure(format!(
        "limit of {count} threads, then a reload that needs 4 more: {}",
        reloads.unwrap_or_default()
    ));
    let finding = scene.end("no more threads");
    // It is empty when the daemon has gone, which it has with the scene.
    let _gone = std::fs::remove_dir(&group);
    match limited {
        Ok(()) => End::Ran(finding),
        Err(error) => End::Skipped(format!("the group takes no limit: {error}")),
    }
}
