use crate::diagnostic::rule;

rule! {
    /// a foreign definition that is wrong, or lost or changed by an import
    ///
    /// `deftool check tools.json` reports a file that is not a list of tools, a definition that is not a tool or has no name,
    /// and parameters that are not an object.
    ///
    /// A spec declares a tool with its arguments. A definition that is not a tool, has no name, or has parameters that are not
    /// an object is not imported (an error). Constraints on all arguments together, additional arguments and duplicate
    /// names have no place in a spec: the tool is imported without them (a warning). Titles, caching options and hints for
    /// clients do not change which arguments are valid (a note).
    ///
    /// ```json fails
    /// {"name": "now", "description": "Tell the time.", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "now", "description": "Tell the time.", "input_schema": {"type": "object"}}
    /// ```
    pub(crate) IMPORT, "DT602", "import", Warning
}
