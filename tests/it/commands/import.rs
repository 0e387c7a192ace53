//! `deftool import`: real definitions, random definitions, and round trips of everything that compiles. The command is in
//! `tests/commands/import.md`.
//!
//! The binary imports `tests/import/NAME.json`, `.jsonl` and `.el`. The expected output is `NAME.eld`; the expected findings, if any, are in
//! `NAME.findings`, one per line. `lists.checked` has the findings of `deftool check` about the same definitions.
//! `UPDATE_EXPECT=1` updates all.

mod round_trip;
mod schemas;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use deftool_lang::diagnostic::Severity;
use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::schema::{Import, ImportFormat, Importer, Target, emit};
use deftool_lang::spec::{FileKind, Tool, form_of_tool, lower};
use deftool_lang::syntax::{parse, write};
use deftool_lang::text::{SourceFile, Sources};
use serde_json::{Map, Value, json};

use crate::support::project::Project;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

fn import(text: &str, from: Option<ImportFormat>) -> (Import, Sources) {
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new("t.json", text));
    let mut importer = Importer::new(from);
    importer.add(source, text, Some("t"));
    (importer.finish(), sources)
}

fn lines(import: &Import, sources: &Sources) -> String {
    import.findings.iter().map(|finding| render_concise(finding, sources) + "\n").collect()
}

/// Parses the tools of a printed file.
fn read_back(text: &str, kind: FileKind) -> Vec<Tool> {
    let source = Sources::new().add(SourceFile::new("t.eld", ""));
    let (tree, findings) = parse(source, text);
    assert!(findings.is_empty(), "{text}: {findings:?}");
    let (definitions, findings) = lower(source, text, &tree, kind);
    let errors: Vec<_> = findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{text}: {errors:?}");
    definitions.tools
}

fn printed(tool: &Tool) -> String {
    write(&form_of_tool(tool))
}

#[test]
fn real_definitions_become_specs() {
    let updates_expected = std::env::var("UPDATE_EXPECT").is_ok();
    let mut names: Vec<PathBuf> =
        fs::read_dir(folder()).unwrap().flatten().map(|entry| entry.path()).collect();
    names.retain(|path| {
        let outputs = ["eld", "findings", "checked"];
        path.extension().is_some_and(|extension| outputs.iter().all(|output| extension != *output))
    });
    names.sort();
    assert!(names.len() >= 10, "{names:?}");
    for path in names {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let mut sources = Sources::new();
        let source = sources.add(SourceFile::new(name, text.as_str()));
        let mut importer = Importer::new(None);
        importer.add(source, &text, path.file_stem().unwrap().to_str());
        let import = importer.finish();
        let found = lines(&import, &sources);
        let output = Command::new(env!("CARGO_BIN_EXE_deftool"))
            .args(["import", name])
            .current_dir(folder())
            .output()
            .unwrap();
        let spec = String::from_utf8(output.stdout).unwrap();
        let has_errors = import.findings.iter().any(|finding| finding.severity == Severity::Error);
        assert_eq!(output.status.code(), Some(i32::from(has_errors)), "{name}: {found}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        for finding in &import.findings {
            assert!(stderr.contains(&finding.message), "{name}: {} in\n{stderr}", finding.message);
        }
        let (spec_path, found_path) = (path.with_extension("eld"), path.with_extension("findings"));
        if updates_expected {
            fs::write(&spec_path, &spec).unwrap();
            if found.is_empty() {
                let _ = fs::remove_file(&found_path);
            } else {
                fs::write(&found_path, &found).unwrap();
            }
        }
        assert_eq!(spec, fs::read_to_string(&spec_path).unwrap(), "{name}");
        assert_eq!(found, fs::read_to_string(&found_path).unwrap_or_default(), "{name}");
        assert_eq!(read_back(&spec, FileKind::Specs).len(), import.tools.len(), "{name}");
    }
}

