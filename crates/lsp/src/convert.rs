//! Conversion of parameters, and of the results of `deftool-ide` to the types of the protocol.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use deftool_ide::{
    Action, Completion, CompletionKind, FileSpan, Project, Rename, RuleFixes, Signature, SignatureKey,
    Symbol, SymbolKind, Token, TokenKind,
};
use deftool_jsonrpc::{Error, code};
use deftool_lang::diagnostic::{Diagnostic, Edit, Severity};
use deftool_lang::text::Span;
use gen_lsp_types as lsp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use crate::locations::{Locations, uri_of};
use crate::position::{Lines, split};
use crate::settings::Settings;
use crate::type_findings::TypeFindings;

/// Parses the parameters of a request.
pub(crate) fn parse<P: DeserializeOwned>(params: Value) -> Result<P, Error> {
    serde_json::from_value(params).map_err(|error| Error::new(code::INVALID_PARAMS, error.to_string()))
}

/// Returns the path of a `file:` URI.
pub(crate) fn path_of(uri: &Url) -> Option<PathBuf> {
    uri.to_file_path().ok()
}

/// Converts a finding. `lines`: those of its file.
pub(crate) fn diagnostic(
    project: &Project,
    finding: &Diagnostic,
    lines: &Lines,
    locations: &mut Locations<'_>,
) -> lsp::Diagnostic {
    let mut message = finding.message.clone();
    for more in finding.label.iter().chain(&finding.notes) {
        message += "\n";
        message += more;
    }
    let related = finding.labels.iter().filter_map(|label| {
        let location = locations.of(&project.at(label.location)?)?;
        Some(lsp::DiagnosticRelatedInformation { location, message: label.message.clone() })
    });
    let related: Vec<_> = related.collect();
    lsp::Diagnostic {
        range: lines.range(finding.primary.span),
        severity: Some(match finding.severity {
            Severity::Error => lsp::DiagnosticSeverity::Error,
            Severity::Warning => lsp::DiagnosticSeverity::Warning,
            Severity::Note => lsp::DiagnosticSeverity::Information,
        }),
        code: Some(lsp::Code::String(finding.rule.code.to_owned())),
        source: Some(String::from("deftool")),
        message: lsp::Message::String(message),
        related_information: (!related.is_empty()).then_some(related),
        ..lsp::Diagnostic::default()
    }
}

/// Returns the parameters of a `textDocument/publishDiagnostics` for a file. `typed`: type findings, which are not in the
/// load of the project.
pub(crate) fn published(
    project: &Project,
    path: &Path,
    findings: &[Diagnostic],
    typed: &TypeFindings,
    settings: &Settings,
    locations: &mut Locations<'_>,
) -> Option<Value> {
    let uri = uri_of(path)?;
    let text = project.text(path).unwrap_or_default();
    let lines = Lines::of(&text, settings.encoding);
    let typed = typed.of(path, &text);
    let diagnostics = findings.iter().chain(&typed);
    let diagnostics = diagnostics.map(|finding| diagnostic(project, finding, &lines, locations));
    Some(json!(lsp::PublishDiagnosticsParams {
        uri,
        version: settings.documents.get(path).map(|document| document.version),
        diagnostics: diagnostics.collect(),
    }))
}

pub(crate) fn text_edits(edits: &[Edit], lines: &Lines) -> Vec<lsp::TextEdit> {
    let edit =
        |edit: &Edit| lsp::TextEdit { range: lines.range(edit.span), new_text: edit.replacement.clone() };
    edits.iter().map(edit).collect()
}

fn edit_of_file(path: &Path, edits: Vec<lsp::TextEdit>) -> lsp::WorkspaceEdit {
    let changes = uri_of(path).map(|uri| HashMap::from([(uri, edits)]));
    lsp::WorkspaceEdit { changes, ..lsp::WorkspaceEdit::default() }
}

pub(crate) fn action(
    project: &Project,
    path: &Path,
    action: &Action<'_>,
    lines: &Lines,
    locations: &mut Locations<'_>,
) -> lsp::CodeAction {
    lsp::CodeAction {
        title: action.fix.title.clone(),
        kind: Some(lsp::CodeActionKind::QuickFix),
        diagnostics: Some(vec![diagnostic(project, action.finding, lines, locations)]),
        is_preferred: (!action.silences && action.fix.is_safe).then_some(true),
        edit: Some(edit_of_file(path, text_edits(&action.fix.edits, lines))),
        ..lsp::CodeAction::default()
    }
}

/// Returns the action that fixes all findings of a rule in a file.
pub(crate) fn rule_fixes(path: &Path, fixes: &RuleFixes<'_>, lines: &Lines) -> lsp::CodeAction {
    let RuleFixes { finding, count, edits } = fixes;
    lsp::CodeAction {
        title: format!("fix all {count} findings of `{}` in this file", finding.rule.name),
        kind: Some(lsp::CodeActionKind::QuickFix),
        edit: Some(edit_of_file(path, text_edits(edits, lines))),
        ..lsp::CodeAction::default()
    }
}

