//! Hover: the documentation of what is at a position.

use std::path::Path;

use deftool_lang::schema::{Target, emit};
use deftool_lang::spec::reference::{FORMS, KeyValue, PATTERNS, Plist};
use deftool_lang::spec::{Argument, Json};
use deftool_lang::text::Span;
use deftool_project::{LoadedTool, rules};
use deftool_script::{host_tables, words};

use crate::completion::{function_doc, host_function};
use crate::entity::entity_at;
use crate::model::Entity;
use crate::outline::{Outline, Part, Role};
use crate::project::{Language, Project};

/// The documentation of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hover {
    /// The span.
    pub span: Span,
    /// The documentation in Markdown.
    pub markdown: String,
}

/// Returns the documentation at `offset`. Tools are shown as `target` receives them.
pub fn hover(project: &Project, path: &Path, offset: usize, target: Target) -> Option<Hover> {
    match Language::of(path)? {
        Language::Spec => in_spec(project, path, offset, target),
        Language::Script => in_script(project, path, offset),
    }
}

fn in_spec(project: &Project, path: &Path, offset: usize, target: Target) -> Option<Hover> {
    let outline = Outline::of(project, path)?;
    if let Some(comment) = outline.comment_at(offset) {
        return of_comment(&outline.text, comment, offset);
    }
    let Part { node, role, .. } = outline.part_at(offset)?;
    let span = outline.span(node);
    let markdown = match role {
        Role::Head => FORMS.iter().find(|form| form.head == outline.text_of(node))?.doc.to_owned(),
        Role::PatternHead => {
            let head = outline.text_of(node);
            PATTERNS.iter().find(|pattern| pattern.head == head)?.doc.to_owned()
        }
        Role::Key(_, key) => {
            let key = key?;
            format!("`:{}`\n\n{}", key.name, key.doc)
        }
        Role::Value(_, key) if matches!(key.value, KeyValue::Rules) => rule_doc(outline.word(node))?,
        Role::Value(Plist::Argument | Plist::Schema, key) if key.name != "name" => key.doc.to_owned(),
        Role::Value(_, key) if matches!(key.value, KeyValue::Words(_)) => key.doc.to_owned(),
        Role::Value(..) | Role::CallKey | Role::Tool => match entity_at(project, path, offset)? {
            Entity::Tool(name) => tool_doc(project.tools_called(&name).next()?, target),
            Entity::Argument { tool, name } => {
                let loaded = project.tools_called(&tool).next()?;
                argument_doc(loaded.tool.arguments.iter().find(|argument| argument.name.value == name)?)
            }
            Entity::Worker(_) => return None,
        },
        Role::Plist(_)
        | Role::Names(_)
        | Role::Name
        | Role::Call(_)
        | Role::CallValue(_)
        | Role::Pattern(_) => return None,
    };
    Some(Hover { span, markdown })
}

fn of_comment(text: &str, comment: Span, offset: usize) -> Option<Hover> {
    comment.of(text).contains("deftool:").then_some(())?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let before = text.get(..offset)?;
    let start = offset - before.len() + before.trim_end_matches(is_word).len();
    let rest = text.get(start..)?;
    let word = rest.get(..rest.find(|c| !is_word(c)).unwrap_or(rest.len()))?;
    Some(Hover { span: Span::new(start, start + word.len()), markdown: rule_doc(word)? })
}

fn rule_doc(word: &str) -> Option<String> {
    let is_named =
        |rule: &&deftool_lang::diagnostic::Rule| rule.name == word || rule.code.eq_ignore_ascii_case(word);
    let rule = rules::all().into_iter().find(is_named)?;
    Some(format!("**{}** `{}`: {}", rule.code, rule.name, rule.explanation()))
}

fn tool_doc(loaded: &LoadedTool, target: Target) -> String {
    let tool = &loaded.tool;
    let about = format!("`{}`: {}", tool.name.value, tool.description.value);
    if !tool.valid {
        return about;
    }
    let json = emit(target, [&**tool]);
    let json = json.get(0).unwrap_or(&json);
    let json = serde_json::to_string_pretty(json).unwrap_or_default();
    format!(
        "{about}

For `{}`:
```json
{json}
```",
        target.as_str()
    )
}

fn argument_doc(argument: &Argument) -> String {
    let description = argument.keyword("description").and_then(Json::as_str).unwrap_or_default();
    let optional = if argument.optional { ", optional" } else { "" };
    let of_type = argument.type_name().unwrap_or("any type");
    format!("`{}` ({of_type}{optional}): {description}", argument.name.value)
}

fn in_script(project: &Project, path: &Path, offset: usize) -> Option<Hover> {
    let text = project.text(path)?;
    let words = words(&text);
    let index =
        words.iter().position(|word| word.start <= offset && offset <= word.start + word.text.len())?;
    let word = words.get(index)?;
    let span = Span::new(word.start, word.start + word.text.len());
    let table = index.checked_sub(1).and_then(|index| words.get(index)).filter(|_| word.is_field);
    let name = table.map_or(word.text.to_owned(), |table| format!("{}.{}", table.text, word.text));
    if let Some((table, function)) = host_function(&name) {
        return Some(Hover { span, markdown: function_doc(table, function) });
    }
    if let Some(Entity::Argument { tool, name }) = entity_at(project, path, offset) {
        let loaded = project.tools_called(&tool).next()?;
        let argument = loaded.tool.arguments.iter().find(|argument| argument.name.value == name)?;
        return Some(Hover { span, markdown: argument_doc(argument) });
    }
    let table = host_tables().iter().find(|doc| doc.name == name)?;
    Some(Hover { span, markdown: format!("`{}`\n\n{}", table.name, table.about) })
}
