//! Renders findings in text and machine-readable formats.

mod concise;
mod github;
#[cfg(feature = "terminal")]
mod human;
mod json;
mod junit;
mod junit_xml;
mod sarif;

pub use concise::render_concise;
pub use github::render_github;
#[cfg(feature = "terminal")]
pub use human::render_human;
pub use json::{JsonFinding, JsonFix, JsonReport, json_report};
pub use junit::{findings_case, junit_report};
pub use junit_xml::{JunitCase, JunitFailure, JunitSuite, junit_xml};
pub use sarif::{SarifLog, sarif_log};
