//! Fuzzes queries of Riemann: no panic, positions within the text, and every plan finds what a scan finds.

#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use streams::event::{Event, Field};
use streams::index::{Index, Limits, Progress, Search, SearchLimits};
use streams::number::Number;
use streams::query::{Query, ast};
use streams::value::Value;

const LIMITS: SearchLimits = SearchLimits { results_max: usize::MAX, steps_max: u64::MAX };

/// Some hosts and services, with texts that queries are likely to have.
fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = Index::new(Limits { events_max: 1_000, bytes_max: 1 << 20 }, 1);
        let text = |text: &str| Value::Text(text.into());
        let parts = ["", "a", "aa", "web1", "web2", "cpu", "disk /", "é\n", "%"];
        for (at, host) in parts.iter().enumerate() {
            for service in parts {
                let mut event = Event::default();
                event.set(Field::Host, if at == 0 { Value::Nil } else { text(host) });
                event.set(Field::Service, text(service));
                event.set(Field::Metric, Value::Number(Number::Int(at as i64)));
                event.set(Field::Time, Value::Number(Number::Int(0)));
                event
                    .set(Field::Tags, Value::Vector(Arc::new([text(host), text("a")].into_iter().collect())));
                index.insert(Arc::new(event)).expect("within the limits");
            }
        }
        index
    })
}

fn found(mut search: Search, slice: u64) -> Vec<*const Event> {
    let mut found = Vec::new();
    while search.run(index(), slice, &mut found) == Progress::More {}
    let mut found: Vec<*const Event> = found.iter().map(Arc::as_ptr).collect();
    found.sort_unstable();
    found
}

fuzz_target!(|text: &str| {
    match Query::new(text) {
        Ok(query) => {
            assert_eq!(ast(&query.tree().to_query()).as_ref(), Ok(query.tree()));
            let query = Arc::new(query);
            let planned = found(Search::new(&query, index(), LIMITS), 50);
            assert_eq!(planned, found(Search::scan(&query, LIMITS), u64::MAX));
        }
        Err(error) => assert!(error.at <= text.len() && !error.message.contains('\n')),
    }
});
