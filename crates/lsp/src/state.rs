//! The state of a server: documents, projects and the settings of the client.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_jsonrpc::Error;
use deftool_lang::schema::Target;
use deftool_lang::spec::advice_on_name;
use gen_lsp_types as lsp;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::convert::{self, parse};
use crate::documents::Documents;
use crate::locations::Locations;
use crate::position::Encoding;
use crate::settings::{EditSupport, Settings};
use crate::type_findings::TypeFindings;
use crate::workspace::Workspace;

/// The state of a server.
pub(crate) struct State {
    pub(crate) workspace: Workspace,
    pub(crate) settings: Settings,
    /// The type findings of open scripts.
    pub(crate) type_findings: TypeFindings,
}

/// The `initializationOptions`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    /// The API whose JSON hover shows. Default: `openai`.
    target: Option<String>,
    /// The APIs to check tools against, as with `check --target`.
    targets: Vec<String>,
}

impl State {
    pub(crate) fn new(on_disk_change: impl Fn(&Path) + Send + Sync + 'static) -> Self {
        let settings = Settings {
            documents: Documents::default(),
            encoding: Encoding::default(),
            with_snippets: false,
            edits: EditSupport::default(),
            target: Target::OpenAi,
            messages: Vec::new(),
        };
        let type_findings = TypeFindings::default();
        Self { workspace: Workspace::new(on_disk_change), settings, type_findings }
    }

    /// Handles `initialize`. Returns the result.
    ///
    /// # Errors
    /// If the parameters are invalid.
    #[allow(deprecated)] // Clients without workspace folders send `rootUri`.
    pub(crate) fn initialize(&mut self, params: Value, version: &str) -> Result<Value, Error> {
        let params: lsp::InitializeParams = parse(params)?;
        let capabilities = params.capabilities;
        let general = capabilities.general.and_then(|general| general.position_encodings);
        self.settings.encoding = Encoding::choose(&general.unwrap_or_default());
        let completion = capabilities.text_document.and_then(|document| document.completion);
        let item = completion.and_then(|completion| completion.completion_item);
        self.settings.with_snippets = item.and_then(|item| item.snippet_support).unwrap_or_default();
        let edit = capabilities.workspace.and_then(|workspace| workspace.workspace_edit);
        let edit = edit.unwrap_or_default();
        let operations = edit.resource_operations.unwrap_or_default();
        // Neovim lists only the operations, which require versioned edits.
        let has_versions = edit.document_changes.unwrap_or_default() || !operations.is_empty();
        let moves_files = operations.contains(&lsp::ResourceOperationKind::Rename);
        self.settings.edits = EditSupport { has_versions, moves_files };
        match params.initialization_options.map(serde_json::from_value::<Option<Options>>) {
            Some(Ok(options)) => self.set_options(options.unwrap_or_default()),
            Some(Err(error)) => {
                self.settings.add_error(format!("invalid initializationOptions: {error}"));
            }
            None => {}
        }
        let folders = params.workspace_folders_initialize_params.workspace_folders;
        let folders: Vec<Url> = match json!(folders).as_array() {
            Some(folders) => folders
                .iter()
                .filter_map(|folder| serde_json::from_value(folder["uri"].clone()).ok())
                .collect(),
            None => params.root_uri.into_iter().collect(),
        };
        for folder in folders.iter().filter_map(convert::path_of) {
            self.workspace.open_folder(&folder);
        }
        let result = lsp::InitializeResult {
            capabilities: self.capabilities(),
            server_info: Some(lsp::ServerInfo {
                name: String::from("deftool"),
                version: Some(version.to_owned()),
            }),
        };
        Ok(json!(result))
    }

    fn set_options(&mut self, options: Options) {
        let mut errors = Vec::new();
        let mut target_of = |name: &str| {
            let target = Target::ALL.into_iter().find(|target| target.as_str() == name);
            if target.is_none() {
                let advice = advice_on_name(name, "targets", Target::ALL.map(Target::as_str));
                errors.push(format!("unknown target `{name}`; {advice}"));
            }
            target
        };
        if let Some(target) = options.target.as_deref().and_then(&mut target_of) {
            self.settings.target = target;
        }
        self.workspace.targets = options.targets.iter().filter_map(|name| target_of(name)).collect();
        for error in errors {
            self.settings.add_error(error);
        }
    }

