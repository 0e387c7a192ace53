//! The support tables: one table per target, with the support level of each schema keyword.
//!
//! A [`SupportEntry`] is about a keyword, or about something without a keyword (a boolean schema, a name), optionally
//! under a condition. For a keyword the first entry with a true condition applies. Every entry states which component
//! enforces the keyword, and the source of that information with its date, because providers change.
//!
//! These tables are the only source for the findings of a target, for the keywords of a strict schema and for
//! `deftool compile --list-targets`. Out of scope: the effect of keywords that only the model reads.

mod anthropic;
mod gemini;
mod llama_cpp;
mod mcp;
mod model;
mod ollama;
mod openai;
mod openai_strict;

pub(crate) use model::Occurrence;
pub use model::{Condition, Enforcer, Source, Subject, SupportEntry, SupportLevel};

use super::model::Target;
use super::node::SchemaNode;

impl Target {
    /// Returns the support table.
    pub fn support_table(self) -> &'static [SupportEntry] {
        match self {
            Self::OpenAi => openai::CHAT,
            Self::OpenAiResponses => openai::RESPONSES,
            Self::OpenAiStrict => openai_strict::SUPPORT,
            Self::Anthropic => anthropic::SUPPORT,
            Self::Gemini => gemini::SUPPORT,
            Self::Ollama => ollama::SUPPORT,
            Self::Mcp => mcp::SUPPORT,
            Self::LlamaCpp => llama_cpp::SUPPORT,
        }
    }

    /// Returns the entry that applies to a keyword of a schema.
    pub(crate) fn support_for(self, node: &SchemaNode<'_>, keyword: &str) -> Option<&'static SupportEntry> {
        let occurrence = Occurrence { node, word: keyword };
        let named = |support: &&SupportEntry| matches!(support.subject, Subject::Keywords(words) if words.contains(&keyword));
        let entries = || self.support_table().iter();
        // A keyword with an entry of its own never falls back to `OtherKeywords`, even if no condition is met.
        if entries().any(|support| named(&support)) {
            return entries().filter(named).find(|support| support.applies(&occurrence));
        }
        entries()
            .find(|support| matches!(support.subject, Subject::OtherKeywords) && support.applies(&occurrence))
    }
}
