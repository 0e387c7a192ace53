//! Findings about the scripts of tools, in the order of the tools. A problem in a shared file is reported once.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::spec::Tool;
use deftool_lang::text::{Location, SourceFile, SourceId, Span};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use deftool_script::{Contract, LoadError, Returned, Script};

use super::contracts::{ContractReporter, report_exit_tools};
use super::file::script_candidates;
use super::loose::report_loose;
use super::unused::UnusedScripts;
use crate::load::cache::Cache;
use crate::load::model::{CachedTool, ModuleFault, ModuleProblem, ScriptLocation, ScriptLookup};
use crate::model::{Load, ScriptState};
use crate::paths::display_name;
use crate::rules;

/// A reporter of findings about the scripts of all tools.
pub(super) struct ScriptReporter<'f> {
    from: &'f Path,
    unused: UnusedScripts,
    /// Spec files for which a tool implemented in Emacs Lisp was reported.
    reported_elisp: HashSet<SourceId>,
    /// Reported files by name.
    files: HashMap<String, ReportedFile>,
    contracts: ContractReporter,
    /// The number of findings that were suppressed because they were already reported for another tool.
    suppressed: usize,
}

impl<'f> ScriptReporter<'f> {
    /// Creates a reporter. File names in messages are relative to `from`.
    pub(super) fn new(unused: UnusedScripts, from: &'f Path) -> Self {
        Self {
            from,
            unused,
            reported_elisp: HashSet::new(),
            files: HashMap::new(),
            contracts: ContractReporter::default(),
            suppressed: 0,
        }
    }

    /// Returns how many findings were suppressed because another tool already reported them. The affected tools must be
    /// checked again when that other tool changes.
    fn suppressed(&self) -> usize {
        self.suppressed + self.contracts.suppressed
    }

    /// Reports the findings of a tool and returns the state of its script. Must be called in the order of the tools.
    pub(super) fn report(&mut self, load: &mut Load, cached: &mut CachedTool) -> ScriptState {
        if cached.is_clean
            && let ScriptLookup::Read(_, script) | ScriptLookup::Command(script) = &cached.lookup
        {
            return ScriptState::Ready(Arc::clone(script));
        }
        let before = load.findings.len() + self.suppressed();
        let state =
            self.report_lookup(load, &cached.tool, &cached.root, &cached.lookup, &cached.unit.problems);
        let has_findings = load.findings.len() + self.suppressed() != before;
        cached.is_clean = !has_findings && matches!(state, ScriptState::Ready(_));
        state
    }

    fn report_lookup(
        &mut self,
        load: &mut Load,
        tool: &Tool,
        root: &Path,
        lookup: &ScriptLookup,
        problems: &[ModuleProblem],
    ) -> ScriptState {
        let result = match lookup {
            ScriptLookup::Missing => Err(self.report_missing(load, tool, root)),
            ScriptLookup::Unreadable(found, error) => {
                self.report_twin(load, tool, found);
                Err(self.report_unreadable(load, tool, found, error))
            }
            ScriptLookup::Command(script) => {
                ContractReporter::report_command(load, tool);
                Ok(script)
            }
            ScriptLookup::Read(found, script) => {
                self.report_twin(load, tool, found);
                let result = match script.contract() {
                    Err(problem) => Err(self.report_problem(load, tool, script, problem)),
                    Ok(contract) => self.report_contract(load, tool, script, contract).inspect(|()| {
                        let files = &mut self.files;
                        self.contracts.report(load, tool, script, contract, |load, name, text| {
                            file_of(files, name).source(load, name, text, tool.source)
                        });
                    }),
                };
                let modules = self.report_modules(load, tool, problems);
                result.and(modules).map(|()| script)
            }
        };
        match result {
            Ok(script) => ScriptState::Ready(Arc::clone(script)),
            Err(error) => ScriptState::Broken(error),
        }
    }

