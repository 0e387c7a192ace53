use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{Argument, CommandInput, CommandPlaceholder, JsonKind, Tool, ToolCommand};
use crate::text::{Location, Span, Spanned};

rule! {
    /// a :command that cannot be run
    ///
    /// A command is a vector of a program and its arguments, without a shell. `{name}` stands for the value of an
    /// argument, `{{` and `}}` for braces. The program is fixed, because the user trusts it by its name. An array can only
    /// be a whole word: it becomes one word for each element.
    ///
    /// ```eld fails
    /// (deftool :name "count" :description "Count lines." :command ["wc" "-l" "--" "notes/{files}"]
    ///  :args ((:name "files" :description "The files." :type array :items (:type string))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "count" :description "Count lines." :command ["wc" "-l" "--" "{files}"]
    ///  :args ((:name "files" :description "The files." :type array :items (:type string))))
    /// ```
    pub(crate) INVALID_COMMAND, "DT140", "invalid-command", Error
}

/// `problem` is about a brace.
pub(in crate::spec) fn brace(at: Location, problem: &str) -> Diagnostic {
    Diagnostic::new(&INVALID_COMMAND, at, problem).note("for literal braces, write `{{` and `}}`")
}

/// `at` is the first word.
pub(in crate::spec) fn program(at: Location) -> Diagnostic {
    let message = "the program of `:command` must be a name or a path without placeholders";
    Diagnostic::new(&INVALID_COMMAND, at, message).note("define one tool for each program")
}

/// `at` is the key `:command`.
pub(in crate::spec) fn with_script(at: Location, script: Span) -> Diagnostic {
    Diagnostic::new(&INVALID_COMMAND, at, "a tool has `:command` or `:script`, not both")
        .with_label_at(script, "remove one of the two")
}

/// Reports arrays that are not a whole word.
pub(in crate::spec) fn check_arrays(tool: &Tool, command: &ToolCommand, findings: &mut Vec<Diagnostic>) {
    let in_words = command.words.iter().filter(|word| word.value.whole().is_none());
    let input = match &command.stdin {
        Some(CommandInput::Text(text)) => Some(text),
        Some(CommandInput::Json) | None => None,
    };
    let is_array = |placeholder: &&CommandPlaceholder| {
        tool.arguments.iter().any(|argument| argument.name.value == placeholder.name && may_be_array(argument))
    };
    for Spanned { value: template, span } in in_words.chain(input) {
        findings.extend(template.placeholders().filter(is_array).map(|placeholder| {
            let message = format!("the array `{}` can only be a whole word of `:command`", placeholder.name);
            Diagnostic::new(&INVALID_COMMAND, Location { source: tool.source, span: *span }, message)
                .note("to pass it as JSON, use `:stdin json`")
        }));
    }
}

fn may_be_array(argument: &Argument) -> bool {
    argument.keyword("type").is_some_and(|kind| match &kind.kind {
        JsonKind::Array(kinds) => kinds.iter().any(|kind| kind.as_str() == Some("array")),
        _ => kind.as_str() == Some("array"),
    })
}
