//! Hot restarts: nothing is lost between two processes, nothing counted twice, and one of them is always there.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::{Builder, Daemon, FakeGraphite, udp, wait_for};

/// Packets between two pauses of a millisecond.
const BURST: u64 = 20;

fn config(to: &str, window: &str) -> String {
    format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\", \"tcp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"{window}\"\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{to}\"]\n\
         retry_min = \"50ms\"\nretry_max = \"200ms\"\n"
    )
}

/// Sends one packet after the other until it is told to stop.
struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Flood {
    fn begin(to: SocketAddr) -> Flood {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (until, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = std::thread::spawn(move || {
            let socket = udp(to);
            while !until.load(SeqCst) {
                for _ in 0..BURST {
                    socket.send(b"hits:1|c").expect("somebody has the port");
                }
                count.fetch_add(BURST, SeqCst);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Flood { stop, sent, thread }
    }

    /// Waits until so many more packets have been sent.
    fn wait_for_more(&self, packets: u64) {
        let until = self.sent.load(SeqCst) + packets;
        wait_for("packets to be sent", || (self.sent.load(SeqCst) >= until).then_some(()));
    }

    fn end(self) -> u64 {
        self.stop.store(true, SeqCst);
        self.thread.join().expect("the sender does not panic");
        self.sent.load(SeqCst)
    }
}

/// Starts a successor and waits until it is alone.
#[track_caller]
fn replace(old: &mut Daemon) -> Daemon {
    let mut new = old.successor();
    new.wait_ready();
    let status = old.wait_exit();
    assert!(status.success(), "{status}:\n{}\n--- the new one:\n{}", old.stderr(), new.stderr());
    assert!(!old.stderr().contains("panicked") && !new.stderr().contains("panicked"), "{}", old.stderr());
    new
}

#[test]
fn what_is_sent_over_three_restarts_is_counted_once() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite.to(), "1s")).start();
    let (udp_at, tcp_at) = (daemon.at("app", "udp"), daemon.at("app", "tcp"));
    let flood = Flood::begin(udp_at);
    let mut sent_by_tcp = 0;
    for _ in 0..3 {
        let mut stream = TcpStream::connect(tcp_at).expect("somebody listens at any time");
        stream.write_all(b"hits:1|c\nhits:1|c\n").expect("it reads");
        sent_by_tcp += 2;
        flood.wait_for_more(200);
        daemon = replace(&mut daemon);
        flood.wait_for_more(200);
        assert_eq!((daemon.at("app", "udp"), daemon.at("app", "tcp")), (udp_at, tcp_at));
    }
    let sent = flood.end() + sent_by_tcp;
    daemon.wait_source("app", "received", sent);
    daemon.assert_sums_hold();
    let row = daemon.source("app");
    assert_eq!(Daemon::number(&row, "kernel_dropped"), 0, "{row}");
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), sent as f64, "{}", daemon.stderr());
}
