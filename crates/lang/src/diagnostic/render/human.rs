//! Findings with source lines in the style of rustc.
//!
//! The renderer scans its whole input several times. It therefore receives only a window of limited size around each
//! location, in which long lines are truncated, so that a file with one long line is not slower than others. Line
//! endings in the window are always LF.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use unicode_width::UnicodeWidthChar;

use crate::diagnostic::{Diagnostic, Fix, Severity};
use crate::text::{Location, SourceFile, Sources, Span, is_readable, one_line, readable};

/// Locations farther apart than this, in bytes, are shown separately. Longer spans are truncated.
const MAX_WINDOW: usize = 16 * 1024;

/// Maximum context on a line before and after its locations, in bytes.
const MAX_CONTEXT: usize = 500;

/// Columns beside the locations of a line: the line number, and `...` with some context at both ends. Locations that do
/// not fit between them are shown separately, and longer spans are truncated, because the renderer does not shorten a
/// line between two locations.
const MARGIN: usize = 24;

/// Minimum and maximum number of columns of a span. The marks below a longer one would say nothing more.
const MIN_SPAN: usize = 16;
const MAX_SPAN: usize = 100;

/// Columns beside the lines of a fix: the line number, the sign, and `...` at both ends.
const PATCH_MARGIN: usize = 14;

/// Minimum context on a truncated line before and after a fix, in bytes.
const MIN_PATCH_CONTEXT: usize = 10;

/// Fixes of lines with more columns are not shown.
const MAX_PATCH: usize = 280;

/// Maximum length of a text whose columns are counted, in bytes. It is far wider than a terminal.
const MAX_COUNTED: usize = 4096;

/// Renders one finding as several lines, without a final line break. Source lines with more than `columns` columns are
/// truncated around the locations. `styled` adds terminal colours.
pub fn render_human(finding: &Diagnostic, sources: &Sources, columns: usize, styled: bool) -> String {
    let room = columns.saturating_sub(MARGIN).clamp(MIN_SPAN, MAX_SPAN);
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group = level
        .primary_title(finding.message.as_str())
        .id(finding.rule.code)
        .elements(std::iter::empty::<Snippet<'_, annotate_snippets::Annotation<'_>>>());
    let mut groups = Vec::new();
    let mut corrections = Vec::new();
    if let Some(file) = sources.get(finding.primary.source) {
        let (near, far) = split_labels(finding, file, room);
        let shown = shown_part(file, finding.primary.span, room);
        let spans: Vec<Span> = [finding.primary.span]
            .into_iter()
            .chain(near.iter().map(|(location, _)| location.span))
            .collect();
        let window = Window::around(file, &spans, MAX_CONTEXT);
        let mut primary = AnnotationKind::Primary.span(window.range(shown));
        if let Some(label) = &finding.label {
            primary = primary.label(readable(label));
        }
        let mut snippet = Snippet::source(window.text.clone())
            .line_start(window.line)
            .path(one_line(file.name.clone()))
            .annotation(primary);
        for (location, message) in near {
            let shown = shown_part(file, location.span, room);
            snippet = snippet
                .annotation(AnnotationKind::Context.span(window.range(shown)).label(readable(message)));
        }
        corrections.extend(window.correction(file, finding.primary.span));
        group = group.element(snippet);
        for (location, message) in far {
            if let Some(file) = sources.get(location.source) {
                let window = Window::around(file, &[location.span], MAX_CONTEXT);
                let shown = window.range(shown_part(file, location.span, room));
                corrections.extend(window.correction(file, location.span));
                group = group.element(
                    Snippet::source(window.text)
                        .line_start(window.line)
                        .path(one_line(file.name.clone()))
                        .annotation(AnnotationKind::Context.span(shown).label(readable(message))),
                );
            }
        }
    }
    for note in &finding.notes {
        group = group.element(Level::NOTE.message(readable(note)));
    }
    groups.push(group);
    if let (Some(fix), Some(file)) = (&finding.fix, sources.get(finding.primary.source)) {
        // A fix that is too large is not shown, because a part of it would look like a different fix. The fix can still
        // be applied.
        let mut shown = Group::with_title(Level::HELP.secondary_title(readable(&fix.title)));
        if let Some(window) = Window::of_patch(file, fix, columns.saturating_sub(PATCH_MARGIN)) {
            let mut snippet = Snippet::source(window.text.clone())
                .line_start(window.line)
                .path(one_line(file.name.clone()));
            for edit in &fix.edits {
                snippet = snippet.patch(Patch::new(window.range(edit.span), edit.replacement.as_str()));
            }
            shown = shown.element(snippet);
        }
        groups.push(shown);
    }
    let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
    without_hidden(correct(renderer.term_width(columns).render(&groups), &corrections))
}

