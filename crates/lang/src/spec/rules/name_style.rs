use crate::diagnostic::{Diagnostic, rule};
use crate::spec::Tool;
use crate::text::Location;

rule! {
    /// a name that is not in `snake_case`
    ///
    /// The convention for tools and arguments is lowercase words with underscores, such as `read_file`. APIs accept
    /// other names too. There is one finding per file.
    ///
    /// ```eld fails
    /// (deftool :name "readFile" :description "Read a file.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "read_file" :description "Read a file.")
    /// ```
    pub(crate) NAME_STYLE, "DT135", "name-style", Note
}

/// Reports the names of the tool and its arguments in one finding.
pub(in crate::spec) fn check(tool: &Tool) -> Option<Diagnostic> {
    let arguments = tool.arguments.iter().map(|argument| &argument.name);
    let mut odd = std::iter::once(&tool.name).chain(arguments).filter(|name| is_odd(&name.value));
    let first = odd.next()?;
    let at = Location { source: tool.source, span: first.span };
    let finding = Diagnostic::new(&NAME_STYLE, at, format!("`{}` is not in snake_case", first.value));
    let others: Vec<String> = odd.map(|name| format!("`{}`", name.value)).collect();
    Some(if others.is_empty() { finding } else { finding.note(format!("also not in snake_case: {}", others.join(", "))) })
}

/// Whether APIs accept the name but it is not lowercase words with underscores between them.
fn is_odd(name: &str) -> bool {
    let is_lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_snake = name.split('_').all(|word| !word.is_empty() && word.chars().all(is_lower));
    let is_accepted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && !is_snake && name.chars().all(is_accepted)
}
