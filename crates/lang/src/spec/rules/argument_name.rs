use crate::diagnostic::{Diagnostic, rule};
use crate::diagnostic::Severity;
use crate::spec::Argument;
use crate::text::{Location, SourceId, Spanned};

rule! {
    /// an argument name that an API rejects
    ///
    /// Anthropic accepts names of 1 to 64 letters, digits, `_`, `.` and `-`, and rejects the request for any other
    /// name. Models often misspell names that contain spaces. An empty name is not a usable key.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "file name" :description "A name." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "file_name" :description "A name." :type string)))
    /// ```
    pub(crate) ARGUMENT_NAME, "DT237", "argument-name", Warning
}

/// Anthropic, messages: property keys match `^[a-zA-Z0-9_.-]{1,64}$` (its error message, 2026-11).
const MAX_NAME: usize = 64;

pub(in crate::spec) fn check(source: SourceId, argument: &Argument, findings: &mut Vec<Diagnostic>) {
    let Spanned { value: name, span } = &argument.name;
    let at = Location { source, span: *span };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() {
        let mut finding = Diagnostic::new(&ARGUMENT_NAME, at, "an argument name cannot be empty");
        finding.severity = Severity::Error;
        findings.push(finding);
    } else if let Some(bad) = name.chars().find(|c| !is_plain(*c)) {
        let message = format!("invalid character `{bad}` in an argument name; Anthropic accepts A-Z a-z 0-9 _ . -");
        let finding = Diagnostic::new(&ARGUMENT_NAME, at, message);
        let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        findings.push(if name.is_ascii() {
            finding.maybe_fixed_by(format!("write \"{plain}\""), *span, super::quoted(&plain))
        } else {
            finding
        });
    } else if name.len() > MAX_NAME {
        let message = format!("argument name has {} characters; Anthropic accepts at most {MAX_NAME}", name.len());
        findings.push(Diagnostic::new(&ARGUMENT_NAME, at, message));
    }
}