    fn capabilities(&self) -> lsp::ServerCapabilities {
        let sync = lsp::TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(lsp::TextDocumentSyncKind::Incremental),
            save: Some(lsp::Save::Bool(true)),
            ..lsp::TextDocumentSyncOptions::default()
        };
        let triggers = [":", "\"", "(", "[", " ", "."];
        let tokens = lsp::SemanticTokensOptions {
            legend: lsp::SemanticTokensLegend {
                token_types: convert::TOKEN_TYPES.map(str::to_owned).to_vec(),
                token_modifiers: Vec::new(),
            },
            full: Some(lsp::Full::Bool(true)),
            ..lsp::SemanticTokensOptions::default()
        };
        let actions = lsp::CodeActionOptions {
            code_action_kinds: Some(vec![lsp::CodeActionKind::QuickFix, lsp::CodeActionKind::SourceFixAll]),
            ..lsp::CodeActionOptions::default()
        };
        let rename = lsp::RenameOptions { prepare_provider: Some(true), ..lsp::RenameOptions::default() };
        lsp::ServerCapabilities {
            position_encoding: Some(self.settings.encoding.kind()),
            text_document_sync: Some(lsp::TextDocumentSync::Options(sync)),
            completion_provider: Some(lsp::CompletionOptions {
                trigger_characters: Some(triggers.map(str::to_owned).to_vec()),
                ..lsp::CompletionOptions::default()
            }),
            signature_help_provider: Some(lsp::SignatureHelpOptions {
                trigger_characters: Some(["(", ":", " ", ","].map(str::to_owned).to_vec()),
                ..lsp::SignatureHelpOptions::default()
            }),
            document_highlight_provider: Some(lsp::DocumentHighlightProvider::Bool(true)),
            hover_provider: Some(lsp::HoverProvider::Bool(true)),
            definition_provider: Some(lsp::DefinitionProvider::Bool(true)),
            references_provider: Some(lsp::ReferencesProvider::Bool(true)),
            document_symbol_provider: Some(lsp::DocumentSymbolProvider::Bool(true)),
            workspace_symbol_provider: Some(lsp::WorkspaceSymbolProvider::Bool(true)),
            code_action_provider: Some(lsp::CodeActionProvider::CodeActionOptions(actions)),
            code_lens_provider: Some(lsp::CodeLensOptions::default()),
            document_formatting_provider: Some(lsp::DocumentFormattingProvider::Bool(true)),
            document_range_formatting_provider: Some(lsp::DocumentRangeFormattingProvider::Bool(true)),
            rename_provider: Some(lsp::RenameProvider::RenameOptions(rename)),
            folding_range_provider: Some(lsp::FoldingRangeProvider::Bool(true)),
            selection_range_provider: Some(lsp::SelectionRangeProvider::Bool(true)),
            semantic_tokens_provider: Some(lsp::SemanticTokensProvider::SemanticTokensOptions(tokens)),
            inlay_hint_provider: Some(lsp::InlayHintProvider::Bool(true)),
            ..lsp::ServerCapabilities::default()
        }
    }

    /// Handles a notification. Returns a file whose findings must be cleared.
    ///
    /// # Errors
    /// If the parameters are invalid. The state is unchanged then.
    pub(crate) fn notify(&mut self, method: &str, params: Value) -> Result<Option<PathBuf>, Error> {
        match method {
            "textDocument/didOpen" => {
                let opened: lsp::DidOpenTextDocumentParams = parse(params)?;
                let document = opened.text_document;
                if let Some(path) = convert::path_of(&document.uri) {
                    let text: Arc<str> = Arc::from(document.text);
                    self.settings.documents.open(path.clone(), document.version, Arc::clone(&text));
                    self.workspace.open(&path, text);
                }
            }
            "textDocument/didChange" => {
                let changed: lsp::DidChangeTextDocumentParams = parse(params)?;
                let Settings { documents, encoding, .. } = &mut self.settings;
                let document = changed.text_document;
                let path = convert::path_of(&document.text_document_identifier.uri);
                if let Some(path) = path
                    && let Some(text) =
                        documents.change(&path, document.version, changed.content_changes, *encoding)
                {
                    self.workspace.change(&path, text);
                }
            }
            "textDocument/didClose" => {
                let closed: lsp::DidCloseTextDocumentParams = parse(params)?;
                if let Some(path) = convert::path_of(&closed.text_document.uri) {
                    self.settings.documents.close(&path);
                    return Ok(self.workspace.close(&path).then_some(path));
                }
            }
            "textDocument/didSave" => {
                let saved: lsp::DidSaveTextDocumentParams = parse(params)?;
                if let Some(path) = convert::path_of(&saved.text_document.uri)
                    && let Some(open) = self.workspace.project_of(&path)
                {
                    // A spec file may have settings for Emacs Lisp in the same folder.
                    let root = open.project.root().to_owned();
                    self.workspace.rescan(&root);
                }
            }
            _ => {}
        }
        Ok(None)
    }

    /// Loads all changes. Returns the parameters of a `textDocument/publishDiagnostics` for each file with changed
    /// findings.
    pub(crate) fn publish(&mut self) -> Vec<Value> {
        let Self { workspace, settings, type_findings } = self;
        let mut retyped = type_findings.take_changed();
        let mut published = Vec::new();
        for (project, changed, error) in workspace.changed_findings() {
            if let Some(error) = error {
                settings.add_error(error);
            }
            let mut locations = Locations::new(project, settings.encoding);
            for (path, findings) in changed {
                retyped.remove(&path);
                let params =
                    convert::published(project, &path, &findings, type_findings, settings, &mut locations);
                published.extend(params);
            }
        }
        for path in retyped {
            let Some(project) = workspace.fresh(&path) else { continue };
            let mut locations = Locations::new(project, settings.encoding);
            let findings = project.findings_of(&path);
            published.extend(convert::published(
                project,
                &path,
                findings,
                type_findings,
                settings,
                &mut locations,
            ));
        }
        published
    }
}
