//! What is said of the scripts of tools, once all were looked at: in the order of the tools, and once where several tools
//! share a file.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::Load;
use super::cache::Cache;
use super::contract_findings::{ContractTeller, tell_exit_tools};
use super::load::ScriptState;
use super::look::Looks;
use super::modules::{ModuleFault, ModuleProblem};
use super::read::display_name;
use super::scripts::{Examined, Found, KeptTool, script_places};
use super::spare::SpareScripts;
use crate::diagnostic::{Diagnostic, Severity};
use crate::project::rules;
use crate::script::{Contract, LoadProblem, Returned, Script};
use crate::spec::Tool;
use crate::text::{Location, SourceFile, SourceId, Span};
use crate::tool::{ToolError, ToolErrorKind};

pub(super) struct Teller<'f> {
    from: &'f Path,
    spare: SpareScripts,
    /// The files of which one tool that is implemented in Emacs Lisp was told.
    told_elisp: HashSet<SourceId>,
    /// By their names.
    files: HashMap<String, ToldFile>,
    contracts: ContractTeller,
    /// How many times something was not told because it was before.
    withheld: usize,
}

/// A script file or module that something was said about.
#[derive(Default)]
struct ToldFile {
    /// Its number among the sources.
    source: Option<SourceId>,
    /// Whether it was told that it does not compile, which is the same for every tool.
    is_broken: bool,
    /// The lines of which it was told what is wrong with what they require, likewise.
    lines: HashSet<usize>,
}

impl<'f> Teller<'f> {
    /// Names in messages are relative to `from`.
    pub(super) fn new(
        load: &Load,
        tools: &[Option<KeptTool>],
        whole: &HashSet<&Path>,
        looks: &Looks,
        from: &'f Path,
    ) -> Self {
        let spare = SpareScripts::of(load, tools, whole, looks);
        Self {
            from,
            spare,
            told_elisp: HashSet::new(),
            files: HashMap::new(),
            contracts: ContractTeller::default(),
            withheld: 0,
        }
    }

    /// How many times something was not told of a tool because it was told of one before: who is to be asked again when
    /// that one no longer says it.
    pub(super) fn withheld(&self) -> usize {
        self.withheld + self.contracts.withheld
    }

    /// Of the tools in order.
    pub(super) fn tell(
        &mut self,
        load: &mut Load,
        tool: &Tool,
        root: &Path,
        examined: &Examined,
        problems: &[ModuleProblem],
    ) -> ScriptState {
        let told = match examined {
            Examined::Missing => Err(self.tell_missing(load, tool, root)),
            Examined::Unreadable(found, error) => {
                self.tell_twin(load, tool, found);
                Err(self.tell_unreadable(load, tool, found, error))
            }
            Examined::Read(found, script, contract) => {
                self.tell_twin(load, tool, found);
                let told = match contract {
                    Err(problem) => Err(self.tell_problem(load, tool, script, problem)),
                    Ok(contract) => self.tell_contract(load, tool, script, contract).inspect(|()| {
                        let files = &mut self.files;
                        self.contracts.tell(load, tool, script, contract, |load, name, text| {
                            file_of(files, name).source(load, name, text, tool.source)
                        });
                    }),
                };
                let modules = self.tell_modules(load, tool, problems);
                told.and(modules).map(|()| script)
            }
        };
        match told {
            Ok(script) => ScriptState::Ready(Arc::clone(script)),
            Err(error) => ScriptState::Broken(error),
        }
    }

    /// Of the scripts that no tool runs, once all tools were told of.
    pub(super) fn finish(self, cache: &Cache, load: &mut Load) {
        self.spare.tell(load, self.from);
        tell_exit_tools(cache, load, self.from);
    }

    fn tell_missing(&mut self, load: &mut Load, tool: &Tool, root: &Path) -> ToolError {
        let near = self.spare.take_near(root, tool);
        let name = &tool.name.value;
        let wanted = script_places(root, tool);
        let wanted = wanted.first().map_or_else(String::new, |path| display_name(path, self.from));
        let message = format!("`{name}` has no script: {wanted} is not there");
        let span = tool.script.as_ref().map_or(tool.name.span, |script| script.span);
        let location = Location { source: tool.source, span };
        if tool.has_function {
            // People check their Emacs configuration: a page of these would hide what is wrong in it.
            if self.told_elisp.insert(tool.source) {
                load.findings.push(rules::emacs_lisp_only::finding(location, name, &wanted));
            } else {
                self.withheld += 1;
            }
        } else {
            let is_named = tool.script.is_some();
            // Named in the spec, a path is relative to the project; elsewhere as the user sees it.
            let near = near.map(|near| display_name(&near, if is_named { root } else { self.from }));
            let finding = rules::missing_script::finding(location, &message, near.as_deref(), is_named);
            load.findings.push(finding);
        }
        ToolError::new(ToolErrorKind::Load, message)
    }

    fn tell_twin(&self, load: &mut Load, tool: &Tool, found: &Found) {
        if let Some(twin) = &found.twin {
            let (used, other) = (display_name(&found.path, self.from), display_name(twin, self.from));
            let finding = rules::twin_scripts::finding(name_of(tool), &tool.name.value, &used, &other);
            load.findings.push(finding);
        }
    }

