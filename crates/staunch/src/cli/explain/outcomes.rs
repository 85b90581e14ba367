//! Advice on every outcome with a loss, for `staunch explain` and `docs/outcomes.md`.
//!
//! The names and their one-sentence meanings are in `model::outcome`. Each `match` is over a closed enum, so a new
//! reason without advice does not compile.

use model::{Dropped, Filtered, Internal, Reject, RejectedByPeer};

pub(crate) use crate::outputs::failures::LAST_ERRORS;

/// One reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// `rejected`, `dropped`, `rejected_by_peer`, `filtered` or `internal`.
    pub(crate) family: &'static str,
    /// The word in self-metrics, the API and logs; also the anchor in `docs/outcomes.md`.
    pub(crate) word: &'static str,
    /// The cause in one sentence.
    pub(crate) why: &'static str,
    /// What to do.
    pub(crate) advice: &'static str,
}

/// Every reason, by family.
pub(crate) fn pages() -> Vec<Page> {
    let page = |family, word, why, advice| Page { family, word, why, advice };
    let mut pages = Vec::new();
    pages.extend(Reject::ALL.iter().map(|r| page("rejected", r.word(), r.why(), rejected(*r))));
    pages.extend(Dropped::ALL.iter().map(|r| page("dropped", r.word(), r.why(), dropped(*r))));
    pages.extend(
        RejectedByPeer::ALL.iter().map(|r| page("rejected_by_peer", r.word(), r.why(), rejected_by_peer(*r))),
    );
    pages.extend(Filtered::ALL.iter().map(|r| page("filtered", r.word(), r.why(), filtered(*r))));
    pages.extend(Internal::ALL.iter().map(|r| page("internal", r.word(), r.why(), internal(*r))));
    pages
}

const BAD_MESSAGE: &str = "The connection stays open and the next message is read. Point only carbon, a relay or another client that pickles \
     lists of `(name, (time, value))` at a pickle listener. Objects of classes are never created. A source of type `riemann` \
     closes the connection, as Riemann does.";

const BAD_TIMESTAMP: &str = "In StatsD, write the time as `|T1656581400`: Unix seconds, a whole number above 0. In Graphite, the time is the last \
     field, in Unix seconds; `-1` means now, and `N` means that it is missing.";

const BAD_COMPRESSION: &str = "Counted once per connection, because the number of lost records is unknown. Records before the damage count. Set \
     the same `transport` at the source and at the sender. The log says what was found.";

const HTTP_REQUEST: &str = "Counted once per connection. No part of the request is read as lines, not even its body. The client may be a port \
     scanner, or a browser that a web page made send the request. The HTTP API listens at the address of `[http]`.";

const TLS_HANDSHAKE: &str =
    "Counted once per connection. Set `tls` on the source, or turn TLS off at the client.";

/// Advice on [`Reject::TimestampUnsupported`].
const TIMESTAMP_UNSUPPORTED: &str = "Use `T` only on counters and gauges. Each value of the line is written with the full name, so a line may expand \
     to 64 KiB plus 256 times its own length, and to 4 MiB at most. Correct the sender, or use shorter names or fewer values \
     per line.";

/// Advice on [`Dropped::TooBig`].
const TOO_BIG: &str = "One of four limits. (1) A Graphite line is longer than `max_line_bytes` of the output: shorten the name, or raise \
     the option if the endpoint accepts such lines; carbon does not. (2) The endpoint's network does not accept a datagram of \
     this size (about 65,507 bytes for UDP). (3) The flush of a `console` or `perl_file` output grew past its limit: use an \
     output of type `tcp` or `graphite`. (4) Several values share one name, and the endpoint needs one line per value: a line \
     or series may expand to 64 KiB plus 256 times its size with the name written once, and a line to 4 MiB at most. Use an \
     endpoint that accepts packed values, or shorten names and tags.";

/// Advice on [`Reject::UnfinishedFull`].
const UNFINISHED_FULL: &str = "Counted once per connection. Either a client starts large messages and does not finish them, or more clients send \
     large messages at once than there is memory for. If one client alone is the cause, the log names it. Raise \
     `max_unfinished_bytes`, or send smaller messages: up to 64 KiB are always accepted.";

