//! What is silenced and what is raised, once every finding is there.
//!
//! `;; deftool: skip` on a line of its own leaves the form that follows out: what it defines and what is found in it, but
//! for what the reader could not read. `;; deftool: allow(rule, …)` on a line of its own is about the form that follows, at whatever depth, and after a key
//! about its value, too; at the end of a line it is about what starts on that line. In a script the comment is
//! `-- deftool: allow(…)` and is about its line or the next. `(deflint :allow […] :deny […])` is about the whole
//! project; of a rule in both lists, `:deny` wins.
//!
//! Errors are never silenced: a tool with one is not sent. What is denied counts as an error for `check`
//! ([`LoadOptions::raises_denied`]) and leaves the tool valid. What is found wrong with all this has levels, too.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::discover::is_script;
use super::rules::{self, error_allowed, unknown_allow, unused_allow};
use super::{Load, LoadOptions};
use crate::diagnostic::{Diagnostic, Group, Rule, Severity};
use crate::spec::Lint;
use crate::syntax::{Kind, NodeId, Tree};
use crate::text::{Location, SourceId, Span, Spanned};

/// What is said of findings, until they are all there.
#[derive(Clone, Default)]
pub(super) struct Levels {
    pub(super) lints: Vec<Lint>,
    pub(super) allows: Vec<Allow>,
    /// Files that the load is not about, with the forms that it is about all the same, in order.
    pub(super) around: HashMap<SourceId, Vec<Span>>,
}

impl Levels {
    /// Whether the load is about what stands there.
    pub(super) fn is_about(&self, at: Location) -> bool {
        self.around.get(&at.source).is_none_or(|forms| {
            let begun = forms.partition_point(|form| form.start <= at.span.start);
            forms.get(..begun).and_then(<[Span]>::last).is_some_and(|form| at.span.end <= form.end)
        })
    }
}

/// One rule of one `allow(…)`.
#[derive(Clone, Debug)]
pub(super) struct Allow {
    source: SourceId,
    /// Its code or name, as it was written.
    word: Spanned<String>,
    /// Findings that start in it are meant.
    covers: Span,
    /// Whether it stands in a script.
    in_script: bool,
}

/// What the comments of one spec file say to deftool.
#[derive(Default)]
pub(super) struct Directives {
    pub(super) allows: Vec<Allow>,
    /// The forms that are not looked at, in order, none inside of another.
    skips: Vec<Skip>,
    /// What is wrong with them.
    pub(super) findings: Vec<Diagnostic>,
}

/// A form that is not looked at.
struct Skip {
    form: Span,
    comment: Span,
}

impl Directives {
    /// Whether `span` lies in a form that is not looked at.
    pub(super) fn skip(&self, span: Span) -> bool {
        let after = self.skips.partition_point(|skip| skip.form.start <= span.start);
        let before = after.checked_sub(1).and_then(|index| self.skips.get(index));
        before.is_some_and(|skip| span.end <= skip.form.end)
    }

    /// Takes back what would leave out a part of one of `forms`: a tool is left out whole or not at all.
    pub(super) fn keep_whole(&mut self, source: SourceId, mut forms: Vec<Span>) {
        forms.sort_unstable();
        let is_part = |skip: &Skip| {
            // No tool stands in another.
            let begun = forms.partition_point(|form| form.start <= skip.form.start);
            let form = forms.get(..begun).and_then(<[Span]>::last);
            form.is_some_and(|form| *form != skip.form && skip.form.end <= form.end)
        };
        for skip in self.skips.extract_if(.., |skip| is_part(skip)) {
            self.findings.push(unknown_allow::part_skipped(Location { source, span: skip.comment }));
        }
    }
}

/// The directives of one spec file.
pub(super) fn read_directives(source: SourceId, text: &str, tree: &Tree) -> Directives {
    let mut directives = Directives::default();
    let mut nodes = tree.iter().peekable();
    // What the last comment was about: many may stand before one form.
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

/// The form `node` and, where it is a key, what follows it in the same list.
fn form_at(tree: &Tree, text: &str, node: NodeId) -> Span {
    let span = tree.span(node);
    let value = tree.next(node).filter(|_| tree.kind(node) == Kind::Keyword).map(|value| tree.span(value));
    let is_beside = |value: &Span| {
        let between = text.get(span.end as usize..value.start as usize);
        between.is_some_and(|between| !between.contains([')', ']']))
    };
    value.filter(is_beside).map_or(span, |value| span.to(value))
}

/// The allows of a script, line by line, and what is wrong with them.
fn read_script_allows(source: SourceId, text: &str) -> (Vec<Allow>, Vec<Diagnostic>) {
    let (mut allows, mut findings): (Vec<Allow>, _) = (Vec::new(), Vec::new());
    // Allows that wait for the next line with code.
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
            // A script is checked as a whole or not at all.
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

/// Where the comment that ends a line of a script starts: behind what stands in quotes and long brackets.
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
                // It goes on in the lines that follow.
                Some(Bracketed::Open) => return None,
                None => 1,
            },
            [quote @ (b'"' | b'\'' | b'`'), inside @ ..] => match end_of_quoted(inside, *quote) {
                Some(end) => 1 + end,
                // A piece of a text of several lines, in which a quote may be an apostrophe.
                None => return line.find("--"),
            },
            _ => 1,
        };
    }
}

