//! Every outcome that loses a record, with what to do about it: for `staunch explain` and for `docs/outcomes.md`.
//!
//! The words and their one sentence come from `model::outcome`; here is the advice. Each `match` is over a closed
//! enum, so a new reason does not compile before it has one.

use model::{Dropped, Filtered, Internal, Reject, RejectedByPeer};

pub(crate) use crate::outputs::failures::LAST_ERRORS;

/// One reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// `rejected`, `dropped`, `rejected_by_peer`, `filtered` or `internal`.
    pub(crate) family: &'static str,
    /// The word in self-metrics, the API and logs; also the anchor in `docs/outcomes.md`.
    pub(crate) word: &'static str,
    /// What happened, in one sentence.
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

const BAD_MESSAGE: &str = "The rest of the connection was read on. What sends to a pickle listener must be carbon, a relay, or a client \
     that pickles lists of `(name, (time, value))`; objects of classes are never made.";

const BAD_TIMESTAMP: &str = "In StatsD a time is written `|T1656581400`: Unix seconds, whole, above 0. In Graphite it is the last field, in \
     Unix seconds; `-1` stands for now, `N` for nothing.";

const BAD_PACKING: &str = "One for each connection that ended so: nobody can say how many records were lost. What came before counts. \
     `transport` must be the same here and at the sender; the log says what was found.";

const HTTP_REQUEST: &str = "One for each connection; nothing of the request, its body included, was read as lines. A web page may have made a \
     browser send it, or a scanner looks for web servers. HTTP is at the address of `[http]`.";

const TLS_HANDSHAKE: &str =
    "One for each connection. Give the source `tls`, or have the client send in the clear.";

/// Advice on [`Reject::TimestampUnsupported`].
const TIMESTAMP_UNSUPPORTED: &str = "Only counters and gauges may carry a `T` field, and each of their values is written with the whole name: a \
     line may become 64 KiB and 256 times its own length, and 4 MiB at most. Correct the sender, or have it send shorter names or \
     fewer values in a line.";

/// Advice on [`Dropped::TooBig`].
const TOO_BIG: &str = "A line for Graphite is longer than `max_line_bytes` of the output: shorten its name, or raise the option where \
     the endpoint takes such lines, which carbon does not. Or the endpoint's network takes no datagram of this size \
     (about 65,507 bytes for UDP), or a flush's document of a `console` or `perl_file` output grew past its bound: use an \
     output of type `tcp` or `graphite`. Or values that share a name were each to be written with all of it: a line or \
     series may become 64 KiB and 256 times the bytes that it has with its name once, and a line no more than 4 MiB. Have \
     the endpoint take packed values, or shorten names and tags.";

/// Advice on [`Reject::UnfinishedFull`].
const UNFINISHED_FULL: &str = "One for each connection. Somebody begins large messages and does not finish them, or more clients than there is memory \
     for send large ones at once: the log names the client where it was one alone. Raise `max_unfinished_bytes`, or have \
     clients send smaller messages: up to 64 KiB are always taken.";

