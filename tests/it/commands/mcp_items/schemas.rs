//! Schemas of tools that are not sent as they are.

use super::*;

/// A call is validated by the draft that the schema declares, and by alternatives that are not sent.
#[test]
fn calls_are_validated_by_the_schema_of_the_server() {
    let pair = json!([{"type": "string"}, {"type": "integer"}]);
    let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"t": {"type": "array", "items": pair, "additionalItems": false}}});
    let either = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let spaced = json!({"properties": {"a": {"$ref": "#/$defs/My Type"}, "b": {"$ref": "#/$defs/My%20Type"}},
        "$defs": {"My Type": {"type": "integer"}}});
    let pages = json!([{"tools": [{"name": "old", "inputSchema": old}, {"name": "either", "inputSchema": either},
        {"name": "spaced", "inputSchema": spaced}]}]);
    let replies = r#"(reply (call "t__old" (:t ["a" 1])) (call "t__either" (:b "x")) (call "t__spaced" (:a 1 :b 2)))
        (reply (call "t__spaced" (:a "one"))) (reply (call "t__spaced" (:b [2])))
        (reply (call "t__old" (:t [1 "a"]))) (reply (call "t__old" (:t ["a" 1 2]))) (reply (call "t__either" ()))"#;
    let project = project(&pages, &pong(), replies);
    let worker = std::fs::read_to_string(project.path("specs/a.eld")).unwrap();
    let worker = worker.replace("report)", "report :on-invalid-arguments report)");
    project.write("specs/a.eld", worker);
    let stub = ["stub", "stub.eld", "--quiet", "--", env!("CARGO_BIN_EXE_deftool"), "run", "x", "--trust"];
    let ended = Ended::of(command_in(&project.path(""), &stub).stdin(Stdio::null()).output().unwrap());
    for expected in [
        r#"tool   t__old t: ["a",1] → "pong""#,
        r#"tool   t__either b: "x" → "pong""#,
        r#"tool   t__spaced a: 1, b: 2 → "pong""#,
        r#""one" is not of type "integer""#,
        r#"[2] is not of type "integer""#,
        r#"1 is not of type "string""#,
        "False schema does not allow 2",
        "is not valid under any of the schemas",
    ] {
        assert!(ended.stderr.contains(expected), "{expected}\n{}", ended.stderr);
    }
}

/// `check --online --target` names what an API rejects, and what is not sent.
#[test]
fn what_a_target_rejects_is_checked() {
    let either = json!({"type": "object",
        "properties": {
            "a": {"type": "string", "pattern": "(?=x)"},
            "b": {"type": "array", "items": [{"type": "string"}]},
            "c": {"type": "string", "enum": ["", "newest"]},
            "d": {"type": "object", "properties": {"e": {"type": "string"}},
                "anyOf": [{"required": ["e"]}, {"required": ["e", "f"]}]}
        },
        "required": ["a", "g"],
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let either = json!({"name": "either", "description": "é".repeat(1025), "inputSchema": either});
    let pages = json!([{"tools": [ping(), either]}]);
    let project = project(&pages, &pong(), "");
    let deftool = trusted(&project);
    let check = ["check", "--online", "--format", "concise"];
    let checked = deftool(&check);
    assert!(checked.code == Some(0) && !checked.stdout.contains("MCP server"), "{checked:?}");
    let imported = deftool(&["import", "--mcp", "t"]);
    assert!(imported.stdout.contains(":prefixItems"), "{imported:?}");
    let checked = deftool(&[&check[..], &["--target", "openai,openai-strict,gemini"]].concat());
    let lines = [
        "warning[DT315]: MCP server `t` offers `t__either`, of which openai rejects `pattern` at /properties/a/pattern: newer models answer 400",
        "warning[DT315]: MCP server `t` offers `t__either`, of which openai-strict rejects `prefixItems` at /properties/b/prefixItems: ",
        "warning[DT315]: MCP server `t` offers `t__either`, of which openai rejects a description over 1024 characters: the chat API",
        "offers `t__either`, of which gemini rejects `enum` at /properties/c/enum: the API answers 400",
        "offers `t__either`, of which gemini rejects `required` at /properties/d/anyOf/0/required: the API answers 400",
        "offers `t__either`, of which gemini rejects a required argument that the tool does not have: the API answers 400",
        "note[DT316]: MCP server `t` offers `t__either` with `anyOf` at the top, which is not sent; calls are validated against it",
    ];
    for line in lines {
        assert!(checked.stdout.contains(line), "{line}\n{checked:?}");
    }
}