/// A text in long brackets, `[[` or `[==[`.
enum Bracketed {
    /// It ends on the line, after so many bytes.
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

/// After the quote that ends what starts with `inside`.
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

/// What a comment says to deftool.
enum Directive {
    /// `allow(…)`: the rules.
    Allow(Vec<Spanned<String>>),
    /// `skip`
    Skip,
    /// Something else.
    Unreadable,
}

/// The directive that a comment is; `None`: it is none.
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

/// The rules by code and by name.
fn by_word() -> HashMap<&'static str, &'static Rule> {
    rules::all().into_iter().flat_map(|rule| [(rule.code, rule), (rule.name, rule)]).collect()
}

/// The rule of this name or code, a code in whatever case.
fn rule_of(known: &HashMap<&'static str, &'static Rule>, word: &str) -> Option<&'static Rule> {
    known.get(word).or_else(|| known.get(word.to_ascii_uppercase().as_str())).copied()
}

/// Silences what is allowed, raises what is denied and tells of allows that are wrong.
pub(super) fn apply(load: &mut Load, mut levels: Levels, options: &LoadOptions) {
    let known = by_word();
    let (allows, wrong) = script_allows(load);
    levels.allows.extend(allows);
    load.findings.extend(wrong);
    load.sort_findings();
    let findings = std::mem::take(&mut load.findings);
    let (of_project, mut told) = OfProject::read(&levels.lints, &load.roots, &known);
    let mut sweep = Sweep::of(&levels.allows, &known);
    let is_kept = |finding: &Diagnostic, sweep: &mut Sweep| {
        !sweep.meets(&levels.allows, finding) && !of_project.silences(finding)
    };
    let mut kept: Vec<_> = findings.into_iter().filter(|finding| is_kept(finding, &mut sweep)).collect();
    let misread = Misread::of(&kept);
    told.extend(wrong_allows(&levels, &sweep, &known, &misread, options, false));
    told.retain(|finding| levels.is_about(finding.primary));
    told.sort_by_key(|finding| (finding.primary.source, finding.primary.span));
    sweep.restart();
    kept.extend(told.into_iter().filter(|finding| is_kept(finding, &mut sweep)));
    // Only now it is known whether there was an allow to tell of; no allow is told of because of itself.
    let told = wrong_allows(&levels, &sweep, &known, &misread, options, true);
    kept.extend(told.into_iter().filter(|told| levels.is_about(told.primary) && !of_project.silences(told)));
    if options.raises_denied {
        kept.iter_mut().filter(|finding| of_project.denies(finding)).for_each(|finding| {
            finding.severity = Severity::Error;
        });
    }
    load.findings = kept;
    load.sort_findings();
}

/// What the `deflint` forms say: rules by their codes, each of a project.
struct OfProject<'r> {
    roots: &'r HashMap<SourceId, Arc<Path>>,
    allowed: HashSet<(Option<&'r Path>, &'static str)>,
    denied: HashSet<(Option<&'r Path>, &'static str)>,
}