/// Replaces hidden characters from the source that the renderer does not handle. An escape would be longer, so that the
/// marks would be at the wrong columns. Keeps escape characters (ESC): at this point, they only occur in the renderer's
/// own colour codes.
fn without_hidden(text: String) -> String {
    let is_harmful = |c: char| !is_readable(c) && c != '\u{1b}';
    if text.contains(is_harmful) { text.replace(is_harmful, "\u{fffd}") } else { text }
}

type Labels<'d> = Vec<(Location, &'d str)>;

/// Splits the labels into those shown in the window of the primary location and the others. All locations in the window
/// fit between the same `room` columns.
fn split_labels<'d>(finding: &'d Diagnostic, file: &SourceFile, room: usize) -> (Labels<'d>, Labels<'d>) {
    let primary = finding.primary;
    let mut shown = vec![shown_part(file, primary.span, room)];
    finding.labels.iter().map(|label| (label.location, label.message.as_str())).partition(|(location, _)| {
        let start = location.span.start.min(primary.span.start);
        let end = location.span.end.max(primary.span.start);
        if location.source != primary.source || (end - start) as usize >= MAX_WINDOW / 2 {
            return false;
        }
        let part = shown_part(file, location.span, room);
        let fits = |one: Span, other: Span| distance(file, one.start, other.end) <= room;
        let is_near = shown.iter().all(|other| fits(part, *other) && fits(*other, part));
        shown.extend(is_near.then_some(part));
        is_near
    })
}

/// Truncates a span that is wider than `room` columns.
fn shown_part(file: &SourceFile, span: Span, room: usize) -> Span {
    if distance(file, span.start, span.end) <= room {
        return span;
    }
    let tail = file.text.get(span.range()).unwrap_or("");
    let line = tail.lines().next().unwrap_or("");
    let mut columns = 0;
    let is_outside = |(_, character): &(usize, char)| {
        columns += char_columns(*character);
        columns > room
    };
    let length = line.char_indices().find(is_outside).map_or(line.len(), |(at, _)| at);
    Span::new(span.start as usize, span.start as usize + length.max(1))
}

/// Returns the number of columns between two locations, which may be on different lines.
fn distance(file: &SourceFile, one: u32, other: u32) -> usize {
    let between = |start: usize, end: u32| {
        let text = file.text.get(start..end as usize).unwrap_or("");
        if text.len() > MAX_COUNTED { text.len() } else { text_columns(text) }
    };
    let (first, last) = (one.min(other), one.max(other));
    let line = file.line_start(last);
    if line <= first as usize {
        return between(first as usize, last);
    }
    between(file.line_start(first), first).abs_diff(between(line, last))
}

/// Returns the number of columns of a text on a terminal: wide characters have two, tabs are shown as four spaces.
fn text_columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

fn char_columns(character: char) -> usize {
    if character == '\t' { 4 } else { character.width().unwrap_or(1) }
}

/// A location that the renderer prints with its line and column in the window.
struct Correction {
    printed: String,
    actual: String,
}

