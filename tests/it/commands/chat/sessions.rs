//! Sessions: their content, redaction, and recovery after a crash.

use super::*;

#[test]
fn a_session_is_stored_and_resumed() {
    let home = Home::new();
    let server = Server::script([
        Answer::text("One."),
        Answer::text("Two."),
        Answer::text("Three."),
        Answer::text("Other."),
    ]);
    home.chat(&server, &["--system", "Be brief."], "first\n/model bigger\n");
    let file = home.only_session();
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["record"], &lines[0]["version"]), (&json!("chat"), &json!(1)));
    assert_eq!(lines[1], json!({"record": "system", "text": "Be brief."}));
    assert_eq!(lines[2]["message"], json!({"role": "user", "content": "first"}));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    let ended = home.chat(&server, &["--resume"], "second\n");
    assert!(ended.stderr.contains("2 messages\nlast reply: One.\n"), "{ended:?}");
    assert_eq!(
        sent(&server, 1),
        [message("user", "first"), message("assistant", "One."), message("user", "second")]
    );
    assert_eq!(server.posts()[1].body["model"], "bigger");
    assert!(server.posts()[1].contents("system")[0].ends_with("\n\nBe brief."));
    assert_eq!(home.only_session(), file, "the session continues in its file");

    // Load by name, from a chat with its own session.
    let name = file.to_str().unwrap();
    let lines = format!("elsewhere\n/load {name}\nthird\n/load {name}\n");
    let ended = home.chat(&server, &[], &lines);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("this session is already open"), "{ended:?}");
    assert_eq!(sent(&server, 3).len(), 5);
    assert_eq!(home.sessions().len(), 2);

    // A chat without messages is not stored, and neither is one with --no-save.
    home.chat(&server, &[], "/tools\n");
    home.chat(&server, &["--no-save"], "hello\n/save\n");
    assert_eq!(home.sessions().len(), 2);
    assert!(!home.state.path().join("deftool/chat_history").exists());
    // Another project has its own sessions.
    let other = Home { project: Project::new(), state: tempfile::tempdir().unwrap() };
    let ended = other.chat(&server, &["--resume"], "");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("no session of this project"), "{ended:?}");
}

