//! What the program says to people: text on stderr, data on stdout, never a failure because nobody listens.

use std::io::Write;

/// Target of log lines in an original's own words: they stand in the log of whoever stands in for it, and in no other.
pub const ORIGINAL: &str = "in_the_originals_words";

/// The same, for what the original says only when it is told to be talkative. It begins with [`ORIGINAL`], so that whoever
/// leaves that out leaves this out too.
pub const ORIGINAL_DEBUG: &str = "in_the_originals_words_for_debugging";

/// Target of warnings that an original has no word for and that are no failure of ours: in its log they do not stand among
/// errors, which scripts look for.
pub const ASIDE: &str = "staunch::aside";

/// Target of the lines that say the same in ours, and that such a log does without.
pub const OURS: &str = "in_our_words";

/// Writes talk to stderr.
pub fn say(text: &str) {
    // Nobody listens: nothing to be done about it.
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

#[test]
fn sizes_read_well() {
    for (size, want) in [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1 << 30, "1 GiB")]
    {
        assert_eq!(bytes(size), want);
    }
}