/// Advice on [`Reject::NonFinite`].
const NON_FINITE: &str = "Correct the sender. NaN, infinities and sums beyond the range of a double are not stored, because they would \
     make all later values of their series useless. `compat_quirks` with `allow_non_finite` accepts them, as node \
     statsd does.";

/// Advice on [`Reject::BadTag`].
const BAD_TAG: &str = "Correct the sender. The format of a Graphite tag is `;tag=value`: both parts are required, the tag contains no `!` and \
     no `^`, and the value does not begin with `~`.";

/// Advice on [`Reject::TailLost`].
const TAIL_LOST: &str = "The connection was reset or closed in the middle of a line or frame, or Staunch stopped at that moment. After \
     an orderly close by the peer, the last line counts even without a line feed, unless `tail_counts = false`.";

/// Advice on [`Dropped::Deleted`].
const DELETED: &str = "Files of the queue, or its folder, were removed while the daemon ran. The daemon delivers the files that it still has \
     open; the others are lost. The log names the folder. At the next start, records that are missing between \
     existing ones are counted as `damaged`.";

/// Advice on [`Dropped::SeriesMax`].
const SERIES_MAX: &str = "Find the sender of new names: see `staunch_series_created_total`, then `/api/v1/series?name=GLOB`. If the names \
     are wanted, raise `max_series` of the aggregation, and watch its memory. A lower `expiry` removes inactive \
     series earlier.";

/// Advice on [`Dropped::InFuture`].
const IN_FUTURE: &str = "Check the clock of the sender. In its file, the point would replace the oldest one. `max_future` of the output \
     sets the limit; `compat = { whisper_accept_future = true }` removes it, as in carbon.";

/// Advice on [`Dropped::BeforeRetention`].
const BEFORE_RETENTION: &str = "The point is older than the last archive of its file: look for a sender that is far behind. To keep points for \
     longer, change `schemas` and resize the file: `staunch whisper resize`.";

/// Advice on [`Dropped::UnusableFile`].
const UNUSABLE_FILE: &str =
    "The log names the file and what is wrong with it. Move it away: a new file is then created.";

/// Advice on [`Dropped::ExchangeFull`].
const EXCHANGE_FULL: &str = "Happens only with `readers` above 1, and only to datagrams: one receive call returned more bytes than there was room \
     for in the 4 MiB between a reader and the shard. Connections wait instead. Packets that are not read yet wait in \
     the kernel's receive buffer. Let senders send smaller packets, or reduce the load of the shard.";

/// Advice on [`Dropped::Stopped`].
const STOPPED: &str = "Raise `stop_timeout`, repair the endpoint before you stop the daemon, or keep the queue on disk \
     (`kind = \"disk\"`). Records of a source have this reason if they arrived too late for the stop, or if a relay had no \
     time left to match their names.";

/// Advice on [`Dropped::TooManyCopies`].
const TOO_MANY_COPIES: &str = "Relays that feed each other by several ways multiply the copies of a point. Remove some of the ways: \
     `staunch check --keys` prints all of them for a name. `copies_refused` of a relay counts the copies.";

/// Advice on [`Reject::TooManyTags`].
const TOO_MANY_TAGS: &str = "Raise `max_tags` of the source, or send fewer tags. The limits of an event in a source of type `riemann` are fixed.";

/// Advice on [`Reject::MessageTooBig`].
const MESSAGE_TOO_BIG: &str =
    "Send fewer events in one message: at most 65,536. The client got the reason as an error reply.";

/// Advice on [`Reject::BadFrame`].
const BAD_FRAME: &str = "Each packet must follow its length, as four bytes little-endian, and must not be longer than \
     `max_line_bytes`. Check that the client uses a length-prefixed unix stream (`unix-frames://`). Lengths of pickle, \
     protobuf and Riemann's messages are big-endian, and their limit is `max_message_bytes`.";

