//! The rules of schemas.
//!
//! One file each: what it means, with an example that breaks it and the repair, and what it says.

use crate::diagnostic::rules;

rules! {
    invalid_schema: INVALID_SCHEMA,
    invalid_pattern: INVALID_PATTERN,
    default_misfit: DEFAULT_MISFIT,
    example_misfit: EXAMPLE_MISFIT,
    unresolved_reference: UNRESOLVED_REFERENCE,
    accepted_example_fails: ACCEPTED_EXAMPLE_FAILS,
    rejected_example_passes: REJECTED_EXAMPLE_PASSES,
}
