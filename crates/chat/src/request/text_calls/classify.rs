//! Classifies the candidates in a reply's text.

use std::sync::Arc;

use deftool_lang::schema::ToolSet;
use serde_json::Value;

use super::coerce::{coerce_arguments, coerce_call};
use super::message_index::MessageIndex;
use crate::fallback::{Candidate, Forms, NotRead, Reads, TextCall};
use crate::{Message, RawArguments};

/// The kind of a candidate, determined with the known tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CandidateKind {
    /// Calls, possibly of unknown tools, if the reply ends with them.
    Directive,
    /// Text.
    Plain,
    /// Text that is a whole call of a known tool.
    NotRead(NotRead),
}

/// Classifies candidates in a reply's text, with the known tools and the conversation.
pub(crate) struct TextClassifier<'a> {
    pub(crate) tools: &'a ToolSet,
    pub(crate) conversation: &'a [Arc<Message>],
    /// The index of the conversation. It is updated when the first candidate is found.
    pub(crate) index: &'a mut MessageIndex,
}

impl TextClassifier<'_> {
    /// Returns whether the candidate may have a kind other than [`CandidateKind::Plain`]. Cheap.
    pub(super) fn may_be_call(&self, candidate: &Candidate) -> bool {
        let is_known = |call: &TextCall| self.is_tool(&call.name);
        candidate.calls.iter().all(is_known) || !candidate.calls.iter().all(|call| call.bare)
    }

    /// Returns the kind of a candidate. `is_alone`: the reply contains no text before it.
    pub(super) fn classify(&mut self, candidate: &Candidate, forms: Forms, is_alone: bool) -> CandidateKind {
        if !self.may_be_call(candidate) {
            return CandidateKind::Plain;
        }
        let is_known = candidate.calls.iter().all(|call| self.is_tool(&call.name));
        match self.reason(candidate, forms, is_alone) {
            Some(reason) if is_known => CandidateKind::NotRead(reason),
            Some(_) => CandidateKind::Plain,
            None => CandidateKind::Directive,
        }
    }

    /// Returns why a candidate is not read.
    fn reason(&mut self, candidate: &Candidate, forms: Forms, is_alone: bool) -> Option<NotRead> {
        let is_exit = candidate.calls.iter().all(|call| self.tools.is_exit(&call.name));
        let by_form = match forms.read(candidate.form) {
            Reads::Always => None,
            Reads::Never(NotRead::Native) if is_exit => None,
            Reads::Never(reason) => Some(reason),
            Reads::Alone => {
                let is_valid = candidate.calls.iter().all(|call| self.is_valid(call));
                (!is_alone || !is_valid).then_some(NotRead::Unmarked)
            }
        };
        by_form.or_else(|| candidate.misplaced()).or_else(|| {
            candidate.calls.iter().any(|call| self.is_copy(call, &candidate.text)).then_some(NotRead::Copy)
        })
    }

    fn is_valid(&self, call: &TextCall) -> bool {
        let tool = self.tools.called(&call.name);
        match (tool, coerce_call(call, self.tools)) {
            (Some((tool, _)), RawArguments::Object { value }) => tool.accept_repaired(value).is_ok(),
            _ => false,
        }
    }

    /// Returns whether an earlier message contains the excerpt of a malformed candidate.
    pub(super) fn is_quoted(&mut self, excerpt: &str) -> bool {
        self.index.update(self.conversation);
        self.index.contains_text(excerpt)
    }

    /// Returns whether `name` is the name of a tool.
    pub(super) fn is_tool(&self, name: &str) -> bool {
        self.tools.called(name).is_some()
    }

    /// Returns whether a message of a user or a tool contains the call of a candidate with this text: as the same call
    /// or as the same text. Messages are compared without schemas, because tools can change between turns.
    fn is_copy(&mut self, call: &TextCall, text: &str) -> bool {
        self.index.update(self.conversation);
        [coerce_arguments(call, &Value::Null), coerce_call(call, self.tools)]
            .iter()
            .any(|arguments| self.index.contains_call(&call.name, arguments))
            || self.index.contains_text(text.get(call.span.0..call.span.1).unwrap_or(text))
    }
}
