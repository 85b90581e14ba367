//! The line prefix of an output: carbon-c-relay's `file ip` and `type syslog` (spec graphite §2.4).
//!
//! Path of a point: a shard's encoder -> **[`LinePrefix::write`]** -> the line itself, whose LF ends both.
//! Not here: the line. No clock: the time is an argument.

use crate::report::date_time;

/// The text before each line of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinePrefix {
    /// The client's address and a space.
    Peer,
    /// The header of a syslog message (RFC 5424), of facility `daemon` and severity `informational`.
    Syslog,
}

impl LinePrefix {
    /// Appends the prefix. `peer` is the client's address, empty for the daemon's own lines; `time_s` are Unix seconds.
    pub fn write(self, peer: &[u8], time_s: u64, out: &mut Vec<u8>) {
        match self {
            LinePrefix::Peer => {}
            // The original program writes no milliseconds, and always its own program name.
            LinePrefix::Syslog => {
                out.extend_from_slice(format!("<30>1 {}.000Z ", date_time(time_s)).as_bytes())
            }
        }
        out.extend_from_slice(peer);
        out.extend_from_slice(match self {
            LinePrefix::Peer => b" ",
            LinePrefix::Syslog => b" carbon-c-relay - - - ",
        });
    }
}

impl LinePrefix {
    /// The text after the prefix, in a line that begins with one.
    pub fn behind(self, line: &[u8]) -> &[u8] {
        // Spaces in the prefix; neither time nor address contains one.
        let spaces = match self {
            LinePrefix::Peer => 1,
            LinePrefix::Syslog => 7,
        };
        let end = memchr::memchr_iter(b' ', line).nth(spaces - 1);
        end.map_or(line, |end| &line[end + 1..])
    }
}

#[test]
fn line_prefixes_match_the_original_program() {
    let table: &[(LinePrefix, &str, u64, &str)] = &[
        (LinePrefix::Peer, "127.0.0.1", 1, "127.0.0.1 "),
        (LinePrefix::Peer, "::1", 1, "::1 "),
        (LinePrefix::Peer, "(unknown)", 1, "(unknown) "),
        (LinePrefix::Peer, "", 1, " "),
        (
            LinePrefix::Syslog,
            "127.0.0.9",
            1_710_344_130,
            "<30>1 2024-03-13T15:35:30.000Z 127.0.0.9 carbon-c-relay - - - ",
        ),
        (LinePrefix::Syslog, "", 0, "<30>1 1970-01-01T00:00:00.000Z  carbon-c-relay - - - "),
    ];
    for (line_prefix, peer, time_s, want) in table {
        let mut out = b"x".to_vec();
        line_prefix.write(peer.as_bytes(), *time_s, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), format!("x{want}"));
        out.extend_from_slice(b"a b  c\n");
        assert_eq!(line_prefix.behind(&out[1..]), b"a b  c\n", "{want}");
    }
}
