//! What vendors and server programs do: the tables of `dialects/*.eld` and of users, and what a server reports.
//!
//! In: a [`Dialect`] and the answers to the probes. Out: [`Capabilities`], which determine request bodies, timers and
//! the interpretation of replies. A request has one dialect, whose rows come first; those of the dialect that it is
//! `:like` follow, at last those of `openai`. What is known of a model, and errors that are recognised by their text,
//! count on any server: gateways, chat templates and validators pass on the texts of others.
//!
//! The detection of a dialect is not part of this module, because it needs a socket.

mod capabilities;
mod delay;
mod error;
mod feature;
mod known;
mod rows;

pub use self::capabilities::Capabilities;
pub(crate) use self::error::Report;
pub use self::error::Tables;
pub use self::feature::{Feature, Support};
pub use self::known::{Dialect, Dialects};
pub(crate) use self::rows::{CallIds, ImageLimits, ReasoningScope};
pub use self::rows::{DelayRow, Details, ErrorMeaning, ErrorRow, Example, FeatureRow, Probe};

#[cfg(test)]
mod tests;
