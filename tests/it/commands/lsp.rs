//! `deftool lsp`: the protocol. The features themselves are tested in `crates/ide`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::jsonrpc::framed;
use crate::support::lsp::{Client, at, uri};
use crate::support::project::{Project, command_in};

const SPEC: &str = "(deftool :name \"read\" :description \"Reads. 😀\" :args ((:name \"path\" :type string :description \"Which file.\")))\n";
const SCRIPT: &str = "return function(path) return path end\n";

fn project() -> (Project, PathBuf) {
    let project = Project::empty();
    project.write("specs/a.eld", SPEC);
    project.write("scripts/read.lua", SCRIPT);
    let root = project.path("").canonicalize().unwrap();
    (project, root)
}

pub(super) fn client(root: &Path) -> Client {
    let edit = json!({"documentChanges": true, "resourceOperations": ["create", "rename"]});
    Client::open(command_in(root, &["lsp"]), root, json!({"workspace": {"workspaceEdit": edit}}))
}

/// Renames `read` to `open` with a client that supports `edit`, and returns the edit and the messages.
fn rename_with(edit: &Value) -> (Value, Vec<String>) {
    let (project, root) = project();
    project.write("scripts/read_test.lua", "local read = tool.load(\"read\")\n");
    project.write("stub/read.eld", "(defscenario :name \"a\" (reply (call \"read\" (:path \"x\"))))\n");
    project.write("read.recording.jsonl", "{\"name\": \"read\"}\n");
    let spec = root.join("specs/a.eld");
    let capabilities = json!({"workspace": {"workspaceEdit": edit}});
    let mut client = Client::open(command_in(&root, &["lsp"]), &root, capabilities);
    client.did_open(&spec, SPEC);
    let mut params = at(&spec, 0, 17);
    params["newName"] = json!("open");
    let edit = client.request("textDocument/rename", params);
    let messages = std::mem::take(&mut client.messages);
    assert!(client.shut_down().success());
    let text = edit.to_string().replace(&uri(&root), "ROOT");
    (serde_json::from_str(&text).unwrap(), messages)
}

