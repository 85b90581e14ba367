//! Self-metrics of socket buffers and kernel drops: sockets of the daemon, and all sockets of the machine.

use super::family::family;
use crate::admin::accounts::{AccountsPage, SocketRow};
use crate::daemon::shared::Shared;
use crate::kernel::{BATCH_BOUNDS, UdpCounters};

/// Each UDP socket.
pub(super) fn sockets(out: &mut String, page: &AccountsPage) {
    type Read = fn(&SocketRow) -> u64;
    let rows: [(&'static str, &str, &str, Read); 4] = [
        (
            "staunch_socket_kernel_dropped_total",
            "counter",
            "Datagrams dropped by the kernel, by socket.",
            |row| row.kernel_dropped,
        ),
        ("staunch_socket_receive_queue_bytes", "gauge", "Bytes in the receive buffer.", |row| {
            row.rx_queue_bytes
        }),
        ("staunch_socket_receive_buffer_bytes", "gauge", "Size of the receive buffer.", |row| {
            row.buffer_bytes
        }),
        (
            "staunch_socket_receive_buffer_wanted_bytes",
            "gauge",
            "Requested size of the receive buffer.",
            |row| row.buffer_wanted_bytes,
        ),
    ];
    for (name, kind, help, read) in rows {
        let mut rows = family(out, name, kind, help);
        for source in &page.sources {
            for socket in &source.sockets {
                let labels = [("source", source.name.as_str()), ("listen", socket.listen.as_str())];
                rows.row(&labels, read(socket) as f64);
            }
        }
    }
}

/// Packets per receiving system call, by source.
pub(super) fn batches(out: &mut String, shared: &Shared) {
    let name = "staunch_source_batch_packets";
    let mut rows = family(out, name, "histogram", "Datagrams received per system call.");
    let wiring = shared.wiring.load();
    for (id, source, _) in wiring.accounts.sources() {
        let Some(counts) = shared.kernel.batches(id) else { continue };
        for (bound, calls) in BATCH_BOUNDS.iter().zip(counts.calls_up_to) {
            let bound = bound.to_string();
            rows.part("_bucket", &[("source", source), ("le", &bound)], calls as f64);
        }
        let calls = counts.calls_up_to[BATCH_BOUNDS.len() - 1] as f64;
        rows.part("_bucket", &[("source", source), ("le", "+Inf")], calls);
        rows.part("_sum", &[("source", source)], counts.packets as f64);
        rows.part("_count", &[("source", source)], calls);
    }
}

/// The kernel's counters for all sockets of the machine.
pub(super) fn machine(out: &mut String, tables: &[UdpCounters]) {
    type Read = fn(&UdpCounters) -> Option<u64>;
    let rows: [(&'static str, &str, Read); 6] = [
        ("staunch_machine_udp_rcvbuf_errors_total", "RcvbufErrors: a receive buffer was full.", |udp| {
            udp.rcvbuf_errors
        }),
        ("staunch_machine_udp_in_errors_total", "InErrors: receive errors of any kind.", |udp| udp.in_errors),
        ("staunch_machine_udp_no_ports_total", "NoPorts: no process listened on the port.", |udp| {
            udp.no_ports
        }),
        (
            "staunch_machine_udp_mem_errors_total",
            "MemErrors: the memory for all sockets was exhausted.",
            |udp| udp.mem_errors,
        ),
        ("staunch_machine_udp_sndbuf_errors_total", "SndbufErrors: a send buffer was full.", |udp| {
            udp.sndbuf_errors
        }),
        ("staunch_machine_udp_in_csum_errors_total", "InCsumErrors: wrong checksum.", |udp| {
            udp.in_csum_errors
        }),
    ];
    for (name, help, read) in rows {
        let mut rows = family(out, name, "counter", help);
        for udp in tables {
            if let Some(count) = read(udp) {
                rows.row(&[("protocol", udp.protocol.word())], count as f64);
            }
        }
    }
}
