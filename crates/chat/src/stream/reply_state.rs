//! The state of a reply, for any API: its end, its error, its size, and finally its status.
//!
//! In: the findings of the API decoders. Out: one [`Reply`].

use super::arguments::MAX_CALLS;
use super::assemble::{Assembled, LimitExceeded};
use super::http_error::classify_stream_error;
use super::loose::Loose;
use crate::dialect::Tables;
use crate::event::{Reply, ReplyStatus, ServerError, ServerErrorKind, Usage};
use crate::finish::{FinishMeaning, shown_finish_reason};

/// Maximum size of the text, the reasoning and the calls of one reply together.
pub(super) const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// Maximum length of an id, in bytes. A longer one is ignored.
const MAX_ID: usize = 256;

/// The end of the reply, as the body reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum BodyEnd {
    #[default]
    Open,
    /// `[DONE]`, a complete JSON body, or an event that ends the reply.
    Done,
    /// The body was cut off, or the server reported the reply as incomplete: the cause.
    Cut(&'static str),
}

/// The most complete content that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum ReplyContent {
    /// No choice.
    #[default]
    Nothing,
    /// A choice, usually with a delta; or an item or the end of a response.
    Choice,
    /// A complete message.
    Message,
}

/// The reply so far, without its text and its calls.
#[derive(Debug, Default)]
pub(super) struct ReplyState {
    pub(super) finish_reason: Option<String>,
    /// See [`Reply::finish_detail`].
    pub(super) finish_detail: Option<Box<str>>,
    pub(super) body_end: BodyEnd,
    pub(super) content: ReplyContent,
    /// The id that the server gave the reply.
    pub(super) id: Option<String>,
    error: Option<ServerError>,
    usage: Option<Usage>,
    model: Option<String>,
    /// Bytes of text, reasoning and calls.
    size: usize,
    /// A limit was exceeded: the rest is not read.
    is_full: bool,
    tables: Tables,
}

