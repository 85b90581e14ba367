//! Packets that the kernel dropped before we could read them, and its receive buffers.
//!
//! Path of a figure: `DatagramSocket::count_drops` reads the socket's counters (SO_MEMINFO) -> [`SocketGauge`] -> the
//! source's account, `/metrics` and `/api/v1/accounts`. If the kernel does not support that, [`follow_tables`] reads
//! `/proc/net/udp` and `udp6` instead. `/proc/net/snmp` and `snmp6` are the counters of all sockets together. The
//! parsers take texts; files are read only in this file. Not here: system calls (`sys`), names (`admin`).

mod batches;
mod counters;
mod sockets;
mod table;

pub use batches::{BATCH_BOUNDS, BatchCounts, BatchSizes};
pub use counters::{Protocol, UdpCounters, parse_snmp, parse_snmp6};
pub use sockets::{Drops, Kernel, SocketFigures, SocketGauge, SocketOpened};
pub use table::{SocketRow, parse_table};

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::daemon::shared::Shared;

/// Interval between two reads of the socket tables: each read makes the kernel visit all sockets of the machine.
const TABLES_EVERY: Duration = Duration::from_secs(5);

/// The counters of all sockets of the network namespace. Missing ones are omitted.
pub fn machine_counters() -> Vec<UdpCounters> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let v4 = read("/proc/net/snmp").and_then(|text| parse_snmp(&text));
    let v6 = read("/proc/net/snmp6").and_then(|text| parse_snmp6(&text));
    v4.into_iter().chain(v6).collect()
}

/// Follows, until `stop` turns true, the sockets that the kernel does not answer for (see [`Kernel::is_blind`]).
pub async fn follow_tables(shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    loop {
        // Both branches are cancel-safe.
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(TABLES_EVERY) => {}
        }
        if !shared.kernel.is_blind() {
            continue;
        }
        // Reading a long table takes milliseconds, and this thread serves the connections.
        if let Ok(rows) = tokio::task::spawn_blocking(read_tables).await {
            shared.kernel.take_rows(&rows);
        }
    }
}

/// All UDP sockets of the network namespace. Empty without such a table.
pub fn read_tables() -> Vec<SocketRow> {
    let texts = ["/proc/net/udp", "/proc/net/udp6"].map(|path| std::fs::read_to_string(path).ok());
    texts.iter().flatten().flat_map(|text| parse_table(text)).collect()
}
