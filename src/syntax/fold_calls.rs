//! The functions that constant folding knows.

use super::fold::{Datum, DatumKind, Folder, Mode};
use super::number::Number;
use super::tree::{Kind, NodeId};

/// Folds the call `id`, whose head is the symbol `head`.
pub(super) fn fold_call(folder: &mut Folder<'_>, id: NodeId, head: NodeId, depth: usize) -> Datum {
    let span = folder.tree.span(id);
    let arguments: Vec<NodeId> = folder.tree.children(id).skip(1).collect();
    match folder.tree.text(head, folder.text) {
        "quote" => match arguments.as_slice() {
            [form] => folder.fold_in(*form, Mode::Quoted, depth + 1),
            _ => folder.not_a_constant(id),
        },
        "function" => match arguments.as_slice() {
            [form] if folder.tree.kind(*form) == Kind::Symbol => {
                folder.fold_in(*form, Mode::Quoted, depth + 1)
            }
            _ => folder.not_a_constant(id),
        },
        "list" => {
            let items = fold_all(folder, &arguments, depth);
            Datum { span, kind: DatumKind::List(items) }
        }
        "vector" => {
            let items = fold_all(folder, &arguments, depth);
            Datum { span, kind: DatumKind::Vector(items) }
        }
        "cons" => match <[Datum; 2]>::try_from(fold_all(folder, &arguments, depth)) {
            Ok([first, rest]) => Datum { span, kind: cons(first, rest) },
            Err(_) => folder.not_a_constant(id),
        },
        "append" => {
            let parts = fold_all(folder, &arguments, depth);
            append(parts).map_or_else(|| folder.not_a_constant(id), |kind| Datum { span, kind })
        }
        "concat" => {
            let parts = fold_all(folder, &arguments, depth);
            concat(&parts).map_or_else(|| folder.not_a_constant(id), |kind| Datum { span, kind })
        }
        "format" => {
            let parts = fold_all(folder, &arguments, depth);
            format_parts(&parts).map_or_else(|| folder.not_a_constant(id), |kind| Datum { span, kind })
        }
        _ => folder.not_a_constant(id),
    }
}

fn fold_all(folder: &mut Folder<'_>, arguments: &[NodeId], depth: usize) -> Vec<Datum> {
    arguments.iter().map(|&argument| folder.fold_in(argument, Mode::Evaluated, depth + 1)).collect()
}

fn any_invalid(parts: &[Datum]) -> bool {
    parts.iter().any(|part| part.kind == DatumKind::Invalid)
}

fn cons(first: Datum, rest: Datum) -> DatumKind {
    match rest.kind {
        DatumKind::List(mut items) => {
            items.insert(0, first);
            DatumKind::List(items)
        }
        DatumKind::Dotted(mut items, tail) => {
            items.insert(0, first);
            DatumKind::Dotted(items, tail)
        }
        kind => DatumKind::Dotted(vec![first], Box::new(Datum { span: rest.span, kind })),
    }
}

fn append(parts: Vec<Datum>) -> Option<DatumKind> {
    if any_invalid(&parts) {
        return Some(DatumKind::Invalid);
    }
    let mut all = Vec::new();
    for part in parts {
        match part.kind {
            DatumKind::List(items) | DatumKind::Vector(items) => all.extend(items),
            _ => return None,
        }
    }
    Some(DatumKind::List(all))
}

fn concat(parts: &[Datum]) -> Option<DatumKind> {
    if any_invalid(parts) {
        return Some(DatumKind::Invalid);
    }
    let mut text = String::new();
    for part in parts {
        match &part.kind {
            DatumKind::String(piece) => text.push_str(piece),
            DatumKind::List(items) if items.is_empty() => {}
            _ => return None,
        }
    }
    Some(DatumKind::String(text))
}

/// `%s`, `%S`, `%d` and `%%`; the rest of `format` is code to us.
fn format_parts(parts: &[Datum]) -> Option<DatumKind> {
    if any_invalid(parts) {
        return Some(DatumKind::Invalid);
    }
    let (Datum { kind: DatumKind::String(template), .. }, values) = parts.split_first()? else { return None };
    let mut values = values.iter();
    let mut text = String::new();
    let mut characters = template.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        match (characters.next()?, &mut values) {
            ('%', _) => text.push('%'),
            ('s', values) => match &values.next()?.kind {
                DatumKind::String(piece) | DatumKind::Symbol(piece) | DatumKind::Keyword(piece) => {
                    text.push_str(piece);
                }
                DatumKind::Number(number) => text.push_str(&print_number(*number)?),
                _ => return None,
            },
            ('d', values) => match &values.next()?.kind {
                DatumKind::Number(number) => text.push_str(&print_number(*number)?),
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(DatumKind::String(text))
}

/// Integers only: how Emacs prints a float is not ours to imitate.
fn print_number(number: Number) -> Option<String> {
    match number {
        Number::Integer(value) => Some(value.to_string()),
        Number::Unsigned(value) => Some(value.to_string()),
        Number::Float(_) | Number::Rounded(_) => None,
    }
}