impl<'r> OfProject<'r> {
    /// With what is wrong with the forms.
    fn read(
        lints: &[Lint],
        roots: &'r HashMap<SourceId, Arc<Path>>,
        known: &HashMap<&'static str, &'static Rule>,
    ) -> (Self, Vec<Diagnostic>) {
        let mut of_project = Self { roots, allowed: HashSet::new(), denied: HashSet::new() };
        let mut told = Vec::new();
        for lint in lints {
            let root = roots.get(&lint.source).map(AsRef::as_ref);
            for (words, denies) in [(&lint.deny, true), (&lint.allow, false)] {
                for word in words {
                    let at = Location { source: lint.source, span: word.span };
                    match rule_of(known, &word.value) {
                        None => told.push(unknown_allow::finding(at, &word.value)),
                        Some(rule) if denies => drop(of_project.denied.insert((root, rule.code))),
                        Some(rule) if rule.severity == Severity::Error => {
                            told.push(error_allowed::finding(at, &word.value, None));
                        }
                        Some(rule) => drop(of_project.allowed.insert((root, rule.code))),
                    }
                }
            }
        }
        (of_project, told)
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

/// Where the reader stumbled: what it could not read hides what was allowed in it.
struct Misread(BTreeSet<(SourceId, u32)>);

impl Misread {
    fn of(findings: &[Diagnostic]) -> Self {
        let misread = findings.iter().filter(|finding| finding.rule.group() == Group::Reading);
        Self(misread.map(|finding| (finding.primary.source, finding.primary.span.start)).collect())
    }

    fn is_in(&self, allow: &Allow) -> bool {
        let Span { start, end } = allow.covers;
        self.0.range((allow.source, start)..(allow.source, end.max(start))).next().is_some()
    }
}

/// The findings of the allows whose rule is about allows, or of the others.
fn wrong_allows(
    levels: &Levels,
    sweep: &Sweep,
    known: &HashMap<&'static str, &'static Rule>,
    misread: &Misread,
    options: &LoadOptions,
    about_allows: bool,
) -> Vec<Diagnostic> {
    const ABOUT_ALLOWS: [&Rule; 3] =
        [&unknown_allow::UNKNOWN_ALLOW, &unused_allow::UNUSED_ALLOW, &error_allowed::ERROR_ALLOWED];
    let mut told = Vec::new();
    for (allow, met) in levels.allows.iter().zip(&sweep.met) {
        let at = Location { source: allow.source, span: allow.word.span };
        let word = &allow.word.value;
        let rule = rule_of(known, word);
        if rule.is_some_and(|rule| ABOUT_ALLOWS.contains(&rule)) != about_allows {
            continue;
        }
        let Some(rule) = rule else {
            told.push(unknown_allow::finding(at, word));
            continue;
        };
        // Findings of scripts and of targets are not part of every load.
        let is_looked_for = match rule.group() {
            Group::Targets => false,
            Group::Projects => options.with_scripts,
            Group::Reading | Group::Forms | Group::Arguments | Group::Workers | Group::Import => true,
        };
        match met {
            Met::Error(error) => told.push(error_allowed::finding(at, word, Some(*error))),
            Met::Nothing if is_looked_for && !allow.in_script && !misread.is_in(allow) => {
                told.push(unused_allow::finding(at, word));
            }
            Met::Nothing | Met::Silenced => {}
        }
    }
    told
}

/// The allows of the scripts that something was found in, and what is wrong with them.
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

/// What an allow met.
#[derive(Clone, Copy)]
enum Met {
    Nothing,
    Silenced,
    /// An error, which stays.
    Error(Location),
}

/// Findings and allows in step, both in source order: each finding is looked at once.
struct Sweep {
    /// Allows in the order of where they begin to count.
    order: Vec<usize>,
    next: usize,
    /// Those that have begun, by the code of their rule, innermost last.
    begun: HashMap<(SourceId, &'static str), Vec<usize>>,
    codes: Vec<Option<&'static str>>,
    met: Vec<Met>,
}

impl Sweep {
    fn of(allows: &[Allow], known: &HashMap<&'static str, &'static Rule>) -> Self {
        let codes: Vec<_> =
            allows.iter().map(|allow| rule_of(known, &allow.word.value).map(|rule| rule.code)).collect();
        let mut order: Vec<usize> = (0..allows.len()).collect();
        order.sort_by_key(|&index| allows.get(index).map(|allow| (allow.source, allow.covers.start)));
        Self { order, next: 0, begun: HashMap::new(), codes, met: vec![Met::Nothing; allows.len()] }
    }

    /// From now on the findings come in order from the first place again.
    fn restart(&mut self) {
        self.next = 0;
        self.begun.clear();
    }

    /// Whether `finding`, the next in order, is silenced.
    fn meets(&mut self, allows: &[Allow], finding: &Diagnostic) -> bool {
        let at = finding.primary;
        let place = (at.source, at.span.start);
        while let Some(&index) = self.order.get(self.next)
            && let Some(allow) = allows.get(index)
            && (allow.source, allow.covers.start) <= place
        {
            if let Some(code) = self.codes.get(index).copied().flatten() {
                self.begun.entry((allow.source, code)).or_default().push(index);
            }
            self.next += 1;
        }
        let Some(begun) = self.begun.get_mut(&(at.source, finding.rule.code)) else { return false };
        while let Some(&index) = begun.last() {
            if allows.get(index).is_some_and(|allow| at.span.start < allow.covers.end) {
                let is_error = finding.severity == Severity::Error;
                if let Some(met) = self.met.get_mut(index) {
                    *met = match *met {
                        Met::Error(first) => Met::Error(first),
                        Met::Nothing | Met::Silenced if is_error => Met::Error(at),
                        Met::Nothing | Met::Silenced => Met::Silenced,
                    };
                }
                return !is_error;
            }
            begun.pop();
        }
        false
    }
}
