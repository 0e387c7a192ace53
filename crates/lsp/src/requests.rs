//! Requests: parameters in, results out.

use std::path::Path;

use deftool_ide::{self as ide, Project};
use deftool_jsonrpc::{Error, code};
use gen_lsp_types as lsp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::convert::{self, parse};
use crate::file::File;
use crate::locations::Locations;
use crate::state::State;
use crate::workspace::Workspace;

/// Maximum number of results of a search for symbols.
const MAX_SYMBOLS: usize = 1000;

/// Maximum number of places in a message that a rename does not edit.
const MAX_UNEDITED: usize = 20;

type Answer = Result<Value, Error>;

/// The parameters of requests about a position. Other members are ignored.
type At = lsp::TextDocumentPositionParams;

impl State {
    /// Answers a request.
    pub(crate) fn answer(&mut self, method: &str, params: Value) -> Answer {
        match method {
            "textDocument/completion" => self.in_text(params, |file, at: At| file.completions(at.position)),
            "textDocument/signatureHelp" => self.in_text(params, |file, at: At| file.signature(at.position)),
            "textDocument/documentHighlight" => {
                self.in_file(params, |file, at: At| file.highlights(at.position))
            }
            "textDocument/hover" => self.in_file(params, |file, at: At| file.hover(at.position)),
            "textDocument/definition" => self.in_file(params, |file, at: At| {
                file.locations(&ide::definition(file.project, &file.path, file.offset(at.position)))
            }),
            "textDocument/references" => self.in_file(params, |file, of: lsp::ReferenceParams| {
                let offset = file.offset(of.text_document_position_params.position);
                let with_definition = of.context.include_declaration;
                file.locations(&ide::references(file.project, &file.path, offset, with_definition))
            }),
            "textDocument/prepareRename" => self.in_file(params, |file, at: At| {
                let found = ide::rename_target(file.project, &file.path, file.offset(at.position)).ok()?;
                Some(json!({"range": file.lines().range(found.0), "placeholder": found.1}))
            }),
            "textDocument/rename" => self.rename(params),
            "textDocument/codeAction" => {
                self.in_file(params, |file, of: lsp::CodeActionParams| file.actions(&of))
            }
            "textDocument/formatting" => {
                self.in_file(params, |file, _: lsp::DocumentFormattingParams| file.format(None))
            }
            "textDocument/rangeFormatting" => self
                .in_file(params, |file, of: lsp::DocumentRangeFormattingParams| file.format(Some(of.range))),
            "textDocument/documentSymbol" => {
                self.in_file(params, |file, _: lsp::DocumentSymbolParams| file.symbols())
            }
            "textDocument/foldingRange" => {
                self.in_file(params, |file, _: lsp::FoldingRangeParams| file.folds())
            }
            "textDocument/selectionRange" => {
                self.in_file(params, |file, of: lsp::SelectionRangeParams| file.selections(&of.positions))
            }
            "textDocument/semanticTokens/full" => {
                self.in_file(params, |file, _: lsp::SemanticTokensParams| file.tokens())
            }
            "textDocument/inlayHint" => {
                self.in_file(params, |file, of: lsp::InlayHintParams| file.hints(of.range))
            }
            "textDocument/codeLens" => self.in_file(params, |file, _: lsp::CodeLensParams| file.lenses()),
            "workspace/symbol" => self.search(params),
            _ => Err(Error::new(code::METHOD_NOT_FOUND, format!("unknown method `{method}`"))),
        }
    }

    /// Parses the parameters, calls `answer` with the current state of the file that they name, and serialises the
    /// result. The answer is null if the file cannot be read.
    fn in_file<P: DeserializeOwned, R: Serialize>(
        &mut self,
        params: Value,
        answer: impl FnOnce(&File<'_>, P) -> R,
    ) -> Answer {
        self.in_project(params, Workspace::fresh, answer)
    }

    /// Like [`in_file`](Self::in_file), for an answer that must not wait for the check of the last changes: the text is
    /// current, and the project is as it was last loaded.
    fn in_text<P: DeserializeOwned, R: Serialize>(
        &mut self,
        params: Value,
        answer: impl FnOnce(&File<'_>, P) -> R,
    ) -> Answer {
        self.in_project(params, Workspace::loaded, answer)
    }

    fn in_project<P: DeserializeOwned, R: Serialize>(
        &mut self,
        params: Value,
        project_of: for<'w> fn(&'w mut Workspace, &Path) -> Option<&'w Project>,
        answer: impl FnOnce(&File<'_>, P) -> R,
    ) -> Answer {
        let of: P = parse(params.clone())?;
        let document: lsp::TextDocumentIdentifier = parse(params["textDocument"].clone())?;
        let Self { workspace, settings, .. } = self;
        let file = convert::path_of(&document.uri).and_then(|path| {
            let project = project_of(workspace, &path)?;
            let text = project.text(&path)?;
            Some(File { settings, project, path, text })
        });
        Ok(json!(file.map(|file| answer(&file, of))))
    }

    fn rename(&mut self, params: Value) -> Answer {
        let (mut failed, mut unedited) = (None, Vec::new());
        let edit = self.in_file(params, |file, of: lsp::RenameParams| {
            let offset = file.offset(of.text_document_position_params.position);
            let moves_files = file.settings.edits.moves_files;
            let renamed = ide::rename(file.project, &file.path, offset, &of.new_name, moves_files);
            let mut renamed = renamed.map_err(|error| failed = Some(error.to_string())).ok()?;
            unedited = std::mem::take(&mut renamed.unedited);
            Some(convert::rename(file.project, &renamed, file.settings))
        });
        if !unedited.is_empty() {
            self.settings.messages.push((lsp::MessageType::Warning, describe_unedited(&unedited)));
        }
        match failed {
            Some(why) => Err(Error::new(code::REQUEST_FAILED, why)),
            None => edit,
        }
    }

    fn search(&mut self, params: Value) -> Answer {
        let of: lsp::WorkspaceSymbolParams = parse(params)?;
        let encoding = self.settings.encoding;
        let found = self.workspace.all().flat_map(|project| {
            let symbols = ide::project_symbols(project, &of.query, MAX_SYMBOLS).into_iter();
            let mut locations = Locations::new(project, encoding);
            symbols.filter_map(move |(path, symbol)| convert::project_symbol(path, &symbol, &mut locations))
        });
        Ok(json!(found.take(MAX_SYMBOLS).collect::<Vec<_>>()))
    }
}

/// Returns the message about what a rename does not edit.
fn describe_unedited(unedited: &[ide::Unedited]) -> String {
    let shown = unedited.iter().take(MAX_UNEDITED).map(|unedited| format!("\n{unedited}"));
    let more = unedited.len().saturating_sub(MAX_UNEDITED);
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    format!("not renamed, check by hand:{}{more}", shown.collect::<String>())
}