/// Clients without the operation `rename`, as Eglot 1.9, and clients that support only plain edits.
#[test]
fn an_editor_that_cannot_move_files_keeps_the_script() {
    for (edit, has_versions) in [
        (json!({"documentChanges": true}), true),
        (json!({"documentChanges": true, "resourceOperations": ["create"]}), true),
        (json!({"resourceOperations": ["create"]}), true),
        (json!(null), false),
    ] {
        let (edit, messages) = rename_with(&edit);
        let edits_of = |name: &str| match edit["documentChanges"].as_array() {
            Some(changes) if has_versions => {
                let change = changes.iter().find(|change| change["textDocument"]["uri"] == name).unwrap();
                change["edits"].clone()
            }
            None if !has_versions => edit["changes"][name].clone(),
            _ => panic!("{edit}"),
        };
        let texts = |name: &str| {
            let edits = edits_of(name);
            let texts =
                edits.as_array().unwrap().iter().map(|edit| edit["newText"].as_str().unwrap().to_owned());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(texts("ROOT/specs/a.eld"), ["\"open\"", " :script \"scripts/read.lua\""]);
        assert_eq!(texts("ROOT/scripts/read_test.lua"), ["open"]);
        assert_eq!(texts("ROOT/stub/read.eld"), ["\"open\""]);
        assert!(!edit.to_string().contains("rename"), "{edit}");
        let expected = "deftool: not renamed, check by hand:\nread.recording.jsonl: recordings and journals are not edited";
        assert_eq!(messages, [expected]);
    }
}

#[test]
fn an_editor_that_moves_files_moves_the_script_and_its_test_after_the_edits() {
    let edit = rename_with(&json!({"documentChanges": true, "resourceOperations": ["rename"]})).0;
    let changes = edit["documentChanges"].as_array().unwrap().iter();
    let shown = changes.map(|change| match change["kind"].as_str() {
        Some(kind) => format!("{kind} {} {}", change["oldUri"], change["newUri"]),
        None => format!("{} {}", change["textDocument"]["uri"], change["edits"][0]["newText"]),
    });
    let expected = [
        r#""ROOT/scripts/read_test.lua" "open""#,
        r#""ROOT/specs/a.eld" "\"open\"""#,
        r#""ROOT/stub/read.eld" "\"open\"""#,
        r#"rename "ROOT/scripts/read.lua" "ROOT/scripts/open.lua""#,
        r#"rename "ROOT/scripts/read_test.lua" "ROOT/scripts/open_test.lua""#,
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
}

/// Findings of a test script follow each change, of the script and of the spec, and have quick fixes.
#[test]
fn mistakes_in_a_test_script_are_found_while_it_is_edited() {
    let (project, root) = project();
    let (spec, test) = (root.join("specs/a.eld"), root.join("scripts/read_test.lua"));
    project.write("scripts/read_test.lua", "");
    let mut client = client(&root);
    client.did_open(&spec, SPEC);
    let text = "local read = tool.load(\"raed\")\ntest(\"a\", function() expct(tool.load(\"read\")({ pth = \"a\" })) end)\n";
    client.did_open(&test, text);
    client.wait_for(&test, |codes| codes == ["1:DT204", "2:DT420", "2:DT431"]);
    let range = client.findings[&uri(&test)][0]["range"].clone();
    let params = json!({"textDocument": {"uri": uri(&test)}, "range": range, "context": {"diagnostics": []}});
    let actions = client.request("textDocument/codeAction", params);
    assert_eq!(actions[0]["edit"]["changes"][uri(&test)][0]["newText"], "read", "{actions}");
    client.did_change(&test, 2, [0, 24, 0, 28], "read");
    client.wait_for(&test, |codes| codes == ["2:DT420", "2:DT431"]);
    let name = SPEC.find("path").unwrap() as u64 - 2;
    client.did_change(&spec, 2, [0, name, 0, name + 4], "pth");
    client.wait_for(&test, |codes| codes == ["2:DT420"]);
    assert!(client.shut_down().success());
}

/// The server reports the same findings as `check`, for every file of every project of this repository.
#[test]
fn findings_are_those_of_check() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let examples = fs::read_dir(here.join("examples")).unwrap().flatten().map(|entry| entry.path());
    let projects = examples.filter(|folder| folder.join("specs").is_dir());
    let broken = Project::empty();
    broken.write(
        "specs/a.eld",
        "(deftool :name \"é😀\" :type 1)\n(deftool\n  :name \"b\" :args ((:name \"x\" :type strng)))",
    );
    broken.write("specs/b.el", "(setq x 1)\n(gptel-make-tool :name \"b\" :args '((:name \"y\")))");
    broken.write("scripts/b.lua", "return function() return nowhere end");
    broken.write("scripts/unused.lua", "return 1");
    let roots = projects.chain([here.to_owned(), broken.path("")]);
    for root in roots.map(|root| root.canonicalize().unwrap()) {
        let checked = command_in(&root, &["check", "--format", "json", "specs"]).output().unwrap();
        let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
        let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for finding in checked["findings"].as_array().unwrap() {
            let path = root.join(finding["file"].as_str().unwrap());
            let shown = format!("{}:{}", finding["line"], finding["rule"].as_str().unwrap());
            expected.entry(uri(&path)).or_default().push(shown);
        }
        let mut client = client(&root);
        let marker = root.join("specs/marker-of-the-test.eld");
        client.did_open(&marker, "(deftool");
        client.wait_for(&marker, |codes| !codes.is_empty());
        // The other findings of that load arrive before the response to a later request.
        client.request("workspace/symbol", json!({"query": ""}));
        client.findings.remove(&uri(&marker));
        let found = client.findings.iter().filter(|(_, findings)| **findings != json!([]));
        let paths: Vec<PathBuf> =
            found.map(|(uri, _)| PathBuf::from(uri.strip_prefix("file://").unwrap())).collect();
        let found: BTreeMap<String, Vec<String>> =
            paths.iter().map(|path| (uri(path), client.codes(path))).collect();
        assert_eq!(found, expected, "{}", root.display());
        assert!(client.shut_down().success());
    }
}

/// A list of many names has those that begin with the typed text.
#[test]
fn completions_are_limited() {
    let (project, root) = project();
    let tools = |name: &str| format!("(deftool :name \"{name}\" :description \"Does it.\")\n");
    let many: String = (0..300).map(|number| tools(&format!("many_{number}"))).collect();
    project.write("specs/many.eld", &many);
    let spec = root.join("specs/w.eld");
    let mut client = client(&root);
    for (typed, expected, is_incomplete) in [("", 200, true), ("many_29", 11, true), ("re", 1, true)] {
        let text = format!("(defworker :name \"w\" :tools [\"{typed}\"])");
        client.did_open(&spec, &text);
        let column = text.find(']').unwrap() as u64 - 1;
        let found = client.request("textDocument/completion", at(&spec, 0, column));
        let items = found["items"].as_array().unwrap();
        assert_eq!((items.len(), &found["isIncomplete"]), (expected, &json!(is_incomplete)), "{typed}");
    }
    assert!(client.shut_down().success());
}

#[test]
fn findings_follow_each_change_of_a_buffer() {
    let (_project, root) = project();
    let (spec, script) = (root.join("specs/a.eld"), root.join("scripts/read.lua"));
    let mut client = client(&root);
    client.did_open(&spec, SPEC);
    // The columns count UTF-16 code units: 😀 has two.
    let column = SPEC
        .encode_utf16()
        .collect::<Vec<_>>()
        .windows(6)
        .position(|six| six == "string".encode_utf16().collect::<Vec<_>>())
        .unwrap() as u64;
    client.did_change(&spec, 2, [0, column, 0, column + 6], "strng");
    client.wait_for(&spec, |codes| codes == ["1:DT204"]);
    let range = &client.findings[&uri(&spec)][0]["range"];
    assert_eq!(
        (&range["start"]["character"], &range["end"]["character"]),
        (&json!(column), &json!(column + 5))
    );
    client.did_change(&spec, 3, [0, column, 0, column + 5], "string");
    client.wait_for(&spec, <[String]>::is_empty);
    // A script is checked against the unsaved spec.
    client.did_open(&script, SCRIPT);
    client.did_change(&script, 2, [0, 16, 0, 20], "");
    client.wait_for(&script, |codes| {
        codes.iter().any(|code| code.ends_with("DT403") || code.ends_with("DT402"))
    });
    client.did_change(&script, 3, [0, 16, 0, 16], "path");
    client.wait_for(&script, <[String]>::is_empty);
    // Several changes in one notification apply in order, a change without a range replaces the text.
    let changes = json!([
        {"text": "(defexit :name \"é\")"},
        {"range": {"start": {"line": 0, "character": 16}, "end": {"line": 0, "character": 17}}, "text": "done"},
    ]);
    client.notify(
        "textDocument/didChange",
        json!({"textDocument": {"uri": uri(&spec), "version": 4}, "contentChanges": changes}),
    );
    let symbols = client.request("textDocument/documentSymbol", json!({"textDocument": {"uri": uri(&spec)}}));
    assert_eq!(symbols[0]["name"], "done");
    assert!(client.shut_down().success());
}

#[test]
fn positions_are_in_the_encoding_of_the_client() {
    let (_project, root) = project();
    let spec = root.join("specs/a.eld");
    for (encodings, chosen, column) in [
        (json!(["utf-16", "utf-8"]), "utf-8", SPEC.find("path").unwrap()),
        (json!(["utf-32"]), "utf-32", SPEC.find("path").unwrap() - 3),
        (json!(null), "utf-16", SPEC.find("path").unwrap() - 2),
    ] {
        let capabilities = json!({"general": {"positionEncodings": encodings}});
        let mut client = Client::spawn(command_in(&root, &["lsp"]));
        let initialized = client.request(
            "initialize",
            json!({"processId": 1, "rootUri": uri(&root), "capabilities": capabilities}),
        );
        assert_eq!(initialized["capabilities"]["positionEncoding"], chosen);
        client.did_open(&spec, SPEC);
        let renamed = client.request("textDocument/prepareRename", at(&spec, 0, column as u64));
        assert_eq!(renamed["placeholder"], "path");
        assert_eq!(renamed["range"]["start"]["character"], column, "{chosen}");
        assert!(client.shut_down().success());
    }
}

/// A request for every feature has a result of the shape that the protocol requires.
#[test]
fn every_feature_has_a_result() {
    let (_project, root) = project();
    let (spec, script) = (root.join("specs/a.eld"), root.join("scripts/read.lua"));
    let mut client = client(&root);
    client.did_open(&spec, SPEC);
    let document = json!({"textDocument": {"uri": uri(&spec)}});
    let with = |mut params: Value, key: &str, value: Value| {
        params[key] = value;
        params
    };
    let whole = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
    let options = json!({"tabSize": 2, "insertSpaces": true});
    let name = at(&spec, 0, 17);
    for (method, params, pointer, expected) in [
        ("completion", at(&spec, 0, 22), "/items/0/textEdit/range/start/line", json!(0)),
        ("completion", at(&spec, 0, 22), "/isIncomplete", json!(false)),
        ("signatureHelp", at(&spec, 0, 22), "/signatures/0/parameters/0/label", json!([9, 21])),
        ("signatureHelp", name.clone(), "/activeParameter", json!(0)),
        ("documentHighlight", name.clone(), "/0/kind", json!(3)),
        ("hover", name.clone(), "/contents/kind", json!("markdown")),
        ("definition", name.clone(), "/0/uri", json!(uri(&script))),
        (
            "references",
            with(name.clone(), "context", json!({"includeDeclaration": true})),
            "/1/uri",
            json!(uri(&spec)),
        ),
        ("prepareRename", name.clone(), "/placeholder", json!("read")),
        ("rename", with(name.clone(), "newName", json!("open")), "/documentChanges/1/kind", json!("rename")),
        ("documentSymbol", document.clone(), "/0/children/0/name", json!("path")),
        (
            "formatting",
            with(document.clone(), "options", options.clone()),
            "/0/newText",
            json!(
                "(deftool\n :name \"read\"\n :description \"Reads. 😀\"\n :args ((:name \"path\" :type string :description \"Which file.\")))\n"
            ),
        ),
        (
            "rangeFormatting",
            with(with(document.clone(), "options", options), "range", whole.clone()),
            "/0/range/start/line",
            json!(0),
        ),
        ("foldingRange", document.clone(), "", json!([])),
        (
            "selectionRange",
            with(document.clone(), "positions", json!([{"line": 0, "character": 17}])),
            "/0/parent/range/start/character",
            json!(15),
        ),
        ("semanticTokens/full", document.clone(), "/data/4", json!(0)),
        ("inlayHint", with(document.clone(), "range", whole), "/0/label", json!("scripts/read.lua")),
        ("codeLens", document.clone(), "/0/command/command", json!("deftool.call")),
    ] {
        let result = client.request(&format!("textDocument/{method}"), params);
        assert_eq!(result.pointer(pointer), Some(&expected), "{method}: {result}");
    }
    let symbols = client.request("workspace/symbol", json!({"query": "RE"}));
    assert_eq!(symbols[0]["name"], "read");
    let column = SPEC.find("string").unwrap() as u64 - 2;
    client.did_change(&spec, 2, [0, column, 0, column + 6], "\"string\"");
    let here = json!({"start": {"line": 0, "character": column}, "end": {"line": 0, "character": column}});
    let context = json!({"diagnostics": []});
    let actions = client.request(
        "textDocument/codeAction",
        with(with(document.clone(), "range", here.clone()), "context", context),
    );
    assert_eq!(actions[0]["edit"]["changes"][&uri(&spec)][0]["newText"], "string", "{actions}");
    let context = json!({"diagnostics": [], "only": ["source.fixAll"]});
    let actions =
        client.request("textDocument/codeAction", with(with(document, "range", here), "context", context));
    assert_eq!(actions.as_array().unwrap().len(), 1, "{actions}");
    assert_eq!(actions[0]["kind"], "source.fixAll");
    assert!(client.shut_down().success());
}

#[test]
fn files_on_disk_change_while_buffers_are_open() {
    let (project, root) = project();
    let (spec, other) = (root.join("specs/a.eld"), root.join("specs/b.eld"));
    let mut client = client(&root);
    client.did_open(&spec, SPEC);
    // The buffer counts, not the file.
    project.write("specs/a.eld", "(deftool");
    // A new file is found without a message of the client.
    project.write("specs/b.eld", "(defexit :name \"stop\" :description");
    client.wait_for(&other, |codes| !codes.is_empty());
    client.wait_for(&spec, <[String]>::is_empty);
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri(&spec)}}));
    client.wait_for(&spec, |codes| !codes.is_empty());
    // A file that is deleted loses its findings, and an open buffer stays.
    client.did_open(&spec, SPEC);
    fs::remove_file(&spec).unwrap();
    fs::remove_file(&other).unwrap();
    client.wait_for(&other, <[String]>::is_empty);
    client.wait_for(&spec, <[String]>::is_empty);
    let symbols = client.request("workspace/symbol", json!({"query": ""}));
    assert_eq!(symbols.as_array().unwrap().len(), 1, "{symbols}");
    // The whole project disappears and comes back.
    fs::remove_dir_all(root.join("specs")).unwrap();
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri(&spec)}}));
    client.request("workspace/symbol", json!({"query": ""}));
    project.write("specs/b.eld", "(deftool");
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri(&spec)}}));
    client.wait_for(&other, |codes| !codes.is_empty());
    assert!(client.shut_down().success());
}

