//! Output to a terminal or a pipe: messages on stderr, data on stdout. A closed reader is never a failure.

use std::io::Write;

/// Writes a message to stderr.
pub fn say(text: &str) {
    // A closed stderr is no failure.
    let _closed = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Writes data to stdout. False when the reader has gone away, which is no error.
///
/// # Errors
/// Any other failure, such as a full disk behind a redirection.
pub fn data(bytes: &[u8]) -> std::io::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// A number of records: `1 record`, `2 records`.
pub fn records(count: u64) -> String {
    format!("{count} record{}", if count == 1 { "" } else { "s" })
}

/// A number of bytes in binary units: `64 MiB`, `1.5 GiB`, `200 B`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut size = bytes as f64;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    let rounded = (size * 10.0).round() / 10.0;
    format!("{rounded} {}", UNITS[unit])
}

/// Whether to use colours: on a terminal, unless `NO_COLOR` is set.
pub fn wants_colour(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
}

/// A text for a terminal, control characters replaced: a line from the network, or the name of a file or folder, cannot send
/// escape sequences to it.
pub fn shown(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

#[test]
fn sizes_read_well() {
    for (size, want) in [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1 << 30, "1 GiB")]
    {
        assert_eq!(bytes(size), want);
    }
}
