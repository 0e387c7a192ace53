//! Ctrl-C.

use super::*;

#[test]
fn a_second_interrupt_ends_the_command_at_once() {
    let project = Project::new();
    let server = Server::script([Answer::silent()]);
    let endpoint = server.endpoint();
    let child = project.spawn(&["run", "hello", "--endpoint", &endpoint]);
    server.wait_for_posts(1);
    interrupt(&child);
    interrupt(&child);
    assert_eq!(Ended::of(child.wait_with_output().unwrap()).code, Some(130));
}

#[test]
fn ctrl_c_in_a_stream_keeps_the_text_and_exits_with_130() {
    let project = Project::new();
    let server = Server::script([Answer::stream().delta("so far").then(Act::Silence)]);
    let endpoint = server.endpoint();
    let mut child = project.spawn(&["run", "hello", "--endpoint", &endpoint, "--record", "s.jsonl"]);
    let begun = read_until(&mut child, "so far");
    interrupt(&child);
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, begun + &ended.stdout), (Some(130), String::from("so far\n")));
    assert_eq!(ended.stderr, "canceled; the text so far is kept\n");
    server.wait_for_disconnect();
    drop(server);
    // The replay ends the same way.
    let again = project.run(&["run", "--replay", "s.jsonl"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(130), "so far\n"));
}

#[test]
fn ctrl_c_in_a_tool_stops_it_and_json_ends_with_finished() {
    let project = Project::new();
    project.write("scripts/count.lua", "return function(text, times) while true do end end");
    let server = Server::script([Answer::calls(&[("count", r#"{"text": "abc"}"#)])]);
    let endpoint = server.endpoint();
    let mut child = project.spawn(&["run", "hello", "--json", "--endpoint", &endpoint]);
    let begun = read_until(&mut child, "\"tool_started\"");
    interrupt(&child);
    let rest = Ended::of(child.wait_with_output().unwrap());
    let ended = Ended { stdout: begun + &rest.stdout, ..rest };
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let finished = ended.finished();
    assert_eq!((&finished["state"], &finished["fail_reason"]), (&json!("canceled"), &json!("canceled")));
}

#[test]
fn ctrl_c_while_connecting_exits_with_130() {
    let project = Project::new();
    // It accepts connections but does not answer.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    let child = project.spawn(&["run", "hello", "--endpoint", &endpoint]);
    let (_connection, _) = listener.accept().unwrap();
    interrupt(&child);
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
    // On a terminal, a spinner is shown.
    let mut terminal = Terminal::start(&project, &["run", "hello", "--endpoint", &endpoint], Piped::Nothing);
    terminal.wait_for(&format!("connecting to {endpoint}"));
    terminal.type_text("\u{3}");
    assert_eq!(terminal.end().code, Some(130));
}
