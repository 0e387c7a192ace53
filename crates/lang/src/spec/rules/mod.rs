//! The rules for forms, plists, arguments and workers.
//!
//! Each file contains one rule: its documentation, with a failing and a repaired example, and its findings.

mod interpreters;
mod once_per_file;

use super::schema::Schema;
use crate::diagnostic::{Diagnostic, rules};

rules! {
    unknown_form: UNKNOWN_FORM,
    stray_value: STRAY_VALUE,
    odd_plist: ODD_PLIST,
    duplicate: DUPLICATE,
    stray_colon: STRAY_COLON,
    unknown_key: UNKNOWN_KEY,
    missing_key: MISSING_KEY,
    invalid_name: INVALID_NAME,
    missing_description: MISSING_DESCRIPTION,
    wrong_value: WRONG_VALUE,
    bare_key: BARE_KEY,
    wide_permission: WIDE_PERMISSION,
    useless_grant: USELESS_GRANT,
    description_is_name: DESCRIPTION_IS_NAME,
    unfinished_description: UNFINISHED_DESCRIPTION,
    builtin_name: BUILTIN_NAME,
    useless_key: USELESS_KEY,
    confirm_argument: CONFIRM_ARGUMENT,
    near_name: NEAR_NAME,
    collection_shape: COLLECTION_SHAPE,
    function_parameters: FUNCTION_PARAMETERS,
    unquoted_in_code: UNQUOTED_IN_CODE,
    tools_by_code: TOOLS_BY_CODE,
    name_style: NAME_STYLE,
    path_start: PATH_START,
    invalid_command: INVALID_COMMAND,
    placeholder_in_code: PLACEHOLDER_IN_CODE,
    placeholder_optional: PLACEHOLDER_OPTIONAL,
    unused_argument: UNUSED_ARGUMENT,
    placeholder_in_option: PLACEHOLDER_IN_OPTION,
    preview: PREVIEW,
    missing_type: MISSING_TYPE,
    unknown_name: UNKNOWN_NAME,
    quoted_in_data: QUOTED_IN_DATA,
    enum_misfit: ENUM_MISFIT,
    array_without_items: ARRAY_WITHOUT_ITEMS,
    object_without_properties: OBJECT_WITHOUT_PROPERTIES,
    inexact_number: INEXACT_NUMBER,
    type_as_string: TYPE_AS_STRING,
    keyword_without_effect: KEYWORD_WITHOUT_EFFECT,
    empty_range: EMPTY_RANGE,
    emacs_regexp: EMACS_REGEXP,
    unknown_format: UNKNOWN_FORMAT,
    default_on_required: DEFAULT_ON_REQUIRED,
    enum_without_type: ENUM_WITHOUT_TYPE,
    const_misfit: CONST_MISFIT,
    argument_name: ARGUMENT_NAME,
    callback_argument: CALLBACK_ARGUMENT,
    idle_description: IDLE_DESCRIPTION,
    nil_value: NIL_VALUE,
    contradictory_types: CONTRADICTORY_TYPES,
    alist_object: ALIST_OBJECT,
    lua_name: LUA_NAME,
    optional_in_words: OPTIONAL_IN_WORDS,
    undescribed_argument: UNDESCRIBED_ARGUMENT,
    lone_backslash: LONE_BACKSLASH,
    constant_of_ours: CONSTANT_OF_OURS,
    reserved_param: RESERVED_PARAM,
    mcp_transport: MCP_TRANSPORT,
    endpoint_suffix: ENDPOINT_SUFFIX,
    secret_in_file: SECRET_IN_FILE,
    tools_without_budget: TOOLS_WITHOUT_BUDGET,
    timer_over_total: TIMER_OVER_TOTAL,
}

pub(crate) use duplicate::ask as duplicate_ask;
pub use duplicate::definition as duplicate_definition;
pub use function_parameters::swapped_parameter;
pub use lone_backslash::{contains_lone_backslash, lone_backslashes};
pub use near_name::finding as near_name;
pub use once_per_file::merge_style;
pub use preview::of_form as preview_form;
pub use tools_by_code::{TOOLS_BY_CODE, finding as made_by_code, undeclared_wrapper};
pub use unknown_key::among as unknown_key_among;
pub use unknown_name::finding as unknown_name;
pub use useless_key::USELESS_KEY;

pub(in crate::spec) use crate::syntax::quoted;
pub(in crate::spec) use crate::syntax::rules::not_json::as_vector;

/// The rules for every schema, at every depth.
const SCHEMA_CHECKS: [fn(&Schema<'_>, &mut Vec<Diagnostic>); 15] = [
    missing_type::check,
    array_without_items::check,
    object_without_properties::check,
    unknown_name::check_required,
    enum_misfit::check,
    enum_without_type::check,
    duplicate::check,
    nil_value::check,
    wrong_value::schema::check,
    keyword_without_effect::check,
    empty_range::check,
    const_misfit::check,
    unknown_format::check,
    emacs_regexp::check,
    contradictory_types::check,
];

/// Adds the findings of all rules for `schema` itself, without those for the schemas inside of it.
pub(in crate::spec) fn check_schema(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    for check in SCHEMA_CHECKS {
        check(schema, findings);
    }
}

/// Replaces the fix of a finding by a note if the intended key is present as well, because it is unclear which of the
/// two is correct.
pub(in crate::spec) fn report_conflict(finding: &mut Diagnostic) {
    if let Some(edit) = finding.fix.take().and_then(|fix| fix.edits.into_iter().next()) {
        finding.notes.push(format!("`{}` is present as well; remove one of the two", edit.replacement));
    }
}
