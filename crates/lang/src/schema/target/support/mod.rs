//! What each target does with each schema keyword, as one table per target.
//!
//! A [`SupportEntry`] is about a keyword, or about something without a keyword (a boolean schema, a name), optionally
//! under a condition. For a keyword the first entry whose condition is true applies. Every entry states who enforces the
//! keyword, and the source of that information with its date, because providers change.
//!
//! These tables are the only source for the findings of a target, for the keywords of a strict schema and for
//! `deftool targets`. Out of scope: how a model treats a keyword that is only visible to it.

mod anthropic;
mod gemini;
mod llama_conditions;
mod llama_cpp;
mod llama_pattern;
mod mcp;
mod ollama;
mod openai;
mod openai_strict;

use serde::Serialize;

use super::Target;
use super::node::SchemaNode;

/// How a target treats one keyword or one other property of a tool.
#[derive(Debug)]
pub struct SupportEntry {
    /// The keywords or the property.
    pub subject: Subject,
    /// The condition under which the entry applies; `None`: always.
    pub when: Option<Condition>,
    /// The support level.
    pub level: SupportLevel,
    /// Who enforces the keyword.
    pub enforced_by: Enforcer,
    /// One clause with the details; may be empty.
    pub detail: &'static str,
    /// The source of this information.
    pub source: Source,
}

/// The subject of a support entry.
#[derive(Debug, Clone, Copy)]
pub enum Subject {
    /// Each of these keywords.
    Keywords(&'static [&'static str]),
    /// Every keyword that no other entry names.
    OtherKeywords,
    /// A whole schema; the text names the property of it.
    Schema(&'static str),
    /// A whole tool, with all its parameters.
    Tool(&'static str),
    /// The names of arguments and properties.
    PropertyNames,
    /// The tool's name.
    ToolName,
    /// A description of the tool longer than this many characters.
    DescriptionOver(usize),
    /// More tools than this in one request.
    ToolsOver(usize),
}

/// The condition of a support entry.
#[derive(Clone, Copy)]
pub struct Condition {
    /// The condition as text, to follow the word "where".
    pub text: &'static str,
    is_met: fn(&Occurrence<'_>) -> bool,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text)
    }
}

/// The input of a condition: a schema, and the keyword or name in it.
pub(crate) struct Occurrence<'p> {
    pub node: &'p SchemaNode<'p>,
    /// The keyword, or the name of a property or tool; empty for a whole schema.
    pub word: &'p str,
}

impl<'p> Occurrence<'p> {
    /// Returns the keyword's value.
    fn value(&self) -> Option<&'p serde_json::Value> {
        self.node.get(self.word)
    }
}

/// The support level of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SupportLevel {
    /// The target enforces it.
    Enforced,
    /// The model sees it, and nothing enforces it.
    Shown,
    /// Only a part of it is enforced.
    Weakened,
    /// The target interprets it differently.
    Misread,
    /// The target receives it and ignores it.
    Ignored,
    /// It is not sent, because the target rejects it or does not use it.
    Dropped,
    /// The target rejects a request that contains it.
    Refused,
}

impl SupportLevel {
    /// Returns the lowercase name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Shown => "shown",
            Self::Weakened => "weakened",
            Self::Misread => "misread",
            Self::Ignored => "ignored",
            Self::Dropped => "dropped",
            Self::Refused => "refused",
        }
    }
}

/// The component that enforces a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Enforcer {
    /// The sampler of a local server: the model cannot generate anything else.
    Sampler,
    /// The provider.
    Provider,
    /// deftool, which validates the arguments before the tool runs.
    Deftool,
    /// Nothing enforces it; for example, because it does not restrict values.
    #[serde(rename = "nobody")]
    Unenforced,
}

impl Enforcer {
    /// Returns the lowercase name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sampler => "sampler",
            Self::Provider => "provider",
            Self::Deftool => "deftool",
            Self::Unenforced => "nobody",
        }
    }
}

/// The source of a support entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Source {
    /// A web page, or a directory of this repository with recorded experiments.
    pub at: &'static str,
    /// The day of publication, or the month of access if that is unknown.
    pub date: &'static str,
}

impl SupportEntry {
    const fn new(
        subject: Subject,
        level: SupportLevel,
        enforced_by: Enforcer,
        detail: &'static str,
        source: Source,
    ) -> Self {
        Self { subject, when: None, level, enforced_by, detail, source }
    }

    const fn when(mut self, text: &'static str, is_met: fn(&Occurrence<'_>) -> bool) -> Self {
        self.when = Some(Condition { text, is_met });
        self
    }

    /// Returns whether the condition is met.
    pub(crate) fn applies(&self, occurrence: &Occurrence<'_>) -> bool {
        self.when.is_none_or(|condition| (condition.is_met)(occurrence))
    }

    /// Returns the subject as text.
    pub fn about(&self) -> String {
        match self.subject {
            Subject::Keywords(keywords) => keywords.join(", "),
            Subject::OtherKeywords => String::from("every other keyword"),
            Subject::Schema(what) | Subject::Tool(what) => what.to_owned(),
            Subject::PropertyNames => String::from("names of arguments and properties"),
            Subject::ToolName => String::from("the tool's name"),
            Subject::DescriptionOver(limit) => format!("a description over {limit} characters"),
            Subject::ToolsOver(limit) => format!("more than {limit} tools in a request"),
        }
    }
}

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