    fn tell_unreadable(&self, load: &mut Load, tool: &Tool, found: &Found, error: &str) -> ToolError {
        let file = display_name(&found.path, self.from);
        let message = format!("the script of `{}` cannot be read: {file}: {error}", tool.name.value);
        load.findings.push(rules::unreadable::finding(name_of(tool), &message));
        ToolError::new(ToolErrorKind::Load, message)
    }

    fn tell_problem(
        &mut self,
        load: &mut Load,
        tool: &Tool,
        script: &Script,
        problem: &LoadProblem,
    ) -> ToolError {
        let file = file_of(&mut self.files, &script.file);
        if std::mem::replace(&mut file.is_broken, true) {
            self.withheld += 1;
        } else {
            let at = file.place(load, script, tool.source, problem.line.unwrap_or(1));
            load.findings.push(rules::script_does_not_compile::finding(at, &script.tool, &problem.message));
        }
        ToolError::new(ToolErrorKind::Load, problem.to_string())
    }

    fn tell_contract(
        &mut self,
        load: &mut Load,
        tool: &Tool,
        script: &Script,
        contract: &Contract,
    ) -> Result<(), ToolError> {
        let mut place = |load: &mut Load, line: usize| {
            file_of(&mut self.files, &script.file).place(load, script, tool.source, line)
        };
        let (line, finding) = match &contract.returned {
            Returned::Unknown => return Ok(()),
            Returned::NoFunction(what) => {
                let at = place(load, 1);
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
                        let primary = place(load, *line);
                        load.findings.push(Diagnostic { primary, ..finding });
                    }
                    return Ok(());
                }
                let at = place(load, *line);
                let found = parameters.len();
                (*line, rules::script_arity::finding(at, &script.tool, found, &expected, tool.is_async))
            }
        };
        let error = format!("{}:{line}: {}", script.file, finding.message);
        load.findings.push(finding);
        Err(ToolError::new(ToolErrorKind::Load, error))
    }

    /// What is wrong with a file of `scripts/lib` is told once, however many scripts require it.
    fn tell_modules(
        &mut self,
        load: &mut Load,
        tool: &Tool,
        problems: &[ModuleProblem],
    ) -> Result<(), ToolError> {
        let mut first_error = Ok(());
        for ModuleProblem { file, line, what } in problems {
            let script = &file.script;
            let told = file_of(&mut self.files, &script.file);
            let is_told = match what {
                ModuleFault::Broken(_) | ModuleFault::NoValue => std::mem::replace(&mut told.is_broken, true),
                ModuleFault::Missing { .. }
                | ModuleFault::TooMany(_)
                | ModuleFault::Circle(_)
                | ModuleFault::Computed => !told.lines.insert(*line),
            };
            let at = told.place(load, script, tool.source, *line);
            let finding = match what {
                ModuleFault::Missing { wanted, advice } => rules::missing_module::finding(at, wanted, advice),
                ModuleFault::TooMany(wanted) => rules::missing_module::too_many(at, wanted),
                ModuleFault::Broken(problem) => rules::module_does_not_compile::finding(at, &problem.message),
                ModuleFault::NoValue => rules::module_without_value::finding(at),
                ModuleFault::Circle(files) => rules::circular_require::finding(at, files),
                ModuleFault::Computed => rules::computed_require::finding(at),
            };
            if finding.severity == Severity::Error && first_error.is_ok() {
                let error = format!("{}:{line}: {}", script.file, finding.message);
                first_error = Err(ToolError::new(ToolErrorKind::Load, error));
            }
            if is_told {
                self.withheld += 1;
            } else {
                load.findings.push(finding);
            }
        }
        first_error
    }
}

fn name_of(tool: &Tool) -> Location {
    Location { source: tool.source, span: tool.name.span }
}

impl ToldFile {
    /// A line of the script.
    fn place(&mut self, load: &mut Load, script: &Script, spec: SourceId, line: usize) -> Location {
        let source = self.source(load, &script.file, &script.source, spec);
        place_of_line(load, source, line)
    }

    /// The number of the file, which thereby becomes one of the sources, of the project that `spec` is of.
    fn source(&mut self, load: &mut Load, name: &str, text: &[u8], spec: SourceId) -> SourceId {
        let source = *self.source.get_or_insert_with(|| {
            load.sources.add(SourceFile::new(name, String::from_utf8_lossy(text).into_owned()))
        });
        if let Some(root) = load.roots.get(&spec).cloned() {
            load.roots.insert(source, root);
        }
        source
    }
}

fn file_of<'f>(files: &'f mut HashMap<String, ToldFile>, name: &str) -> &'f mut ToldFile {
    files.entry(name.to_owned()).or_default()
}

/// A line of a source, from 1, without the blanks around it.
pub(super) fn place_of_line(load: &Load, source: SourceId, line: usize) -> Location {
    let text = load.sources.get(source).map_or("", |file| &file.text);
    let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let of_line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or("");
    let indent = of_line.len() - of_line.trim_start().len();
    let span = Span::new(start + indent, start + of_line.trim_end().len().max(indent));
    Location { source, span }
}
