//! The images and audio of a request: which of them are sent, and where they stand.
//!
//! In: a conversation whose messages have attachments. Out: the same conversation with the attachments that the server
//! accepts. The text of a message has a line for each attachment; the line of one that is not sent reports why.
//!
//! The Responses and Messages APIs take images in results. Chat completions take them only in messages of the user, so
//! those of results follow the last result in a message of their own.

use std::borrow::Cow;
use std::sync::Arc;

use deftool_lang::spec::Api;
use deftool_lang::tool::{Attachment, MediaType};
use serde_json::{Value, json};

use super::change::BodyFallback;
use super::model::{BodyForm, ChatRequest};
use super::shape::join;
use crate::dialect::{Feature, ImageLimits};
use crate::message::Message;

/// The text before the images of results in a message of their own.
const OF_RESULTS: &str = "The images and audio of the results above, in their order:";

/// The limits of a server that is not known to have others.
const NO_LIMITS: ImageLimits = ImageLimits {
    size: u64::MAX,
    side: u32::MAX,
    count: usize::MAX,
    many: None,
    many_side: u32::MAX,
    total: u64::MAX,
};

/// Why an attachment is not sent that a server rejected, alone or with others of the request.
const REJECTED: &str = "the server rejected the request with it";

/// The attachments of a request that are not sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Unsent {
    /// The lines of those after the last reply.
    pub(super) lines: Vec<String>,
    /// Those that the server rejected.
    pub(super) rejected: Vec<Attachment>,
}

/// Returns the messages with the attachments that the server accepts, and those that it does not accept.
pub(super) fn sent_attachments<'m>(
    messages: Cow<'m, [Arc<Message>]>,
    request: &ChatRequest,
    form: BodyForm,
) -> (Cow<'m, [Arc<Message>]>, Unsent) {
    if messages.iter().all(|message| message.attachments().is_empty()) {
        return (messages, Unsent::default());
    }
    let mut selection = Selection::new(request, form);
    // The newest images count if there are too many.
    let mut sent: Vec<Arc<Message>> = messages
        .iter()
        .enumerate()
        .rev()
        .map(|(number, message)| selection.select(number, message))
        .collect();
    sent.reverse();
    let is_text = request.writes_calls(form.fallbacks);
    if form.effective_api() == Api::ChatCompletions && !is_text {
        sent = moved_after_results(sent);
    }
    (Cow::Owned(sent), selection.unsent)
}

/// Selects the attachments of a request, the newest first.
struct Selection {
    form: BodyForm,
    limits: ImageLimits,
    takes_audio: bool,
    /// The number of images so far, and their size in base64.
    count: usize,
    total: u64,
    /// Whether one of them is too large for a request with many images.
    has_large: bool,
    /// Whether a message of the model follows.
    is_answered: bool,
    unsent: Unsent,
}

impl Selection {
    fn new(request: &ChatRequest, form: BodyForm) -> Self {
        let model = request.model.to_ascii_lowercase();
        let takes_audio = form.effective_api() == Api::ChatCompletions
            && form.server.supports(Feature::Audio)
            && form.server.audio.unwrap_or_else(|| model.contains("audio"));
        let limits = form.server.dialect.image_limits(&model).unwrap_or(NO_LIMITS);
        Self {
            form,
            limits,
            takes_audio,
            count: 0,
            total: 0,
            has_large: false,
            is_answered: false,
            unsent: Unsent::default(),
        }
    }

    fn select(&mut self, number: usize, message: &Arc<Message>) -> Arc<Message> {
        self.is_answered |= matches!(**message, Message::Assistant { .. });
        if message.attachments().is_empty() {
            return Arc::clone(message);
        }
        let is_result = matches!(**message, Message::Tool { .. });
        let (start, end) = self.form.without_images;
        let is_rejected = (start..end).contains(&number);
        let reasons = message
            .attachments()
            .iter()
            .rev()
            .map(|attachment| self.refusal(attachment, is_result, is_rejected));
        let mut reasons: Vec<Option<String>> = reasons.collect();
        let mut message = Message::clone(message);
        if let Message::User { content, attachments } | Message::Tool { content, attachments, .. } =
            &mut message
        {
            attachments.retain(|attachment| {
                let reason = reasons.pop().flatten();
                if let Some(reason) = &reason {
                    let line = mark_unsent(content, attachment, reason);
                    self.unsent.lines.extend((!self.is_answered).then_some(line));
                }
                reason.is_none()
            });
        }
        Arc::new(message)
    }

