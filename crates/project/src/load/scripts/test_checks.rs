//! Checks of test scripts against the tools of their project: unknown globals, tools and arguments. No test is run.

use std::collections::HashMap;
use std::path::Path;

use deftool_lang::diagnostic::{Diagnostic, Group, Severity};
use deftool_lang::spec::rules::unknown_name;
use deftool_lang::spec::{Tool, ToolKind};
use deftool_lang::text::{Location, SourceId};
use deftool_script::{ArgumentKey, Contract, GlobalAccess, GlobalUse, LoadedName, is_known_test_global};

use super::contracts::{location_of, mistakes};
use crate::load::model::ScriptFile;
use crate::model::Load;
use crate::rules::{unknown_global, unknown_test_argument};

/// The tools of a project that its tests may load.
pub(super) struct TestedTools<'l> {
    /// The first tool of each name.
    tools: HashMap<&'l str, &'l Tool>,
    /// The names of the tools that have scripts.
    callable: Vec<&'l str>,
    /// Whether these are all tools: no error hides a form.
    are_all: bool,
    /// The source of the findings, until their file is added to the load.
    source: SourceId,
}

/// The mistakes in a test script.
pub(super) struct TestMistakes {
    globals: Vec<GlobalUse>,
    findings: Vec<Diagnostic>,
}

impl<'l> TestedTools<'l> {
    pub(super) fn of(load: &'l Load, root: &Path) -> Self {
        let is_here = |source: SourceId| load.root_of(source) == Some(root);
        let (mut tools, mut callable) = (HashMap::new(), Vec::new());
        for loaded in load.tools.iter().filter(|loaded| is_here(loaded.tool.source)) {
            let name = loaded.tool.name.value.as_str();
            tools.entry(name).or_insert(&*loaded.tool);
            callable.extend((loaded.tool.kind == ToolKind::Normal).then_some(name));
        }
        let hides = load.findings.iter().any(|finding| {
            finding.severity == Severity::Error
                && matches!(finding.rule.group(), Group::Reading | Group::Forms)
                && is_here(finding.primary.source)
        });
        Self { tools, callable, are_all: !hides, source: load.sources.id_ahead(0) }
    }

    /// Checks a test script that compiles.
    pub(super) fn check(&self, file: &ScriptFile, contract: &Contract) -> TestMistakes {
        let mut globals = mistakes(&contract.globals, is_known_test_global);
        // Each test has its own environment, so an assigned global does not affect others.
        globals.retain(|used| used.access == GlobalAccess::Read);
        let uses = file.test_uses();
        let loads = uses.loads.iter().filter(|load| !load.may_fail);
        let keys = uses.keys.iter().filter(|key| !key.may_fail);
        let mut findings: Vec<_> = loads.filter_map(|load| self.check_load(load)).collect();
        findings.extend(keys.filter_map(|key| self.check_key(key)));
        TestMistakes { globals, findings }
    }

    fn check_load(&self, load: &LoadedName) -> Option<Diagnostic> {
        let at = Location { source: self.source, span: load.span };
        match self.tools.get(load.name.as_str()) {
            Some(tool) => (tool.kind == ToolKind::Exit).then(|| {
                let message = format!("`{}` is an exit tool and cannot be called", load.name);
                unknown_name(at, message, "", [], str::to_owned).note("exit tools have no script to test")
            }),
            None => self.are_all.then(|| {
                let message = format!("unknown tool `{}`", load.name);
                unknown_name(at, message, &load.name, self.callable.iter().copied(), str::to_owned)
            }),
        }
    }

    fn check_key(&self, key: &ArgumentKey) -> Option<Diagnostic> {
        let tool = self.tools.get(key.tool.as_str())?;
        let known: Vec<&str> = tool.arguments.iter().map(|argument| argument.name.value.as_str()).collect();
        let is_wrong = tool.valid && tool.kind == ToolKind::Normal && !known.contains(&key.name.as_str());
        let at = Location { source: self.source, span: key.span };
        is_wrong.then(|| unknown_test_argument::finding(at, key, &known))
    }
}

impl TestMistakes {
    pub(super) fn is_empty(&self) -> bool {
        self.globals.is_empty() && self.findings.is_empty()
    }

    /// Reports the mistakes. `source`: the test script.
    pub(super) fn report(self, load: &mut Load, source: SourceId) {
        for used in self.globals {
            let at = location_of(load, source, &used);
            load.findings.push(unknown_global::finding(at, &used.path, true));
        }
        load.findings.extend(self.findings.into_iter().map(|finding| {
            let primary = Location { source, ..finding.primary };
            Diagnostic { primary, ..finding }
        }));
    }
}