#[test]
fn several_roots_and_files_outside_of_projects() {
    let ((_one, first), (_two, second)) = (project(), project());
    let outside = tempfile::tempdir().unwrap();
    let init = outside.path().canonicalize().unwrap().join("init.el");
    let mut client = client(&first);
    for root in [&first, &second] {
        let spec = root.join("specs/a.eld");
        client.did_open(&spec, &SPEC.replace("string", "strng"));
        client.wait_for(&spec, |codes| codes == ["1:DT204"]);
    }
    // Code around tool forms is not checked.
    client.did_open(&init, "(setq x (undefined-function :type strng)\n(gptel-make-tool :name \"a\" :args '((:name \"x\" :type strng :description \"An x.\"))");
    client.wait_for(&init, |_| true);
    let text = "(setq x (undefined-function :type strng))\n(gptel-make-tool :name \"a\" :description \"Does it.\" :function #'f\n :args '((:name \"x\" :type strng :description \"An x.\")))";
    client.notify(
        "textDocument/didChange",
        json!({"textDocument": {"uri": uri(&init), "version": 2}, "contentChanges": [{"text": text}]}),
    );
    client.wait_for(&init, |codes| codes == ["3:DT204"]);
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri(&init)}}));
    client.wait_for(&init, <[String]>::is_empty);
    // Documents that are not files are ignored.
    client.notify(
        "textDocument/didOpen",
        json!({"textDocument": {"uri": "untitled:x.eld", "languageId": "eld", "version": 1, "text": "("}}),
    );
    assert_eq!(
        client.request(
            "textDocument/hover",
            json!({"textDocument": {"uri": "untitled:x.eld"}, "position": {"line": 0, "character": 0}})
        ),
        Value::Null
    );
    assert!(client.shut_down().success());
}

