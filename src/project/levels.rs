//! What is silenced and what is raised, once every finding is there.
//!
//! `;; deftool: allow(rule, …)` on a line of its own is about the form that follows, at whatever depth, and after a key
//! about its value, too; at the end of a line it is about what starts on that line. In a script the comment is
//! `-- deftool: allow(…)` and is about its line or the next. `(deflint :allow […] :deny […])` is about the whole
//! project; of a rule in both lists, `:deny` wins.
//!
//! Errors are never silenced: a tool with one is not sent. What is denied counts as an error for `check`
//! ([`LoadOptions::raises_denied`]) and leaves the tool valid.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use super::rules::{self, error_allowed, unknown_allow, unused_allow};
use super::{Load, LoadOptions};
use crate::diagnostic::{Diagnostic, Rule, Severity};
use crate::spec::Lint;
use crate::syntax::{Kind, NodeId, Tree};
use crate::text::{Location, SourceId, Span, Spanned};

/// What is said of findings, until they are all there.
#[derive(Default)]
pub(super) struct Levels {
    pub(super) lints: Vec<Lint>,
    pub(super) allows: Vec<Allow>,
}

/// One rule of one `allow(…)`.
#[derive(Debug)]
pub(super) struct Allow {
    source: SourceId,
    /// Its code or name, as it was written.
    word: Spanned<String>,
    /// Findings that start in it are meant.
    covers: Span,
    /// Whether it stands in a script.
    in_script: bool,
}

/// The allows of one spec file, and what is wrong with them.
pub(super) fn read_allows(source: SourceId, text: &str, tree: &Tree) -> (Vec<Allow>, Vec<Diagnostic>) {
    let (mut allows, mut findings) = (Vec::new(), Vec::new());
    let mut nodes = tree.iter().peekable();
    for &comment in tree.comments() {
        let Some(words) = directive_in(text, comment, ';') else { continue };
        if words.is_empty() {
            findings.push(unknown_allow::unreadable(Location { source, span: comment }));
        }
        let covers = if is_own_line(text, comment) {
            while nodes.next_if(|&node| tree.span(node).start < comment.end).is_some() {}
            nodes.peek().map_or(Span::new(0, 0), |&node| form_at(tree, text, node))
        } else {
            line_of(text, comment)
        };
        allows.extend(words.into_iter().map(|word| Allow { source, word, covers, in_script: false }));
    }
    (allows, findings)
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

/// The allows of a script, line by line.
fn read_script_allows(source: SourceId, text: &str) -> Vec<Allow> {
    let mut allows: Vec<Allow> = Vec::new();
    // Allows that wait for the next line with code.
    let mut waiting = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let span = Span::new(start, start + line.len());
        start += line.len();
        let comment = line.find("--").map(|at| Span::new(span.start as usize + at, span.end as usize));
        let is_comment = line.trim_start().starts_with("--");
        if !is_comment && !line.trim().is_empty() {
            let first = allows.len() - waiting;
            allows.iter_mut().skip(first).for_each(|allow| allow.covers = span);
            waiting = 0;
        }
        let Some(words) = comment.and_then(|comment| directive_in(text, comment, '-')) else {
            continue;
        };
        waiting += if is_comment { words.len() } else { 0 };
        allows.extend(words.into_iter().map(|word| Allow { source, word, covers: span, in_script: true }));
    }
    allows
}

