use crate::diagnostic::{Diagnostic, rule};
use crate::spec::Tool;
use crate::text::Location;

rule! {
    /// a name that a chat template reserves for a built-in tool
    ///
    /// Llama 3 has a few built-in tools. For a tool with one of their names, llama.cpp expects a specific required
    /// argument. If this argument is missing, llama.cpp answers the request with an error ("Parameters of tool python
    /// is missing property: code"; `common/chat.cpp`, 2025).
    ///
    /// ```eld fails
    /// (deftool :name "web_search" :description "Search the web."
    ///  :args ((:name "words" :type string :description "What to look for.")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "web_search" :description "Search the web."
    ///  :args ((:name "query" :type string :description "What to look for.")))
    /// ```
    pub(crate) BUILTIN_NAME, "DT121", "builtin-name", Warning
}

/// Tool names with the argument that llama.cpp expects.
const BUILT_IN: [(&str, &str); 5] = [
    ("wolfram_alpha", "query"),
    ("web_search", "query"),
    ("brave_search", "query"),
    ("python", "code"),
    ("code_interpreter", "code"),
];

pub(in crate::spec) fn check(tool: &Tool) -> Option<Diagnostic> {
    let (name, expected) = BUILT_IN.into_iter().find(|(name, _)| *name == tool.name.value)?;
    let has = tool.arguments.iter().any(|argument| argument.name.value == expected && !argument.optional);
    if has {
        return None;
    }
    let at = Location { source: tool.source, span: tool.name.span };
    let message = format!("llama.cpp expects a required argument `{expected}` for a tool called `{name}`");
    Some(
        Diagnostic::new(&BUILTIN_NAME, at, message)
            .note("llama.cpp rejects the request with a Llama 3 template; rename the tool or the argument"),
    )
}
