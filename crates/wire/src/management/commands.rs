//! Splits the bytes of a management connection into commands.

use memchr::memchr;

/// Longest command: room for a `delcounters` with a screenful of names.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// Assembles the commands of one connection, each ended by LF or CRLF.
#[derive(Debug)]
pub struct Commands {
    command_bytes_max: usize,
    held: Vec<u8>,
    /// The current command is over the limit: its bytes are discarded up to its LF.
    too_long: bool,
    /// The last command was taken before its line end arrived. A line end that arrives next is not a command.
    end_pending: bool,
}

impl Commands {
    /// An assembler for one connection. See [`COMMAND_BYTES_MAX`].
    pub fn new(command_bytes_max: usize) -> Commands {
        Commands { command_bytes_max, held: Vec::new(), too_long: false, end_pending: false }
    }

    /// Adds received bytes and calls `each` with every complete command, without its line end.
    ///
    /// A command over the limit is discarded and passed on as an empty one, which is answered with an error.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            let Some(end) = memchr(b'\n', bytes) else {
                self.buffer(bytes);
                return;
            };
            let (begin, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.held.is_empty() && !self.too_long && begin.len() <= self.command_bytes_max {
                self.emit(begin, &mut each);
                continue;
            }
            self.buffer(begin);
            let held = std::mem::take(&mut self.held);
            self.emit(if self.too_long { b"" } else { &held }, &mut each);
            self.too_long = false;
            self.held = held;
            self.held.clear();
        }
    }

    /// True while a command without a line end is buffered. The caller then calls [`Commands::take_unterminated`] after
    /// 50 ms of silence, because some health checkers send no line end. A command discarded as too long still waits for
    /// its LF, with no timeout.
    pub fn has_unterminated(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes the buffered command that has no line end. A line end that arrives later is ignored.
    pub fn take_unterminated(&mut self) -> Option<Vec<u8>> {
        let command = std::mem::take(&mut self.held);
        // A text that is only the missing line end is not a command, and its LF is still expected.
        if command.is_empty() || self.end_pending && command == b"\r" {
            return None;
        }
        self.end_pending = true;
        Some(command)
    }

    fn emit(&mut self, command: &[u8], each: &mut impl FnMut(&[u8])) {
        let command = command.strip_suffix(b"\r").unwrap_or(command);
        let owed = std::mem::take(&mut self.end_pending);
        if !(owed && command.is_empty()) {
            each(command);
        }
    }

    fn buffer(&mut self, bytes: &[u8]) {
        if self.too_long || self.held.len() + bytes.len() > self.command_bytes_max {
            self.too_long = true;
            self.held.clear();
            return;
        }
        self.held.extend_from_slice(bytes);
    }
}
