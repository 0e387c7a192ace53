//! Reads the calls in the text of a reply without running a request.

use std::sync::Arc;

use deftool_lang::schema::ToolSet;

use super::classify::TextClassifier;
use super::hold_back::HoldBack;
use super::message_index::MessageIndex;
use crate::Message;
use crate::fallback::{Forms, TextCall};

/// The calls written into the text of one reply, by the rules of a request.
#[derive(Debug)]
pub struct TextReader {
    hold_back: HoldBack,
    tools: ToolSet,
    conversation: Vec<Arc<Message>>,
    index: MessageIndex,
}

impl TextReader {
    /// Returns a reader at the start of a reply. `conversation`: the messages before it, which it may copy.
    pub fn new(forms: Forms, tools: ToolSet, conversation: Vec<Arc<Message>>) -> Self {
        Self { hold_back: HoldBack::new(Some(forms)), tools, conversation, index: MessageIndex::default() }
    }

    /// Adds text that was received at `at_ms`, in any unit.
    pub fn push(&mut self, text: &str, at_ms: u64) {
        let Self { hold_back, tools, conversation, index } = self;
        hold_back.push(text, at_ms, &mut TextClassifier { tools, conversation, index });
    }

    /// Ends the reply. Returns its calls, each with the time when it was complete. `is_finished`: the model finished it.
    pub fn finish(mut self, is_finished: bool) -> Vec<(u64, TextCall)> {
        let Self { hold_back, tools, conversation, index } = &mut self;
        hold_back.finish(is_finished, &mut TextClassifier { tools, conversation, index });
        hold_back.calls().map(|(at_ms, call)| (at_ms, call.clone())).collect()
    }
}