/// Replaces the printed locations by the actual ones, each on the next line that contains it.
fn correct(text: String, corrections: &[Correction]) -> String {
    let mut corrections = corrections.iter().peekable();
    if corrections.peek().is_none() {
        return text;
    }
    let mut corrected = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let next = corrections.peek().filter(|_| line.contains("-->") || line.contains(":::"));
        let parts = next
            .and_then(|Correction { printed, actual }| Some((line.split_once(printed.as_str())?, actual)));
        match parts.filter(|((_, after), _)| !after.starts_with(|next: char| next.is_ascii_digit())) {
            Some(((before, after), actual)) => {
                corrected.extend([before, actual, after]);
                corrections.next();
            }
            None => corrected.push_str(line),
        }
    }
    corrected
}

/// The lines of a file that contain some spans, with long lines truncated.
struct Window<'f> {
    /// The displayed text, without CR before LF.
    text: Cow<'f, str>,
    line: usize,
    /// The corresponding part of the file.
    source: &'f str,
    start: usize,
    /// Whether the first line is truncated at its start.
    is_cut: bool,
    /// Length of the truncation marker at the start, in bytes.
    mark: usize,
}

impl<'f> Window<'f> {
    /// Creates a window around `spans`. `context` is the maximum context on a line before and after them, in bytes.
    fn around(file: &'f SourceFile, spans: &[Span], context: usize) -> Self {
        let text: &str = &file.text;
        let first = spans.iter().map(|span| span.start as usize).min().unwrap_or(0).min(text.len());
        let last = spans.iter().map(|span| span.end as usize).max().unwrap_or(0).clamp(first, text.len());
        let last = last.min(first + MAX_WINDOW);
        let bytes = text.as_bytes();
        let before = first.saturating_sub(context);
        let line_start = memchr::memrchr(b'\n', bytes.get(before..first).unwrap_or_default());
        let is_cut = line_start.is_none() && before > 0 && bytes.get(before - 1) != Some(&b'\n');
        let start = floor(text, line_start.map_or(before, |at| before + at + 1));
        let after = (last + context).min(text.len());
        let line_end = memchr::memchr(b'\n', bytes.get(last..after).unwrap_or_default());
        let end = floor(text, line_end.map_or(after, |at| last + at));
        let line = file.line_column(start as u32).line;
        let source = text.get(start..end).unwrap_or("");
        let text = if source.contains('\r') {
            let shown = source.replace("\r\n", "\n");
            // The LF is outside the window.
            let ends_line = shown.ends_with('\r') && bytes.get(end) == Some(&b'\n');
            Cow::Owned(if ends_line { shown.trim_end_matches('\r').to_owned() } else { shown })
        } else {
            Cow::Borrowed(source)
        };
        Self { text, line, source, start, is_cut, mark: 0 }
    }

    /// Creates a window around a fix, with lines of more than `room` columns truncated. Returns `None` if the fix is too
    /// large to show.
    fn of_patch(file: &'f SourceFile, fix: &Fix, room: usize) -> Option<Self> {
        let spans: Vec<Span> = fix.edits.iter().map(|edit| edit.span).collect();
        let is_wide =
            |window: &Self, limit: usize| window.text.lines().any(|line| text_columns(line) > limit);
        let mut window = Self::around(file, &spans, MAX_CONTEXT);
        if is_wide(&window, room) {
            let changed = Self::around(file, &spans, 0).source.len();
            let inserted: usize = fix.edits.iter().map(|edit| edit.replacement.len()).sum();
            let context = room.saturating_sub(changed + inserted) / 2;
            window = Self::around(file, &spans, context.max(MIN_PATCH_CONTEXT)).marked(file);
        }
        (spans.iter().all(|span| window.contains(*span)) && !is_wide(&window, MAX_PATCH)).then_some(window)
    }

