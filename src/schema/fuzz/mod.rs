//! Arguments made from a tool's schema: valid ones to call it with, wrong ones that its validator must refuse.
//!
//! In: the parameters schema, its validator and a seed. Out: values at the boundaries of what the schema allows and at
//! random within; [`Wrong`] values with what is wrong in each; [`shrink`] makes a value smaller while something stays
//! true of it. The same seed makes the same values. What a schema says beyond what is understood here (`not`, `if`,
//! lookaheads in patterns) is left to the validator: a value that it refuses is made anew, a few times.

mod pattern;
mod shrink;
mod text;
mod value;
mod wrong;

use serde_json::{Map, Value};

use super::ArgumentValidator;
use value::Maker;

pub use shrink::shrink;
pub use wrong::Wrong;

/// How often a value is made anew that the validator refuses.
const TRIES: usize = 50;
/// How many values all these tries may make together.
const MAX_MADE: usize = 30_000;

/// Makes arguments for one tool.
#[derive(Debug)]
pub struct Fuzzer<'s> {
    parameters: &'s Value,
    validator: &'s ArgumentValidator,
    random: fastrand::Rng,
}

impl<'s> Fuzzer<'s> {
    /// For the tool whose `parameters` these are.
    pub fn new(parameters: &'s Value, validator: &'s ArgumentValidator, seed: u64) -> Self {
        Self { parameters, validator, random: fastrand::Rng::with_seed(seed) }
    }

    /// Valid arguments; the first are the smallest and the fullest. `None`: none were found.
    pub fn valid(&mut self, number: usize) -> Option<Map<String, Value>> {
        let mut made = 0;
        for attempt in 0..TRIES {
            if made > MAX_MADE {
                break;
            }
            let mut maker = Maker::new(self.parameters, &mut self.random, number, attempt);
            let value = maker.value(self.parameters, 0);
            made += maker.made;
            if self.validator.is_valid(&value)
                && let Value::Object(arguments) = value
            {
                return Some(arguments);
            }
        }
        None
    }

    /// Arguments that are wrong in one place each, made from valid ones.
    pub fn wrong(&mut self, valid: &Map<String, Value>) -> Vec<Wrong> {
        wrong::of(self.parameters, valid)
    }
}

/// What a `$ref` of `root` leads to, through as many of them as there are.
fn resolve<'s>(root: &'s Value, mut schema: &'s Value) -> &'s Value {
    for _ in 0..32 {
        let Some(target) = schema.get("$ref").and_then(Value::as_str) else { return schema };
        let Some(pointer) = target.strip_prefix('#') else { return schema };
        match root.pointer(pointer) {
            Some(found) => schema = found,
            None => return schema,
        }
    }
    schema
}

/// The words of `type`.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(word)) => vec![word.as_str()],
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

/// A count, as `minLength` has.
fn count(schema: &Value, key: &str) -> Option<usize> {
    let number = schema.get(key)?;
    let whole = number.as_u64().and_then(|count| usize::try_from(count).ok());
    // 3.0 is a count, too; a cast of a float saturates.
    #[allow(clippy::cast_sign_loss)]
    whole.or_else(|| {
        let number = number.as_f64().filter(|count| count.fract() == 0.0 && *count >= 0.0);
        number.map(|count| count as usize)
    })
}
