use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::spec::nearest;
use deftool_lang::syntax::quoted;
use deftool_lang::text::{Location, SourceId, Spanned};

use crate::model::Load;

rule! {
    /// a preset of gptel with a tool that is probably misspelt
    ///
    /// gptel cannot apply a preset that names an unknown tool. Other packages and MCP servers may define tools, so only names
    /// similar to a tool of the checked files are reported.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "read_buffer" :description "Read a buffer." :function #'my-read-buffer)
    /// (gptel-make-preset 'review :tools '("read_bufer"))
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "read_buffer" :description "Read a buffer." :function #'my-read-buffer)
    /// (gptel-make-preset 'review :tools '("read_buffer"))
    /// ```
    pub(crate) UNKNOWN_PRESET_TOOL, "DT318", "unknown-preset-tool", Warning
}

/// `named`: the names in presets.
pub(crate) fn check(load: &Load, named: &[(SourceId, Spanned<String>)]) -> Vec<Diagnostic> {
    let tools = || load.tools.iter().map(|loaded| loaded.tool.name.value.as_str());
    let unknown = named.iter().filter(|(_, name)| !tools().any(|tool| tool == name.value));
    let findings = unknown.filter_map(|(source, name)| {
        let near = nearest(&name.value, tools())?;
        let at = Location { source: *source, span: name.span };
        let message = format!("unknown tool `{}` in a preset", name.value);
        Some(Diagnostic::new(&UNKNOWN_PRESET_TOOL, at, message).did_you_mean(at.span, quoted(near)))
    });
    findings.collect()
}
