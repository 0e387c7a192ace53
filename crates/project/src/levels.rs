//! Severity levels: silences and raises findings after all checks.
//!
//! `;; deftool: skip` on its own line skips the next form: its definitions and its findings, except for syntax errors.
//! `;; deftool: allow(rule, …)` on its own line applies to the next form at any depth and, before a key, also to the
//! value. At the end of a line it applies to what starts on that line. In scripts the comment is `-- deftool: allow(…)`
//! and applies to its own line or the next one. `(deflint :allow […] :deny […])` applies to the whole project. If a
//! rule is in both lists, `:deny` wins.
//!
//! Errors cannot be silenced, because a tool with an error is not sent. A denied finding counts as an error in `check`
//! ([`LoadOptions::raises_denied`]), but the tool stays valid. Findings about directives have levels, too.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::{Diagnostic, Group, Rule, Severity};
use deftool_lang::spec::Lint;
use deftool_lang::syntax::{Kind, NodeId, Tree};
use deftool_lang::text::{Location, SourceId, Span, Spanned};

use super::discover::is_script;
use super::rules::{self, error_allowed, unknown_allow, unused_allow};
use super::{Load, LoadOptions};

/// The directives that apply to a load's findings.
#[derive(Clone, Default)]
pub(super) struct Levels {
    pub(super) lints: Vec<Lint>,
    pub(super) allows: Vec<Allow>,
    /// Files that the load does not report on, with the forms in them that it does report on, in order.
    pub(super) context_files: HashMap<SourceId, Vec<Span>>,
}

impl Levels {
    /// Returns whether the load reports on this location.
    pub(super) fn is_in_scope(&self, at: Location) -> bool {
        self.context_files.get(&at.source).is_none_or(|forms| {
            let started = forms.partition_point(|form| form.start <= at.span.start);
            forms.get(..started).and_then(<[Span]>::last).is_some_and(|form| at.span.end <= form.end)
        })
    }
}

/// One rule of an `allow(…)` comment.
#[derive(Clone, Debug)]
pub(super) struct Allow {
    source: SourceId,
    /// The rule's code or name, as written.
    word: Spanned<String>,
    /// The span it applies to: findings that start in it are silenced.
    covers: Span,
    /// Whether the comment is in a script.
    in_script: bool,
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

    /// Removes directives that would skip only a part of one of `forms`: tools are skipped completely or not at all.
    pub(super) fn keep_whole(&mut self, source: SourceId, mut forms: Vec<Span>) {
        forms.sort_unstable();
        let is_part = |skip: &Skip| {
            // Tool definitions are not nested.
            let started = forms.partition_point(|form| form.start <= skip.form.start);
            let form = forms.get(..started).and_then(<[Span]>::last);
            form.is_some_and(|form| *form != skip.form && skip.form.end <= form.end)
        };
        for skip in self.skips.extract_if(.., |skip| is_part(skip)) {
            self.findings.push(unknown_allow::part_skipped(Location { source, span: skip.comment }));
        }
    }
}

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
                directives.findings.push(unknown_allow::unreadable(Location { source, span: comment }));
            }
        }
    }
    directives
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
fn read_script_allows(source: SourceId, text: &str) -> (Vec<Allow>, Vec<Diagnostic>) {
    let (mut allows, mut findings): (Vec<Allow>, _) = (Vec::new(), Vec::new());
    // Number of allows that apply to the next line with code.
    let mut waiting = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let span = Span::new(start, start + line.len());
        start += line.len();
        let comment = comment_of(line).map(|at| Span::new(span.start as usize + at, span.end as usize));
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
        if let Some(span) = comment.filter(|_| words.is_empty()) {
            let end = span.start as usize + span.of(text).trim_end().len();
            let span = Span::new(span.start as usize, end);
            findings.push(unknown_allow::unreadable(Location { source, span }));
        }
        waiting += if is_comment { words.len() } else { 0 };
        allows.extend(words.into_iter().map(|word| Allow { source, word, covers: span, in_script: true }));
    }
    (allows, findings)
}

