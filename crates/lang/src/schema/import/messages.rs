//! What an import reports beside invalid JSON. The rule names no place in a spec, so these are messages of one rule.

use super::model::Purpose;
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::schema::rules::import::IMPORT;
use crate::schema::rules::may_be_refused::MAY_BE_REFUSED;
use crate::spec::{Member, rules};
use crate::syntax::quoted;
use crate::text::{Location, Span};

/// A definition, or a part of it, that cannot be imported.
fn error(at: Location, message: impl Into<String>) -> Diagnostic {
    Diagnostic { severity: Severity::Error, ..warning(at, message) }
}

/// A part of a definition that a spec cannot express.
fn warning(at: Location, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(&IMPORT, at, message)
}

/// A part of a definition that does not change which calls are valid.
fn note(at: Location, message: impl Into<String>) -> Diagnostic {
    Diagnostic { severity: Severity::Note, ..warning(at, message) }
}

/// Not a known tool definition, with a specific message.
pub(super) fn not_a_tool(location: Location, message: String) -> Diagnostic {
    error(location, message)
}

/// A tool of a provider, which has no schema.
pub(super) fn not_a_function(location: Location, word: &str, purpose: Purpose) -> Diagnostic {
    match purpose {
        Purpose::Import => {
            not_a_tool(location, format!("`{word}` is not a function tool; it cannot be converted to a spec"))
        }
        Purpose::Check => note(location, format!("`{word}` is not a function tool; it is not checked")),
    }
}

const UNKNOWN_FORMAT: &str = "unknown tool definition format";

/// Not a known tool definition.
pub(super) fn unknown_format(location: Location, purpose: Purpose) -> Diagnostic {
    let finding = not_a_tool(location, String::from(UNKNOWN_FORMAT));
    match purpose {
        Purpose::Import => finding
            .note("supported formats: tools of OpenAI, Anthropic, Gemini and MCP, and a JSON Schema of an object")
            .note("use `--from` if the format cannot be detected"),
        Purpose::Check => finding.note("supported formats: tools of OpenAI, Anthropic, Gemini and MCP"),
    }
}

/// Returns whether a finding is that of [`unknown_format`].
pub(super) fn is_unknown_format(finding: &Diagnostic) -> bool {
    finding.message == UNKNOWN_FORMAT
}

/// The value at `location` is not a list of tools.
pub(super) fn not_a_list(location: Location) -> Diagnostic {
    not_a_tool(location, String::from("expected a list of tools"))
        .note("a list is an array of tools, or an object with `tools`, as in a request or the response to `tools/list`")
        .note("supported formats: tools of OpenAI, Anthropic, Gemini and MCP")
}

/// The schema `name` is too large or too deep.
pub(super) fn not_checked(location: Location, name: &str) -> Diagnostic {
    note(location, format!("`{name}` is too large to be checked completely"))
}

/// OpenAI, or also Anthropic, rejects the keyword `key` at the top of the parameters.
pub(super) fn rejected_at_top(location: Location, key: &str) -> Diagnostic {
    let is_by_both = matches!(key, "anyOf" | "oneOf" | "allOf");
    let who = if is_by_both { "OpenAI and Anthropic reject" } else { "OpenAI rejects" };
    let message = format!("{who} a request with `{key}` at the top of the parameters of a tool");
    Diagnostic::new(&MAY_BE_REFUSED, location, message)
}

/// The definition looks like `detected` although `--from` specifies `expected`.
pub(super) fn other_format(location: Location, expected: &str, detected: &str) -> Diagnostic {
    not_a_tool(location, format!("expected {expected}, found {detected}; omit `--from`"))
        .note("reading it in the wrong format would drop its arguments")
}

/// `missing` lists the missing sources of a name.
pub(super) fn nameless(location: Location, missing: &str) -> Diagnostic {
    error(location, format!("missing tool name: no {missing}"))
}

/// `found` describes the actual type.
pub(super) fn not_an_object(location: Location, found: &str) -> Diagnostic {
    let message = format!("expected parameters of type `object`, found {found}");
    error(location, message)
}

/// `why` is a clause that explains why the reference cannot be inlined.
pub(super) fn reference(location: Location, reference: &str, why: &str) -> Diagnostic {
    error(location, format!("`{reference}` {why}"))
}

