//! Calls that need the approval of the client's user.

use super::*;

#[test]
fn calls_that_need_approval_are_refused_or_allowed() {
    let project = project();
    let mut host = Host::start(&project, &[]);
    let refused = host.call(1, "careful", &json!({"path": "a"}));
    assert_eq!(refused["result"]["isError"], true);
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("this client cannot ask for; start the server with --yes"), "{text}");
    let mut host = Host::start(&project, &["--yes"]);
    let allowed = host.call(1, "careful", &json!({"path": "a"}));
    assert_eq!(allowed["result"]["content"][0]["text"], "changed a");
}

/// The user sees every character of the arguments in the question.
#[test]
fn questions_have_no_hidden_characters() {
    let project = project();
    let mut host = Host::start_as(&project, &[], &json!({"elicitation": {}}));
    let arguments = json!({"path": "a\u{202e}\u{2028}\u{200b}\u{7f}\u{e0041}\u{a0}é"});
    host.ask(1, "tools/call", &json!({"name": "careful", "arguments": arguments}));
    let question = host.next();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let shown = r#"Run careful path: "a\u{202e}\u{2028}\u{200b}\u{7f}\u{e0041}\u{a0}é"?"#;
    assert_eq!(question["params"]["message"], shown);
    host.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    let refused = host.next();
    assert_eq!(refused["result"]["isError"], true, "{refused}");
}

/// A host without a user cancels the question.
#[test]
fn a_canceled_question_is_not_a_refusal() {
    let project = project();
    let mut host = Host::start_as(&project, &[], &json!({"elicitation": {}}));
    for (action, text) in [
        ("decline", "the user refused this call to `careful`"),
        ("cancel", "nobody answered whether this call to `careful` may run, so it did not"),
    ] {
        host.ask(1, "tools/call", &json!({"name": "careful", "arguments": {"path": "a"}}));
        let question = host.next();
        host.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action}}));
        let refused = host.next();
        let expected = json!({"content": [{"type": "text", "text": text}], "isError": true});
        assert_eq!(refused["result"]["content"], expected["content"], "{refused}");
        assert_eq!(refused["result"]["isError"], expected["isError"], "{refused}");
    }
}

/// A change of the parts of a spec that the model does not see.
#[test]
fn a_reload_applies_to_approvals_and_results() {
    let project = project();
    let mut host = Host::start(&project, &[]);
    assert_eq!(host.call(1, "count", &json!({"text": "abc"}))["result"]["structuredContent"]["length"], 3);
    project.write("specs/tools.eld", SPECS.replace("(:type integer)", "(:type string)"));
    assert_eq!(host.next()["method"], "notifications/tools/list_changed");
    let text = host.call(2, "count", &json!({"text": "abc"}))["result"]["content"][0]["text"].to_string();
    assert!(
        text.contains("error[invalid_result]: the result violates its schema: 3 is not of type"),
        "{text}"
    );
    project.write("specs/tools.eld", SPECS.replace(":effect pure", ":effect pure :confirm t"));
    assert_eq!(host.next()["method"], "notifications/tools/list_changed");
    let text = host.call(3, "count", &json!({"text": "abc"}))["result"]["content"][0]["text"].to_string();
    assert!(text.contains("needs the user's approval"), "{text}");
}
