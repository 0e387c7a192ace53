//! The rules of schemas.
//!
//! One file each: what it means, with an example that breaks it and the repair, and what it says.

use crate::diagnostic::rules;

rules! {
    invalid_schema: INVALID_SCHEMA,
}
