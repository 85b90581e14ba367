//! `/proc/net/udp` and `/proc/net/udp6`: every UDP socket of the machine, found by its inode (spec statsd §14, R10).

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketRow {
    /// The same as in the socket's `fstat`.
    pub inode: u64,
    /// Bytes of received packets in the buffer, including the kernel's overhead.
    pub rx_queue_bytes: u64,
    /// Packets dropped since the socket was created. Wraps around, see `sys::new_drops`.
    pub drops: u32,
}

/// The rows of a table. The heading and invalid rows are skipped.
pub fn parse_table(text: &str) -> impl Iterator<Item = SocketRow> + use<'_> {
    text.lines().filter_map(row)
}

/// `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode ref pointer drops`
fn row(line: &str) -> Option<SocketRow> {
    let mut columns = line.split_ascii_whitespace();
    columns.next()?.strip_suffix(':')?;
    let (_, rx_queue) = columns.nth(3)?.split_once(':')?;
    let inode = columns.nth(4)?.parse().ok()?;
    let drops = columns.nth(2)?;
    // Kernels with a signed counter show values above 2^31 as negative.
    let drops = drops.parse().ok().or_else(|| Some(drops.parse::<i32>().ok()?.cast_unsigned()))?;
    Some(SocketRow { inode, rx_queue_bytes: u64::from_str_radix(rx_queue, 16).ok()?, drops })
}

#[test]
fn sockets_are_found_with_queue_and_drops() {
    let heading = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops            ";
    let good = SocketRow { inode: 27_431, rx_queue_bytes: 0xD00, drops: 12 };
    let v4 = " 1234: 0100007F:1FBD 00000000:0000 07 00000000:00000D00 00:00000000 00000000     0        0 27431 2 00000000d2b1c3e4 12         ";
    let v6 = "  7: 00000000000000000000000001000000:1FBD 00000000000000000000000000000000:0000 07 00000000:00000D00 00:00000000 00000000 0 0 27431 2 0000000000000000 12";
    let table = [
        (v4.to_owned(), Some(good)),
        (v6.to_owned(), Some(good)),
        (v4.replace(" 12 ", " 12 more columns"), Some(good)),
        (v4.replace(" 12 ", " 4294967295 "), Some(SocketRow { drops: u32::MAX, ..good })),
        (v4.replace(" 12 ", " -2 "), Some(SocketRow { drops: u32::MAX - 1, ..good })),
        (v4.replace(":00000D00", ":FFFFFFFF"), Some(SocketRow { rx_queue_bytes: 0xFFFF_FFFF, ..good })),
        (v4.replace(" 12 ", ""), None),
        (v4.replace(" 12 ", " x "), None),
        (v4.replace("00000000:00000D00", "0"), None),
        (v4.replace("27431", "-"), None),
        (heading.to_owned(), None),
        (String::new(), None),
    ];
    for (line, want) in &table {
        assert_eq!(row(line), *want, "{line}");
    }
    let whole = format!("{heading}\n{v4}\n\nnoise\n{v6}\n");
    assert_eq!(parse_table(&whole).collect::<Vec<_>>(), [good, good]);
}
