//! Words of `last_error`, with what each says.
//!
//! `staunch explain` and docs/outcomes.md have all of it, the API its first sentence beside the word.
//! Not here: the system's words for one failure (`telling`), TLS (`tls::words`).

/// Words of `last_error`: why an attempt at an endpoint, or its check, has failed. They are no outcomes: what waits goes on
/// waiting.
pub const LAST_ERRORS: [(&str, &str); 17] = [
    (
        "connect_failed",
        "The endpoint could not be reached or opened. The log has the system's word, such as connection refused: look whether \
         it runs and listens there, and whether a firewall is between. It is tried again, and what waits goes there then.",
    ),
    (
        "unresolved",
        "The name of the endpoint has no address. Look at the name in `to`, and ask with `getent hosts NAME`.",
    ),
    (
        "loop",
        "The address is a listener of this daemon: what is sent there would come back for ever. Write another one in `to`.",
    ),
    (
        "connect_timeout",
        "The endpoint gave no answer within `connect_timeout`. A firewall that drops packets, or a machine that is away, looks so.",
    ),
    (
        "closed_by_peer",
        "The endpoint closed the connection with something on the way. Its log may say why: a limit of its own, or a restart.",
    ),
    ("broken", "The connection was reset, or broke in another way. The log has the system's word."),
    (
        "write_timeout",
        "The endpoint took nothing for `write_timeout`: it is stopped or overloaded, or the network between is broken.",
    ),
    (
        "tls_failed",
        "No encrypted connection could be made or kept. One side does not accept the other's certificate, or the endpoint \
         speaks no TLS, or no version of it that is spoken here, or does not answer the handshake: the log says which. Nothing is sent in the clear instead, and what waits goes on waiting.",
    ),
    (
        "tls_wanted",
        "The endpoint answered plain lines with an alert of TLS: it speaks TLS only and understood none of them. Add `tls = {}` \
         to the output (docs/graphite.md), or name a port that takes plain lines. Lines that its kernel took first count as delivered.",
    ),
    (
        "closes_at_once",
        "The endpoint takes connections and closes each of them within a second of its first bytes, three or more in a row. It \
         does not understand what it gets: look whether the port is the right one, at `encoding` (a pickle port closes at lines) \
         and at `tls`. The log quotes the first line of its answer, if it gives one. What it resets waits and is sent again; what \
         its first connection took, and what it closes in order, counts as delivered.",
    ),
    (
        "refused",
        "The endpoint's machine refused a packet (ICMP): nobody listens at that port. Datagrams may have been lost before it said so.",
    ),
    (
        "blocked",
        "The system would not take a packet for a long time. The receiver of a unix socket that does not read looks so.",
    ),
    (
        "write_failed",
        "Sending or writing failed. The log has the system's word, such as no space left on the disk.",
    ),
    ("check_failed", "The check of the endpoint (`check`) made no connection."),
    ("check_unresolved", "The name that the check of the endpoint asks has no address."),
    ("check_timeout", "The check of the endpoint was not answered in time."),
    ("check_answer", "The check of the endpoint was answered, and the answer does not say that it is up."),
];

/// The first sentence about a word, without its full stop; empty for no word.
fn sentence(word: &str) -> &'static str {
    let about = LAST_ERRORS.iter().find(|(other, _)| *other == word).map_or("", |(_, about)| *about);
    about.split_once(". ").map_or(about, |(first, _)| first).trim_end_matches('.')
}

/// A sentence about the last failure for people, with what the system had to say of it; empty for no word.
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
fn a_word_has_a_sentence_with_what_the_system_said() {
    for (word, words, want) in [
        ("", None, ""),
        ("unresolved", None, "The name of the endpoint has no address"),
        (
            "connect_failed",
            Some("Connection refused (os error 111)"),
            "The endpoint could not be reached or opened (Connection refused (os error 111))",
        ),
    ] {
        assert_eq!(text(word, words), want);
    }
    for (word, _) in LAST_ERRORS {
        assert!((10..180).contains(&sentence(word).len()), "{word}: {}", sentence(word));
    }
}
