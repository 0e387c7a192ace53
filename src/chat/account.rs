//! What a reply is so far, whichever API it comes by: its end, its error, its size, and the verdict.
//!
//! In: what the decoders of the APIs found. Out: one [`Reply`].

use super::arguments::MAX_CALLS;
use super::assemble::{Assembled, TooMuch};
use super::event::{Reply, ReplyStatus, ServerError, ServerErrorKind, Usage};
use super::loose::Loose;

/// Most bytes that the text, the reasoning and the calls of one reply may have together.
pub const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// What the body itself said of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ending {
    #[default]
    Open,
    /// `[DONE]`, a JSON body that is whole, or an event that says that the reply is over.
    Done,
    /// The body was cut, or the server reported the reply as incomplete: the cause.
    Cut(&'static str),
}

/// The most that a choice brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Seen {
    /// There was no choice yet.
    #[default]
    Nothing,
    /// A choice, with a delta as a rule; an item of a response, or its end.
    Choice,
    /// A whole message.
    Message,
}

/// The reply so far, without its text and its calls.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) finish_reason: Option<String>,
    pub(super) ending: Ending,
    pub(super) seen: Seen,
    error: Option<ServerError>,
    usage: Option<Usage>,
    model: Option<String>,
    /// Bytes of text, reasoning and calls.
    size: usize,
    /// A limit was passed: nothing that follows is read.
    is_full: bool,
}

impl Account {
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn has_error(&self) -> bool {
        self.error.is_some()
    }

    pub(super) fn error(&self) -> Option<&ServerError> {
        self.error.as_ref()
    }

    pub(super) fn is_recognised(&self) -> bool {
        self.seen != Seen::Nothing || self.has_error()
    }

    pub(super) fn saw(&mut self, seen: Seen) {
        self.seen = self.seen.max(seen);
    }

    /// The first name counts.
    pub(super) fn set_model(&mut self, model: &Loose<'_>) {
        if self.model.is_none() {
            self.model = model.as_text().map(str::to_owned);
        }
    }

    /// The last counts count; a field without any leaves them.
    pub(super) fn set_usage(&mut self, usage: &Loose<'_>) {
        let count =
            |names: [&str; 2]| names.into_iter().find_map(|name| usage.get(name).and_then(Loose::as_count));
        let prompt_tokens = count(["prompt_tokens", "input_tokens"]);
        let completion_tokens = count(["completion_tokens", "output_tokens"]);
        if prompt_tokens.is_some() || completion_tokens.is_some() {
            self.usage = Some(Usage {
                prompt_tokens: prompt_tokens.unwrap_or(0),
                completion_tokens: completion_tokens.unwrap_or(0),
            });
        }
    }

    /// The first error tells the cause; later ones are its consequences.
    pub(super) fn set_error(&mut self, error: impl FnOnce() -> ServerError) {
        self.error.get_or_insert_with(error);
    }

    /// Bytes that may still come.
    pub(super) fn room(&self) -> usize {
        MAX_REPLY_BYTES.saturating_sub(self.size)
    }

    /// Counts `len` more bytes, or ends the reply.
    pub(super) fn has_room_for(&mut self, len: usize) -> bool {
        if len > self.room() {
            self.end_at(TooMuch::Bytes);
            return false;
        }
        self.size += len;
        true
    }

    /// A limit was passed: the reply ends here.
    pub(super) fn end_at(&mut self, limit: TooMuch) {
        self.is_full = true;
        self.set_error(|| {
            own_error(match limit {
                TooMuch::Calls => too_many_calls(),
                TooMuch::Items => {
                    format!("the reply has more than {MAX_CALLS} items of a kind; what followed was not read")
                }
                TooMuch::Bytes => {
                    let limit = MAX_REPLY_BYTES >> 20;
                    format!("the reply is longer than {limit} MiB; what followed was not read")
                }
            })
        });
    }

    /// Whether the reply said that it is over and well: a call that has no arguments then takes none.
    pub(super) fn is_whole(&self) -> bool {
        let is_cut_short = matches!(self.finish_reason.as_deref(), Some("length" | "content_filter"));
        self.is_over() && !is_cut_short
    }

    fn is_over(&self) -> bool {
        self.finish_reason.is_some() || self.ending == Ending::Done
    }

    /// The verdict; its order is documented at [`super::decoder`].
    pub(super) fn judge(self, assembled: Assembled, lost_frames: usize, broken: Option<String>) -> Reply {
        let is_over = self.is_over();
        let status = if let Some(error) = self.error {
            ReplyStatus::ServerError { error }
        } else if self.finish_reason.as_deref() == Some("error") {
            ReplyStatus::ServerError {
                error: own_error(String::from("the server ended the reply with the finish reason `error`")),
            }
        } else if assembled.is_cut {
            ReplyStatus::ServerError { error: own_error(too_many_calls()) }
        } else if let Ending::Cut(cause) = self.ending {
            ReplyStatus::Incomplete { cause: Some(broken.unwrap_or_else(|| String::from(cause))) }
        } else if broken.is_some() && !is_over {
            ReplyStatus::Incomplete { cause: broken }
        } else if assembled.truncated {
            ReplyStatus::CallTruncated { is_over }
        } else if self.seen == Seen::Nothing {
            ReplyStatus::Empty
        } else if is_over || (!assembled.calls.is_empty() && !assembled.malformed) {
            ReplyStatus::Complete
        } else {
            ReplyStatus::Incomplete { cause: None }
        };
        Reply {
            status,
            calls: assembled.calls,
            lost_frames,
            finish_reason: self.finish_reason,
            usage: self.usage,
            model: self.model,
        }
    }
}

/// An error that this side found.
pub(super) fn own_error(message: String) -> ServerError {
    ServerError { kind: ServerErrorKind::Server, message, code: None, failed_generation: None }
}

fn too_many_calls() -> String {
    format!("the reply makes more than {MAX_CALLS} tool calls; what followed was not read")
}
