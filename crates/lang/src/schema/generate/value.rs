//! Generates values of every type, as often at the boundaries of their schema as within.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::schema::{count, resolve, types};
use super::text;

/// Below this depth only required members are generated.
const DEEP: usize = 6;
/// Maximum depth; a schema may require itself.
const DEEPEST: usize = 24;
/// Maximum number of list items if the schema sets no limit.
const MANY: usize = 40;
/// Maximum number of list items if the schema sets a limit.
const MOST: usize = 2_000;
/// Maximum number of values per call.
const MAX_VALUES: usize = 5_000;
/// 2^53: up to this, a Lua number represents every integer exactly.
const EXACT: i64 = 9_007_199_254_740_992;

/// The size of a generated value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Smallest,
    Fullest,
    Any,
}

/// Generates one value.
pub(super) struct Generator<'m> {
    root: &'m Value,
    random: &'m mut fastrand::Rng,
    size: Size,
    /// Number of values generated so far.
    pub(super) generated: usize,
}

impl<'m> Generator<'m> {
    /// Creates a generator. Numbers 0 and 1 generate the smallest and the fullest value, if these are valid.
    pub(super) fn new(root: &'m Value, random: &'m mut fastrand::Rng, number: usize, attempt: usize) -> Self {
        let size = match (number, attempt) {
            (0, 0..5) => Size::Smallest,
            (1, 0..5) => Size::Fullest,
            _ => Size::Any,
        };
        Self { root, random, size, generated: 0 }
    }

    /// Generates a value for `schema`. It may be invalid if several keywords interact.
    pub(super) fn value(&mut self, schema: &Value, depth: usize) -> Value {
        self.generated += 1;
        let resolved = self.resolve(schema, 0);
        let schema = &*resolved;
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(Value::Array(values)) = schema.get("enum")
            && let Some(value) = self.random.choice(values)
        {
            return value.clone();
        }
        if depth > DEEPEST || self.generated > 2 * MAX_VALUES {
            return Value::Null;
        }
        let words = types(schema);
        let word = match self.random.choice(&words) {
            Some(word) => word,
            None => implied(schema).unwrap_or_else(|| self.any_type(depth)),
        };
        match word {
            "string" => Value::String(match self.size {
                Size::Any => text::text(schema, self.random),
                Size::Smallest => text::extreme(schema, self.random, false),
                Size::Fullest => text::extreme(schema, self.random, true),
            }),
            "integer" => self.number(schema, true),
            "number" => self.number(schema, false),
            "boolean" => Value::Bool(self.random.bool()),
            "array" => self.array(schema, depth),
            "object" => self.object(schema, depth),
            _ => Value::Null,
        }
    }

