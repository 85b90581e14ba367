//! The management port of the cluster proxy, and the proxy's health check requests (spec statsd §13).

use memchr::{memchr, memmem};

use super::{Command, Form, Replies};
use crate::text::integer;

/// A client's request to the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyCommand {
    /// List of commands.
    Help,
    /// Show the health state, after setting it if a state is given.
    Health {
        /// The state to set.
        set: Option<bool>,
    },
    /// Uptime and the live nodes.
    Status,
    /// The configuration.
    Config,
    /// Close the connection.
    Quit,
    /// State of each endpoint (our extension).
    Targets,
    /// Dropped records by reason (our extension).
    Drops,
    /// Unknown command, including the commands of a statsd server: answered with an error.
    Unknown,
}

impl ProxyCommand {
    /// Parses one command by the rules of [`Command::parse`] in node mode.
    pub fn parse(text: &[u8]) -> ProxyCommand {
        match Command::parse(Form::Node, text) {
            Command::Help => ProxyCommand::Help,
            Command::Health { set } => ProxyCommand::Health { set },
            Command::Config => ProxyCommand::Config,
            Command::Quit => ProxyCommand::Quit,
            Command::Targets => ProxyCommand::Targets,
            Command::Drops => ProxyCommand::Drops,
            Command::Unknown if is_status(text) => ProxyCommand::Status,
            Command::Stats | Command::Dump { .. } | Command::Delete { .. } | Command::Unknown => {
                ProxyCommand::Unknown
            }
        }
    }
}

fn is_status(text: &[u8]) -> bool {
    crate::number::js_trim(text).split(|byte| *byte == b' ').next() == Some(b"status")
}

/// Writes the replies that only the proxy has; `health`, `config` and the rest come from [`ProxyReplies::node`].
#[derive(Clone, Copy, Debug)]
pub struct ProxyReplies;

impl ProxyReplies {
    /// The replies that the proxy shares with the server.
    pub fn node(self) -> Replies {
        Replies::new(Form::Node)
    }

    /// Answer to `help`.
    pub fn help(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Commands: config, health, status, quit\n\n");
    }

    /// Answer to `status`: the live nodes as `host:port`, in the order of the hash ring's list, each followed by a
    /// space.
    pub fn status<'a>(self, uptime_s: u64, live: impl IntoIterator<Item = &'a str>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"uptime: ");
        integer(uptime_s, out);
        out.extend_from_slice(b"\nnodes: ");
        for node in live {
            out.extend_from_slice(node.as_bytes());
            out.push(b' ');
        }
        out.push(b'\n');
    }
}

/// The health check request that is sent to a node's management port.
pub const HEALTH_REQUEST: &[u8] = b"health\r\n";

/// Longest reply that is read; a longer one without `up` means down.
pub const HEALTH_REPLY_BYTES_MAX: usize = 4096;

/// The health state in the bytes received so far: true when they contain `up`, false when a complete line has none,
/// `None` when more bytes are needed. At the end of the connection `None` means down.
///
/// The original program takes the first TCP segment for the whole reply.
pub fn health_reply(received: &[u8]) -> Option<bool> {
    let looked_at = &received[..received.len().min(HEALTH_REPLY_BYTES_MAX)];
    if memmem::find(looked_at, b"up").is_some() {
        return Some(true);
    }
    let complete = looked_at.len() == HEALTH_REPLY_BYTES_MAX || memchr(b'\n', looked_at).is_some();
    complete.then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_commands_are_parsed() {
        let table: &[(&str, ProxyCommand)] = &[
            ("help", ProxyCommand::Help),
            ("status", ProxyCommand::Status),
            (" status \r", ProxyCommand::Status),
            ("status of all", ProxyCommand::Status),
            ("config", ProxyCommand::Config),
            ("quit", ProxyCommand::Quit),
            ("health", ProxyCommand::Health { set: None }),
            ("health UP", ProxyCommand::Health { set: Some(true) }),
            ("health Down", ProxyCommand::Health { set: Some(false) }),
            ("health sideways", ProxyCommand::Health { set: None }),
            ("targets", ProxyCommand::Targets),
            ("drops", ProxyCommand::Drops),
            ("Status", ProxyCommand::Unknown),
            ("status\tx", ProxyCommand::Unknown),
            ("statusx", ProxyCommand::Unknown),
            ("stats", ProxyCommand::Unknown),
            ("counters", ProxyCommand::Unknown),
            ("delgauges a", ProxyCommand::Unknown),
            ("", ProxyCommand::Unknown),
        ];
        for (text, want) in table {
            assert_eq!(ProxyCommand::parse(text.as_bytes()), *want, "{text:?}");
        }
    }

    #[test]
    fn replies_match_the_original_program_byte_for_byte() {
        let written = |write: &dyn Fn(ProxyReplies, &mut Vec<u8>)| {
            let mut out = Vec::new();
            write(ProxyReplies, &mut out);
            String::from_utf8(out).expect("text")
        };
        assert_eq!(written(&|replies, out| replies.help(out)), "Commands: config, health, status, quit\n\n");
        let nodes = ["10.0.0.1:8125", "web.example.com:8125"];
        assert_eq!(
            written(&|replies, out| replies.status(61, nodes, out)),
            "uptime: 61\nnodes: 10.0.0.1:8125 web.example.com:8125 \n"
        );
        assert_eq!(written(&|replies, out| replies.status(0, [], out)), "uptime: 0\nnodes: \n");
        assert_eq!(written(&|replies, out| replies.node().health(false, out)), "health: down\n");
        assert_eq!(written(&|replies, out| replies.node().error(out)), "ERROR\n");
        let config = [("nodes > 0", "[object Object]"), ("port", "8125")];
        assert_eq!(
            written(&|replies, out| replies.node().config(config, out)),
            "\nnodes > 0: [object Object]\nport: 8125\n"
        );
    }

    #[test]
    fn a_health_reply_is_up_down_or_incomplete() {
        let table: &[(&[u8], Option<bool>)] = &[
            (b"", None),
            (b"heal", None),
            (b"health: u", None),
            (b"health: up", Some(true)),
            (b"health: up\n", Some(true)),
            (b"health: down", None),
            (b"health: down\n", Some(false)),
            (b"ERROR\n", Some(false)),
            (b"\r\n\xffup", Some(true)),
            (b"UP\r\n", Some(false)),
        ];
        for (received, want) in table {
            assert_eq!(health_reply(received), *want, "{}", String::from_utf8_lossy(received));
        }
        let mut long = vec![b'x'; HEALTH_REPLY_BYTES_MAX - 1];
        assert_eq!(health_reply(&long), None);
        long.push(b'x');
        assert_eq!(health_reply(&long), Some(false));
        long.extend(b"up");
        assert_eq!(health_reply(&long), Some(false));
        long.truncate(HEALTH_REPLY_BYTES_MAX - 2);
        long.extend(b"up");
        assert_eq!(health_reply(&long), Some(true));
    }
}
