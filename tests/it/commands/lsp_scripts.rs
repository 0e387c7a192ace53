//! `deftool lsp` in scripts, modules and test scripts, with the program `deftool-analyze`.

/// Without the analyzer, the editor is told once what is missing, and scripts have the features of the project.
#[cfg(not(feature = "analyze"))]
#[test]
fn without_the_analyzer_the_editor_is_told_once() {
    use crate::support::lsp::{Client, at};
    use crate::support::project::{Project, command_in};

    // An analyzer from an earlier build in deftool's folder is used.
    let beside = std::path::Path::new(env!("CARGO_BIN_EXE_deftool")).with_file_name("deftool-analyze");
    if beside.exists() {
        eprintln!("skipped: {} is from another build", beside.display());
        return;
    }
    let project = Project::new();
    let root = project.path("").canonicalize().unwrap();
    let mut command = command_in(&root, &["lsp"]);
    command.env("PATH", "");
    let mut client = Client::open(command, &root, serde_json::json!({}));
    for name in ["scripts/a.lua", "scripts/b.lua"] {
        client.did_open(&root.join(name), "return function() return fs. end");
        let found = client.request("textDocument/completion", at(&root.join(name), 0, 28));
        assert!(found["items"].as_array().unwrap().iter().any(|item| item["label"] == "read"), "{found}");
        while client.messages.is_empty() {
            client.receive().unwrap();
        }
    }
    assert!(client.messages.iter().all(|message| message.contains("deftool-analyze")));
    assert_eq!(client.messages.len(), 1, "{:?}", client.messages);
    assert!(client.shut_down().success());
}

#[cfg(feature = "analyze")]
mod analysed {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use serde_json::{Value, json};

    use crate::support::lsp::{Client, at, uri};
    use crate::support::project::{Project, command_in};

    const CURSOR: char = '‸';

    const SPEC: &str = r#"(deftool :name "t" :description "Do it." :allow (:read ["notes/"] :net ["example.com"])
 :args ((:name "location" :type string :description "Where.")
        (:name "unit" :type string :enum ["celsius" "fahrenheit"] :description "Of what." :optional t)
        (:name "place" :type object :description "More."
         :properties (:name (:type string :description "Of it.") :zip (:type integer :description "Of it."))
         :required ["name"])))