fn rejected(reason: Reject) -> &'static str {
    match reason {
        Reject::NoName => {
            "Correct the sender. The dialect `etsy` accepts an empty name, as node statsd does."
        }
        Reject::NoType => "Correct the sender: the format of a sample is `name:value|type`.",
        Reject::BadType => {
            "Valid types are `c`, `g`, `ms` and `s`; `union` and `dogstatsd` also accept `h` and `d`. Node statsd counts every \
             other type as a counter, and so does the dialect `etsy`."
        }
        Reject::BadValue => {
            "Correct the sender: decimal digits with a point, no thousands separator, no unit. Hexadecimal, octal, \
             binary and blank values are accepted only with `strict_numbers = false`."
        }
        Reject::BadRate => {
            "Write a sample rate as `@0.1`: a decimal number above 0 and up to 1, and at least `min_sample_rate` of the source."
        }
        Reject::NegativeTimer => {
            "Correct the sender, or set `allow_negative_timers = true` (dialect `union`)."
        }
        Reject::NonFinite => NON_FINITE,
        Reject::LineTooLong => {
            "Raise `max_line_bytes` of the source, or look for a sender that leaves out line feeds."
        }
        Reject::KeyTooLong => "Raise `max_key_bytes` of the source, or shorten names and tags at the sender.",
        Reject::TooManyTags => TOO_MANY_TAGS,
        Reject::BadTag => BAD_TAG,
        Reject::BadEvent => {
            "Correct the sender. The two lengths in `_e{5,4}:` are in bytes, not in characters."
        }
        Reject::BadCheck => {
            "Correct the sender: the format of a service check is `_sc|name|status`, with a status of 0 to 3."
        }
        Reject::BadTimestamp => BAD_TIMESTAMP,
        Reject::TimestampUnsupported => TIMESTAMP_UNSUPPORTED,
        Reject::BadFrame => BAD_FRAME,
        Reject::PacketTruncated => {
            "Send smaller packets. Only unix datagrams can be longer than 65535 bytes. The complete lines before the cut count."
        }
        Reject::TailLost => TAIL_LOST,
        Reject::EmptyLine => {
            "Correct the sender, or ignore the count. Only the dialect `perl` counts empty lines."
        }
        Reject::NoValue => {
            "Correct the sender: the format of a point is `name value time`, separated by spaces."
        }
        Reject::NoTimestamp => {
            "Correct the sender. A source of type `graphite` can set `missing_timestamp = \"now\"` instead."
        }
        Reject::TooManyFields => {
            "Correct the sender: a name must not contain spaces. `compatibility = \"c-relay\"` accepts such lines, but the \
             endpoint then has the same problem."
        }
        Reject::BadName => "Correct the sender. `compatibility = \"c-relay\"` replaces such bytes with `_`.",
        Reject::NameTooLong => "Raise `max_name_bytes` of the source, or find the sender of such names.",
        Reject::NotUtf8 => {
            "Correct the sender. `compatibility = \"c-relay\"` replaces each byte that is not ASCII with `_`."
        }
        Reject::BadMessage => BAD_MESSAGE,
        Reject::MessageTooBig => MESSAGE_TOO_BIG,
        Reject::BadElement => "Correct the sender. The other points of the message were accepted.",
        Reject::Invalid => "Correct the sender, or the expression. With `else log` the log shows the lines.",
        Reject::BadCompression => BAD_COMPRESSION,
        Reject::HttpRequest => HTTP_REQUEST,
        Reject::TlsHandshake => TLS_HANDSHAKE,
        Reject::UnfinishedFull => UNFINISHED_FULL,
    }
}

