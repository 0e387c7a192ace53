//! `deftool import`: real definitions, random ones, and the way back of everything that compiles.
//!
//! `tests/import/NAME.json` is imported by the real binary and gives `NAME.eld`; `NAME.findings` are its findings, a line
//! each, where there are any. `DEFTOOL_BLESS=1` writes both.

mod schemas;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use deftool::diagnostic::Severity;
use deftool::diagnostic::render::render_concise;
use deftool::project::{Load, load_specs, resolve_inputs};
use deftool::schema::{Import, ImportFormat, Importer, Target, emit, emit_gptel};
use deftool::spec::{FileKind, Json, JsonKind, Member, TargetOverride, Tool, form_of_tool, lower};
use deftool::syntax::{parse, write};
use deftool::text::{SourceFile, Sources, Spanned};
use proptest::prelude::*;
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

/// The tools of a file that holds what is printed.
fn read_back(text: &str, kind: FileKind) -> Vec<Tool> {
    let source = Sources::new().add(SourceFile::new("t.eld", ""));
    let (tree, told) = parse(source, text);
    assert!(told.is_empty(), "{text}: {told:?}");
    let (definitions, told) = lower(source, text, &tree, kind);
    let errors: Vec<_> = told.iter().filter(|finding| finding.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{text}: {errors:?}");
    definitions.tools
}

fn printed(tool: &Tool) -> String {
    write(&form_of_tool(tool))
}

#[test]
fn real_definitions_become_specs() {
    let bless = std::env::var("DEFTOOL_BLESS").is_ok();
    let mut names: Vec<PathBuf> =
        fs::read_dir(folder()).unwrap().flatten().map(|entry| entry.path()).collect();
    names
        .retain(|path| path.extension().is_some_and(|extension| extension == "json" || extension == "jsonl"));
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
        if bless {
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

/// Where the schema stands tells the format; another one would read the tool without its arguments.
#[test]
fn a_definition_of_another_format_is_not_read_without_its_arguments() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    for of in ImportFormat::ALL {
        let text = wrap(of, "weather", "The weather.", &schema).to_string();
        for from in ImportFormat::ALL {
            let (import, sources) = import(&text, Some(from));
            let told = lines(&import, &sources);
            match import.tools.as_slice() {
                [tool] => assert_eq!(tool.arguments.len(), 1, "{text} as {}: {told}", from.as_str()),
                [] => assert!(told.contains("DT602") && of != from, "{text} as {}: {told}", from.as_str()),
                _ => panic!("{told}"),
            }
        }
    }
    let text = wrap(ImportFormat::Anthropic, "weather", "The weather.", &schema).to_string();
    let (import, sources) = import(&text, Some(ImportFormat::OpenAi));
    assert!(import.tools.is_empty());
    assert!(
        lines(&import, &sources).contains("looks like anthropic and not like openai; leave `--from` out")
    );
}

#[test]
fn what_has_no_description_gets_none() {
    let (import, _) = import(r#"{"name": "now", "inputSchema": {}}"#, None);
    let form = printed(&import.tools[0]);
    assert!(!form.contains(":description"), "{form}");
    let read = read_back(&form, FileKind::Specs);
    assert_eq!(emit(Target::Mcp, &read), emit(Target::Mcp, &import.tools));
}

// --- the way there and back ----------------------------------------------------------------------------------

/// A definition of a format, as the target of that name emits it.
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

/// The target that sends what a format has; those without one of their own are compared as Anthropic's.
fn target_of(format: ImportFormat) -> Target {
    match format {
        ImportFormat::OpenAi => Target::OpenAi,
        ImportFormat::OpenAiResponses => Target::OpenAiResponses,
        ImportFormat::Gemini => Target::Gemini,
        ImportFormat::Mcp => Target::Mcp,
        ImportFormat::Anthropic | ImportFormat::JsonSchema => Target::Anthropic,
    }
}

/// The parameters in what a target emits.
fn parameters_of(target: Target, emitted: &Value) -> Value {
    let place = match target {
        Target::OpenAi => "/0/function/parameters",
        Target::OpenAiResponses => "/0/parameters",
        Target::Gemini => "/0/functionDeclarations/0/parameters",
        Target::Mcp => "/0/inputSchema",
        _ => "/0/input_schema",
    };
    emitted.pointer(place).cloned().unwrap_or_default()
}

/// Takes away what targets or the import add to mean the same, where `original` does not have it.
fn normalise(parameters: &Value, original: &Value) -> (Map<String, Value>, Vec<String>) {
    let mut properties = parameters["properties"].as_object().cloned().unwrap_or_default();
    for (name, schema) in &mut properties {
        let original = &original["properties"][name];
        let Some(schema) = schema.as_object_mut() else { continue };
        for key in ["additionalProperties", "required"] {
            if original.get(key).is_none()
                && (schema.get(key).is_some_and(|value| value.is_boolean() || value == &json!([])))
            {
                schema.shift_remove(key);
            }
        }
    }
    let names = parameters["required"].as_array().cloned().unwrap_or_default();
    let mut required: Vec<String> = names.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    required.sort();
    (properties, required)
}

fn there_and_back(
    format: ImportFormat,
    (name, description, schema): (String, String, Value),
) -> Result<(), TestCaseError> {
    let definition = wrap(format, &name, &description, &schema);
    let text = serde_json::to_string_pretty(&definition).unwrap();
    let (import, sources) = import(&text, None);
    let found = lines(&import, &sources);
    // What is a mistake in a spec is one in a definition, too; random ones hold some.
    prop_assume!(!import.findings.iter().any(|finding| finding.rule.code.starts_with("DT2")));
    assert!(import.findings.is_empty(), "{text}\n{found}");
    assert_eq!(import.tools.len(), 1, "{text}");
    let spec = printed(&import.tools[0]);
    let tools = read_back(&spec, FileKind::Specs);
    assert_eq!((&tools[0].name.value, &tools[0].description.value), (&name, &description));
    let target = target_of(format);
    let expected = normalise(&schema, &schema);
    for tool in [&import.tools[0], &tools[0]] {
        let got = normalise(&parameters_of(target, &emit(target, [tool])), &schema);
        // As text: the order of keys counts, and 1 is not 1.0.
        assert_eq!(
            serde_json::to_string_pretty(&got.0).unwrap(),
            serde_json::to_string_pretty(&expected.0).unwrap(),
            "{spec}"
        );
        assert_eq!(got.1, expected.1);
    }
    // To Emacs and back is no detour.
    let lisp = emit_gptel([&tools[0]]);
    let from_lisp = read_back(&lisp, FileKind::EmacsLisp);
    assert_eq!(emit(target, &from_lisp).to_string(), emit(target, &tools).to_string(), "{lisp}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn random_definitions_come_back(
        format in prop::sample::select(vec![
            ImportFormat::OpenAi,
            ImportFormat::OpenAiResponses,
            ImportFormat::Anthropic,
            ImportFormat::Mcp,
            ImportFormat::JsonSchema,
        ]),
        definition in schemas::definition(schemas::Dialect { is_json_schema: true }),
    ) {
        there_and_back(format, definition)?;
    }

    #[test]
    fn random_declarations_of_gemini_come_back(
        definition in schemas::definition(schemas::Dialect { is_json_schema: false }),
    ) {
        there_and_back(ImportFormat::Gemini, definition)?;
    }

    /// Nothing panics, whatever is cut out of or put into a definition.
    #[test]
    fn damaged_json_is_a_finding(
        definition in schemas::definition(schemas::Dialect { is_json_schema: true }),
        at in any::<prop::sample::Index>(),
        piece in prop::sample::select(vec!["", "\"", "{", "}", "[", ",", ":", "\\", "null", "1e999", "é", "\"$ref\": \"#\","]),
        cut in 0_usize..4,
    ) {
        let mut text = wrap(ImportFormat::Mcp, &definition.0, &definition.1, &definition.2).to_string();
        let mut start = at.index(text.len());
        while !text.is_char_boundary(start) { start -= 1; }
        let end = text[start..].char_indices().nth(cut).map_or(text.len(), |(end, _)| start + end);
        text.replace_range(start..end, piece);
        let (imported, _) = import(&text, None);
        for tool in &imported.tools {
            read_back(&printed(tool), FileKind::Specs);
        }
        for format in ImportFormat::ALL {
            import(&text, Some(format));
        }
    }
}

/// Every valid tool that the repository shows, for every target: importing what is emitted emits it again.
#[test]
fn what_compiles_comes_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut loads = Vec::new();
    for entry in fs::read_dir(root.join("tests/lang")).unwrap().flatten() {
        let page = fs::read_to_string(entry.path()).unwrap();
        for block in page.split("\n```").filter(|block| block.starts_with("el")) {
            let (info, text) = block.split_once('\n').unwrap();
            let project = Project::new();
            let name = format!("spec.{}", info.split_whitespace().next().unwrap());
            project.write(&name, text);
            loads.push(load(&[name.into()], &project.path(".")));
        }
    }
    loads.push(load(&["tests/seed".into(), "examples/quickstart".into()], root));
    // What the spec itself is told of, the import is told of, too.
    let is_clean = |load: &Load, tool: &Tool| {
        let told = load.findings.iter().filter(|finding| finding.severity > Severity::Note);
        !told
            .map(|finding| finding.primary.span)
            .any(|span| tool.span.start <= span.start && span.end <= tool.span.end)
    };
    let tools: Vec<Tool> = loads
        .iter()
        .flat_map(|load| load.valid_tools().filter(move |loaded| is_clean(load, &loaded.tool)))
        .map(|loaded| (*loaded.tool).clone())
        .collect();
    assert!(tools.len() >= 25, "only {} tools", tools.len());
    for tool in &tools {
        for target in
            [Target::OpenAi, Target::OpenAiResponses, Target::Anthropic, Target::Gemini, Target::Mcp]
        {
            // Gemini writes 64-bit numbers as strings, and they are read as numbers.
            if target == Target::Gemini && emit(target, [tool]).to_string().contains("\"minLength\":\"") {
                continue;
            }
            let emitted = emit(target, [tool]);
            let (import, sources) = import(&emitted.to_string(), None);
            let found = lines(&import, &sources);
            assert_eq!(import.tools.len(), 1, "{} for {}: {found}", tool.name.value, target.as_str());
            let again = emit(target, &read_back(&printed(&import.tools[0]), FileKind::Specs));
            let (was, is) = (parameters_of(target, &emitted), parameters_of(target, &again));
            assert_eq!(
                normalise(&is, &was),
                normalise(&was, &was),
                "{} for {}",
                tool.name.value,
                target.as_str()
            );
            assert!(found.is_empty(), "{emitted}: {found}");
        }
        let lisp = emit_gptel([tool]);
        let from_lisp = read_back(&lisp, FileKind::EmacsLisp);
        // What a spec says to one target alone, Emacs does not hear.
        let plain = Tool { overrides: Vec::new(), ..tool.clone() };
        assert_eq!(emit(Target::OpenAi, &from_lisp), emit(Target::OpenAi, [&plain]), "{lisp}");
        assert_eq!((from_lisp[0].is_async, from_lisp[0].has_function), (tool.is_async, true));
    }
}

fn load(paths: &[PathBuf], from: &Path) -> Load {
    load_specs(&resolve_inputs(paths, from).unwrap(), from).unwrap()
}

// --- shapes --------------------------------------------------------------------------------------------------

/// What each text is taken for: the names of its tools, and its findings.
#[test]
fn shapes_are_recognised() {
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
        ("{}".into(), "", "t.json:1:1: error[DT602]: this has the shape of no tool definition\n"),
        ("[1]".into(), "", "t.json:1:2: error[DT602]: this has the shape of no tool definition\n"),
        (r#"{"jsonrpc": "2.0", "error": {"code": 1}}"#.into(), "", "t.json:1:20: error[DT602]: the server answered with an error and no tools\n"),
        (r#"[{"googleSearch": {}}]"#.into(), "", "t.json:1:3: error[DT602]: `googleSearch` is no function that a caller defines, so there is no spec to make of it\n"),
        (r#"{"type": "function", "name": 5}"#.into(), "", "t.json:1:30: error[DT113]: `:name` takes a string, found an integer\n"),
        (String::new(), "", "t.json:1:1: error[DT601]: expected a value, the text ends here\n"),
    ] {
        let (import, sources) = import(&text, None);
        let got: Vec<&str> = import.tools.iter().map(|tool| tool.name.value.as_str()).collect();
        assert_eq!((got.join(" ").as_str(), lines(&import, &sources).as_str()), (names, findings), "{text}");
    }
}

/// Some programs write null for what they do not mean.
#[test]
fn null_is_nothing_but_where_it_is_a_value() {
    let text = r#"{"name": "a", "description": null, "inputSchema": {"type": "object", "required": null, "properties":
        {"x": {"type": "string", "enum": null, "description": null, "default": null}}}}"#;
    let (import, sources) = import(text, None);
    assert_eq!(lines(&import, &sources), "");
    let argument = &import.tools[0].arguments[0];
    let keys: Vec<&str> = argument.schema.iter().map(|member| member.key.as_str()).collect();
    assert_eq!((keys, argument.optional), (vec!["type", "default"], true));
}

#[test]
fn a_format_can_be_told() {
    let text = r#"{"title": "settings", "type": "object", "properties": {"tools": {"type": "array", "items": {}}}, "tools": []}"#;
    assert_eq!(import(text, None).0.tools.len(), 0, "`tools` is taken for a request's");
    assert_eq!(import(text, Some(ImportFormat::JsonSchema)).0.tools[0].name.value, "settings");
    let (import, _) =
        import(r#"{"name": "a", "parameters": {"type": "OBJECT"}}"#, Some(ImportFormat::OpenAi));
    assert!(import.tools.is_empty(), "only Gemini writes types in upper case");
}

/// Definitions that grow when they are written out, or never end, are refused before they cost much.
#[test]
fn references_do_not_explode() {
    let mut bomb = json!({"a0": {"type": "string"}});
    for level in 1..60 {
        let inner = json!({"$ref": format!("#/$defs/a{}", level - 1)});
        bomb[format!("a{level}")] = json!({"type": "object", "properties": {"x": inner, "y": inner}});
    }
    let chain = (0..5000)
        .map(|link| (format!("a{link}"), json!({"items": {"$ref": format!("#/$defs/a{}", link + 1)}})));
    let chain: Map<String, Value> = chain.collect();
    for (definitions, first, why) in [
        (bomb, "a59", "becomes boundless when it is written out"),
        (Value::Object(chain), "a0", "becomes boundless when it is written out"),
        (
            json!({"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"items": {"$ref": "#/$defs/a"}}}),
            "a",
            "refers to itself",
        ),
        (json!({}), "a", "refers to nothing in this schema"),
        (json!({"a": false}), "a", "refers to no schema that a value could fit"),
    ] {
        let text = json!({"name": "a", "inputSchema": {"type": "object", "$defs": definitions,
            "properties": {"x": {"$ref": format!("#/$defs/{first}")}}}})
        .to_string();
        let (import, sources) = import(&text, None);
        let found = lines(&import, &sources);
        assert!(import.tools.is_empty() && found.contains(why) && found.lines().count() == 1, "{found}");
    }
}

// --- the command ---------------------------------------------------------------------------------------------

const TWO: &str = r#"[{"name": "now", "description": "Tell the time.", "input_schema": {"type": "object"}},
 {"name": "say", "description": "Say it.", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}]"#;

#[test]
fn files_are_written_and_never_overwritten() {
    let project = Project::new();
    project.write("tools.json", TWO);
    let run = |arguments: &[&str]| {
        let output = project.command(arguments).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, said) = run(&["import", "tools.json", "--output", "new/specs"]);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "created  new/specs/now.eld\ncreated  new/specs/say.eld\n2 tools imported\n")
    );
    fs::remove_file(project.path("new/specs/now.eld")).unwrap();
    project.write("new/specs/say.eld", "mine");
    let (code, said) = run(&["import", "tools.json", "--output", "new/specs"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("new/specs/say.eld exists already; nothing was written"), "{said}");
    assert!(!project.path("new/specs/now.eld").exists());
    assert_eq!(fs::read_to_string(project.path("new/specs/say.eld")).unwrap(), "mine");
    // What is replaced is replaced whole: another name of the old file holds the old text.
    fs::hard_link(project.path("new/specs/say.eld"), project.path("old.eld")).unwrap();
    let (code, said) = run(&["import", "tools.json", "--output", "new/specs", "--force"]);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "created  new/specs/now.eld\nreplaced new/specs/say.eld\n2 tools imported\n")
    );
    assert!(fs::read_to_string(project.path("new/specs/say.eld")).unwrap().starts_with("(deftool"));
    assert_eq!(fs::read_to_string(project.path("old.eld")).unwrap(), "mine");
    // What was written checks, but for the scripts that are to be written.
    assert_eq!(run(&["compile", "new/specs/now.eld", "new/specs/say.eld"]).0, Some(0));
}

/// A file that may not be written ends the command, and is left as it was.
#[test]
fn force_overwrites_no_protected_file_and_no_file_twice() {
    let project = Project::new();
    project.write("tools.json", TWO);
    project.write("out/say.eld", "mine");
    let path = project.path("out/say.eld");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let import = ["import", "tools.json", "--output", "out", "--force"];
    let ended = project.run(&import);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("out/say.eld: it is read-only"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert!(fs::read_to_string(project.path("out/now.eld")).unwrap().starts_with("(deftool"));
    assert_eq!(fs::read_dir(project.path("out")).unwrap().count(), 2);
    #[cfg(unix)]
    {
        project.write("linked/now.eld", "mine");
        std::os::unix::fs::symlink("now.eld", project.path("linked/say.eld")).unwrap();
        let ended = project.run(&["import", "tools.json", "--output", "linked", "--force"]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(
            ended.stderr.contains("linked/now.eld and linked/say.eld are the same file"),
            "{}",
            ended.stderr
        );
        assert_eq!(fs::read_to_string(project.path("linked/now.eld")).unwrap(), "mine");
    }
}

#[test]
fn stdin_is_read_and_errors_leave_the_rest() {
    use std::io::Write;
    let project = Project::new();
    for arguments in [&["import"][..], &["import", "-"]] {
        let mut child = project
            .command(arguments)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let text = format!(
            "\u{feff}{TWO}\n{{\"name\": \"a b\", \"input_schema\": {{}}}}\n{{\"name\": \"now\"}}\n{{"
        );
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let (out, said) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(out.matches("(deftool").count(), 2, "{out}");
        for part in [
            "stdin:3:10",
            "error[DT110]",
            "a second tool called `now`",
            "error[DT601]",
            "2 tools imported: 3 errors",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_said() {
    let project = Project::new();
    project.write("utf16.json", b"\xff\xfe{\0}\0");
    project.write("latin.json", b"{\"name\": \"now\", \"description\": \"\xe9\"}");
    for (arguments, code, said) in [
        (&["import", "none.json"][..], 2, "cannot read"),
        (&["import", "specs"], 2, "no regular file"),
        (&["import", "latin.json", "--from", "yaml"], 2, "invalid value 'yaml'"),
        (&["import", "latin.json"], 1, "this is not UTF-8"),
        (&["import", "utf16.json"], 1, "0 tools imported: 1 error;"),
    ] {
        let output = project.command(arguments).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn emacs_lisp_takes_its_parameters_in_order() {
    let project = Project::new();
    project.write(
        "t.eld",
        r#"(deftool :name "a" :description "d" :async t :script "scripts/x.lua" :allow (:read ["notes"])
 :args ((:name "t" :type string) (:name "two words" :type string :optional t) (:name "x" :type string) (:name "y" :type string :optional t)))
(defexit :name "done" :description "Done.")"#,
    );
    let output = project.command(&["compile", "t.eld", "--target", "gptel"]).output().unwrap();
    let lisp = String::from_utf8(output.stdout).unwrap();
    let expected = r#";; -*- lexical-binding: t; coding: utf-8-unix; -*-

(gptel-make-tool
 :name "a"
 :function (lambda (callback argument-1 argument-2 x &optional y)
             (error "a has no function in Emacs Lisp yet"))
 :description "d"
 :args (list '(:name "t" :type string)
             '(:name "two words" :type string :optional t)
             '(:name "x" :type string)
             '(:name "y" :type string :optional t))
 :async t)

(gptel-make-tool
 :name "done"
 :function (lambda nil (error "done has no function in Emacs Lisp yet"))
 :description "Done.")
"#;
    assert_eq!(lisp, expected);
}

#[test]
fn every_key_of_a_tool_is_in_its_form() {
    let spec = r#"(deftool :name "a" :description "d" :timeout "5s" :memory "1MiB" :allow (:net ["x.org"]) :effect keyed)"#;
    let mut tool = read_back(spec, FileKind::Specs).remove(0);
    let spanned = |text: &str| Spanned::new(text.to_owned(), tool.span);
    tool.category = Some(spanned("files"));
    tool.overrides = vec![TargetOverride { target: spanned("gemini"), description: Some(spanned("g")) }];
    (tool.confirm, tool.include) = (deftool::spec::Confirm::Always, true);
    let json = |kind| Json { span: tool.span, kind };
    let member = Member { key: "x".into(), key_span: tool.span, value: json(JsonKind::Bool(false)) };
    tool.accepts = vec![json(JsonKind::Object(vec![member]))];
    tool.rejects = vec![json(JsonKind::Object(Vec::new()))];
    let expected = r#"(deftool
 :name "a"
 :description "d"
 :category "files"
 :confirm t
 :include t
 :timeout "5000ms"
 :memory "1048576B"
 :allow (:net ["x.org"])
 :effect keyed
 :accepts [(:x :json-false)]
 :rejects [nil]
 :targets (:gemini (:description "g")))"#;
    assert_eq!(printed(&tool), expected);
    let lisp = emit_gptel([&tool]);
    assert!(lisp.ends_with(" :category \"files\"\n :confirm t\n :include t)\n"), "{lisp}");
}
