//! Directives in comments: `allow` silences findings, `skip` skips a form.
//!
//! `;; deftool: skip` on its own line skips the next form: its definitions and its findings, except for syntax errors.
//! `;; deftool: allow(rule, …)` on its own line applies to the next form, at any depth; before a key, it also applies
//! to the key's value. At the end of a line it applies to what starts on that line. In scripts, `-- deftool: allow(…)`
//! applies to its line or, on its own line, to the next line with code.

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::syntax::{Kind, NodeId, Tree};
use deftool_lang::text::{Location, SourceId, Span, Spanned};
use deftool_script::comments;

use crate::rules::invalid_allow;

/// Reads the directives of one spec file.
pub(super) fn read_directives(source: SourceId, text: &str, tree: &Tree) -> Directives {
    let mut directives = Directives::default();
    let mut nodes = tree.iter().peekable();
    // The target of the last comment. Several comments may precede one form.
    let mut about: Option<(NodeId, Span)> = None;
    for &comment in tree.comments() {
        let Some(directive) = directive_in(text, comment, ';') else { continue };
        let covers = if is_own_line(text, comment) {
            while nodes.next_if(|&node| tree.span(node).start < comment.end).is_some() {}
            nodes.peek().map_or(Span::new(0, 0), |&node| {
                let known = about.filter(|(known, _)| *known == node).map(|(_, form)| form);
                let form = known.unwrap_or_else(|| form_at(tree, text, node));
                about = Some((node, form));
                form
            })
        } else {
            line_of(text, comment)
        };
        match directive {
            Directive::Allow(words) => {
                let allow = |word| Allow { source, word, covers, in_script: false };
                directives.allows.extend(words.into_iter().map(allow));
            }
            Directive::Skip if is_own_line(text, comment) => {
                if directives.skips.last().is_none_or(|skip| skip.form.end <= covers.start) {
                    directives.skips.push(Skip { form: covers, comment });
                }
            }
            Directive::Skip | Directive::Unreadable => {
                directives.findings.push(invalid_allow::unreadable(Location { source, span: comment }));
            }
        }
    }
    directives
}

/// The directives in one spec file.
#[derive(Default)]
pub(super) struct Directives {
    pub(super) allows: Vec<Allow>,
    /// The skipped forms, in order and not nested.
    skips: Vec<Skip>,
    /// Findings about the directives themselves.
    pub(super) findings: Vec<Diagnostic>,
}

/// A skipped form.
struct Skip {
    form: Span,
    comment: Span,
}

impl Directives {
    /// Returns whether `span` is inside a skipped form.
    pub(super) fn skip(&self, span: Span) -> bool {
        let after = self.skips.partition_point(|skip| skip.form.start <= span.start);
        let before = after.checked_sub(1).and_then(|index| self.skips.get(index));
        before.is_some_and(|skip| span.end <= skip.form.end)
    }

    /// Removes and reports the `skip` directives that would skip only a part of one of `forms`: tools are skipped
    /// completely or not at all.
    pub(super) fn keep_whole(&mut self, source: SourceId, mut forms: Vec<Span>) {
        forms.sort_unstable();
        let is_part = |skip: &Skip| {
            // Tool definitions are not nested.
            let started = forms.partition_point(|form| form.start <= skip.form.start);
            let form = forms.get(..started).and_then(<[Span]>::last);
            form.is_some_and(|form| *form != skip.form && skip.form.end <= form.end)
        };
        for skip in self.skips.extract_if(.., |skip| is_part(skip)) {
            self.findings.push(invalid_allow::part_skipped(Location { source, span: skip.comment }));
        }
    }
}

/// One rule of an `allow(…)` comment.
#[derive(Clone, Debug)]
pub(super) struct Allow {
    pub(super) source: SourceId,
    /// The rule's code or name, as written.
    pub(super) word: Spanned<String>,
    /// The span it applies to: findings that start in it are silenced.
    pub(super) covers: Span,
    /// Whether the comment is in a script.
    pub(super) in_script: bool,
}