fn dropped(reason: Dropped) -> &'static str {
    match reason {
        Dropped::SeriesMax => SERIES_MAX,
        Dropped::TimerValuesMax => {
            "Leave `max_exact_timer_values` at its default: a large timer then becomes a sketch with a relative error of 1 %. \
             This loss happens only with `max_exact_timer_values = 0`, above 1,000,000 values of one timer in one window."
        }
        Dropped::ExchangeFull => EXCHANGE_FULL,
        Dropped::QueueFull => {
            "The endpoint was down or slow for so long that the queue filled up, or the disk of the queue is full. Repair the \
             endpoint, raise `queue.max_bytes` of the output (bytes per second times the longest outage to survive), or make \
             room on the disk."
        }
        Dropped::TooOld => "Raise `queue.max_age` of the output, or repair the endpoint.",
        Dropped::NoEndpoint => {
            "Every endpoint of the cluster is down: none replies to its health check. Start one. If the endpoints run, but do not \
             reply to health checks, remove `check`."
        }
        Dropped::TooBig => TOO_BIG,
        Dropped::Stopped => STOPPED,
        Dropped::NonFinitePoint => {
            "A sum, or a sum of squares, left the range of a double. The other points of the series were sent."
        }
        Dropped::Damaged => {
            "Another program changed the queue's files, or the disk lost data. Check the disk's health. The damaged bytes are \
             kept in the queue's folder, in files that end in `.quarantine`."
        }
        Dropped::Deleted => DELETED,
        Dropped::DiskFailed => {
            "The disk failed for ten seconds, or more records arrived in that time than fit into memory. The log has the system's \
             error. Check the free space, the health and the mount of the disk. The queue resumes by itself when a write succeeds."
        }
        Dropped::ByOperator => {
            "Requested on the command line or over the HTTP API. The log has the time and the amount. To keep a copy, run \
             `staunch queue export` first ([queues.md](queues.md))."
        }
        Dropped::NotANumber => {
            "Send numbers, or set the output's `encoding` to `lines`: lines are then sent unchanged. carbon would reject the whole \
             pickle message."
        }
        Dropped::UnsafeName => {
            "In a store: the name has an empty part, such as `a..b`, or more than 4,096 bytes: correct the sender. The log has an \
             example. In other outputs: the name or a tag contains a character that would break the protocol's lines. Leave \
             `sanitize` on, or correct the sender. In an output of type `http`: a part of the path is `.` or `..` for this event, so the \
             request would go to another path than that of `url`."
        }
        Dropped::InFuture => IN_FUTURE,
        Dropped::BeforeRetention => BEFORE_RETENTION,
        Dropped::NamesFull => "Find the sender of new names, or raise `max_name_memory` of the output.",
        Dropped::UnusableFile => UNUSABLE_FILE,
        Dropped::SeriesDeleted => {
            "Requested over the HTTP API. Points that come later create the series again."
        }
        Dropped::Late => {
            "Raise `expire` of the aggregation rule, or set `late = \"oldest\"` to count late points in the oldest window. Look for \
             delays before this relay, and for a sender whose clock is slow."
        }
        Dropped::TooManyCopies => TOO_MANY_COPIES,
        Dropped::TooManyRecipients => {
            "Send the mail to the address of a list, or split the event: its attributes `to`, `cc` and `bcc` have more addresses than a mail may."
        }
        Dropped::Early => "Check the clock of the sender and the clock of this machine.",
        Dropped::AggregationRuleFull => {
            "Percentiles and medians keep every value of a window, 4,000,000 each at most. Use fewer of them or shorter \
             windows, or raise `max_aggregation_bytes`."
        }
        Dropped::AggregateFull => {
            "Names, timer values and set members use all of `max_bytes` of the aggregation. Look for a sender with very long \
             names or with a new name each time, or raise `max_bytes`. Known counters and gauges are still updated."
        }
    }
}

fn rejected_by_peer(reason: RejectedByPeer) -> &'static str {
    match reason {
        RejectedByPeer::ByPeer => {
            "Of UDP: no process listens at the endpoint, and an ICMP message came back. Start the receiver, or correct `to`. Of requests \
             (`http`), mails (`email`) and messages (`riemann`): the endpoint will never accept them, as its answer says, which the log quotes once a minute. Correct `url`, \
             `headers`, the template or `recipients`; of Riemann, the stream that throws."
        }
        RejectedByPeer::SendError => {
            "The log has the system's error. The usual cause is a route or a firewall rule."
        }
    }
}

fn filtered(reason: Filtered) -> &'static str {
    match reason {
        Filtered::ByName => "Intended: the output has `allow` or `deny`.",
        Filtered::SampledOut => {
            "Intended: the output has `sample`. The samples that are sent carry their rate, so that the sums of counters stay \
             correct."
        }
        Filtered::BadLine => {
            "Correct the sender. An output that does not change lines forwards invalid ones unchanged; an output that changes \
             lines has to parse them."
        }
        Filtered::Unwanted => {
            "Use another output for the lines that the endpoint cannot parse, or do not convert them."
        }
    }
}

