//! The table of all streams: names, arities, clocks, one line of documentation, and what makes them (spec riemann §10).

use super::arguments::Args;
use super::{
    by, changes, counters, filling, latest, mapping, parts, plumbing, ranking, rates, routing, throttling,
    windows,
};
use crate::collections::element::Element as _;
use crate::function::{Arity, Native};
use crate::language::error::Outcome;
use crate::language::machine::{Machine, Run};
use crate::value::Value;

/// Which time a stream goes by (spec riemann §8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// None.
    No,
    /// The server's clock, by timers.
    Server,
    /// The time of the events.
    Event,
    /// Both of them.
    Both,
    /// The number of events.
    Count,
}

/// A row of the table.
#[derive(Debug)]
pub struct Stream {
    /// Its name, how many arguments it takes, children included, and what makes it. Names that end in `*` and have a macro without it
    /// are what the macro becomes.
    pub native: Native,
    /// Which time it goes by.
    pub clock: Clock,
    /// The arguments, as in the reference.
    pub arguments: &'static str,
}

/// The stream of a name.
pub fn find(name: &str) -> Option<&'static Stream> {
    STREAMS.iter().find(|stream| stream.native.name == name)
}

const fn any(min: usize) -> Arity {
    Arity { min, max: None }
}

const fn exact(min: usize, max: usize) -> Arity {
    Arity { min, max: Some(max) }
}

use Clock::{Both, Count, Event, No, Server};

