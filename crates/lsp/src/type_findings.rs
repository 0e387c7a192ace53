//! The type findings of open scripts. They are found in the background, and so may be older than the text.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::text::Span;

/// The type findings of open scripts.
#[derive(Default)]
pub(crate) struct TypeFindings {
    of_files: HashMap<PathBuf, Checked>,
    /// The files with findings that were not published.
    changed: HashSet<PathBuf>,
}

/// The findings in a text.
struct Checked {
    text: Arc<str>,
    findings: Vec<Diagnostic>,
}

impl TypeFindings {
    /// Replaces the findings of a file.
    pub(crate) fn set(&mut self, path: &Path, text: Arc<str>, findings: Vec<Diagnostic>) {
        let before = self.of_files.insert(path.to_owned(), Checked { text, findings });
        // The client has those of an older text, perhaps moved.
        if before.is_some_and(|before| !before.findings.is_empty())
            || self.of_files.get(path).is_some_and(|now| !now.findings.is_empty())
        {
            self.changed.insert(path.to_owned());
        }
    }

    /// Forgets the findings of files that are not open.
    pub(crate) fn retain(&mut self, is_open: impl Fn(&Path) -> bool) {
        let closed = self.of_files.extract_if(|path, _| !is_open(path));
        self.changed.extend(closed.filter(|(_, checked)| !checked.findings.is_empty()).map(|(path, _)| path));
    }

    /// Returns the files whose findings changed since the last call.
    pub(crate) fn take_changed(&mut self) -> HashSet<PathBuf> {
        std::mem::take(&mut self.changed)
    }

    /// Returns the findings of a file with this text. Those in the part that was edited since the check are left out.
    pub(crate) fn of(&self, path: &Path, text: &str) -> Vec<Diagnostic> {
        let Some(checked) = self.of_files.get(path) else { return Vec::new() };
        if *checked.text == *text {
            return checked.findings.clone();
        }
        let edit = Edit::between(&checked.text, text);
        let moved = checked.findings.iter().filter_map(|finding| {
            let mut finding = finding.clone();
            finding.primary.span = edit.moved(finding.primary.span)?;
            Some(finding)
        });
        moved.collect()
    }
}

/// The part in which two texts differ.
struct Edit {
    start: usize,
    /// The ends in the old and in the new text.
    ends: (usize, usize),
}

impl Edit {
    fn between(old: &str, new: &str) -> Self {
        let same = |(one, other): &(u8, u8)| one == other;
        let start = old.bytes().zip(new.bytes()).take_while(same).count();
        let most = old.len().min(new.len()) - start;
        let end = old.bytes().rev().zip(new.bytes().rev()).take(most).take_while(same).count();
        Self { start, ends: (old.len() - end, new.len() - end) }
    }

    /// Returns where a span of the old text is in the new one. Returns `None` if it was edited.
    fn moved(&self, span: Span) -> Option<Span> {
        let range = span.range();
        let (old, new) = self.ends;
        if range.end <= self.start {
            Some(span)
        } else if range.start >= old {
            Some(Span::new(range.start - old + new, range.end - old + new))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_move_with_the_text() {
        let moved = |old: &str, new: &str, span: (usize, usize)| {
            Edit::between(old, new).moved(Span::new(span.0, span.1)).map(|span| span.of(new).to_owned())
        };
        for (old, new, span, expected) in [
            ("a b c", "a b c", (2, 3), Some("b")),
            ("a b c", "aa b c", (2, 3), Some("b")),
            ("a b c", "a b cc", (2, 3), Some("b")),
            ("a b c", "a bb c", (4, 5), Some("c")),
            ("a b c", "a x c", (2, 3), None),
            ("a b c", "", (2, 3), None),
            ("aaa", "aaaa", (0, 3), Some("aaa")),
        ] {
            assert_eq!(moved(old, new, span).as_deref(), expected, "{old} {new}");
        }
    }
}