fn internal(reason: Internal) -> &'static str {
    match reason {
        Internal::ReceiptDropped => "This is a bug. Report it, with the log and `/api/v1/accounts`.",
        Internal::ShardGone => "Always 0 in this version. Any other count is a bug: report it.",
    }
}

#[cfg(test)]
const HEAD: &str = "\
# Outcomes: look up why a record was lost

<!-- Generated from crates/staunch/src/cli/explain/outcomes.rs and crates/model/src/outcome.rs: UPDATE=1 cargo test -p staunch outcomes -->

Each record that a source receives has exactly one outcome, and so has each copy that is routed to an output. While
no records move, both sums are balanced; `/api/v1/accounts` has that as the field `balanced` (see [api.md](api.md)):

```
per source:  received = rejected + dropped + duplicate + filtered + aggregated + routed + internal + in_flight
per output:  copies   = delivered + dropped + rejected_by_peer + filtered + expired + moved + internal + queued
```

A **record** is a sample, an event or a service check. An invalid line counts as one received and one rejected record; of a
line with several values, each invalid value counts as one. `udp` and `tcp` outputs do not parse packets: for a source that
feeds only such outputs, a record is a packet. A **copy** is the part of one record or flush that is for one output: a Graphite
point, a packet, an event.

The name of each reason below is the label `reason` in [`/metrics`](metrics.md), the name in `/api/v1/accounts` and in the
log, and an argument of `staunch explain`.
";

/// Outcomes without a loss.
pub(crate) const NO_LOSS: [(&str, &str); 9] = [
    (
        "aggregated",
        "The record became part of an aggregate, or went through the streams of a Riemann config.",
    ),
    (
        "routed",
        "The record was passed to its outputs unchanged: a raw packet, an event, or a sample with its own timestamp.",
    ),
    ("delivered", "The endpoint has the copy, as far as its protocol can confirm that (docs/delivery.md)."),
    ("queued", "The copy is in the output's queue, or is being sent."),
    (
        "moved",
        "The endpoint of this output was down, and the copy moved to another output of the relay's cluster. It is counted there as a new copy.",
    ),
    ("in_flight", "The record is between a connection and the aggregation."),
    (
        "filtered",
        "No route of the config accepts the record: an event without an `event_file` output, for example, or a point that no rule \
         of a relay matches or that a rule sends to the `blackhole`.",
    ),
    ("duplicate", "Always 0 in this version. It completes the balance."),
    (
        "expired",
        "The file of the series was removed because the files of the store reached `max_bytes`, before the point was in it. Raise \
         `max_bytes`, give series shorter retentions, or find the sender of new names. Points that come later create the series again.",
    ),
];

/// The totals of accounts.
pub(crate) const TOTALS: [(&str, &str); 2] = [
    ("received", "Records that arrived at a source. Each of them ends in one of the outcomes of the source."),
    ("copies", "Records that were routed to an output. Each copy ends in one of the outcomes of the output."),
];

