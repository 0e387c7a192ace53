//! OpenAI, not strict, by chat completions and by responses: the schema is for the model to read.

use super::openai_strict::looks_around;
use super::{Claim, Enforcer, Fate, Source, Subject};

const STRICT_IS_WHAT_ENFORCES: Source = Source {
    at: "https://dev.to/multigrid/structured-outputs-in-gpt-4o-strict-json-schema-end-to-end-4li4",
    date: "2026-11",
};
const LOOKAROUND: Source =
    Source { at: "https://github.com/anomalyco/opencode/issues/32073", date: "2026-06-12" };
const DESCRIPTION: Source =
    Source { at: "https://github.com/getsentry/sentry-mcp/issues/106", date: "2025-04-25" };
const TOOLS: Source =
    Source { at: "https://github.com/musistudio/claude-code-router/issues/686", date: "2025-08-23" };

const READ: Claim = Claim::new(
    Subject::OtherKeywords,
    Fate::Shown,
    Enforcer::Deftool,
    "the model reads it; without `strict` the API holds it to nothing",
    STRICT_IS_WHAT_ENFORCES,
);

const NO_LOOKAROUND: Claim = Claim::new(
    Subject::Keywords(&["pattern"]),
    Fate::Refused,
    Enforcer::Deftool,
    "newer models answer 400: regex lookaround is not supported",
    LOOKAROUND,
)
.when("it looks ahead or behind", looks_around);

const PATTERN: Claim =
    Claim::new(Subject::Keywords(&["pattern"]), READ.fate, READ.enforced_by, READ.says, READ.source);

const FEW_TOOLS: Claim = Claim::new(
    Subject::ToolsOver(128),
    Fate::Refused,
    Enforcer::Nobody,
    "the API answers 400: array too long",
    TOOLS,
);

/// Chat completions.
pub(super) static CHAT: &[Claim] = &[NO_LOOKAROUND, PATTERN, READ, SHORT_DESCRIPTION, FEW_TOOLS];

pub(super) const SHORT_DESCRIPTION: Claim = Claim::new(
    Subject::DescriptionOver(1024),
    Fate::Refused,
    Enforcer::Nobody,
    "the chat API answers 400: string too long",
    DESCRIPTION,
);

/// Responses.
pub(super) static RESPONSES: &[Claim] = &[NO_LOOKAROUND, PATTERN, READ, FEW_TOOLS];
