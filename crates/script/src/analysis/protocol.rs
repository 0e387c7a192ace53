//! The messages between deftool and `deftool-analyze`.

use serde::{Deserialize, Serialize};

use super::model::{Definitions, ScriptUnit};

/// The first message of an analyzer, which shows that both sides have the same version.
pub(super) const GREETING: &str = concat!("deftool-analyze ", env!("CARGO_PKG_VERSION"));

/// A message to an analyzer. Each has one answer: a `Result` with what the method of the analyzer returns.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// Read these definitions. Comes first, and again when they change.
    Define(Definitions),
    /// Check a unit.
    Check(ScriptUnit),
}
