//! The lines of a recording as they are stored: without secrets.

use std::sync::Arc;

use deftool_chat::Message;
use deftool_chat::request::{Approval, Event, Outcome, RequestOptions, Signal};
use deftool_lang::tool::Attachment;
use serde_json::Value;

use super::format::{Line, Stopped};
use super::media::refer_to_media;
use crate::secrets::Mask;
use crate::stored::{StoredLine, fit};

/// Redacts all texts of a message, in place. A part that only its server can read is dropped: it may be signed.
pub(crate) fn redact_message(message: &mut Message, mask: &Mask) {
    match message {
        Message::System { content } | Message::User { content, .. } | Message::Tool { content, .. } => {
            mask.in_place(content);
        }
        Message::Assistant { content, tool_calls, received } => {
            if let Some(state) = received.as_mut().map(Arc::make_mut) {
                state.parts.retain(|part| {
                    let mut masked = part.clone();
                    mask.value(&mut masked);
                    masked == *part
                });
                mask.in_place(&mut state.source.url);
                mask.in_place(&mut state.lines);
            }
            mask.in_place(content);
            for call in tool_calls {
                mask.in_place(&mut call.function.arguments);
            }
        }
    }
}

/// Redacts the free text of an event, and limits the nesting of its values, in place.
pub(crate) fn redact_event(event: &mut Event, mask: &Mask) {
    match event {
        Event::Text { text } | Event::Reasoning { text } | Event::Resumed { superseded: text } => {
            mask.in_place(text);
        }
        Event::ToolCall { arguments, .. } => redact_value(Arc::make_mut(arguments), mask),
        Event::ArgumentsRepaired { path, .. } => mask.in_place(path),
        Event::Approval { arguments, answer, .. } => {
            if let Some(arguments) = arguments {
                redact_value(Arc::make_mut(arguments), mask);
            }
            if let Some(Approval::Refused { reason }) = answer {
                mask.in_place(reason);
            }
        }
        Event::ToolFinished { result, error, .. } => {
            result.iter_mut().chain(error).for_each(|value| redact_value(value, mask));
        }
        Event::Signal(signal) => redact_signal(signal, mask),
        Event::Retry { detail, .. } | Event::Reloaded { detail, .. } => mask.in_place(detail),
        Event::Warning { message } => mask.in_place(message),
        Event::Finished(outcome) => redact_outcome(Arc::make_mut(outcome), mask),
        Event::Submitted { job_name, .. } => mask.in_place(job_name),
        // Numbers, ids and names.
        _ => {}
    }
}

/// Redacts the free text of an outcome, in place.
pub(crate) fn redact_outcome(outcome: &mut Outcome, mask: &Mask) {
    let Outcome { detail, text, signals, reasoning, raw_text, .. } = outcome;
    let texts = [detail, reasoning, raw_text].into_iter().flatten();
    texts.chain([text]).for_each(|text| mask.in_place(text));
    for signal in signals {
        redact_signal(signal, mask);
    }
}

fn redact_signal(signal: &mut Signal, mask: &Mask) {
    redact_value(&mut signal.arguments, mask);
    signal.arguments_error.iter_mut().for_each(|text| mask.in_place(text));
}

fn redact_value(value: &mut Value, mask: &Mask) {
    mask.value(value);
    fit(value);
}

impl StoredLine for Line {
    fn attachments(&self) -> Vec<&Attachment> {
        match self {
            Self::Session { session, .. } => {
                session.conversation.iter().flat_map(Message::attachments).collect()
            }
            Self::Event { event: Event::ToolFinished { attachments, .. }, .. } => {
                attachments.iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The chunks of replies are redacted by [`redact_reply`](crate::secrets::redact_reply).
    fn redact(&mut self, mask: &Mask) {
        match self {
            Self::Session { session, .. } => {
                for text in [&mut session.job_name, &mut session.url] {
                    mask.in_place(text);
                }
                session.conversation.iter_mut().for_each(|message| redact_message(message, mask));
                let RequestOptions { model: _, system_prompt, params, tools: _, one_reply: _ } =
                    &mut session.options;
                if let Some(text) = system_prompt {
                    mask.in_place(text);
                }
                params.values_mut().for_each(|value| mask.value(value));
            }
            Self::Request { body, .. } => {
                // Before secrets are searched: an image is not text.
                refer_to_media(body);
                redact_value(body, mask);
            }
            Self::Response { location, .. } => location.iter_mut().for_each(|text| mask.in_place(text)),
            Self::End { error, .. } => error.iter_mut().for_each(|text| mask.in_place(text)),
            Self::NoConnection { message, .. } => mask.in_place(message),
            Self::Event { event, .. } => redact_event(event, mask),
            Self::Log { text, .. } => mask.in_place(text),
            Self::Stopped(Stopped { failure, .. }) => {
                if let Some(failure) = failure {
                    mask.in_place(&mut failure.detail);
                }
            }
            Self::Data { .. } | Self::Attachment(_) => {}
        }
    }
}
