//! Completions, hover and signatures from the answers of an analyzer.

use std::path::Path;

use deftool_lang::schema::Target;
use deftool_lang::text::Span;
use deftool_script::{
    Description, Place, ScriptUnit, Signatures, Suggestion, SuggestionKind, Suggestions, host_tables,
};

use super::strings::{end_of_content, start_of_content};
use crate::completion::{Completion, CompletionKind, function_doc, host_function, plain};
use crate::hover::{Hover, hover};
use crate::project::Project;

/// The signatures of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSignatures {
    /// The signatures.
    pub signatures: Vec<CallSignature>,
    /// The index of the parameter at the position.
    pub active_parameter: usize,
}

/// One signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSignature {
    /// The text.
    pub label: String,
    /// The spans of the parameters in the text.
    pub parameters: Vec<Span>,
    /// The documentation in Markdown. May be empty.
    pub documentation: String,
}

/// Returns the completions at `offset` of a text.
pub fn suggestions(text: &str, offset: usize, found: Suggestions) -> Vec<Completion> {
    let replaces = if found.in_string {
        Span::new(start_of_content(text, offset), end_of_content(text, offset))
    } else {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let before = text.get(..offset).unwrap_or_default();
        let rest = text.get(offset..).unwrap_or_default();
        let start = before.trim_end_matches(is_word).len();
        Span::new(start, offset + rest.find(|c| !is_word(c)).unwrap_or(rest.len()))
    };
    found.items.into_iter().map(|suggestion| completion(suggestion, replaces)).collect()
}

fn completion(suggestion: Suggestion, replaces: Span) -> Completion {
    let Suggestion { name, kind, type_text, global } = suggestion;
    let kind = match kind {
        SuggestionKind::Variable if host_tables().iter().any(|table| table.name == global) => {
            CompletionKind::Global
        }
        SuggestionKind::Variable => CompletionKind::Variable,
        SuggestionKind::Function => CompletionKind::Function,
        SuggestionKind::Field => CompletionKind::Field,
        SuggestionKind::Keyword => CompletionKind::Keyword,
        SuggestionKind::Value => CompletionKind::Value,
        SuggestionKind::Type => CompletionKind::Type,
    };
    let table = || host_tables().iter().find(|table| table.name == global);
    let documentation = match host_function(&global) {
        Some((table, function)) => function_doc(table, function),
        None => match table() {
            Some(table) => table.about.to_owned(),
            None if type_text.is_empty() => String::new(),
            None => code_block(&format!("{name}: {type_text}")),
        },
    };
    plain(&name, kind, &name, &documentation, replaces)
}

/// Returns what to show for the name at `offset`. `target`: see [`hover`].
pub fn description(
    project: &Project,
    path: &Path,
    offset: usize,
    target: Target,
    unit: &ScriptUnit,
    description: &Description,
) -> Hover {
    let (start, end) = description.span;
    let span = Span::new(start, end);
    let known = hover(project, path, offset, target).map(|known| known.markdown);
    // The documentation of host functions contains the type.
    if host_function(&description.global).is_some()
        && let Some(markdown) = known
    {
        return Hover { span, markdown };
    }
    let comment = description.definition.as_ref().and_then(|place| comment_above(unit, place));
    let parts = [Some(code_block(&description.code)), comment, known];
    Hover { span, markdown: parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n") }
}

fn code_block(code: &str) -> String {
    format!("```luau\n{code}\n```")
}

/// Returns the comment above a definition, without its marks.
fn comment_above(unit: &ScriptUnit, place: &Place) -> Option<String> {
    let text = unit.text_of(&place.file)?;
    let before = text.get(..place.span.0)?;
    let above = before.get(..before.rfind('\n')?)?;
    let comments = above.lines().rev().map(str::trim);
    let comments = comments.take_while(|line| line.starts_with("--") && !line.starts_with("--["));
    let mut lines: Vec<&str> =
        comments.map(|line| line.trim_start_matches('-').trim_start_matches('!').trim_start()).collect();
    lines.reverse();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the signatures with their documentation.
pub fn call_signatures(found: Signatures) -> CallSignatures {
    let about = host_function(&found.global).map(|(_, function)| function.about).unwrap_or_default();
    let signatures = found.labels.into_iter().map(|label| CallSignature {
        parameters: label.parameters.into_iter().map(|(start, end)| Span::new(start, end)).collect(),
        label: label.text,
        documentation: about.to_owned(),
    });
    CallSignatures { signatures: signatures.collect(), active_parameter: found.active_parameter }
}
