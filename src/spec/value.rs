//! Tools from and to `lexpr` values, for Rust programs that write a spec with its `sexp!` macro or hold it as such.
//!
//! A value is data: nothing is folded, but a quoted value stands for what it quotes. It has no places: whatever is
//! found wrong stands at byte 0. What a [`Tool`] does not keep (`:function`) does not come back.

use crate::diagnostic::{Diagnostic, Severity};
use crate::syntax::lexpr::{LexprError, Value, from_lexpr, to_lexpr};
use crate::syntax::{Datum, DatumKind};
use crate::text::{SourceFile, Sources};

use super::{Tool, form_of_tool, lower_tool};

/// A value that is no valid tool.
#[derive(Debug, thiserror::Error)]
pub enum ToolValueError {
    /// It holds what no spec can.
    #[error(transparent)]
    NotASpec(#[from] LexprError),
    /// It is a spec with errors.
    #[error("not a valid tool: {}", describe(.0))]
    Invalid(Vec<Diagnostic>),
}

impl TryFrom<&Value> for Tool {
    type Error = ToolValueError;

    /// The tool that a plist, or a list that starts with the name of a tool form, is.
    ///
    /// # Errors
    /// When it has an error; the findings are all there, warnings included.
    fn try_from(value: &Value) -> Result<Self, ToolValueError> {
        let mut datum = from_lexpr(value)?;
        if let DatumKind::List(items) = &mut datum.kind {
            items.iter_mut().for_each(unquote);
        }
        let source = Sources::new().add(SourceFile::new("a value", ""));
        match lower_tool(source, datum) {
            (Some(tool), _) if tool.valid => Ok(tool),
            (_, findings) => Err(ToolValueError::Invalid(findings)),
        }
    }
}

impl From<&Tool> for Value {
    /// The tool as a form: `(deftool :name … :description … :args (…) …)`.
    fn from(tool: &Tool) -> Self {
        to_lexpr(&form_of_tool(tool))
    }
}

fn describe(findings: &[Diagnostic]) -> String {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ")
}

/// `(quote x)` → `x`.
fn unquote(datum: &mut Datum) {
    if let DatumKind::List(items) = &mut datum.kind
        && let [Datum { kind: DatumKind::Symbol(head), .. }, _] = items.as_slice()
        && head == "quote"
        && let Some(inner) = items.pop()
    {
        *datum = inner;
    }
}
