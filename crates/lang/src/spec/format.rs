//! The formatter for spec files.

use super::lower::layout_of;
use super::{FileKind, ToolForms};
use crate::syntax::print::{self, FormatError, Scope};
use crate::text::{SourceId, Sources};

/// Formats `text`, the complete text of `source`: all of a spec file, only the tool forms in Emacs Lisp, nothing in Org.
/// The heads in `forms` are those of tool forms, too.
///
/// # Errors
/// Returns an error if the text has syntax errors or the result would have a different tree.
pub fn format(
    source: SourceId,
    text: &str,
    kind: FileKind,
    forms: &ToolForms,
) -> Result<String, FormatError> {
    if kind == FileKind::Org {
        return Ok(text.to_owned());
    }
    let layout = |head: &str| layout_of(head, forms);
    print::format(source, text, Scope { whole_file: kind == FileKind::Specs, layout: &layout })
}

/// Formats generated text; returns it unchanged if it cannot be formatted.
pub fn format_generated(text: String, kind: FileKind) -> String {
    format(Sources::new().id_ahead(0), &text, kind, &ToolForms::default()).unwrap_or(text)
}
