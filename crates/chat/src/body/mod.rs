//! A [`ChatRequest`] as the body of an HTTP request.
//!
//! In: a [`ChatRequest`] and the [`BodyForm`] for its server. Out: JSON. Keys are in a fixed order, so that equal
//! requests have equal bodies. Prompt caches and recordings depend on this. The contents of the BIOS and the
//! conversation are not created here, only adapted to the server.
//!
//! | file | |
//! |---|---|
//! | `model`, `change`, `optional` | the request, the form of its body, the fallbacks |
//! | `format`, `completions`, `responses`, `messages` | the format of bodies for each API |
//! | `encode` | the JSON of a body, and an encoder that keeps the JSON of earlier turns |
//! | `returned`, `call_ids` | the parts of earlier replies that go back to their server, and the ids of calls |
//! | `attachments` | the images and audio that a server accepts |
//! | `shape`, `tool_offer`, `schemas`, `params` | messages, tools, their schemas and parameters in the form that a server accepts |
//! | `retry` | the next fallback after a server rejected a body |
//! | `truncation` | detection of prompts that a server truncates silently |

mod attachments;
mod call_ids;
pub(crate) mod change;
mod completions;
mod encode;
#[cfg(test)]
mod fixtures;
mod format;
mod messages;
mod model;
mod optional;
mod params;
mod responses;
mod retry;
mod returned;
mod schemas;
mod shape;
mod tool_offer;
mod truncation;

pub(crate) use attachments::remove_rejected;
pub use change::{BodyFallback, BodyFallbacks};
pub use encode::{Body, BodyEncoder};
pub use model::{BodyForm, ChatRequest};
pub use optional::OptionalMember;
pub use params::OWN_MEMBERS;
pub use retry::next_body_fallback;
pub(crate) use shape::{join, merge, pair_calls};
pub use tool_offer::requires_call;
pub use truncation::truncation_warning;

impl ChatRequest {
    /// Returns the body for a server.
    pub fn encode_body(&self, form: BodyForm) -> Body {
        BodyEncoder::default().encode(self, form)
    }
}
