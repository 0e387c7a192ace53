//! The JSON outputs of the commands match the schemas in `docs/schemas`, which describe every member.

use std::fs;

use deftool_test_support::server::{Answer, Server, call, delta, finish};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project};

const SPEC: &str = r#"(deftool :name "count" :description "Count the characters." :args ((:name "text" :type string :description "A text."))
 :accepts [(:text "a") (:args (:text "ab") :returns 3)] :rejects [(:text 1)]
 :asks [("How long is this word?" :call t)])
(deftool :name "Broken" :desciption "Break." :args ((:name "x" :type strng)) :allow (:read ["notes/"]))
(deftool :name "picture" :description "Return a picture." :args ())
(defexit :name "done" :description "End the work." :args ((:name "note" :type string :optional t :description "A note.")))
"#;

fn project() -> Project {
    let project = Project::empty();
    project.write("specs/a.eld", SPEC);
    project.write(
        "scripts/count.lua",
        "return function(text) if text == '!' then error('no') end return #text end",
    );
    project.write("scripts/picture.lua", "return function() return tool.image('\\137PNG\\r\\n\\26\\n') end");
    project.write(
        "scripts/count_test.lua",
        "test('counts', function() log.info('x') expect(tool.load('count')({ text = 'a' })).is(2) end)",
    );
    project
}

/// Forbids members that a schema does not describe.
fn close(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        if object.contains_key("properties") {
            object.insert(String::from("additionalProperties"), Value::Bool(false));
        }
        object.values_mut().for_each(close);
    } else if let Some(items) = schema.as_array_mut() {
        items.iter_mut().for_each(close);
    }
}

fn check(name: &str, outputs: impl IntoIterator<Item = Value>) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schemas/{name}.json"));
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert!(jsonschema::meta::is_valid(&schema), "{name}");
    close(&mut schema);
    let validator = jsonschema::validator_for(&schema).unwrap();
    for output in outputs {
        let problems: Vec<String> = validator.iter_errors(&output).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{name}: {problems:#?}\n{output:#}");
    }
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[test]
fn json_outputs_match_their_schemas() {
    let project = project();
    let run = |arguments: &[&str]| json(&project.run(arguments));
    check("check", [run(&["check", "--format", "json"])]);
    check("check-diff", [run(&["check", "--diff", "--unsafe-fixes", "--format", "json"])]);
    check("test", [run(&["test", "--format", "json"]), run(&["test", "--coverage", "--format", "json"])]);
    let calls = [r#"{"text": "a"}"#, r#"{"text": "!"}"#, r#"{"text": 1}"#];
    check("call", calls.map(|arguments| run(&["call", "count", arguments, "--json"])));
    check("tools", [run(&["tools", "--json"])]);
    check("doctor", [run(&["doctor", "--json"])]);
    project.write(
        "old.json",
        json!([{"type": "function", "function": {"name": "old", "description": "Old."}}]).to_string(),
    );
    check("diff", [run(&["diff", "old.json", "specs", "--json"])]);
}

#[test]
fn lines_of_a_batch_match_their_schemas() {
    let project = project();
    let jobs = [
        json!({"prompt": "good", "job_name": "a", "params": {"temperature": 0}, "files": ["specs/a.eld"]}),
        json!({"prompt": "bad", "job_name": null, "params": null, "files": null}),
        json!({"prompt": "good", "files": ["gone"]}),
    ];
    project.write("jobs.jsonl", jobs.each_ref().map(Value::to_string).join("\n"));
    check("job", jobs);
    let counts = json!({"choices": [], "usage": {
        "prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}
    }});
    let server = Server::answering(move |_, received| {
        if !received.body.to_string().contains("good") {
            return Answer::error(400, &[], "no");
        }
        Answer::chunks(&[
            delta("Yes."),
            call(0, "done", r#"{"note": 1}"#),
            call(1, "done", r#"{"note": "ok"}"#),
            finish("stop"),
            counts.clone(),
        ])
    });
    let endpoint = server.endpoint();
    let ended = project.run(&["run", "--batch", "jobs.jsonl", "--result", "done", "--endpoint", &endpoint]);
    assert_eq!((ended.code, ended.events().len()), (Some(1), 3), "{ended:?}");
    check("batch", ended.events());
}

#[test]
fn events_match_their_schema() {
    let project = project();
    let counts = json!({"choices": [], "usage": {
        "prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}
    }});
    let scripts = [
        vec![
            Answer::chunks(&[
                delta("Let me see."),
                call(0, "count", r#"{"text": "abc"}"#),
                finish("tool_calls"),
            ]),
            Answer::error(502, &[("retry-after-ms", "1")], "bad gateway"),
            Answer::chunks(&[delta("Three."), call(0, "done", r#"{"note": "ok"}"#), finish("stop"), counts]),
        ],
        vec![Answer::chunks(&[call(0, "count", r#"{"text": "!"}"#), finish("tool_calls")])],
        vec![Answer::chunks(&[call(0, "picture", "{}"), finish("tool_calls")]), Answer::text("A picture.")],
        vec![Answer::chunks(&[
            json!({"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]}),
            finish("stop"),
        ])],
    ];
    for answers in scripts {
        let server = Server::script(answers);
        let endpoint = server.endpoint();
        let ended = project.run(&["run", "hello", "--json", "--endpoint", &endpoint]);
        assert!(ended.events().len() > 3, "{ended:?}");
        check("events", ended.events());
    }
}
