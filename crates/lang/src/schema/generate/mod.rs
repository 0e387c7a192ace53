//! Generates valid arguments from a tool's schema.
//!
//! The input is the parameters schema, its validator and a seed. The output is values at the boundaries of the schema
//! and random values within them. The same seed generates the same values. Keywords that the generator does not support
//! (`not`, `if`, lookaheads in patterns) are left to the validator: a value that it rejects is generated again, a few
//! times.

mod pattern;
mod schema;
mod text;
mod value;

use serde_json::{Map, Value};

use super::ArgumentValidator;
use value::Generator;

/// Maximum number of attempts to generate a valid value.
const TRIES: usize = 50;
/// Maximum number of values generated in all attempts together.
const MAX_GENERATED: usize = 30_000;

/// Returns arguments that are valid under `parameters`: number 0 is the smallest, number 1 the fullest. Returns `None` if
/// none were found.
pub fn generate_arguments(
    parameters: &Value,
    validator: &ArgumentValidator,
    number: usize,
) -> Option<Map<String, Value>> {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let mut generated = 0;
    for attempt in 0..TRIES {
        if generated > MAX_GENERATED {
            break;
        }
        let mut generator = Generator::new(parameters, &mut random, number, attempt);
        let value = generator.value(parameters, 0);
        generated += generator.generated;
        if validator.is_valid(&value)
            && let Value::Object(arguments) = value
        {
            return Some(arguments);
        }
    }
    None
}
