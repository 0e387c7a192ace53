//! The functions that constant folding knows.

use super::fold::{Datum, DatumKind, Folder, Mode, with_tail};
use super::number::Number;
use super::tree::{Kind, NodeId};

/// What [`fold_call`] folds.
const FUNCTIONS: [&str; 8] = ["quote", "function", "list", "vector", "cons", "append", "concat", "format"];

/// Folds the call `id`, whose head is the symbol `head`.
pub(super) fn fold_call(folder: &mut Folder<'_>, id: NodeId, head: NodeId, depth: usize) -> Datum {
    let span = folder.tree.span(id);
    let arguments: Vec<NodeId> = folder.tree.children(id).skip(1).collect();
    let is_dotted = arguments.iter().any(|&argument| folder.tree.kind(argument) == Kind::Dot);
    match folder.tree.text(head, folder.text) {
        // A dotted pair is no call: `(key . value)` is data.
        name if is_dotted && !FUNCTIONS.contains(&name) => folder.fold_data_list(id, Mode::Quoted, depth),
        _ if is_dotted => folder.not_a_constant(id),
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
            Ok([first, rest]) => Datum { span, kind: with_tail(vec![first], rest.kind, rest.span) },
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

/// The last argument is the tail of the list, whatever it is.
fn append(mut parts: Vec<Datum>) -> Option<DatumKind> {
    if any_invalid(&parts) {
        return Some(DatumKind::Invalid);
    }
    let Some(last) = parts.pop() else { return Some(DatumKind::List(Vec::new())) };
    let mut all = Vec::new();
    for part in parts {
        match part.kind {
            DatumKind::List(items) | DatumKind::Vector(items) => all.extend(items),
            _ => return None,
        }
    }
    Some(with_tail(all, last.kind, last.span))
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

/// `%s`, `%S`, `%d`, `%c` and `%%`; the rest of `format` is code to us.
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
        match characters.next()? {
            '%' => text.push('%'),
            directive => text.push_str(&format_one(directive, &values.next()?.kind)?),
        }
    }
    Some(DatumKind::String(text))
}

/// How Emacs prints floats, lists and odd symbols is not ours to imitate.
fn format_one(directive: char, value: &DatumKind) -> Option<String> {
    match (directive, value) {
        ('s' | 'd', DatumKind::Number(Number::Integer(value))) => Some(value.to_string()),
        ('s' | 'd', DatumKind::Number(Number::Unsigned(value))) => Some(value.to_string()),
        ('c', DatumKind::Number(Number::Integer(value))) => {
            u32::try_from(*value).ok().and_then(char::from_u32).map(String::from)
        }
        ('s', DatumKind::String(text) | DatumKind::Symbol(text) | DatumKind::Keyword(text)) => {
            Some(text.clone())
        }
        ('s' | 'S', DatumKind::List(items)) if items.is_empty() => Some(String::from("nil")),
        ('S', DatumKind::String(text)) => {
            Some(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
        }
        _ => None,
    }
}