/// Returns the offset of the comment at the end of a script line. Ignores `--` in strings and long brackets.
fn comment_of(line: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = line.as_bytes().get(at..)?;
        at += match rest {
            [] => return None,
            [b'-', b'-', inside @ ..] => match long_bracket(inside) {
                Some(Bracketed::Whole(length)) => 2 + length,
                Some(Bracketed::Open) | None => return Some(at),
            },
            [b'[', ..] => match long_bracket(rest) {
                Some(Bracketed::Whole(length)) => length,
                // The long bracket continues on the next lines.
                Some(Bracketed::Open) => return None,
                None => 1,
            },
            [quote @ (b'"' | b'\'' | b'`'), inside @ ..] => match end_of_quoted(inside, *quote) {
                Some(end) => 1 + end,
                // Part of a multi-line string, in which the quote may be an apostrophe.
                None => return line.find("--"),
            },
            _ => 1,
        };
    }
}

/// Text in long brackets, `[[` or `[==[`.
enum Bracketed {
    /// Closed on the same line, with the length in bytes.
    Whole(usize),
    Open,
}

fn long_bracket(rest: &[u8]) -> Option<Bracketed> {
    let inside = rest.strip_prefix(b"[")?;
    let level = inside.iter().take_while(|byte| **byte == b'=').count();
    let inside = inside.get(level..)?.strip_prefix(b"[")?;
    let close = [b"]".as_slice(), &vec![b'='; level], b"]"].concat();
    let end = memchr::memmem::find(inside, &close);
    Some(end.map_or(Bracketed::Open, |end| Bracketed::Whole(end + 2 * (level + 2))))
}

/// Returns the offset after the closing quote.
fn end_of_quoted(inside: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        match inside.get(at)? {
            b'\\' => at += 2,
            byte if *byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
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

/// Returns the rules by code and by name.
fn by_word() -> HashMap<&'static str, &'static Rule> {
    rules::all().into_iter().flat_map(|rule| [(rule.code, rule), (rule.name, rule)]).collect()
}

/// Returns the rule with this name or code. Codes are case-insensitive.
fn rule_of(known: &HashMap<&'static str, &'static Rule>, word: &str) -> Option<&'static Rule> {
    known.get(word).or_else(|| known.get(word.to_ascii_uppercase().as_str())).copied()
}

/// Silences allowed findings, raises denied ones and reports invalid or unused allows.
pub(super) fn apply(load: &mut Load, mut levels: Levels, options: &LoadOptions) {
    let known = by_word();
    let (allows, wrong) = script_allows(load);
    levels.allows.extend(allows);
    load.findings.extend(wrong);
    load.sort_findings();
    let findings = std::mem::take(&mut load.findings);
    let (project_levels, mut directive_findings) = ProjectLevels::read(&levels.lints, &load.roots, &known);
    let mut matcher = AllowMatcher::of(&levels.allows, &known);
    let is_kept = |finding: &Diagnostic, matcher: &mut AllowMatcher| {
        !matcher.silences_by_comment(&levels.allows, finding) && !project_levels.silences(finding)
    };
    let mut kept: Vec<_> = findings.into_iter().filter(|finding| is_kept(finding, &mut matcher)).collect();
    let read_errors = ReadErrors::of(&kept);
    directive_findings.extend(wrong_allows(&levels, &matcher, &known, &read_errors, options, false));
    directive_findings.retain(|finding| levels.is_in_scope(finding.primary));
    directive_findings.sort_by_key(|finding| (finding.primary.source, finding.primary.span));
    matcher.restart();
    kept.extend(directive_findings.into_iter().filter(|finding| is_kept(finding, &mut matcher)));
    // Rules about allows come last, because only now it is known whether they had any finding. An allow does not apply
    // to itself.
    let directive_findings = wrong_allows(&levels, &matcher, &known, &read_errors, options, true);
    kept.extend(
        directive_findings
            .into_iter()
            .filter(|finding| levels.is_in_scope(finding.primary) && !project_levels.silences(finding)),
    );
    if options.raises_denied {
        kept.iter_mut().filter(|finding| project_levels.denies(finding)).for_each(|finding| {
            finding.severity = Severity::Error;
        });
    }
    load.findings = kept;
    load.sort_findings();
}

/// The rules in `deflint` forms, by project and rule code.
struct ProjectLevels<'r> {
    roots: &'r HashMap<SourceId, Arc<Path>>,
    allowed: HashSet<(Option<&'r Path>, &'static str)>,
    denied: HashSet<(Option<&'r Path>, &'static str)>,
}