    /// Returns `schema` merged with the target of its reference, with `allOf`, and with one branch of `anyOf` or
    /// `oneOf`.
    fn resolve<'v>(&mut self, schema: &'v Value, depth: usize) -> Cow<'v, Value> {
        let Value::Object(members) = schema else { return Cow::Borrowed(schema) };
        let branches: Vec<&str> = ["$ref", "allOf", "anyOf", "oneOf"]
            .into_iter()
            .filter(|key| members.contains_key(*key))
            .collect();
        if branches.is_empty() || depth > 8 {
            return Cow::Borrowed(schema);
        }
        let mut merged = members.clone();
        for key in branches {
            merged.shift_remove(key);
        }
        let mut inside = Vec::new();
        if members.contains_key("$ref") {
            inside.push(resolve(self.root, schema).clone());
        }
        if let Some(Value::Array(all)) = members.get("allOf") {
            inside.extend(all.iter().cloned());
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(some)) = members.get(key) {
                inside.extend(self.random.choice(some).cloned());
            }
        }
        for schema in inside {
            let schema = self.resolve(&schema, depth + 1).into_owned();
            merge(&mut merged, schema);
        }
        Cow::Owned(Value::Object(merged))
    }

    fn any_type(&mut self, depth: usize) -> &'static str {
        const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
        let known = if depth >= DEEP { TYPES.get(..5).unwrap_or_default() } else { &TYPES };
        self.random.choice(known).copied().unwrap_or("null")
    }

    #[allow(clippy::cast_precision_loss)] // boundaries of floats are floats
    fn number(&mut self, schema: &Value, integer: bool) -> Value {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(1.0);
        let low = match (bound("minimum"), bound("exclusiveMinimum")) {
            (Some(low), None) => Some(low),
            (low, Some(below)) => {
                let above = if integer { below.floor() + 1.0 } else { next_up(below) };
                Some(low.map_or(above, |low| low.max(above)))
            }
            (None, None) => None,
        };
        let high = match (bound("maximum"), bound("exclusiveMaximum")) {
            (Some(high), None) => Some(high),
            (high, Some(above)) => {
                let below = if integer { above.ceil() - 1.0 } else { -next_up(-above) };
                Some(high.map_or(below, |high| high.min(below)))
            }
            (None, None) => None,
        };
        let mut candidates: Vec<f64> = [low, high].into_iter().flatten().collect();
        candidates.extend(low.map(|low| low + step));
        candidates.extend(high.map(|high| high - step));
        candidates.extend([0.0, -0.0, 1.0, -1.0, 2.0, 10.0, 255.0, 65536.0, 2_147_483_648.0]);
        candidates.extend([EXACT as f64, -(EXACT as f64), EXACT as f64 - 1.0]);
        if !integer {
            candidates.extend([0.5, -0.5, 0.1, 1e-300, 5e-324, f64::MAX, f64::MIN, 1e21]);
        }
        let step_given = schema.get("multipleOf").is_some();
        let is_within = |number: &f64| {
            low.is_none_or(|low| *number >= low)
                && high.is_none_or(|high| *number <= high)
                && (!integer || number.fract() == 0.0)
                && (!step_given || (number / step).fract() == 0.0)
        };
        candidates.retain(is_within);
        let chosen = match (self.size, self.random.u32(..3)) {
            (Size::Smallest, _) => low.filter(is_within).or_else(|| candidates.first().copied()),
            (Size::Fullest, _) => high.filter(is_within).or_else(|| candidates.last().copied()),
            (Size::Any, 0..=1) => self.random.choice(&candidates).copied(),
            (Size::Any, _) => {
                let (from, to) = (low.unwrap_or(-1000.0), high.unwrap_or(1000.0));
                let (from, to) = if from > to { (to, to + 1000.0) } else { (from, to) };
                let number = from + (to - from) * self.random.f64();
                let number = if integer { number.round() } else { number };
                Some(if step_given { (number / step).round() * step } else { number })
            }
        };
        json_number(chosen.unwrap_or(0.0), integer, self.random)
    }

    fn array(&mut self, schema: &Value, depth: usize) -> Value {
        let least = count(schema, "minItems").unwrap_or(0).min(MOST);
        let limit = count(schema, "maxItems");
        let most = limit.unwrap_or(MANY).min(MOST).max(least);
        let length = match (self.size, self.random.u32(..4)) {
            (Size::Smallest, _) => least,
            (Size::Fullest, _) if depth < 2 => most,
            _ if depth >= DEEP || self.generated > MAX_VALUES => least,
            (_, 0) => least,
            (_, 1) if depth < 2 => most,
            _ => self.random.usize(least..=most.min(least.saturating_add(4))),
        };
        let empty = Value::Bool(true);
        let mut items: Vec<Value> = Vec::new();
        for index in 0..length {
            let fixed = schema.get("prefixItems").and_then(|fixed| fixed.get(index));
            let item = fixed.or_else(|| schema.get("items")).unwrap_or(&empty);
            items.push(self.value(item, depth + 1));
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = std::collections::HashSet::new();
            items.retain(|item| seen.insert(item.to_string()));
        }
        Value::Array(items)
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> = match schema.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) | None => Vec::new(),
        };
        let mut object = Map::new();
        for (name, property) in properties {
            let is_included = match self.size {
                _ if required.contains(&name.as_str()) => true,
                _ if depth >= DEEP || self.generated > MAX_VALUES => false,
                Size::Smallest => false,
                Size::Fullest => true,
                Size::Any => self.random.bool(),
            };
            if is_included && *property != Value::Bool(false) {
                object.insert(name.clone(), self.value(property, depth + 1));
            }
        }
        let any = Value::Bool(true);
        let more = schema.get("additionalProperties").unwrap_or(&any);
        for name in required {
            if !object.contains_key(name) && !properties.contains_key(name) {
                object.insert(name.to_owned(), self.value(more, depth + 1));
            }
        }
        // At the root, an undeclared name is a mistake of the model rather than a valid case.
        let is_open = *more != Value::Bool(false) && depth > 0 && depth < DEEP;
        let least = count(schema, "minProperties").unwrap_or(0).min(MOST);
        let wanted = match self.size {
            Size::Any if is_open && self.generated < MAX_VALUES => self.random.usize(..4) + object.len(),
            Size::Any | Size::Smallest | Size::Fullest => 0,
        };
        let most = count(schema, "maxProperties").unwrap_or(usize::MAX);
        while object.len() < least.max(wanted).min(most) && *more != Value::Bool(false) {
            let before = object.len();
            let name = match self.random.u32(..3) {
                0 => text::text(&Value::Bool(true), self.random).chars().take(40).collect(),
                _ => format!("key{before}"),
            };
            let value = self.value(more, depth + 1);
            object.entry(name).or_insert(value);
            if object.len() == before {
                object.insert(format!("another{before}"), Value::Null);
            }
        }
        Value::Object(object)
    }
}

/// Returns the type that the keywords of an untyped schema apply to.
fn implied(schema: &Value) -> Option<&'static str> {
    let about = [
        ("properties", "object"),
        ("required", "object"),
        ("additionalProperties", "object"),
        ("items", "array"),
        ("prefixItems", "array"),
        ("minItems", "array"),
        ("maxItems", "array"),
        ("pattern", "string"),
        ("format", "string"),
        ("minLength", "string"),
        ("maxLength", "string"),
        ("minimum", "number"),
        ("maximum", "number"),
        ("multipleOf", "number"),
    ];
    about.into_iter().find(|(key, _)| schema.get(*key).is_some()).map(|(_, word)| word)
}

/// Merges another schema: properties and required names are combined; other keywords are replaced.
fn merge(into: &mut Map<String, Value>, other: Value) {
    let Value::Object(other) = other else { return };
    for (key, value) in other {
        match (key.as_str(), into.get_mut(&key), value) {
            ("properties", Some(Value::Object(known)), Value::Object(more)) => {
                for (name, schema) in more {
                    known.entry(name).or_insert(schema);
                }
            }
            ("required", Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
            (_, _, value) => {
                into.insert(key, value);
            }
        }
    }
}

fn json_number(number: f64, integer: bool, random: &mut fastrand::Rng) -> Value {
    // 1.0 is also an integer in JSON Schema; -0.0 is not changed.
    let as_float = number == 0.0 && number.is_sign_negative();
    if integer && number.abs() < 9.2e18 && !as_float && random.u32(..8) > 0 {
        return Value::from(number as i64);
    }
    if number.fract() == 0.0 && number.abs() < 9.2e18 && !as_float && random.bool() {
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn next_up(number: f64) -> f64 {
    number.next_up()
}
