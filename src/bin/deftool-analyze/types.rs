//! Texts of types.

use luau_analysis::types::{FunctionType, ToStringOptions, TypeGraph, TypeId, TypeKind};

/// Maximum length of the text of a type, in bytes.
const MAX_TYPE: usize = 200;
/// Maximum nesting of unions in which values are searched.
const MAX_DEPTH: usize = 8;

/// Returns the options of texts for people.
pub(crate) fn options() -> ToStringOptions {
    let mut options = ToStringOptions::default();
    options.hide_table_kind = true;
    options.function_type_arguments = true;
    options.max_table_length = MAX_TYPE / 2;
    options.max_type_length = MAX_TYPE;
    options
}

/// Returns the text of a type.
pub(crate) fn text_of(graph: &TypeGraph<'_>, id: TypeId) -> String {
    graph.stringify_type_with_options(id, &mut options()).to_string()
}

/// Returns the types of a function: itself, or the overloads.
pub(crate) fn functions<'g>(graph: &'g TypeGraph<'_>, id: TypeId) -> Vec<&'g FunctionType> {
    match graph.kind(graph.follow_type(id)) {
        TypeKind::Function(function) => vec![function],
        TypeKind::Intersection(parts) => {
            let kinds = parts.parts.iter().map(|part| graph.kind(graph.follow_type(*part)));
            kinds
                .filter_map(|kind| match kind {
                    TypeKind::Function(function) => Some(function),
                    _ => None,
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the strings of a union, also in nested unions: an optional enum is a union of a union and nil.
pub(crate) fn strings(graph: &TypeGraph<'_>, id: TypeId) -> Vec<String> {
    let mut found = Vec::new();
    collect_strings(graph, id, MAX_DEPTH, &mut found);
    found
}

fn collect_strings(graph: &TypeGraph<'_>, id: TypeId, depth: usize, found: &mut Vec<String>) {
    use luau_analysis::types::SingletonValue;

    match graph.kind(graph.follow_type(id)) {
        TypeKind::Singleton(singleton) => {
            if let SingletonValue::String(string) = &singleton.value {
                found.push(string.value.to_string());
            }
        }
        TypeKind::Union(union) if depth > 0 => {
            for option in &union.options {
                collect_strings(graph, *option, depth - 1, found);
            }
        }
        _ => {}
    }
}
