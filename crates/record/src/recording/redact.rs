//! The lines of a recording as they are stored: without secrets.

use std::sync::Arc;

use deftool_chat::Message;
use deftool_chat::request::{Approval, RequestOptions};
use deftool_lang::tool::{Attachment, ToolError};
use serde_json::Value;

use super::format::{Line, Stopped};
use super::media::refer_to_media;
use crate::secrets::Mask;
use crate::stored::StoredLine;

/// Members of an outcome with free text.
const FREE_TEXT: [&str; 5] = ["detail", "text", "signals", "reasoning", "raw_text"];

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

/// Redacts the free text of an outcome, in place.
pub(crate) fn redact_outcome(outcome: &mut Value, mask: &Mask) {
    for member in FREE_TEXT {
        if let Some(value) = outcome.get_mut(member) {
            mask.value(value);
        }
    }
}

impl StoredLine for Line {
    fn attachments(&self) -> Vec<&Attachment> {
        match self {
            Self::Session { session, .. } => {
                session.conversation.iter().flat_map(Message::attachments).collect()
            }
            Self::ToolFinished { attachments, .. } => attachments.iter().collect(),
            _ => Vec::new(),
        }
    }

    fn values(&mut self) -> Vec<&mut Value> {
        match self {
            Self::Request { body: value, .. }
            | Self::ToolStarted { arguments: value, .. }
            | Self::ToolFinished { result: Some(value), .. }
            | Self::Finished { outcome: value, .. } => vec![value],
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
                let RequestOptions { model: _, system_prompt, params, tools: _ } = &mut session.options;
                if let Some(text) = system_prompt {
                    mask.in_place(text);
                }
                params.values_mut().for_each(|value| mask.value(value));
            }
            Self::Request { body, .. } => {
                // Before secrets are searched: an image is not text.
                refer_to_media(body);
                mask.value(body);
            }
            Self::Response { location, .. } => location.iter_mut().for_each(|text| mask.in_place(text)),
            Self::End { error, .. } => error.iter_mut().for_each(|text| mask.in_place(text)),
            Self::NoConnection { message, .. } => mask.in_place(message),
            Self::ToolStarted { arguments, .. } => mask.value(arguments),
            Self::ToolFinished { result, error, .. } => {
                if let Some(value) = result {
                    mask.value(value);
                }
                if let Some(ToolError { message, path, details, .. }) = error {
                    let texts = [Some(message), path.as_mut(), details.as_mut()];
                    texts.into_iter().flatten().for_each(|text| mask.in_place(text));
                }
            }
            Self::Approval { answer, .. } => match answer {
                Approval::Allowed => {}
                Approval::Refused { reason } => mask.in_place(reason),
            },
            Self::Log { text, .. } => mask.in_place(text),
            Self::Reloaded { detail, .. } => mask.in_place(detail),
            Self::Stopped(Stopped { failure, .. }) => {
                if let Some(failure) = failure {
                    mask.in_place(&mut failure.detail);
                }
            }
            Self::Finished { outcome, .. } => redact_outcome(outcome, mask),
            Self::Data { .. } | Self::Attachment(_) => {}
        }
    }
}
