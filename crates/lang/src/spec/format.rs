//! The formatter for spec files.

use super::FileKind;
use super::lower::layout_of;
use crate::syntax::print::{self, FormatError, Scope};
use crate::text::{SourceId, Sources};

/// Formats `text`, the complete text of `source`: all of a spec file, only the tool forms in Emacs Lisp, nothing in Org.
///
/// # Errors
/// Returns an error if the text has syntax errors or the result would have a different tree.
pub fn format(source: SourceId, text: &str, kind: FileKind) -> Result<String, FormatError> {
    if kind == FileKind::Org {
        return Ok(text.to_owned());
    }
    print::format(source, text, Scope { whole_file: kind == FileKind::Specs, layout: layout_of })
}

/// Formats generated text; returns it unchanged if it cannot be formatted.
pub fn format_generated(text: String, kind: FileKind) -> String {
    format(Sources::new().id_ahead(0), &text, kind).unwrap_or(text)
}
