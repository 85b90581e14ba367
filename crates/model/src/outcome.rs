//! Outcomes of records, with their reasons. Closed, `Copy`, and also the labels of the self-metrics.
//!
//! Each word is an interface: dashboards use it, `docs/outcomes.md` explains it, `/api/v1/accounts` shows it.
//! Reason for the macro: word, explanation, list and index of a reason are one row and cannot disagree.

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

            /// The reason's name in self-metrics, the API and the docs.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// One sentence that explains the reason to a user.
            pub fn why(self) -> &'static str {
                match self { $($name::$variant => $why,)+ }
            }

            /// Index in [`Self::ALL`].
            pub fn index(self) -> usize {
                self as usize
            }
        }
    };
}

reasons! {
    /// Why a record was rejected at intake. The sender is at fault.
    Reject {
        NoName "no_name" "The line has no name, or its name is empty after cleaning.",
        NoType "no_type" "The value is not followed by a `|` and a type.",
        BadType "bad_type" "The dialect does not know the type.",
        BadValue "bad_value" "The value is not a number.",
        BadRate "bad_rate" "The sample rate is not a number above 0 and up to 1.",
        NegativeTimer "negative_timer" "A timer value is below 0.",
        NonFinite "non_finite" "The value, or the sum that includes it, is not a finite number.",
        LineTooLong "line_too_long" "The line is longer than the limit of the source.",
        KeyTooLong "key_too_long" "The name with its tags is longer than `max_key_bytes`.",
        TooManyTags "too_many_tags" "The line has more than `max_tags` tags, or an event more than 65,536 tags or 1,024 attributes.",
        BadTag "bad_tag" "The tags of the line cannot be parsed.",
        BadEvent "bad_event" "The lengths of a DogStatsD event do not match its text.",
        BadCheck "bad_check" "A service check has no name or no status of 0 to 3.",
        BadTimestamp "bad_timestamp" "The time is not a number that the source accepts.",
        TimestampUnsupported "timestamp_unsupported" "The line has a `T` field, and its type does not allow one, or it has too many values for a name of that length.",
        BadFrame "bad_frame" "A length-prefixed frame is longer than the limit; the connection was closed.",
        PacketTruncated "packet_truncated" "The packet was longer than the read limit, and this line was cut off.",
        TailLost "tail_lost" "The connection ended in the middle of a line.",
        EmptyLine "empty_line" "The line is empty and between two others; the dialect `perl` counts it as invalid.",
        NoValue "no_value" "A Graphite line has no value after its name.",
        NoTimestamp "no_timestamp" "The line of a point has no time.",
        TooManyFields "too_many_fields" "A Graphite line has more than a name, a value and a time.",
        BadName "bad_name" "The name contains a control character, or a space that would split it at the endpoint.",
        NameTooLong "name_too_long" "The name is longer than `max_name_bytes`.",
        NotUtf8 "not_utf8" "The line is not UTF-8; carbon would close the connection for it.",
        BadMessage "bad_message" "A pickle or protobuf message, or a line of JSON, cannot be parsed, or contains more than numbers and text.",
        MessageTooBig "message_too_big" "A message has more events or more text than a message may have; none of its events was accepted.",
        BadElement "bad_element" "An element of a pickle or protobuf message is not a point.",
        Invalid "invalid" "The text after the name does not match the `validate` expression of the relay.",
        BadCompression "bad_compression" "A compressed stream could not be decompressed any further; the connection was closed.",
        HttpRequest "http_request" "A connection began with an HTTP request instead of lines; it was closed.",
        TlsHandshake "tls_handshake" "A connection began with a TLS handshake instead of lines; it was closed.",
        UnfinishedFull "unfinished_full" "The incomplete messages of all connections, or of one client, reached their limit in bytes (`max_unfinished_bytes`); the connection was closed.",
    }
}