#[test]
fn save_writes_copies_and_overwrites_no_file() {
    let home = Home::new();
    let server =
        Server::script([Answer::calls(&[("count", r#"{"text": "abc"}"#)]), Answer::text("*Three*.")]);
    let lines = "How long?\n/save talk.md\n/save talk.jsonl\n/save talk.md\n/save\n";
    let ended = home.chat(&server, &[], lines);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("talk.md already exists; choose another name"), "{ended:?}");
    let lines = "/save talk.jsonl\n/load talk.md\n";
    let refused = home.chat(&server, &[], lines);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("talk.jsonl already exists; choose another name"), "{refused:?}");
    assert!(refused.stderr.contains("talk.md is a Markdown copy; use `last`"), "{refused:?}");
    let text = fs::read_to_string(home.project.path("talk.md")).unwrap();
    assert!(text.contains("## User\n\nHow long?\n\n## Assistant\n\nCalls `count`:\n\n```json\n{\n  \"text\": \"abc\"\n}\n```\n"), "{text}");
    assert!(text.ends_with("## Assistant\n\n*Three*.\n"), "{text}");
    let ended = home.chat(&server, &["--resume", "talk.jsonl"], "And now?\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(sent(&server, 2).len(), 5, "the copy is a session");
}

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

/// The first line has no line end.
#[test]
fn a_session_with_only_an_incomplete_first_line_is_resumed() {
    let home = Home::new();
    let server = Server::script([Answer::text("One."), Answer::text("Two.")]);
    let head = r#"{"record":"chat","version":1,"created_at_ms":0,"project":"p","worker":"w","model":"m"}"#;
    home.project.write("s.jsonl", head);
    for (line, reply) in [("a\n", "One.\n"), ("b\n", "Two.\n")] {
        let ended = home.chat(&server, &["--resume", "s.jsonl"], line);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), reply), "{ended:?}");
    }
    assert_eq!(sent(&server, 1).len(), 3);
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

#[test]
fn an_invalid_session_is_reported_with_its_line() {
    let home = Home::new();
    let server = Server::script([Answer::text("x")]);
    let head = r#"{"record":"chat","version":1,"created_at_ms":0,"project":"p","worker":"w","model":"m"}"#;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (content, expected) in [
        (String::new(), "bad.jsonl:1: invalid session: the file is empty"),
        (String::from("hello\n"), "bad.jsonl:1: invalid session: expected"),
        (String::from("\u{0}\u{1}\u{2}"), "bad.jsonl:1: "),
        (format!("{deep}\n"), "bad.jsonl:1: invalid session: "),
        (
            String::from("{\"record\":\"session\",\"version\":1}\n"),
            "this is a recording of `deftool run --record`",
        ),
        (
            String::from("{\"record\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}\n"),
            "missing session header",
        ),
        (
            head.replace("\"version\":1", "\"version\":7") + "\n",
            "bad.jsonl:1: unsupported session format 7, expected 1",
        ),
        (
            format!("{head}\n{{\"record\":\"rewind\",\"to\":5}}\n"),
            "bad.jsonl:2: invalid session: cannot rewind to message 5 of 0",
        ),
        (
            format!("{head}\n\n{{\"record\":\"other\"}}\n"),
            "bad.jsonl:3: invalid session: unknown variant `other`",
        ),
        (format!("{head}\n{head}\n"), "bad.jsonl:2: invalid session: duplicate session header"),
        (
            format!("{head}\n{{\"record\":\"message\",\"message\":{{\"role\":\"\u{1b}[31m\"}}}}\n"),
            "bad.jsonl:2: ",
        ),
    ] {
        home.project.write("bad.jsonl", &content);
        let ended = home.chat(&server, &["--resume", "bad.jsonl"], "hello\n");
        assert_eq!(ended.code, Some(2), "{expected}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
        assert!(!ended.stderr.contains('\u{1b}'), "{ended:?}");
        assert_eq!(fs::read_to_string(home.project.path("bad.jsonl")).unwrap(), content, "unchanged");
    }
    let ended = home.chat(&server, &["--resume", "specs"], "hello\n");
    assert!(ended.stderr.contains("not a regular file"), "{ended:?}");
    let ended = home.chat(&server, &["--resume", "none.jsonl"], "hello\n");
    assert!(ended.code == Some(2) && ended.stderr.contains("none.jsonl"), "{ended:?}");
    assert_eq!(server.posts().len(), 0, "nothing was sent");

    // An invalid conversation from another program is repaired before it is sent.
    let foreign = format!(
        "{head}\n{}\n{}\n",
        json!({"record": "message", "message": {"role": "tool", "tool_call_id": "x", "content": "obey"}}),
        json!({"record": "message", "message": {"role": "assistant", "content": "", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "count", "arguments": "{"}}]}}),
    );
    home.project.write("foreign.jsonl", foreign);
    let ended = home.chat(&server, &["--resume", "foreign.jsonl"], "hello\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!server.posts()[0].raw.windows(4).any(|window| window == b"obey"));
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
    assert!(ended.code == Some(2) && ended.stderr.contains("locked by another deftool process"), "{ended:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The newest session is the chat's own session.
#[test]
fn last_is_not_the_current_session() {
    let home = Home::new();
    let server = Server::answering(|_, _| Answer::text("Yes."));
    let ended = home.chat(&server, &[], "first\n/load last\n");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("no other session of this project"), "{ended:?}");
    let ended = home.chat(&server, &[], "elsewhere\n/load last\nsecond\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        sent(&server, 2),
        [message("user", "first"), message("assistant", "Yes."), message("user", "second")]
    );
    assert_eq!(home.sessions().len(), 2);
    // Both were written within the resolution of the file system's clock.
    for path in home.sessions() {
        if fs::read_to_string(&path).unwrap().contains("elsewhere") {
            let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
            fs::File::options().append(true).open(&path).unwrap().set_modified(hour_ago).unwrap();
        }
    }
    // Without a message, the chat has no session file.
    let ended = home.chat(&server, &[], "/load last\nthird\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(sent(&server, 3).len(), 5);
}

#[test]
fn a_session_without_messages_is_not_stored() {
    let home = Home::new();
    let server = Server::script([Answer::text("One.")]);
    let ended = home.chat(&server, &["--system", "Be brief."], "/clear\n/save\n");
    assert!(ended.stderr.ends_with("the session is stored when the first message is sent\n"), "{ended:?}");
    assert!(home.sessions().is_empty(), "{:?}", home.sessions());
    home.chat(&server, &["--system", "Be brief."], "/clear\nhello\n/clear\n");
    let text = fs::read_to_string(home.only_session()).unwrap();
    assert!(text.contains("Be brief.") && text.ends_with("{\"record\":\"rewind\",\"to\":0}\n"), "{text}");
}

#[test]
fn with_no_save_a_session_is_only_read() {
    let home = Home::new();
    let server = Server::script([Answer::text("Yes.")]);
    let head = r#"{"record":"chat","version":1,"created_at_ms":0,"project":"p","worker":"w","model":"m"}"#;
    let cut = format!(
        "{head}\n{}\n{}\n{{\"record\":\"eve",
        json!({"record": "message", "message": {"role": "user", "content": "Hello."}}),
        json!({"record": "event", "event": {"type": "text", "text": "Hello, how"}}),
    );
    home.project.write("cut.jsonl", &cut);
    let ended = home.chat(&server, &["--no-save"], "/load cut.jsonl\ngo on\n/save\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.starts_with("cut.jsonl: 2 messages\n"), "{ended:?}");
    assert!(ended.stderr.contains("this session is not stored"), "{ended:?}");
    assert_eq!(sent(&server, 0)[1], message("assistant", &format!("Hello, how\n\n{INTERRUPTED}")));
    assert_eq!(fs::read_to_string(home.project.path("cut.jsonl")).unwrap(), cut);
}
