//! Findings about functions and macros of Emacs Lisp that make tools and are not declared in `:tool-forms`.

use std::collections::{HashMap, HashSet};

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::spec::rules::{TOOLS_BY_CODE, made_by_code, undeclared_wrapper};
use deftool_lang::spec::{FileKind, ToolForms, Wrapper};
use deftool_lang::text::{Location, SourceId};

use crate::model::{Load, Scope};

/// Reports the wrappers that a checked file of their project calls like `gptel-make-tool`. The others are code that makes
/// tools, which is reported once per file.
pub(super) fn report_wrappers(load: &mut Load, wrappers: &[(SourceId, Wrapper)]) {
    let mut undeclared: HashMap<Scope, ToolForms> = HashMap::new();
    let mut used = HashSet::new();
    for (source, wrapper) in wrappers.iter().filter(|(_, wrapper)| !wrapper.is_declared) {
        let project = load.scope_of(*source);
        undeclared.entry(project).or_default().add_wrapper(wrapper);
        used.extend(wrapper.is_applied.then_some((project, wrapper.name.value.as_str())));
    }
    for &source in load.checked.iter().filter(|_| !wrappers.is_empty()) {
        let project = load.scope_of(source);
        if let (Some(forms), Some(file)) = (undeclared.get(&project), load.sources.get(source)) {
            let heads = forms.used_in(source, &file.text, FileKind::of_name(&file.name));
            used.extend(heads.into_iter().map(|head| (project, head)));
        }
    }
    let findings = std::mem::take(&mut load.findings);
    // A call of such a wrapper is the same cause.
    let is_call = |finding: &Diagnostic| {
        let Location { source, span } = finding.primary;
        *finding.rule == TOOLS_BY_CODE
            && load
                .sources
                .get(source)
                .is_some_and(|file| used.contains(&(load.scope_of(source), span.of(&file.text))))
    };
    load.findings = findings.into_iter().filter(|finding| !is_call(finding)).collect();
    let of_code = load.findings.iter().filter(|finding| *finding.rule == TOOLS_BY_CODE);
    let mut noted: HashSet<SourceId> = of_code.map(|finding| finding.primary.source).collect();
    let called = called_by_others(load, wrappers, &used);
    let mut reported = HashSet::new();
    for (source, wrapper) in wrappers.iter().filter(|(_, wrapper)| !wrapper.is_declared) {
        let (source, project) = (*source, load.scope_of(*source));
        let name = (project, wrapper.name.value.as_str());
        if used.contains(&name) {
            if reported.insert(name) {
                let at = Location { source, span: wrapper.name.span };
                load.findings.push(undeclared_wrapper(at, wrapper, matches!(project, Scope::Project(_))));
            }
            continue;
        }
        let is_covered = called.contains(&name) || used.contains(&(project, wrapper.function.value.as_str()));
        if !is_covered && noted.insert(source) {
            let at = Location { source, span: wrapper.function.span };
            load.findings.push(made_by_code(at, Some(&wrapper.function.value)));
        }
    }
}

/// The name of a function in a project.
type Name<'w> = (Scope, &'w str);

/// Returns the functions that a declared or used wrapper calls, directly or through others. Their tools are in the calls of
/// that wrapper.
fn called_by_others<'w>(
    load: &Load,
    wrappers: &'w [(SourceId, Wrapper)],
    used: &HashSet<Name<'_>>,
) -> HashSet<Name<'w>> {
    let mut called = HashSet::new();
    loop {
        let known = called.len();
        for (source, wrapper) in wrappers {
            let project = load.scope_of(*source);
            let name = (project, wrapper.name.value.as_str());
            if wrapper.is_declared || used.contains(&name) || called.contains(&name) {
                called.insert((project, wrapper.function.value.as_str()));
            }
        }
        if called.len() == known {
            return called;
        }
    }
}
