//! The formatter, told what a spec is.

use super::FileKind;
use super::lower::layout_of;
use crate::syntax::print::{self, FormatError, Scope};
use crate::text::{SourceId, Sources};

/// `text`, the whole of `source`, in canonical layout: all of a spec file, the tool forms alone in Emacs Lisp.
///
/// # Errors
/// When it cannot be read without an error, or the result would read as something else.
pub fn format(source: SourceId, text: &str, kind: FileKind) -> Result<String, FormatError> {
    print::format(source, text, Scope { whole_file: kind == FileKind::Specs, layout: layout_of })
}

/// Text that a program wrote, in canonical layout; as it is where that cannot be.
pub fn lay_out(text: String, kind: FileKind) -> String {
    format(Sources::new().id_ahead(0), &text, kind).unwrap_or(text)
}
