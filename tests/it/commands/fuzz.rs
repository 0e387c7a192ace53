//! `deftool test --fuzz`: finds valid arguments that break tools, shrinks them, and reproduces them with a seed.

use std::time::Duration;

use deftool_lang::schema::{ArgumentValidator, Fuzzer};
use deftool_test_support::cpu::CpuClock;
use serde_json::{Value, json};

use crate::support::project::{Ended, Project};

const SPEC: &str = r#"
(deftool :name "find" :description "Find a text within another." :args
 ((:name "text" :type string :description "Where it is looked for.")
  (:name "what" :type string :maxLength 20 :description "What is looked for.")))
(deftool :name "divide" :description "Divide one number by another." :args
 ((:name "a" :type integer :minimum -9 :maximum 9 :description "What is divided.")
  (:name "b" :type integer :optional t :minimum 0 :maximum 5 :description "By how much.")))
(deftool :name "wait" :description "Wait for as long as it is told to." :timeout "50ms" :args
 ((:name "n" :type integer :minimum 0 :maximum 2000 :description "How long that is.")
  (:name "tags" :type array :items (:type string :maxLength 5) :maxItems 3 :description "Words.")))
(deftool :name "hold" :description "Hold a text many times over." :memory "1MiB" :args
 ((:name "text" :type string :maxLength 8 :description "What is held.")))
(deftool :name "fine" :description "Give back what it was given." :args
 ((:name "kind" :type string :enum ["a" "b"] :description "Which of two.")
  (:name "code" :type string :pattern "^[A-Z]{3}-\\d+$" :description "A code, as in ABC-1.")
  (:name "day" :type string :format "date" :optional t :description "A day, as in 2024-02-29.")
  (:name "more" :optional t :anyOf [(:type array :minItems 1 :items (:type integer :multipleOf 5))
                                    (:type object :additionalProperties (:type boolean))]
   :description "Either of two.")))
(deftool :name "refuse" :description "Refuse most of what it is given." :args
 ((:name "n" :type number :exclusiveMinimum 0 :maximum 1 :description "A share of one.")))
(deftool :name "remove" :description "Remove what it is told to remove." :allow (:write ["out/"]) :args
 ((:name "path" :type string :description "Where it is.")))
"#;

fn project() -> Project {
    let project = Project::empty();
    project.write("specs/a.eld", SPEC);
    for (tool, body) in [
        ("find(text, what)", "return { at = string.find(text, what) }"),
        ("divide(a, b)", "return a / (b or 1)"),
        ("wait(n, tags)", "while n > 1000 do end return #tags"),
        ("hold(text)", "if #text > 7 then return #string.rep(text, 1e6) end return text"),
        ("fine(kind, code, day, more)", "return { kind = kind, code = code, day = day, more = more }"),
        ("refuse(n)", "if n < 1 then error(tool.failure('too little')) end return n"),
        ("remove(path)", "error('this must never run')"),
    ] {
        let (name, parameters) = tool.split_once('(').unwrap();
        project
            .write(&format!("scripts/{name}.lua"), format!("return function({parameters}\n  {body}\nend\n"));
    }
    project
}

fn fuzz(project: &Project, arguments: &[&str]) -> Ended {
    project.run(&[&["test", "--fuzz", "--seed", "11", "--cases", "80"], arguments].concat())
}

