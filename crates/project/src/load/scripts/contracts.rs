//! Findings about the names that a script uses: unknown and assigned globals, host functions without permission, unused
//! permissions and unused callbacks.
//!
//! Everything is derived from the bytecode ([`deftool_script::Contract`]). No script is run.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::spec::rules::USELESS_KEY;
use deftool_lang::spec::{Permissions, Tool, ToolKind};
use deftool_lang::text::{Location, SourceId, Span};
use deftool_script::{
    Contract, FunctionDoc, GlobalAccess, GlobalUse, Returned, Script, TableDoc, count_word, host_tables,
    is_known_global,
};

use super::file::script_candidates;
use crate::load::cache::Cache;
use crate::model::Load;
use crate::paths::display_name;
use crate::rules;

/// Maximum number of findings about globals per file. A file with more was not written for deftool.
const MAX_OF_FILE: usize = 20;

/// A reporter of findings. It reports them once per file, and findings about permissions once per tool.
#[derive(Default)]
pub(super) struct ContractReporter {
    /// Analysed files by name.
    files: HashMap<String, KnownFile>,
    /// The number of suppressed findings that were already reported for another tool.
    pub(super) suppressed: usize,
}

struct KnownFile {
    uses: Rc<FileUses>,
    /// Whether the file's mistakes were reported.
    is_reported: bool,
}

impl ContractReporter {
    /// Reports the findings of a script that matches its spec. `source_of` returns the source id of a file and creates
    /// it if necessary.
    pub(super) fn report(
        &mut self,
        load: &mut Load,
        tool: &Tool,
        script: &Script,
        contract: &Contract,
        mut source_of: impl FnMut(&mut Load, &str, &[u8]) -> SourceId,
    ) {
        let mut used = HashSet::new();
        self.report_file(
            load,
            (tool, &script.file),
            (&script.file, &script.source),
            contract,
            &mut used,
            &mut source_of,
        );
        if tool.is_async
            && let Returned::Function { parameters, line, .. } = &contract.returned
            && let Some(callback) = parameters.first().filter(|name| !name.is_empty())
            && !takes_argument_first(tool, callback)
            && count_word(&script.source, callback) <= 1
        {
            let source = source_of(load, &script.file, &script.source);
            let at = load.line_location(source, *line);
            load.findings.push(rules::unused_callback::finding(at, &script.tool, callback));
        }
        for module in script.modules.iter() {
            let Ok(contract) = module.contract() else { continue };
            self.report_file(
                load,
                (tool, &script.file),
                (&module.file, &module.source),
                contract,
                &mut used,
                &mut source_of,
            );
        }
        report_unused(load, tool, &used);
    }

    /// Reports the permissions that have no effect on a program.
    pub(super) fn report_command(load: &mut Load, tool: &Tool) {
        let folder = tool.command.as_ref().and_then(|command| command.cwd.as_ref());
        let reads_only_folder = tool.permissions.read.iter().all(|path| Some(path) == folder);
        let used = ["run", "env"].into_iter().chain(reads_only_folder.then_some("read"));
        report_unused(load, tool, &used.collect());
    }

    /// Reports the findings of one file of `script`. Adds the permissions that the file uses to `used`.
    fn report_file(
        &mut self,
        load: &mut Load,
        (tool, script): (&Tool, &str),
        (name, text): (&str, &[u8]),
        contract: &Contract,
        used: &mut HashSet<&'static str>,
        mut source_of: impl FnMut(&mut Load, &str, &[u8]) -> SourceId,
    ) {
        if !self.files.contains_key(name) {
            let uses = Rc::new(FileUses::of(&contract.globals));
            self.files.insert(name.to_owned(), KnownFile { uses, is_reported: false });
        }
        let Some(file) = self.files.get_mut(name) else { return };
        let uses = Rc::clone(&file.uses);
        used.extend(&uses.keys);
        if !uses.mistakes.is_empty() {
            if std::mem::replace(&mut file.is_reported, true) {
                self.suppressed += 1;
            } else {
                let source = source_of(load, name, text);
                report_mistakes(load, source, &uses.mistakes);
            }
        }
        // Skip modules: a module may have functions that this tool does not call.
        let is_own = script == name;
        for Need { used, function, keys } in uses.needs.iter().filter(|_| is_own) {
            let is_missing = keys.iter().all(|key| list(&tool.permissions, key).is_empty());
            if let (true, Some(key)) = (is_missing, keys.first()) {
                let source = source_of(load, name, text);
                let at = location_of(load, source, used);
                let finding = rules::missing_permission::finding(at, &tool.name.value, function, key);
                load.findings.push(finding);
            }
        }
    }
}