/// Checks the same definitions as they are, and those that deftool compiles.
#[test]
fn real_lists_are_checked_as_they_are() {
    let tests = folder().parent().unwrap().to_owned();
    let lists = ["import", "seed"].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(tests.join(folder)).unwrap().flatten();
        entries.map(move |entry| format!("{folder}/{}", entry.file_name().to_str().unwrap()))
    });
    let mut lists: Vec<String> =
        lists.filter(|name| Path::new(name).extension().is_some_and(|end| end == "json")).collect();
    lists.sort();
    let output = Command::new(env!("CARGO_BIN_EXE_deftool"))
        .args(["check", "--format", "concise"])
        .args(&lists)
        .current_dir(&tests)
        .output()
        .unwrap();
    let found = String::from_utf8(output.stdout).unwrap();
    let expected = folder().join("lists.checked");
    if std::env::var("UPDATE_EXPECT").is_ok() {
        fs::write(&expected, &found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(&expected).unwrap());
}

/// The key of the schema identifies the format. With another format, the arguments would be lost.
#[test]
fn a_definition_of_another_format_is_not_read_without_its_arguments() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    for of in ImportFormat::ALL {
        let text = wrap(of, "weather", "The weather.", &schema).to_string();
        for from in ImportFormat::ALL {
            let (import, sources) = import(&text, Some(from));
            let findings = lines(&import, &sources);
            match import.tools.as_slice() {
                [tool] => assert_eq!(tool.arguments.len(), 1, "{text} as {}: {findings}", from.as_str()),
                [] => assert!(
                    findings.contains("DT602") && of != from,
                    "{text} as {}: {findings}",
                    from.as_str()
                ),
                _ => panic!("{findings}"),
            }
        }
    }
    let text = wrap(ImportFormat::Anthropic, "weather", "The weather.", &schema).to_string();
    let (import, sources) = import(&text, Some(ImportFormat::OpenAi));
    assert!(import.tools.is_empty());
    assert!(lines(&import, &sources).contains("expected openai, found anthropic; omit `--from`"));
}