/// Returns the span of the form `node`. For a key, the span includes its value.
fn form_at(tree: &Tree, text: &str, node: NodeId) -> Span {
    let span = tree.span(node);
    let value = tree.next(node).filter(|_| tree.kind(node) == Kind::Keyword).map(|value| tree.span(value));
    let is_beside = |value: &Span| {
        let between = text.get(span.end as usize..value.start as usize);
        between.is_some_and(|between| !between.contains([')', ']']))
    };
    value.filter(is_beside).map_or(span, |value| span.to(value))
}

/// Returns the allows in a script and the findings about them.
pub(super) fn read_script_allows(source: SourceId, text: &str) -> (Vec<Allow>, Vec<Diagnostic>) {
    let (mut allows, mut findings): (Vec<Allow>, _) = (Vec::new(), Vec::new());
    // Most scripts have none.
    if !text.contains("deftool:") {
        return (allows, findings);
    }
    // Number of allows that apply to the next line with code.
    let mut waiting = 0;
    let mut start = 0;
    let mut comments = comments(text).into_iter().peekable();
    for line in text.split_inclusive('\n') {
        let span = Span::new(start, start + line.len());
        start += line.len();
        let mut comment = None;
        while let Some(next) = comments.next_if(|next| next.start < span.end) {
            comment = Some(next);
        }
        let is_comment = line.trim_start().starts_with("--");
        if !is_comment && !line.trim().is_empty() {
            let first = allows.len() - waiting;
            allows.iter_mut().skip(first).for_each(|allow| allow.covers = span);
            waiting = 0;
        }
        let words = match comment.and_then(|comment| directive_in(text, comment, '-')) {
            None => continue,
            Some(Directive::Allow(words)) => words,
            // Scripts cannot be skipped in part.
            Some(Directive::Skip | Directive::Unreadable) => Vec::new(),
        };
        if let Some(comment) = comment.filter(|_| words.is_empty()) {
            let start = comment.start as usize;
            let span = Span::new(start, start + comment.of(text).trim_end().len());
            findings.push(invalid_allow::unreadable(Location { source, span }));
        }
        waiting += if is_comment { words.len() } else { 0 };
        allows.extend(words.into_iter().map(|word| Allow { source, word, covers: span, in_script: true }));
    }
    (allows, findings)
}

/// A directive in a comment.
enum Directive {
    /// `allow(…)` with its rules.
    Allow(Vec<Spanned<String>>),
    /// `skip`.
    Skip,
    /// Not a valid directive.
    Unreadable,
}

/// Parses a comment. Returns `None` if it is not a directive.
fn directive_in(text: &str, comment: Span, mark: char) -> Option<Directive> {
    let inside = comment.of(text).trim_start_matches(mark).trim_start();
    let rest = inside.strip_prefix("deftool:")?.trim_start();
    if rest.split_whitespace().next() == Some("skip") {
        return Some(Directive::Skip);
    }
    let list = rest.strip_prefix("allow").and_then(|rest| rest.trim_start().strip_prefix('('));
    let Some(list) = list.and_then(|list| list.split_once(')')).map(|(list, _)| list) else {
        return Some(Directive::Unreadable);
    };
    if list.trim().is_empty() {
        return Some(Directive::Unreadable);
    }
    let base = list.as_ptr() as usize - text.as_ptr() as usize;
    let mut words = Vec::new();
    let mut at = base;
    for part in list.split(',') {
        let word = part.trim();
        let start = at + (part.len() - part.trim_start().len());
        words.push(Spanned::new(word.to_owned(), Span::new(start, start + word.len())));
        at += part.len() + 1;
    }
    Some(Directive::Allow(words))
}

fn is_own_line(text: &str, comment: Span) -> bool {
    let before = text.get(..comment.start as usize).unwrap_or("");
    before.bytes().rev().take_while(|byte| *byte != b'\n').all(|byte| byte.is_ascii_whitespace())
}

fn line_of(text: &str, comment: Span) -> Span {
    let before = text.get(..comment.start as usize).unwrap_or("");
    Span { start: before.rfind('\n').map_or(0, |at| at as u32 + 1), end: comment.end }
}
