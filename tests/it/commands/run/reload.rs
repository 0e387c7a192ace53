//! Scripts that are saved while a request runs.

use super::*;

/// Returns a server that calls a tool until `is_new` accepts its result.
fn until(is_new: impl Fn(&str) -> bool + Send + Sync + 'static) -> Server {
    Server::answering(move |_, request| {
        let results = request.texts("tool");
        if results.last().is_some_and(|result| is_new(result)) {
            return Answer::text("over");
        }
        // Delay each turn, so that a change can be detected.
        let call = call(0, "count", r#"{"text": "abc"}"#);
        Answer::stream().wait_ms(40).chunk(&call).chunk(&finish("tool_calls")).done().end()
    })
}

#[test]
fn a_script_saved_between_two_turns_is_used_in_the_next_turn() {
    let project = Project::with_worker(r#"(defworker :name "w" :tool-budget 500)"#);
    let server = until(|result| result.contains("new"));
    let endpoint = server.endpoint();
    let child = project.spawn(&["run", "hello", "--json", "--endpoint", &endpoint]);
    server.wait_for_posts(2);
    project.write("scripts/count.lua", "return function(text, times) return 'new' end");
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, &ended.finished()["text"]), (Some(0), &json!("over")), "{}", ended.stderr);
    let events = ended.events();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let reloads: Vec<usize> = (0..types.len()).filter(|&at| types[at] == "reloaded").collect();
    assert_eq!(reloads.len(), 1, "{types:?}");
    assert_eq!(types[reloads[0] + 1], "turn_started");
    assert_eq!(events[reloads[0]]["generation"], 2);
    let results: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "tool_finished")
        .map(|event| &event["result"])
        .collect();
    let (last, old) = results.split_last().unwrap();
    assert_eq!(*last, &json!("new"));
    assert!(old.iter().all(|result| **result == json!({"length": 3})), "{results:?}");
}

#[test]
fn a_broken_script_keeps_the_last_good_version_until_it_is_repaired() {
    let project = Project::with_worker(r#"(defworker :name "w" :tool-budget 500)"#);
    let server = until(|result| result.contains("repaired"));
    let endpoint = server.endpoint();
    let child = project.spawn(&["run", "hello", "--json", "--endpoint", &endpoint]);
    server.wait_for_posts(2);
    project.write("scripts/count.lua", "return function(text, times) return 'broken'");
    // Enough turns for the change to be detected on a busy machine.
    server.wait_for_posts(server.posts().len() + 15);
    project.write("scripts/count.lua", "return function(text, times) return 'repaired' end");
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, &ended.finished()["text"]), (Some(0), &json!("over")), "{}", ended.stderr);
    let events = ended.events();
    let results: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "tool_finished")
        .map(|event| &event["result"])
        .collect();
    let (_, old) = results.split_last().unwrap();
    assert!(old.iter().all(|result| **result == json!({"length": 3})), "{results:?}");
}
