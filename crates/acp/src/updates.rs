//! The session updates of events and of stored messages.

use std::collections::HashSet;

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, ContentChunk, EmbeddedResourceResource, ImageContent, Notice, NoticeSeverity,
    SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use deftool_chat::Message;
use deftool_chat::request::{Approval, Event};
use deftool_lang::text::one_line;
use deftool_lang::tool::{Attachment, attach, call_title};
use serde_json::Value;

use crate::host::CallKind;
use crate::progress::Progress;

/// Maximum length of a title, in characters.
pub(crate) const MAX_TITLE: usize = 200;

/// Returns what a tool does.
type KindOf = dyn Fn(&str) -> CallKind + Send + Sync;

/// Creates the updates of the events of one request.
pub(crate) struct Updates<'a> {
    request_id: String,
    kind_of: &'a KindOf,
    /// The calls that run.
    running: HashSet<String>,
    /// Number of calls of exit tools. These have no ID.
    signals: usize,
    /// The calls that the user refused.
    refused: HashSet<String>,
}

impl<'a> Updates<'a> {
    pub(crate) fn new(request_id: &str, kind_of: &'a KindOf) -> Self {
        let (request_id, refused, running) = (request_id.to_owned(), HashSet::new(), HashSet::new());
        Self { request_id, kind_of, running, signals: 0, refused }
    }

    /// Returns the update of the progress of a call, while it runs.
    pub(crate) fn progress(&self, progress: &Progress) -> Option<SessionUpdate> {
        let Progress { call_id, fraction, text } = progress;
        let percent = fraction.map_or_else(String::new, |fraction| format!("{:.0} % ", fraction * 100.0));
        let content = vec![ToolCallContent::Content(Content::new(format!("{percent}{text}")))];
        let fields = ToolCallUpdateFields::new().content(content);
        self.running
            .contains(call_id)
            .then(|| SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call_id.clone(), fields)))
    }

    /// Returns the update of an event, if it has any.
    pub(crate) fn of(&mut self, event: &Event) -> Option<SessionUpdate> {
        Some(match event {
            Event::Text { text } => SessionUpdate::AgentMessageChunk(chunk(text)),
            Event::Reasoning { text } => SessionUpdate::AgentThoughtChunk(chunk(text)),
            Event::ToolCall { id, name, arguments } => {
                SessionUpdate::ToolCall(call(id.clone(), name, arguments, self.kind_of))
            }
            Event::ToolStarted { id, .. } => {
                self.running.insert(id.clone());
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.clone(), fields))
            }
            Event::ToolFinished { id, ok, result, attachments, error, .. } => {
                self.running.remove(id);
                let is_completed = *ok && !self.refused.contains(id);
                finished(id.clone(), is_completed, result.as_ref(), error.as_ref(), attachments)
            }
            // An exit tool has no result.
            Event::Signal(signal) => {
                self.signals += 1;
                let id = format!("{}-signal-{}", self.request_id, self.signals);
                let call = call(id, &signal.tool_name, &signal.arguments, self.kind_of);
                SessionUpdate::ToolCall(match &signal.arguments_error {
                    None => call.status(ToolCallStatus::Completed),
                    Some(error) => {
                        let content = vec![ToolCallContent::Content(Content::new(error.as_str()))];
                        call.status(ToolCallStatus::Failed).content(content)
                    }
                })
            }
            Event::Warning { message } => notice(NoticeSeverity::Warning, message),
            Event::Retry { detail, .. } => notice(NoticeSeverity::Warning, &format!("retrying: {detail}")),
            Event::Resumed { .. } => notice(NoticeSeverity::Info, "resumed after the end of its process"),
            Event::Reloaded { detail, .. } => notice(NoticeSeverity::Info, &format!("reloaded: {detail}")),
            Event::Approval { id, answer: Some(Approval::Refused { .. }), .. } => {
                self.refused.insert(id.clone());
                return None;
            }
            // Others have no update. A call shows its repaired arguments.
            _ => return None,
        })
    }
}

