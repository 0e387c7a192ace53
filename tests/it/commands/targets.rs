//! Targets on the command line: `compile`, `check --target`, `compile --list-targets`, and the generated `docs/targets.md`.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use deftool_lang::diagnostic::Severity;
use deftool_lang::schema::{Target, check_tools, emit};
use deftool_lang::spec::TargetOverride;
use deftool_lang::text::{Span, Spanned};
use deftool_project::{Load, load_specs, resolve_inputs};
use deftool_test_support::cpu::CpuClock;
use serde_json::Value;

fn deftool(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_deftool")).args(arguments).current_dir(folder).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn load(text: &str) -> Load {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("spec.eld"), text).unwrap();
    let inputs = resolve_inputs(&["spec.eld".into()], folder.path()).unwrap();
    load_specs(&inputs, folder.path()).unwrap()
}

/// Two tools; strict mode rejects the second.
const TWO: &str = r#"(deftool :name "rename" :description "Rename the note."
 :args ((:name "title" :type string :maxLength 80 :description "The new title.")))
(deftool :name "store" :description "Store what is known."
 :args ((:name "facts" :type object :additionalProperties (:type string) :description "The facts.")))
"#;

#[test]
fn targets_lists_all_targets_and_shows_one() {
    let folder = tempfile::tempdir().unwrap();
    let list = stdout(&deftool(&["compile", "--list-targets"], folder.path()));
    assert_eq!(list.lines().count(), Target::ALL.len());
    for target in Target::ALL {
        assert!(list.lines().any(|line| line.starts_with(target.as_str())), "{list}");
        let text = stdout(&deftool(&["compile", "--list-targets", target.as_str()], folder.path()));
        let json = stdout(&deftool(&["compile", "--list-targets", target.as_str(), "--json"], folder.path()));
        let json: Value = serde_json::from_str(&json).unwrap();
        let claims = json["claims"].as_array().unwrap();
        assert_eq!(claims.len(), target.support_table().len());
        for claim in claims {
            assert!(text.contains(claim["about"].as_str().unwrap()), "{text}");
            assert!(claim["source"]["date"].as_str().unwrap().starts_with("202"), "{claim}");
        }
    }
    let all: Value =
        serde_json::from_str(&stdout(&deftool(&["compile", "--list-targets", "--json"], folder.path())))
            .unwrap();
    assert_eq!(all.as_array().unwrap().len(), Target::ALL.len());
}

#[test]
fn a_target_uses_its_own_description() {
    let mut load = load(r#"(deftool :name "now" :description "Tell the time.")"#);
    let text = Spanned::new(String::from("Tell the time, soon."), Span::new(1, 2));
    let tool = Arc::make_mut(&mut Arc::make_mut(&mut load.tools[0]).tool);
    for target in Target::ALL {
        tool.overrides = vec![TargetOverride {
            target: Spanned::new(target.as_str().to_owned(), Span::default()),
            description: Some(text.clone()),
        }];
        for other in Target::ALL {
            let has = emit(other, [&*tool]).to_string().contains("soon");
            assert_eq!(has, target == other, "{} for {}", target.as_str(), other.as_str());
        }
    }
}

#[test]
fn too_many_tools_are_reported_once() {
    let tool = |number: usize| format!("(deftool :name \"t{number}\" :description \"Do.\")");
    let text = (0..140).map(tool).collect::<Vec<_>>().join("\n");
    let load = load(&text);
    let findings = check_tools(Target::OpenAi, load.tools.iter().map(|loaded| &*loaded.tool));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].rule.name, "too-many-tools-for-target");
    assert_eq!(findings[0].primary.span, load.tools[128].tool.name.span);
    assert!(check_tools(Target::Anthropic, load.tools.iter().map(|loaded| &*loaded.tool)).is_empty());
}