fn report_unused(load: &mut Load, tool: &Tool, used: &HashSet<&'static str>) {
    let at = Location { source: tool.source, span: tool.name.span };
    for (key, table) in unused(used, &tool.permissions) {
        load.findings.push(rules::unused_permission::finding(at, &tool.name.value, key, table));
    }
}

/// The globals that one file uses. The same for all tools.
struct FileUses {
    /// Unknown globals and assigned globals.
    mistakes: Vec<GlobalUse>,
    needs: Vec<Need>,
    /// The permissions that the file uses.
    keys: HashSet<&'static str>,
}

/// A use of a host function that requires a permission.
struct Need {
    used: GlobalUse,
    /// The function, for example `http.get`.
    function: String,
    /// The permissions, one of which is required.
    keys: &'static [&'static str],
}

impl FileUses {
    fn of(globals: &[GlobalUse]) -> Self {
        let (mut needs, mut keys) = (Vec::new(), HashSet::new());
        for used in globals {
            if let Some((table, known)) = needed(used) {
                keys.extend(known.permissions.iter().chain(known.option_permissions));
                let function = format!("{}.{}", table.name, known.name);
                needs.push(Need { used: used.clone(), function, keys: known.permissions });
                continue;
            }
            // A host table is used as a value, or `_G` is used: assume that all functions are used.
            let name = used.path.first().map_or("", String::as_str);
            let tables = host_tables().iter().filter(|doc| doc.name == name || name == "_G");
            for doc in tables {
                keys.extend(doc.permissions);
                keys.extend(doc.functions.iter().flat_map(|function| function.option_permissions));
            }
        }
        Self { mistakes: mistakes(globals, is_known_global), needs, keys }
    }
}

/// Returns whether the first parameter is named after an argument. Then the parameters are reported as swapped.
fn takes_argument_first(tool: &Tool, parameter: &str) -> bool {
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    tool.arguments.iter().any(|argument| plain(&argument.name.value) == plain(parameter))
}

/// Reports scripts of exit tools.
pub(super) fn report_exit_tools(cache: &Cache, load: &mut Load, from: &Path) {
    // Skip tools with a finding about a useless key.
    let useless = load.findings.iter().filter(|finding| *finding.rule == USELESS_KEY);
    let start_of = |finding: &Diagnostic| (finding.primary.source, finding.primary.span.range().start);
    let reported: BTreeSet<(SourceId, usize)> = useless.map(start_of).collect();
    let mut findings = Vec::new();
    for loaded in &load.tools {
        let tool = &loaded.tool;
        let is_exit = tool.kind == ToolKind::Exit && tool.valid;
        let Some(root) = load.root_of(tool.source).filter(|_| is_exit) else { continue };
        let form = tool.span.range();
        if reported.range((tool.source, form.start)..(tool.source, form.end)).next().is_some() {
            continue;
        }
        let candidates = script_candidates(root, tool);
        let Some(script) = candidates.iter().find(|path| cache.stamp(path).is_some()) else { continue };
        let at = Location { source: tool.source, span: tool.name.span };
        let file = display_name(script, from);
        findings.push(rules::exit_tool_script::finding(at, &tool.name.value, &file));
    }
    load.findings.append(&mut findings);
}

