//! The text that an output writes before each line, built again when the client or the second changes.
//!
//! Not here: its form (`wire::graphite::LinePrefix`), lines (`encode`).

use config::plan::OutputKind;
use model::{Now, Peer};
use wire::graphite::LinePrefix;

/// The text before the lines of one output.
#[derive(Debug)]
pub(crate) struct PrefixText {
    line_prefix: LinePrefix,
    peer: Peer,
    /// Unix seconds that the text is of; none when it has to be built.
    of_s: Option<u64>,
    text: Vec<u8>,
}

impl PrefixText {
    /// The text of an output, if it has one. Until [`Self::set_peer`] is called, its lines are our own.
    pub(crate) fn of(kind: &OutputKind) -> Option<PrefixText> {
        kind.facts().line_prefix.map(PrefixText::new)
    }

    fn new(line_prefix: LinePrefix) -> PrefixText {
        PrefixText { line_prefix, peer: Peer::OWN, of_s: None, text: Vec::new() }
    }

    /// Its form.
    pub(crate) fn form(&self) -> LinePrefix {
        self.line_prefix
    }

    /// The sender of the next lines.
    pub(crate) fn set_peer(&mut self, peer: Peer) {
        if self.peer != peer {
            self.peer = peer;
            self.of_s = None;
        }
    }

    /// The text before a line that is written now.
    pub(crate) fn text(&mut self, now: Now) -> &[u8] {
        let PrefixText { line_prefix, peer, of_s, text } = self;
        let now_s = now.wall_seconds();
        if *of_s != Some(now_s) {
            *of_s = Some(now_s);
            text.clear();
            line_prefix.write(peer.text(), now_s, text);
        }
        text
    }

    /// Writes the text of our own lines before each of those in `lines`, which have an LF at their end.
    pub(crate) fn own_lines(&mut self, lines: &[u8], now: Now, out: &mut Vec<u8>) {
        self.set_peer(Peer::OWN);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            out.extend_from_slice(self.text(now));
            out.extend_from_slice(line);
        }
    }
}

#[test]
fn the_text_follows_the_client_and_the_clock() {
    let mut prefix_text = PrefixText::new(LinePrefix::Syslog);
    let at = |wall_s: u64| Now { mono_ns: 0, wall_ns: wall_s * model::SECOND_NS };
    let client = Peer::cut(b"10.0.0.1");
    // (sender, second, text)
    let steps = [
        (Peer::OWN, 1, "<30>1 1970-01-01T00:00:01.000Z  carbon-c-relay - - - "),
        (client, 1, "<30>1 1970-01-01T00:00:01.000Z 10.0.0.1 carbon-c-relay - - - "),
        (client, 2, "<30>1 1970-01-01T00:00:02.000Z 10.0.0.1 carbon-c-relay - - - "),
        // A clock that was set back.
        (client, 1, "<30>1 1970-01-01T00:00:01.000Z 10.0.0.1 carbon-c-relay - - - "),
    ];
    for (peer, at_s, want) in steps {
        prefix_text.set_peer(peer);
        assert_eq!(String::from_utf8_lossy(prefix_text.text(at(at_s))), want);
    }
    let mut out = Vec::new();
    prefix_text.own_lines(b"a 1 2\nb 3 4\n", at(3), &mut out);
    let line_prefix = "<30>1 1970-01-01T00:00:03.000Z  carbon-c-relay - - - ";
    assert_eq!(String::from_utf8_lossy(&out), format!("{line_prefix}a 1 2\n{line_prefix}b 3 4\n"));
}