fn rejected(reason: Reject) -> &'static str {
    match reason {
        Reject::NoName => "Correct the sender. In `etsy` an empty name is a name, as in node statsd.",
        Reject::NoType => "Correct the sender: a sample is written `name:value|type`.",
        Reject::BadType => {
            "Types are `c`, `g`, `ms`, `s`, and in `union` and `dogstatsd` also `h` and `d`. Node statsd counts every \
             other type as a counter; the dialect `etsy` does so too."
        }
        Reject::BadValue => {
            "Correct the sender: decimal digits with a point, no thousands separator, no unit. Hexadecimal, octal, \
             binary and blank values pass only with `strict_numbers = false`."
        }
        Reject::BadRate => {
            "A sample rate is written `@0.1`: a decimal above 0 and up to 1, and at least `min_sample_rate` of the source."
        }
        Reject::NegativeTimer => {
            "Correct the sender, or set `allow_negative_timers = true` (dialect `union`)."
        }
        Reject::NonFinite => {
            "Correct the sender: NaN, the infinities and sums beyond the range of a double are never kept, because they \
             would poison their series. `compat_quirks` with `allow_non_finite` keeps them, as node statsd does."
        }
        Reject::LineTooLong => {
            "Raise `max_line_bytes` of the source, or find out why a sender forgets its line feeds."
        }
        Reject::KeyTooLong => "Raise `max_key_bytes` of the source, or shorten names and tags at the sender.",
        Reject::TooManyTags => "Raise `max_tags` of the source, or send fewer tags.",
        Reject::BadTag => {
            "A Graphite tag is written `;tag=value`: neither is empty, the tag has no `!` and no `^`, the value does not \
             begin with `~`. Correct the sender."
        }
        Reject::BadEvent => "The two lengths in `_e{5,4}:` count bytes, not characters. Correct the sender.",
        Reject::BadCheck => {
            "A service check is written `_sc|name|status` with a status of 0 to 3. Correct the sender."
        }
        Reject::BadTimestamp => BAD_TIMESTAMP,
        Reject::TimestampUnsupported => TIMESTAMP_UNSUPPORTED,
        Reject::BadFrame => {
            "The client writes something else than packets behind a length of four bytes, little-endian, or packets \
             longer than `max_line_bytes`. Check that it was told to use a length-prefixed unix stream (`unix-frames://`)."
        }
        Reject::PacketTruncated => {
            "Only unix datagrams can be longer than 65535 bytes. Have the client send smaller packets; the whole lines \
             before the cut were taken."
        }
        Reject::TailLost => {
            "The peer's connection was reset, or closed in the middle of a line or frame, or Staunch stopped there. After \
             an orderly close by the peer the last line counts without its line feed unless `tail_counts = false`."
        }
        Reject::EmptyLine => "Only the dialect `perl` counts it. Correct the sender, or ignore the count.",
        Reject::NoValue => "Correct the sender: a point is written `name value time`, with blanks between.",
        Reject::NoTimestamp => "Correct the sender, or set `missing_timestamp = \"now\"` on the source.",
        Reject::TooManyFields => {
            "Correct the sender: a name must not hold blanks. `compatibility = \"c-relay\"` lets such lines pass, and whoever \
             gets them has the same trouble."
        }
        Reject::BadName => "Correct the sender. `compatibility = \"c-relay\"` puts `_` for such bytes.",
        Reject::NameTooLong => "Raise `max_name_bytes` of the source, or find out who makes such names.",
        Reject::NotUtf8 => {
            "Correct the sender. `compatibility = \"c-relay\"` puts `_` for each byte that is not ASCII."
        }
        Reject::BadMessage => BAD_MESSAGE,
        Reject::BadElement => "The other points of its message were taken. Correct the sender.",
        Reject::Invalid => "Correct the sender, or the expression; with `else log` the log shows the lines.",
        Reject::BadCompression => BAD_PACKING,
        Reject::HttpRequest => HTTP_REQUEST,
        Reject::TlsHandshake => TLS_HANDSHAKE,
        Reject::UnfinishedFull => UNFINISHED_FULL,
    }
}

fn dropped(reason: Dropped) -> &'static str {
    match reason {
        Dropped::SeriesMax => {
            "Find who makes new names: `staunch_series_created_total`, then `/api/v1/series?name=GLOB`. Raise \
             `max_series` of the aggregation when they are wanted, and look at its memory; lower `expiry` so that dead \
             series go earlier."
        }
        Dropped::TimerValuesMax => {
            "It happens only with `max_exact_timer_values = 0`, and past 1,000,000 values of one timer in one window. Leave \
             `max_exact_timer_values` at its default: the timer then turns into a sketch with a relative error of 1 %."
        }
        Dropped::EventsMax => "More than 10,000 events came in one batch of packets. Slow the sender down.",
        Dropped::ExchangeFull => {
            "No part of this version gives it: connections wait for room, and datagrams do not cross the exchange."
        }
        Dropped::QueueFull => {
            "The endpoint was away or slow for longer than its queue could hold. Mend the endpoint, or raise \
             `queue.max_bytes` of the output: bytes per second times the longest outage to be survived."
        }
        Dropped::TooOld => "Raise `queue.max_age` of the output, or mend the endpoint.",
        Dropped::NoEndpoint => {
            "Every endpoint of the cluster is away: none answers its checks. Start one, or leave out `check` if what is \
             asked is not there."
        }
        Dropped::TooBig => TOO_BIG,
        Dropped::Stopped => {
            "Raise `stop_timeout`, or mend the endpoint before stopping, or keep the queue on disk (`kind = \"disk\"`). \
             Records of a source came too late, or a relay had no time left to search for their names."
        }
        Dropped::NonFinitePoint => {
            "A sum of squares or the like left the range of a double. The other points of the series were sent."
        }
        Dropped::Damaged => {
            "Something has changed the queue's files, or the disk lost what it had. The bytes are kept in the queue's \
             folder, in files that end in `.quarantine`. Look at the disk's health."
        }
        Dropped::Deleted => {
            "Somebody removed files of the queue, or its folder, while the daemon ran. What it still had open it delivered \
             until it ended; the rest is lost. The log names the folder. What the next start misses between records that \
             are there is counted there as damaged."
        }
        Dropped::DiskFailed => {
            "It had failed for ten seconds, or more came meanwhile than is kept in memory. Look at the log for the \
             system's word, and at the disk's health and mount. It goes on by itself when a write succeeds."
        }
        Dropped::ByOperator => {
            "It was asked for, on the command line or over the HTTP API. The log says when, and how much. Next time \
             `staunch queue export` can keep a copy first ([queues.md](queues.md))."
        }
        Dropped::NotANumber => {
            "carbon would give up the whole message. Send numbers, or let the output's `encoding` be lines: then lines go on \
             as they came."
        }
        Dropped::UnsafeName => {
            "The name or a tag holds something that would break the protocol's lines. Leave `sanitize` on, or correct \
             the sender."
        }
        Dropped::Late => {
            "Give late points more time with a longer `expire`, or let them count with `late = \"oldest\"`; or find out \
             what holds them up, or whose clock is slow."
        }
        Dropped::Early => "Look at the clock of whoever sends it, and at ours.",
        Dropped::AggregationRuleFull => {
            "Percentiles and medians keep every value of a window, 4,000,000 of each at most: use fewer of them or shorter \
             windows, or raise `max_aggregation_bytes`."
        }
        Dropped::AggregateFull => {
            "Names, timer values and set members took `max_bytes` of the aggregation. Look for a sender with very long \
             names or with a new name each time; or raise `max_bytes`. Counters and gauges that are known go on."
        }
    }
}