"#;

    const WORDS: &str = "local words = {}\n\n-- Counts the words.\nfunction words.count(text: string): number\n  return #text\nend\n\nreturn words\n";

    /// A client with a project that has one tool, a module and a test script.
    struct Editor {
        client: Client,
        root: PathBuf,
        version: i32,
        open: BTreeSet<PathBuf>,
        _project: Project,
    }

    impl Editor {
        fn new() -> Self {
            let project = Project::empty();
            for (name, text) in [
                ("specs/t.eld", SPEC),
                ("scripts/t.lua", "return function(location, unit, place) return location end\n"),
                ("scripts/lib/words.lua", WORDS),
                ("scripts/lib/deep/more.lua", "return { one = 1 }\n"),
                ("scripts/t_test.lua", ""),
            ] {
                project.write(name, text);
            }
            let root = project.path("").canonicalize().unwrap();
            let edit = json!({"workspaceEdit": {"documentChanges": true}});
            let client = Client::open(command_in(&root, &["lsp"]), &root, json!({"workspace": edit}));
            Self { client, root, version: 1, open: BTreeSet::new(), _project: project }
        }

        /// Sets the text of a file and returns the position of the cursor in it.
        fn show(&mut self, name: &str, text: &str) -> Value {
            let path = self.root.join(name);
            let offset = text.find(CURSOR).unwrap_or(text.len());
            let before = &text[..offset];
            let line = before.matches('\n').count() as u64;
            let column = before.rsplit('\n').next().unwrap().encode_utf16().count() as u64;
            let text = text.replace(CURSOR, "");
            self.version += 1;
            if self.open.insert(path.clone()) {
                self.client.did_open(&path, &text);
            } else {
                let document = json!({"uri": uri(&path), "version": self.version});
                let params = json!({"textDocument": document, "contentChanges": [{"text": text}]});
                self.client.notify("textDocument/didChange", params);
            }
            at(&path, line, column)
        }

        fn ask(&mut self, method: &str, name: &str, text: &str) -> Value {
            let at = self.show(name, text);
            self.client.request(&format!("textDocument/{method}"), at)
        }

        fn labels(&mut self, name: &str, text: &str) -> Vec<String> {
            let found = self.ask("completion", name, text);
            let items = found["items"].as_array().unwrap_or_else(|| panic!("{text}: {found}"));
            assert_eq!(found["isIncomplete"], items.is_empty(), "{found}");
            items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
        }

        fn end(self) {
            assert_eq!(self.client.messages, Vec::<String>::new());
            assert!(self.client.shut_down().success());
        }
    }

    fn in_tool(body: &str) -> String {
        format!("return function(location, unit, place)\n  {body}\nend\n")
    }

    /// Each row is a body of the tool's function, the names that must be offered, and those that must not.
    #[test]
    fn names_are_completed_while_a_script_is_edited() {
        let mut editor = Editor::new();
        for (body, expected, absent) in [
            ("return place.‸", &["name", "zip"][..], &["location"][..]),
            ("return place.z‸ + 1", &["zip"], &[]),
            ("if unit == \"‸\" then return 1 end", &["celsius", "fahrenheit"], &["location"]),
            ("if unit and unit ~= \"cel‸\" then", &["celsius", "fahrenheit"], &[]),
            ("if \"‸\" == unit then", &["celsius", "fahrenheit"], &[]),
            (
                "local total = #location\n  return tot‸",
                &["total", "location", "unit"],
                &["loadstring", "getfenv"],
            ),
            ("local words = require(\"./lib/words\")\n  return words.‸", &["count"], &[]),
            ("local words = require(\"‸\")", &["./lib/words", "./lib/deep/more"], &["./t"]),
            ("local words = require(\"./lib/w‸", &["./lib/words"], &[]),
            ("return fs.‸", &["read", "list", "glob"], &["count"]),
            ("for _, entry in fs.list(\"notes\") do print(entry.‸) end", &["name", "kind", "size"], &[]),
            ("http.get(location, { ‸ })", &["query", "headers", "timeout"], &[]),
            ("fs.glob(\"*\", { kind = \"‸\" })", &["file", "directory", "any"], &[]),
            ("return location:‸", &["upper", "rep"], &[]),
            ("return debug.‸", &["traceback"], &["info"]),
            ("local t = { one = 1 }\n  t.two = 2\n  return t.‸", &["one", "two"], &[]),
        ] {
            let found = editor.labels("scripts/t.lua", &in_tool(body));
            for name in expected {
                assert!(found.iter().any(|label| label == name), "{body}: no {name} in {found:?}");
            }
            for name in absent {
                assert!(!found.iter().any(|label| label == name), "{body}: {name} in {found:?}");
            }
        }
        // In a long script, only the statement at the cursor is checked.
        let long = "-- A long comment of a long script.\n".repeat(400);
        editor.labels("scripts/t.lua", &format!("{long}{}‸", in_tool("return 1")));
        for (body, name) in [
            ("return place.‸", "zip"),
            ("local total = #location\n  return tot‸", "total"),
            ("if unit == \"‸\" then", "celsius"),
        ] {
            let found = editor.labels("scripts/t.lua", &format!("{long}{}", in_tool(body)));
            assert!(found.iter().any(|label| label == name), "{body}: no {name} in {found:?}");
        }
        for body in ["-- place.‸", "return \"place.‸\"", "return 1 --[[ place.‸ ]]"] {
            assert_eq!(editor.labels("scripts/t.lua", &in_tool(body)), Vec::<String>::new(), "{body}");
        }
        editor.end();
    }

    #[test]
    fn names_are_completed_in_test_scripts_and_modules() {
        let mut editor = Editor::new();
        for (file, text, expected, absent) in [
            ("scripts/t_test.lua", "tes‸", &["test"][..], &["loadstring"][..]),
            ("scripts/t_test.lua", "test(\"a\", function()\n  expect(1).‸\nend)", &["equals", "never"], &[]),
            ("scripts/t_test.lua", "expect(1).never.‸", &["equals"], &[]),
            ("scripts/t_test.lua", "local t = tool.load(\"‸\")", &["t"], &["test"]),
            ("scripts/t_test.lua", "local w = require(\"./lib/words\")\nw.‸", &["count"], &[]),
            ("scripts/lib/words.lua", "local words = {}\nreturn fs.‸", &["read"], &[]),
            ("scripts/lib/words.lua", "local more = require(\"./‸\")", &["./deep/more"], &["./words"]),
            ("scripts/lib/words.lua", "return te‸", &["text"], &["test", "expect"]),
            ("scripts/lib/deep/more.lua", "require('‸')", &["../words"], &[]),
        ] {
            let found = editor.labels(file, text);
            for name in expected {
                assert!(found.iter().any(|label| label == name), "{text}: no {name} in {found:?}");
            }
            for name in absent {
                assert!(!found.iter().any(|label| label == name), "{text}: {name} in {found:?}");
            }
        }
        editor.end();
    }

    #[test]
    fn a_value_replaces_the_content_of_its_string() {
        let mut editor = Editor::new();
        let text = in_tool("if unit == \"cel‸si\" then return 1 end");
        let found = editor.ask("completion", "scripts/t.lua", &text);
        let edit = &found["items"][0]["textEdit"];
        assert_eq!((&edit["newText"], &edit["range"]["start"]["character"]), (&json!("celsius"), &json!(14)));
        assert_eq!(edit["range"]["end"]["character"], 19, "{found}");
        editor.end();
    }

    #[test]
    fn hover_shows_types_and_documentation() {
        let mut editor = Editor::new();
        for (body, expected) in [
            ("local total‸ = 1", &["local total: number"][..]),
            ("local total = 1\n  return to‸tal", &["local total: number"]),
            ("return un‸it", &["(\"celsius\" | \"fahrenheit\")?", "Of what."]),
            ("return place.na‸me", &["place.name: string"]),
            ("return fs.re‸ad(location)", &["fs.read(path: string", "Requires `:read`"]),
            (
                "local words = require(\"./lib/words\")\n  return words.cou‸nt(location)",
                &["function words.count(text: string): number", "Counts the words."],
            ),
            (
                "-- Adds.\n  local function add(a: number)\n    return a\n  end\n  return ad‸d(1)",
                &["function add(a: number): number", "Adds."],
            ),
        ] {
            let found = editor.ask("hover", "scripts/t.lua", &in_tool(body));
            let markdown = found["contents"]["value"].as_str().unwrap_or_default();
            assert!(expected.iter().all(|part| markdown.contains(part)), "{body}: {markdown}");
        }
        assert_eq!(editor.ask("hover", "scripts/t.lua", &in_tool("return 1‸ + 1")), Value::Null);
        editor.end();
    }

    #[test]
    fn signatures_show_the_parameter_at_the_cursor() {
        let mut editor = Editor::new();
        for (body, label, active) in [
            ("fs.read(‸", "fs.read(path: string", 0),
            ("fs.read(‸)", "fs.read(path: string", 0),
            ("fs.write(location, ‸)", "fs.write(path: string, ", 1),
            ("fs.write(fs.read(‸), 1)", "fs.read(path: string", 0),
            ("local function add(a: number, b: string) end\n  add(1, \"‸\")", "add(a: number, b: string)", 1),
        ] {
            let found = editor.ask("signatureHelp", "scripts/t.lua", &in_tool(body));
            let shown = found["signatures"][0]["label"].as_str().unwrap_or_default();
            assert!(shown.starts_with(label), "{body}: {found}");
            assert_eq!(found["activeParameter"], active, "{body}: {found}");
        }
        assert_eq!(editor.ask("signatureHelp", "scripts/t.lua", &in_tool("return 1‸")), Value::Null);
        editor.end();
    }

    /// Type findings appear after a change and disappear after another one, with the levels of the project.
    #[test]
    fn type_findings_follow_the_text() {
        let mut editor = Editor::new();
        let path = editor.root.join("scripts/t.lua");
        editor.show("scripts/t.lua", &in_tool("return place.nmae"));
        editor.client.wait_for(&path, |codes| codes == ["2:DT427"]);
        editor.show("scripts/t.lua", &format!("-- More.\n{}", in_tool("return place.nmae")));
        editor.client.wait_for(&path, |codes| codes == ["3:DT427"]);
        editor.show("scripts/t.lua", &in_tool("return place.name"));
        editor.client.wait_for(&path, <[String]>::is_empty);
        editor.show("scripts/t.lua", &in_tool("return unit == \"kelvin\""));
        editor.client.wait_for(&path, |codes| codes == ["2:DT427"]);
        editor.show("scripts/t.lua", &in_tool("return unit == \"kelvin\" -- deftool: allow(script-type)"));
        editor.client.wait_for(&path, <[String]>::is_empty);
        // A change of the spec counts, too.
        editor.show("scripts/t.lua", &in_tool("return place.town"));
        editor.client.wait_for(&path, |codes| codes == ["2:DT427"]);
        let spec = SPEC.replace(":zip (", ":town (:type string :description \"Of it.\") :zip (");
        editor.show("specs/t.eld", &spec);
        editor.client.wait_for(&path, <[String]>::is_empty);
        editor.show("specs/t.eld", &format!("{SPEC}\n(defproject :deny [script-type])\n"));
        editor.client.wait_for(&path, |codes| codes == ["2:DT427"]);
        let finding = &editor.client.findings[&uri(&path)][0];
        assert_eq!(finding["severity"], 1, "{finding}");
        editor.end();
    }

    /// Returns the places of locations, as `file:line:column` from 1, relative to the project.
    fn places(root: &std::path::Path, found: &Value) -> Vec<String> {
        let shown = |place: &Value| {
            let file = place["uri"].as_str().unwrap().replace(&format!("{}/", uri(root)), "");
            let start = &place["range"]["start"];
            let number = |key: &str| start[key].as_u64().unwrap() + 1;
            format!("{file}:{}:{}", number("line"), number("character"))
        };
        found.as_array().unwrap_or_else(|| panic!("{found}")).iter().map(shown).collect()
    }

    const USES_MODULE: &str = "local words = require(\"./lib/words\")\n  return words.cou‸nt(location)";

    /// Each row is a body of the tool's function, with the definition and the references of the name at the cursor.
    #[test]
    fn names_are_found_in_their_file_and_in_modules() {
        let mut editor = Editor::new();
        editor.show("scripts/t_test.lua", "local w = require(\"./lib/words\")\nprint(w.count(\"a\"))\n");
        let module = "scripts/lib/words.lua:4:16";
        for (body, definition, references) in [
            (
                "local total = 1\n  return to‸tal",
                "scripts/t.lua:2:9",
                &["scripts/t.lua:2:9", "scripts/t.lua:3:10"][..],
            ),
            (
                "for i = 1, 2 do print(‸i) end",
                "scripts/t.lua:2:7",
                &["scripts/t.lua:2:7", "scripts/t.lua:2:25"],
            ),
            (
                "local function a() return ‸a end",
                "scripts/t.lua:2:18",
                &["scripts/t.lua:2:18", "scripts/t.lua:2:29"],
            ),
            (USES_MODULE, module, &[module, "scripts/t.lua:3:16", "scripts/t_test.lua:2:9"]),
        ] {
            let at = editor.show("scripts/t.lua", &in_tool(body));
            let found = editor.client.request("textDocument/definition", at.clone());
            assert_eq!(places(&editor.root, &found), [definition], "{body}");
            let mut params = at.clone();
            params["context"] = json!({"includeDeclaration": true});
            let found = editor.client.request("textDocument/references", params);
            assert_eq!(places(&editor.root, &found), references, "{body}");
            let found = editor.client.request("textDocument/documentHighlight", at);
            let here = references.iter().filter(|place| place.starts_with("scripts/t.lua")).count();
            assert_eq!(found.as_array().unwrap().len(), here, "{body}");
        }
        // An argument is defined in the spec.
        let found = editor.ask("definition", "scripts/t.lua", &in_tool("return loca‸tion"));
        assert_eq!(places(&editor.root, &found), ["specs/t.eld:2:16"]);
        editor.end();
    }

    #[test]
    fn locals_and_fields_of_modules_are_renamed() {
        let mut editor = Editor::new();
        editor.show("scripts/t_test.lua", "local w = require(\"./lib/words\")\nprint(w.count(\"a\"))\n");
        for (body, new, expected) in [
            ("local total = 1\n  return to‸tal", "sum", Ok(vec![("t.lua", 2)])),
            (USES_MODULE, "length", Ok(vec![("words.lua", 1), ("t.lua", 1), ("t_test.lua", 1)])),
            ("local total = 1\n  return to‸tal", "end", Err("invalid name `end`")),
            ("local a, total = 1, 2\n  return to‸tal, a", "a", Err("would change what scripts/t.lua does")),
            (USES_MODULE, "words", Err("`words` already exists at scripts/lib/words.lua:1")),
            ("return { na‸me = 1 }", "other", Err("no tool, argument or worker")),
            ("return place.na‸me", "other", Err("no tool, argument or worker")),
        ] {
            let at = editor.show("scripts/t.lua", &in_tool(body));
            let target = editor.client.request("textDocument/prepareRename", at.clone());
            let mut params = at;
            params["newName"] = json!(new);
            let response = editor.client.try_request("textDocument/rename", params);
            match expected {
                Ok(files) => {
                    assert!(
                        body.replace('‸', "").contains(target["placeholder"].as_str().unwrap()),
                        "{body}"
                    );
                    let changes = response["result"]["documentChanges"].as_array().unwrap();
                    let counts: Vec<_> = changes
                        .iter()
                        .map(|change| {
                            let file = change["textDocument"]["uri"].as_str().unwrap().rsplit('/').next();
                            let edits = change["edits"].as_array().unwrap();
                            assert!(edits.iter().all(|edit| edit["newText"] == new), "{response}");
                            (file.unwrap(), edits.len())
                        })
                        .collect();
                    assert_eq!(counts, files, "{body}");
                }
                Err(message) => {
                    let error = response["error"]["message"].as_str().unwrap_or_default();
                    assert!(error.contains(message), "{body}: {response}");
                }
            }
        }
        editor.end();
    }

    #[test]
    fn symbols_types_and_colours_of_scripts() {
        let mut editor = Editor::new();
        let names = |found: &Value| {
            let names =
                found.as_array().unwrap().iter().map(|symbol| symbol["name"].as_str().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        let body = "local function inner() end\n  local size = #fs.read(location)\n  return size";
        let found = editor.ask("documentSymbol", "scripts/t.lua", &in_tool(body));
        assert_eq!(names(&found), ["return function"]);
        assert_eq!(names(&found[0]["children"]), ["inner"]);
        let found = editor.ask("documentSymbol", "scripts/lib/words.lua", WORDS);
        assert_eq!(names(&found), ["words", "words.count"]);
        let tests = "test(\"counts\", function()\n  expect(1).is(1)\nend)\n";
        let found = editor.ask("documentSymbol", "scripts/t_test.lua", tests);
        assert_eq!(names(&found), ["counts"]);
        let mut params = editor.show("scripts/t.lua", &in_tool(body));
        params["range"] = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
        let found = editor.client.request("textDocument/inlayHint", params.clone());
        let labels: Vec<&str> =
            found.as_array().unwrap().iter().map(|hint| hint["label"].as_str().unwrap()).collect();
        assert_eq!(labels, [": string", ": string?", ": table", ": number"]);
        let found = editor.client.request("textDocument/semanticTokens/full", params);
        // `location`, `unit` and `place` are parameters, `inner` is a function, `size` a variable, and so on.
        let kinds: Vec<u64> =
            found["data"].as_array().unwrap().chunks(5).map(|token| token[3].as_u64().unwrap()).collect();
        assert_eq!(kinds, [3, 3, 3, 2, 9, 2, 3, 9]);
        editor.end();
    }

    /// A script that cannot be analysed has the features of the project, and the reason is shown once.
    #[test]
    fn a_script_that_cannot_be_analysed_keeps_its_other_features() {
        let mut editor = Editor::new();
        let long = format!("{}\nreturn fs.‸", "-- long\n".repeat(10_000));
        for _ in 0..2 {
            let found = editor.ask("completion", "scripts/lib/words.lua", &long);
            assert!(found["items"].as_array().unwrap().iter().any(|item| item["label"] == "read"));
        }
        let messages = std::mem::take(&mut editor.client.messages);
        assert!(matches!(messages.as_slice(), [one] if one.contains("longer than 64 KiB")), "{messages:?}");
        editor.end();
    }
}
