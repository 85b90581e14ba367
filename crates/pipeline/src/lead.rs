//! What an output writes before each line: its text, made anew when the client or the second is another one.
//!
//! Not here: its form (`wire::graphite::Lead`), lines (`encode`).

use config::plan::{GraphiteForm, OutputKind};
use model::{Now, Peer};
use wire::graphite::Lead;

/// The text before the lines of one output.
#[derive(Debug)]
pub(crate) struct Leading {
    lead: Lead,
    peer: Peer,
    /// Unix seconds that the text is of; none when it has to be made.
    of_s: Option<u64>,
    text: Vec<u8>,
}

impl Leading {
    /// That of an output, if it has one. Until told otherwise its lines are our own.
    pub(crate) fn of(kind: &OutputKind) -> Option<Leading> {
        let lead = match kind {
            OutputKind::Graphite { form: GraphiteForm::Syslog, .. }
            | OutputKind::GraphiteDatagrams { syslog: true, .. } => Lead::Syslog,
            OutputKind::GraphiteFile { peer: true, .. } => Lead::Peer,
            _ => return None,
        };
        Some(Leading::new(lead))
    }

    fn new(lead: Lead) -> Leading {
        Leading { lead, peer: Peer::OWN, of_s: None, text: Vec::new() }
    }

    /// Its form.
    pub(crate) fn form(&self) -> Lead {
        self.lead
    }

    /// Whose lines come from now on.
    pub(crate) fn set_peer(&mut self, peer: Peer) {
        if self.peer != peer {
            self.peer = peer;
            self.of_s = None;
        }
    }

    /// The text before a line that is written now.
    pub(crate) fn text(&mut self, now: Now) -> &[u8] {
        let Leading { lead, peer, of_s, text } = self;
        let now_s = now.wall_seconds();
        if *of_s != Some(now_s) {
            *of_s = Some(now_s);
            text.clear();
            lead.write(peer.text(), now_s, text);
        }
        text
    }

    /// Puts the text of our own lines before each of those in `lines`, which have an LF at their end.
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
    let mut leading = Leading::new(Lead::Syslog);
    let at = |wall_s: u64| Now { mono_ns: 0, wall_ns: wall_s * model::SECOND_NS };
    let client = Peer::cut(b"10.0.0.1");
    // (who, when, what)
    let steps = [
        (Peer::OWN, 1, "<30>1 1970-01-01T00:00:01.000Z  carbon-c-relay - - - "),
        (client, 1, "<30>1 1970-01-01T00:00:01.000Z 10.0.0.1 carbon-c-relay - - - "),
        (client, 2, "<30>1 1970-01-01T00:00:02.000Z 10.0.0.1 carbon-c-relay - - - "),
        // A clock that was set back.
        (client, 1, "<30>1 1970-01-01T00:00:01.000Z 10.0.0.1 carbon-c-relay - - - "),
    ];
    for (peer, at_s, want) in steps {
        leading.set_peer(peer);
        assert_eq!(String::from_utf8_lossy(leading.text(at(at_s))), want);
    }
    let mut out = Vec::new();
    leading.own_lines(b"a 1 2\nb 3 4\n", at(3), &mut out);
    let lead = "<30>1 1970-01-01T00:00:03.000Z  carbon-c-relay - - - ";
    assert_eq!(String::from_utf8_lossy(&out), format!("{lead}a 1 2\n{lead}b 3 4\n"));
}