/// Returns the action that replaces the text of a file by one in which all safe fixes are applied.
pub(crate) fn fix_all(path: &Path, fixed: String, text: &str, lines: &Lines) -> lsp::CodeAction {
    let edits = vec![lsp::TextEdit { range: lines.range(Span::new(0, text.len())), new_text: fixed }];
    lsp::CodeAction {
        title: String::from("apply all safe fixes"),
        kind: Some(lsp::CodeActionKind::SourceFixAll),
        edit: Some(edit_of_file(path, edits)),
        ..lsp::CodeAction::default()
    }
}

pub(crate) fn completion(completion: Completion, lines: &Lines, with_snippets: bool) -> lsp::CompletionItem {
    let kind = match completion.kind {
        CompletionKind::Form => lsp::CompletionItemKind::Snippet,
        CompletionKind::Key => lsp::CompletionItemKind::Property,
        CompletionKind::Value => lsp::CompletionItemKind::EnumMember,
        CompletionKind::Type => lsp::CompletionItemKind::TypeParameter,
        CompletionKind::Tool | CompletionKind::Function => lsp::CompletionItemKind::Function,
        CompletionKind::Rule => lsp::CompletionItemKind::Constant,
        CompletionKind::File => lsp::CompletionItemKind::File,
        CompletionKind::Global => lsp::CompletionItemKind::Module,
        CompletionKind::Variable => lsp::CompletionItemKind::Variable,
        CompletionKind::Field => lsp::CompletionItemKind::Field,
        CompletionKind::Keyword => lsp::CompletionItemKind::Keyword,
    };
    let value = completion.documentation;
    let documentation =
        (!value.is_empty()).then_some(lsp::Documentation::MarkupContent(lsp::MarkupContent {
            kind: lsp::MarkupKind::Markdown,
            value,
        }));
    let format =
        if with_snippets { lsp::InsertTextFormat::Snippet } else { lsp::InsertTextFormat::PlainText };
    let new_text = if with_snippets { completion.snippet } else { without_placeholders(&completion.snippet) };
    let edit = lsp::TextEdit { range: lines.range(completion.replaces), new_text };
    let first_word = edit.new_text.split([' ', '\n']).next().unwrap_or_default();
    let filter_text = if first_word.contains('$') { &completion.label } else { first_word };
    lsp::CompletionItem {
        // Neovim filters only items with this member.
        filter_text: Some(filter_text.to_owned()),
        label: completion.label,
        kind: Some(kind),
        documentation,
        insert_text_format: Some(format),
        text_edit: Some(edit.into()),
        ..lsp::CompletionItem::default()
    }
}

/// Returns the text of a snippet: placeholders are replaced by their defaults, choices by the first one.
fn without_placeholders(snippet: &str) -> String {
    let mut text = String::new();
    let mut rest = snippet.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '\\' => text.extend(rest.next()),
            '$' if rest.next_if_eq(&'{').is_some() => {
                let inside: String = rest.by_ref().take_while(|c| *c != '}').collect();
                let default = inside.split_once([':', '|']).map_or("", |(_, default)| default);
                text += default.split([',', '|']).next().unwrap_or_default();
            }
            '$' => while rest.next_if(char::is_ascii_digit).is_some() {},
            other => text.push(other),
        }
    }
    text
}

/// Converts a signature. Its label has the offsets of UTF-16, whatever the encoding of positions is.
pub(crate) fn signature(signature: &Signature) -> lsp::SignatureHelp {
    let markdown = |text: &str| {
        let value = text.to_owned();
        lsp::Documentation::MarkupContent(lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value })
    };
    let units = |end: u32| {
        let before = signature.label.get(..end as usize).unwrap_or_default();
        before.encode_utf16().count() as u32
    };
    let parameter = |key: &SignatureKey| lsp::ParameterInformation {
        label: lsp::ParameterInformationLabel::Tuple((units(key.span.start), units(key.span.end))),
        documentation: (!key.documentation.is_empty()).then(|| markdown(&key.documentation)),
    };
    let information = lsp::SignatureInformation {
        label: signature.label.clone(),
        documentation: Some(markdown(&signature.documentation)),
        parameters: Some(signature.keys.iter().map(parameter).collect()),
        active_parameter: None,
    };
    lsp::SignatureHelp {
        signatures: vec![information],
        active_signature: Some(0),
        active_parameter: Some(lsp::ActiveParameter::Int(signature.active as u32)),
    }
}

fn symbol_kind(kind: SymbolKind) -> lsp::SymbolKind {
    match kind {
        SymbolKind::Tool => lsp::SymbolKind::Function,
        SymbolKind::ExitTool => lsp::SymbolKind::Event,
        SymbolKind::Worker => lsp::SymbolKind::Object,
        SymbolKind::Mcp => lsp::SymbolKind::Module,
        SymbolKind::Project => lsp::SymbolKind::Constant,
        SymbolKind::Argument | SymbolKind::Variable => lsp::SymbolKind::Variable,
        SymbolKind::Function => lsp::SymbolKind::Function,
        SymbolKind::Test => lsp::SymbolKind::Method,
    }
}

