//! Anthropic messages, not strict: the schema is for the model to read; names are held to a pattern.

use super::{Claim, Enforcer, Fate, Source, Subject, Subjected};

const STRICT_TOOL_USE: Source = Source {
    at: "https://platform.claude.com/docs/en/agents-and-tools/tool-use/strict-tool-use",
    date: "2026-11",
};
const PROPERTY_KEYS: Source =
    Source { at: "https://github.com/anthropics/claude-code/issues/79418", date: "2026-07-20" };

/// The table.
pub(super) static CLAIMS: &[Claim] = &[
    Claim::new(
        Subject::OtherKeywords,
        Fate::Shown,
        Enforcer::Deftool,
        "the model reads it; without `strict` it may still write other types or leave out what is required",
        STRICT_TOOL_USE,
    ),
    Claim::new(
        Subject::PropertyNames,
        Fate::Refused,
        Enforcer::Nobody,
        "the API answers 400 to the whole request: property keys are 1 to 64 of A-Z a-z 0-9 _ . -",
        PROPERTY_KEYS,
    )
    .when("one has another character, or over 64", is_odd),
];

fn is_odd(subjected: &Subjected<'_>) -> bool {
    let name = subjected.word;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    // Only the properties of the parameters themselves were seen to be held to it.
    subjected.place.pointer.is_empty() && (name.is_empty() || name.len() > 64 || !name.chars().all(is_plain))
}