reasons! {
    /// Why a valid record was lost at one of our limits.
    Dropped {
        SeriesMax "series_max" "A new series arrived when the aggregation or the store already had `max_series` of them.",
        TimerValuesMax "timer_values_max" "A timer already had 1,000,000 values in one window.",
        ExchangeFull "exchange_full" "The exchange to the shard was full, and the source cannot wait.",
        QueueFull "queue_full" "The output's queue was full, and its `when_full` drops records.",
        TooOld "too_old" "The record was in the output's queue for longer than `max_age`.",
        NoEndpoint "no_endpoint" "No endpoint of the cluster is up, so the record has no owner.",
        TooBig "too_big" "The record is larger than a line or datagram for the endpoint may be, or a line or series expands beyond its limit.",
        Stopped "stopped" "The daemon stopped before the record was processed or delivered.",
        NonFinitePoint "non_finite_point" "An aggregate is NaN or infinite, and was not sent.",
        Damaged "damaged" "The record in the output's queue on disk is damaged and cannot be read.",
        DiskFailed "disk_failed" "The disk of the output's queue failed for too long.",
        ByOperator "by_operator" "An operator dropped the records in the output's queue: `staunch queue drop`.",
        UnsafeName "unsafe_name" "The series' name cannot be written in the output's protocol, or is not the name of a file in a store.",
        Late "late" "The point's window of the aggregation rule is already closed.",
        Early "early" "The point's time is too far in the future: the aggregation rule has no window for it.",
        NotANumber "not_a_number" "The point's value or time is not a number, and the output's encoding needs one.",
        AggregationRuleFull "aggregation_rule_full" "The aggregation rules of the relay reached their limit in bytes.",
        TooManyCopies "too_many_copies" "The relays send more than 128 copies of the point to further relays, and none of the first 128 reached an output.",
        AggregateFull "aggregate_full" "The series of the aggregation reached their limit in bytes.",
        InFuture "in_future" "The point's time is too far in the future for its whisper file.",
        BeforeRetention "before_retention" "The point is older than its whisper file covers.",
        NamesFull "names_full" "A new series arrived when the names of the store's series used all of `max_name_memory`.",
        UnusableFile "unusable_file" "The whisper file of the series is damaged, or in another format; it was left alone.",
        SeriesDeleted "series_deleted" "The series was deleted before the point was in its file.",
        TooManyRecipients "too_many_recipients" "The event names more than 100 recipients of its mail.",
        Deleted "deleted" "The queue file that contained the record was deleted while the daemon ran.",
    }
}

reasons! {
    /// Why an endpoint did not accept a copy that was sent.
    RejectedByPeer {
        ByPeer "by_peer" "The endpoint replied that it does not accept the record.",
        SendError "send_error" "The system refused to send the record.",
    }
}

reasons! {
    /// Why an output filtered a copy. The user configured it.
    Filtered {
        ByName "by_name" "The output's `allow` and `deny` exclude the name.",
        SampledOut "sampled_out" "The output's `sample` excluded the record.",
        BadLine "bad_line" "The line cannot be parsed, and the output changes lines.",
        Unwanted "unwanted" "The output's protocol cannot express the line, such as an event in plain StatsD.",
    }
}

reasons! {
    /// Our own bugs. Any count above 0 is worth a report.
    Internal {
        ReceiptDropped "receipt_dropped" "A record's receipt was dropped before it was settled.",
        ShardGone "shard_gone" "The thread that owned the record's state ended.",
    }
}

reasons! {
    /// Why the daemon closed a connection with acknowledgements: the words of `err` lines.
    Unacked {
        Dropped "dropped" "A record or a copy of it was dropped at a limit; the accounts of the source and of its outputs name the limit.",
        RejectedByPeer "rejected_by_peer" "An endpoint did not accept a copy.",
        InDoubt "in_doubt" "The disk of an output's queue failed to sync a copy.",
        Reloaded "reloaded" "After a reload the source can no longer meet the condition of this connection; a new connection has the new condition.",
        IdleTimeout "idle_timeout" "Nothing arrived for `idle_timeout`, and nothing more could be acknowledged.",
        Replaced "replaced" "All `max_connections` were in use, this connection was idle, and a client whose address had fewer connections connected.",
        Unread "unread" "The client did not read its acknowledgements for 30 seconds, or for `idle_timeout` if that is shorter.",
        BadFrame "bad_frame" "A frame was longer than `max_line_bytes`, so the start of the next one is unknown.",
        UnfinishedFull "unfinished_full" "The incomplete messages of all connections, or of one client, reached their limit in bytes.",
        Stopped "stopped" "The daemon stopped, or the source was removed, before the condition was met.",
    }
}

/// How a received record ended, for its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Rejected at intake.
    Rejected(Reject),
    /// Lost at a limit.
    Dropped(Dropped),
    /// A duplicate of a record that was accepted before.
    Duplicate,
    /// No route matched it.
    Filtered,
    /// Became part of an aggregate.
    Aggregated,
    /// Passed on to its outputs unchanged.
    Routed,
    /// Lost by a bug in Staunch.
    Internal(Internal),
}

/// How a copy for one output ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyOutcome {
    /// The endpoint received it, as far as its protocol can confirm that.
    Delivered,
    /// Lost at a limit.
    Dropped(Dropped),
    /// The endpoint did not take it.
    RejectedByPeer(RejectedByPeer),
    /// Filtered by the output.
    Filtered(Filtered),
    /// Expired in its store before it was written to its file.
    Expired,
    /// Moved to another output of the cluster while this one's endpoint was down. There it is counted as a new copy.
    Moved,
    /// Lost by a bug in Staunch.
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