    /// Returns why an attachment is not sent, if it is not.
    fn refusal(&mut self, attachment: &Attachment, is_result: bool, is_rejected: bool) -> Option<String> {
        let Self { form, limits, .. } = *self;
        let is_image = attachment.media_type().is_image();
        let takes = if is_image {
            form.server.images != Some(false) && !form.server.lacks(Feature::Images)
        } else {
            self.takes_audio
        };
        if attachment.bytes().is_none() {
            return Some(String::from("it was not stored"));
        }
        if !takes || form.fallbacks.has(BodyFallback::NoImages) {
            return Some(format!("the server takes no {}", if is_image { "images" } else { "audio" }));
        }
        if is_result && form.fallbacks.has(BodyFallback::NoResultImages) {
            return Some(String::from("the server takes no images of results"));
        }
        let size = attachment.size().div_ceil(3) * 4;
        if size > limits.size {
            return Some(format!("larger than the server's limit of {} bytes in base64", limits.size));
        }
        if attachment.longest_side().is_some_and(|side| side > limits.side) {
            return Some(format!("more than {} pixels wide or high, the server's limit", limits.side));
        }
        if is_rejected {
            self.unsent.rejected.push(attachment.clone());
            return Some(String::from(REJECTED));
        }
        let is_large = limits.many.is_some() && attachment.longest_side() > Some(limits.many_side);
        let side = limits.many_side;
        if let Some(count) = limits.many
            && (is_large || self.has_large)
            && self.count >= count
        {
            return Some(format!(
                "the server takes only {count} images if one is more than {side} pixels wide or high"
            ));
        }
        if self.count >= limits.count {
            return Some(format!("the server takes only {} images", limits.count));
        }
        if self.total.saturating_add(size) > limits.total {
            return Some(format!("the server takes only {} bytes of images", limits.total));
        }
        self.count += 1;
        self.total += size;
        self.has_large |= is_large;
        None
    }
}

/// Removes attachments that the server rejected, which later requests must not contain.
pub(crate) fn remove_rejected(message: &mut Arc<Message>, rejected: &[Attachment]) {
    if !message.attachments().iter().any(|attachment| rejected.contains(attachment)) {
        return;
    }
    if let Message::User { content, attachments } | Message::Tool { content, attachments, .. } =
        Arc::make_mut(message)
    {
        attachments.retain(|attachment| {
            let is_rejected = rejected.contains(attachment);
            if is_rejected {
                mark_unsent(content, attachment, REJECTED);
            }
            !is_rejected
        });
    }
}

/// Replaces the line of an attachment. A line that was cut off is added. Returns the new line.
fn mark_unsent(content: &mut String, attachment: &Attachment, reason: &str) -> String {
    let (line, unsent) = (attachment.line(), attachment.unsent_line(reason));
    if content.contains(&line) {
        *content = content.replacen(&line, &unsent, 1);
    } else {
        join(content, &unsent);
    }
    unsent
}

/// Moves the attachments of results to a message of the user after the last result.
fn moved_after_results(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let mut out = Vec::with_capacity(messages.len() + 1);
    let mut moved = Vec::new();
    let follow = |moved: &mut Vec<Attachment>| {
        let attachments = std::mem::take(moved);
        let content = String::from(OF_RESULTS);
        (!attachments.is_empty()).then(|| Arc::new(Message::User { content, attachments }))
    };
    for mut message in messages {
        match &*message {
            Message::Tool { attachments, .. } if attachments.is_empty() => {}
            Message::Tool { .. } => {
                if let Message::Tool { attachments, .. } = Arc::make_mut(&mut message) {
                    moved.append(attachments);
                }
            }
            Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => {
                out.extend(follow(&mut moved));
            }
        }
        out.push(message);
    }
    out.extend(follow(&mut moved));
    out
}

/// Returns the size of the attachments of messages in base64, in bytes.
pub(super) fn attachment_bytes(messages: &[Arc<Message>]) -> usize {
    let attachments = messages.iter().flat_map(|message| message.attachments());
    attachments.map(|attachment| attachment.size().div_ceil(3) as usize * 4).sum()
}

/// Returns the parts of a message of chat completions.
pub(super) fn completions_parts(text: &str, attachments: &[Attachment]) -> Vec<Value> {
    let part = |attachment: &Attachment| {
        Some(match attachment.media_type() {
            MediaType::Wav => input_audio("wav", &attachment.to_base64()?),
            MediaType::Mp3 => input_audio("mp3", &attachment.to_base64()?),
            MediaType::Png | MediaType::Jpeg | MediaType::Gif | MediaType::Webp => {
                json!({ "type": "image_url", "image_url": { "url": attachment.data_url()? } })
            }
        })
    };
    let text = json!({ "type": "text", "text": text });
    std::iter::once(text).chain(attachments.iter().filter_map(part)).collect()
}

fn input_audio(format: &str, data: &str) -> Value {
    json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } })
}

/// Returns the parts of a message, or of a result, of the responses API.
pub(super) fn responses_parts(text: &str, attachments: &[Attachment]) -> Vec<Value> {
    let part = |attachment: &Attachment| {
        let url = attachment.data_url()?;
        Some(json!({ "type": "input_image", "image_url": url, "detail": "auto" }))
    };
    let text = json!({ "type": "input_text", "text": text });
    std::iter::once(text).chain(attachments.iter().filter_map(part)).collect()
}

/// Returns the content blocks of a message, or of a result, of the Messages API. It takes no empty text.
pub(super) fn messages_blocks(text: &str, attachments: &[Attachment]) -> Vec<Value> {
    let block = |attachment: &Attachment| {
        let (media_type, data) = (attachment.media_type().as_str(), attachment.to_base64()?);
        Some(
            json!({ "type": "image", "source": { "type": "base64", "media_type": media_type, "data": data } }),
        )
    };
    let text = (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }));
    text.into_iter().chain(attachments.iter().filter_map(block)).collect()
}

#[cfg(test)]
mod tests;