/// Losses outside of the balances, because the number of records is unknown.
pub(crate) const OUTSIDE: [(&str, &str); 8] = [
    (
        "kernel_dropped",
        "Datagrams that the kernel dropped because the receive buffer was full. The number of their records is unknown. Raise \
         `receive_buffer`. If the log says at the start that the kernel granted less, raise `net.core.rmem_max` too.",
    ),
    (
        "packets_truncated",
        "Datagrams of more than 65,535 bytes (unix sockets only). Their complete lines count; the last line, which is cut, is rejected as `packet_truncated`.",
    ),
    (
        "connections_refused",
        "Connections refused at `max_connections`, or because the process has no file descriptors left for sources. The log says \
         which.",
    ),
    (
        "connections_refused_per_peer",
        "Connections refused because their address already had `max_connections_per_peer` connections: half of \
         `max_connections` by default. Raise it if a proxy, or this machine itself, has that many clients. Also connections \
         refused because their address (at a unix socket: their process) had half of the file descriptors that all sources have \
         together: then raise the limit on open files.",
    ),
    (
        "read_errors",
        "Failed attempts to read a datagram socket, for example because the system was short of memory. No datagram is lost by \
         them: the socket is read again at once. A socket that can never be read again is reported in the log and by `/ready`.",
    ),
    (
        "connections_replaced",
        "Idle connections that were closed for a new client because all `max_connections` were in use. A connection is idle if it \
         sent nothing for a minute (or for half of `idle_timeout` if that is shorter). It belonged to the address with the most \
         connections; the new client's address had fewer. The log names the address. Complete lines count; an incomplete last line \
         is rejected as `tail_lost`.",
    ),
    (
        "connections_broken",
        "Connections that ended in an error. An incomplete last line is rejected as `tail_lost`.",
    ),
    (
        "handshakes_failed",
        "Connections to a source with `tls` that ended before the TLS handshake was complete. The client speaks no TLS or no \
         supported version of it, has no certificate that `client_ca` accepts, does not trust the certificate of this source, \
         or took longer than ten seconds. They also count as `connections_broken`. The log has one line a minute for each source.",
    ),
];

/// An introduction to each family.
pub(crate) const FAMILIES: [(&str, &str); 5] = [
    (
        "rejected",
        "Rejected at intake: the sender wrote data that the dialect cannot parse. The log quotes the first line of each reason per source and names its sender; later ones are only counted.",
    ),
    (
        "dropped",
        "A valid record or copy was lost at a limit of Staunch. The log reports it when it begins, and then once a minute.",
    ),
    ("rejected_by_peer", "A copy was sent, and the endpoint did not accept it."),
    ("filtered", "The output's own options left the copy out. This is no error."),
    ("internal", "Bugs of Staunch. Report any count above 0."),
];

/// The page `docs/outcomes.md`.
#[cfg(test)]
fn markdown() -> String {
    let pages = pages();
    let mut text = HEAD.to_owned();
    for (title, words) in
        [("Outcomes that are no loss", &NO_LOSS[..]), ("Losses outside the balance", &OUTSIDE[..])]
    {
        text += &format!("\n## {title}\n");
        for (word, about) in words {
            text += &format!("\n### {word}\n\n{about}\n");
        }
    }
    for (family, about) in FAMILIES {
        text += &format!("\n## {}: reasons\n\n{about}\n", capitalised(family));
        for page in pages.iter().filter(|page| page.family == family) {
            text += &format!("\n### {}\n\n{} {}\n", page.word, page.why, page.advice);
        }
    }
    text += "\n## Values of `last_error`\n\nWhy the last attempt to reach an endpoint, or its health check, failed. They are not outcomes: \
             records stay queued.\n\n| value | meaning |\n|---|---|\n";
    for (word, about) in LAST_ERRORS {
        text += &format!("| `{word}` | {about} |\n");
    }
    for (title, words) in [
        ("States of outputs", &super::states::STATES[..]),
        ("Other fields of the accounts", &super::states::FIGURES[..]),
    ] {
        text += &format!("\n## {title}\n\n| word | meaning, and what to do |\n|---|---|\n");
        text.extend(words.iter().map(|(word, about)| format!("| `{word}` | {about} |\n")));
    }
    text
}

#[cfg(test)]
fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + &rest.replace('_', " ")
}

#[test]
fn the_page_of_outcomes_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/outcomes.md");
    let text = markdown();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &text).expect("the docs can be written");
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(stored == text, "docs/outcomes.md is out of step: UPDATE=1 cargo test -p staunch outcomes");
}

#[test]
fn every_reason_has_its_own_name_and_page() {
    let pages = pages();
    let mut words: Vec<&str> = pages.iter().map(|page| page.word).collect();
    words.extend(NO_LOSS.iter().chain(&OUTSIDE).map(|(word, _)| *word));
    let all = words.len();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), all, "a word names one anchor, whatever its family");
    for page in &pages {
        assert!(FAMILIES.iter().any(|(family, _)| *family == page.family), "{page:?}");
        assert!(page.advice.ends_with(['.', '`']) && page.why.ends_with('.'), "{page:?}");
    }
}