/// The rules that a comment allows; none: it is a directive that cannot be read. `None`: it is no directive.
fn directive_in(text: &str, comment: Span, mark: char) -> Option<Vec<Spanned<String>>> {
    let inside = comment.of(text).trim_start_matches(mark).trim_start();
    let rest = inside.strip_prefix("deftool:")?.trim_start();
    let list = rest.strip_prefix("allow").and_then(|rest| rest.trim_start().strip_prefix('('));
    let Some(list) = list.and_then(|list| list.split_once(')')).map(|(list, _)| list) else {
        return Some(Vec::new());
    };
    if list.trim().is_empty() {
        return Some(Vec::new());
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
    Some(words)
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

/// Rules by their codes, each of a project.
type OfProject = HashSet<(Option<PathBuf>, &'static str)>;

/// Silences what is allowed, raises what is denied and tells of allows that are wrong.
pub(super) fn apply(load: &mut Load, levels: Levels, options: &LoadOptions) {
    let Levels { lints, mut allows } = levels;
    let known = by_word();
    let mut told = Vec::new();
    let (mut allowed, mut denied) = (OfProject::new(), OfProject::new());
    for lint in &lints {
        let root = load.roots.get(&lint.source).cloned();
        for (words, denies) in [(&lint.deny, true), (&lint.allow, false)] {
            for word in words {
                let at = Location { source: lint.source, span: word.span };
                match rule_of(&known, &word.value) {
                    None => told.push(unknown_allow::finding(at, &word.value)),
                    Some(rule) if denies => drop(denied.insert((root.clone(), rule.code))),
                    Some(rule) if rule.severity == Severity::Error => {
                        told.push(error_allowed::finding(at, &word.value, None));
                    }
                    Some(rule) => drop(allowed.insert((root.clone(), rule.code))),
                }
            }
        }
    }
    allows.extend(script_allows(load));
    let mut state = Sweep::of(&allows, &known);
    load.sort_findings();
    let findings = std::mem::take(&mut load.findings);
    load.findings = findings
        .into_iter()
        .filter_map(|mut finding| {
            let root = load.roots.get(&finding.primary.source).cloned();
            let key = (root, finding.rule.code);
            let (is_allowed, is_denied) = (allowed.contains(&key), denied.contains(&key));
            let by_project = finding.severity != Severity::Error && is_allowed && !is_denied;
            if state.meets(&allows, &finding) || by_project {
                return None;
            }
            if is_denied && options.raises_denied {
                finding.severity = Severity::Error;
            }
            Some(finding)
        })
        .collect();
    // What the reader could not read hides what was allowed in it.
    let misread: BTreeSet<(SourceId, u32)> = load
        .findings
        .iter()
        .filter(|finding| finding.rule.code.starts_with("DT0"))
        .map(|finding| (finding.primary.source, finding.primary.span.start))
        .collect();
    let is_misread = |allow: &Allow| {
        let Span { start, end } = allow.covers;
        misread.range((allow.source, start)..(allow.source, end.max(start))).next().is_some()
    };
    for (allow, met) in allows.iter().zip(state.met) {
        let at = Location { source: allow.source, span: allow.word.span };
        let word = &allow.word.value;
        let Some(rule) = rule_of(&known, word) else {
            told.push(unknown_allow::finding(at, word));
            continue;
        };
        // Findings of scripts and of targets are not part of every load.
        let is_known = options.with_scripts || !rule.code.starts_with("DT4");
        match met {
            Met::Error(error) => told.push(error_allowed::finding(at, word, Some(error))),
            Met::Nothing if is_known && !allow.in_script && !rule.is_of_target() && !is_misread(allow) => {
                told.push(unused_allow::finding(at, word));
            }
            Met::Nothing | Met::Silenced => {}
        }
    }
    load.findings.append(&mut told);
    load.sort_findings();
}

/// The allows of the scripts that something was found in.
fn script_allows(load: &Load) -> Vec<Allow> {
    let sources: HashSet<SourceId> = load.findings.iter().map(|finding| finding.primary.source).collect();
    let scripts = sources.into_iter().filter_map(|source| {
        let file = load.sources.get(source)?;
        let extension = std::path::Path::new(&file.name).extension();
        let is_script = extension.is_some_and(|extension| extension == "lua" || extension == "luau");
        is_script.then(|| read_script_allows(source, &file.text))
    });
    scripts.flatten().collect()
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