#[test]
fn a_saved_declaration_applies_to_the_files_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (init, settings) = (root.join("init.el"), root.join("deftool.eld"));
    let mut client = client(&root);
    client.did_open(
        &init,
        "(defun f (&rest args) (apply #'gptel-make-tool args))\n(f :name \"a\" :descripton \"Does it.\")",
    );
    client.wait_for(&init, |codes| codes == ["1:DT133"]);
    let text = "(defproject :tool-forms (f))";
    client.did_open(&settings, text);
    fs::write(&settings, text).unwrap();
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri(&settings)}}));
    client.wait_for(&init, |codes| codes == ["2:DT108"]);
    assert!(client.shut_down().success());
}

#[test]
fn bad_messages_have_clear_errors_and_end_nothing() {
    let (_project, root) = project();
    let spec = root.join("specs/a.eld");
    let mut client = Client::spawn(command_in(&root, &["lsp"]));
    let error = |response: &Value| {
        format!("{} {}", response["error"]["code"], response["error"]["message"].as_str().unwrap())
    };
    let early = client.try_request("textDocument/hover", at(&spec, 0, 0));
    assert_eq!(error(&early), "-32002 expected `initialize` first");
    client.request("initialize", json!({"processId": null, "rootUri": uri(&root), "capabilities": {}, "initializationOptions": {"target": "opnai"}}));
    assert!(
        client.messages[0].starts_with("deftool: unknown target `opnai`; did you mean `openai`?"),
        "{:?}",
        client.messages
    );
    for (sent, expected) in [
        (
            b"Content-Length: 3\r\n\r\n{x}".to_vec(),
            "-32700 not JSON: key must be a string at line 1 column 2",
        ),
        (b"hello\r\n\r\n".to_vec(), "-32700 expected a `Content-Length` header, found `hello`"),
        (framed(&json!([])), "-32600 expected an object; batches are not supported"),
        (
            framed(&json!({"jsonrpc": "2.0", "id": {}, "method": "shutdown"})),
            "-32600 expected an integer or a string as `id`",
        ),
        (framed(&json!({"jsonrpc": "2.0", "id": "a", "method": "nope"})), "-32601 unknown method `nope`"),
        (
            framed(
                &json!({"jsonrpc": "2.0", "id": 5_000_000_000_i64, "method": "textDocument/hover", "params": {}}),
            ),
            "-32602 missing field `textDocument`",
        ),
        (
            framed(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})),
            "-32600 the server is already initialized",
        ),
    ] {
        client.write(&sent);
        let response =
            std::iter::from_fn(|| client.receive()).find(|message| message.get("error").is_some()).unwrap();
        assert_eq!(error(&response), expected);
    }
    // Notifications with invalid parameters are shown. A change of a document that is not open is ignored.
    client.notify("textDocument/didOpen", json!({}));
    client.did_change(&spec, 1, [0, 0, 9, 9], "(");
    client.notify("$/unknown", json!({}));
    client.send(&json!({"jsonrpc": "2.0", "id": 77, "result": null}));
    client.did_open(&spec, SPEC);
    client.did_change(&spec, 2, [7, 9, 0, 0], "\n");
    client.wait_for(&spec, <[String]>::is_empty);
    assert!(
        client.messages[1].starts_with("deftool: textDocument/didOpen: missing field"),
        "{:?}",
        client.messages
    );
    client.request("shutdown", Value::Null);
    let late = client.try_request("textDocument/hover", at(&spec, 0, 0));
    assert_eq!(error(&late), "-32600 the server is shut down");
    client.notify("exit", Value::Null);
    assert!(client.disconnect().success());
}

