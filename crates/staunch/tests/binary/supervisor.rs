//! What a service manager hears: systemd's words over a socket of ours in its place.

use std::os::unix::net::UnixDatagram;
use std::sync::mpsc::{Receiver, channel};

use crate::support::{Builder, PATIENCE, udp, wait_for};

const CONFIG: &str = "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
    [outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://127.0.0.1:9\"]\n";

/// The service manager's end. It reads all the time: one that does not would make the daemon wait.
struct Manager {
    messages: Receiver<Vec<String>>,
    path: String,
    _folder: tempfile::TempDir,
}

impl Manager {
    fn new() -> Manager {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("it can be bound");
        let (tell, messages) = channel();
        // Ends with the test's process: nothing says that no message will come any more.
        std::thread::spawn(move || {
            let mut message = [0; 4096];
            while let Ok(len) = socket.recv(&mut message) {
                let text = String::from_utf8(message[..len].to_vec()).expect("it is text");
                if tell.send(text.lines().map(str::to_owned).collect()).is_err() {
                    return;
                }
            }
        });
        Manager { messages, path: path.display().to_string(), _folder: folder }
    }

    /// The lines of the next message.
    #[track_caller]
    fn hear(&self) -> Vec<String> {
        self.messages.recv_timeout(PATIENCE).expect("a message comes")
    }

    /// Hears messages until one has a line that begins so; gives its lines.
    #[track_caller]
    fn hear_until(&self, begin: &str) -> Vec<String> {
        wait_for(begin, || Some(self.hear()).filter(|lines| lines.iter().any(|line| line.starts_with(begin))))
    }
}

fn status(lines: &[String]) -> &str {
    lines.iter().find_map(|line| line.strip_prefix("STATUS=")).unwrap_or_default()
}

#[test]
fn it_hears_ready_counts_signs_of_life_and_stopping() {
    let manager = Manager::new();
    let mut daemon = Builder::native(CONFIG)
        .variable("NOTIFY_SOCKET", &manager.path)
        .variable("WATCHDOG_USEC", "100000")
        .start();
    let first = manager.hear();
    assert_eq!(first[0], "READY=1", "nothing comes before it: {first:?}");
    assert!(status(&first).starts_with("0 records received"), "{first:?}");
    for _ in 0..3 {
        manager.hear_until("WATCHDOG=1");
    }
    udp(daemon.at("app", "udp")).send(b"a:1|c").expect("it is there");
    wait_for("the counts", || {
        status(&manager.hear_until("WATCHDOG=1")).starts_with("1 records received").then_some(())
    });
    daemon.stop();
    let last = manager.hear_until("STOPPING=1");
    assert!(status(&last).starts_with("stopping"), "{last:?}");
}

#[test]
fn without_a_watchdog_of_its_own_it_gives_no_signs_of_life() {
    let watchdogs =
        [&[][..], &[("WATCHDOG_USEC", "20000"), ("WATCHDOG_PID", "1")], &[("WATCHDOG_USEC", "0")]];
    for watchdog in watchdogs {
        let manager = Manager::new();
        let builder = Builder::native(CONFIG).variable("NOTIFY_SOCKET", &manager.path);
        let builder = watchdog.iter().fold(builder, |builder, (name, value)| builder.variable(name, value));
        let mut daemon = builder.start();
        manager.hear_until("READY=1");
        daemon.stop();
        loop {
            let message = manager.hear();
            assert!(!message.iter().any(|line| line == "WATCHDOG=1"), "{watchdog:?}: {message:?}");
            if message[0] == "STOPPING=1" {
                break;
            }
        }
    }
}

#[test]
fn the_service_manager_hears_of_a_reload_when_it_begins_and_ends() {
    let manager = Manager::new();
    let daemon = Builder::native(CONFIG).variable("NOTIFY_SOCKET", &manager.path).start();
    manager.hear_until("READY=1");
    for (config, result) in [(CONFIG.replace(":9\"", ":10\""), "done"), ("nonsense".to_owned(), "refused")] {
        daemon.reload(&config, result);
        let begins = manager.hear_until("RELOADING=1");
        assert!(begins.iter().any(|line| line.starts_with("MONOTONIC_USEC=")), "{begins:?}");
        manager.hear_until("READY=1");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_takes_over_says_that_it_is_the_main_one_and_gives_signs_of_life() {
    let manager = Manager::new();
    // The service manager gives the watchdog's time to the main process only: the next one has it from there.
    let mut old = Builder::native(CONFIG)
        .variable("NOTIFY_SOCKET", &manager.path)
        .variable("WATCHDOG_USEC", "100000")
        .start();
    manager.hear_until("WATCHDOG=1");
    let mut new = old.successor_without("WATCHDOG_USEC");
    // Both say so, in either order: the one that ends, before it does, and the one that goes on.
    let main = format!("MAINPID={}", new.pid());
    let said = [manager.hear_until("MAINPID="), manager.hear_until("MAINPID=")];
    assert!(said.iter().all(|words| words[0] == main), "{said:?}");
    let ready = said.iter().filter(|words| words.iter().any(|line| line == "READY=1"));
    assert_eq!(ready.count(), 1, "{said:?}");
    assert!(old.wait_exit().success());
    for _ in 0..3 {
        let words = manager.hear_until("WATCHDOG=1");
        assert!(!words.iter().any(|line| line == "STOPPING=1"), "{words:?}");
    }
    new.wait_ready();
    new.stop();
    manager.hear_until("STOPPING=1");
}

#[test]
fn a_manager_that_is_not_there_stops_nothing() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let nobody = folder.path().join("notify").display().to_string();
    let mut daemon =
        Builder::native(CONFIG).variable("NOTIFY_SOCKET", &nobody).variable("WATCHDOG_USEC", "20000").start();
    udp(daemon.at("app", "udp")).send(b"a:1|c").expect("it is there");
    daemon.wait_source("app", "received", 1);
    daemon.stop();
}
