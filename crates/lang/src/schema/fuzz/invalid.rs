//! Generates arguments that each violate one keyword of the schema, so that the validator must reject them.

use serde_json::{Map, Value, json};

use super::schema::{count, resolve, types};
use super::text;

/// Maximum depth of the invalid value.
const MAX_DEPTH: usize = 8;
/// Maximum number of invalid arguments derived from one valid call.
const MAX_INVALID: usize = 2_000;
/// Higher limits are not tested, because the values would be unrealistically large.
const MAX_SIZE: usize = 200_000;

/// Arguments that the validator must reject.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidArguments {
    /// The arguments, or an invalid value in place of the object.
    pub value: Value,
    /// The reason, as a clause: `.n is a boolean where integer is declared`.
    pub reason: String,
}

pub(super) fn of(root: &Value, valid: &Map<String, Value>) -> Vec<InvalidArguments> {
    let valid = Value::Object(valid.clone());
    let mut finder = Finder { root, valid: &valid, found: Vec::new() };
    finder.visit(root, &valid, "", "", 0);
    finder.found
}

struct Finder<'f> {
    root: &'f Value,
    valid: &'f Value,
    found: Vec<InvalidArguments>,
}

impl Finder<'_> {
    /// Generates invalid values for `value`, which is at `pointer` in the arguments and is displayed as `path`.
    fn visit(&mut self, schema: &Value, value: &Value, pointer: &str, path: &str, depth: usize) {
        // A reference and its sibling keywords both apply, so violating either is enough.
        let target = resolve(self.root, schema);
        if !std::ptr::eq(target, schema) {
            self.visit_schema(target, value, pointer, path, depth);
        }
        self.visit_schema(schema, value, pointer, path, depth);
    }

    fn visit_schema(&mut self, schema: &Value, value: &Value, pointer: &str, path: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let name = if path.is_empty() { "the value" } else { path };
        let mut put = |invalid: Value, reason: String| self.put(pointer, invalid, format!("{name} {reason}"));
        for (word, invalid) in invalid_types(schema) {
            put(invalid, format!("is {word} where {} is declared", types(schema).join(" or ")));
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let other = json!("none of these\u{1F980}");
            if !values.contains(&other) {
                put(other, String::from("is not one of the enum values"));
            }
        }
        if let Some(constant) = schema.get("const") {
            put(json!([constant]), String::from("differs from its const"));
        }
        match value {
            Value::String(_) => invalid_strings(schema, &mut put),
            Value::Number(_) => invalid_numbers(schema, &mut put),
            Value::Array(items) => invalid_arrays(schema, items, &mut put),
            Value::Object(members) => invalid_objects(schema, members, &mut put),
            Value::Null | Value::Bool(_) => {}
        }
        self.descend(schema, value, pointer, path, depth);
    }

    fn descend(&mut self, schema: &Value, value: &Value, pointer: &str, path: &str, depth: usize) {
        match value {
            Value::Object(members) => {
                let Some(Value::Object(properties)) = schema.get("properties") else { return };
                for (name, member) in members {
                    if let Some(property) = properties.get(name) {
                        let step = name.replace('~', "~0").replace('/', "~1");
                        self.visit(
                            property,
                            member,
                            &format!("{pointer}/{step}"),
                            &format!("{path}.{name}"),
                            depth + 1,
                        );
                    }
                }
            }
            Value::Array(items) if schema.get("prefixItems").is_none() => {
                if let (Some(item), Some(first)) = (schema.get("items"), items.first()) {
                    self.visit(item, first, &format!("{pointer}/0"), &format!("{path}[0]"), depth + 1);
                }
            }
            Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn put(&mut self, pointer: &str, invalid: Value, reason: String) {
        if self.found.len() >= MAX_INVALID {
            return;
        }
        let mut value = self.valid.clone();
        if let Some(slot) = value.pointer_mut(pointer) {
            *slot = invalid;
            self.found.push(InvalidArguments { value, reason });
        }
    }
}

/// Returns a value for every type that is not declared.
fn invalid_types(schema: &Value) -> Vec<(&'static str, Value)> {
    let declared = types(schema);
    if declared.is_empty() {
        return Vec::new();
    }
    let others = [
        ("null", "a null", json!(null)),
        ("boolean", "a boolean", json!(true)),
        ("integer", "an integer", json!(7)),
        ("number", "a fraction", json!(0.5)),
        ("string", "a string", json!("7")),
        ("array", "a list", json!([])),
        ("object", "an object", json!({})),
    ];
    let is_declared =
        |word: &str| declared.contains(&word) || (word == "integer" && declared.contains(&"number"));
    others
        .into_iter()
        .filter(|(word, ..)| !is_declared(word))
        .map(|(_, description, value)| (description, value))
        .collect()
}

fn invalid_strings(schema: &Value, put: &mut impl FnMut(Value, String)) {
    if let Some(least) = count(schema, "minLength").filter(|least| (1..MAX_SIZE).contains(least)) {
        put(json!("a".repeat(least - 1)), String::from("is shorter than its minLength"));
    }
    if let Some(most) = count(schema, "maxLength").filter(|most| *most < MAX_SIZE) {
        put(json!("a".repeat(most + 1)), String::from("is longer than its maxLength"));
    }
    // Almost any string is valid in these formats.
    let loose = ["uri-reference", "iri-reference", "regex", "uri-template", "idn-hostname", "json-pointer"];
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| text::is_known_format(format) && !loose.contains(&format)) {
        put(
            json!("\u{0} not of this format \u{1}"),
            format!("is not of the format {}", format.unwrap_or_default()),
        );
    }
}

