//! The server takes linear time, even for hostile files.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::fs;
use std::path::Path;

use deftool_test_support::cpu::assert_linear;
use serde_json::{Value, json};

/// Runs a server that opens a file with this text, and answers a request about it. Returns its output.
fn serve(file: &str, text: &str, method: &str, mut params: Value) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    let uri = |path: &Path| format!("file://{}", path.display());
    let folders = json!([{"uri": uri(folder.path()), "name": "project"}]);
    let initialize =
        json!({"processId": null, "rootUri": null, "workspaceFolders": folders, "capabilities": {}});
    params["textDocument"] = json!({"uri": uri(&path)});
    let document = json!({"uri": uri(&path), "languageId": "eld", "version": 1, "text": text});
    let mut input = String::new();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}),
        json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}),
        json!({"jsonrpc": "2.0", "method": "exit"}),
    ] {
        let message = message.to_string();
        write!(input, "Content-Length: {}\r\n\r\n{message}", message.len()).unwrap();
    }
    let mut output = Vec::new();
    let analyzer = Err(String::from("no analyzer"));
    deftool_lsp::serve(std::io::Cursor::new(input.into_bytes()), &mut output, "0", analyzer);
    String::from_utf8(output).unwrap()
}

/// The requests about a file, each with its parameters and a text in the answer.
fn requests() -> [(&'static str, Value, &'static str); 16] {
    let at = json!({"line": 0, "character": 17});
    let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1_000_000, "character": 0}});
    let references = json!({"position": at, "context": {"includeDeclaration": true}});
    [
        ("textDocument/references", references, "\"uri\""),
        ("textDocument/definition", json!({"position": at}), "\"uri\""),
        ("textDocument/rename", json!({"position": at, "newName": "b"}), "\"newText\""),
        ("textDocument/documentSymbol", json!({}), "\"selectionRange\""),
        ("textDocument/codeLens", json!({}), "\"command\""),
        ("textDocument/codeAction", json!({"range": all, "context": {"diagnostics": []}}), "\"quickfix\""),
        ("textDocument/semanticTokens/full", json!({}), "\"data\""),
        ("textDocument/inlayHint", json!({"range": all}), "\"result\":["),
        ("textDocument/foldingRange", json!({}), "\"result\":["),
        ("textDocument/formatting", json!({"options": {"tabSize": 2, "insertSpaces": true}}), "\"result\":["),
        ("textDocument/hover", json!({"position": at}), "\"contents\""),
        ("textDocument/completion", json!({"position": at}), "\"items\":["),
        ("textDocument/signatureHelp", json!({"position": at}), "\"signatures\":["),
        ("textDocument/documentHighlight", json!({"position": at}), "\"range\""),
        ("textDocument/selectionRange", json!({"positions": [at]}), "\"parent\""),
        ("workspace/symbol", json!({"query": "a"}), "\"name\""),
    ]
}

/// Asserts that findings and requests take linear time for a file with `many` forms, which `form` returns by number. The
/// smallest file has more tools than an API takes, so that there is a quick fix.
fn assert_linear_for(many: usize, form: impl Fn(usize) -> String) {
    for (method, params, expected) in requests() {
        assert_linear(&format!("{method}: {}", form(0)), many, |size| {
            let text: String = (0..size).map(&form).collect();
            let output = serve("specs/a.eld", &text, method, params.clone());
            let answer = output.rsplit_once("\"id\":2").unwrap().1;
            assert!(answer.contains(expected), "{method}: {}", answer.get(..500).unwrap_or(answer));
        });
    }
}

const TOOL: &str = "(deftool :name \"a\" :description \"Do it.\" :args ())";

#[test]
fn equal_tools() {
    assert_linear_for(1_200, |_| format!("{TOOL}\n"));
}

#[test]
fn equal_tools_on_one_line() {
    assert_linear_for(1_200, |_| format!("{TOOL} "));
}

#[test]
fn equal_tools_with_a_wrong_layout() {
    assert_linear_for(1_200, |_| {
        String::from("(deftool  :name \"a\"\n :description\n  \"Do it.\"   :args ( ) )\n\n\n")
    });
}

/// The client counts code units of UTF-16, of which these characters have fewer than bytes.
#[test]
fn long_lines_of_wide_characters() {
    assert_linear_for(1_200, |number| {
        format!("(deftool :name \"a{number}\" :description \"日本語é😀\" :args ()) ")
    });
}