    /// Reports unused scripts. Must be called after all tools were reported.
    pub(super) fn finish(self, cache: &Cache, load: &mut Load) {
        for root in self.unused.roots() {
            let is_reported = |name: &str| self.files.get(name).is_some_and(|file| file.is_broken);
            report_loose(cache, load, root, self.from, is_reported);
        }
        self.unused.report(cache, load, self.from);
        report_exit_tools(cache, load, self.from);
    }

    fn report_missing(&mut self, load: &mut Load, tool: &Tool, root: &Path) -> ToolError {
        let near = self.unused.take_near(root, tool);
        let name = &tool.name.value;
        let expected_path = script_candidates(root, tool);
        let expected_path =
            expected_path.first().map_or_else(String::new, |path| display_name(path, self.from));
        let message = format!("missing script of `{name}`: {expected_path} does not exist");
        let span = tool.script.as_ref().map_or(tool.name.span, |script| script.span);
        let location = Location { source: tool.source, span };
        if tool.function.is_some() {
            // Report once per file: an Emacs configuration may define many tools.
            if self.reported_elisp.insert(tool.source) {
                load.findings.push(rules::emacs_lisp_only::finding(location, name, &expected_path));
            } else {
                self.suppressed += 1;
            }
        } else {
            let is_named = tool.script.is_some();
            // A path in a spec is relative to the project.
            let near = near.map(|near| display_name(&near, if is_named { root } else { self.from }));
            let finding = rules::missing_script::finding(location, &message, near.as_deref(), is_named);
            load.findings.push(finding);
        }
        ToolError::new(ToolErrorKind::Load, message)
    }

    fn report_twin(&self, load: &mut Load, tool: &Tool, found: &ScriptLocation) {
        if let Some(twin) = &found.twin {
            let (used, other) = (display_name(&found.path, self.from), display_name(twin, self.from));
            let finding = rules::twin_scripts::finding(name_of(tool), &tool.name.value, &used, &other);
            load.findings.push(finding);
        }
    }

    fn report_unreadable(
        &self,
        load: &mut Load,
        tool: &Tool,
        found: &ScriptLocation,
        error: &str,
    ) -> ToolError {
        let file = display_name(&found.path, self.from);
        let message = format!("cannot read the script of `{}`: {file}: {error}", tool.name.value);
        load.findings.push(rules::unreadable::finding(name_of(tool), &message));
        ToolError::new(ToolErrorKind::Load, message)
    }

    fn report_problem(
        &mut self,
        load: &mut Load,
        tool: &Tool,
        script: &Script,
        problem: &LoadError,
    ) -> ToolError {
        let file = file_of(&mut self.files, &script.file);
        if std::mem::replace(&mut file.is_broken, true) {
            self.suppressed += 1;
        } else {
            let at = file.line_location(load, script, tool.source, problem.line.unwrap_or(1));
            load.findings.push(rules::script_does_not_compile::finding(at, &script.tool, &problem.message));
        }
        ToolError::new(ToolErrorKind::Load, problem.to_string())
    }

    fn report_contract(
        &mut self,
        load: &mut Load,
        tool: &Tool,
        script: &Script,
        contract: &Contract,
    ) -> Result<(), ToolError> {
        let mut line_location = |load: &mut Load, line: usize| {
            file_of(&mut self.files, &script.file).line_location(load, script, tool.source, line)
        };
        let (line, finding) = match &contract.returned {
            Returned::Unknown => return Ok(()),
            Returned::NoFunction(what) => {
                let at = line_location(load, 1);
                (1, rules::script_without_function::finding(at, &script.tool, what))
            }
            Returned::Function { parameters, is_vararg, line } => {
                let mut expected: Vec<&str> = tool.arguments.iter().map(|a| a.name.value.as_str()).collect();
                if tool.is_async {
                    expected.insert(0, "callback");
                }
                if parameters.len() == expected.len() || (*is_vararg && parameters.len() < expected.len()) {
                    let nowhere = Location { source: tool.source, span: Span::default() };
                    let swapped =
                        rules::swapped_parameters::check(nowhere, &script.tool, parameters, &expected);
                    let named = swapped.or_else(|| {
                        rules::parameter_name::check(nowhere, &script.tool, parameters, &expected)
                    });
                    if let Some(finding) = named {
                        let primary = line_location(load, *line);
                        load.findings.push(Diagnostic { primary, ..finding });
                    }
                    return Ok(());
                }
                let at = line_location(load, *line);
                let found = parameters.len();
                (*line, rules::script_arity::finding(at, &script.tool, found, &expected, tool.is_async))
            }
        };
        let error = format!("{}:{line}: {}", script.file, finding.message);
        load.findings.push(finding);
        Err(ToolError::new(ToolErrorKind::Load, error))
    }

