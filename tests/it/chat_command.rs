//! `deftool chat`: the real binary, with lines of stdin and on a terminal.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::project::{Ended, Project};
use crate::support::server::{Act, Answer, Server};
use crate::support::validity::assert_valid;

/// A project, and a state folder of its own.
struct Home {
    project: Project,
    state: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { project: Project::new(), state: tempfile::tempdir().unwrap() }
    }

    fn command(&self, server: &Server, arguments: &[&str]) -> Command {
        let endpoint = server.endpoint();
        let mut command = self.project.command(&[&["chat", "--endpoint", &endpoint], arguments].concat());
        command.env("XDG_STATE_HOME", self.state.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a chat with these lines of stdin.
    fn chat(&self, server: &Server, arguments: &[&str], lines: &str) -> Ended {
        let mut child = self.command(server, arguments).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A chat that does not begin reads nothing.
        let _ = stdin.write_all(lines.as_bytes());
        drop(stdin);
        let ended = Ended::of(child.wait_with_output().unwrap());
        server.posts().iter().for_each(|post| assert_valid(&post.body));
        ended
    }

    /// The sessions that are kept, in the order of their names.
    fn sessions(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in fs::read_dir(self.state.path().join("deftool/sessions")).into_iter().flatten().flatten()
        {
            found.extend(fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()));
        }
        found.sort();
        found
    }

    fn only_session(&self) -> PathBuf {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions[0].clone()
    }
}

/// Roles and texts of what a request was sent, without system messages.
fn sent(server: &Server, nth: usize) -> Vec<(String, String)> {
    let posts = server.posts();
    let messages = posts[nth].body["messages"].as_array().unwrap().clone();
    let text = |message: &Value, key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let of_people = messages.iter().filter(|message| message["role"] != "system");
    of_people.map(|message| (text(message, "role"), text(message, "content"))).collect()
}

fn said(role: &str, content: &str) -> (String, String) {
    (role.to_owned(), content.to_owned())
}

const INTERRUPTED: &str = "[this reply was interrupted]";