    /// Adds `...` where a line is truncated.
    fn marked(mut self, file: &SourceFile) -> Self {
        let after = file.text.get(self.start + self.source.len()..).unwrap_or("");
        let is_whole = after.is_empty() || after.starts_with('\n') || self.source.ends_with('\r');
        let (before, after) = (if self.is_cut { "..." } else { "" }, if is_whole { "" } else { "..." });
        self.mark = before.len();
        self.text = Cow::Owned(format!("{before}{}{after}", self.text));
        self
    }

    fn contains(&self, span: Span) -> bool {
        span.start as usize >= self.start && span.end as usize <= self.start + self.source.len()
    }

    /// Converts a span to a range in the window, always on character boundaries.
    fn range(&self, span: Span) -> Range<usize> {
        let inside = |at: u32| {
            let at = floor(self.source, (at as usize).saturating_sub(self.start));
            let before = self.source.get(..at).unwrap_or("");
            let in_line_end = before.ends_with('\r') && !self.text.ends_with('\r');
            let shown = at - before.matches("\r\n").count() - usize::from(in_line_end);
            floor(&self.text, shown + self.mark)
        };
        let start = inside(span.start);
        start..inside(span.end).max(start)
    }

    /// Returns the correction for the location of `span`, if the renderer prints a wrong column because the line is
    /// truncated, or a line of a source that is not a file.
    fn correction(&self, file: &SourceFile, span: Span) -> Option<Correction> {
        let before = self.text.get(..self.range(span).start)?;
        if file.is_file() && (!self.is_cut || before.contains('\n')) {
            return None;
        }
        let line = self.line + before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Some(Correction {
            printed: format!("{}:{line}:{column}", one_line(file.name.clone())),
            actual: one_line(file.position(span)),
        })
    }
}

