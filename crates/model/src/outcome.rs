//! How records end. Closed, `Copy`, and at the same time the labels of the self-metrics.
//!
//! Each word is an interface: dashboards name it, `docs/outcomes.md` explains it, `/api/v1/accounts` shows it.
//! The macro's excuse: word, explanation, list and index of a reason stand in one row and cannot disagree.

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $word:literal $why:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $(#[doc = $why] $variant,)+ }

        impl $name {
            /// Every reason, in the order of their indexes.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];
            /// Number of reasons.
            pub const COUNT: usize = $name::ALL.len();

            /// The word that names it in self-metrics, the API and the docs.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// One sentence for the person who wonders where the record went.
            pub fn why(self) -> &'static str {
                match self { $($name::$variant => $why,)+ }
            }

            /// Place in [`Self::ALL`].
            pub fn index(self) -> usize {
                self as usize
            }
        }
    };
}

reasons! {
    /// Why a record was refused at intake. The sender is at fault.
    Reject {
        NoName "no_name" "The line has no name, or nothing is left of it.",
        NoType "no_type" "The value is not followed by a `|` and a type.",
        BadType "bad_type" "The type is none that the dialect knows.",
        BadValue "bad_value" "The value is not a number.",
        BadRate "bad_rate" "The sample rate is not a number above 0 and up to 1.",
        NegativeTimer "negative_timer" "A timer value is below 0.",
        NonFinite "non_finite" "The value, or the sum with it, is not a finite number.",
        LineTooLong "line_too_long" "The line is longer than the limit of its stream.",
        KeyTooLong "key_too_long" "The name with its tags is longer than `max_key_bytes`.",
        TooManyTags "too_many_tags" "The line has more than `max_tags` tags.",
        BadTag "bad_tag" "The tags of the line cannot be read.",
        BadEvent "bad_event" "A DogStatsD event's lengths do not fit its text.",
        BadCheck "bad_check" "A service check has no name or no status of 0 to 3.",
        BadTimestamp "bad_timestamp" "The time is not a number that the source takes.",
        TimestampUnsupported "timestamp_unsupported" "A `T` field on a type that cannot carry one, or on too many values behind a long name.",
        BadFrame "bad_frame" "A length-prefixed frame is longer than the limit; the connection was closed.",
        PacketTruncated "packet_truncated" "The packet was longer than any that is read whole, and this line lost its end.",
        TailLost "tail_lost" "The connection broke in the middle of a line.",
        EmptyLine "empty_line" "An empty line between two others, which the `perl` dialect counts as bad.",
        NoValue "no_value" "Nothing stands behind the name of a Graphite line.",
        NoTimestamp "no_timestamp" "A Graphite line has no time, and `missing_timestamp` does not say `now`.",
        TooManyFields "too_many_fields" "A Graphite line has more than a name, a value and a time.",
        BadName "bad_name" "The name holds a control character, or a blank at which others would split it.",
        NameTooLong "name_too_long" "The name is longer than `max_name_bytes`.",
        NotUtf8 "not_utf8" "The line is not UTF-8, for which carbon would close the connection.",
        BadMessage "bad_message" "A pickle or protobuf message cannot be read, or asks for more than numbers and text.",
        BadElement "bad_element" "An element of a pickle or protobuf message is not a point.",
        Invalid "invalid" "A relay's `validate` did not find what must stand behind the name.",
        BadCompression "bad_compression" "A packed stream could not be unpacked any further; the connection was closed.",
        HttpRequest "http_request" "A connection began with an HTTP request in the place of lines; it was closed.",
        TlsHandshake "tls_handshake" "A connection began with a TLS handshake in the place of lines; it was closed.",
        UnfinishedFull "unfinished_full" "Unfinished messages of all connections, or of one client, held as many bytes as they may (`max_unfinished_bytes`); the connection was closed.",
    }
}

reasons! {
    /// Why a good record was lost at a limit of ours.
    Dropped {
        SeriesMax "series_max" "A new series came when the source already had `max_series` of them.",
        TimerValuesMax "timer_values_max" "A timer had `timer_values_max` values in one window already.",
        EventsMax "events_max" "More events arrived in one tick than `events_max`.",
        ExchangeFull "exchange_full" "The exchange to the shard was full and the source cannot wait.",
        QueueFull "queue_full" "The output's queue was full and `when_full` says to drop.",
        TooOld "too_old" "The record waited in the output's queue longer than `max_age`.",
        NoEndpoint "no_endpoint" "No endpoint of the cluster is up, so none owns the record's key.",
        TooBig "too_big" "The record is larger than the endpoint's lines or datagrams may be, or a line or series unfolds too far.",
        Stopped "stopped" "The daemon stopped before it, or the endpoint, took the record.",
        NonFinitePoint "non_finite_point" "An aggregate came out as NaN or infinite and was not sent.",
        Damaged "damaged" "The record in the output's queue on disk was damaged and could not be read back.",
        DiskFailed "disk_failed" "The disk of the output's queue failed, and nobody could wait for it any longer.",
        ByOperator "by_operator" "Somebody had what waited in the output's queue dropped: `staunch queue drop`.",
        UnsafeName "unsafe_name" "The series' name cannot be written in the output's protocol.",
        Late "late" "The window of the aggregation rule that the point belongs to is over.",
        Early "early" "The point is of a time so far ahead that the aggregation rule keeps no window for it.",
        NotANumber "not_a_number" "The point's value or time is no number, which an output of pickles needs.",
        AggregationRuleFull "aggregation_rule_full" "The aggregation rules of the relay held as many bytes as they may.",
        AggregateFull "aggregate_full" "The series of the aggregation held as many bytes as they may.",
        Deleted "deleted" "The file of the output's queue on disk that held the record was deleted under the running daemon.",
    }
}

