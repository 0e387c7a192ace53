use crate::diagnostic::{Diagnostic, rule};
use crate::spec::Tool;
use crate::text::Location;

rule! {
    /// a name that a model's template keeps for a tool of its own
    ///
    /// Llama 3 was trained with a few tools built in, and llama.cpp holds a tool of such a name against what it expects: without
    /// that argument, required, it answers the request with an error ("Parameters of tool python is missing property: code";
    /// `common/chat.cpp`, 2025).
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

/// Names, and the argument that is expected.
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
    let message = format!("llama.cpp expects of a tool called `{name}` a required argument `{expected}`");
    Some(
        Diagnostic::new(&BUILTIN_NAME, at, message)
            .note("with a template of Llama 3 it refuses the request; give the tool or the argument another name"),
    )
}
