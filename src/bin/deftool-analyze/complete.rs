//! Completion.
//!
//! While a long script is edited, only the statement at the position is checked, in the scope of the last full check.

use std::collections::HashMap;
use std::sync::Arc;

use deftool_script::{Analysed, ScriptUnit, Suggestion, SuggestionKind, Suggestions, is_known_test_global};
use luau_analysis::SemanticModel;
use luau_analysis::autocomplete::fragment::FragmentContext;
use luau_analysis::autocomplete::{
    AutocompleteContext, AutocompleteEntry, AutocompleteEntryKind, AutocompleteResult,
};
use luau_common::BString;
use luau_syntax::ast::{BinaryOp, Expression, ExpressionKind};
use luau_syntax::location::Position;
use luau_syntax::parser::{ParseOptions, ParsedSource};

use crate::annotate::Annotated;
use crate::checker::Checker;
use crate::types;

/// Completes at `at` in the text of a unit that differs from the checked one.
pub(crate) fn in_changed(
    checker: &mut Checker,
    unit: &ScriptUnit,
    annotated: &Annotated,
    at: Position,
) -> Analysed<Suggestions> {
    let options = ParseOptions::default().with_comment_capture(true);
    let parsed = ParsedSource::parse(&annotated.text, options).map_err(|error| error.first().to_string())?;
    let context = FragmentContext {
        new_source: annotated.text.as_bytes(),
        fresh_parse: Some(Arc::new(parsed)),
        options: None,
        deprecated_fragment_end_position: None,
        reporter: None,
    };
    let name = BString::from(unit.file.as_bytes());
    let completed = checker
        .try_fragment_autocomplete(&name, at, context, &mut |_, _, _| None)
        .map_err(|error| error.to_string())?;
    let result = completed.result.map(|result| result.autocomplete_result);
    Ok(result.map(|result| suggestions(checker, &result)).unwrap_or_default())
}

/// Completes at `at` in the checked unit.
pub(crate) fn in_checked(checker: &Checker, unit: &ScriptUnit, at: Position) -> Suggestions {
    let name = BString::from(unit.file.as_bytes());
    let result = checker.autocomplete(name.as_ref(), at, &mut |_, _, _| None);
    suggestions(checker, &result)
}

fn suggestions(checker: &Checker, result: &AutocompleteResult) -> Suggestions {
    let in_string = result.context == AutocompleteContext::String;
    let Some(model) = result.semantic_model(checker) else { return Suggestions::default() };
    let mut items: HashMap<String, Suggestion> = HashMap::new();
    for (name, entry) in &result.entries {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        let kept = suggestion(&model, name, entry).map(|suggestion| (name.to_owned(), suggestion));
        items.extend(kept);
    }
    if in_string {
        for value in expected_strings(&model, result) {
            let suggestion = Suggestion {
                name: value.clone(),
                kind: SuggestionKind::Value,
                type_text: String::new(),
                global: String::new(),
            };
            items.entry(value).or_insert(suggestion);
        }
    }
    let mut items: Vec<Suggestion> = items.into_values().collect();
    items.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    Suggestions { items, in_string }
}

/// Converts an entry. Returns `None` for what a script cannot use.
fn suggestion(model: &SemanticModel<'_>, name: &str, entry: &AutocompleteEntry) -> Option<Suggestion> {
    let symbol = entry.documentation_symbol.as_ref().map(ToString::to_string).unwrap_or_default();
    let global = global_of(&symbol);
    // Luau has globals that the sandbox lacks.
    let is_lacking =
        symbol.starts_with("@luau/global/") && !is_known_test_global(&global.split('.').collect::<Vec<_>>());
    if entry.wrong_index_type || entry.deprecated || is_lacking || name.starts_with('%') {
        return None;
    }
    let id = entry.ty.filter(|id| model.graph().owns_type(*id));
    let is_function = id.is_some_and(|id| !types::functions(model.graph(), id).is_empty());
    let kind = match entry.kind {
        AutocompleteEntryKind::Property | AutocompleteEntryKind::Binding if is_function => {
            SuggestionKind::Function
        }
        AutocompleteEntryKind::Property => SuggestionKind::Field,
        AutocompleteEntryKind::Binding => SuggestionKind::Variable,
        AutocompleteEntryKind::Keyword => SuggestionKind::Keyword,
        AutocompleteEntryKind::String => SuggestionKind::Value,
        AutocompleteEntryKind::Type | AutocompleteEntryKind::Module => SuggestionKind::Type,
        AutocompleteEntryKind::GeneratedFunction
        | AutocompleteEntryKind::RequirePath
        | AutocompleteEntryKind::HotComment => return None,
    };
    let shows_type =
        matches!(kind, SuggestionKind::Field | SuggestionKind::Variable | SuggestionKind::Function);
    let type_text = id.filter(|_| shows_type).map(|id| types::text_of(model.graph(), id)).unwrap_or_default();
    Some(Suggestion { name: name.to_owned(), kind, type_text, global: global.to_owned() })
}

/// Returns the global of a documentation symbol, as in `@deftool/global/fs.read`. Empty if it is not one.
pub(crate) fn global_of(symbol: &str) -> &str {
    let global = symbol.split_once("/global/").map_or("", |(_, global)| global);
    // An overload or a parameter of it may follow.
    global.split('/').next().unwrap_or_default()
}

/// Returns the values that the string at the position may have: those to which it is compared, and those that are
/// expected in its place.
fn expected_strings(model: &SemanticModel<'_>, result: &AutocompleteResult) -> Vec<String> {
    let [.., parent, node] = result.ancestry.as_slice() else { return Vec::new() };
    let (parent, node) = (parent.node(), node.node());
    let Some(string) = node.as_expression() else { return Vec::new() };
    let compared = parent.as_expression().and_then(|parent| compared_with(parent, string));
    let compared = compared.and_then(|other| model.expression_type(other));
    let expected = model.expected_expression_type(string);
    let found = [compared, expected].into_iter().flatten();
    found.flat_map(|found| types::strings(model.graph(), found.id())).collect()
}

/// Returns the other side of the comparison `parent`.
fn compared_with<'a>(parent: Expression<'a>, string: Expression<'a>) -> Option<Expression<'a>> {
    match parent.kind() {
        ExpressionKind::Binary { lhs, op: BinaryOp::Equal | BinaryOp::NotEqual, rhs } => {
            Some(if lhs.as_ptr() == string.as_ptr() { rhs } else { lhs })
        }
        _ => None,
    }
}
