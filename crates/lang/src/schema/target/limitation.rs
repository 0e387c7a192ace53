//! A limitation of a target that applies to a tool, and the parts that all findings about it share.

use super::model::Target;
use super::support::{Enforcer, Subject, SupportEntry, SupportLevel};
use crate::diagnostic::{Diagnostic, Rule};
use crate::spec::Tool;
use crate::text::{Location, Span};

/// A support entry that applies to something in a tool.
pub(crate) struct ToolLimitation<'t> {
    pub target: Target,
    pub tool: &'t Tool,
    pub support: &'static SupportEntry,
    pub span: Span,
    /// The keyword or the name; empty for a whole schema.
    pub word: String,
}

impl ToolLimitation<'_> {
    /// Returns the subject for use in a message, with the condition under which the entry applies.
    pub(crate) fn subject(&self) -> String {
        let what = match self.support.subject {
            Subject::Schema(what) | Subject::Tool(what) => return what.to_owned(),
            Subject::Keywords(_) | Subject::OtherKeywords => format!("`:{}`", self.word),
            Subject::PropertyNames => format!("the name `{}`", self.word),
            Subject::ToolName | Subject::DescriptionOver(_) | Subject::ToolsOver(_) => {
                format!("`{}`", self.tool.name.value)
            }
        };
        match self.support.when {
            Some(condition) => format!("{what} where {}", condition.text),
            None => what,
        }
    }

    /// Creates a finding with the notes that all limitations share: the effect, the enforcer of the keyword, and the
    /// source.
    pub(crate) fn start(&self, rule: &'static Rule, message: String) -> Diagnostic {
        let location = Location { source: self.tool.source, span: self.span };
        let mut finding = Diagnostic::new(rule, location, message);
        if !self.support.detail.is_empty() {
            finding = finding.note(self.support.detail);
        }
        if let Some(sentence) = self.enforced() {
            finding = finding.note(sentence);
        }
        finding.note(format!("source: {}, {}", self.support.source.at, self.support.source.date))
    }

    /// Returns a sentence that names the enforcer. After a rejection there is nothing to enforce.
    fn enforced(&self) -> Option<&'static str> {
        if self.support.level == SupportLevel::Refused {
            let certain = self.target.omits_refused_tools();
            return certain.then_some("the tool is omitted for this target; the others are compiled");
        }
        match self.support.enforced_by {
            Enforcer::Deftool => Some("deftool still enforces it during argument validation"),
            Enforcer::Provider => Some("the provider still enforces it"),
            Enforcer::Sampler => Some("the sampler still enforces the rest"),
            Enforcer::Unenforced => None,
        }
    }
}
