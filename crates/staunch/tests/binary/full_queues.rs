//! Full queues with the default `when_full = "wait"`: an endpoint that is dead, hangs or is slow does not stop the other
//! outputs of its sources (docs/delivery.md).

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::support::{Builder, Daemon, FakeGraphite, wait_for};

/// More lines than the full queue and all buffers on the way to its endpoint hold.
const LINES: u64 = 300_000;

/// Bytes of a line: 60 MB in all.
const LINE_BYTES: usize = 200;

/// The endpoint of the output whose queue fills.
#[derive(Clone, Copy, Debug)]
enum Bad {
    /// Nothing listens.
    Dead,
    /// It accepts connections and never reads.
    Hangs,
    /// It reads ten bytes a second.
    Slow,
}

/// Sends all lines to an output that works and to one that does not: the first one gets all of them, and the account of the
/// second one names each line that it lacks.
#[track_caller]
fn siblings_get_all(bad: Bad, queue: &str) {
    let (near, listener) = (FakeGraphite::new(), TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let far = listener.local_addr().expect("it is bound");
    let ended = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&ended);
    let endpoint = match bad {
        Bad::Dead => {
            drop(listener);
            None
        }
        Bad::Hangs | Bad::Slow => Some(std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the output connects");
            while !ends.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                if matches!(bad, Bad::Slow) {
                    stream.read_exact(&mut [0]).expect("there is always more");
                }
            }
        })),
    };
    let config = format!(
        "stop_timeout = \"1s\"\n\
         [sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.near]\ntype = \"graphite\"\nfrom = [\"lines\"]\nto = [\"{}\"]\n\
         [outputs.far]\ntype = \"graphite\"\nfrom = [\"lines\"]\nto = [\"tcp://{far}\"]\nqueue = {queue}\n",
        near.to()
    );
    let mut daemon = Builder::native(&config).start();
    let at = daemon.at("lines", "tcp");
    let client = std::thread::spawn(move || {
        let mut client = TcpStream::connect(at).expect("it listens");
        let name = "a".repeat(LINE_BYTES - " 1 1700000000\n".len());
        let lines = format!("{name} 1 1700000000\n").repeat(1_000);
        for _ in 0..LINES / 1_000 {
            client.write_all(lines.as_bytes()).expect("it is read");
        }
    });
    wait_for("all lines to be delivered", || {
        (Daemon::number(&daemon.output("near"), "delivered") == LINES).then_some(())
    });
    client.join().expect("everything is written");
    let far = wait_for("the losses", || {
        let far = daemon.output("far");
        (Daemon::number(&far, "losses/dropped/queue_full") > 0).then_some(far)
    });
    assert_eq!(Daemon::number(&far, "copies"), LINES, "{bad:?}, {queue}: {far}");
    assert_eq!(Daemon::number(&daemon.output("near"), "dropped"), 0, "{bad:?}, {queue}");
    assert!(Daemon::number(&far, "stalls") > 0, "the source waited first: {far}");
    daemon.assert_sums_hold();
    ended.store(true, Relaxed);
    endpoint.into_iter().for_each(|endpoint| endpoint.join().expect("it only reads"));
    daemon.signal("KILL");
    daemon.wait_exit();
}

const MEMORY: &str = "{ kind = \"memory\", max_bytes = \"8MiB\" }";
const DISK: &str = "{ kind = \"disk\", max_bytes = \"8MiB\" }";

#[test]
fn siblings_of_a_dead_endpoint_get_all_lines() {
    [MEMORY, DISK].into_iter().for_each(|queue| siblings_get_all(Bad::Dead, queue));
}

#[test]
fn siblings_of_an_endpoint_that_never_reads_get_all_lines() {
    [MEMORY, DISK].into_iter().for_each(|queue| siblings_get_all(Bad::Hangs, queue));
}

#[test]
fn siblings_of_an_endpoint_that_reads_ten_bytes_a_second_get_all_lines() {
    [MEMORY, DISK].into_iter().for_each(|queue| siblings_get_all(Bad::Slow, queue));
}
