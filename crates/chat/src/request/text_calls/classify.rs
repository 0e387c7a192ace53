//! Classifies the candidates in a reply's text.

use std::sync::Arc;

use deftool_lang::schema::{ToolKind, ToolSet};
use serde_json::Value;

use super::coerce::{coerce_arguments, coerce_call};
use super::message_index::MessageIndex;
use crate::Message;
use crate::fallback::{Candidate, TextCall};

/// The kind of a candidate, determined with the known tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CandidateKind {
    /// Calls, possibly of unknown tools.
    Directive,
    /// Text.
    Plain,
    /// Text that quotes an earlier message.
    Quoted,
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
        let is_known = |call: &TextCall| self.tools.called(&call.name).is_some();
        candidate.calls.iter().all(is_known) || !candidate.calls.iter().all(|call| call.bare)
    }

    /// Returns the kind of a candidate.
    pub(super) fn classify(&mut self, candidate: &Candidate) -> CandidateKind {
        if !self.may_be_call(candidate) {
            return CandidateKind::Plain;
        }
        if candidate.calls.iter().any(|call| self.is_copy(call, &candidate.text)) {
            CandidateKind::Quoted
        } else {
            CandidateKind::Directive
        }
    }

    /// Returns whether an earlier message contains the excerpt of a malformed candidate.
    pub(super) fn is_quoted(&mut self, excerpt: &str) -> bool {
        self.index.update(self.conversation);
        self.index.contains_text(excerpt)
    }

    /// Returns whether a name alone marks a call in `text`: the name of a tool. At the end of the text, the name of an
    /// exit tool may be incomplete.
    pub(super) fn is_named(&self, call: &TextCall, text: &str) -> bool {
        self.tools.get(&call.name).is_some() && !(self.is_exit(&call.name) && text.ends_with(&call.name))
    }

    /// Returns whether `name` is an exit tool.
    pub(super) fn is_exit(&self, name: &str) -> bool {
        self.tools.called(name).is_some_and(|(tool, _)| tool.kind == ToolKind::Exit)
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
