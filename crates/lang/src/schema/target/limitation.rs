//! One limitation of a target that applies to a tool, and the finding for it.

use super::Target;
use super::support::{Enforcer, Subject, SupportEntry, SupportLevel};
use crate::diagnostic::{Diagnostic, Rule};
use crate::schema::rules;
use crate::spec::Tool;
use crate::spec::keywords::is_annotation;
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
    /// Builds the finding.
    pub(crate) fn finding(&self) -> Diagnostic {
        match (self.support.subject, self.support.level) {
            (Subject::ToolName | Subject::PropertyNames, _) => rules::name_refused(self),
            (Subject::DescriptionOver(limit), _) => rules::description_too_long(self, limit),
            (Subject::ToolsOver(limit), _) => rules::too_many_tools(self, limit),
            (Subject::Tool(_), SupportLevel::Refused) if self.target.omits_refused_tools() => {
                rules::too_large(self)
            }
            (_, SupportLevel::Refused) if self.target.omits_refused_tools() => rules::refused_by_target(self),
            (_, SupportLevel::Refused) => rules::may_be_refused(self),
            (_, SupportLevel::Dropped | SupportLevel::Ignored)
                if is_annotation(&self.word) || self.word == "nullable" =>
            {
                rules::annotation_lost(self)
            }
            (_, SupportLevel::Dropped) => rules::dropped_by_target(self),
            (_, SupportLevel::Ignored) => rules::ignored_by_target(self),
            (_, SupportLevel::Misread) => rules::misread_by_target(self),
            (_, SupportLevel::Weakened | SupportLevel::Enforced | SupportLevel::Shown) => {
                rules::weakened_by_target(self)
            }
        }
    }

    /// Returns the subject as a message names it, with the condition under which the entry applies.
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

    /// Starts a finding with the notes that all of them have: what happens, who enforces the keyword, and the source.
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
            Enforcer::Deftool => Some("deftool still enforces it when it validates the arguments"),
            Enforcer::Provider => Some("the provider still enforces it"),
            Enforcer::Sampler => Some("the sampler still enforces the rest"),
            Enforcer::Unenforced => None,
        }
    }
}
