//! Anthropic messages without strict mode: only the model reads the schema; names must match a pattern.

use super::model::{Enforcer, Occurrence, Source, Subject, SupportEntry, SupportLevel};

const STRICT_TOOL_USE: Source = Source {
    at: "https://platform.claude.com/docs/en/agents-and-tools/tool-use/strict-tool-use",
    date: "2026-11",
};
const PROPERTY_KEYS: Source =
    Source { at: "https://github.com/anthropics/claude-code/issues/79418", date: "2026-07-20" };

/// The support table.
pub(super) static SUPPORT: &[SupportEntry] = &[
    SupportEntry::new(
        Subject::OtherKeywords,
        SupportLevel::Shown,
        Enforcer::Deftool,
        "the model reads it; without `strict` it may still use other types or omit required arguments",
        STRICT_TOOL_USE,
    ),
    SupportEntry::new(
        Subject::PropertyNames,
        SupportLevel::Refused,
        Enforcer::Unenforced,
        "the API answers 400 to the whole request: property keys are 1 to 64 of A-Z a-z 0-9 _ . -",
        PROPERTY_KEYS,
    )
    .when("a name has another character or is longer than 64 characters", is_odd),
];

fn is_odd(occurrence: &Occurrence<'_>) -> bool {
    let name = occurrence.word;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    // Only the top-level properties of the parameters are known to be checked.
    occurrence.node.pointer.is_empty() && (name.is_empty() || name.len() > 64 || !name.chars().all(is_plain))
}
