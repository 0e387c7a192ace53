//! Conversion of tools from and to `lexpr` values, for Rust programs that write specs with the `sexp!` macro.
//!
//! A value is data: nothing is folded, except that a quoted value is replaced by its content. Values have no spans, so
//! all findings point to byte 0. Keys that [`Tool`] does not store (`:function`) are lost.

use crate::diagnostic::{Diagnostic, Severity};
use crate::syntax::lexpr::{LexprError, Value, from_lexpr, to_lexpr};
use crate::syntax::{Datum, DatumKind};
use crate::text::{SourceFile, Sources};

use super::rules::invalid_name::EVERY_API;
use super::{Tool, form_of_tool, lower_tool};

/// The error for a value that is not a valid tool.
#[derive(Debug, thiserror::Error)]
pub enum ToolValueError {
    /// The value contains data without a spec counterpart.
    #[error(transparent)]
    NotASpec(#[from] LexprError),
    /// The value is a spec with errors.
    #[error("not a valid tool: {}", describe(.0))]
    Invalid(Vec<Diagnostic>),
}

impl TryFrom<&Value> for Tool {
    type Error = ToolValueError;

    /// Converts a plist, or a list that starts with the name of a tool form.
    ///
    /// # Errors
    /// Returns an error if the spec has an error, with all findings including warnings.
    fn try_from(value: &Value) -> Result<Self, ToolValueError> {
        let mut datum = from_lexpr(value)?;
        if let DatumKind::List(items) = &mut datum.kind {
            items.iter_mut().for_each(unquote);
        }
        let source = Sources::new().add(SourceFile::new("a value", ""));
        match lower_tool(source, datum, &EVERY_API) {
            (Some(tool), _) if tool.valid => Ok(tool),
            (_, findings) => Err(ToolValueError::Invalid(findings)),
        }
    }
}

impl From<&Tool> for Value {
    /// Converts the tool to a form: `(deftool :name … :description … :args (…) …)`.
    fn from(tool: &Tool) -> Self {
        to_lexpr(&form_of_tool(tool))
    }
}

fn describe(findings: &[Diagnostic]) -> String {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ")
}

/// Replaces `(quote x)` by `x`.
fn unquote(datum: &mut Datum) {
    if let DatumKind::List(items) = &mut datum.kind
        && let [Datum { kind: DatumKind::Symbol(head), .. }, _] = items.as_slice()
        && head == "quote"
        && let Some(inner) = items.pop()
    {
        *datum = inner;
    }
}