/// In a project, the workers determine the tools of a request. Files outside a project are compiled into one request.
#[test]
fn too_many_tools_are_reported_by_one_rule() {
    let tool =
        |number: usize| format!("(deftool :name \"t{number}\" :description \"Say number {number}.\")\n");
    let tools: String = (0..140).map(tool).collect();
    let few = "(defworker :name \"few\" :tools [\"t1\" \"t2\"])\n";
    let codes = |files: &[(&str, &str)], arguments: &[&str]| -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), text).unwrap();
        }
        let arguments =
            [&["check", "--format", "concise", "--target", "openai,anthropic"], arguments].concat();
        let said = stdout(&deftool(&arguments, folder.path()));
        let many = said.lines().filter(|line| line.contains("DT311") || line.contains("DT510"));
        many.map(|line| line.split(": ").nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(codes(&[("specs/a.eld", &tools), ("specs/b.eld", few)], &[]), [""; 0]);
    assert_eq!(codes(&[("specs/a.eld", &tools)], &[]), ["warning[DT311]"]);
    assert_eq!(
        codes(&[("one/specs/a.eld", &tools), ("two/specs/a.eld", few)], &["one", "two"]),
        ["warning[DT311]"]
    );
    assert_eq!(codes(&[("a.eld", &tools)], &["a.eld"]), ["warning[DT510]"]);
}

/// A general rule that names the API replaces the finding for that target. Errors of the target are still reported,
/// because they omit the tool.
#[test]
fn general_findings_are_not_repeated_for_a_target() {
    let folder = tempfile::tempdir().unwrap();
    let spec = r#"(deftool :name "read" :description "Read the notes." :args ((:name "file name" :type string :description "Which note.")
 (:name "tags" :type array :description "Words that are in it.")
 (:name "rows" :type array :description "Lines of it." :items (:type array))))
"#;
    fs::write(folder.path().join("a.eld"), spec).unwrap();
    let check = |target: &str| {
        let output = deftool(&["check", "--format", "concise", "--target", target, "a.eld"], folder.path());
        let places = |line: &str| line.split(": ").take(2).collect::<Vec<_>>().join(" ");
        stdout(&output).lines().map(places).filter(|line| line.starts_with("a.eld")).collect::<Vec<_>>()
    };
    let name = "a.eld:1:68 warning[DT237]";
    let arrays = ["a.eld:2:16 warning[DT209]", "a.eld:3:64 warning[DT209]"];
    assert_eq!(check("anthropic"), [name, arrays[0], arrays[1]]);
    assert_eq!(check("gemini"), [name, arrays[0], arrays[1]]);
    assert_eq!(
        check("openai-strict"),
        [name, arrays[0], "a.eld:2:16 error[DT501]", arrays[1], "a.eld:3:64 error[DT501]"]
    );
    // If the project allows the general finding, the finding for the target is reported.
    let allow = "(defproject :allow [array-without-items argument-name])\n";
    fs::write(folder.path().join("a.eld"), spec.to_owned() + allow).unwrap();
    assert_eq!(check("gemini"), ["a.eld:2:16 warning[DT502]", "a.eld:3:64 warning[DT502]"]);
    assert_eq!(check("anthropic"), ["a.eld:1:68 warning[DT508]"]);
}

#[test]
fn too_large_parameters_are_reported_at_the_name() {
    let values = (0..600).map(|number| format!("\"{number}\"")).collect::<Vec<_>>().join(" ");
    let argument =
        |name: &str| format!("(:name \"{name}\" :type string :description \"D.\" :enum [{values}])");
    let text = format!(
        "(deftool :name \"pick\" :description \"Pick.\" :args ({} {}))",
        argument("a"),
        argument("b")
    );
    let load = load(&text);
    let findings = check_tools(Target::OpenAiStrict, load.tools.iter().map(|loaded| &*loaded.tool));
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].rule.name, findings[0].severity), ("too-large-for-target", Severity::Error));
    assert_eq!(findings[0].primary.span, load.tools[0].tool.name.span);
    assert_eq!(emit(Target::OpenAiStrict, [&*load.tools[0].tool]).to_string(), "[]");
}

