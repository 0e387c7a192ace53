//! The rules for schemas.
//!
//! One file per rule: documentation with a failing and a repaired example, and the message.

use crate::diagnostic::rules;

rules! {
    invalid_schema: INVALID_SCHEMA,
    invalid_pattern: INVALID_PATTERN,
    default_misfit: DEFAULT_MISFIT,
    example_misfit: EXAMPLE_MISFIT,
    unresolved_reference: UNRESOLVED_REFERENCE,
    costly_schema: COSTLY_SCHEMA,
    accepted_example_fails: ACCEPTED_EXAMPLE_FAILS,
    rejected_example_passes: REJECTED_EXAMPLE_PASSES,
    confirm_pattern: CONFIRM_PATTERN,
    confirm_never: CONFIRM_NEVER,
    ask_misfit: ASK_MISFIT,
    prompt_in_description: PROMPT_IN_DESCRIPTION,
    refused_by_target: REFUSED_BY_TARGET,
    may_be_refused: MAY_BE_REFUSED,
    dropped_by_target: DROPPED_BY_TARGET,
    annotation_lost: ANNOTATION_LOST,
    ignored_by_target: IGNORED_BY_TARGET,
    weakened_by_target: WEAKENED_BY_TARGET,
    misread_by_target: MISREAD_BY_TARGET,
    name_refused: NAME_REFUSED,
    description_too_long: DESCRIPTION_TOO_LONG,
    too_many_tools: TOO_MANY_TOOLS,
    too_large: TOO_LARGE,
    invalid_json: INVALID_JSON,
    import: IMPORT,
}

use crate::diagnostic::Rule;
use crate::spec::rules::argument_name::ARGUMENT_NAME;
use crate::spec::rules::array_without_items::ARRAY_WITHOUT_ITEMS;
use crate::spec::rules::invalid_name::INVALID_NAME;

/// Returns whether the rule `of_target` duplicates `base`, a rule for all targets, at the same location.
pub fn repeats(of_target: &Rule, base: &Rule) -> bool {
    let same = [
        (&name_refused::NAME_REFUSED, &ARGUMENT_NAME),
        (&name_refused::NAME_REFUSED, &INVALID_NAME),
        (&may_be_refused::MAY_BE_REFUSED, &ARRAY_WITHOUT_ITEMS),
    ];
    same.into_iter().any(|(known, its_base)| of_target == known && base == its_base)
}

pub use accepted_example_fails::ACCEPTED_EXAMPLE_FAILS;
pub(crate) use annotation_lost::annotation_lost;
pub(crate) use description_too_long::description_too_long;
pub(crate) use dropped_by_target::dropped_by_target;
pub(crate) use ignored_by_target::ignored_by_target;
pub use invalid_pattern::INVALID_PATTERN;
pub(crate) use may_be_refused::may_be_refused;
pub(crate) use misread_by_target::misread_by_target;
pub(crate) use name_refused::name_refused;
pub(crate) use refused_by_target::refused_by_target;
pub use rejected_example_passes::REJECTED_EXAMPLE_PASSES;
pub(crate) use too_large::too_large;
pub(crate) use too_many_tools::too_many_tools;
pub(crate) use weakened_by_target::weakened_by_target;
