//! The entries of the support tables.

use serde::Serialize;

use crate::schema::target::node::SchemaNode;

/// The support of a target for one keyword, or for another property of a tool.
#[derive(Debug)]
pub struct SupportEntry {
    /// The keywords or the property.
    pub subject: Subject,
    /// The condition under which the entry applies; `None`: always.
    pub when: Option<Condition>,
    /// The support level.
    pub level: SupportLevel,
    /// The component that enforces the keyword.
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
    pub(super) fn value(&self) -> Option<&'p serde_json::Value> {
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
    pub(super) const fn new(
        subject: Subject,
        level: SupportLevel,
        enforced_by: Enforcer,
        detail: &'static str,
        source: Source,
    ) -> Self {
        Self { subject, when: None, level, enforced_by, detail, source }
    }

    pub(super) const fn when(mut self, text: &'static str, is_met: fn(&Occurrence<'_>) -> bool) -> Self {
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