/// Computes the sequences among the arguments, such as the tags of `(tag (map …) …)`.
fn compute(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome<()> {
    for argument in arguments.iter_mut().filter(|argument| argument.shape().lazy) {
        *argument = machine.realize(argument)?;
    }
    Ok(())
}

macro_rules! streams {
    ($($name:literal $arity:expr, $clock:expr, $arguments:literal, $doc:literal, $make:expr;)*) => {
        /// All streams.
        pub static STREAMS: &[Stream] = &[$(Stream {
            native: Native {
                name: $name,
                arity: $arity,
                doc: $doc,
                code: &Run(|machine, arguments| {
                    compute(machine, arguments)?;
                    $make(&mut Args::new(machine.graph, ($name, $arguments), arguments))
                }),
            },
            clock: $clock,
            arguments: $arguments,
        }),*];
    };
}

streams! {
    "default" any(1), No, "k v c… | {k v} c…", "sets fields that are nil", mapping::default;
    "with" any(1), No, "k v c… | {k v} c…", "sets fields; nil removes them", mapping::with;
    "expired" any(0), Server, "c…", "passes expired events", plumbing::expired;
    "smap" any(1), No, "f c…", "passes what f gives, unless it is nil", mapping::smap;
    "smap*" any(1), No, "f c…", "passes what f gives", mapping::smap_all;
    "combine" any(1), No, "f c…", "the same as smap*", mapping::smap_all;
    "smapcat" any(1), No, "f c…", "passes each element of what f gives", mapping::smapcat;
    "sflatten" any(0), No, "c…", "passes each element", mapping::sflatten;
    "sreduce" any(1), Count, "f [init] c…", "passes f of its last result and the event", mapping::sreduce;
    "sdo" any(0), No, "c…", "passes everything", plumbing::sdo;
    "stream" any(0), No, "c…", "the same as sdo", plumbing::sdo;
    "bit-bucket" exact(0, 1), No, "", "drops everything", plumbing::bit_bucket;
    "adjust" any(1), No, "[field f arg…] c…", "sets a field to f of its value", mapping::adjust;
    "scale" any(1), No, "k c…", "multiplies the metric by k", mapping::scale;
    "tag" any(1), No, "tags c…", "adds tags", mapping::tag;
    "untag" any(1), No, "tags c…", "removes tags", mapping::untag;
    "by-fn" exact(2, 3), No, "fields make", "streams of their own for each value of the fields", by::by_fn;
    "where*" any(1), No, "f c… (else c…)", "passes events for which f is true", routing::where_all;
    "split*" any(0), No, "f1 s1 f2 s2 … [default]", "passes to the stream of the first f that is true",
        routing::split_all;
    "splitp*" any(2), No, "p f test1 s1 … [default]", "passes to the stream of the first test that p accepts",
        routing::splitp_all;
    "match" any(2), No, "f value c…", "passes events whose f matches the value", routing::matching;
    "tagged" any(1), No, "tags c…", "passes events with all these tags", routing::tagged_all;
    "tagged-all" any(1), No, "tags c…", "passes events with all these tags", routing::tagged_all;
    "tagged-any" any(1), No, "tags c…", "passes events with one of these tags", routing::tagged_any;
    "over" any(1), No, "x c…", "passes metrics over x", plumbing::over;
    "under" any(1), No, "x c…", "passes metrics under x", plumbing::under;
    "within" any(1), No, "[low high] c…", "passes metrics from low to high", plumbing::within;
    "without" any(1), No, "[low high] c…", "passes metrics outside of low to high", plumbing::without;
    "not-expired" any(0), Server, "c…", "passes events that have not expired", plumbing::not_expired;
    "dual" exact(3, 3), Server, "f yes no", "passes to one of two streams, and the expiry to the other one",
        plumbing::dual;
    "append" exact(1, 1), No, "atom", "adds events to a vector in an atom", plumbing::append;
    "register" exact(1, 1), No, "atom", "keeps the last event in an atom", plumbing::register;
    "async-queue!" any(2), No, "name options c…", "passes everything: outputs have queues of their own",
        plumbing::async_queue;
    "execute-on" any(1), No, "executor c…", "passes everything: outputs have queues of their own",
        plumbing::execute_on;
    "exception-stream*" exact(2, 2), No, "handler make", "gives the handler what the streams throw",
        plumbing::exception_stream;
    "changed" any(1), Count, "f [{:init v :pairs? b}] c…", "passes events whose f is another than before",
        changes::changed;
    "stable" any(2), Both, "dt f c…", "passes events once their f has been the same for dt seconds",
        changes::stable;
    "runs" any(2), Count, "n f c…", "passes events whose f has been the same for n events", changes::runs;
    "clock-skew" any(0), Both, "c…", "sets the metric to the host's distance from the median of all clocks",
        ranking::clock_skew;
    "top" exact(3, 5), Count, "k f top [bottom [demote?]]", "passes the k largest events to one stream, the others to another",
        ranking::top;
    "predict-linear" any(2), Event, "n s [r] c…", "predicts the metric s seconds ahead from the last n events",
        windows::predict_linear;
    "rate" any(1), Server, "dt c…", "the sum of the metrics per second, every dt seconds", rates::rate;
    "percentiles" any(2), Server, "dt points c…", "events at percentiles of the metric, every dt seconds",
        rates::percentiles;
    "counter" any(0), Count, "[init] c…", "the running total of the metrics", counters::counter;
    "sum-over-time" any(0), Count, "c…", "the running sum of the metrics", counters::sum_over_time;
    "mean-over-time" exact(1, 1), Count, "[c…]", "the running mean of the metrics", counters::mean_over_time;
    "ewma-timeless" any(1), Count, "r c…", "a moving average that takes r of each metric", counters::ewma_timeless;
    "ewma" any(1), Event, "halflife c…", "a moving average that forgets half in halflife seconds", counters::ewma;
    "ddt" any(0), Both, "[dt] c…", "how fast the metric changes per second", counters::ddt;
    "fold-interval" any(3), Server, "dt field f c…", "sets a field to f of its values of dt seconds",
        rates::fold_interval;
    "fold-interval-metric" any(2), Server, "dt f c…", "sets the metric to f of the metrics of dt seconds",
        rates::fold_interval_metric;
    "apdex*" any(3), Server, "dt satisfied? tolerated? c…", "the share of satisfied events, every dt seconds",
        rates::apdex_all;
    "moving-event-window" any(1), Count, "n c…", "the vector of the last n events, at each event",
        windows::moving_event_window;
    "window" any(1), Count, "n c…", "the same as moving-event-window", windows::moving_event_window;
    "fixed-event-window" any(1), Count, "n c…", "vectors of n events each", windows::fixed_event_window;
    "moving-time-window" any(1), Event, "n c…", "the vector of the events of the last n seconds, at each event",
        windows::moving_time_window;
    "fixed-time-window" any(1), Event, "n [{:flush-after s}] c…", "vectors of the events of n seconds each",
        windows::fixed_time_window;
    "fixed-offset-time-window" any(1), Event, "n [{:flush-after s}] c…",
        "vectors of the events of n seconds each, from multiples of n on", windows::fixed_offset_time_window;
    "coalesce" any(0), Server, "[dt] c…", "the vector of the last event of each host and service, every dt seconds",
        latest::coalesce;
    "coalesce-with-event" exact(2, 2), Count, "f child", "calls a function of the event and the last one of each key",
        latest::coalesce_with_event;
    "project*" any(1), Count, "[f…] c…", "the vector of the last event of each f", latest::project_all;
    "part-time-fast" exact(4, 4), Server, "dt create add finish", "calls functions for bins of dt seconds",
        parts::part_time_fast;
    "part-time-simple" exact(4, 5), Server, "dt reset add [side-effects] finish",
        "calls functions for windows of dt seconds that have events", parts::part_time_simple;
    "periodically-until-expired" exact(1, 3), Server, "[dt [delay]] f", "calls f every dt seconds while events come",
        parts::periodically_until_expired;
    "throttle" any(2), Server, "n dt c…", "passes at most n events in dt seconds", throttling::throttle;
    "rollup" any(2), Server, "n dt c…", "passes vectors, at most n in dt seconds", throttling::roll_up;
    "batch" any(2), Server, "n dt c…", "passes vectors of n events, or of what came in dt seconds", throttling::batch;
    "fill-in" any(2), Server, "dt event c…", "passes an event when none came for dt seconds", filling::fill_in;
    "fill-in-last" any(2), Server, "dt update c…", "passes the last event with other fields when none came for dt seconds",
        filling::fill_in_last;
    "fill-in-last*" any(2), Server, "dt f c…", "passes f of the last event when none came for dt seconds",
        filling::fill_in_last_all;
    "interpolate-constant" any(1), Server, "dt c…", "passes the last event every dt seconds",
        filling::interpolate_constant;
}
