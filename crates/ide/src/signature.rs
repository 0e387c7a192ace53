//! Signature help: the keys of the form at a position, and the value that is expected there.

use std::path::Path;

use deftool_lang::spec::reference::{FORMS, Plist, keys};
use deftool_lang::syntax::{Kind, NodeId};
use deftool_lang::text::Span;

use crate::arguments::{WrittenArgument, arguments_at};
use crate::outline::{Outline, Part, Role};
use crate::project::{Language, Project};

/// The keys of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The form with all keys and the shapes of their values.
    pub label: String,
    /// The documentation of the form.
    pub documentation: String,
    /// The keys.
    pub keys: Vec<SignatureKey>,
    /// The index of the key at the position or, if a key is expected there, of the first one that is not written yet.
    pub active: usize,
}

/// A key of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureKey {
    /// The key with the shape of its value, in the label.
    pub span: Span,
    /// The documentation in Markdown. May be empty.
    pub documentation: String,
}

/// Returns the keys of the innermost form around `offset` in a spec file. The text counts; changes since the last load do not
/// have to be loaded.
pub fn signature(project: &Project, path: &Path, offset: usize) -> Option<Signature> {
    let outline = Outline::of(project, path).filter(|_| Language::of(path) == Some(Language::Spec))?;
    if outline.comment_at(offset).is_some() {
        return None;
    }
    let is_around = |part: &&Part| {
        matches!(part.role, Role::Plist(_) | Role::Call(_)) && outline.is_inside(part.node, offset)
    };
    let Part { node: list, role, form } = *outline.parts.iter().rev().find(is_around)?;
    let (head, documentation, keys) = match role {
        Role::Plist(plist) => of_plist(&outline, list, plist),
        Role::Call(plist) if outline.is_sample(list, plist) => of_call(sample_keys()),
        _ => of_call(arguments_at(project, &outline, form, offset).into_iter().map(shown_argument).collect()),
    };
    let mut label = format!("({head}");
    let mut shown = Vec::new();
    for (name, shape, documentation) in &keys {
        if label.len() > 1 {
            label.push(' ');
        }
        let start = label.len();
        label.extend([":", name, " ", shape]);
        shown
            .push(SignatureKey { span: Span::new(start, label.len()), documentation: documentation.clone() });
    }
    label.push(')');
    let here = key_at(&outline, list, offset);
    let written = outline.keys_in(list);
    let is_here = |name: &str| here.is_some_and(|key| outline.text_of(key).trim_start_matches(':') == name);
    let named = keys.iter().position(|(name, ..)| is_here(name));
    let next = || keys.iter().position(|(name, ..)| !written.contains(&name.as_str()));
    let active = named.or_else(next).unwrap_or_default();
    (!shown.is_empty()).then_some(Signature { label, documentation, keys: shown, active })
}

/// A key with the shape of its value and its documentation.
type ShownKey = (String, String, String);

fn of_plist(outline: &Outline, list: NodeId, plist: Plist) -> (String, String, Vec<ShownKey>) {
    let form = FORMS.iter().find(|form| form.plist == plist);
    let is_form = outline.forms.iter().any(|form| form.node == list);
    let head = outline.tree.children(list).next().filter(|_| is_form);
    let head = head.filter(|head| outline.tree.kind(*head) == Kind::Symbol);
    let head = head.map_or_else(String::new, |head| outline.text_of(head).to_owned());
    let documentation = form.map_or_else(|| plist.describe().to_owned(), |form| form.doc.to_owned());
    let keys = keys(plist).iter();
    let keys = keys.map(|key| (key.name.to_owned(), key.value.shape(), key.doc.to_owned()));
    (head, documentation, keys.collect())
}

fn of_call(keys: Vec<ShownKey>) -> (String, String, Vec<ShownKey>) {
    (String::new(), String::from("arguments of the tool"), keys)
}

/// Returns the keys of `(:args (…) :returns …)`.
fn sample_keys() -> Vec<ShownKey> {
    let of = |name: &str, shape: &str| (name.to_owned(), shape.to_owned(), String::new());
    vec![of("args", "(…)"), of("returns", "value")]
}

fn shown_argument(argument: WrittenArgument) -> ShownKey {
    let WrittenArgument { name, of_type, description, .. } = argument;
    (name, of_type.unwrap_or_else(|| String::from("value")), description)
}

/// Returns the key at `offset`, or the key whose value is there or expected there.
fn key_at(outline: &Outline, list: NodeId, offset: usize) -> Option<NodeId> {
    let mut key = None;
    for child in outline.tree.children(list) {
        let span = outline.span(child).range();
        if offset < span.start {
            break;
        }
        if outline.is_key(child) {
            key = Some(child);
        } else if offset > span.end {
            // The value is complete.
            key = None;
        }
    }
    key
}