#[test]
fn each_line_is_a_message_and_the_conversation_grows() {
    let home = Home::new();
    let server = Server::script([
        Answer::text("Hello."),
        Answer::calls(&[("count", r#"{"text": "abc"}"#)]),
        Answer::text("Three."),
        Answer::text("Both."),
    ]);
    let lines = "\nHow long is abc?\n```\none\ntwo\n```\n";
    let ended = home.chat(&server, &["Hi there"], lines);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hello.\nThree.\nBoth.\n"), "{ended:?}");
    assert_eq!(sent(&server, 0), [said("user", "Hi there")]);
    let last = sent(&server, 3);
    assert_eq!(last[1..3], [said("assistant", "Hello."), said("user", "How long is abc?")]);
    assert_eq!(last[4], said("tool", r#"{"length":3}"#));
    assert_eq!(last[5..], [said("assistant", "Three."), said("user", "```\none\ntwo\n```")]);
}

#[test]
fn a_failed_message_is_no_end_and_the_exit_code_tells_of_it() {
    let home = Home::new();
    let server = Server::script([
        Answer::stream().delta("Half").then(Act::Close),
        Answer::calls(&[("broken", "{}")]),
        Answer::calls(&[("nothing", "{}")]),
        Answer::text("Fine."),
    ]);
    let ended = home.chat(&server, &[], "one\ntwo\nthree\nfour\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "Half\nFine.\n"), "{ended:?}");
    let last = sent(&server, 3);
    assert_eq!(last[1], said("assistant", &format!("Half\n\n{INTERRUPTED}")));
    assert!(last[4].1.contains("no luck"), "what was done before the failure is told: {last:?}");
}

#[test]
fn commands_without_a_terminal() {
    let home = Home::new();
    let server = Server::script([Answer::text("First."), Answer::text("Second."), Answer::text("Third.")]);
    let lines = "/model other\n/system Be brief.\nhello\n/retry\n/undo\nthere\n/clear\nagain\n//etc\n";
    let ended = home.chat(&server, &["--system", "Be long."], lines);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(sent(&server, 1), [said("user", "hello")], "the reply was taken back");
    assert_eq!(sent(&server, 2), [said("user", "there")]);
    assert_eq!(sent(&server, 3), [said("user", "again")]);
    assert_eq!(sent(&server, 4)[2], said("user", "/etc"));
    let first = &server.posts()[0];
    assert_eq!(first.body["model"], "other");
    let systems = first.contents("system");
    assert!(systems.contains(&String::from("Be brief.")) && !systems.contains(&String::from("Be long.")));

    let ended = home.chat(&server, &[], "/tools\n/help\n/tolls\n/undo\n/quit\nnot sent\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    for part in [
        "count: Count the characters of a text.",
        "done (exit tool): The task is done.",
        "/save [FILE]",
        "no command /tolls; did you mean /tools?",
        "there is no message to take back",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert_eq!(server.posts().len(), 5);
}

#[test]
fn tools_are_described_with_what_they_may() {
    let home = Home::new();
    let spec = "(deftool :name \"drop\" :description \"Drop it.\" :confirm (:when (:a \"x\") (:a \"y\")) :allow (:run [\"ls\"])
                 :args ((:name \"a\" :type string :description \"What.\")))
                (deftool :name \"every\" :description \"Do it.\" :confirm t)";
    home.project.write("specs/drop.eld", spec);
    home.project.write("scripts/drop.lua", "return function(a) return a end");
    home.project.write("scripts/every.lua", "return function() return 1 end");
    let server = Server::script([Answer::text("x")]);
    let ended = home.chat(&server, &["--trust"], "/tools\n");
    let expected = "drop (asks under 2 conditions): Drop it.\n    may use :run [\"ls\"]\n";
    assert!(ended.stderr.contains(expected), "{ended:?}");
    assert!(ended.stderr.contains("every (asks before each call): Do it."), "{ended:?}");
}

#[test]
fn json_prints_events_and_says_everything_else_on_stderr() {
    let home = Home::new();
    let server = Server::script([Answer::text("One."), Answer::text("Two.")]);
    let ended = home.chat(&server, &["--json"], "a\n/help\nb\n");
    let events = ended.events();
    let ends: Vec<&Value> = events.iter().filter(|event| event["type"] == "finished").collect();
    assert_eq!(ends.len(), 2);
    assert_eq!((&ends[0]["text"], &ends[1]["text"]), (&json!("One."), &json!("Two.")));
}

#[test]
fn a_session_is_kept_and_goes_on() {
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
    assert!(ended.stderr.contains("2 messages\nthe model said last: One.\n"), "{ended:?}");
    assert_eq!(sent(&server, 1), [said("user", "first"), said("assistant", "One."), said("user", "second")]);
    assert_eq!(server.posts()[1].body["model"], "bigger");
    assert!(server.posts()[1].contents("system").contains(&String::from("Be brief.")));
    assert_eq!(home.only_session(), file, "it goes on in its file");

    // By its name, from another chat; which has a session of its own before.
    let name = file.to_str().unwrap();
    let lines = format!("elsewhere\n/load {name}\nthird\n/load {name}\n");
    let ended = home.chat(&server, &[], &lines);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("this is that session"), "{ended:?}");
    assert_eq!(sent(&server, 3).len(), 5);
    assert_eq!(home.sessions().len(), 2);

    // Without a word nothing is kept, and with --no-save nothing at all.
    home.chat(&server, &[], "/tools\n");
    home.chat(&server, &["--no-save"], "hello\n/save\n");
    assert_eq!(home.sessions().len(), 2);
    assert!(!home.state.path().join("deftool/chat_history").exists());
    // Another project has sessions of its own.
    let other = Home { project: Project::new(), state: tempfile::tempdir().unwrap() };
    let ended = other.chat(&server, &["--resume"], "");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("no session of this project is kept"), "{ended:?}");
}

#[test]
fn a_copy_is_written_and_nothing_is_written_over() {
    let home = Home::new();
    let server =
        Server::script([Answer::calls(&[("count", r#"{"text": "abc"}"#)]), Answer::text("*Three*.")]);
    let lines = "How long?\n/save talk.md\n/save talk.jsonl\n/save talk.md\n/save\n";
    let ended = home.chat(&server, &[], lines);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("talk.md is there already; give another name"), "{ended:?}");
    let lines = "/save talk.jsonl\n/load talk.md\n";
    let refused = home.chat(&server, &[], lines);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("talk.jsonl is there already; give another name"), "{refused:?}");
    assert!(refused.stderr.contains("talk.md is a copy for reading; /save NAME.jsonl"), "{refused:?}");
    let text = fs::read_to_string(home.project.path("talk.md")).unwrap();
    assert!(text.contains("## User\n\nHow long?\n\n## Assistant\n\nCalls `count`:\n\n```json\n{\n  \"text\": \"abc\"\n}\n```\n"), "{text}");
    assert!(text.ends_with("## Assistant\n\n*Three*.\n"), "{text}");
    let ended = home.chat(&server, &["--resume", "talk.jsonl"], "And now?\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(sent(&server, 2).len(), 5, "the copy is a session");
}

#[test]
fn the_key_is_in_no_session() {
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
    assert!(ended.stderr.contains("written to talk.md"), "{ended:?}");
    for file in [home.only_session(), home.project.path("talk.md")] {
        let text = fs::read_to_string(file).unwrap();
        assert!(!text.contains(key) && text.contains("my key is [redacted]"), "{text}");
        assert!(text.contains("counted"), "{text}\n{ended:?}");
    }
}

/// What a recording would not hold, a session does not hold: the variables of the tools, spelled over several pieces, too,
/// also where the process is killed.
#[cfg(unix)]
#[test]
fn the_secrets_of_the_tools_are_in_no_session() {
    let home = Home::new();
    let specs = fs::read_to_string(home.project.path("specs/tools.eld")).unwrap();
    let allowed = "\"Fails.\" :args () :allow (:env [\"MY_TOKEN\"])";
    home.project.write("specs/tools.eld", specs.replace("\"Fails.\" :args ()", allowed));
    home.project.write("scripts/count.lua", "return function(text, times) return { was = text } end\n");
    let spelled = || Answer::stream().delta("it is tok").delta("en-0815").delta("-xyz.");
    let server = Server::script([
        Answer::calls(&[("count", r#"{"text": "token-0815-xyz"}"#)]),
        spelled().chunk(&crate::support::server::finish("stop")).done().end(),
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
    assert!(events.contains("it is token-0815-xyz."), "what is shown is whole: {events}");
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

/// A first line whose end was not written, and what is written after it.
#[test]
fn a_session_of_which_only_the_first_line_was_written_goes_on() {
    let home = Home::new();
    let server = Server::script([Answer::text("One."), Answer::text("Two.")]);
    let head = r#"{"record":"chat","version":1,"created_at_ms":0,"project":"p","worker":"w","model":"m"}"#;
    home.project.write("s.jsonl", head);
    for (line, said) in [("a\n", "One.\n"), ("b\n", "Two.\n")] {
        let ended = home.chat(&server, &["--resume", "s.jsonl"], line);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), said), "{ended:?}");
    }
    assert_eq!(sent(&server, 1).len(), 3);
}

/// Killed in the middle of a reply, after a tool has answered: nothing that was whole is lost, and no credentials are kept
/// that came in two pieces.
#[cfg(unix)]
#[test]
fn a_chat_that_is_killed_goes_on_where_it_was() {
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
    // The last line was cut, too.
    let file = home.only_session();
    let mut text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("abcdef") && !text.contains("klmnop"), "{text}");
    text.push_str("{\"record\": \"event\", \"event\": {\"type\": \"te");
    fs::write(&file, text).unwrap();

    let ended = home.chat(&server, &["--resume"], "go on\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Three.\n"), "{ended:?}");
    let sent = sent(&server, 3);
    assert_eq!(sent[4], said("tool", r#"{"length":3}"#), "{sent:?}");
    assert_eq!(sent[5], said("assistant", &format!("It is Bearer [redacted-1],\n\n{INTERRUPTED}")));
    assert_eq!(sent[6], said("user", "go on"));
    // And once more: what was mended is in the file.
    let ended = home.chat(&server, &["--resume"], "and on\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Killed while a tool runs, and before a reply began.
#[cfg(unix)]
#[test]
fn a_call_that_was_killed_is_answered_and_a_question_without_reply_can_be_sent_again() {
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
        // Or the next request gets the answer of this one.
        server.wait_for_posts(posts);
        child.kill().unwrap();
        child.wait().unwrap();
    };
    killed_at(b"go\n", &[], "\"tool_started\"", 2, 1);
    killed_at(b"and?\n", &["--resume"], "\"turn_started\"", 1, 2);
    let ended = home.chat(&server, &["--resume"], "/retry\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Fine.\n"), "{ended:?}");
    assert!(ended.stderr.contains("the last one has no reply, /retry sends it again: and?"), "{ended:?}");
    let sent = sent(&server, 2);
    assert_eq!(sent[2], said("tool", r#"{"length":3}"#), "{sent:?}");
    assert!(sent[3].1.contains("interrupted"), "{sent:?}");
    assert_eq!(sent.last(), Some(&said("user", "and?")));
}

#[test]
fn a_file_that_is_no_session_is_told_with_its_line() {
    let home = Home::new();
    let server = Server::script([Answer::text("x")]);
    let head = r#"{"record":"chat","version":1,"created_at_ms":0,"project":"p","worker":"w","model":"m"}"#;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (content, told) in [
        (String::new(), "bad.jsonl:1: this is no line of a session: the file is empty"),
        (String::from("hello\n"), "bad.jsonl:1: this is no line of a session: expected"),
        (String::from("\u{0}\u{1}\u{2}"), "bad.jsonl:1: "),
        (format!("{deep}\n"), "bad.jsonl:1: this is no line of a session: "),
        (
            String::from("{\"record\":\"session\",\"version\":1}\n"),
            "it is a recording of `deftool run --record`",
        ),
        (
            String::from("{\"record\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}\n"),
            "must say whose session",
        ),
        (
            head.replace("\"version\":1", "\"version\":7") + "\n",
            "bad.jsonl:1: a session of format 7; this deftool reads format 1",
        ),
        (
            format!("{head}\n{{\"record\":\"rewind\",\"to\":5}}\n"),
            "bad.jsonl:2: this is no line of a session: it goes back to message 5, and there are 0",
        ),
        (
            format!("{head}\n\n{{\"record\":\"other\"}}\n"),
            "bad.jsonl:3: this is no line of a session: unknown variant `other`",
        ),
        (
            format!("{head}\n{head}\n"),
            "bad.jsonl:2: this is no line of a session: a second session begins here",
        ),
        (
            format!("{head}\n{{\"record\":\"message\",\"message\":{{\"role\":\"\u{1b}[31m\"}}}}\n"),
            "bad.jsonl:2: ",
        ),
    ] {
        home.project.write("bad.jsonl", &content);
        let ended = home.chat(&server, &["--resume", "bad.jsonl"], "hello\n");
        assert_eq!(ended.code, Some(2), "{told}: {ended:?}");
        assert!(ended.stderr.contains(told), "{told}: {ended:?}");
        assert!(!ended.stderr.contains('\u{1b}'), "{ended:?}");
        assert_eq!(fs::read_to_string(home.project.path("bad.jsonl")).unwrap(), content, "it is left alone");
    }
    let ended = home.chat(&server, &["--resume", "specs"], "hello\n");
    assert!(ended.stderr.contains("it is no regular file"), "{ended:?}");
    let ended = home.chat(&server, &["--resume", "none.jsonl"], "hello\n");
    assert!(ended.code == Some(2) && ended.stderr.contains("none.jsonl"), "{ended:?}");
    assert_eq!(server.posts().len(), 0, "nothing was sent");

    // A session of anybody's making is mended before it is sent.
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
    assert!(ended.code == Some(2) && ended.stderr.contains("another deftool writes it"), "{ended:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_reload_is_told() {
    let home = Home::new();
    let server = Server::script([Answer::text("One.")]);
    let mut child = home.command(&server, &[]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    stdin.write_all(b"/reload\n").unwrap();
    assert!(errors.next().unwrap().unwrap().starts_with("nothing changed; generation 1"));
    let beside = home.project.path("new.eld");
    fs::write(&beside, "(deftool :name \"fresh\" :description \"Do it.\")\n").unwrap();
    home.project.write("scripts/fresh.lua", "return function() return 1 end\n");
    fs::rename(beside, home.project.path("specs/fresh.eld")).unwrap();
    stdin.write_all(b"/reload\n").unwrap();
    let told = errors.next().unwrap().unwrap();
    assert!(told.starts_with("generation ") && told.contains("fresh"), "{told}");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A chat whose stderr is read line by line.
struct Piped {
    child: std::process::Child,
    stdin: std::process::ChildStdin,
    said: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Piped {
    fn start(home: &Home, server: &Server) -> Self {
        let mut child = home.command(server, &["--model", "demo"]).spawn().unwrap();
        let (stdin, stderr) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
        Self { child, stdin, said: BufReader::new(stderr).lines() }
    }

    /// What is said up to the answer to this line, which `/model` marks.
    fn says(&mut self, line: &str) -> String {
        self.stdin.write_all(format!("{line}\n/model\n").as_bytes()).unwrap();
        let lines = self.said.by_ref().map(Result::unwrap).take_while(|line| line != "demo");
        lines.collect::<Vec<_>>().join("\n")
    }

    /// What is said until this is among it, whatever took it up.
    fn waits_for(&mut self, part: &str) -> String {
        let started = std::time::Instant::now();
        let mut said = String::new();
        while !said.contains(part) {
            assert!(started.elapsed().as_secs() < 60, "{part} is not in {said}");
            said.push_str(&self.says(""));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        said
    }
}

/// Also where the watcher was first: what a save did is told, once.
#[test]
fn what_a_save_did_is_told() {
    let home = Home::new();
    let server = Server::script([Answer::text("x")]);
    let mut chat = Piped::start(&home, &server);
    assert_eq!(chat.says("/reload"), "nothing changed; generation 1");

    home.project.write("scripts/count.lua", "return function(text, times) broken\n");
    let told = chat.waits_for("broken, last good version kept: count");
    assert_eq!(told.matches("DT402").count(), 1, "{told}");
    let told = chat.says("/reload");
    assert!(told.starts_with("nothing changed; generation "), "{told}");
    assert!(told.contains("scripts/count.lua:") && told.contains("DT402"), "{told}");
    let told = chat.says("/tools");
    assert!(told.contains("count (broken now, last good version kept): Count"), "{told}");
    assert!(told.contains("DT402"), "{told}");

    fs::remove_file(home.project.path("scripts/count.lua")).unwrap();
    let specs = fs::read_to_string(home.project.path("specs/tools.eld")).unwrap();
    let start = specs.find("(deftool :name \"broken\"").unwrap();
    home.project.write("specs/tools.eld", &specs[start..]);
    chat.waits_for("removed count");
    assert!(!chat.says("/tools").contains("count"));

    let specs = specs[start..].replace(":args ()", ":args () :tiemout 3");
    home.project.write("specs/tools.eld", specs);
    let told = chat.waits_for("`:tiemout` is no key");
    assert!(told.contains("no tool changed"), "{told}");

    fs::rename(home.project.path("specs"), home.project.path("elsewhere")).unwrap();
    chat.waits_for("; the tools stay as they were");
    assert!(chat.says("/reload").contains("; the tools stay as they were"));
    fs::rename(home.project.path("elsewhere"), home.project.path("specs")).unwrap();
    chat.waits_for("generation ");
    drop(chat.stdin);
    assert_eq!(chat.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_tool_that_was_broken_from_the_start_is_told_as_left_out() {
    let home = Home::new();
    home.project.write("scripts/count.lua", "return function(text, times) broken\n");
    let server = Server::script([Answer::text("x")]);
    let mut chat = Piped::start(&home, &server);
    chat.says("");
    for line in ["/tools", "/reload"] {
        let told = chat.says(line);
        assert!(told.contains("left out, since broken: count\n"), "{line}: {told}");
        assert_eq!(told.matches("DT402").count(), 1, "{line}: {told}");
    }
    drop(chat.stdin);
    chat.child.wait().unwrap();
}

#[test]
fn a_line_that_is_not_utf_8_is_refused() {
    let home = Home::new();
    let server = Server::script([Answer::text("One."), Answer::text("Two.")]);
    let mut child = home.command(&server, &[]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\nol\xe9\n```\n\xff\n```\ntwo\n").unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "One.\nTwo.\n"), "{ended:?}");
    assert!(ended.stderr.contains("line 2 of stdin is not UTF-8, and is not sent"), "{ended:?}");
    assert!(ended.stderr.contains("line 4 of stdin is not UTF-8, and is not sent"), "{ended:?}");
    assert_eq!(sent(&server, 1)[2], said("user", "two"));
}

#[test]
fn a_model_that_nobody_named_is_told_as_that() {
    let home = Home::new();
    let none = ["chat", "--endpoint", "http://127.0.0.1:9/v1", "--no-save"];
    for (more, told) in
        [(&[][..], "no known model (`default` is asked for)\n"), (&["--model", "default"][..], "default\n")]
    {
        let ended = home.project.run_with_stdin(&[&none, more].concat(), b"/model\n");
        assert!(ended.stderr.ends_with(told), "{ended:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_model_of_a_managed_server_that_nobody_named() {
    let project = crate::managed::project("");
    let ended =
        project.run_with_stdin(&["chat", "--trust", "--no-save"], b"/model\n/model x\n/model -\n/model\n");
    assert_eq!(ended.stderr.matches("the server's first model\n").count(), 2, "{ended:?}");
}

#[cfg(target_os = "linux")]
mod terminal {
    use super::*;
    use crate::support::terminal::{Piped, Terminal};

    const PROMPT: &str = "> ";

    fn start(home: &Home, server: &Server, arguments: &[&str]) -> Terminal {
        let endpoint = server.endpoint();
        let arguments = [&["chat", "--endpoint", &endpoint], arguments].concat();
        let state = home.state.path().to_str().unwrap();
        let mut terminal = Terminal::start_with(&home.project, &arguments, Piped::Nothing, state);
        terminal.wait_for("/help lists the commands");
        terminal
    }

    #[test]
    fn messages_are_edited_and_remembered() {
        let home = Home::new();
        let server = Server::script([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
        let mut terminal = start(&home, &server, &[]);
        terminal.wait_for(PROMPT);
        // A letter is taken away, and the line goes on in the next.
        terminal.type_text("hellp\u{7f}o\\\rworld\r");
        terminal.wait_for("One.");
        terminal.wait_for(PROMPT);
        terminal.type_text("```\rcode\r```\r");
        terminal.wait_for("Two.");
        terminal.wait_for(PROMPT);
        // 4: Ctrl-D.
        terminal.type_text("\u{4}");
        let ended = terminal.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("`deftool chat --resume` goes on"), "{ended:?}");
        assert_eq!(sent(&server, 0), [said("user", "hello\nworld")]);
        assert_eq!(sent(&server, 1)[2], said("user", "```\ncode\n```"));

        // The arrow upwards brings back what was typed last, in the next chat, too.
        let mut terminal = start(&home, &server, &["--resume"]);
        terminal.wait_for("4 messages");
        terminal.wait_for(PROMPT);
        terminal.type_text("\u{1b}[A\r");
        terminal.wait_for("Three.");
        terminal.wait_for(PROMPT);
        terminal.type_text("/quit\r");
        assert_eq!(terminal.end().code, Some(0));
        assert_eq!(sent(&server, 2).last(), Some(&said("user", "```\ncode\n```")));
    }

    #[test]
    fn lines_that_come_at_once_are_taken_in_order() {
        let home = Home::new();
        let server = Server::script(["One.", "Two.", "Three."].map(Answer::text));
        let mut terminal = start(&home, &server, &[]);
        terminal.wait_for(PROMPT);
        terminal.wait_until_raw();
        terminal.type_text("a\nb\nc\n/quit\n");
        for reply in ["One.", "Two.", "Three."] {
            terminal.wait_for(reply);
        }
        assert_eq!(terminal.end().code, Some(0));
        let users: Vec<_> = sent(&server, 2).into_iter().filter(|(role, _)| role == "user").collect();
        assert_eq!(users, [said("user", "a"), said("user", "b"), said("user", "c")]);
    }

    /// Ctrl-D, too, is in its place.
    #[test]
    fn lines_that_are_typed_during_a_reply_are_taken_in_order() {
        let home = Home::new();
        let (go, may_go) = std::sync::mpsc::channel::<()>();
        let may_go = std::sync::Mutex::new(may_go);
        let server = Server::answering(move |nth, _| {
            if nth == 0 {
                may_go.lock().unwrap().recv().unwrap();
            }
            Answer::text("Whole.")
        });
        let mut terminal = start(&home, &server, &["first", "--model", "demo"]);
        server.wait_for_posts(1);
        terminal.type_text("/model\n/system\nlast\n\u{4}");
        terminal.wait_for("last");
        go.send(()).unwrap();
        terminal.wait_for("Whole.");
        terminal.wait_for("demo\r\n");
        terminal.wait_for("there is no system message");
        terminal.wait_for("Whole.");
        assert_eq!(terminal.end().code, Some(0));
        assert_eq!(sent(&server, 1)[2], said("user", "last"));
    }

    #[test]
    fn ctrl_c_ends_a_reply_and_keeps_what_came() {
        let home = Home::new();
        let half = Answer::stream().delta("Half an ans").then(Act::Silence);
        let server = Server::script([half, Answer::text("Whole.")]);
        let mut terminal = start(&home, &server, &["first"]);
        terminal.wait_for("Half an ans");
        terminal.type_text("\u{3}");
        terminal.wait_for("canceled; the text so far is kept");
        terminal.wait_for(PROMPT);
        // With something on the line Ctrl-C takes that away; twice at an empty prompt it leaves.
        terminal.type_text("something\u{3}");
        terminal.wait_for(PROMPT);
        terminal.type_text("second\r");
        terminal.wait_for("Whole.");
        terminal.wait_for(PROMPT);
        terminal.type_text("\u{3}");
        terminal.wait_for("Ctrl-C again");
        terminal.wait_for(PROMPT);
        terminal.type_text("\u{3}");
        assert_eq!(terminal.end().code, Some(0));
        assert_eq!(sent(&server, 1)[1], said("assistant", &format!("Half an ans\n\n{INTERRUPTED}")));
        server.posts().iter().for_each(|post| assert_valid(&post.body));
    }

    #[test]
    fn always_holds_until_the_project_is_another() {
        let home = Home::new();
        let spec = "(deftool :name \"drop\" :description \"Drop it.\" :confirm t)";
        home.project.write("specs/drop.eld", spec);
        home.project.write("scripts/drop.lua", "return function() return 1 end\n");
        let server = Server::answering(|nth, _| {
            if nth % 2 == 0 { Answer::calls(&[("drop", "{}")]) } else { Answer::text("Done.") }
        });
        let mut terminal = start(&home, &server, &["one"]);
        terminal.wait_for("drop without arguments");
        terminal.wait_for("show] ");
        terminal.type_text("always\n");
        terminal.wait_for("Done.");
        terminal.wait_for(PROMPT);
        terminal.type_text("two\r");
        terminal.wait_for("Done.");
        terminal.wait_for(PROMPT);
        assert_eq!(terminal.said().matches("The model wants").count(), 1, "{}", terminal.said());
        let beside = home.project.path("new.lua");
        fs::write(&beside, "return function() return 2 end\n").unwrap();
        fs::rename(beside, home.project.path("scripts/drop.lua")).unwrap();
        terminal.type_text("/reload\r");
        terminal.wait_for("generation 2");
        terminal.wait_for(PROMPT);
        terminal.type_text("three\r");
        terminal.wait_for("drop without arguments");
        terminal.wait_for("show] ");
        terminal.type_text("n not now\n");
        terminal.wait_for("Done.");
        terminal.wait_for(PROMPT);
        terminal.type_text("/quit\r");
        assert_eq!(terminal.end().code, Some(0));
        assert!(server.posts()[5].contents("tool").last().unwrap().contains("not now"));
    }

    /// The terminal is left as it was, whoever ends the chat.
    #[test]
    fn a_chat_that_is_ended_leaves_the_terminal_as_it_was() {
        let home = Home::new();
        let server = Server::script([Answer::text("One.")]);
        let mut terminal = start(&home, &server, &[]);
        terminal.wait_for(PROMPT);
        terminal.wait_until_raw();
        let id = terminal.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let master = terminal.master();
        let ended = terminal.end();
        assert_eq!(ended.code, Some(130), "{ended:?}");
        let now = nix::sys::termios::tcgetattr(&master).unwrap();
        assert!(now.local_flags.contains(nix::sys::termios::LocalFlags::ICANON), "{now:?}");
    }
}
