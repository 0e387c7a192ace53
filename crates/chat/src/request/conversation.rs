//! The messages of a chat request, and the growing conversation.
//!
//! A chat request contains the BIOS, the worker's system message, the request's system message and the conversation.
//! The variable BIOS lines are in the last result or user message by default, which keeps them in later requests. They
//! are not part of the text of the conversation. Only answered calls are added to it.

use std::sync::Arc;

use deftool_lang::spec::{BiosBudget, SystemMessages};
use deftool_lang::tool::Attachment;

use super::bios::{BiosContext, BiosPart, BiosProvider};
use super::config::RunConfig;
use crate::body::{join, merge, pair_calls};
use crate::{Message, MessageToolCall, Received};

/// One answered call.
#[derive(Debug)]
pub(super) struct AnsweredCall {
    pub(super) call: MessageToolCall,
    /// The answer for the model.
    pub(super) content: String,
    /// The images and audio of the answer.
    pub(super) attachments: Vec<Attachment>,
}

/// The messages of a conversation as they are sent: with the variable lines of their requests, and adjacent ones of a
/// role merged. What was sent once stays as it is, so that the prompt cache of the server remains valid.
#[derive(Debug, Clone, Default)]
pub(super) struct SentMessages {
    messages: Vec<Arc<Message>>,
    /// Number of messages of the conversation that are included.
    included: usize,
}

impl SentMessages {
    /// Adds the new messages of the conversation, which only grows.
    fn update(&mut self, conversation: &[Arc<Message>], keeps_system: bool) -> &[Arc<Message>] {
        for message in conversation.iter().skip(self.included) {
            if let Message::Assistant { received: Some(received), .. } = &**message {
                insert_lines(&mut self.messages, received.lines.clone());
            }
            let is_sent = keeps_system || !matches!(**message, Message::System { .. });
            if is_sent && !self.messages.last_mut().is_some_and(|last| merge(last, message)) {
                self.messages.push(Arc::clone(message));
            }
        }
        self.included = conversation.len();
        &self.messages
    }
}

/// Returns the messages of the next chat request, and the variable lines that they contain in the last result or user
/// message. `is_paused`: the conversation ends with a reply that the server paused. It stays the last message, and the
/// message before it has lines.
pub(super) fn messages_to_send(
    config: &RunConfig,
    system_prompt: Option<&str>,
    (conversation, sent): (&[Arc<Message>], &mut SentMessages),
    bios: &dyn BiosProvider,
    mut context: BiosContext<'_>,
    is_paused: bool,
) -> (Vec<Arc<Message>>, String) {
    let caller = config.system.as_deref().unwrap_or_default();
    let request = system_prompt.unwrap_or_default();
    let (first, last) = match config.bios_budget {
        BiosBudget::Head => (BiosPart::Whole, None),
        BiosBudget::Result | BiosBudget::Tail => {
            (BiosPart::Head, Some(BiosPart::Tail).filter(|_| !is_paused))
        }
    };
    context.part = first;
    let head = bios.bios(&context);
    let tail = last.map(|part| {
        context.part = part;
        bios.bios(&context)
    });
    let tail = tail.unwrap_or_default();
    let (tail, lines) = match config.bios_budget {
        BiosBudget::Result => (String::new(), tail),
        BiosBudget::Head | BiosBudget::Tail => (tail, String::new()),
    };
    let keeps_system = config.system_messages == SystemMessages::Separate;
    let sent = sent.update(conversation, keeps_system);
    let mut messages = Vec::with_capacity(sent.len() + 4);
    if keeps_system {
        push_system(&mut messages, head);
        push_system(&mut messages, caller.to_owned());
        push_system(&mut messages, request.to_owned());
    } else {
        let others = conversation.iter().filter_map(|message| match &**message {
            Message::System { content } => Some(content.as_str()),
            Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
        });
        let texts = [head.as_str(), caller, request].into_iter().chain(others);
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        push_system(&mut messages, texts.join("\n\n"));
    }
    messages.extend_from_slice(sent);
    push_system(&mut messages, tail);
    insert_lines(&mut messages, lines.clone());
    (if config.parallel_tool_calls_supported { messages } else { pair_calls(messages) }, lines)
}

/// Adds lines at the end of the last result, or at the start of the last user message if no result follows it. A
/// conversation without both gets a system message.
fn insert_lines(messages: &mut Vec<Arc<Message>>, mut lines: String) {
    if lines.is_empty() {
        return;
    }
    let is_input =
        |message: &&mut Arc<Message>| matches!(***message, Message::User { .. } | Message::Tool { .. });
    match messages.iter_mut().rev().find(is_input).map(Arc::make_mut) {
        Some(Message::Tool { content, .. }) => join(content, &lines),
        Some(Message::User { content, .. }) => {
            join(&mut lines, content);
            *content = lines;
        }
        Some(Message::System { .. } | Message::Assistant { .. }) | None => push_system(messages, lines),
    }
}

/// Appends one reply and the answers to its calls.
pub(super) fn append_answered(
    conversation: &mut Vec<Arc<Message>>,
    text: &str,
    answered: Vec<AnsweredCall>,
    received: Option<Arc<Received>>,
    parallel_tool_calls_supported: bool,
) {
    let (calls, results): (Vec<_>, Vec<_>) = answered
        .into_iter()
        .map(|AnsweredCall { call, content, attachments }| {
            let tool_call_id = call.id.clone();
            (call, Message::Tool { tool_call_id, content, attachments })
        })
        .unzip();
    let reply = Message::Assistant { content: reply_text(text).to_owned(), tool_calls: calls, received };
    let messages = std::iter::once(reply).chain(results).map(Arc::new).collect();
    conversation.extend(if parallel_tool_calls_supported { messages } else { pair_calls(messages) });
}

/// Returns the text of a reply for the conversation: as it came, so that the server finds it in its cache. Blanks alone are
/// no text.
pub(super) fn reply_text(text: &str) -> &str {
    if text.trim().is_empty() { "" } else { text }
}

fn push_system(messages: &mut Vec<Arc<Message>>, content: String) {
    if !content.is_empty() {
        messages.push(Arc::new(Message::System { content }));
    }
}
