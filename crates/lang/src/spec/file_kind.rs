//! The kinds of files with specs, and the code in them.

use std::borrow::Cow;
use std::path::Path;

use super::org;
use crate::diagnostic::Fix;

/// The kind of a file with specs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Specs only: any other form is an error.
    Specs,
    /// Emacs Lisp with specs at any depth: other forms are searched for specs and otherwise ignored.
    EmacsLisp,
    /// Org: the source blocks in Emacs Lisp are read, each as a part of one file of Emacs Lisp.
    Org,
}

impl FileKind {
    /// Returns the kind for a file name, by its extension.
    pub fn of_name(name: &str) -> Self {
        match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some("el") => Self::EmacsLisp,
            Some("org") => Self::Org,
            Some(_) | None => Self::Specs,
        }
    }

    /// Whether specs stand among other code.
    pub fn is_code(self) -> bool {
        self != Self::Specs
    }

    /// Returns the text to parse: every byte of it is at its position in `text`, and what is not code is blank.
    pub fn code_of(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Specs | Self::EmacsLisp => Cow::Borrowed(text),
            Self::Org => Cow::Owned(org::emacs_lisp(text)),
        }
    }

    /// Whether the fix changes only code. `code` is the code of `text`.
    pub fn contains_fix(self, text: &str, code: &str, fix: &Fix) -> bool {
        let is_code = |(byte, of_code): (u8, u8)| byte == of_code || of_code == org::REMOVED;
        self != Self::Org
            || fix.edits.iter().all(|edit| {
                let mut bytes = edit.span.of(text).bytes().zip(edit.span.of(code).bytes());
                bytes.all(is_code)
            })
    }
}