#[test]
fn a_missing_description_stays_missing() {
    let (import, _) = import(r#"{"name": "now", "inputSchema": {}}"#, None);
    let form = printed(&import.tools[0]);
    assert!(!form.contains(":description"), "{form}");
    let read = read_back(&form, FileKind::Specs);
    assert_eq!(emit(Target::Mcp, &read), emit(Target::Mcp, &import.tools));
}

/// Returns a definition in a format, as the target of the same name emits it.
fn wrap(format: ImportFormat, name: &str, description: &str, schema: &Value) -> Value {
    match format {
        ImportFormat::OpenAi => json!({"type": "function",
            "function": {"name": name, "description": description, "parameters": schema}}),
        ImportFormat::OpenAiResponses => {
            json!({"type": "function", "name": name, "description": description, "parameters": schema})
        }
        ImportFormat::Anthropic => json!({"name": name, "description": description, "input_schema": schema}),
        ImportFormat::Gemini => json!({"functionDeclarations": [
            {"name": name, "description": description, "parameters": schema}]}),
        ImportFormat::Mcp => json!({"name": name, "description": description, "inputSchema": schema}),
        ImportFormat::JsonSchema => {
            let mut schema = schema.clone();
            schema["title"] = json!(name);
            schema["description"] = json!(description);
            schema
        }
    }
}

/// Each text with the expected tool names and findings.
#[test]
fn formats_are_detected() {
    let schema = r#"{"type": "object", "properties": {}}"#;
    for (text, names, findings) in [
        (format!(r#"{{"type": "function", "function": {{"name": "a", "parameters": {schema}}}}}"#), "a", ""),
        (format!(r#"{{"type": "function", "name": "a", "parameters": {schema}}}"#), "a", ""),
        (format!(r#"{{"name": "a", "input_schema": {schema}}}"#), "a", ""),
        (format!(r#"{{"name": "a", "inputSchema": {schema}}}"#), "a", ""),
        (r#"{"name": "a", "description": "No arguments."}"#.into(), "a", ""),
        (r#"[{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}]"#.into(), "a b", ""),
        (r#"{"name": "a", "parameters": {"type": "OBJECT", "properties": {"x": {"type": "STRING"}}}}"#.into(), "a", ""),
        (format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {{"tools": [{{"name": "a", "inputSchema": {schema}}}]}}}}"#), "a", ""),
        (format!(r#"{{"model": "m", "messages": [{{"content": "x", "content": 99999999999999999999}}], "tools": [{{"name": "a", "input_schema": {schema}}}]}}"#), "a", ""),
        (format!("{{\"name\": \"a\", \"input_schema\": {schema}}}\n{{\"name\": \"b\", \"input_schema\": {schema}}}\n"), "a b", ""),
        (format!(r#"[[{{"name": "a", "input_schema": {schema}}}], {{"title": "Some Thing", "type": "object"}}]"#), "a Some_Thing", ""),
        (schema.into(), "t", ""),
        (r#"{"$id": "https://example.org/schemas/get-weather.schema.json", "type": "object"}"#.into(), "get-weather", ""),
        (r##"{"$ref": "#/definitions/Args", "definitions": {"Args": {"type": "object", "properties": {"x": {"type": "string"}}}}}"##.into(), "Args", ""),
        ("[]".into(), "", ""),
        ("{}".into(), "", "t.json:1:1: error[DT602]: unknown tool definition format\n"),
        ("[1]".into(), "", "t.json:1:2: error[DT602]: unknown tool definition format\n"),
        (r#"{"jsonrpc": "2.0", "error": {"code": 1}}"#.into(), "", "t.json:1:20: error[DT602]: the server returned an error instead of tools\n"),
        (r#"[{"googleSearch": {}}]"#.into(), "", "t.json:1:3: error[DT602]: `googleSearch` is not a function tool; it cannot be converted to a spec\n"),
        (r#"{"type": "function", "name": 5}"#.into(), "", "t.json:1:30: error[DT113]: `:name` takes a string, found an integer\n"),
        (String::new(), "", "t.json:1:1: error[DT601]: expected a value, found end of input\n"),
    ] {
        let (import, sources) = import(&text, None);
        let got: Vec<&str> = import.tools.iter().map(|tool| tool.name.value.as_str()).collect();
        assert_eq!((got.join(" ").as_str(), lines(&import, &sources).as_str()), (names, findings), "{text}");
    }
}

/// Some programs emit null for unset keywords.
#[test]
fn null_is_ignored_except_as_a_value() {
    let text = r#"{"name": "a", "description": null, "inputSchema": {"type": "object", "required": null, "properties":
        {"x": {"type": "string", "enum": null, "description": null, "default": null}}}}"#;
    let (import, sources) = import(text, None);
    assert_eq!(lines(&import, &sources), "");
    let argument = &import.tools[0].arguments[0];
    let keys: Vec<&str> = argument.schema.iter().map(|member| member.key.as_str()).collect();
    assert_eq!((keys, argument.optional), (vec!["type", "default"], true));
}

/// Definitions that become too large when inlined, or are infinite, are rejected early.
#[test]
fn inlining_is_limited() {
    let mut bomb = json!({"a0": {"type": "string"}});
    for level in 1..60 {
        let inner = json!({"$ref": format!("#/$defs/a{}", level - 1)});
        bomb[format!("a{level}")] = json!({"type": "object", "properties": {"x": inner, "y": inner}});
    }
    let chain = (0..5000)
        .map(|link| (format!("a{link}"), json!({"items": {"$ref": format!("#/$defs/a{}", link + 1)}})));
    let chain: Map<String, Value> = chain.collect();
    for (definitions, first, why) in [
        (bomb, "a59", "becomes too large when it is inlined"),
        (Value::Object(chain), "a0", "becomes too large when it is inlined"),
        (
            json!({"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"items": {"$ref": "#/$defs/a"}}}),
            "a",
            "refers to itself",
        ),
        (json!({}), "a", "has no target in this schema"),
        (json!({"a": false}), "a", "refers to a schema that accepts no value"),
    ] {
        let text = json!({"name": "a", "inputSchema": {"type": "object", "$defs": definitions,
            "properties": {"x": {"$ref": format!("#/$defs/{first}")}}}})
        .to_string();
        let (import, sources) = import(&text, None);
        let found = lines(&import, &sources);
        assert!(import.tools.is_empty() && found.contains(why) && found.lines().count() == 1, "{found}");
    }
}
