//! What the kernel drops before we can read it is part of the account, to the packet (acceptance A10).

use crate::support::{Builder, Daemon, udp, wait_for};

const PACKETS: u64 = 50_000;

#[test]
fn packets_that_the_kernel_dropped_are_counted_exactly() {
    // One socket, and three that share the address.
    [1, 3].into_iter().for_each(assert_drops_are_counted);
}

fn assert_drops_are_counted(readers: u64) {
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\nreceive_buffer = \"4KiB\"\n\
        [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n\
        [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\n";
    let mut daemon = Builder::native(&format!("readers = {readers}\n{toml}")).start();
    let socket = udp(daemon.at("app", "udp"));
    daemon.signal("STOP");
    for _ in 0..PACKETS {
        socket.send(b"hits:1|c").expect("the kernel drops without a word");
    }
    daemon.signal("CONT");
    let row = wait_for("every packet to be accounted for", || {
        let row = daemon.source("app");
        let number = |path: &str| Daemon::number(&row, path);
        // Each packet is one line. A document that says that it balances is of one moment, drops included.
        if row["balanced"] == true {
            assert_eq!(
                (number("received"), number("lines")),
                (number("packets"), number("packets")),
                "{row}"
            );
        }
        let accounted = number("packets") + number("kernel_dropped");
        assert!(accounted <= PACKETS, "{row}");
        (accounted == PACKETS && number("aggregated") == number("packets")).then_some(row)
    });
    assert!(Daemon::number(&row, "kernel_dropped") > 0, "{row}");
    assert_eq!(row["balanced"], true, "{row}");
    let socket = &row["sockets"][0];
    assert_eq!(socket["kernel_dropped"], row["kernel_dropped"], "{row}");
    let buffer_bytes = 8192 * readers;
    assert_eq!(
        (&socket["listen"], &socket["buffer_bytes"]),
        (&row["listen"][0], &buffer_bytes.into()),
        "{row}"
    );
    assert_eq!(socket["buffer_wanted_bytes"], buffer_bytes, "{row}");
    let metrics = daemon.get("/metrics").body;
    let listen = socket["listen"].as_str().expect("a text");
    let dropped = format!(
        "staunch_socket_kernel_dropped_total{{source=\"app\",listen=\"{listen}\"}} {}\n",
        row["kernel_dropped"]
    );
    assert!(metrics.contains(&dropped), "{dropped}{metrics}");
    #[cfg(target_os = "linux")]
    assert!(metrics.contains("staunch_machine_udp_rcvbuf_errors_total{protocol=\"udp\"} "), "{metrics}");
    daemon.assert_sums_hold();
    wait_for("a word about it", || {
        let logged = daemon.stderr();
        (logged.matches(" datagrams lost as `kernel_dropped`").count() == 1).then_some(())
    });
    daemon.stop();
}

#[test]
fn a_buffer_that_the_kernel_does_not_grant_is_logged_with_the_remedy() {
    let granted = std::fs::read_to_string("/proc/sys/net/core/rmem_max").ok();
    let granted: u64 = granted.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    if granted >= 1 << 30 {
        return crate::support::skip("kernel_drops", "this kernel grants anything");
    }
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\nreceive_buffer = \"1GiB\"\n\
        [outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://127.0.0.1:9\"]\n";
    let mut daemon = Builder::native(toml).start();
    let socket = daemon.source("app")["sockets"][0].clone();
    let bytes = |name: &str| socket[name].as_u64().expect("a number");
    // With the right to force it the kernel grants it.
    let short = bytes("buffer_bytes") < bytes("buffer_wanted_bytes");
    daemon.wait_logged_times("sysctl -w net.core.rmem_max=1073741823", usize::from(short));
    daemon.stop();
}