reasons! {
    /// Why an endpoint did not take a copy although we sent it.
    RejectedByPeer {
        ByPeer "by_peer" "The endpoint answered that it does not accept the record.",
        SendError "send_error" "The system refused to send the record.",
    }
}

reasons! {
    /// Why an output's own stage left a copy out. The user asked for it.
    Filtered {
        ByName "by_name" "The output's `allow` and `deny` do not want the name.",
        SampledOut "sampled_out" "The output's `sample` kept others.",
        BadLine "bad_line" "The line cannot be read, and the output changes lines.",
        Unwanted "unwanted" "The output has no form for what the line is, such as an event in plain StatsD.",
    }
}

reasons! {
    /// Our own bugs. Any count above 0 is worth a report.
    Internal {
        ReceiptDropped "receipt_dropped" "A record's receipt was dropped unsettled.",
        ShardGone "shard_gone" "The thread that owned the record's state has ended.",
    }
}

reasons! {
    /// Why we ended a connection that wants acknowledgements: the words of `err` lines.
    Unacked {
        Dropped "dropped" "A record or a copy of it was dropped at a limit; the accounts of the source and of its outputs say at which.",
        RejectedByPeer "rejected_by_peer" "An endpoint did not take a copy.",
        InDoubt "in_doubt" "The disk of an output's queue failed to sync a copy.",
        Reloaded "reloaded" "Since a reload the condition that held when the connection was made can no longer be met for the source; a new connection has the new one.",
        IdleTimeout "idle_timeout" "Nothing came for as long as `idle_timeout`, and nothing more could be acknowledged.",
        Replaced "replaced" "All `max_connections` were taken, nothing had come for long, and a client whose address had fewer connections needed the place.",
        Unread "unread" "The client did not read its acknowledgements for 30 seconds, or for as long as `idle_timeout` where that is shorter.",
        BadFrame "bad_frame" "A frame was longer than `max_line_bytes`, so that what follows cannot be told apart.",
        UnfinishedFull "unfinished_full" "A message was not finished when unfinished messages of all connections, or of one client, held as many bytes as they may.",
        Stopped "stopped" "The daemon stopped, or the source was removed, before the condition was met.",
    }
}

/// How a received record ended, from its source's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Refused at intake.
    Rejected(Reject),
    /// Lost at a limit.
    Dropped(Dropped),
    /// A copy of a record that was already taken.
    Duplicate,
    /// No route wanted it.
    Filtered,
    /// Became part of an aggregate.
    Aggregated,
    /// Went to its outputs as it is.
    Routed,
    /// Lost by a bug of ours.
    Internal(Internal),
}

/// How a copy for one output ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyOutcome {
    /// The endpoint has it, as far as its protocol tells.
    Delivered,
    /// Lost at a limit.
    Dropped(Dropped),
    /// The endpoint did not take it.
    RejectedByPeer(RejectedByPeer),
    /// The output's own stage left it out.
    Filtered(Filtered),
    /// Its time ran out in the queue.
    Expired,
    /// Another output of its cluster took it over, while this one's endpoint was down: there it is a copy of its own.
    Moved,
    /// Lost by a bug of ours.
    Internal(Internal),
}

#[test]
fn words_are_distinct_within_their_enum() {
    fn distinct(words: Vec<&str>) {
        let mut sorted = words.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), words.len(), "{words:?}");
    }
    distinct(Reject::ALL.iter().map(|r| r.word()).collect());
    distinct(Dropped::ALL.iter().map(|r| r.word()).collect());
    distinct(RejectedByPeer::ALL.iter().map(|r| r.word()).collect());
    distinct(Filtered::ALL.iter().map(|r| r.word()).collect());
    distinct(Internal::ALL.iter().map(|r| r.word()).collect());
    distinct(Unacked::ALL.iter().map(|r| r.word()).collect());
    for (at, reject) in Reject::ALL.iter().enumerate() {
        assert_eq!(reject.index(), at);
    }
}