fn rejected_by_peer(reason: RejectedByPeer) -> &'static str {
    match reason {
        RejectedByPeer::ByPeer => {
            "Nobody listens at the UDP endpoint (an ICMP message came back). Start what should listen there, or correct \
             `to`."
        }
        RejectedByPeer::SendError => {
            "The log has the system's words. A route or a firewall rule is the usual cause."
        }
    }
}

fn filtered(reason: Filtered) -> &'static str {
    match reason {
        Filtered::ByName => "This is what `allow` and `deny` of the output are for.",
        Filtered::SampledOut => {
            "This is what `sample` of the output is for. The samples that were kept carry their rate, so that counters \
             still add up."
        }
        Filtered::BadLine => {
            "Correct the sender. An output without any change to lines sends bad ones on as they are; one that changes \
             lines cannot."
        }
        Filtered::Unwanted => {
            "Send what the endpoint cannot read to another output, or leave its lines unconverted."
        }
    }
}

fn internal(reason: Internal) -> &'static str {
    match reason {
        Internal::ReceiptDropped => "A bug of ours. Report it, with the log and `/api/v1/accounts`.",
        Internal::ShardGone => {
            "No part of this version gives it; should it appear, it is a bug of ours to report."
        }
    }
}

#[cfg(test)]
const HEAD: &str = "\
# Outcomes: where every record ended

<!-- Generated from crates/staunch/src/cli/outcomes.rs and crates/model/src/outcome.rs: UPDATE=1 cargo test -p staunch outcomes -->

Each record that a source receives gets exactly one outcome, and so does each copy that is routed to an output. While
nothing moves, both are balanced; `/api/v1/accounts` shows that in a field `balanced` (see [api.md](api.md)):

```
per source:  received = rejected + dropped + duplicate + filtered + aggregated + routed + internal + in_flight
per output:  copies   = delivered + dropped + rejected_by_peer + filtered + expired + moved + internal + queued
```

A **record** is a sample, an event or a service check; a bad line counts as one received and rejected record (a bad value
among several of one line as one each). For a source that feeds only `udp` and `tcp` outputs, which never look inside,
a record is a packet. A **copy** is what one record or flush gives one output: a Graphite point, a packet, an event.

The word of each reason below is at the same time the label `reason` in [`/metrics`](metrics.md), the name in
`/api/v1/accounts` and in the log, and an argument of `staunch explain`.
";

/// Outcomes that are no loss.
pub(crate) const NO_LOSS: [(&str, &str); 9] = [
    ("aggregated", "Became part of an aggregate."),
    ("routed", "Went to its outputs as it is: a raw packet, an event, a sample with its own timestamp."),
    ("delivered", "The endpoint has it, as far as its protocol tells (docs/delivery.md)."),
    ("queued", "In the output's queue, or on the way."),
    (
        "moved",
        "Another output of the relay's cluster took it over while this one's endpoint was down; there it is a copy of its own.",
    ),
    ("in_flight", "Between a connection and the aggregation."),
    ("filtered", "Nothing in the config takes it, such as events without an `event_file` output."),
    ("duplicate", "Always 0 in this version. It is there so that the sum keeps its form."),
    ("expired", "Always 0 in this version. It is there so that the sum keeps its form."),
];

