//! Project rules: names across files, scripts, and the files themselves.
//!
//! Each rule has its own file with documentation, a failing and a repaired example, and the message.

use deftool_lang::diagnostic::rules;

rules! {
    invalid_utf8: INVALID_UTF8,
    invalid_allow: INVALID_ALLOW,
    unused_allow: UNUSED_ALLOW,
    replaced_tool: REPLACED_TOOL,
    unknown_preset_tool: UNKNOWN_PRESET_TOOL,
    mcp_unavailable: MCP_UNAVAILABLE,
    mcp_tool: MCP_TOOL,
    mcp_schema: MCP_SCHEMA,
    long_result: LONG_RESULT,
    bios_file: BIOS_FILE,
    bios_placeholder: BIOS_PLACEHOLDER,
    too_many_tools: TOO_MANY_TOOLS,
    missing_script: MISSING_SCRIPT,
    script_does_not_compile: SCRIPT_DOES_NOT_COMPILE,
    script_arity: SCRIPT_ARITY,
    unreadable: UNREADABLE,
    emacs_lisp_only: EMACS_LISP_ONLY,
    script_without_function: SCRIPT_WITHOUT_FUNCTION,
    empty_file: EMPTY_FILE,
    unused_script: UNUSED_SCRIPT,
    swapped_parameters: SWAPPED_PARAMETERS,
    twin_scripts: TWIN_SCRIPTS,
    missing_module: MISSING_MODULE,
    module_does_not_compile: MODULE_DOES_NOT_COMPILE,
    circular_require: CIRCULAR_REQUIRE,
    computed_require: COMPUTED_REQUIRE,
    module_without_value: MODULE_WITHOUT_VALUE,
    unknown_global: UNKNOWN_GLOBAL,
    lost_global: LOST_GLOBAL,
    missing_permission: MISSING_PERMISSION,
    unused_permission: UNUSED_PERMISSION,
    parameter_name: PARAMETER_NAME,
    unused_callback: UNUSED_CALLBACK,
    exit_tool_script: EXIT_TOOL_SCRIPT,
    script_type: SCRIPT_TYPE,
    unknown_test_argument: UNKNOWN_TEST_ARGUMENT,
}

/// Returns whether an error under `rule` leaves a tool without a usable script
/// ([`ScriptState::Broken`](crate::ScriptState::Broken)).
pub fn breaks_script(rule: &deftool_lang::diagnostic::Rule) -> bool {
    [
        &missing_script::MISSING_SCRIPT,
        &script_does_not_compile::SCRIPT_DOES_NOT_COMPILE,
        &script_arity::SCRIPT_ARITY,
        &unreadable::UNREADABLE,
        &script_without_function::SCRIPT_WITHOUT_FUNCTION,
        &missing_module::MISSING_MODULE,
        &module_does_not_compile::MODULE_DOES_NOT_COMPILE,
        &module_without_value::MODULE_WITHOUT_VALUE,
    ]
    .contains(&rule)
}

/// Returns all rules, sorted by code.
pub fn all() -> Vec<&'static deftool_lang::diagnostic::Rule> {
    let lists = [
        deftool_lang::syntax::rules::RULES,
        deftool_lang::spec::rules::RULES,
        deftool_lang::schema::rules::RULES,
        RULES,
    ];
    let mut all = lists.concat();
    all.sort_unstable_by_key(|rule| rule.code);
    all
}
