//! The table of functions as `/functions` answers it, from which Grafana builds its query editor (spec graphite §6.10).

use crate::query::table::{Default, Function, Param, functions};

use super::json::{push_number, push_text};

/// What a client asks for.
#[derive(Clone, Copy, Debug, std::default::Default)]
pub struct Listing<'l> {
    /// Only functions of this group.
    pub group: Option<&'l str>,
    /// One more level: by group.
    pub grouped: bool,
}

/// All functions as one object.
pub fn all(listing: Listing<'_>) -> Vec<u8> {
    let wanted = |function: &&Function| listing.group.is_none_or(|group| function.group.name() == group);
    let mut out = vec![b'{'];
    if listing.grouped {
        let mut groups: Vec<&str> =
            functions().filter(wanted).map(|function| function.group.name()).collect();
        groups.sort_unstable();
        groups.dedup();
        for (number, group) in groups.iter().enumerate() {
            separate(number, &mut out);
            push_text(group.as_bytes(), &mut out);
            out.extend_from_slice(b": {");
            push_all(functions().filter(|function| function.group.name() == *group), &mut out);
            out.push(b'}');
        }
    } else {
        push_all(functions().filter(wanted), &mut out);
    }
    out.push(b'}');
    out
}

/// One function; None for an unknown name.
pub fn one(name: &str) -> Option<Vec<u8>> {
    let function = crate::query::table::find(name)?;
    let mut out = Vec::new();
    push_function(name, function, &mut out);
    Some(out)
}

fn separate(number: usize, out: &mut Vec<u8>) {
    if number > 0 {
        out.extend_from_slice(b", ");
    }
}

fn push_all(all: impl Iterator<Item = &'static Function>, out: &mut Vec<u8>) {
    let names = |function: &'static Function| {
        std::iter::once(function.name)
            .chain(function.aliases.iter().copied())
            .map(move |name| (name, function))
    };
    for (number, (name, function)) in all.flat_map(names).enumerate() {
        separate(number, out);
        push_text(name.as_bytes(), out);
        out.extend_from_slice(b": ");
        push_function(name, function, out);
    }
}

fn push_pair(key: &str, value: &str, out: &mut Vec<u8>) {
    push_text(key.as_bytes(), out);
    out.extend_from_slice(b": ");
    push_text(value.as_bytes(), out);
}

fn push_function(name: &str, function: &Function, out: &mut Vec<u8>) {
    out.push(b'{');
    push_pair("name", name, out);
    out.extend_from_slice(b", ");
    push_pair("function", &function.signature(name), out);
    out.extend_from_slice(b", ");
    push_pair("description", function.description, out);
    out.extend_from_slice(b", ");
    push_pair("module", "graphite.render.functions", out);
    out.extend_from_slice(b", ");
    push_pair("group", function.group.name(), out);
    out.extend_from_slice(b", \"params\": [");
    for (number, param) in function.params.iter().enumerate() {
        separate(number, out);
        push_param(param, out);
    }
    out.extend_from_slice(b"]}");
}

fn push_param(param: &Param, out: &mut Vec<u8>) {
    out.push(b'{');
    push_pair("name", param.name, out);
    out.extend_from_slice(b", ");
    push_pair("type", param.kind.name(), out);
    if param.is_required {
        out.extend_from_slice(b", \"required\": true");
    }
    if param.is_multiple {
        out.extend_from_slice(b", \"multiple\": true");
    }
    if let Some(default) = param.default {
        out.extend_from_slice(b", \"default\": ");
        match default {
            Default::Int(int) => out.extend_from_slice(int.to_string().as_bytes()),
            Default::Float(float) => push_number(float, false, out),
            Default::Text(text) => push_text(text.as_bytes(), out),
            Default::Bool(flag) => out.extend_from_slice(if flag { b"true" } else { b"false" }),
            Default::Infinity => out.extend_from_slice(b"1e9999"),
        }
    }
    for (key, values) in [("options", param.options), ("suggestions", param.suggestions)] {
        if !values.is_empty() {
            out.extend_from_slice(format!(", \"{key}\": ").as_bytes());
            out.extend_from_slice(&super::json::texts(values.iter().map(|value| value.as_bytes())));
        }
    }
    out.push(b'}');
}

#[test]
fn every_function_is_listed_once_with_its_group() {
    // Infinity as graphite-web writes it is beyond the range of a double.
    let json = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).expect("text").replace("1e9999", "\"inf\"");
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")
    };
    let plain = json(all(Listing::default()));
    assert!(plain.as_object().is_some_and(|all| all.len() > 100), "{plain}");
    assert_eq!(plain["sumSeries"]["group"], "Combine");
    assert_eq!(plain["sumSeries"]["params"][0]["type"], "seriesList");
    let grouped = json(all(Listing { grouped: true, group: None }));
    assert_eq!(grouped["Combine"]["sumSeries"], plain["sumSeries"]);
    let one_group = json(all(Listing { grouped: false, group: Some("Alias") }));
    assert!(one_group.get("alias").is_some() && one_group.get("sumSeries").is_none());
    assert_eq!(json(one("sum").expect("an alias"))["name"], "sum");
    assert_eq!(one("nothing"), None);
}
