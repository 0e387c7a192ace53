//! The content of one spec file: its definitions, and the findings that follow from this file alone.

use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::{Diagnostic, Severity};
use deftool_lang::schema::rules::INVALID_PATTERN;
use deftool_lang::schema::{
    Target, check_ask_schemas, check_list, check_tool, list_places, longest_returned_string,
};
use deftool_lang::spec::rules::{contains_lone_backslash, lone_backslashes, unknown_key_among};
use deftool_lang::spec::{Definitions, FileKind, Tool, ToolForms, ToolSelection, lower_unknown};
use deftool_lang::syntax::parse;
use deftool_lang::syntax::rules::{STRAY_CLOSER, UNCLOSED};
use deftool_lang::text::{Location, SourceFile, SourceId, Span, Spanned};
use deftool_process::files::BYTE_ORDER_MARK;

use super::cache::CachedFile;
use super::directives::{Directives, read_directives};
use super::known_forms::{independent_forms, reuse_forms};
use super::model::{FileParts, KnownForm, SpecFile};
use super::read::{MAX_BYTES, SourceText};
use crate::model::{LoadedTool, OfferedTools};
use crate::rules;

/// How a spec file is read.
pub(super) struct Reading<'r> {
    pub(super) selection: &'r ToolSelection,
    /// The heads of tool forms in Emacs Lisp.
    pub(super) forms: Option<&'r ToolForms>,
    /// The version of the file that was read before.
    pub(super) before: Option<&'r SpecFile>,
    /// Whether the file will be read again.
    pub(super) is_repeated: bool,
}

impl<'r> Reading<'r> {
    /// Reads a file once, without declared heads.
    pub(super) fn once(selection: &'r ToolSelection) -> Self {
        Self { selection, forms: None, before: None, is_repeated: false }
    }
}

impl SpecFile {
    pub(super) fn empty(source: SourceFile, id: SourceId) -> Self {
        Self {
            id,
            source,
            is_lossless: false,
            is_list: false,
            tool_forms: ToolForms::default(),
            tools: Vec::new(),
            parts: FileParts::default(),
            known_forms: Vec::new(),
        }
    }

    /// Reads a list of tools of another program.
    pub(super) fn of_list(text: SourceText, id: SourceId, from: &Path) -> Self {
        let (is_text, is_lossless) = (text.is_text(), text.is_lossless());
        let (source, damage) = text.into_source(id, from);
        let mut file = Self { is_lossless, ..Self::empty(source, id) };
        if is_text {
            load_list(&mut file);
        }
        file.parts.findings.extend(damage);
        file
    }

    /// Reads a list of tools that is not a file.
    pub(super) fn of_offer(offer: &OfferedTools, id: SourceId) -> Self {
        let OfferedTools { server, text, problem } = offer;
        let name = format!("MCP server {server}");
        let mut file = Self::empty(SourceFile::new(name, text.as_str()).with_places(list_places(text)), id);
        load_list(&mut file);
        let start = Location { source: id, span: Span::default() };
        let problem = problem.iter().map(|problem| rules::mcp_tool::finding(start, server, problem));
        file.parts.findings.extend(problem);
        file
    }

    /// Reads the text as the source `id`, whose name is relative to `from`.
    pub(super) fn of(text: SourceText, id: SourceId, from: &Path, reading: &Reading<'_>) -> Self {
        let (is_text, is_lossless) = (text.is_text(), text.is_lossless());
        let (source, damage) = text.into_source(id, from);
        let tool_forms = reading.forms.cloned().unwrap_or_default();
        let mut file = Self { is_lossless, tool_forms, ..Self::empty(source, id) };
        if is_text {
            load_text(&mut file, damage.as_ref(), reading);
        }
        // Code without tools may have any encoding.
        let is_spec = !FileKind::of_name(&file.source.name).is_code() || !file.tools.is_empty();
        file.parts.findings.extend(damage.filter(|_| is_spec));
        file
    }
}

impl CachedFile for SpecFile {
    const MAX_READ: u64 = MAX_BYTES + 1;
    const IS_SHARED: bool = false;

    fn matches_bytes(&self, bytes: &[u8]) -> bool {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        self.is_lossless && self.source.text.as_bytes() == bytes
    }
}

/// Reads the text as a list of tools of another program.
fn load_list(file: &mut SpecFile) {
    let (tools, findings) = check_list(file.id, &file.source.text);
    let name: Arc<str> = Arc::from(file.source.name.as_str());
    let tools = tools.into_iter().map(|tool| Arc::new(LoadedTool::new(Arc::new(tool), Arc::clone(&name))));
    file.tools.extend(tools);
    file.parts.findings.extend(findings);
    file.is_list = true;
}