#[allow(deprecated)] // `deprecated` has no default.
pub(crate) fn symbol(symbol: &Symbol, lines: &Lines) -> lsp::DocumentSymbol {
    let children: Vec<_> = symbol.children.iter().map(|child| self::symbol(child, lines)).collect();
    // A client rejects empty names.
    let name = if symbol.name.is_empty() { "(no name)" } else { &symbol.name };
    lsp::DocumentSymbol {
        name: name.to_owned(),
        kind: symbol_kind(symbol.kind),
        range: lines.range(symbol.span),
        selection_range: lines.range(symbol.name_span),
        children: (!children.is_empty()).then_some(children),
        detail: None,
        tags: None,
        deprecated: None,
    }
}

pub(crate) fn project_symbol(
    path: PathBuf,
    symbol: &Symbol,
    locations: &mut Locations<'_>,
) -> Option<lsp::WorkspaceSymbol> {
    let found = FileSpan { path, span: symbol.name_span };
    Some(lsp::WorkspaceSymbol {
        location: lsp::WorkspaceSymbolLocation::Location(locations.of(&found)?),
        data: None,
        base_symbol_information: lsp::BaseSymbolInformation {
            name: symbol.name.clone(),
            kind: symbol_kind(symbol.kind),
            tags: None,
            container_name: None,
        },
    })
}

/// Converts a rename. A client without versioned edits gets a map, which cannot contain moves.
pub(crate) fn rename(project: &Project, rename: &Rename, settings: &Settings) -> lsp::WorkspaceEdit {
    let edited = rename.edits.iter().filter_map(|(path, edits)| {
        let lines = Lines::of(&project.text(path)?, settings.encoding);
        Some((path, uri_of(path)?, text_edits(edits, &lines)))
    });
    if !settings.edits.has_versions {
        let changes = edited.map(|(_, uri, edits)| (uri, edits)).collect();
        return lsp::WorkspaceEdit { changes: Some(changes), ..lsp::WorkspaceEdit::default() };
    }
    let edits = edited.map(|(path, uri, edits)| {
        lsp::DocumentChange::TextDocumentEdit(lsp::TextDocumentEdit {
            text_document: lsp::OptionalVersionedTextDocumentIdentifier {
                version: settings.documents.get(path).map(|document| document.version),
                text_document_identifier: lsp::TextDocumentIdentifier { uri },
            },
            edits: edits.into_iter().map(lsp::Edit::TextEdit).collect(),
        })
    });
    let moves = rename.moves.iter().filter_map(|(from, to)| {
        let (old_uri, new_uri) = (uri_of(from)?, uri_of(to)?);
        let moved = lsp::RenameFile { old_uri, new_uri, options: None, annotation_id: None };
        Some(lsp::DocumentChange::RenameFile(moved))
    });
    let changes = edits.chain(moves).collect();
    lsp::WorkspaceEdit { document_changes: Some(changes), ..lsp::WorkspaceEdit::default() }
}

/// The token types, in the order of [`token_type`].
pub(crate) const TOKEN_TYPES: [&str; 10] = [
    "macro",
    "property",
    "function",
    "parameter",
    "type",
    "enumMember",
    "string",
    "number",
    "comment",
    "variable",
];

fn token_type(kind: TokenKind) -> u32 {
    match kind {
        TokenKind::Head => 0,
        TokenKind::Key => 1,
        TokenKind::Tool => 2,
        TokenKind::Argument => 3,
        TokenKind::Type => 4,
        TokenKind::Word => 5,
        TokenKind::String => 6,
        TokenKind::Number => 7,
        TokenKind::Comment => 8,
        TokenKind::Variable => 9,
    }
}

/// Encodes tokens relative to each other. A token with several lines becomes one for each line.
pub(crate) fn tokens(tokens: &[Token], text: &str, lines: &Lines) -> lsp::SemanticTokens {
    let mut before = lsp::Position { line: 0, character: 0 };
    let mut data = Vec::new();
    for token in tokens {
        for span in split(text, token.span) {
            let lsp::Range { start, end } = lines.range(span);
            let delta_line = start.line - before.line;
            let delta_start =
                if delta_line == 0 { start.character - before.character } else { start.character };
            data.push(lsp::SemanticToken {
                delta_line,
                delta_start,
                length: end.character - start.character,
                token_type: token_type(token.kind),
                token_modifiers_bitset: 0,
            });
            before = start;
        }
    }
    lsp::SemanticTokens { result_id: None, data }
}

pub(crate) fn selection(spans: &[Span], lines: &Lines) -> Option<lsp::SelectionRange> {
    let outer_first = spans.iter().rev();
    outer_first.fold(None, |parent, span| {
        Some(lsp::SelectionRange { range: lines.range(*span), parent: parent.map(Box::new) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_have_plain_forms() {
        for (snippet, plain) in [
            (":name \"$1\"", ":name \"\""),
            (":effect ${1|pure,keyed,once|}", ":effect pure"),
            ("(:type ${2:string} :x $3)$0", "(:type string :x )"),
            (":\\$ref", ":$ref"),
        ] {
            assert_eq!(without_placeholders(snippet), plain);
        }
    }
}