impl<'r> ProjectLevels<'r> {
    /// Reads the forms. Also returns findings about unknown or invalid rules.
    fn read(
        lints: &[Lint],
        roots: &'r HashMap<SourceId, Arc<Path>>,
        known: &HashMap<&'static str, &'static Rule>,
    ) -> (Self, Vec<Diagnostic>) {
        let mut project_levels = Self { roots, allowed: HashSet::new(), denied: HashSet::new() };
        let mut directive_findings = Vec::new();
        for lint in lints {
            let root = roots.get(&lint.source).map(AsRef::as_ref);
            for (words, denies) in [(&lint.deny, true), (&lint.allow, false)] {
                for word in words {
                    let at = Location { source: lint.source, span: word.span };
                    match rule_of(known, &word.value) {
                        None => directive_findings.push(unknown_allow::finding(at, &word.value)),
                        Some(rule) if denies => drop(project_levels.denied.insert((root, rule.code))),
                        Some(rule) if rule.severity == Severity::Error => {
                            directive_findings.push(error_allowed::finding(at, &word.value, None));
                        }
                        Some(rule) => drop(project_levels.allowed.insert((root, rule.code))),
                    }
                }
            }
        }
        (project_levels, directive_findings)
    }

    fn key(&self, finding: &Diagnostic) -> (Option<&'r Path>, &'static str) {
        (self.roots.get(&finding.primary.source).map(AsRef::as_ref), finding.rule.code)
    }

    fn silences(&self, finding: &Diagnostic) -> bool {
        finding.severity != Severity::Error
            && !self.allowed.is_empty()
            && self.allowed.contains(&self.key(finding))
            && !self.denies(finding)
    }

    fn denies(&self, finding: &Diagnostic) -> bool {
        !self.denied.is_empty() && self.denied.contains(&self.key(finding))
    }
}

/// The locations of syntax errors. An allow near them is not reported as unused.
struct ReadErrors(BTreeSet<(SourceId, u32)>);

impl ReadErrors {
    fn of(findings: &[Diagnostic]) -> Self {
        let read_errors = findings.iter().filter(|finding| finding.rule.group() == Group::Reading);
        Self(read_errors.map(|finding| (finding.primary.source, finding.primary.span.start)).collect())
    }

    fn is_in(&self, allow: &Allow) -> bool {
        let Span { start, end } = allow.covers;
        self.0.range((allow.source, start)..(allow.source, end.max(start))).next().is_some()
    }
}

/// Reports invalid and unused allows: either those of rules about allows, or those of all other rules.
fn wrong_allows(
    levels: &Levels,
    matcher: &AllowMatcher,
    known: &HashMap<&'static str, &'static Rule>,
    read_errors: &ReadErrors,
    options: &LoadOptions,
    about_allows: bool,
) -> Vec<Diagnostic> {
    const ABOUT_ALLOWS: [&Rule; 3] =
        [&unknown_allow::UNKNOWN_ALLOW, &unused_allow::UNUSED_ALLOW, &error_allowed::ERROR_ALLOWED];
    let mut directive_findings = Vec::new();
    for (allow, matched) in levels.allows.iter().zip(&matcher.matched) {
        let at = Location { source: allow.source, span: allow.word.span };
        let word = &allow.word.value;
        let rule = rule_of(known, word);
        if rule.is_some_and(|rule| ABOUT_ALLOWS.contains(&rule)) != about_allows {
            continue;
        }
        let Some(rule) = rule else {
            directive_findings.push(unknown_allow::finding(at, word));
            continue;
        };
        // Not every load checks scripts and targets.
        let is_checked = match rule.group() {
            Group::Targets => false,
            Group::Projects => options.with_scripts,
            Group::Reading | Group::Forms | Group::Arguments | Group::Workers | Group::Import => true,
        };
        match matched {
            AllowMatch::Error(error) => {
                directive_findings.push(error_allowed::finding(at, word, Some(*error)));
            }
            AllowMatch::Unused if is_checked && !allow.in_script && !read_errors.is_in(allow) => {
                directive_findings.push(unused_allow::finding(at, word));
            }
            AllowMatch::Unused | AllowMatch::Silenced => {}
        }
    }
    directive_findings
}

