//! Rules: the kinds of findings.
//!
//! A rule is declared with [`rule!`] in the layer that checks it, one file per rule. `deftool rule` prints its doc
//! comment, and the rule documentation is generated from it. Codes are stable. The first digit of a code is its
//! [`Group`].
//!
//! Below the declaration, the file builds the finding: `pub(in crate::LAYER) fn finding(at: Location, …) -> Diagnostic`
//! takes the details and sets message, label, notes and fix. A rule for a whole tool, worker or project has `check(…)`
//! instead, which returns findings. The reader and the lowering code detect the problem and its location, but contain
//! no messages: `self.findings.push(rules::stray_colon::finding(at, key))`. Where a rule is about any key, they name the
//! key and what it takes.

use super::Severity;

/// A kind of finding.
#[derive(Debug)]
pub struct Rule {
    /// Stable code, `DT101`.
    pub code: &'static str,
    /// Kebab-case name.
    pub name: &'static str,
    /// Default severity.
    pub severity: Severity,
    /// The doc comment as written; every line has a leading space.
    pub doc: &'static str,
}

/// The subject of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// `DT0xx`: syntax.
    Reading,
    /// `DT1xx`: forms and plists.
    Forms,
    /// `DT2xx`: arguments and schemas.
    Arguments,
    /// `DT3xx`: workers.
    Workers,
    /// `DT4xx`: projects and scripts.
    Projects,
    /// `DT5xx`: support of a tool by a target.
    Targets,
    /// `DT6xx`: import.
    Import,
}

impl Rule {
    /// Returns the group.
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

    /// Returns the summary, one clause.
    pub fn summary(&self) -> &'static str {
        self.doc.lines().next().unwrap_or_default().trim()
    }

    /// Returns the explanation in Markdown: the summary, the reason, a failing example and a repaired one.
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
#[macro_export]
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

/// Declares the rules of one layer: `file: ID` each, in the order of their codes.
#[macro_export]
macro_rules! rules {
    ($($file:ident: $id:ident,)+) => {
        $(pub(crate) mod $file;)+

        /// Every rule of this layer, in the order of their codes.
        pub static RULES: &[&$crate::diagnostic::Rule] = &[$(&$file::$id),+];
    };
}