/// Returns the updates that repeat a stored conversation.
pub(crate) fn replay(messages: &[Message], kind_of: &KindOf) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    for message in messages {
        match message {
            Message::System { .. } => {}
            Message::User { content, attachments } => {
                updates.push(SessionUpdate::UserMessageChunk(chunk(content)));
                let images = images(attachments).map(ContentChunk::new);
                updates.extend(images.map(SessionUpdate::UserMessageChunk));
            }
            Message::Assistant { content, tool_calls, .. } => {
                if !content.is_empty() {
                    updates.push(SessionUpdate::AgentMessageChunk(chunk(content)));
                }
                for tool_call in tool_calls {
                    let arguments = tool_call.function.arguments.as_str();
                    let arguments =
                        serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
                    let call = call(tool_call.id.clone(), &tool_call.function.name, &arguments, kind_of);
                    updates.push(SessionUpdate::ToolCall(call));
                }
            }
            Message::Tool { tool_call_id, content, attachments } => {
                let result: Value =
                    serde_json::from_str(content).unwrap_or_else(|_| Value::from(content.as_str()));
                let error = result.as_object().and_then(|object| object.get("error"));
                let id = tool_call_id.clone();
                updates.push(finished(id, error.is_none(), Some(&result), error, attachments));
            }
        }
    }
    updates
}

/// Returns the message of a prompt. Its text has a line for each image.
///
/// # Errors
/// If the prompt contains a block that is neither text nor an image. The error is a message for the user.
pub(crate) fn prompt_message(prompt: Vec<ContentBlock>) -> Result<Message, String> {
    let mut attachments = Vec::new();
    let texts = prompt.into_iter().map(|block| match block {
        ContentBlock::Text(text) => Ok(text.text),
        ContentBlock::Image(image) => {
            let image = Attachment::from_base64(&image.data, &image.mime_type)
                .map_err(|refused| format!("unsupported image in the prompt: {}", refused.reason()))?;
            Ok(format!("\n{}\n", attach(&mut attachments, Ok(image))))
        }
        ContentBlock::ResourceLink(link) => Ok(format!("[{}]({})", link.name, link.uri)),
        ContentBlock::Resource(embedded) => match embedded.resource {
            EmbeddedResourceResource::TextResourceContents(resource) => {
                Ok(format!("\n{}:\n\n```\n{}\n```\n", resource.uri, resource.text.trim_end_matches('\n')))
            }
            _ => Err(String::from("unsupported resource in the prompt: only text can be sent")),
        },
        _ => Err(String::from(
            "unsupported content in the prompt: only text, images and resources can be sent",
        )),
    });
    let content = texts.collect::<Result<String, String>>()?;
    Ok(Message::User { content, attachments })
}

/// Returns a tool call that waits.
fn call(id: String, name: &str, arguments: &Value, kind_of: &KindOf) -> ToolCall {
    ToolCall::new(id, call_title(name, arguments, MAX_TITLE))
        .name(name.to_owned())
        .kind(kind_of(name).into())
        .raw_input(arguments.clone())
}

/// Returns the update of a call that was answered. Images follow the text.
fn finished(
    id: String,
    is_completed: bool,
    result: Option<&Value>,
    error: Option<&Value>,
    attachments: &[Attachment],
) -> SessionUpdate {
    let output = error.or(result).cloned().unwrap_or_default();
    let message = error.and_then(|error| error.get("message"));
    let mut content = vec![ToolCallContent::Content(Content::new(text_of(message.unwrap_or(&output))))];
    content.extend(images(attachments).map(|image| ToolCallContent::Content(Content::new(image))));
    let status = if is_completed { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    let fields = ToolCallUpdateFields::new().status(status).content(content).raw_output(output);
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))
}

/// Returns the images among attachments.
fn images(attachments: &[Attachment]) -> impl Iterator<Item = ContentBlock> {
    let images = attachments.iter().filter(|attachment| attachment.media_type().is_image());
    images.filter_map(|image| {
        let image = ImageContent::new(image.to_base64()?, image.media_type().as_str());
        Some(ContentBlock::Image(image))
    })
}

fn chunk(text: &str) -> ContentChunk {
    ContentChunk::new(ContentBlock::from(text))
}

/// Returns a notice about something that does not work.
pub(crate) fn warning(message: &str) -> SessionUpdate {
    notice(NoticeSeverity::Warning, message)
}

fn notice(severity: NoticeSeverity, title: &str) -> SessionUpdate {
    SessionUpdate::Notice(Notice::new(severity, one_line(title.to_owned())))
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
