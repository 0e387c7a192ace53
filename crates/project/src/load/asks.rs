//! Checks of asks across files: unknown tools, calls that the schema of a tool rejects, and repeated asks.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::schema::{AskChecker, repeated_asks};
use deftool_lang::spec::rules::unknown_name;
use deftool_lang::spec::{Ask, Tool, ToolKind};
use deftool_lang::syntax::quoted;
use deftool_lang::text::{Location, Spanned};

use crate::model::{Load, Scope};

/// Maximum number of suggestions for unknown tools, to limit their cost.
const MAX_SUGGESTIONS: usize = 20;

/// Reports unknown tools and impossible calls in asks, and marks the `defask` forms with errors as not valid. `skipped`: the tools that
/// were not loaded, with their project. `whole`: the projects of which all specs are read.
pub(super) fn report_asks(
    load: &mut Load,
    skipped: &[(Arc<Path>, ToolKind, String)],
    whole: &HashSet<&Path>,
) {
    let (mut findings, is_possible) = check_asks(load, skipped, whole);
    load.findings.append(&mut findings);
    for (loaded, is_possible) in load.project_asks.iter_mut().zip(is_possible) {
        loaded.valid = is_possible;
    }
}

/// Returns the findings, and for each `defask` whether it has no errors.
fn check_asks(
    load: &Load,
    skipped: &[(Arc<Path>, ToolKind, String)],
    whole: &HashSet<&Path>,
) -> (Vec<Diagnostic>, Vec<bool>) {
    let of_tools = load.tools.iter().flat_map(|loaded| &loaded.tool.asks);
    let with_history: Vec<&Ask> = of_tools.filter(|ask| !ask.history.is_empty()).collect();
    if load.project_asks.is_empty() && with_history.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut check = Check { tools: Tools::of(load), skipped, whole, suggested: 0, findings: Vec::new() };
    for ask in with_history {
        check.history(ask);
    }
    let project_asks = || load.project_asks.iter().map(|loaded| &loaded.ask);
    let mut is_possible = Vec::with_capacity(load.project_asks.len());
    for ask in project_asks() {
        let reported = check.findings.len();
        check.calls(ask);
        check.history(ask);
        let new = check.findings.get(reported..).unwrap_or_default();
        is_possible.push(new.iter().all(|finding| finding.severity != Severity::Error));
    }
    let mut findings = check.findings;
    let mut of_scopes: BTreeMap<Scope, Vec<&Ask>> = BTreeMap::new();
    for ask in project_asks() {
        of_scopes.entry(load.scope_of(ask.source)).or_default().push(ask);
    }
    findings.extend(of_scopes.into_values().flat_map(repeated_asks));
    (findings, is_possible)
}

/// The tools of a load by scope and name.
struct Tools<'l> {
    load: &'l Load,
    by_name: HashMap<Scope, HashMap<&'l str, KnownTool<'l>>>,
}

struct KnownTool<'l> {
    tool: &'l Tool,
    checker: OnceCell<AskChecker<'l>>,
}

impl<'l> Tools<'l> {
    fn of(load: &'l Load) -> Self {
        let mut by_name: HashMap<Scope, HashMap<&str, KnownTool<'_>>> = HashMap::new();
        for loaded in &load.tools {
            let tool = &*loaded.tool;
            let known = KnownTool { tool, checker: OnceCell::new() };
            // A tool that another one replaces is not valid.
            let (of_scope, name) =
                (by_name.entry(load.scope_of(tool.source)).or_default(), &*tool.name.value);
            if tool.valid && loaded.shadowed_by.is_none() {
                of_scope.insert(name, known);
            } else {
                of_scope.entry(name).or_insert(known);
            }
        }
        Self { load, by_name }
    }

    fn get(&self, ask: &Ask, name: &str) -> Option<&KnownTool<'l>> {
        self.by_name.get(&self.load.scope_of(ask.source))?.get(name)
    }
}

impl<'l> KnownTool<'l> {
    /// Returns the checker of calls, unless the tool has errors.
    fn checker(&self) -> Option<&AskChecker<'l>> {
        self.tool.valid.then(|| self.checker.get_or_init(|| AskChecker::new(self.tool)))
    }
}

struct Check<'l> {
    tools: Tools<'l>,
    skipped: &'l [(Arc<Path>, ToolKind, String)],
    whole: &'l HashSet<&'l Path>,
    suggested: usize,
    findings: Vec<Diagnostic>,
}

impl Check<'_> {
    /// Checks the calls that a `defask` expects.
    fn calls(&mut self, ask: &Ask) {
        let mut searched = HashSet::new();
        for call in ask.calls() {
            let name = call.tool.value.as_str();
            match self.tools.get(ask, name) {
                None => self.report_unknown(ask, &call.tool),
                Some(known) => {
                    let Some(checker) = known.checker() else { continue };
                    checker.check_call(ask, call, &mut self.findings);
                    if searched.insert(name) {
                        checker.check_prompt(ask, &mut self.findings);
                    }
                }
            }
        }
    }

    /// Checks the calls before the reply to an ask.
    fn history(&mut self, ask: &Ask) {
        for call in &ask.history {
            match self.tools.get(ask, &call.tool.value) {
                None => self.report_unknown(ask, &call.tool),
                Some(known) => {
                    if let Some(checker) = known.checker() {
                        checker.check_past(ask, call, &mut self.findings);
                    }
                }
            }
        }
    }

    /// Reports a tool that its project does not have, if all tools of the project are known.
    fn report_unknown(&mut self, ask: &Ask, tool: &Spanned<String>) {
        let load = self.tools.load;
        let Some(root) = load.root_of(ask.source).filter(|root| self.whole.contains(root)) else { return };
        let name = tool.value.as_str();
        // The tools of an MCP server are not known here.
        let is_remote = load.mcp_servers.iter().any(|server| {
            load.root_of(server.source) == Some(root) && server.name.value != name && server.is_named_by(name)
        });
        let is_skipped = self.skipped.iter().any(|(of, _, skipped)| **of == *root && skipped == name);
        if is_remote || is_skipped {
            return;
        }
        let scope = load.scope_of(ask.source);
        let tools = if self.suggested < MAX_SUGGESTIONS { load.tools.as_slice() } else { &[] };
        let similar = tools.iter().filter(|loaded| load.scope_of(loaded.tool.source) == scope);
        let similar = similar.map(|loaded| loaded.tool.name.value.as_str());
        let at = Location { source: ask.source, span: tool.span };
        let text = load.sources.get(at.source).map_or("", |file| tool.span.of(&file.text));
        let written = |near: &str| if text.starts_with('"') { quoted(near) } else { near.to_owned() };
        let message = format!("unknown tool `{name}` in an ask");
        let finding = unknown_name(at, message, name, similar, written);
        self.findings.push(finding);
        self.suggested += 1;
    }
}
