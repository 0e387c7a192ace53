//! The messages of a request: what is sent, and what grows.
//!
//! BIOS, the worker's system message, the request's own, the conversation; under `:bios-budget tail` the line that changes last.
//! Only calls that are all answered ever enter the conversation.

use super::bios::{BiosContext, BiosPart, BiosProvider};
use super::config::RunConfig;
use crate::chat::{Message, MessageToolCall, merge_neighbours, pair_calls};
use crate::spec::{BiosBudget, SystemMessages};

/// One answered call.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) call: MessageToolCall,
    /// The answer as JSON text.
    pub(super) content: String,
}

/// The messages of the next chat request.
pub(super) fn messages_to_send(
    config: &RunConfig,
    system_prompt: Option<&str>,
    conversation: &[Message],
    bios: &dyn BiosProvider,
    mut context: BiosContext<'_>,
) -> Vec<Message> {
    let caller = config.system.as_deref().unwrap_or_default();
    let request = system_prompt.unwrap_or_default();
    let mut messages = Vec::with_capacity(conversation.len() + 4);
    match config.system_messages {
        SystemMessages::Combined => {
            context.part = BiosPart::Whole;
            let whole = bios.bios(&context);
            let others = conversation.iter().filter_map(|message| match message {
                Message::System { content } => Some(content.as_str()),
                Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
            });
            let texts: Vec<&str> = [whole.as_str(), caller, request]
                .into_iter()
                .chain(others)
                .filter(|text| !text.is_empty())
                .collect();
            push_system(&mut messages, texts.join("\n\n"));
            messages.extend(
                conversation.iter().filter(|message| !matches!(message, Message::System { .. })).cloned(),
            );
        }
        SystemMessages::Separate => {
            context.part = match config.bios_budget {
                BiosBudget::Head => BiosPart::Whole,
                BiosBudget::Tail => BiosPart::Head,
            };
            push_system(&mut messages, bios.bios(&context));
            push_system(&mut messages, caller.to_owned());
            push_system(&mut messages, request.to_owned());
            messages.extend_from_slice(conversation);
            if config.bios_budget == BiosBudget::Tail {
                context.part = BiosPart::Tail;
                push_system(&mut messages, bios.bios(&context));
            }
        }
    }
    let merged = merge_neighbours(messages);
    if config.parallel_tool_calls_supported { merged } else { pair_calls(merged) }
}

/// Appends one reply and the answers to its calls.
pub(super) fn append_answered(
    conversation: &mut Vec<Message>,
    text: &str,
    answered: Vec<Answered>,
    parallel_tool_calls_supported: bool,
) {
    let (calls, results): (Vec<_>, Vec<_>) = answered
        .into_iter()
        .map(|Answered { call, content }| (call.clone(), Message::Tool { tool_call_id: call.id, content }))
        .unzip();
    let said = Message::Assistant { content: text.trim().to_owned(), tool_calls: calls };
    let said = std::iter::once(said).chain(results).collect();
    conversation.extend(if parallel_tool_calls_supported { said } else { pair_calls(said) });
}

fn push_system(messages: &mut Vec<Message>, content: String) {
    if !content.is_empty() {
        messages.push(Message::System { content });
    }
}
