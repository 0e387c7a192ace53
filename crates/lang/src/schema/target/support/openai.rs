//! OpenAI chat completions and responses without strict mode: only the model reads the schema.

use serde_json::Value;

use super::model::{Enforcer, Occurrence, Source, Subject, SupportEntry, SupportLevel};

const UNENFORCED_WITHOUT_STRICT: Source = Source {
    at: "https://dev.to/multigrid/structured-outputs-in-gpt-4o-strict-json-schema-end-to-end-4li4",
    date: "2026-11",
};
const LOOKAROUND: Source =
    Source { at: "https://github.com/anomalyco/opencode/issues/32073", date: "2026-06-12" };
const DESCRIPTION: Source =
    Source { at: "https://github.com/getsentry/sentry-mcp/issues/106", date: "2025-04-25" };
const TOOLS: Source =
    Source { at: "https://github.com/musistudio/claude-code-router/issues/686", date: "2025-08-23" };

const READ: SupportEntry = SupportEntry::new(
    Subject::OtherKeywords,
    SupportLevel::Shown,
    Enforcer::Deftool,
    "the model reads it; without `strict` the API does not enforce it",
    UNENFORCED_WITHOUT_STRICT,
);

const NO_LOOKAROUND: SupportEntry = SupportEntry::new(
    Subject::Keywords(&["pattern"]),
    SupportLevel::Refused,
    Enforcer::Deftool,
    "newer models answer 400: regex lookaround is not supported",
    LOOKAROUND,
)
.when("it contains a lookahead or lookbehind", looks_around);

const PATTERN: SupportEntry = SupportEntry::new(
    Subject::Keywords(&["pattern"]),
    READ.level,
    READ.enforced_by,
    READ.detail,
    READ.source,
);

const FEW_TOOLS: SupportEntry = SupportEntry::new(
    Subject::ToolsOver(128),
    SupportLevel::Refused,
    Enforcer::Unenforced,
    "the API answers 400: array too long",
    TOOLS,
);

/// Chat completions.
pub(super) static CHAT: &[SupportEntry] = &[NO_LOOKAROUND, PATTERN, READ, SHORT_DESCRIPTION, FEW_TOOLS];

pub(super) const SHORT_DESCRIPTION: SupportEntry = SupportEntry::new(
    Subject::DescriptionOver(1024),
    SupportLevel::Refused,
    Enforcer::Unenforced,
    "the chat API answers 400: string too long",
    DESCRIPTION,
);

/// Responses.
pub(super) static RESPONSES: &[SupportEntry] = &[NO_LOOKAROUND, PATTERN, READ, FEW_TOOLS];

/// Returns whether a pattern contains a lookahead or lookbehind.
pub(super) fn looks_around(occurrence: &Occurrence<'_>) -> bool {
    let pattern = occurrence.value().and_then(Value::as_str).unwrap_or_default();
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|opening| pattern.contains(opening))
}