/// Returns one finding for all such keywords of a tool.
pub(super) fn root_keywords(at: Location, keys: &[(String, Span)]) -> Diagnostic {
    let names = names(keys);
    let message = format!("a spec cannot apply {names} to all arguments together; ignored");
    let finding = warning(at, message);
    let others = keys.iter().skip(1);
    others.fold(finding, |finding, (key, span)| {
        finding.with_label_at(*span, format!("`{key}` is also ignored"))
    })
}

/// Returns one finding for all unsupported keys of a tool.
pub(super) fn left_out(at: Location, keys: &[(String, Span)]) -> Diagnostic {
    let message = match keys {
        [_] => format!("{} is not supported in a spec; ignored", names(keys)),
        _ => format!("{} are not supported in a spec; ignored", names(keys)),
    };
    let finding = note(at, message);
    let others = keys.iter().skip(1);
    others.fold(finding, |finding, (key, span)| {
        finding.with_label_at(*span, format!("`{key}` is also ignored"))
    })
}

/// The `:confirm` of an imported form is a function.
pub(super) fn confirm_function(at: Location) -> Diagnostic {
    let message =
        "this function is not imported: the spec asks before every call; list the calls in `:confirm`";
    note(at, message)
}

/// `number` comments of imported forms are lost; the first one is at `at`.
pub(super) fn comments(at: Location, number: usize) -> Diagnostic {
    let message = match number {
        1 => String::from("this comment is not imported"),
        _ => format!("{number} comments are not imported; this is the first"),
    };
    note(at, message)
}

/// Returns the keys as a list: `` `a`, `b` and `c` ``.
fn names(keys: &[(String, Span)]) -> String {
    let mut names = String::new();
    for (index, (key, _)) in keys.iter().enumerate() {
        names.push_str(match (index, index + 1 == keys.len()) {
            (0, _) => "",
            (_, true) => " and ",
            (_, false) => ", ",
        });
        names.extend(["`", key, "`"]);
    }
    names
}

/// `key` is `name` or `optional`.
pub(super) fn argument_key(location: Location, key: &str) -> Diagnostic {
    let message =
        format!("`{key}` is not a JSON Schema keyword, and `:{key}` has another meaning in a spec; ignored");
    warning(location, message)
}

/// `additionalProperties` is at `location`.
pub(super) fn open_arguments(location: Location) -> Diagnostic {
    let message = "a tool in a spec accepts only declared arguments; additional arguments are ignored";
    warning(location, message)
}

/// `required` contains the unknown property `name`.
pub(super) fn unknown_required(location: Location, name: &str) -> Diagnostic {
    let message = format!("unknown property `{name}` in `required`; ignored");
    warning(location, message)
}

/// The same for a definition that is checked as it is, under the rule for schemas in specs.
pub(super) fn unknown_name(location: Location, name: &str, properties: &[Member]) -> Diagnostic {
    let known = properties.iter().map(|property| property.key.as_str());
    let message = format!("unknown property `{name}` in `required`");
    let finding = rules::unknown_name(location, message, name, known, quoted);
    Diagnostic { fix: None, ..finding }
}

/// `required` is not an array of names.
pub(super) fn required_without_names(location: Location) -> Diagnostic {
    let message = "expected an array of property names in `required`";
    warning(location, message)
}

/// `key` occurs at `location` and earlier at `first`.
pub(super) fn repeated_member(location: Location, key: &str, first: Span) -> Diagnostic {
    let message = format!("duplicate member `{key}`; the last value is used");
    warning(location, message).with_label_at(first, "first defined here")
}

/// The tool at `location` has the same name as the later tool at `last`.
pub(super) fn imported_twice(location: Location, name: &str, last: Location) -> Diagnostic {
    let message = format!("duplicate tool `{name}`; only the last definition is imported");
    let mut finding = warning(location, message);
    finding.labels.push(Label { location: last, message: String::from("the last definition") });
    finding
}

/// The cursor is at `location`.
pub(super) fn partial_list(location: Location) -> Diagnostic {
    warning(location, "incomplete list of tools; request the next page with `nextCursor`")
}

/// The schema of the argument `name` is at `location`.
pub(super) fn accepts_nothing(location: Location, name: &str) -> Diagnostic {
    let message = format!("the schema of the argument `{name}` accepts no value");
    error(location, message)
}

/// `properties` at `location` has the type `found`.
pub(super) fn no_properties(location: Location, found: &str) -> Diagnostic {
    error(location, format!("expected an object of schemas in `properties`, found {found}"))
}
