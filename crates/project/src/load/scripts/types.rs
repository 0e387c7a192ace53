//! Findings of the analyzer in scripts: of `check --types`, and of an editor.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::spec::Tool;
use deftool_lang::text::{Location, SourceFile, SourceId, Span};
use deftool_script::{Definitions, Script, ScriptUnit, TYPE_LIMIT, TypeProblem, check_types, tool_types};

use crate::load::levels;
use crate::model::{Load, ScriptState};
use crate::rules;
use crate::rules::unknown_global::UNKNOWN_GLOBAL;

/// Checks the scripts of all tools with the analyzer `program`, one project at a time.
pub(crate) fn report_types(load: &mut Load, program: &Path) {
    let mut by_root: BTreeMap<Arc<Path>, Vec<usize>> = BTreeMap::new();
    for (index, loaded) in load.tools.iter().enumerate() {
        if let Some(root) = load.roots.get(&loaded.tool.source) {
            by_root.entry(Arc::clone(root)).or_default().push(index);
        }
    }
    let (mut checked, mut unchecked) = (Vec::new(), Vec::new());
    for (root, indices) in by_root {
        let loaded: Vec<_> = indices.iter().filter_map(|index| load.tools.get(*index)).collect();
        let tools: Vec<&Tool> = loaded.iter().map(|loaded| -> &Tool { &loaded.tool }).collect();
        let scripts: HashMap<&str, &Arc<Script>> = loaded
            .iter()
            .filter_map(|loaded| match &loaded.script {
                ScriptState::Ready(script) if script.command.is_none() => Some((&*script.tool, script)),
                ScriptState::Ready(_) | ScriptState::None | ScriptState::Broken(_) => None,
            })
            .collect();
        let mut units = Vec::new();
        let mut places = Vec::new();
        for types in tool_types(tools.iter().copied()) {
            let name = &types.tool().name;
            let Some(script) = scripts.get(name.value.as_str()) else { continue };
            let at = Location { source: types.tool().source, span: name.span };
            let Some(unit) = ScriptUnit::of_script(script, types.parameters()) else {
                unchecked.push((at, script.file.clone(), String::from("it is not UTF-8")));
                continue;
            };
            units.push(unit);
            places.push((Arc::clone(&root), at, Arc::clone(script)));
        }
        let definitions = Definitions::of(tools.iter().copied());
        let results = check_types(program, &definitions, &units, TYPE_LIMIT);
        checked.extend(places.into_iter().zip(results));
    }
    let mut reporter = TypeReporter::of(load);
    for ((root, at, script), result) in checked {
        match result {
            Ok(problems) => {
                for problem in problems {
                    reporter.report(load, &root, Some(&script), &problem);
                }
            }
            Err(why) => unchecked.push((at, script.file.clone(), why)),
        }
    }
    for (at, file, why) in unchecked {
        let message = format!("cannot check the types of {file}: {why}");
        load.findings.push(rules::script_type::finding(at, &message));
    }
    load.sort_findings();
}

/// Returns the findings of `problems` in the script `file` of the project in `root`, with the levels of the project, as
/// `check --types` reports them. `text` is the text of the script, which may be newer than the load.
pub fn type_findings(
    load: &Load,
    root: &Path,
    file: &str,
    text: &Arc<str>,
    problems: &[TypeProblem],
) -> Vec<Diagnostic> {
    let root = Arc::from(root);
    let mut own = Load::default();
    let source = own.add_source(SourceFile::new(file, Arc::clone(text)), Some(&root));
    let known = load.sources.iter().find(|(_, known)| known.name == file).map(|(known, _)| known);
    let unknown = load.findings.iter().filter(|finding| *finding.rule == UNKNOWN_GLOBAL);
    let unknown = unknown.filter(|finding| Some(finding.primary.source) == known);
    let mut reporter = TypeReporter {
        sources: HashMap::from([(file.to_owned(), source)]),
        unknown: HashMap::from([(source, unknown.map(|finding| finding.primary.span).collect())]),
        reported: HashSet::new(),
    };
    for problem in problems.iter().filter(|problem| problem.file == file) {
        reporter.report(&mut own, &root, None, problem);
    }
    levels::apply_to_script(load, &root, text, own.findings)
}

/// A reporter of type findings that tracks what was reported.
struct TypeReporter {
    /// Source ids by file name.
    sources: HashMap<String, SourceId>,
    /// Locations of unknown globals, which are already reported.
    unknown: HashMap<SourceId, Vec<Span>>,
    /// Reported findings. A finding in a file shared by several tools is reported once.
    reported: HashSet<(Location, String)>,
}

impl TypeReporter {
    fn of(load: &Load) -> Self {
        let sources = load.sources.iter().map(|(id, file)| (file.name.clone(), id)).collect();
        let mut unknown: HashMap<SourceId, Vec<Span>> = HashMap::new();
        for finding in load.findings.iter().filter(|finding| *finding.rule == UNKNOWN_GLOBAL) {
            unknown.entry(finding.primary.source).or_default().push(finding.primary.span);
        }
        Self { sources, unknown, reported: HashSet::new() }
    }

    /// Reports a problem in a known source, or in `script` or one of its modules.
    fn report(&mut self, load: &mut Load, root: &Arc<Path>, script: Option<&Script>, problem: &TypeProblem) {
        let known = self.sources.get(&problem.file).copied();
        let source = known.or_else(|| {
            let script = script?;
            let module = script.modules.iter().find(|module| module.file == problem.file);
            let bytes = module.map_or(&script.source, |module| &module.source);
            let file = SourceFile::new(&*problem.file, String::from_utf8_lossy(bytes).into_owned());
            Some(load.add_source(file, Some(root)))
        });
        let Some(source) = source else { return };
        self.sources.insert(problem.file.clone(), source);
        load.set_root(source, Some(root));
        let line = load.line_location(source, problem.line);
        let at = Location { source, span: within(load, line, problem.columns) };
        let touches = |other: &Span| {
            other.range().start < at.span.range().end && at.span.range().start < other.range().end
        };
        let is_unknown = self.unknown.get(&source).is_some_and(|spans| spans.iter().any(touches));
        if !is_unknown && self.reported.insert((at, problem.message.clone())) {
            load.findings.push(rules::script_type::finding(at, &problem.message));
        }
    }
}

/// Returns the span of the columns, or of the line if they are outside of it.
fn within(load: &Load, line: Location, (start, end): (usize, usize)) -> Span {
    let whole = line.span.range();
    let Some(text) = load.sources.get(line.source).map(|file| &file.text) else { return line.span };
    let first = text.get(..whole.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let start = (first + start).clamp(whole.start, whole.end);
    let end = first.saturating_add(end).clamp(start, whole.end);
    if start < end && text.is_char_boundary(start) && text.is_char_boundary(end) {
        Span::new(start, end)
    } else {
        line.span
    }
}
