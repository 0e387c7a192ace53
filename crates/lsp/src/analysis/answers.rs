//! Results of requests about scripts.

use std::path::{Path, PathBuf};

use deftool_ide::{self as ide, Completion, FileSpan, Project, ProjectUses};
use deftool_jsonrpc::{Error, Id, code};
use deftool_lang::text::Span;
use deftool_script::ScriptUnit;
use gen_lsp_types as lsp;
use serde_json::{Value, json};

use super::worker::Answer;
use crate::convert::{self, parse};
use crate::locations::Locations;
use crate::position::Lines;
use crate::settings::Settings;
use crate::state::State;

/// A request that waits for the analyzer.
pub(super) struct Asked {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) path: PathBuf,
    pub(super) unit: ScriptUnit,
    pub(super) offset: usize,
}

impl Asked {
    /// Returns the result for an answer. Positions are those of the text at the time of the request.
    ///
    /// # Errors
    /// If a rename is not possible.
    pub(super) fn result(&self, state: &mut State, answer: Answer) -> Result<Value, Error> {
        let State { workspace, settings, .. } = state;
        let lines = Lines::of(&self.unit.text, settings.encoding);
        Ok(match answer {
            Answer::Completions(found) => {
                let items = ide::suggestions(&self.unit.text, self.offset, found);
                convert_completions(items, &lines, settings)
            }
            // A name without a type may have documentation.
            Answer::Description(None) | Answer::Uses(None) => {
                return state.answer(&self.method, self.params.clone());
            }
            Answer::Description(Some(found)) if self.method == "textDocument/definition" => {
                let Some(project) = workspace.fresh(&self.path) else { return Ok(Value::Null) };
                let mut locations = Locations::new(project, settings.encoding);
                let definition = found.definition.map(|place| FileSpan {
                    path: project.root().join(&place.file),
                    span: Span::new(place.span.0, place.span.1),
                });
                let found = definition.and_then(|definition| locations.of(&definition));
                json!(found.into_iter().collect::<Vec<_>>())
            }
            Answer::Description(Some(found)) => {
                let Some(project) = workspace.fresh(&self.path) else { return Ok(Value::Null) };
                let hover =
                    ide::description(project, &self.path, self.offset, settings.target, &self.unit, &found);
                let contents = lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value: hover.markdown };
                json!(lsp::Hover { contents: contents.into(), range: Some(lines.range(hover.span)) })
            }
            Answer::Signatures(found) => {
                found.map_or(Value::Null, |found| signatures(&ide::call_signatures(found)))
            }
            Answer::Uses(Some(found)) => return self.uses(state, &found),
            Answer::Outline(items) => {
                let symbols = ide::script_symbols(items);
                json!(symbols.iter().map(|symbol| convert::symbol(symbol, &lines)).collect::<Vec<_>>())
            }
            Answer::Inlays(found) => {
                let range: lsp::Range = parse(self.params["range"].clone())?;
                let start = settings.encoding.offset(&self.unit.text, range.start);
                let end = settings.encoding.offset(&self.unit.text, range.end);
                let shown = found.into_iter().filter(|inlay| (start..=end).contains(&inlay.offset));
                let shown = shown.map(|inlay| {
                    json!({"position": lines.position(inlay.offset), "label": inlay.label, "kind": 1})
                });
                let shown: Vec<Value> = shown.collect();
                // Those of parameters come from the spec.
                let known = state.answer(&self.method, self.params.clone())?;
                json!(known.as_array().into_iter().flatten().cloned().chain(shown).collect::<Vec<_>>())
            }
            Answer::Tokens(found) => {
                json!(convert::tokens(&ide::script_tokens(&found), &self.unit.text, &lines))
            }
        })
    }

    /// Returns the result of a request about the uses of a name.
    ///
    /// # Errors
    /// If a rename is not possible.
    fn uses(&self, state: &mut State, found: &ProjectUses) -> Result<Value, Error> {
        let State { workspace, settings, .. } = state;
        let lines = Lines::of(&self.unit.text, settings.encoding);
        let Some(project) = workspace.fresh(&self.path) else { return Ok(Value::Null) };
        let here = found.uses.uses.iter().map(|(start, end)| Span::new(*start, *end));
        Ok(match self.method.as_str() {
            "textDocument/documentHighlight" => {
                let highlight = |span| json!({"range": lines.range(span), "kind": 1});
                json!(here.map(highlight).collect::<Vec<_>>())
            }
            "textDocument/prepareRename" => {
                let is_at =
                    |span: &Span| span.range().start <= self.offset && self.offset <= span.range().end;
                let at = here.into_iter().find(is_at).filter(|_| found.is_renamable());
                at.map_or(
                    Value::Null,
                    |span| json!({"range": lines.range(span), "placeholder": found.uses.name}),
                )
            }
            "textDocument/rename" => {
                let new = self.params["newName"].as_str().unwrap_or_default();
                let renamed = found.rename(project, &self.unit, new);
                let renamed = renamed.map_err(|error| Error::new(code::REQUEST_FAILED, error.to_string()))?;
                json!(convert::rename(project, &renamed, settings))
            }
            _ => {
                let mut places = found.places(project, &self.unit);
                let definition = found.definition(project);
                if self.params["context"]["includeDeclaration"] == false {
                    places.retain(|place| *place != definition);
                } else if !places.contains(&definition) {
                    places.push(definition);
                }
                let mut locations = Locations::new(project, settings.encoding);
                json!(places.iter().filter_map(|place| locations.of(place)).collect::<Vec<_>>())
            }
        })
    }
}

/// Returns the completions at an offset where the project alone knows them, or where there are none.
pub(super) fn completions_of_project(
    project: &Project,
    path: &Path,
    offset: usize,
    params: &Value,
    settings: &Settings,
) -> Option<Value> {
    // The other characters that start completion are those of specs.
    let trigger = params["context"]["triggerCharacter"].as_str();
    if trigger.is_some_and(|trigger| !matches!(trigger, "." | ":" | "\"")) {
        return Some(completion_list(&[]));
    }
    let known = ide::string_completions(project, path, offset)?;
    let text = project.text(path)?;
    Some(convert_completions(known, &Lines::of(&text, settings.encoding), settings))
}

fn convert_completions(items: Vec<Completion>, lines: &Lines, settings: &Settings) -> Value {
    let convert = |item| convert::completion(item, lines, settings.with_snippets);
    completion_list(&items.into_iter().map(convert).collect::<Vec<_>>())
}

/// Returns a list of completions, which replaces the words of the editor unless it is empty.
fn completion_list(items: &[lsp::CompletionItem]) -> Value {
    json!({"isIncomplete": items.is_empty(), "items": items})
}

fn signatures(help: &ide::CallSignatures) -> Value {
    let signature = |signature: &ide::CallSignature| {
        let columns = |offset: u32| {
            let before = signature.label.get(..offset as usize).unwrap_or_default();
            before.encode_utf16().count()
        };
        let parameters = signature.parameters.iter();
        let parameters = parameters.map(|span| json!({"label": [columns(span.start), columns(span.end)]}));
        json!({
            "label": signature.label,
            "documentation": {"kind": "markdown", "value": signature.documentation},
            "parameters": parameters.collect::<Vec<_>>(),
        })
    };
    let all: Vec<Value> = help.signatures.iter().map(signature).collect();
    json!({"signatures": all, "activeSignature": 0, "activeParameter": help.active_parameter})
}
