//! Ollama's own chat API: its server reads a schema into a structure of few fields, and the rest is gone before the
//! model's template sees it.

use super::{Claim, Enforcer, Fate, Source, Subject};

const FIELDS: Source = Source { at: "https://github.com/ollama/ollama/issues/17142", date: "2026-07-12" };

/// The table.
pub(super) static CLAIMS: &[Claim] = &[
    Claim::new(
        Subject::Keywords(&["type", "description", "enum", "anyOf", "items", "properties", "required"]),
        Fate::Shown,
        Enforcer::Deftool,
        "the model reads it; nothing holds it to it",
        FIELDS,
    ),
    Claim::new(
        Subject::OtherKeywords,
        Fate::Ignored,
        Enforcer::Deftool,
        "the server drops it while reading the request, so the model does not see it either",
        FIELDS,
    ),
];
