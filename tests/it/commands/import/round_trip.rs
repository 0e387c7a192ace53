//! Round trips of random definitions and of every tool in the repository, and the export to Emacs.

use deftool_lang::schema::emit_gptel;
use deftool_lang::spec::{Json, JsonKind, Member, SampleCall, TargetOverride, ToolKind};
use deftool_lang::text::Spanned;
use deftool_project::{Load, load_specs, resolve_inputs};
use deftool_test_support::markdown::blocks;
use deftool_test_support::step;
use proptest::prelude::*;
use serde_json::Map;

use super::*;

/// Returns the target of a format. Formats without a target are compared in Anthropic's format.
fn target_of(format: ImportFormat) -> Target {
    match format {
        ImportFormat::OpenAi => Target::OpenAi,
        ImportFormat::OpenAiResponses => Target::OpenAiResponses,
        ImportFormat::Gemini => Target::Gemini,
        ImportFormat::Mcp => Target::Mcp,
        ImportFormat::Anthropic | ImportFormat::JsonSchema => Target::Anthropic,
    }
}

/// Returns the parameters in the output of a target.
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

/// Removes equivalent additions by targets or by the import that `original` does not have.
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

fn round_trip(
    format: ImportFormat,
    (name, description, schema): (String, String, Value),
) -> Result<(), TestCaseError> {
    let definition = wrap(format, &name, &description, &schema);
    let text = serde_json::to_string_pretty(&definition).unwrap();
    let (import, sources) = import(&text, None);
    let found = lines(&import, &sources);
    // Random definitions contain some errors, which the spec reports too.
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
        // Compare as text, so that the order of keys and the difference between 1 and 1.0 matter.
        assert_eq!(
            serde_json::to_string_pretty(&got.0).unwrap(),
            serde_json::to_string_pretty(&expected.0).unwrap(),
            "{spec}"
        );
        assert_eq!(got.1, expected.1);
    }
    // The export to Emacs round-trips too.
    let lisp = emit_gptel([&tools[0]], |_| "");
    let from_lisp = read_back(&lisp, FileKind::EmacsLisp);
    assert_eq!(emit(target, &from_lisp).to_string(), emit(target, &tools).to_string(), "{lisp}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400 / step(8) as u32) })]

    #[test]
    fn random_definitions_round_trip(
        format in prop::sample::select(vec![
            ImportFormat::OpenAi,
            ImportFormat::OpenAiResponses,
            ImportFormat::Anthropic,
            ImportFormat::Mcp,
            ImportFormat::JsonSchema,
        ]),
        definition in schemas::definition(schemas::Dialect { is_json_schema: true }),
    ) {
        round_trip(format, definition)?;
    }

    #[test]
    fn random_gemini_declarations_round_trip(
        definition in schemas::definition(schemas::Dialect { is_json_schema: false }),
    ) {
        round_trip(ImportFormat::Gemini, definition)?;
    }

    /// The import never panics, whatever is removed from or inserted into a definition.
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

/// For every valid tool in the repository and every target, importing the output and emitting it again gives the same.
#[test]
fn compiled_tools_round_trip() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut loads = Vec::new();
    for entry in fs::read_dir(root.join("tests/lang")).unwrap().flatten() {
        let page = fs::read_to_string(entry.path()).unwrap();
        for block in blocks(&page).iter().filter(|block| block.info.starts_with("el")) {
            let project = Project::new();
            let name = format!("spec.{}", block.language());
            project.write(&name, block.text);
            loads.push(load(&[name.into()], &project.path(".")));
        }
    }
    loads.push(load(&["tests/seed".into(), "examples/quickstart".into()], root));
    // The import repeats the findings of the spec.
    let is_clean = |load: &Load, tool: &Tool| {
        let reported = load.findings.iter().filter(|finding| finding.severity > Severity::Note);
        !reported
            .map(|finding| finding.primary.span)
            .any(|span| tool.span.start <= span.start && span.end <= tool.span.end)
    };
    let tools: Vec<Tool> = loads
        .iter()
        .flat_map(|load| load.valid_tools().filter(move |loaded| is_clean(load, &loaded.tool)))
        .map(|loaded| (*loaded.tool).clone())
        // A provider's own tool cannot be a spec.
        .filter(|tool| !tool.name.value.starts_with('$'))
        .collect();
    assert!(tools.len() >= 25, "only {} tools", tools.len());
    for tool in &tools {
        for target in
            [Target::OpenAi, Target::OpenAiResponses, Target::Anthropic, Target::Gemini, Target::Mcp]
        {
            // Gemini uses strings for 64-bit numbers, which are imported as numbers.
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
        let lisp = emit_gptel([tool], |_| "");
        let from_lisp = read_back(&lisp, FileKind::EmacsLisp);
        // Target-specific keys are not exported to Emacs.
        let plain = Tool { overrides: Vec::new(), ..tool.clone() };
        assert_eq!(emit(Target::OpenAi, &from_lisp), emit(Target::OpenAi, [&plain]), "{lisp}");
        assert_eq!(from_lisp[0].is_async, tool.kind == ToolKind::Normal, "{lisp}");
        assert!(from_lisp[0].function.is_some(), "{lisp}");
    }
}

fn load(paths: &[PathBuf], from: &Path) -> Load {
    load_specs(&resolve_inputs(paths, from).unwrap(), from).unwrap()
}

#[test]
fn every_key_of_a_tool_is_in_its_form() {
    let spec = r#"(deftool :name "a" :description "d" :timeout "5s" :memory "1MiB" :allow (:net ["x.org"]) :effect keyed)"#;
    let mut tool = read_back(spec, FileKind::Specs).remove(0);
    let spanned = |text: &str| Spanned::new(text.to_owned(), tool.span);
    tool.category = Some(spanned("files"));
    tool.overrides = vec![TargetOverride { target: spanned("gemini"), description: Some(spanned("g")) }];
    (tool.confirm, tool.include) =
        (deftool_lang::spec::Confirm::Always, Some(deftool_lang::spec::Include::Everything));
    let json = |kind| Json { span: tool.span, kind };
    let member = Member { key: "x".into(), key_span: tool.span, value: json(JsonKind::Bool(false)) };
    let arguments = json(JsonKind::Object(vec![member]));
    let with_result = SampleCall { arguments: arguments.clone(), returns: Some(json(JsonKind::Null)) };
    tool.accepts = vec![SampleCall { arguments, returns: None }, with_result];
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
 :accepts [(:x :json-false) (:args (:x :json-false) :returns :null)]
 :rejects [nil]
 :targets (:gemini (:description "g")))"#;
    assert_eq!(printed(&tool), expected);
    let lisp = emit_gptel([&tool], |_| "");
    assert!(lisp.ends_with(" :category \"files\"\n :async t\n :confirm t\n :include t)\n"), "{lisp}");
}
