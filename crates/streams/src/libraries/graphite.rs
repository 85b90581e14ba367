//! `riemann.graphite`: names of series from events (spec riemann §14.1).

use crate::event::Field;
use crate::language::error::Outcome;
use crate::natives;
use crate::nodes::fields;
use crate::print::to_str;
use crate::value::Value;

natives! {
    /// The namespace.
    pub(super) NATIVES = {
        "graphite-path-basic", 1, 1, "The host, its labels reversed, and the service with dots for spaces.", |_, a| Ok(Value::from(basic(&a[0], &text(&a[0], Field::Service))));
        "graphite-path-percentiles", 1, 1, "As graphite-path-basic; a service that ends in 0.95 ends in 95.", |_, a| {
            Ok(Value::from(basic(&a[0], &percentile(&text(&a[0], Field::Service)))))
        };
        "graphite-path-tags", 1, 1, "A function: the service with dots for spaces, and these fields as tags.", |_, a| {
            Ok(Value::Bound(std::sync::Arc::new(crate::function::Bound::new(&BOUND[0], [a[0].clone()].into()))))
        };
    }

    /// What `graphite-path-tags` gives.
    BOUND = {
        "graphite-path-tags", 2, 2, "The service with dots for spaces, and fields as tags.", |_, a| tagged(&a[1], &a[0]);
    }
}

fn text(event: &Value, field: Field) -> String {
    to_str(fields::get(event, field))
}

fn dots(service: &str) -> String {
    service.split_whitespace().collect::<Vec<_>>().join(".")
}

fn basic(event: &Value, service: &str) -> String {
    let host = text(event, Field::Host);
    let labels: Vec<&str> = host.split('.').rev().filter(|label| !label.is_empty()).collect();
    let service = dots(service);
    match (labels.is_empty(), service.is_empty()) {
        (true, _) => service,
        (false, true) => labels.join("."),
        (false, false) => format!("{}.{service}", labels.join(".")),
    }
}

/// `x 0.95` as `x 95`, `x 1.5` as `x 15`: a dot would begin another part of the name.
fn percentile(service: &str) -> String {
    let Some((before, number)) = service.rsplit_once(' ') else { return service.to_owned() };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match number.split_once('.') {
        Some((whole, part)) if is_digits(whole) && is_digits(part) => {
            let whole = if whole.bytes().all(|byte| byte == b'0') { "" } else { whole };
            format!("{before} {whole}{part}")
        }
        _ => service.to_owned(),
    }
}

fn tagged(event: &Value, names: &Value) -> Outcome {
    let mut path = dots(&text(event, Field::Service));
    for name in fields::items(names).unwrap_or_default() {
        let Value::Keyword(name) = &name else { return Err(fields::cannot("use as a field", &name)) };
        match fields::named(event, name) {
            Value::Nil => {}
            value => path.push_str(&format!(";{name}={}", to_str(value))),
        }
    }
    Ok(Value::from(path))
}
