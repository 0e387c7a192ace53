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
    invalid_json: INVALID_JSON,
    unknown_tool_shape: UNKNOWN_TOOL_SHAPE,
    nameless_tool: NAMELESS_TOOL,
    parameters_not_an_object: PARAMETERS_NOT_AN_OBJECT,
    import_reference: IMPORT_REFERENCE,
    root_keyword: ROOT_KEYWORD,
    left_out: LEFT_OUT,
    argument_key: ARGUMENT_KEY,
    open_arguments: OPEN_ARGUMENTS,
    unknown_required: UNKNOWN_REQUIRED,
    repeated_member: REPEATED_MEMBER,
    imported_twice: IMPORTED_TWICE,
    partial_list: PARTIAL_LIST,
    not_a_schema: NOT_A_SCHEMA,
}
