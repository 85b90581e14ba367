//! Values of `last_error`, with their meaning.
//!
//! `staunch explain` and docs/outcomes.md contain the whole text, the API contains its first sentence with the value.
//! Not here: the system's message for one failure (`telling`), TLS (`tls::words`).

/// Values of `last_error`: why an attempt to reach an endpoint, or its health check, failed. They are not outcomes: records stay
/// queued.
pub const LAST_ERRORS: [(&str, &str); 20] = [
    (
        "connect_failed",
        "The endpoint could not be reached. The log has the system's error, such as connection refused: check whether \
         it runs and listens there, and whether a firewall is in between. The output retries, and records stay queued until then.",
    ),
    (
        "open_failed",
        "The file or folder of the output could not be opened. The log has the system's error: permissions, a read-only file system, another \
         daemon that writes there, or a file of rules that is missing. The output retries, and records stay queued until then.",
    ),
    (
        "unresolved",
        "The name of the endpoint has no address. Check the name in `to`, for example with `getent hosts NAME`.",
    ),
    (
        "loop",
        "The address is a listener of this daemon: records sent there would come back in an endless loop. Set another address in `to`.",
    ),
    (
        "connect_timeout",
        "The endpoint did not answer within `connect_timeout`. A firewall that drops packets, or a machine that is down, has this effect.",
    ),
    (
        "closed_by_peer",
        "The endpoint closed the connection while data was being sent. Its log may have the reason: a limit of its own, or a restart.",
    ),
    ("broken", "The connection was reset, or broke in another way. The log has the system's error."),
    (
        "write_timeout",
        "The endpoint read nothing for `write_timeout`: it is stopped or overloaded, or the network in between is broken.",
    ),
    (
        "tls_failed",
        "The TLS connection could not be established, or failed. One side does not accept the other's certificate, or the endpoint \
         speaks no TLS or no supported version of it, or does not answer the handshake: the log says which. There is no fallback to plain text; records stay queued.",
    ),
    (
        "tls_wanted",
        "The endpoint answered plain lines with a TLS alert: it accepts only TLS and read none of the lines. Add `tls = {}` \
         to the output (docs/graphite.md), or use a port that accepts plain lines. Lines that the endpoint's kernel received first count as delivered.",
    ),
    (
        "closes_at_once",
        "The endpoint accepts connections and closes each of them within a second of its first bytes, three or more in a row. It \
         does not understand the data: check the port, `encoding` (a pickle port closes the connection on plain lines) \
         and `tls`. The log quotes the first line of its answer, if there is one. Records on a connection that was reset stay queued and are sent again. \
         Records on the first connection, and on connections that were closed in an orderly way, count as delivered.",
    ),
    (
        "refused",
        "The endpoint's machine rejected a packet (ICMP): no process listens at that port. Datagrams sent before that reply may be lost.",
    ),
    (
        "blocked",
        "The system did not accept a packet for a long time. The reader of a unix socket that does not read has this effect.",
    ),
    (
        "write_failed",
        "Sending or writing failed. The log has the system's error, such as no space left on the disk.",
    ),
    (
        "answers_error",
        "The endpoint answered a request by an error that may pass. Of HTTP that is the status 408, 425, 429 or one of 500 to 599, of mail servers \
         4xx, or 5xx to the greeting or login, of Riemann a reply that is not ok. The log has the answer. The output sends the records again, after the pause of `Retry-After` if there is one, and they stay queued until then.",
    ),
    (
        "no_answer",
        "The endpoint did not answer a request within `timeout`. The records may have arrived; they stay queued and are sent again.",
    ),
    ("check_failed", "The health check of the endpoint (`check`) could not connect."),
    ("check_unresolved", "The name in the health check of the endpoint has no address."),
    ("check_timeout", "The health check of the endpoint was not answered in time."),
    (
        "check_answer",
        "The health check of the endpoint was answered, but the answer does not say that it is up.",
    ),
];

/// The first sentence about a failure, without its full stop; empty without a failure.
fn sentence(word: &str) -> &'static str {
    let about = LAST_ERRORS.iter().find(|(other, _)| *other == word).map_or("", |(_, about)| *about);
    about.split_once(". ").map_or(about, |(first, _)| first).trim_end_matches('.')
}

/// A sentence about the last failure for people, with the system's message; empty without a failure.
pub fn text(word: &str, words: Option<&str>) -> String {
    match words {
        Some(words) => format!("{} ({words})", sentence(word)),
        None => sentence(word).to_owned(),
    }
}

#[test]
fn every_failure_of_an_endpoint_is_explained() {
    use deliver::Failure;
    let all = [
        Failure::ConnectFailed,
        Failure::OpenFailed,
        Failure::Unresolved,
        Failure::Loop,
        Failure::ConnectTimeout,
        Failure::ClosedByPeer,
        Failure::Broken,
        Failure::WriteTimeout,
        Failure::TlsFailed,
        Failure::TlsWanted,
        Failure::ClosesAtOnce,
        Failure::Refused,
        Failure::Blocked,
        Failure::WriteFailed,
    ];
    for (failure, (word, about)) in all.iter().zip(LAST_ERRORS) {
        assert_eq!(failure.word(), word);
        assert!(about.ends_with('.'), "{about}");
    }
}

#[test]
fn a_failure_has_a_sentence_with_the_systems_message() {
    for (word, words, want) in [
        ("", None, ""),
        ("unresolved", None, "The name of the endpoint has no address"),
        (
            "connect_failed",
            Some("Connection refused (os error 111)"),
            "The endpoint could not be reached (Connection refused (os error 111))",
        ),
    ] {
        assert_eq!(text(word, words), want);
    }
    for (word, _) in LAST_ERRORS {
        assert!((10..180).contains(&sentence(word).len()), "{word}: {}", sentence(word));
    }
}