    /// Reports module problems. Each problem of a shared file is reported once.
    fn report_modules(
        &mut self,
        load: &mut Load,
        tool: &Tool,
        problems: &[ModuleProblem],
    ) -> Result<(), ToolError> {
        let mut first_error = Ok(());
        for ModuleProblem { file, line, fault } in problems {
            let script = &file.script;
            let entry = file_of(&mut self.files, &script.file);
            let is_reported = match fault {
                ModuleFault::Broken(_) | ModuleFault::NoValue => {
                    std::mem::replace(&mut entry.is_broken, true)
                }
                ModuleFault::Missing { .. }
                | ModuleFault::TooMany(_)
                | ModuleFault::Cycle(_)
                | ModuleFault::Computed => !entry.lines.insert(*line),
            };
            let at = entry.line_location(load, script, tool.source, *line);
            let finding = match fault {
                ModuleFault::Missing { path, advice } => rules::missing_module::finding(at, path, advice),
                ModuleFault::TooMany(path) => rules::missing_module::too_many(at, path),
                ModuleFault::Broken(problem) => rules::module_does_not_compile::finding(at, &problem.message),
                ModuleFault::NoValue => rules::module_without_value::finding(at),
                ModuleFault::Cycle(files) => rules::circular_require::finding(at, files),
                ModuleFault::Computed => rules::computed_require::finding(at),
            };
            if finding.severity == Severity::Error && first_error.is_ok() {
                let error = format!("{}:{line}: {}", script.file, finding.message);
                first_error = Err(ToolError::new(ToolErrorKind::Load, error));
            }
            if is_reported {
                self.suppressed += 1;
            } else {
                load.findings.push(finding);
            }
        }
        first_error
    }
}

/// A script or module with findings.
#[derive(Default)]
struct ReportedFile {
    /// Its source id.
    source: Option<SourceId>,
    /// Whether it was reported as not compiling. That is the same for all tools.
    is_broken: bool,
    /// The lines with reported `require` calls. They are the same for all tools.
    lines: HashSet<usize>,
}

fn name_of(tool: &Tool) -> Location {
    Location { source: tool.source, span: tool.name.span }
}

impl ReportedFile {
    /// Returns the location of a line of the script.
    fn line_location(&mut self, load: &mut Load, script: &Script, spec: SourceId, line: usize) -> Location {
        let source = self.source(load, &script.file, &script.source, spec);
        load.line_location(source, line)
    }

    /// Returns the file's source id. Adds the file to the sources of the project of `spec` on first use.
    fn source(&mut self, load: &mut Load, name: &str, text: &[u8], spec: SourceId) -> SourceId {
        let root = load.roots.get(&spec).cloned();
        match self.source {
            Some(source) => {
                load.set_root(source, root.as_ref());
                source
            }
            None => {
                let file = SourceFile::new(name, String::from_utf8_lossy(text).into_owned());
                *self.source.insert(load.add_source(file, root.as_ref()))
            }
        }
    }
}

fn file_of<'f>(files: &'f mut HashMap<String, ReportedFile>, name: &str) -> &'f mut ReportedFile {
    files.entry(name.to_owned()).or_default()
}