/// Parses and lowers the text. `damage` is the finding about invalid UTF-8, if any.
fn load_text(load: &mut SpecFile, damage: Option<&Diagnostic>, reading: &Reading<'_>) {
    let (id, text, kind) = (load.id, Arc::clone(&load.source.text), FileKind::of_name(&load.source.name));
    let code = kind.code_of(&text);
    let (tree, syntax_findings) = parse(id, &code);
    let may_reuse = reading.is_repeated && kind == FileKind::Specs && damage.is_none();
    let independent = if may_reuse { independent_forms(&tree, &code) } else { Vec::new() };
    let before = reading.before.filter(|before| before.id == id);
    let mut known = before.map_or_else(Vec::new, |before| reuse_forms(before, &code, &tree, &independent));
    let is_known = |span: Span| known.binary_search_by_key(&span, |form| form.span).is_ok();
    let (mut definitions, mut findings) =
        lower_unknown(id, &code, &tree, kind, reading.selection, &load.tool_forms, &is_known);
    let mut directives = read_directives(id, &code, &tree);
    directives
        .keep_whole(id, definitions.spans().into_iter().chain(known.iter().map(|form| form.span)).collect());
    known.retain(|form| !directives.skip(form.span));
    definitions.retain(|span| !directives.skip(span));
    findings.retain(|finding| !directives.skip(finding.primary.span));
    findings.sort_by_key(|finding| finding.primary.span);
    let is_damaged = |span: Span| damage.is_some() && span.of(&text).contains(char::REPLACEMENT_CHARACTER);
    let lone = lone_backslashes(&findings);
    let name: Arc<str> = Arc::from(load.source.name.as_str());
    let mut all_checked = Vec::new();
    let (mut tools, reused) = (Vec::new(), known.len());
    for tool in std::mem::take(&mut definitions.tools) {
        let mut tool = Tool { valid: tool.valid && !is_damaged(tool.span), ..tool };
        let checked = check_alone(&mut tool, &lone);
        let loaded = Arc::new(LoadedTool::new(Arc::new(tool), Arc::clone(&name)));
        let span = loaded.tool.span;
        if independent.binary_search_by_key(&span, |form| tree.span(*form)).is_ok() {
            let of_form = starting_in(&findings, span).iter().chain(&checked).cloned().collect();
            known.extend(KnownForm::of(&loaded, of_form));
        }
        all_checked.extend(checked);
        tools.push(loaded);
    }
    for ask in &definitions.asks {
        all_checked.extend(without_lone(check_ask_schemas(ask), &lone));
    }
    findings.append(&mut all_checked);
    for form in known.iter().take(reused) {
        tools.push(Arc::clone(&form.tool));
        findings.extend_from_slice(&form.findings);
    }
    if reused > 0 {
        tools.sort_by_key(|loaded| loaded.tool.span);
        known.sort_by_key(|form| form.span);
    }
    let Directives { allows, findings: of_directives, .. } = &mut directives;
    load.parts.levels.allows.append(allows);
    let start = Location { source: id, span: Span::default() };
    load.parts.findings.extend(rules::empty_file::check(start, &text));
    load.parts.findings.append(of_directives);
    // An unbalanced form affects everything after it, so these findings are kept.
    let matters = |finding: &Diagnostic| *finding.rule == UNCLOSED || *finding.rule == STRAY_CLOSER;
    load.parts.findings.extend(syntax_findings.into_iter().filter_map(|mut finding| {
        if directives.skip(finding.primary.span) {
            finding.fix = None;
            return matters(&finding).then_some(finding);
        }
        Some(finding)
    }));
    load.parts.findings.append(&mut findings);
    for finding in &mut load.parts.findings {
        finding.fix.take_if(|fix| !kind.contains_fix(&text, &code, fix));
    }
    for worker in &mut definitions.workers {
        worker.valid &= !is_damaged(worker.span);
    }
    load.parts.add(definitions);
    let limits_strings = |tool: &Tool| longest_returned_string(tool).is_some();
    let limited = tools.iter().filter(|loaded| limits_strings(&loaded.tool));
    load.parts.long_results = limited.map(|loaded| Arc::clone(&loaded.tool)).collect();
    (load.tools, load.known_forms) = (tools, known);
}

/// Checks a tool with the rules that depend on it alone. A tool with an error becomes invalid. `lone`: the lone
/// backslashes of the file.
fn check_alone(tool: &mut Tool, lone: &[Span]) -> Vec<Diagnostic> {
    let mut findings = unknown_targets(tool);
    // Errors in the form itself are already reported.
    if tool.valid {
        let mut checked = without_lone(check_tool(tool), lone);
        tool.valid = !checked.iter().any(|finding| finding.severity == Severity::Error);
        findings.append(&mut checked);
    }
    findings
}

/// Returns the findings without those of patterns with a lone backslash.
fn without_lone(mut findings: Vec<Diagnostic>, lone: &[Span]) -> Vec<Diagnostic> {
    findings.retain(|finding| {
        *finding.rule != INVALID_PATTERN || !contains_lone_backslash(lone, finding.primary.span)
    });
    findings
}

/// Returns the findings that start in `span`. `findings` are sorted by span.
fn starting_in(findings: &[Diagnostic], span: Span) -> &[Diagnostic] {
    let start = findings.partition_point(|finding| finding.primary.span.start < span.start);
    let end = findings.partition_point(|finding| finding.primary.span.start < span.end);
    findings.get(start..end).unwrap_or_default()
}

impl FileParts {
    /// Adds the definitions other than tools.
    fn add(&mut self, definitions: Definitions) {
        self.levels.settings.extend(definitions.settings);
        self.workers.extend(definitions.workers);
        self.mcp_servers.extend(definitions.mcp_servers);
        self.dialects.extend(definitions.dialects);
        self.asks.extend(definitions.asks);
        self.skipped.extend(definitions.skipped);
        self.wrappers.extend(definitions.wrappers);
        self.preset_tools.extend(definitions.preset_tools);
    }
}

/// Reports overrides for unknown targets, which are never sent.
fn unknown_targets(tool: &Tool) -> Vec<Diagnostic> {
    let known = Target::ALL.map(Target::as_str);
    let targets = tool.overrides.iter().map(|over| &over.target);
    let unknown = targets.filter(|target| !known.contains(&target.value.as_str()));
    let finding = |target: &Spanned<String>| {
        let at = Location { source: tool.source, span: target.span };
        unknown_key_among(at, "target", target.value.trim_end_matches(':'), known.into_iter())
    };
    unknown.map(finding).collect()
}
