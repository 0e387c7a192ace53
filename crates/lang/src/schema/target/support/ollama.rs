//! Ollama's own chat API: the server parses a schema into a struct with few fields. The other keywords never reach the
//! chat template.

use super::model::{Enforcer, Source, Subject, SupportEntry, SupportLevel};

const FIELDS: Source = Source { at: "https://github.com/ollama/ollama/issues/17142", date: "2026-07-12" };

/// The support table.
pub(super) static SUPPORT: &[SupportEntry] = &[
    SupportEntry::new(
        Subject::Keywords(&["type", "description", "enum", "anyOf", "items", "properties", "required"]),
        SupportLevel::Shown,
        Enforcer::Deftool,
        "the model reads it; nothing enforces it",
        FIELDS,
    ),
    SupportEntry::new(
        Subject::OtherKeywords,
        SupportLevel::Ignored,
        Enforcer::Deftool,
        "the server drops it when it parses the request, so the model does not see it",
        FIELDS,
    ),
];
