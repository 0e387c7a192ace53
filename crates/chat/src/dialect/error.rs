//! What an error means, by its status, codes and text.

use std::time::Duration;

use serde_json::Value;

use super::known::{ANY, Dialect, Dialects};
use super::rows::{ErrorMeaning, ErrorRow, Rows};
use crate::body::change::BodyFallback;
use crate::finish::FinishMeaning;

/// Phrases for a member that a server does not know.
const UNKNOWN_MEMBER: [&str; 11] = [
    "is unsupported",
    "unsupported property",
    "extra_forbidden",
    "extra inputs",
    "not permitted",
    "unrecognized",
    "unknown",
    "unexpected",
    "not allowed",
    "unsupported parameter",
    "unsupported member",
];

/// The parts of an error that rows are compared with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    /// The HTTP status, or the code of an error in a stream.
    pub(crate) status: Option<u16>,
    /// The codes, types and statuses in the body, and other identifiers.
    pub(crate) codes: Vec<String>,
    /// The message.
    pub(crate) message: String,
}

/// The tables that explain what a server sends: those of its dialect, and those of the vendor of its model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tables {
    dialect: Dialect,
    vendor: Option<Dialect>,
}

impl Dialect {
    /// Returns the tables for a model.
    pub fn tables(self, model: &str) -> Tables {
        Tables { dialect: self, vendor: Dialects::built_in().of_model(model) }
    }
}

impl Tables {
    /// Returns the meaning of an error, and the changes to the request that may help.
    pub(crate) fn explain(self, report: &Report) -> (Option<ErrorMeaning>, &'static [BodyFallback]) {
        self.explain_without(report, None)
    }

    /// Like [`Tables::explain`], without one row.
    pub(super) fn explain_without(
        self,
        report: &Report,
        removed: Option<&ErrorRow>,
    ) -> (Option<ErrorMeaning>, &'static [BodyFallback]) {
        let text = format!("{} {}", report.message, report.codes.join(" ")).to_ascii_lowercase();
        let is_left = |row: &&'static ErrorRow| !removed.is_some_and(|removed| std::ptr::eq(*row, removed));
        let matching = || self.errors().filter(is_left).filter(|row| row.matches(report, &text));
        let means = matching().find_map(|row| row.means);
        let send = matching().find(|row| !row.send.is_empty()).map_or(&[][..], |row| &row.send);
        (means, send)
    }

    /// Returns the rows of the dialect and of those that it is like, the rows of the vendor, then the rows of all others
    /// that name a text, and those of any server.
    fn errors(self) -> impl Iterator<Item = &'static ErrorRow> {
        let others = Dialects::built_in().iter().flat_map(|dialect| {
            dialect.own_errors().filter(move |row| dialect.name() == ANY || row.names_text())
        });
        let of_vendor = self.vendor.into_iter().flat_map(Dialect::own_errors);
        self.dialect.layers().flat_map(Rows::errors).chain(of_vendor).chain(others)
    }
}

impl Tables {
    /// Returns the meaning of a finish reason, if it is known.
    pub(crate) fn finish_meaning(self, reason: &str) -> Option<FinishMeaning> {
        self.dialect.finish_meaning(reason)
    }

    /// Returns the delay that the body of an error names. `message`: its message.
    pub(crate) fn delay(self, body: &Value, message: &str) -> Option<Duration> {
        self.dialect.delay(body, message)
    }
}

impl ErrorRow {
    /// Whether the row is recognised by a text or by a code with letters, which another server may pass on. The numbers of
    /// two vendors mean different things.
    pub(super) fn names_text(&self) -> bool {
        let is_number = |code: &String| code.bytes().all(|byte| byte.is_ascii_digit());
        !self.code.iter().any(is_number) && (self.has_text() || !self.code.is_empty())
    }

    fn has_text(&self) -> bool {
        !(self.says.is_empty() && self.any.is_empty() && self.unknown_member.is_empty())
    }

    /// `text`: the message and the codes in lower case.
    fn matches(&self, report: &Report, text: &str) -> bool {
        let says = |phrase: &String| text.contains(&phrase.to_ascii_lowercase());
        let is_unknown = || UNKNOWN_MEMBER.iter().any(|phrase| text.contains(phrase));
        let is_code = |code: &String| report.codes.iter().any(|known| known.eq_ignore_ascii_case(code));
        // These statuses say more than any text.
        let is_clear = matches!(report.status, Some(401 | 403 | 429 | 503));
        let is_text_alone = self.status.is_empty() && self.code.is_empty();
        !(is_clear && is_text_alone)
            && (self.status.is_empty() || report.status.is_some_and(|status| self.status.contains(&status)))
            && (self.code.is_empty() || self.code.iter().any(is_code))
            && self.says.iter().all(says)
            && (self.any.is_empty() || self.any.iter().any(says))
            && (self.unknown_member.is_empty() || is_unknown() && self.unknown_member.iter().any(says))
    }
}
