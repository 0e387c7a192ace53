//! One thing that a target does to a tool, before it is a finding.

use super::Target;
use super::claims::{Claim, Enforcer, Fate, Subject};
use crate::diagnostic::{Diagnostic, Rule};
use crate::schema::rules;
use crate::spec::Tool;
use crate::spec::keywords::is_annotation;
use crate::text::{Location, Span};

/// A claim that holds for something in a tool.
pub(crate) struct Loss<'t> {
    pub target: Target,
    pub tool: &'t Tool,
    pub claim: &'static Claim,
    pub span: Span,
    /// The keyword or the name; empty for a schema as a whole.
    pub word: String,
}

impl Loss<'_> {
    /// The finding of it.
    pub(crate) fn finding(&self) -> Diagnostic {
        match (self.claim.subject, self.claim.fate) {
            (Subject::ToolName | Subject::PropertyNames, _) => rules::name_refused(self),
            (Subject::DescriptionOver(limit), _) => rules::description_too_long(self, limit),
            (Subject::ToolsOver(limit), _) => rules::too_many_tools(self, limit),
            (Subject::Tool(_), Fate::Refused) if self.target.quarantines() => rules::too_large(self),
            (_, Fate::Refused) if self.target.quarantines() => rules::refused_by_target(self),
            (_, Fate::Refused) => rules::may_be_refused(self),
            (_, Fate::Dropped | Fate::Ignored) if is_annotation(&self.word) || self.word == "nullable" => {
                rules::annotation_lost(self)
            }
            (_, Fate::Dropped) => rules::dropped_by_target(self),
            (_, Fate::Ignored) => rules::ignored_by_target(self),
            (_, Fate::Misread) => rules::misread_by_target(self),
            (_, Fate::Weakened | Fate::Enforced | Fate::Shown) => rules::weakened_by_target(self),
        }
    }

    /// What it is about, as a message names it, with the condition under which the claim holds.
    pub(crate) fn subject(&self) -> String {
        let what = match self.claim.subject {
            Subject::Schema(what) | Subject::Tool(what) => return what.to_owned(),
            Subject::Keywords(_) | Subject::OtherKeywords => format!("`:{}`", self.word),
            Subject::PropertyNames => format!("the name `{}`", self.word),
            Subject::ToolName | Subject::DescriptionOver(_) | Subject::ToolsOver(_) => {
                format!("`{}`", self.tool.name.value)
            }
        };
        match self.claim.when {
            Some(condition) => format!("{what} where {}", condition.text),
            None => what,
        }
    }

    /// A finding with what every one says: what happens, who enforces it, where that was read.
    pub(crate) fn start(&self, rule: &'static Rule, message: String) -> Diagnostic {
        let location = Location { source: self.tool.source, span: self.span };
        let mut finding = Diagnostic::new(rule, location, message);
        if !self.claim.says.is_empty() {
            finding = finding.note(self.claim.says);
        }
        if let Some(sentence) = self.enforced() {
            finding = finding.note(sentence);
        }
        finding.note(format!("source: {}, {}", self.claim.source.at, self.claim.source.date))
    }

    /// Who enforces it, as a sentence; a refusal leaves nothing to enforce.
    fn enforced(&self) -> Option<&'static str> {
        if self.claim.fate == Fate::Refused {
            let certain = self.target.quarantines();
            return certain.then_some("the tool is left out for this target, and the others are compiled");
        }
        match self.claim.enforced_by {
            Enforcer::Deftool => Some("deftool's own validation of the arguments still keeps to it"),
            Enforcer::Provider => Some("the provider still keeps to it"),
            Enforcer::Sampler => Some("the sampler still keeps to the rest"),
            Enforcer::Nobody => None,
        }
    }
}
