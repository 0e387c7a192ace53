//! Findings as people and programs read them.

mod concise;
#[cfg(feature = "cli")]
mod human;
mod json;

pub use concise::render_concise;
#[cfg(feature = "cli")]
pub use human::render_human;
pub use json::{JsonFinding, JsonFix, JsonReport, json_report};
