//! Any lines of Graphite and of OpenTSDB as events of Riemann: each is one event, or one reject that leaves nothing behind; an event has a
//! service, a number and a time, and can be written as JSON and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{EventTime, EventsBuilder};
use wire::riemann::json::{self, Absent, JsonLine, JsonOptions, JsonTimes};
use wire::riemann::lines::{self, OpentsdbLine};

/// The end of the year 9999.
const LAST_S: i64 = 253_402_300_799;

fuzz_target!(|bytes: &[u8]| {
    let mut events = EventsBuilder::default();
    for line in bytes.split(|byte| *byte == b'\n').take(200) {
        for kind in 0..3 {
            let before = (events.len(), events.text_bytes());
            let is_event = match kind {
                0 => lines::graphite(line, false, &mut events).is_ok(),
                1 => lines::graphite(line, true, &mut events).is_ok(),
                _ => matches!(lines::opentsdb(line, &mut events), Ok(OpentsdbLine::Event)),
            };
            if is_event {
                assert_eq!(events.len(), before.0 + 1);
            } else {
                assert_eq!((events.len(), events.text_bytes()), before, "a reject leaves nothing behind");
            }
        }
    }
    for event in events.view().iter() {
        assert!(event.service().is_some() && event.metric().is_some());
        let Some(EventTime::Seconds(time_s)) = event.time() else { panic!("an event has a time") };
        // Other years are written with more digits, which JSON events cannot have.
        if !(0..=LAST_S).contains(&time_s) {
            continue;
        }
        let mut text = Vec::new();
        json::encode(event, Absent::Null, &mut text);
        let mut again = EventsBuilder::default();
        let options = JsonOptions { bytes_max: usize::MAX, times: JsonTimes::Seconds };
        let read = json::decode(&text, EventTime::Seconds(0), options, &mut again);
        assert!(matches!(read, Ok(JsonLine::Event)), "{}", String::from_utf8_lossy(&text));
    }
});
