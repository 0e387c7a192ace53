//! What each target does with what a schema can say, as one table a target.
//!
//! A [`Claim`] is about a keyword, or about something that has none (a boolean schema, a name), perhaps only under a
//! condition. Of the claims about a keyword the first whose condition holds counts. Every claim says who enforces the
//! keyword then, and where that was read and when: providers change, and a claim without a date is a rumour.
//!
//! The tables are the one source of the findings for a target, of what the strict schema keeps and of
//! `deftool targets`. Deliberately absent: what a model makes of a keyword that it merely sees.

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
use super::place::Place;

/// One thing that a target does.
#[derive(Debug)]
pub struct Claim {
    /// What it is about.
    pub subject: Subject,
    /// When it holds; `None`: always.
    pub when: Option<Condition>,
    /// What happens.
    pub fate: Fate,
    /// Who holds a call to it then.
    pub enforced_by: Enforcer,
    /// What exactly happens, in a clause; may be empty.
    pub says: &'static str,
    /// Where that was read.
    pub source: Source,
}

/// What a claim is about.
#[derive(Debug, Clone, Copy)]
pub enum Subject {
    /// Each of these keywords.
    Keywords(&'static [&'static str]),
    /// Every keyword that no other claim names.
    OtherKeywords,
    /// A schema as a whole; the words name what about it.
    Schema(&'static str),
    /// A tool as a whole, its parameters taken together.
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

/// When a claim holds.
#[derive(Clone, Copy)]
pub struct Condition {
    /// In words.
    pub text: &'static str,
    holds: fn(&Subjected<'_>) -> bool,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text)
    }
}

/// What a condition is asked about: a place, and the keyword or the name there.
pub(crate) struct Subjected<'p> {
    pub place: &'p Place<'p>,
    /// The keyword; a property's or tool's name; empty for a schema as a whole.
    pub word: &'p str,
}

impl<'p> Subjected<'p> {
    /// The keyword's value.
    fn value(&self) -> Option<&'p serde_json::Value> {
        self.place.get(self.word)
    }
}

/// What happens to a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// The target keeps to it.
    Enforced,
    /// The model sees it and nothing holds it to it.
    Shown,
    /// Only a part of it is kept.
    Weakened,
    /// Something else is made of it.
    Misread,
    /// It reaches the target, which makes nothing of it.
    Ignored,
    /// It is left out of what is sent, since the target refuses it or has no use for it.
    Dropped,
    /// The target refuses a request that has it.
    Refused,
}

impl Fate {
    /// The lowercase word.
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

/// Who holds a call to a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Enforcer {
    /// The sampler of a local server: the model cannot write anything else.
    Sampler,
    /// The provider.
    Provider,
    /// deftool's own validation of the arguments, before the tool runs.
    Deftool,
    /// Nobody; for what says nothing about values.
    Nobody,
}

impl Enforcer {
    /// The lowercase word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sampler => "sampler",
            Self::Provider => "provider",
            Self::Deftool => "deftool",
            Self::Nobody => "nobody",
        }
    }
}

/// Where a claim was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Source {
    /// A page, or a folder of this repository for what was tried out.
    pub at: &'static str,
    /// The day it was written, or else the month it was read in.
    pub date: &'static str,
}

impl Claim {
    const fn new(
        subject: Subject,
        fate: Fate,
        enforced_by: Enforcer,
        says: &'static str,
        source: Source,
    ) -> Self {
        Self { subject, when: None, fate, enforced_by, says, source }
    }

    const fn when(mut self, text: &'static str, holds: fn(&Subjected<'_>) -> bool) -> Self {
        self.when = Some(Condition { text, holds });
        self
    }

    pub(crate) fn holds(&self, subjected: &Subjected<'_>) -> bool {
        self.when.is_none_or(|condition| (condition.holds)(subjected))
    }

    /// What it is about, in words.
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
    /// What is known of it.
    pub fn claims(self) -> &'static [Claim] {
        match self {
            Self::OpenAi => openai::CHAT,
            Self::OpenAiResponses => openai::RESPONSES,
            Self::OpenAiStrict => openai_strict::CLAIMS,
            Self::Anthropic => anthropic::CLAIMS,
            Self::Gemini => gemini::CLAIMS,
            Self::Ollama => ollama::CLAIMS,
            Self::Mcp => mcp::CLAIMS,
            Self::LlamaCpp => llama_cpp::CLAIMS,
        }
    }

    /// The claim about a keyword of a schema.
    pub(crate) fn claim_of(self, place: &Place<'_>, keyword: &str) -> Option<&'static Claim> {
        let subjected = Subjected { place, word: keyword };
        let named =
            |claim: &&Claim| matches!(claim.subject, Subject::Keywords(words) if words.contains(&keyword));
        let claims = || self.claims().iter();
        // A keyword that a claim names under a condition is no other keyword where that does not hold.
        if claims().any(|claim| named(&claim)) {
            return claims().filter(named).find(|claim| claim.holds(&subjected));
        }
        claims().find(|claim| matches!(claim.subject, Subject::OtherKeywords) && claim.holds(&subjected))
    }
}
