//! What a finding is an instance of.
//!
//! A rule is declared in the room that checks it, one file each, with [`rule!`]; its doc comment is what
//! `deftool rule` prints and what the documentation of the rules is made of. Codes are stable, and their first digit is
//! their [`Group`].
//!
//! Below the declaration the file says what the finding says: `pub(in crate::ROOM) fn finding(at: Location, …) ->
//! Diagnostic` takes the facts and gives message, label, notes and fix. A rule that looks at whole things (a tool, a
//! worker, a project) has `check(…)` instead, which gives its findings. Whoever reads or lowers decides whether
//! something is wrong and where; no message stands there: `self.findings.push(rules::stray_colon::finding(at, key))`.

use super::Severity;

/// What a finding is an instance of.
#[derive(Debug)]
pub struct Rule {
    /// Stable code, `DT101`.
    pub code: &'static str,
    /// Kebab-case name.
    pub name: &'static str,
    /// Default severity.
    pub severity: Severity,
    /// The doc comment as it was written, every line with a blank before it.
    pub(crate) doc: &'static str,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// `DT0xx`: reading a text.
    Reading,
    /// `DT1xx`: forms and plists.
    Forms,
    /// `DT2xx`: arguments and schemas.
    Arguments,
    /// `DT3xx`: workers.
    Workers,
    /// `DT4xx`: projects and scripts.
    Projects,
    /// `DT5xx`: what one target makes of a tool.
    Targets,
    /// `DT6xx`: import.
    Import,
}

impl Rule {
    /// What it is about.
    pub fn group(&self) -> Group {
        match self.code.as_bytes().get(2) {
            Some(b'0') => Group::Reading,
            Some(b'1') => Group::Forms,
            Some(b'2') => Group::Arguments,
            Some(b'3') => Group::Workers,
            Some(b'4') => Group::Projects,
            Some(b'5') => Group::Targets,
            Some(_) | None => Group::Import,
        }
    }

    /// What it finds, in one clause.
    pub fn summary(&self) -> &'static str {
        self.doc.lines().next().unwrap_or_default().trim()
    }

    /// What it means, in Markdown: the summary, why it matters, an example that breaks it and the repair.
    pub fn explanation(&self) -> String {
        self.doc.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned() + "\n").collect()
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Rule {}

/// Declares a rule: its doc comment, then `visibility ID, code, name, severity`.
macro_rules! rule {
    ($(#[doc = $doc:literal])+ $visibility:vis $id:ident, $code:literal, $name:literal, $severity:ident) => {
        $(#[doc = $doc])+
        $visibility static $id: $crate::diagnostic::Rule = $crate::diagnostic::Rule {
            code: $code,
            name: $name,
            severity: $crate::diagnostic::Severity::$severity,
            doc: concat!($($doc, "\n"),+),
        };
    };
}

/// The rules of one room: `file: ID` each, in the order of their codes.
macro_rules! rules {
    ($($file:ident: $id:ident,)+) => {
        $(pub(crate) mod $file;)+
        $(pub(crate) use $file::$id;)+

        /// Every rule of this room, in the order of their codes.
        pub static RULES: &[&$crate::diagnostic::Rule] = &[$(&$id),+];
    };
}

pub(crate) use {rule, rules};