/// Returns the allows of all scripts with findings, and the findings about these allows.
fn script_allows(load: &Load) -> (Vec<Allow>, Vec<Diagnostic>) {
    let sources: HashSet<SourceId> = load.findings.iter().map(|finding| finding.primary.source).collect();
    let (mut allows, mut findings) = (Vec::new(), Vec::new());
    for source in sources {
        let file = load.sources.get(source).filter(|file| is_script(Path::new(&file.name)));
        let (more, wrong) = file.map_or_else(Default::default, |file| read_script_allows(source, &file.text));
        allows.extend(more);
        findings.extend(wrong);
    }
    (allows, findings)
}

/// The findings that an allow matched.
#[derive(Clone, Copy)]
enum AllowMatch {
    Unused,
    Silenced,
    /// An error, which is not silenced.
    Error(Location),
}

/// Matches findings with allows in one pass. Both are in source order.
struct AllowMatcher {
    /// Indices of the allows, sorted by start.
    order: Vec<usize>,
    next: usize,
    /// The allows that have started, by rule code, innermost last.
    started: HashMap<(SourceId, &'static str), Vec<usize>>,
    codes: Vec<Option<&'static str>>,
    matched: Vec<AllowMatch>,
}

impl AllowMatcher {
    fn of(allows: &[Allow], known: &HashMap<&'static str, &'static Rule>) -> Self {
        let codes: Vec<_> =
            allows.iter().map(|allow| rule_of(known, &allow.word.value).map(|rule| rule.code)).collect();
        let mut order: Vec<usize> = (0..allows.len()).collect();
        order.sort_by_key(|&index| allows.get(index).map(|allow| (allow.source, allow.covers.start)));
        Self {
            order,
            next: 0,
            started: HashMap::new(),
            codes,
            matched: vec![AllowMatch::Unused; allows.len()],
        }
    }

    /// Restarts the pass for another sequence of findings.
    fn restart(&mut self) {
        self.next = 0;
        self.started.clear();
    }

    /// Returns whether an allow silences `finding`, which must be the next in order.
    fn silences_by_comment(&mut self, allows: &[Allow], finding: &Diagnostic) -> bool {
        let at = finding.primary;
        let place = (at.source, at.span.start);
        while let Some(&index) = self.order.get(self.next)
            && let Some(allow) = allows.get(index)
            && (allow.source, allow.covers.start) <= place
        {
            if let Some(code) = self.codes.get(index).copied().flatten() {
                self.started.entry((allow.source, code)).or_default().push(index);
            }
            self.next += 1;
        }
        let Some(started) = self.started.get_mut(&(at.source, finding.rule.code)) else { return false };
        while let Some(&index) = started.last() {
            if allows.get(index).is_some_and(|allow| at.span.start < allow.covers.end) {
                let is_error = finding.severity == Severity::Error;
                if let Some(matched) = self.matched.get_mut(index) {
                    *matched = match *matched {
                        AllowMatch::Error(first) => AllowMatch::Error(first),
                        AllowMatch::Unused | AllowMatch::Silenced if is_error => AllowMatch::Error(at),
                        AllowMatch::Unused | AllowMatch::Silenced => AllowMatch::Silenced,
                    };
                }
                return !is_error;
            }
            started.pop();
        }
        false
    }
}
