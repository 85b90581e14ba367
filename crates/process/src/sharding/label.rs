//! Labels of endpoints on the hash rings of the Graphite family: `HOST:PORT` or `HOST:PORT=INSTANCE`.

use memchr::{memchr, memrchr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label<'a> {
    pub(super) host: &'a [u8],
    pub(super) port: &'a [u8],
    pub(super) instance: Option<&'a [u8]>,
}

impl Label<'_> {
    /// Parses a label; None when it has no port. The last colon is the separator, so IPv6 needs no brackets.
    pub(super) fn parse(text: &[u8]) -> Option<Label<'_>> {
        let (address, instance) = match memchr(b'=', text) {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let colon = memrchr(b':', address)?;
        let label = Label { host: &address[..colon], port: &address[colon + 1..], instance };
        label.parsed_port().map(|_| label)
    }

    /// The port as a number.
    pub(super) fn port_number(&self) -> u16 {
        self.parsed_port().expect("`parse` has seen it")
    }

    /// The instance as a number, if it is one.
    pub(super) fn instance_number(&self) -> Option<i64> {
        std::str::from_utf8(self.instance?).ok()?.parse().ok()
    }

    fn parsed_port(&self) -> Option<u16> {
        std::str::from_utf8(self.port).ok()?.parse().ok()
    }
}

#[test]
fn labels_are_parsed() {
    type Parts = Option<(&'static str, &'static str, Option<&'static str>)>;
    let table: &[(&str, Parts)] = &[
        ("10.0.0.1:2003", Some(("10.0.0.1", "2003", None))),
        ("10.0.0.1:2003=a", Some(("10.0.0.1", "2003", Some("a")))),
        ("h:1=", Some(("h", "1", Some("")))),
        ("h:1=a=b:2", Some(("h", "1", Some("a=b:2")))),
        ("::1:2003=a", Some(("::1", "2003", Some("a")))),
        ("/var/file:0", Some(("/var/file", "0", None))),
        ("h", None),
        ("h:", None),
        ("h:65536", None),
        ("h=a:1", None),
        ("", None),
    ];
    for (text, want) in table {
        let want = want.map(|(host, port, instance)| Label {
            host: host.as_bytes(),
            port: port.as_bytes(),
            instance: instance.map(str::as_bytes),
        });
        assert_eq!(Label::parse(text.as_bytes()), want, "{text:?}");
    }
}