/// Returns the unknown globals and the assigned globals. `is_known`: whether a script of this kind has a global.
pub(super) fn mistakes(globals: &[GlobalUse], is_known: fn(&[&str]) -> bool) -> Vec<GlobalUse> {
    let name = |used: &GlobalUse| used.path.first().cloned().unwrap_or_default();
    let set: HashSet<String> =
        globals.iter().filter(|used| used.access != GlobalAccess::Read).map(name).collect();
    let mut reported = HashSet::new();
    let is_mistake = |used: &&GlobalUse| {
        let path: Vec<&str> = used.path.iter().map(String::as_str).collect();
        let wrong = match used.access {
            GlobalAccess::Read => !is_known(&path) && !set.contains(&name(used)),
            GlobalAccess::Set => true,
            GlobalAccess::Defined => false,
        };
        // Report an unknown name once, regardless of its fields.
        let known = usize::from(path.first().is_some_and(|name| is_known(&[name])));
        wrong && reported.insert((used.access, used.path.iter().take(known + 1).cloned().collect::<Vec<_>>()))
    };
    globals.iter().filter(is_mistake).take(MAX_OF_FILE).cloned().collect()
}

fn report_mistakes(load: &mut Load, source: SourceId, mistakes: &[GlobalUse]) {
    for used in mistakes {
        let at = location_of(load, source, used);
        let finding = match used.access {
            GlobalAccess::Read => rules::unknown_global::finding(at, &used.path, false),
            GlobalAccess::Set | GlobalAccess::Defined => {
                let name = used.path.first().map_or("", String::as_str);
                rules::lost_global::finding(at, name, is_known_global(&[name]))
            }
        };
        load.findings.push(finding);
    }
}

/// Returns the host function that `used` reads, with its table, if it requires a permission.
fn needed(used: &GlobalUse) -> Option<(&'static TableDoc, &'static FunctionDoc)> {
    let [table, function, ..] = used.path.as_slice() else { return None };
    let doc = host_tables().iter().find(|doc| doc.name == *table && used.access == GlobalAccess::Read)?;
    let known = doc.functions.iter().find(|known| known.name == *function)?;
    (!known.permissions.is_empty()).then_some((doc, known))
}

/// Returns the unused permissions with their host tables.
fn unused(used: &HashSet<&'static str>, allowed: &Permissions) -> Vec<(&'static str, &'static str)> {
    let of_table = |doc: &'static TableDoc| doc.permissions.iter().map(move |key| (*key, doc.name));
    let is_unused = |(key, _): &(&str, &str)| !list(allowed, key).is_empty() && !used.contains(key);
    host_tables().iter().flat_map(of_table).filter(is_unused).collect()
}

fn list<'p>(allowed: &'p Permissions, key: &str) -> &'p [String] {
    match key {
        "net" => &allowed.net,
        "read" => &allowed.read,
        "write" => &allowed.write,
        "run" => &allowed.run,
        "env" => &allowed.env,
        _ => &[],
    }
}

/// Returns the location of the global, or of its line.
pub(super) fn location_of(load: &Load, source: SourceId, used: &GlobalUse) -> Location {
    let at = load.line_location(source, used.line);
    let Some(line) = load.sources.get(source).map(|file| at.span.of(&file.text)) else { return at };
    let name = used.path.first().map_or("", String::as_str);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts = line.match_indices(name).map(|(start, _)| start).find(|start| {
        let before = line.get(..*start).unwrap_or_default().chars().next_back();
        let after = line.get(start + name.len()..).unwrap_or_default().chars().next();
        !before.is_some_and(|c| is_word(c) || c == '.' || c == ':') && !after.is_some_and(is_word)
    });
    let Some(start) = starts else { return at };
    let whole = used.path.join(".");
    let length =
        if line.get(start..).is_some_and(|rest| rest.starts_with(&whole)) { whole.len() } else { name.len() };
    let start = at.span.range().start + start;
    Location { source, span: Span::new(start, start + length) }
}
