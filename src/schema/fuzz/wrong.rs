//! Arguments that are wrong in one place: each breaks one keyword of the schema, so that the validator must refuse it.

use serde_json::{Map, Value, json};

use super::{count, resolve, text, types};

/// Deepest place that is made wrong.
const MAX_DEPTH: usize = 8;
/// Most wrong arguments that are made of one valid call.
const MAX_WRONG: usize = 2_000;
/// A limit beyond this is not broken: nobody sends as much.
const MAX_SIZE: usize = 200_000;

/// Arguments that a validator must refuse.
#[derive(Debug, Clone, PartialEq)]
pub struct Wrong {
    /// The arguments, or what stands in their place.
    pub value: Value,
    /// What is wrong, in a clause, as in `.n is a boolean where integer is declared`.
    pub why: String,
}

pub(super) fn of(root: &Value, valid: &Map<String, Value>) -> Vec<Wrong> {
    let valid = Value::Object(valid.clone());
    let mut finder = Finder { root, valid: &valid, found: Vec::new() };
    finder.look(root, &valid, "", "", 0);
    finder.found
}

struct Finder<'f> {
    root: &'f Value,
    valid: &'f Value,
    found: Vec<Wrong>,
}

impl Finder<'_> {
    /// `value` stands at `pointer` in the arguments and is told as `path`.
    fn look(&mut self, schema: &Value, value: &Value, pointer: &str, path: &str, depth: usize) {
        // A reference holds beside its neighbours: each of both is enough to refuse.
        let target = resolve(self.root, schema);
        if !std::ptr::eq(target, schema) {
            self.look_at(target, value, pointer, path, depth);
        }
        self.look_at(schema, value, pointer, path, depth);
    }

    fn look_at(&mut self, schema: &Value, value: &Value, pointer: &str, path: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let name = if path.is_empty() { "the whole" } else { path };
        let mut put = |wrong: Value, why: String| self.put(pointer, wrong, format!("{name} {why}"));
        for (word, wrong) in wrong_types(schema) {
            put(wrong, format!("is {word} where {} is declared", types(schema).join(" or ")));
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let other = json!("none of these\u{1F980}");
            if !values.contains(&other) {
                put(other, String::from("is none of the values of its enum"));
            }
        }
        if let Some(constant) = schema.get("const") {
            put(json!([constant]), String::from("is another value than its const"));
        }
        match value {
            Value::String(_) => wrong_texts(schema, &mut put),
            Value::Number(_) => wrong_numbers(schema, &mut put),
            Value::Array(items) => wrong_lists(schema, items, &mut put),
            Value::Object(members) => wrong_objects(schema, members, &mut put),
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
                        self.look(
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
                    self.look(item, first, &format!("{pointer}/0"), &format!("{path}[0]"), depth + 1);
                }
            }
            Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn put(&mut self, pointer: &str, wrong: Value, why: String) {
        if self.found.len() >= MAX_WRONG {
            return;
        }
        let mut value = self.valid.clone();
        if let Some(place) = value.pointer_mut(pointer) {
            *place = wrong;
            self.found.push(Wrong { value, why });
        }
    }
}

/// A value of every type that is not declared.
fn wrong_types(schema: &Value) -> Vec<(&'static str, Value)> {
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
    others.into_iter().filter(|(word, ..)| !is_declared(word)).map(|(_, told, value)| (told, value)).collect()
}

fn wrong_texts(schema: &Value, put: &mut impl FnMut(Value, String)) {
    if let Some(least) = count(schema, "minLength").filter(|least| (1..MAX_SIZE).contains(least)) {
        put(json!("a".repeat(least - 1)), String::from("is shorter than its minLength"));
    }
    if let Some(most) = count(schema, "maxLength").filter(|most| *most < MAX_SIZE) {
        put(json!("a".repeat(most + 1)), String::from("is longer than its maxLength"));
    }
    // What fits any format fits these, too.
    let loose = ["uri-reference", "iri-reference", "regex", "uri-template", "idn-hostname", "json-pointer"];
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| text::is_known_format(format) && !loose.contains(&format)) {
        put(
            json!("\u{0} not of this format \u{1}"),
            format!("is not of the format {}", format.unwrap_or_default()),
        );
    }
}

fn wrong_numbers(schema: &Value, put: &mut impl FnMut(Value, String)) {
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

fn wrong_lists(schema: &Value, items: &[Value], put: &mut impl FnMut(Value, String)) {
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

fn wrong_objects(schema: &Value, members: &Map<String, Value>, put: &mut impl FnMut(Value, String)) {
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
        if more.insert(String::from("nobody_declared_this"), json!(1)).is_none() {
            put(Value::Object(more), String::from("has a property that nobody declared"));
        }
    }
}
