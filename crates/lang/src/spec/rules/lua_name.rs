use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{Tool, ToolKind};
use crate::text::Location;

rule! {
    /// an argument name that is a Lua keyword
    ///
    /// Scripts receive arguments by position, so the tool works, but the parameter in the script needs another name.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "end" :description "The last line." :type integer)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "last" :description "The last line." :type integer)))
    /// ```
    pub(crate) LUA_NAME, "DT250", "lua-name", Note
}

/// Keywords of Luau, 2026-11.
const KEYWORDS: [&str; 21] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not",
    "or", "repeat", "return", "then", "true", "until", "while",
];

pub(in crate::spec) fn check(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    // Emacs Lisp does not have these keywords, and an exit tool or a command has no script.
    if tool.function.is_some() || tool.command.is_some() || tool.kind == ToolKind::Exit {
        return;
    }
    for argument in &tool.arguments {
        let name = &argument.name;
        if KEYWORDS.contains(&name.value.as_str()) {
            let message = format!("`{}` is a Lua keyword; the script parameter needs another name", name.value);
            let at = Location { source: tool.source, span: name.span };
            findings.push(Diagnostic::new(&LUA_NAME, at, message));
        }
    }
}
