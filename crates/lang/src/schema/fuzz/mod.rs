//! Generates arguments from a tool's schema: valid ones for calls, and invalid ones that the validator must reject.
//!
//! The input is the parameters schema, its validator and a seed. The output is values at the boundaries of the schema
//! and random values within them, and [`InvalidArguments`] with a reason for each. [`shrink()`] reduces a value while a
//! condition stays true. The same seed generates the same values. Keywords that the generator does not support (`not`,
//! `if`, lookaheads in patterns) are left to the validator: a value that it rejects is generated again, a few times.

mod invalid;
mod pattern;
mod schema;
mod shrink;
mod text;
mod value;

use serde_json::{Map, Value};

use super::ArgumentValidator;
use value::Generator;

pub use invalid::InvalidArguments;
pub use shrink::shrink;

/// Maximum number of attempts to generate a valid value.
const TRIES: usize = 50;
/// Maximum number of values generated in all attempts together.
const MAX_GENERATED: usize = 30_000;

/// Generates arguments for one tool.
#[derive(Debug)]
pub struct Fuzzer<'s> {
    parameters: &'s Value,
    validator: &'s ArgumentValidator,
    random: fastrand::Rng,
}

impl<'s> Fuzzer<'s> {
    /// Creates a fuzzer for the tool with these `parameters`.
    pub fn new(parameters: &'s Value, validator: &'s ArgumentValidator, seed: u64) -> Self {
        Self { parameters, validator, random: fastrand::Rng::with_seed(seed) }
    }

    /// Returns valid arguments: number 0 is the smallest, number 1 the fullest. Returns `None` if none were found.
    pub fn valid(&mut self, number: usize) -> Option<Map<String, Value>> {
        let mut generated = 0;
        for attempt in 0..TRIES {
            if generated > MAX_GENERATED {
                break;
            }
            let mut generator = Generator::new(self.parameters, &mut self.random, number, attempt);
            let value = generator.value(self.parameters, 0);
            generated += generator.generated;
            if self.validator.is_valid(&value)
                && let Value::Object(arguments) = value
            {
                return Some(arguments);
            }
        }
        None
    }

    /// Returns arguments derived from valid ones, each invalid in one place.
    pub fn invalid(&mut self, valid: &Map<String, Value>) -> Vec<InvalidArguments> {
        invalid::of(self.parameters, valid)
    }
}
