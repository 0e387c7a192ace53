//! The table of rules. Codes are stable: `DT0xx` reading, `DT1xx` forms and plists, `DT2xx` arguments and schemas,
//! `DT3xx` workers, `DT4xx` projects and scripts.

use super::Severity;

/// What a finding is an instance of.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable code, `DT101`.
    pub code: &'static str,
    /// Kebab-case name.
    pub name: &'static str,
    /// Default severity.
    pub severity: Severity,
    /// What it finds, in one clause.
    pub summary: &'static str,
}

macro_rules! rules {
    ($($id:ident $code:literal $name:literal $severity:ident $summary:literal;)*) => {
        $(#[doc = concat!("`", $code, "` ", $name, ": ", $summary, ".")]
        pub static $id: Rule = Rule { code: $code, name: $name, severity: Severity::$severity, summary: $summary };)*

        /// Every rule, in the order of their codes.
        pub static ALL: &[&Rule] = &[$(&$id),*];
    };
}

rules! {
    UNCLOSED "DT001" "unclosed" Error "an opening parenthesis, bracket or string that is never closed";
    STRAY_CLOSER "DT002" "stray-closer" Error "a closing parenthesis or bracket that closes nothing";
    PREFIX_WITHOUT_FORM "DT003" "prefix-without-form" Error "a quote, backquote or comma with nothing after it";
    BAD_DOT "DT004" "bad-dot" Error "a dot that is not before the last element of a list";
    BAD_ESCAPE "DT005" "bad-escape" Error "a backslash escape that Emacs does not read";
    BAD_CHARACTER "DT006" "bad-character" Error "a character literal that Emacs does not read";
    UNKNOWN_HASH "DT007" "unknown-hash" Error "reader syntax after # that Emacs does not have";
    INVALID_UTF8 "DT008" "invalid-utf8" Error "bytes that are not UTF-8";
    RAW_BYTE "DT009" "raw-byte" Warning "an escape for a raw byte, which JSON cannot carry";

    UNKNOWN_FORM "DT101" "unknown-form" Error "a top-level form that is none of the known ones";
    NOT_A_CONSTANT "DT102" "not-a-constant" Error "code where a constant is needed";
    TOO_DEEP "DT103" "too-deep" Error "data nested too deeply";
    STRAY_VALUE "DT104" "stray-value" Error "a value where a plist expects a key";
    ODD_PLIST "DT105" "odd-plist" Error "a key without a value";
    DUPLICATE_KEY "DT106" "duplicate-key" Warning "a key that is given twice; the first counts";
    STRAY_COLON "DT107" "stray-colon" Warning "a key that ends in a colon";
    UNKNOWN_TOOL_KEY "DT108" "unknown-tool-key" Warning "a key that no tool form has";
    MISSING_NAME "DT109" "missing-name" Error "a form without :name";
    INVALID_NAME "DT110" "invalid-name" Error "a name that APIs refuse";
    DUPLICATE_NAME "DT111" "duplicate-name" Error "two definitions of one name";
    MISSING_DESCRIPTION "DT112" "missing-description" Warning "a tool or argument without a description";
    WRONG_VALUE "DT113" "wrong-value" Error "a value of the wrong kind for its key";
    ALLOW_UNKNOWN "DT114" "unknown-permission" Error "a permission that does not exist";

    ARGS_NOT_A_LIST "DT201" "args-not-a-list" Error ":args that is not a list of argument plists";
    DUPLICATE_ARGUMENT "DT202" "duplicate-argument" Error "two arguments of one name";
    MISSING_TYPE "DT203" "missing-type" Warning "an argument without :type";
    UNKNOWN_TYPE "DT204" "unknown-type" Error "a :type that JSON Schema does not have";
    QUOTED_IN_DATA "DT205" "quoted-in-data" Error "a quote inside data that is already quoted";
    UNKNOWN_ARGUMENT_KEY "DT206" "unknown-argument-key" Warning "a key that is no JSON Schema keyword";
    ENUM_NOT_A_VECTOR "DT207" "enum-not-a-vector" Error "an :enum that is not a vector of constants";
    ENUM_MISFIT "DT208" "enum-misfit" Error "an :enum value that does not fit the :type";
    ARRAY_WITHOUT_ITEMS "DT209" "array-without-items" Warning "an array that does not say what it holds";
    OBJECT_WITHOUT_PROPERTIES "DT210" "object-without-properties" Warning "an object that does not say what it holds";
    PROPERTIES_NOT_A_PLIST "DT211" "properties-not-a-plist" Error ":properties that is not a plist of plists";
    REQUIRED_MISPLACED "DT212" "required-misplaced" Warning ":required on an argument; arguments are required unless :optional";
    REQUIRED_UNKNOWN "DT213" "required-unknown" Error ":required that names no property";
    NOT_JSON "DT214" "not-json" Error "a value that has no JSON form";
    INEXACT_NUMBER "DT215" "inexact-number" Warning "an integer beyond 64 bits";
    INVALID_SCHEMA "DT216" "invalid-schema" Warning "arguments whose JSON Schema does not compile";
    TYPE_AS_STRING "DT217" "type-as-string" Note "a :type written as a string";
    OPTIONAL_MISPLACED "DT218" "optional-misplaced" Warning ":optional inside :properties, where it has no effect";

    UNKNOWN_WORKER_KEY "DT301" "unknown-worker-key" Warning "a key that workers do not have";
    UNKNOWN_WORKER_TOOL "DT302" "unknown-worker-tool" Error "a worker that names a tool the project does not have";
    RESERVED_PARAM "DT303" "reserved-param" Warning "a member of :params that the engine sets itself";

    MISSING_SCRIPT "DT401" "missing-script" Error "a tool without its script";
    SCRIPT_DOES_NOT_COMPILE "DT402" "script-does-not-compile" Error "a script that Luau does not compile";
    SCRIPT_ARITY "DT403" "script-arity" Error "a script whose function does not take the tool's arguments";
    UNREADABLE "DT404" "unreadable" Error "a file that cannot be read";
    EMACS_LISP_ONLY "DT405" "emacs-lisp-only" Note "a tool whose implementation is Emacs Lisp and that has no script";
    SCRIPT_WITHOUT_FUNCTION "DT406" "script-without-function" Error "a script that returns no function";
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn codes_and_names_are_unique_and_ordered() {
        assert!(ALL.windows(2).all(|pair| pair[0].code < pair[1].code));
        let mut names: Vec<_> = ALL.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
