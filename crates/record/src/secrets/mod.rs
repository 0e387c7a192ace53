//! Secrets: the API key, passwords and tokens, and their redaction in everything that is shown or recorded.
//!
//! | file | |
//! |---|---|
//! | `forms` | the forms in which a secret may be written |
//! | `redactor` | redacts the API key in the stream of a server |
//! | `mask` | redacts a user's secrets and credentials, with numbered marks |
//! | `redaction` | redacts both |
//! | `reply` | redacts secrets that are split over many chunks of a reply |

mod forms;
mod mask;
mod redaction;
mod redactor;
mod reply;

pub use mask::{Hit, Mask, Secrets, holds_redacted, is_secret_name};
pub use redaction::Redaction;
pub use redactor::{REDACTED, Redactor, secrets_of_url};

pub(crate) use mask::{is_placeholder, is_same_text};
pub(crate) use reply::{Piece, redact_reply};