/// What the parts of an account add up to.
pub(crate) const TOTALS: [(&str, &str); 2] = [
    ("received", "Records that came in at a source; each of them ends in one of the outcomes beside it."),
    ("copies", "What was routed to an output; each copy ends in one of the outcomes beside it."),
];

/// Losses that no sum holds, because nobody could count the records.
pub(crate) const OUTSIDE: [(&str, &str); 8] = [
    (
        "kernel_dropped",
        "Datagrams that the kernel threw away because the receive buffer was full, before anybody could count their \
         records. Raise `receive_buffer`, and `net.core.rmem_max` if the daemon said at its start that it was granted \
         less.",
    ),
    (
        "packets_truncated",
        "Datagrams of more than 65,535 bytes (unix sockets only). Their whole lines count; the last one, which lost its end, is rejected as `packet_truncated`.",
    ),
    (
        "connections_refused",
        "Connections turned away at `max_connections`, or because the process has no descriptors left for sources: the log says \
         which.",
    ),
    (
        "connections_refused_per_peer",
        "Connections turned away because their address had as many as `max_connections_per_peer` already: by default half \
         of `max_connections`. Raise it where a proxy, or this machine itself, has that many clients of good will. Or because \
         their address (at a unix socket: their process) had half of the descriptors that all sources have together; then \
         raise the limit on open files.",
    ),
    (
        "read_errors",
        "Attempts to read a datagram socket that failed: the system was short of memory, for example. Nothing that waited in \
         it was lost by them; it is read again in a moment. A socket that can never be read again is told of by the log and \
         by `/ready`.",
    ),
    (
        "connections_replaced",
        "Connections that had said nothing for a minute (or half of `idle_timeout` where that is shorter) when all \
         `max_connections` were taken, and gave their place to a client whose address had fewer connections: they were of the \
         address that had the most. The log names it. What a client sent before counts; a line that one left unfinished is \
         rejected as `tail_lost`.",
    ),
    (
        "connections_broken",
        "Connections that ended in an error. A line that one left unfinished is rejected as `tail_lost`.",
    ),
    (
        "handshakes_failed",
        "Connections to a source with `tls` that ended before their encryption began: the client speaks no TLS or no \
         version of it that is spoken here, shows no certificate that `client_ca` knows, does not trust ours, or took \
         longer than ten seconds. They are among `connections_broken`; the log has one a minute for each source.",
    ),
];

/// What each family is, before its reasons.
pub(crate) const FAMILIES: [(&str, &str); 5] = [
    (
        "rejected",
        "Refused at intake: the sender wrote something that the dialect cannot read. The log quotes the first line of each reason per source and names who sent it; later ones are only counted.",
    ),
    (
        "dropped",
        "A good record or copy that was lost at a limit of ours. The log tells when it begins, and then once a minute.",
    ),
    ("rejected_by_peer", "A copy that was sent and that the endpoint did not take."),
    ("filtered", "A copy that the output's own options left out. Nothing is wrong."),
    ("internal", "Our own bugs. Any count above 0 is worth a report."),
];

/// The page `docs/outcomes.md`.
#[cfg(test)]
fn markdown() -> String {
    let pages = pages();
    let mut text = HEAD.to_owned();
    for (title, words) in
        [("Outcomes that are no loss", &NO_LOSS[..]), ("Losses outside the sums", &OUTSIDE[..])]
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
    text += "\n## Words of `last_error`\n\nWhy the last attempt at an endpoint, or its check, has failed. They are no outcomes: what \
             waits goes on waiting.\n\n| word | what it says |\n|---|---|\n";
    for (word, about) in LAST_ERRORS {
        text += &format!("| `{word}` | {about} |\n");
    }
    for (title, words) in [
        ("States of outputs", &super::states::STATES[..]),
        ("Figures beside the sums", &super::states::FIGURES[..]),
    ] {
        text += &format!("\n## {title}\n\n| word | what it says, and what to do |\n|---|---|\n");
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
fn the_page_of_outcomes_is_in_step() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/outcomes.md");
    let text = markdown();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &text).expect("the docs can be written");
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(stored == text, "docs/outcomes.md is out of step: UPDATE=1 cargo test -p staunch outcomes");
}

#[test]
fn every_reason_has_a_word_and_a_page_of_its_own() {
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
