//! Events as JSON lines.

use model::{Event, EventKind};

use crate::text::{integer, json_string};

/// Appends the event as one line of JSON, ended by LF.
///
/// Empty members are omitted, except `kind`, `service` and `time` (Unix seconds), which are always present. A check's
/// `state` is Riemann's word for it.
pub fn event_json_line(event: &Event, out: &mut Vec<u8>) {
    out.extend_from_slice(match event.kind {
        EventKind::Event { .. } => b"{\"kind\":\"event\",\"service\":",
        EventKind::Check => b"{\"kind\":\"check\",\"service\":",
    });
    json_string(event.service.as_bytes(), out);
    out.extend_from_slice(b",\"time\":");
    integer(event.time_s, out);
    text_member("state", event.state.word(), out);
    text_member("host", &event.host, out);
    text_member("description", &event.description, out);
    if let EventKind::Event { low_priority, alert, aggregation_key, source_type } = &event.kind {
        text_member("priority", if *low_priority { "low" } else { "normal" }, out);
        text_member("alert", alert, out);
        text_member("aggregation_key", aggregation_key, out);
        text_member("source_type", source_type, out);
    }
    if !event.tags.is_empty() {
        out.extend_from_slice(b",\"tags\":[");
        for (at, tag) in event.tags.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            json_string(tag.as_bytes(), out);
        }
        out.push(b']');
    }
    text_member("container", &event.container, out);
    out.extend_from_slice(b"}\n");
}

fn text_member(name: &str, text: &str, out: &mut Vec<u8>) {
    if text.is_empty() {
        return;
    }
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    json_string(text.as_bytes(), out);
}