impl ReplyState {
    pub(super) fn new(tables: Tables) -> Self {
        Self { tables, ..Self::default() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn has_error(&self) -> bool {
        self.error.is_some()
    }

    pub(super) fn is_recognised(&self) -> bool {
        self.content != ReplyContent::Nothing || self.has_error()
    }

    pub(super) fn note_content(&mut self, content: ReplyContent) {
        self.content = self.content.max(content);
    }

    /// Stores the model's name. The first one is kept.
    pub(super) fn set_model(&mut self, model: &Loose<'_>) {
        if self.model.is_none() {
            self.model = model.as_text().map(str::to_owned);
        }
    }

    /// Stores the reply's id. The first one is kept.
    pub(super) fn set_id(&mut self, id: &Loose<'_>) {
        if self.id.is_none() {
            self.id = id.as_text().filter(|id| id.len() <= MAX_ID).map(str::to_owned);
        }
    }

    /// Stores token counts. The last counts are kept; a field without counts changes nothing.
    pub(super) fn set_usage(&mut self, usage: &Loose<'_>) {
        let count = |names: &[&str]| names.iter().find_map(|name| usage.get(name).and_then(Loose::as_count));
        let detail = |parents: [&str; 2], name: &str| {
            parents.into_iter().find_map(|parent| usage.get(parent)?.get(name).and_then(Loose::as_count))
        };
        let prompt_tokens = count(&["prompt_tokens", "input_tokens"]);
        let completion_tokens = count(&["completion_tokens", "output_tokens"]);
        if prompt_tokens.is_none() && completion_tokens.is_none() {
            return;
        }
        // OpenAI's two APIs; DeepSeek; Moonshot; Anthropic.
        let cached_tokens = detail(["prompt_tokens_details", "input_tokens_details"], "cached_tokens")
            .or_else(|| count(&["prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"]));
        let reasoning_tokens =
            detail(["completion_tokens_details", "output_tokens_details"], "reasoning_tokens")
                .or_else(|| count(&["reasoning_tokens"]));
        self.usage = Some(Usage {
            prompt_tokens: prompt_tokens.unwrap_or(0),
            completion_tokens: completion_tokens.unwrap_or(0),
            cached_tokens,
            reasoning_tokens,
            retries: 0,
        });
    }

    /// Stores complete token counts.
    pub(super) fn set_counts(&mut self, counts: Usage) {
        self.usage = Some(counts);
    }

    /// Stores an error. The first error is kept; later errors are its consequences.
    pub(super) fn set_error(&mut self, error: impl FnOnce() -> ServerError) {
        self.error.get_or_insert_with(error);
    }

    /// Returns the number of bytes left before the size limit.
    pub(super) fn room(&self) -> usize {
        MAX_REPLY_BYTES.saturating_sub(self.size)
    }

    /// Counts `len` more bytes. Above the limit, ends the reply and returns false.
    pub(super) fn reserve(&mut self, len: usize) -> bool {
        if len > self.room() {
            self.stop_at_limit(LimitExceeded::Bytes);
            return false;
        }
        self.size += len;
        true
    }

    /// Stores an error of the server, from its JSON or plain text.
    pub(super) fn set_server_error(&mut self, data: &[u8]) {
        let tables = self.tables;
        self.set_error(|| classify_stream_error(tables, data));
    }

    /// Ends the reply because a limit was exceeded.
    pub(super) fn stop_at_limit(&mut self, limit: LimitExceeded) {
        self.is_full = true;
        self.set_error(|| {
            local_error(match limit {
                LimitExceeded::Calls => too_many_calls(),
                LimitExceeded::Items => {
                    format!("the reply has more than {MAX_CALLS} items of one kind; the rest was not read")
                }
                LimitExceeded::Bytes => {
                    let limit = MAX_REPLY_BYTES >> 20;
                    format!("the reply is longer than {limit} MiB; the rest was not read")
                }
            })
        });
    }

    /// Whether the server reported a regular end. In that case, a call without arguments is complete.
    pub(super) fn is_complete(&self) -> bool {
        use FinishMeaning::{Called, Finished, Paused};
        self.is_over() && matches!(self.finish_meaning(), None | Some(Finished | Called | Paused))
    }

    /// Returns the meaning of the finish reason, if it is known.
    pub(super) fn finish_meaning(&self) -> Option<FinishMeaning> {
        self.meaning_of(self.finish_reason.as_deref()?)
    }

    /// Returns the meaning of a finish reason, if it is known.
    pub(super) fn meaning_of(&self, reason: &str) -> Option<FinishMeaning> {
        self.tables.finish_meaning(reason)
    }

    fn is_over(&self) -> bool {
        self.finish_reason.is_some() || self.body_end == BodyEnd::Done
    }

    /// Converts the state to a reply. [`super::decoder`] documents the order of the checks.
    pub(super) fn into_reply(
        self,
        assembled: Assembled,
        lost_frames: usize,
        broken: Option<String>,
    ) -> Reply {
        let is_over = self.is_over();
        let finish = self.finish_meaning();
        let failed = self.finish_reason.as_ref().filter(|_| finish == Some(FinishMeaning::Failed));
        let status = if let Some(error) = self.error {
            ReplyStatus::ServerError { error }
        } else if let Some(reason) = failed {
            let reason = shown_finish_reason(reason);
            let message = format!("the server ended the reply with the finish reason `{reason}`");
            ReplyStatus::ServerError { error: local_error(message) }
        } else if assembled.is_cut {
            ReplyStatus::ServerError { error: local_error(too_many_calls()) }
        } else if let BodyEnd::Cut(cause) = self.body_end {
            ReplyStatus::Incomplete { cause: Some(broken.unwrap_or_else(|| String::from(cause))) }
        } else if broken.is_some() && !is_over {
            ReplyStatus::Incomplete { cause: broken }
        } else if assembled.truncated {
            ReplyStatus::CallTruncated { is_over }
        } else if self.content == ReplyContent::Nothing {
            ReplyStatus::Empty
        } else if is_over {
            ReplyStatus::Complete
        } else {
            ReplyStatus::Incomplete { cause: None }
        };
        Reply {
            status,
            calls: assembled.calls,
            lost_frames,
            finish_reason: self.finish_reason,
            finish_detail: self.finish_detail,
            usage: self.usage,
            model: self.model,
            opaque: Box::default(),
        }
    }
}

/// An error that this program detected.
pub(super) fn local_error(message: String) -> ServerError {
    ServerError::new(ServerErrorKind::Server, message)
}

fn too_many_calls() -> String {
    format!("the reply contains more than {MAX_CALLS} tool calls; the rest was not read")
}