/// A chain of definitions as long as in a large generated file.
#[test]
fn long_reference_chains_take_linear_time_and_constant_stack() {
    let definition = |number: usize| format!(":d{number} (:$ref \"#/properties/x/$defs/d{}\")", number + 1);
    let definitions = (0..6000).map(definition).collect::<Vec<_>>().join(" ");
    let load = load(&format!(
        "(deftool :name \"a\" :description \"Do a.\" :args ((:name \"x\" :description \"An x.\" :optional t \
         :$ref \"#/properties/x/$defs/d0\" :$defs ({definitions} :d6000 (:type string)))))"
    ));
    // A chain is not a cycle, but a validator would need a large stack for it.
    let found: Vec<&str> = load.findings.iter().map(|finding| finding.rule.name).collect();
    assert_eq!(found, ["costly-schema"]);
    let tool = load.tools[0].tool.clone();
    let work = move || {
        let clock = CpuClock::start();
        for target in Target::ALL {
            check_tools(target, [&*tool]);
            let emitted = emit(target, [&*tool]).to_string();
            assert_eq!(emitted.matches("$ref").count(), 6001, "{}", target.as_str());
        }
        // Following the rest of the chain for each reference would take minutes.
        assert!(clock.elapsed().as_secs() < 20, "{:?}", clock.elapsed());
    };
    std::thread::Builder::new().stack_size(512 * 1024).spawn(work).unwrap().join().unwrap();
}

#[test]
fn gemini_removes_the_keyword_but_not_properties_of_that_name() {
    let load = load(
        r#"(deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type object :additionalProperties t
 :properties (:additionalProperties (:type object :properties nil :additionalProperties (:type string)))
 :dependentSchemas (:additionalProperties (:required ["y"] :additionalProperties :json-false))
 :dependentRequired (:additionalProperties ["y"])
 :patternProperties (:additionalProperties (:type string))
 :anyOf [(:additionalProperties t :required ["y"]) (:not (:additionalProperties t))])))"#,
    );
    let emitted = emit(Target::Gemini, [&*load.tools[0].tool]);
    let schema = emitted.pointer("/0/functionDeclarations/0/parameters/properties/x").unwrap();
    assert_eq!(
        schema.to_string(),
        serde_json::json!({
            "description": "An x.",
            "type": "object",
            "properties": {"additionalProperties": {"type": "object", "properties": {}}},
            "dependentSchemas": {"additionalProperties": {"required": ["y"]}},
            "dependentRequired": {"additionalProperties": ["y"]},
            "patternProperties": {"additionalProperties": {"type": "string"}},
            "anyOf": [{"required": ["y"]}, {"not": {}}],
            "required": []
        })
        .to_string()
    );
}

/// A target that only probably rejects a tool still gets every tool.
#[test]
fn only_certain_rejections_omit_a_tool() {
    let load = load(TWO);
    for target in Target::ALL {
        let json = emit(target, load.valid_tools().map(|loaded| &*loaded.tool)).to_string();
        assert_eq!(json.contains("\"store\""), target != Target::OpenAiStrict, "{}", target.as_str());
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn page() -> String {
    let mut page = String::from(
        "# Targets\n\n\
         What each API does with each schema keyword, generated from the tables behind `deftool check --target`, `deftool compile`\n\
         and `deftool compile --list-targets`. For each keyword, the first row whose condition holds applies.\n\n\
         Support levels: *enforced* (the target follows it), *shown* (the model reads it), *weakened* (a part is kept), *misread*\n\
         (the target does something else), *ignored* (sent without effect), *dropped* (deftool leaves it out), *refused* (a request\n\
         with it fails).\n\n\
         A keyword is then enforced by the sampler of a local server, the provider, deftool's validation of the arguments before a\n\
         tool runs, or nobody.\n",
    );
    for target in Target::ALL {
        write!(page, "\n## {}\n\n{}.", target.as_str(), target.summary()).unwrap();
        if target.omits_refused_tools() {
            page.push_str(" Tools that this target rejects are omitted from the compiled output.");
        }
        page.push_str(
            "\n\n| keyword | condition | support | effect | enforced by | source |\n|---|---|---|---|---|---|\n",
        );
        for entry in target.support_table() {
            writeln!(
                page,
                "| {} | {} | {} | {} | {} | {}, {} |",
                cell(&entry.about()),
                cell(entry.when.map_or("", |condition| condition.text)),
                entry.level.as_str(),
                cell(entry.detail),
                entry.enforced_by.as_str(),
                cell(entry.source.at),
                entry.source.date,
            )
            .unwrap();
        }
    }
    page
}

#[test]
fn the_targets_page_matches_the_support_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/targets.md");
    let page = page();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == written,
        "docs/targets.md differs from the support tables; run with UPDATE_EXPECT=1 to update it"
    );
}
