//! Severity levels: silences and raises findings after all checks.
//!
//! `allow` comments (`directives`) apply to one form or line. `(defproject :allow […] :deny […])` applies to the whole
//! project. If a rule is in both lists, `:deny` wins.
//!
//! Errors cannot be silenced, because a tool with an error is not sent. A denied finding counts as an error in `check`
//! ([`LoadOptions::raises_denied`]), but the tool stays valid. Findings about directives have levels, too.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::{Diagnostic, Group, Rule, Severity};
use deftool_lang::spec::rules::preview_form;
use deftool_lang::spec::{ASKS_PREVIEW, DIALECTS_PREVIEW, ProjectSettings};
use deftool_lang::text::{Location, SourceId, Span, Spanned};

use super::directives::{Allow, read_script_allows};
use crate::model::{Load, LoadOptions};
use crate::paths::is_script;
use crate::rules::{self, invalid_allow, unused_allow};

/// The directives that apply to a load's findings.
#[derive(Clone, Default)]
pub(super) struct Levels {
    pub(super) settings: Vec<ProjectSettings>,
    pub(super) allows: Vec<Allow>,
    /// The files that are read only for context, each with the forms in it that the load reports on, in order.
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

/// Silences allowed findings, raises denied ones and reports invalid or unused allows.
pub(super) fn apply(load: &mut Load, mut levels: Levels, options: &LoadOptions) {
    let known = by_word();
    let (allows, wrong) = script_allows(load);
    levels.allows.extend(allows);
    load.findings.extend(wrong);
    load.previews = previews(&levels.settings, &load.roots);
    load.settings = Arc::from(levels.settings.as_slice());
    let unannounced = preview_uses(load).into_iter().filter(|(at, _, preview)| {
        let root = load.roots.get(&at.source).cloned();
        levels.is_in_scope(*at) && !load.previews.contains(&(root, (*preview).to_owned()))
    });
    let unannounced: Vec<_> =
        unannounced.map(|(at, name, preview)| preview_form(at, name, preview)).collect();
    load.findings.extend(unannounced);
    load.sort_findings();
    let findings = std::mem::take(&mut load.findings);
    let (project_levels, mut directive_findings) = ProjectLevels::read(&levels.settings, &load.roots, &known);
    let mut matcher = AllowMatcher::of(&levels.allows, &known);
    let is_kept = |finding: &Diagnostic, matcher: &mut AllowMatcher| {
        !matcher.silences_by_comment(&levels.allows, finding) && !project_levels.silences(finding)
    };
    let mut kept: Vec<_> = findings.into_iter().filter(|finding| is_kept(finding, &mut matcher)).collect();
    let read_errors = ReadErrors::of(&kept);
    directive_findings.extend(allow_findings(&levels, &matcher, &known, &read_errors, options, false));
    directive_findings.retain(|finding| levels.is_in_scope(finding.primary));
    directive_findings.sort_by_key(|finding| (finding.primary.source, finding.primary.span));
    matcher.restart();
    kept.extend(directive_findings.into_iter().filter(|finding| is_kept(finding, &mut matcher)));
    // Allows of rules about allows come last, because these rules were checked only now. An allow does not apply to
    // itself.
    let directive_findings = allow_findings(&levels, &matcher, &known, &read_errors, options, true);
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

/// Applies the levels of the project in `root`, which `load` read, to findings in a script that are not in the load.
pub(super) fn apply_to_script(
    load: &Load,
    root: &Path,
    text: &str,
    mut findings: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let Some(source) = findings.first().map(|finding| finding.primary.source) else { return findings };
    let known = by_word();
    let (allows, _) = read_script_allows(source, text);
    let mut matcher = AllowMatcher::of(&allows, &known);
    let settings = || load.settings.iter().filter(|settings| load.root_of(settings.source) == Some(root));
    let names = |words: &[Spanned<String>], finding: &Diagnostic| {
        words
            .iter()
            .any(|word| rule_of(&known, &word.value).is_some_and(|rule| rule.code == finding.rule.code))
    };
    findings.sort_by_key(|finding| finding.primary.span);
    findings.retain_mut(|finding| {
        if matcher.silences_by_comment(&allows, finding) {
            return false;
        }
        if settings().any(|settings| names(&settings.deny, finding)) {
            finding.severity = Severity::Error;
            return true;
        }
        !settings().any(|settings| names(&settings.allow, finding))
    });
    findings
}

/// Returns the dialects and the first ask of each file, with what is written there and the preview feature.
fn preview_uses(load: &Load) -> Vec<(Location, &'static str, &'static str)> {
    let dialects = load.dialects.iter().map(|dialect| {
        let at = Location { source: dialect.source, span: dialect.name.span };
        (at, "defdialect", DIALECTS_PREVIEW)
    });
    let of_tools = load.tools.iter().filter_map(|loaded| Some((loaded.tool.asks.first()?, ":asks")));
    let asks = of_tools.chain(load.project_asks.iter().map(|loaded| (&loaded.ask, "defask")));
    let mut first: BTreeMap<SourceId, (Span, &'static str)> = BTreeMap::new();
    for (ask, name) in asks {
        let here = (ask.prompt.span, name);
        first.entry(ask.source).and_modify(|known| *known = here.min(*known)).or_insert(here);
    }
    let asks =
        first.into_iter().map(|(source, (span, name))| (Location { source, span }, name, ASKS_PREVIEW));
    dialects.chain(asks).collect()
}

/// Returns the preview features that each project enables.
fn previews(
    settings: &[ProjectSettings],
    roots: &HashMap<SourceId, Arc<Path>>,
) -> HashSet<(Option<Arc<Path>>, String)> {
    let enabled = settings.iter().flat_map(|of_file| {
        let root = roots.get(&of_file.source).cloned();
        of_file.previews.iter().map(move |name| (root.clone(), name.clone()))
    });
    enabled.collect()
}

/// Returns the rules by code and by name.
fn by_word() -> HashMap<&'static str, &'static Rule> {
    rules::all().into_iter().flat_map(|rule| [(rule.code, rule), (rule.name, rule)]).collect()
}

/// Returns the rule with this name or code. Codes are case-insensitive.
fn rule_of(known: &HashMap<&'static str, &'static Rule>, word: &str) -> Option<&'static Rule> {
    known.get(word).or_else(|| known.get(word.to_ascii_uppercase().as_str())).copied()
}

/// The rules in `defproject` forms, by project and rule code.
struct ProjectLevels<'r> {
    roots: &'r HashMap<SourceId, Arc<Path>>,
    allowed: HashSet<(Option<&'r Path>, &'static str)>,
    denied: HashSet<(Option<&'r Path>, &'static str)>,
}

impl<'r> ProjectLevels<'r> {
    /// Reads the forms. Also returns findings about unknown or invalid rules.
    fn read(
        settings: &[ProjectSettings],
        roots: &'r HashMap<SourceId, Arc<Path>>,
        known: &HashMap<&'static str, &'static Rule>,
    ) -> (Self, Vec<Diagnostic>) {
        let mut project_levels = Self { roots, allowed: HashSet::new(), denied: HashSet::new() };
        let mut directive_findings = Vec::new();
        for settings in settings {
            let root = roots.get(&settings.source).map(AsRef::as_ref);
            for (words, denies) in [(&settings.deny, true), (&settings.allow, false)] {
                for word in words {
                    let at = Location { source: settings.source, span: word.span };
                    match rule_of(known, &word.value) {
                        None => directive_findings.push(invalid_allow::finding(at, &word.value)),
                        Some(rule) if denies => drop(project_levels.denied.insert((root, rule.code))),
                        Some(rule) if rule.severity == Severity::Error => {
                            directive_findings.push(invalid_allow::of_error(at, &word.value, None));
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

/// Returns the findings about invalid and unused allows: those that name a rule about allows if `about_allows` is set,
/// otherwise all others.
fn allow_findings(
    levels: &Levels,
    matcher: &AllowMatcher,
    known: &HashMap<&'static str, &'static Rule>,
    read_errors: &ReadErrors,
    options: &LoadOptions,
    about_allows: bool,
) -> Vec<Diagnostic> {
    const ABOUT_ALLOWS: [&Rule; 2] = [&invalid_allow::INVALID_ALLOW, &unused_allow::UNUSED_ALLOW];
    let mut directive_findings = Vec::new();
    for (allow, matched) in levels.allows.iter().zip(&matcher.matched) {
        let at = Location { source: allow.source, span: allow.word.span };
        let word = &allow.word.value;
        let rule = rule_of(known, word);
        if rule.is_some_and(|rule| ABOUT_ALLOWS.contains(&rule)) != about_allows {
            continue;
        }
        let Some(rule) = rule else {
            directive_findings.push(invalid_allow::finding(at, word));
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
                directive_findings.push(invalid_allow::of_error(at, word, Some(*error)));
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

/// A matcher of findings and allows. It works in one pass: both are in source order.
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
        let start = (at.source, at.span.start);
        while let Some(&index) = self.order.get(self.next)
            && let Some(allow) = allows.get(index)
            && (allow.source, allow.covers.start) <= start
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
