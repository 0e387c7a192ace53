//! The messages between deftool and `deftool-analyze`.

use serde::{Deserialize, Serialize};

use super::features::Place;
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
    /// Complete at an offset.
    Complete(ScriptUnit, usize),
    /// Describe the name at an offset.
    Describe(ScriptUnit, usize),
    /// Return the signatures at an offset.
    Signatures(ScriptUnit, usize),
    /// Return the uses of the name at an offset.
    Uses(ScriptUnit, usize),
    /// Return the uses of the field that is defined at a place.
    MemberUses(ScriptUnit, Place),
    /// Return the functions, variables and tests.
    Outline(ScriptUnit),
    /// Return the inferred types of variables.
    Inlays(ScriptUnit),
    /// Return the names with their meanings.
    Tokens(ScriptUnit),
}
