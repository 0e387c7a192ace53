//! Calls of MCP clients are repaired. Those of models are in `tests/commands/repairs.md`.

use serde_json::json;

use super::mcp::Host;
use crate::support::project::Project;

/// A tool that returns its arguments.
const PUT: &str = r#"
(deftool :name "put" :description "Returns its arguments." :effect pure
 :args ((:name "n" :type integer :optional t :description "A number.")
        (:name "list" :type array :items (:type integer) :optional t :description "Numbers.")))
"#;

/// Claude Desktop sends objects and arrays as strings of JSON.
#[test]
fn calls_over_mcp_are_repaired() {
    let project = Project::empty();
    project.write("specs/put.eld", PUT);
    project.write("scripts/put.lua", "return function(n, list) return { n = n, list = list } end\n");
    let mut host = Host::start(&project, &[]);
    for (id, (name, arguments, expected, log)) in [
        (
            "put",
            json!({"list": "[1, 2]"}),
            r#"{"list":[1,2]}"#,
            "arguments_repaired put.list: the value was sent as a string of JSON",
        ),
        (
            "put",
            json!({"n": "5"}),
            r#"{"n":5}"#,
            "arguments_repaired put.n: the integer was sent as a string",
        ),
        (
            "put",
            json!("{\"n\": 5}"),
            r#"{"n":5}"#,
            "arguments_repaired put: the arguments were encoded twice",
        ),
        (
            "put<|channel|>commentary",
            json!({"n": 5}),
            r#"{"n":5}"#,
            "arguments_repaired put: a control token followed the name",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let id = u32::try_from(id).unwrap() + 1;
        host.ask(id, "tools/call", &json!({"name": name, "arguments": arguments}));
        let logged = host.next();
        assert_eq!(
            (&logged["method"], &logged["params"]["data"]),
            (&json!("notifications/message"), &json!(log)),
            "{logged}"
        );
        let answer = host.next();
        assert_eq!(
            (&answer["id"], &answer["result"]["content"][0]["text"]),
            (&json!(id), &json!(expected)),
            "{answer}"
        );
    }
    let answer = host.call(9, "put", &json!({"n": "05"}));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let answer = host.request(10, "tools/call", &json!({"name": "put", "arguments": "five"}));
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(host.end(), Some(0));
}
