//! The rules of forms, plists, arguments and workers.
//!
//! One file each: what it means, with an example that breaks it and the repair, and what it says.

use crate::diagnostic::rules;

rules! {
    unknown_form: UNKNOWN_FORM,
    stray_value: STRAY_VALUE,
    odd_plist: ODD_PLIST,
    duplicate_key: DUPLICATE_KEY,
    stray_colon: STRAY_COLON,
    unknown_tool_key: UNKNOWN_TOOL_KEY,
    missing_name: MISSING_NAME,
    invalid_name: INVALID_NAME,
    missing_description: MISSING_DESCRIPTION,
    wrong_value: WRONG_VALUE,
    unknown_permission: ALLOW_UNKNOWN,
    args_not_a_list: ARGS_NOT_A_LIST,
    duplicate_argument: DUPLICATE_ARGUMENT,
    missing_type: MISSING_TYPE,
    unknown_type: UNKNOWN_TYPE,
    quoted_in_data: QUOTED_IN_DATA,
    unknown_argument_key: UNKNOWN_ARGUMENT_KEY,
    enum_not_a_vector: ENUM_NOT_A_VECTOR,
    enum_misfit: ENUM_MISFIT,
    array_without_items: ARRAY_WITHOUT_ITEMS,
    object_without_properties: OBJECT_WITHOUT_PROPERTIES,
    properties_not_a_plist: PROPERTIES_NOT_A_PLIST,
    required_misplaced: REQUIRED_MISPLACED,
    required_unknown: REQUIRED_UNKNOWN,
    inexact_number: INEXACT_NUMBER,
    type_as_string: TYPE_AS_STRING,
    optional_misplaced: OPTIONAL_MISPLACED,
    unknown_worker_key: UNKNOWN_WORKER_KEY,
    reserved_param: RESERVED_PARAM,
}
