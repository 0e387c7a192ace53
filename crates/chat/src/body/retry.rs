//! Request variants for servers that reject the first body.
//!
//! In: the request, the form in which it was sent, and the server's error. Out: the next [`BodyFallback`] to apply, if
//! any. Each fallback is applied at most once, because it stays active for later attempts. A fallback that does not
//! change the body is skipped. Therefore the number of attempts is bounded and the same body is never sent twice.
//!
//! A rejection is recognised by a row of the dialect, or by the member that the server's message names. Prompts cannot
//! trigger a fallback: only the server's message is searched, and only for members that were sent.

use serde_json::Value;

use super::change::{BodyFallback, BodyFallbacks};
use super::encode::Body;
use super::model::{BodyForm, ChatRequest};
use super::optional::OptionalMember;
use super::params::TOKEN_LIMITS;
use crate::event::{ServerError, ServerErrorKind};

/// Phrases that reject a value, not a name. A different name would not help, and an unknown name would disable the
/// limit.
const VALUE_REJECTIONS: [&str; 18] = [
    "too large",
    "too small",
    "at least",
    "at most",
    "less than",
    "greater than",
    "larger than",
    "must be positive",
    "must be between",
    "valid range",
    "out of range",
    "exceed",
    "maximum",
    "integer",
    " > ",
    " >= ",
    " < ",
    " <= ",
];

/// Returns the next change to `request`, which was sent in `form` and rejected with `error`. Returns `None` if no known
/// change may help.
pub fn next_body_fallback(
    request: &ChatRequest,
    form: BodyForm,
    error: &ServerError,
) -> Option<BodyFallback> {
    let sent = request.encode_body(form);
    let rejection = Rejection { sent: &sent, message: error.message.to_ascii_lowercase() };
    let changes_body = |fallback: &BodyFallback| request.encode_body(form.after(*fallback, request)) != sent;
    rejection.candidates(form.fallbacks, error).into_iter().find(changes_body)
}

/// A rejected request and the server's message.
struct Rejection<'a> {
    sent: &'a Body,
    /// The message in lower case.
    message: String,
}

impl Rejection<'_> {
    fn has(&self, member: &str) -> bool {
        self.sent.get(member).is_some()
    }

    fn names(&self, member: &str) -> bool {
        self.has(member) && self.message.contains(member)
    }

    /// Returns the fallbacks that may help, the most likely first.
    fn candidates(&self, applied: BodyFallbacks, error: &ServerError) -> Vec<BodyFallback> {
        let status = error.code.unwrap_or_default();
        // The texts of rows are specific enough; older llama.cpp versions send those of chat templates with status 500.
        let is_final = matches!(status, 401 | 403 | 408 | 409 | 429 | 503);
        let mut candidates = if is_final { Vec::new() } else { error.changes.to_vec() };
        if !matches!(status, 400 | 422) && error.kind != ServerErrorKind::Rejected {
            return candidates;
        }
        if error.kind != ServerErrorKind::ContextOverflow {
            candidates.extend(self.token_limit_fallback(applied));
        }
        let named = OptionalMember::all().filter(|member| member.is_named_in(&self.message));
        candidates.extend(named.map(BodyFallback::Without));
        if self.names("tool_choice") {
            let is_object = self.sent.get("tool_choice").is_some_and(Value::is_object);
            candidates.extend(is_object.then_some(BodyFallback::ToolAlone));
            candidates.push(BodyFallback::NoToolChoice);
        }
        candidates
    }

    /// Returns the fallback that renames the token limit, unless the limit was renamed before.
    fn token_limit_fallback(&self, applied: BodyFallbacks) -> Option<BodyFallback> {
        let [old, new] = TOKEN_LIMITS;
        let fallbacks = [(old, BodyFallback::UseMaxCompletionTokens), (new, BodyFallback::UseMaxTokens)];
        if fallbacks.iter().any(|(_, fallback)| applied.has(*fallback)) {
            return None;
        }
        let rejects_value = VALUE_REJECTIONS.iter().any(|phrase| self.message.contains(phrase));
        let names_other = TOKEN_LIMITS.iter().all(|name| self.message.contains(name))
            && ["instead", "unsupported", "not supported"].iter().any(|word| self.message.contains(word));
        let (_, fallback) = fallbacks.into_iter().find(|(name, _)| self.names(name))?;
        (!rejects_value || names_other).then_some(fallback)
    }
}

#[cfg(test)]
mod tests;
