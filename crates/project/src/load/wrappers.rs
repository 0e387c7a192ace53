//! Findings about functions and macros of Emacs Lisp that make tools and are not declared in `:tool-forms`.

use std::collections::{HashMap, HashSet};

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::spec::rules::{TOOLS_BY_CODE, made_by_code, undeclared_wrapper};
use deftool_lang::spec::{FileKind, ToolForms, Wrapper};
use deftool_lang::text::{Location, SourceId};

use crate::model::{Load, Scope};

/// Reports the wrappers that a checked file of their project calls like `gptel-make-tool`. The others are code that makes
/// tools, which is reported once per file.
pub(super) fn report_wrappers(load: &mut Load, wrappers: Vec<(SourceId, Wrapper)>) {
    let mut undeclared: HashMap<Scope, ToolForms> = HashMap::new();
    for (source, wrapper) in &wrappers {
        undeclared.entry(load.scope_of(*source)).or_default().add_wrapper(wrapper);
    }
    let mut used = HashSet::new();
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
    for (source, wrapper) in wrappers {
        let project = load.scope_of(source);
        if used.contains(&(project, wrapper.name.value.as_str())) {
            let at = Location { source, span: wrapper.name.span };
            let is_project = matches!(project, Scope::Project(_));
            load.findings.push(undeclared_wrapper(at, &wrapper, is_project));
        } else if noted.insert(source) {
            let at = Location { source, span: wrapper.function.span };
            load.findings.push(made_by_code(at, Some(&wrapper.function.value)));
        }
    }
}