/// Returns the nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::rules;

    fn rendered(text: &str, primary: Range<usize>, label: Option<Range<usize>>) -> String {
        rendered_in(140, text, primary, label)
    }

    fn rendered_in(columns: usize, text: &str, primary: Range<usize>, label: Option<Range<usize>>) -> String {
        let mut sources = Sources::new();
        let source = sources.add(SourceFile::new("a.eld", text));
        let at = |range: Range<usize>| Location { source, span: Span::new(range.start, range.end) };
        let mut finding = Diagnostic::new(&rules::UNCLOSED, at(primary), String::from("wrong"));
        if let Some(label) = label {
            finding
                .labels
                .push(crate::diagnostic::Label { location: at(label), message: String::from("there") });
        }
        let styled = render_human(&finding, &sources, columns, true);
        let plain = render_human(&finding, &sources, columns, false);
        for place in plain.lines().filter_map(|line| line.split_once("--> ")) {
            assert!(styled.contains(place.1), "{styled}");
        }
        plain
    }

    #[test]
    fn replaces_terminal_control_characters() {
        let odd = "o\u{1b}[2Jd\u{9b}2Jd\u{202e}\u{200f}\u{7f}";
        let mut sources = Sources::new();
        let source = sources.add(SourceFile::new(odd, format!("({odd})")));
        let at = |start, end| Location { source, span: Span::new(start, end) };
        let mut finding = Diagnostic::new(&rules::UNCLOSED, at(0, 2), odd).note(odd);
        finding.label = Some(String::from(odd));
        finding.labels.push(crate::diagnostic::Label { location: at(1, 2), message: String::from(odd) });
        finding.fix = Some(crate::diagnostic::Fix {
            title: String::from(odd),
            edits: vec![crate::diagnostic::Edit { span: Span::new(1, 2), replacement: String::from(odd) }],
            is_safe: true,
        });
        let is_harmful = |c: char| !is_readable(c);
        let plain = render_human(&finding, &sources, 140, false);
        assert!(!plain.contains(is_harmful), "{plain:?}");
        let styled = render_human(&finding, &sources, 140, true);
        assert!(!styled.contains("\u{1b}[2J"), "{styled:?}");
    }

    #[test]
    fn truncates_a_long_line_and_prints_the_actual_column() {
        let text = format!("x\n{}(here){}", "é ".repeat(30_000), " z".repeat(30_000));
        let at = text.find('(').unwrap();
        let shown = rendered(&text, at..at + 6, None);
        assert!(shown.contains("--> a.eld:2:60001\n"), "{shown}");
        assert!(shown.contains("(here)"), "{shown}");
        assert!(shown.len() < 5_000, "{shown}");
    }

    #[test]
    fn shows_distant_locations_separately() {
        let text = format!("(one)\n{}(two)\n", "(x)\n".repeat(20_000));
        let shown = rendered(&text, text.len() - 6..text.len() - 1, Some(0..5));
        assert!(shown.contains("--> a.eld:20002:1\n"), "{shown}");
        assert!(shown.contains("::: a.eld:1:1\n"), "{shown}");
        assert!(shown.len() < 1_000, "{shown}");
        let text = format!("(one) {}(two)\n", "(x) ".repeat(20_000));
        let shown = rendered(&text, text.len() - 6..text.len() - 1, Some(400..403));
        assert!(shown.contains("--> a.eld:1:80007\n"), "{shown}");
        assert!(shown.contains("::: a.eld:1:401\n"), "{shown}");
    }

    fn widest(text: &str) -> usize {
        text.lines().map(text_columns).max().unwrap_or(0)
    }

    /// Lines with a span in `«»`.
    fn lines() -> [String; 7] {
        let long = |before: &str, span: &str, after: &str| {
            format!("{}«{span}»{}", before.repeat(100), after.repeat(100))
        };
        [
            long("", "(one)", ""),
            long("", "(one)", " (two)"),
            long("(two) ", "(one)", ""),
            long("(two) ", "(one)", " (two)"),
            long("naïve ", "(é)", " naïve"),
            long("日本語", "東京", "日本語"),
            long("日 \t", "😀 東", " x\t"),
        ]
    }

    #[test]
    fn source_lines_fit_into_the_terminal_with_their_locations() {
        for (columns, marked) in
            [20, 40, 79, 80, 140, 500].iter().flat_map(|columns| lines().map(|line| (*columns, line)))
        {
            let (start, end) = (marked.find('«').unwrap(), marked.find('»').unwrap() - '«'.len_utf8());
            let text = marked.replace(['«', '»'], "");
            let shown = rendered_in(columns, &text, start..end, None);
            let (source, marks) = shown.split_once("1 | ").unwrap().1.split_once('\n').unwrap();
            let marks = marks.lines().next().unwrap().split_once("| ").unwrap().1;
            assert!(text_columns(source) + 4 <= columns.max(MARGIN + MIN_SPAN), "{columns}: {shown}");
            let mut column = 0;
            let before = |character: &char| {
                column += char_columns(*character);
                column <= marks.find('^').unwrap()
            };
            let located: String = source.chars().skip_while(before).collect();
            assert!(located.starts_with(&text[start..end]), "{columns}: {shown}");
            assert_eq!(marks.matches('^').count(), text_columns(&text[start..end]), "{columns}: {shown}");
            let ends = [source.starts_with("..."), source.ends_with("...")];
            if text_columns(&text) + 4 <= columns {
                assert_eq!(ends, [false; 2], "{columns}: {shown}");
            } else {
                assert!(ends.contains(&true), "{columns}: {shown}");
            }
        }
    }

    #[test]
    fn distant_locations_on_one_line_do_not_produce_a_wide_line() {
        let text = format!("(one) {}(two) {}", "x ".repeat(220), "y ".repeat(300));
        let two = text.find("(two)").unwrap();
        let shown = rendered(&text, two..two + 5, Some(0..5));
        assert!(shown.contains(&format!("--> a.eld:1:{}\n", two + 1)), "{shown}");
        assert!(shown.contains("::: a.eld:1:1\n"), "{shown}");
        assert!(widest(&shown) <= 140, "{shown}");
        let shown = rendered(&text, 0..text.len(), None);
        assert!(shown.contains("--> a.eld:1:1\n") && widest(&shown) <= 140, "{shown}");
        let shown = rendered(&text, 0..5, Some(6..11));
        assert!(!shown.contains(":::"), "{shown}");
    }

    fn rendered_fix(columns: usize, text: &str, edits: &[(usize, usize)]) -> String {
        let mut sources = Sources::new();
        let source = sources.add(SourceFile::new("a.eld", text));
        let primary = Location { source, span: Span::new(edits[0].0, edits[0].1) };
        let edit = |&(start, end): &(usize, usize)| crate::diagnostic::Edit {
            span: Span::new(start, end),
            replacement: String::from("new"),
        };
        let finding = Diagnostic::new(&rules::UNCLOSED, primary, "wrong")
            .fixed_by_edits("write new", edits.iter().map(edit).collect());
        render_human(&finding, &sources, columns, false)
    }

    #[test]
    fn truncates_a_long_line_around_a_fix() {
        let text = format!("{}old{}\n", "é ".repeat(300), " z".repeat(300));
        let at = text.find("old").unwrap();
        for columns in [60, 80, 140, 200] {
            let shown = rendered_fix(columns, &text, &[(at, at + 3)]);
            assert!(shown.contains(" é new z ") && shown.contains(" z..."), "{shown}");
            assert!(widest(&shown) <= columns, "{columns}: {shown}");
            // A part of a fix would look like a different fix.
            let shown = rendered_fix(columns, &text, &[(0, 2), (at, at + 3)]);
            assert!(shown.contains("help: write new") && !shown.contains("newé"), "{shown}");
            assert!(widest(&shown) <= columns, "{columns}: {shown}");
        }
    }

    #[test]
    fn renders_crlf_like_lf() {
        let text = "(one\r\n two\r\n three)\r\n";
        for (range, label) in [(1..4, None), (7..10, Some(13..18)), (1..10, None), (4..7, None)] {
            let shown = rendered(text, range.clone(), label.clone());
            assert!(!shown.contains('␍') && !shown.contains('\r'), "{shown}");
            let lf = |at: usize| at - text[..at].matches('\r').count();
            let moved = |range: Range<usize>| lf(range.start)..lf(range.end);
            if range != (4..7) {
                let same = rendered(&text.replace('\r', ""), moved(range), label.map(moved));
                assert_eq!(shown, same);
            }
        }
        assert!(
            rendered_fix(140, text, &[(7, 10)]).contains("2 +  new\n"),
            "{}",
            rendered_fix(140, text, &[(7, 10)])
        );
    }

    #[test]
    fn the_line_length_does_not_affect_the_time() {
        let (mut short, mut long) = (time_of(4_000), time_of(40_000));
        for _ in 0..5 {
            if long < short * 4 {
                break;
            }
            (short, long) = (short.min(time_of(4_000)), long.min(time_of(40_000)));
        }
        assert!(long < short * 4, "{short:?}, but {long:?} on a line that is ten times as long");
    }

    /// Returns the time to render 500 findings on a line with `forms` forms.
    fn time_of(forms: usize) -> std::time::Duration {
        let text = "(form 1234567890) ".repeat(forms);
        let mut sources = Sources::new();
        let source = sources.add(SourceFile::new("a.eld", text.as_str()));
        let started = std::time::Instant::now();
        for number in 0..500 {
            let span = Span::new(number * 144, number * 144 + 17);
            let primary = Location { source, span };
            let mut finding = Diagnostic::new(&rules::UNCLOSED, primary, String::from("wrong"));
            let location = Location { source, span: Span::new(0, 17) };
            finding.labels.push(crate::diagnostic::Label { location, message: String::from("there") });
            assert!(!render_human(&finding, &sources, 140, false).is_empty());
        }
        started.elapsed()
    }
}
