//! Any text as a template of an output's requests, with any events of Riemann: it is rendered, or has a mistake; what is rendered keeps to its
//! place: a URL has no characters of its own but those of the template, a line has no line ends of the event, a string of JSON ends where
//! the template ends it; and records of requests and mails come back as they were.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{EventTime, EventsBuilder};
use wire::riemann::{self, Limits};
use wire::template::{Around, Template};
use wire::{mail, request};

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, message) = bytes.split_at(at);
    let message = message.get(1..).unwrap_or_default();
    let mut events = EventsBuilder::default();
    let _rejected = riemann::decode(message, EventTime::Seconds(1), Limits::default(), &mut events);
    let written = String::from_utf8_lossy(text);
    let template = Template::parse(&written);
    let json = "{\"a\":\"{{host|json}}{{a|json}}\",\"b\":[{{metric|json}},{{ttl|json}},{{time|json}},{{tags|json}}],\"c\":{{event}}}";
    let json = Template::parse(json).expect("it is one");
    for event in events.view().iter().take(50) {
        let mut out = Vec::new();
        // An attribute that is a map or a list is written as JSON inside of the string.
        if event.attribute("a").as_ref().is_none_or(is_text) {
            json.render(event, Around::Body, &mut out);
            let parsed: Result<serde_json::Value, _> = serde_json::from_slice(&out);
            assert!(parsed.is_ok(), "{}", String::from_utf8_lossy(&out));
        }
        if let Ok(template) = &template {
            rendered(template, &written, event);
        }
    }
});

fn is_text(value: &model::ValueRef<'_>) -> bool {
    matches!(value, model::ValueRef::Text(_) | model::ValueRef::Keyword(_) | model::ValueRef::Nil)
}

fn rendered(template: &Template, written: &str, event: model::EventRef<'_>) {
    let [mut body, mut url, mut line] = [Vec::new(), Vec::new(), Vec::new()];
    template.render(event, Around::Body, &mut body);
    template.render(event, Around::Url, &mut url);
    template.render(event, Around::Line, &mut line);
    let controls = |text: &[u8]| text.iter().filter(|byte| byte.is_ascii_control()).count();
    assert!(controls(&url) <= controls(written.as_bytes()));
    assert!(controls(&line) <= controls(written.as_bytes()));
    let spaces = |text: &[u8]| text.iter().filter(|byte| b" &?#/".contains(byte)).count();
    assert!(spaces(&url) <= spaces(written.as_bytes()));
    let mut record = Vec::new();
    request::record_line(&url, std::iter::once(&line[..]), &body, &mut record);
    assert_eq!(record.pop(), Some(b'\n'));
    assert!(!record.contains(&b'\n'), "a record is one line");
    let read = request::record(&record);
    assert!(read.head_fields().eq([url, line]));
    let mut back = Vec::new();
    read.body(&mut back);
    assert_eq!(back, body);
    let mut mailed = Vec::new();
    mail::push_record(event, &body, &mut mailed);
    assert_eq!(mail::text_of(&mailed), body);
    let mut text = Vec::new();
    mail::push_text(event, &["a"], &mut text);
    std::hint::black_box(mail::subject(&[mailed]));
}
