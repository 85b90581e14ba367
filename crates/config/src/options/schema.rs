//! The options table as a JSON schema, for completion and checks in editors.
//!
//! It checks less than `staunch check`: formats and references are not part of it.

use serde_json::{Map, Value, json};

use super::row::{Default, Row, Type};
use super::section::{Family, Section};

/// JSON schema (2020-12) of a native file.
pub fn json_schema() -> Value {
    let mut schema = object(Section::Top);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Staunch configuration");
    schema
}

fn object(section: Section) -> Value {
    let properties: Map<String, Value> =
        section.rows().map(|row| (row.key.to_owned(), property(section, row))).collect();
    let required: Vec<&str> =
        section.rows().filter(|row| row.default == Default::Required).map(|row| row.key).collect();
    json!({
        "type": "object",
        "description": section.about(),
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(section: Section, row: &Row) -> Value {
    let mut value = match section.word() {
        Some(word) if row.key == "type" => json!({ "const": word }),
        _ => value(row.value),
    };
    let description =
        if row.long.is_empty() { row.help.to_owned() } else { format!("{} {}", row.help, row.long) };
    value["description"] = json!(description);
    value
}

fn value(of: Type) -> Value {
    let text = || json!({ "type": "string" });
    let list = |of: Value| json!({ "type": "array", "items": of });
    let table_or_list = |table: Value| json!({ "anyOf": [table.clone(), list(table)] });
    match of {
        Type::Text | Type::Path | Type::Address => text(),
        Type::Word(words) => json!({ "enum": words }),
        Type::Flag => json!({ "type": "boolean" }),
        Type::Whole { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Type::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Type::Quantity { of, or_off, .. } => {
            let (word, units) = (if or_off { "off" } else { "0" }, of.units().join("|"));
            json!({ "type": "string", "pattern": format!("^({word}|[0-9.]+ *({units}))$") })
        }
        Type::Listen => {
            let scheme = "^(udp|tcp|unix|unixgram|unix-frames)://";
            json!({ "type": "array", "minItems": 1, "items": { "type": "string", "pattern": scheme } })
        }
        Type::Endpoints(schemes) => {
            let words: Vec<&str> = schemes.iter().map(|scheme| scheme.word()).collect();
            let scheme = match words.as_slice() {
                [one] => format!("^{one}://"),
                several => format!("^({})://", several.join("|")),
            };
            json!({ "type": "array", "minItems": 1, "items": { "type": "string", "pattern": scheme } })
        }
        Type::Names => json!({ "type": "array", "minItems": 1, "items": text() }),
        Type::Texts | Type::Globs => list(text()),
        Type::TextOrTexts => json!({ "anyOf": [text(), list(text())] }),
        Type::Computes => table_or_list(json!({ "type": "object", "additionalProperties": text() })),
        Type::NamedTables(section) => json!({ "type": "object", "additionalProperties": object(section) }),
        Type::Shares => {
            let share = json!({ "type": "number", "minimum": 0, "maximum": 1 });
            json!({ "type": "object", "additionalProperties": share })
        }
        // Other words do no harm, so these are suggested but not required.
        Type::Words(words) => list(json!({ "anyOf": [{ "enum": words }, text()] })),
        Type::Percentiles | Type::Bins => list(json!({ "type": ["number", "string"] })),
        Type::Expiry { .. } => text(),
        Type::Table(Section::Expiry) => json!({ "anyOf": [text(), object(Section::Expiry)] }),
        Type::Table(section) => object(section),
        Type::Tables(section) => list(object(section)),
        Type::TableOrTables(section) => table_or_list(object(section)),
        Type::Map => json!({ "type": "object", "additionalProperties": text() }),
        Type::Named(family) => named(family),
    }
}

fn named(family: Family) -> Value {
    let sections: Vec<Value> = family.types().map(|(_, section)| object(section)).collect();
    json!({ "type": "object", "additionalProperties": { "anyOf": sections } })
}

#[test]
fn the_schema_has_every_section_and_option() {
    let schema = json_schema();
    let graphite = &schema["properties"]["outputs"]["additionalProperties"]["anyOf"][0]["properties"];
    assert_eq!(graphite["type"]["const"], "graphite");
    assert_eq!(graphite["queue"]["properties"]["max_bytes"]["type"], "string");
    assert_eq!(schema["properties"]["http"]["properties"]["enabled"]["type"], "boolean");
    assert_eq!(schema["required"], json!(["sources"]));
}