#[test]
fn failures_are_found_and_shrunk() {
    let project = project();
    let ended = fuzz(&project, &["--format", "json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let results = report["results"].as_array().unwrap();
    let failing = |tool: &str| -> Vec<(&str, &str)> {
        let of_tool = results.iter().filter(|result| result["tool"] == tool && result["ok"] == false);
        of_tool.map(|r| (r["failure"].as_str().unwrap(), r["details"][0].as_str().unwrap())).collect()
    };
    let (kind, command) = failing("find")[0];
    assert_eq!(kind, "script");
    assert!(command.starts_with(r#"deftool call find '{"text":"","what":""#), "{command}");
    assert_eq!(failing("divide"), [("unserialisable", r#"deftool call divide '{"a":0,"b":0}'"#)]);
    // On a busy machine a slow call may be mistaken for one that never ends, and then it is not shrunk.
    let is_shrunk = |(kind, command): (&str, &str)| {
        assert_eq!(kind, "timeout");
        command.ends_with(r#""tags":[]}'"#)
    };
    let again = || {
        let ended = fuzz(&project, &["--filter", "wait", "--format", "json"]);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        let result = &report["results"][0];
        is_shrunk((result["failure"].as_str().unwrap(), result["details"][0].as_str().unwrap()))
    };
    assert!(is_shrunk(failing("wait")[0]) || (0..4).any(|_| again()), "{results:#?}");
    assert_eq!(failing("hold"), [("memory", r#"deftool call hold '{"text":"aaaaaaaa"}'"#)]);
    assert!(failing("fine").is_empty() && failing("refuse").is_empty(), "{results:#?}");
    assert!(!results.iter().any(|result| result["tool"] == "remove"));
    assert_eq!(ended.stderr, "skipped: remove may write; use --fuzz-all to include it\n");
    let summary = &report["summary"]["fuzz"];
    assert_eq!(
        (&summary["seed"], &summary["tools"], &summary["left_out"]),
        (&json!(11), &json!(6), &json!(1))
    );
    assert!(summary["wrong"].as_u64().unwrap() > 300, "{summary}");

    // The printed command reproduces the failure.
    let shell =
        format!("{} | head -c 0", failing("divide")[0].1.replace("deftool", env!("CARGO_BIN_EXE_deftool")));
    let again = std::process::Command::new("sh").args(["-c", &shell]).current_dir(project.path(".")).output();
    assert!(String::from_utf8(again.unwrap().stderr).unwrap().starts_with("error[unserialisable]"));
}

#[test]
fn time_is_bounded() {
    let project = Project::empty();
    project.write("specs/a.eld", "(deftool :name \"slow\" :description \"Take a long time for all.\" :args ((:name \"n\" :type integer :description \"Any number.\")))");
    project.write("scripts/slow.lua", "return function(n) task.wait(0.2) return n end");
    // All cases would take more than five hours.
    let ended = project.run(&["test", "--fuzz", "--cases", "100000", "--fuzz-time", "1s"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// The first call replaces the default signal handler. Calls of an exit tool never wait.
#[cfg(unix)]
#[test]
fn ctrl_c_works_between_calls() {
    use std::io::{BufRead, BufReader};

    let project = Project::empty();
    project.write(
        "specs/a.eld",
        r#"(deftool :name "spin" :description "Never end." :timeout "50ms" :args ())
(deftool :name "keep" :description "Keep it." :allow (:write ["out"]) :args ())
(defexit :name "last" :description "Over." :args ((:name "n" :type integer :description "Any.")))"#,
    );
    project.write("scripts/spin.lua", "return function() while true do end end");
    project.write("scripts/keep.lua", "return function() end");
    let mut child = project.spawn(&["test", "--fuzz", "--cases", "4000000000", "--fuzz-time", "10m"]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(stderr.any(|line| line.unwrap().starts_with("skipped: keep")));
    // Only the exit tool remains.
    let interrupt = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// For any schema, valid arguments are valid and differ, and invalid arguments are rejected.
#[test]
fn arguments_are_generated_for_all_kinds_of_schemas() {
    for (schema, least) in [
        (json!({"type": "string"}), 30),
        (json!({"type": "string", "minLength": 3, "maxLength": 3}), 20),
        (json!({"type": "string", "format": "date-time"}), 3),
        (json!({"type": "string", "enum": ["a", "b", "ß"]}), 3),
        (json!({"type": ["string", "null"], "maxLength": 1}), 10),
        (json!({"type": "integer", "minimum": -3, "exclusiveMaximum": 3}), 6),
        (json!({"type": "integer"}), 15),
        (json!({"type": "number", "exclusiveMinimum": 0.5, "maximum": 0.75}), 10),
        (json!({"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 70}), 5),
        (json!({"type": "boolean"}), 2),
        (json!({"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3}), 8),
        (json!({"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": true}), 5),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false, "maxItems": 2}),
            5,
        ),
        (
            json!({"type": "object", "properties": {"x": {"type": "string", "const": "k"}}, "required": ["x"], "additionalProperties": false}),
            1,
        ),
        (json!({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2}), 10),
        (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), 20),
        (json!({"allOf": [{"type": "string", "minLength": 2}, {"maxLength": 4}]}), 10),
        (json!({"oneOf": [{"type": "boolean"}, {"type": "null"}]}), 3),
        (json!({"not": {"type": "string"}}), 10),
        (json!({"$ref": "#/$defs/tree"}), 2),
        (json!(true), 20),
        (json!({}), 20),
    ] {
        let parameters = json!({
            "type": "object",
            "properties": {"v": schema, "other": {"type": "boolean"}},
            "required": ["v"],
            "additionalProperties": false,
            "$defs": {"tree": {"type": "object", "properties": {"leaf": {"type": "integer"}, "next": {"$ref": "#/$defs/tree"}}, "required": ["leaf"], "additionalProperties": false}}
        });
        let validator = ArgumentValidator::compile("t", &parameters).unwrap();
        let mut fuzzer = Fuzzer::new(&parameters, &validator, 5);
        let mut again = Fuzzer::new(&parameters, &validator, 5);
        let mut seen = std::collections::HashSet::new();
        for number in 0..150 {
            let valid = fuzzer.valid(number).unwrap_or_else(|| panic!("nothing for {parameters}"));
            assert_eq!(Some(&valid), again.valid(number).as_ref(), "one seed, one value");
            seen.insert(valid["v"].to_string());
            if number < 5 {
                let wrong = fuzzer.invalid(&valid);
                assert!(!wrong.is_empty());
                for wrong in wrong {
                    assert!(
                        !validator.is_valid(&wrong.value),
                        "{parameters}: {} {}",
                        wrong.reason,
                        wrong.value
                    );
                }
                drop(again.invalid(&valid));
            }
        }
        assert!(seen.len() >= least, "{}: only {seen:?}", parameters["properties"]["v"]);
    }
}

/// A schema that accepts nothing, or requires itself recursively, generates nothing and terminates.
#[test]
fn schemas_without_valid_values() {
    for schema in [
        json!({"type": "string", "minLength": 3, "maxLength": 2}),
        json!({"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]}),
        json!({"type": "array", "items": {"$ref": "#/properties/v"}, "minItems": 1}),
        json!(false),
    ] {
        let parameters = json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
        let validator = ArgumentValidator::compile("t", &parameters).unwrap();
        let clock = CpuClock::start();
        assert_eq!(Fuzzer::new(&parameters, &validator, 5).valid(2), None, "{parameters}");
        assert!(clock.elapsed() < Duration::from_secs(20), "{parameters}");
    }
}
