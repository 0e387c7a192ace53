//! Sessions: redaction, and recovery after a crash.

use super::*;

#[test]
fn sessions_do_not_contain_the_key() {
    let home = Home::new();
    let key = "sk-very-secret-0123";
    let leaks = "return function(text, times)\n  return { ['sk-very-' .. 'secret-0123'] = 'counted' }\nend\n";
    home.project.write("scripts/count.lua", leaks);
    let server = Server::script([
        Answer::calls(&[("count", &format!("{{\"text\": \"{key}\"}}"))]),
        Answer::text("Fine."),
    ]);
    let mut command = home.command(&server, &["--trust"]);
    let mut child = command.env("OPENAI_API_KEY", key).spawn().unwrap();
    let lines = format!("my key is {key}\n/save talk.md\n");
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert!(ended.stderr.contains("saved to talk.md"), "{ended:?}");
    for file in [home.only_session(), home.project.path("talk.md")] {
        let text = fs::read_to_string(file).unwrap();
        assert!(!text.contains(key) && text.contains("my key is [redacted]"), "{text}");
        assert!(text.contains("counted"), "{text}\n{ended:?}");
    }
}

/// Values of the tools' environment variables are redacted as in recordings, even if a value is split over several
/// chunks or the process is killed.
#[cfg(unix)]
#[test]
fn sessions_do_not_contain_secrets_of_tools() {
    let home = Home::new();
    let specs = fs::read_to_string(home.project.path("specs/tools.eld")).unwrap();
    let allowed = "\"Fails.\" :args () :allow (:env [\"MY_TOKEN\"])";
    home.project.write("specs/tools.eld", specs.replace("\"Fails.\" :args ()", allowed));
    home.project.write("scripts/count.lua", "return function(text, times) return { was = text } end\n");
    let spelled = || Answer::stream().delta("it is tok").delta("en-0815").delta("-xyz.");
    let server = Server::script([
        Answer::calls(&[("count", r#"{"text": "token-0815-xyz"}"#)]),
        spelled().chunk(&deftool_test_support::server::finish("stop")).done().end(),
        spelled().then(Act::Silence),
        Answer::text("Yes."),
    ]);
    let start = |arguments: &[&str], lines: &str| {
        let mut command = home.command(&server, &[&["--trust", "--json"], arguments].concat());
        let mut child = command.env("MY_TOKEN", "token-0815-xyz").spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        child
    };
    let is_clean = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        assert!(!text.contains("0815") && !text.contains("abcdefgh"), "{text}");
        text
    };
    let mut child = start(&["--system", "say token-0815-xyz"], "it is token-0815-xyz\n/save talk.md\n");
    let mut events = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut events).unwrap();
    assert!(events.contains("it is token-0815-xyz."), "the output is not redacted: {events}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    for file in [home.only_session(), home.project.path("talk.md")] {
        assert!(is_clean(&file).contains("it is [redacted-1]."), "{file:?}");
    }

    let mut child = start(&["--resume"], "Authorization: Bearer abcdefgh1234\n");
    let mut events = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(events.any(|line| line.unwrap().contains("-xyz.")));
    child.kill().unwrap();
    child.wait().unwrap();
    is_clean(&home.only_session());
    let ended = home.chat(&server, &["--trust", "--resume"], "go on\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Yes.\n"), "{ended:?}");
}

/// Killed during a reply after a tool result: no complete data is lost, and split credentials are not stored.
#[cfg(unix)]
#[test]
fn a_killed_chat_is_resumed() {
    let home = Home::new();
    let server = Server::script([
        Answer::text("Hello."),
        Answer::calls(&[("count", r#"{"text": "abc"}"#)]),
        Answer::stream().delta("It is Bearer abcdefghij").delta("klmnopqrstuv, thr").then(Act::Silence),
        Answer::text("Three."),
    ]);
    let mut child = home.command(&server, &["--json"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hi\nhow long?\n").unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(events.any(|line| line.unwrap().contains(", thr")));
    child.kill().unwrap();
    child.wait().unwrap();
    // Also simulate an incomplete last line.
    let file = home.only_session();
    let mut text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("abcdef") && !text.contains("klmnop"), "{text}");
    text.push_str("{\"record\": \"event\", \"event\": {\"type\": \"te");
    fs::write(&file, text).unwrap();

    let ended = home.chat(&server, &["--resume"], "go on\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Three.\n"), "{ended:?}");
    let sent = sent(&server, 3);
    assert_eq!(sent[4], message("tool", r#"{"length":3}"#), "{sent:?}");
    assert_eq!(sent[5], message("assistant", &format!("It is Bearer [redacted-1],\n\n{INTERRUPTED}")));
    assert_eq!(sent[6], message("user", "go on"));
    // Resume again: the repaired session is in the file.
    let ended = home.chat(&server, &["--resume"], "and on\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Killed during a tool call, and before a reply starts.
#[cfg(unix)]
#[test]
fn a_killed_call_gets_a_result_and_an_unanswered_message_can_be_retried() {
    let home = Home::new();
    home.project.write("specs/wait.eld", "(deftool :name \"wait\" :description \"Wait.\" :timeout \"50s\")");
    home.project.write("scripts/wait.lua", "return function() while true do end end\n");
    let server = Server::script([
        Answer::calls(&[("count", r#"{"text": "abc"}"#), ("wait", "{}")]),
        Answer::silent(),
        Answer::text("Fine."),
    ]);
    let killed_at = |lines: &[u8], arguments: &[&str], mark: &str, times: usize, posts: usize| {
        let mut child = home.command(&server, &[&["--json"], arguments].concat()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines).unwrap();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        let seen = events.filter(|line| line.as_ref().unwrap().contains(mark)).take(times).count();
        assert_eq!(seen, times);
        // Otherwise the next request would get the answer for this request.
        server.wait_for_posts(posts);
        child.kill().unwrap();
        child.wait().unwrap();
    };
    killed_at(b"go\n", &[], "\"tool_started\"", 2, 1);
    killed_at(b"and?\n", &["--resume"], "\"turn_started\"", 1, 2);
    let ended = home.chat(&server, &["--resume"], "/retry\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Fine.\n"), "{ended:?}");
    assert!(
        ended.stderr.contains("the last message has no reply; use /retry to send it again: and?"),
        "{ended:?}"
    );
    let sent = sent(&server, 2);
    assert_eq!(sent[2], message("tool", r#"{"length":3}"#), "{sent:?}");
    assert!(sent[3].1.contains("interrupted"), "{sent:?}");
    assert_eq!(sent.last(), Some(&message("user", "and?")));
}

#[cfg(unix)]
#[test]
fn one_session_has_one_writer() {
    let home = Home::new();
    let server = Server::script([Answer::text("One."), Answer::silent()]);
    home.chat(&server, &["hi"], "");
    let mut child = home.command(&server, &["--resume"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"wait\n").unwrap();
    server.wait_for_posts(2);
    let ended = home.chat(&server, &["--resume"], "me, too\n");
    assert!(ended.code == Some(2) && ended.stderr.contains("in use by another deftool process"), "{ended:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}