#[test]
fn a_client_that_disappears_ends_the_server() {
    let (_project, root) = project();
    for is_open in [false, true] {
        let mut client = Client::spawn(command_in(&root, &["lsp"]));
        if is_open {
            client
                .request("initialize", json!({"processId": null, "rootUri": uri(&root), "capabilities": {}}));
        }
        client.write(b"Content-Length: 50\r\n\r\n{");
        assert_eq!(client.disconnect().code(), Some(1));
    }
    let mut client = client(&root);
    client.notify("exit", Value::Null);
    assert_eq!(client.disconnect().code(), Some(1));
}

/// The memory of the server is bounded, whatever a client sends.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_bounded() {
    const MIB: u64 = 1024;
    /// The answers have 30 MB.
    const REQUESTS: usize = 300;
    let (_project, root) = project();
    let spec = root.join("specs/a.eld");
    let mut client = client(&root);
    client.did_open(&spec, &SPEC.replace("Reads.", &"x".repeat(100_000)));
    client.wait_for(&spec, |_| true);
    let server = client.connection.server.id();
    let peak = || crate::support::process::peak_memory(server);
    let before = peak();
    // A message of 100 MB is skipped.
    let length = 100_000_000;
    client.write(format!("Content-Length: {length}\r\n\r\n").as_bytes());
    for _ in 0..length / 1_000_000 {
        client.write(&vec![b' '; 1_000_000]);
    }
    let response =
        std::iter::from_fn(|| client.receive()).find(|message| message.get("error").is_some()).unwrap();
    assert_eq!(response["error"]["message"], "message ignored: larger than 32 MiB");
    assert!(peak() - before < 10 * MIB, "{} kB", peak() - before);
    // A client that sends many requests and does not read.
    let message = framed(
        &json!({"jsonrpc": "2.0", "id": 9, "method": "textDocument/hover", "params": at(&spec, 0, 17)}),
    );
    let mut writer = client.writer();
    let sender = std::thread::spawn(move || {
        (0..REQUESTS).for_each(|_| std::io::Write::write_all(&mut writer, &message).unwrap());
        writer
    });
    let mut answers = 0;
    while answers < REQUESTS {
        let message = client.receive().unwrap();
        let is_answer = message["id"] == 9;
        let length = message["result"]["contents"]["value"].as_str().map_or(0, str::len);
        assert!(!is_answer || length > 100_000, "{length}");
        answers += usize::from(is_answer);
        if answers == 1 {
            assert!(peak() - before < 20 * MIB, "{} kB", peak() - before);
        }
    }
    // The server ends with its input.
    let writer = sender.join().unwrap();
    assert!(peak() - before < 20 * MIB, "{} kB", peak() - before);
    drop(writer);
    assert_eq!(client.disconnect().code(), Some(1));
}