fn invalid_numbers(schema: &Value, put: &mut impl FnMut(Value, String)) {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64).filter(|bound| bound.abs() < 1e15);
    let is_integer = types(schema) == ["integer"];
    let json = |number: f64| {
        if is_integer && number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
    };
    let step = if is_integer { 1.0 } else { 0.5 };
    if let Some(low) = number("minimum") {
        put(json(low.ceil() - step), String::from("is less than its minimum"));
    }
    if let Some(high) = number("maximum") {
        put(json(high.floor() + step), String::from("is greater than its maximum"));
    }
    if let Some(low) = number("exclusiveMinimum") {
        put(json(low), String::from("is its exclusiveMinimum"));
    }
    if let Some(high) = number("exclusiveMaximum") {
        put(json(high), String::from("is its exclusiveMaximum"));
    }
}

fn invalid_arrays(schema: &Value, items: &[Value], put: &mut impl FnMut(Value, String)) {
    if let Some(least) = count(schema, "minItems").filter(|least| *least >= 1) {
        let fewer: Vec<Value> = items.iter().take(least - 1).cloned().collect();
        put(Value::Array(fewer), String::from("has fewer items than its minItems"));
    }
    let item = || items.first().cloned().unwrap_or(Value::Null);
    if let Some(most) = count(schema, "maxItems").filter(|most| *most < MAX_SIZE / 100) {
        put(Value::Array(vec![item(); most + 1]), String::from("has more items than its maxItems"));
    }
    if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
        put(Value::Array(vec![item(); 2]), String::from("repeats an item that must be unique"));
    }
}

fn invalid_objects(schema: &Value, members: &Map<String, Value>, put: &mut impl FnMut(Value, String)) {
    if let Some(Value::Array(names)) = schema.get("required") {
        for name in names.iter().filter_map(Value::as_str) {
            let mut without = members.clone();
            if without.shift_remove(name).is_some() {
                put(Value::Object(without), format!("lacks `{name}`, which is required"));
            }
        }
    }
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    if is_closed && schema.get("patternProperties").is_none() {
        let mut more = members.clone();
        if more.insert(String::from("undeclared_property"), json!(1)).is_none() {
            put(Value::Object(more), String::from("has an undeclared property"));
        }
    }
}
