//! Bytes to commands.

use memchr::memchr;

/// Longest command: room for a `delcounters` with a screenful of names.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// Assembles the commands of one connection, LF or CRLF behind each.
#[derive(Debug)]
pub struct Commands {
    command_bytes_max: usize,
    held: Vec<u8>,
    /// The command under way is longer than the limit: its bytes are thrown away up to its LF.
    too_long: bool,
    /// The last command was taken without its line end, which may still come and is then no command.
    end_owed: bool,
}

impl Commands {
    /// For one connection. See [`COMMAND_BYTES_MAX`].
    pub fn new(command_bytes_max: usize) -> Commands {
        Commands { command_bytes_max, held: Vec::new(), too_long: false, end_owed: false }
    }

    /// Takes bytes as they come and hands each whole command, without its line end, to `each`.
    ///
    /// A command over the limit is discarded and handed on as an empty one, which is answered with an error.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            let Some(end) = memchr(b'\n', bytes) else {
                self.hold(bytes);
                return;
            };
            let (begin, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.held.is_empty() && !self.too_long && begin.len() <= self.command_bytes_max {
                self.hand_on(begin, &mut each);
                continue;
            }
            self.hold(begin);
            let held = std::mem::take(&mut self.held);
            self.hand_on(if self.too_long { b"" } else { &held }, &mut each);
            self.too_long = false;
            self.held = held;
            self.held.clear();
        }
    }

    /// True while a command without its line end is held: the caller then calls
    /// [`Commands::take_unterminated`] after 50 ms of silence, since health checkers that send none exist.
    /// What was discarded as too long waits for its LF, however long that takes.
    pub fn has_unterminated(&self) -> bool {
        !self.held.is_empty()
    }

    /// The command that has no line end, and forgets it; a line end that still comes is swallowed.
    pub fn take_unterminated(&mut self) -> Option<Vec<u8>> {
        let command = std::mem::take(&mut self.held);
        // What stands for a line end that was owed is none, and still owes its LF.
        if command.is_empty() || self.end_owed && command == b"\r" {
            return None;
        }
        self.end_owed = true;
        Some(command)
    }

    fn hand_on(&mut self, command: &[u8], each: &mut impl FnMut(&[u8])) {
        let command = command.strip_suffix(b"\r").unwrap_or(command);
        let owed = std::mem::take(&mut self.end_owed);
        if !(owed && command.is_empty()) {
            each(command);
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.too_long || self.held.len() + bytes.len() > self.command_bytes_max {
            self.too_long = true;
            self.held.clear();
            return;
        }
        self.held.extend_from_slice(bytes);
    }
}
