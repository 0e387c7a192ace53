//! Where text, what is said of it, what scripts log and what moves meet; and readers that stand still.

use super::*;

/// Text that a line is said behind: a turn with a log line and a call, and a turn that ends.
fn interrupted_text() -> (Project, Server) {
    let project = Project::new();
    project.write("scripts/count.lua", "return function(text, times) log.info('counting') return 3 end\n");
    let first = [delta("Let me see. "), call(0, "count", r#"{"text": "abc"}"#), finish("tool_calls")];
    let server = Server::script([Answer::chunks(&first), Answer::text("Three.")]);
    (project, server)
}

#[test]
fn where_both_streams_meet_what_is_said_begins_a_line() {
    let (project, server) = interrupted_text();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = project.command(&["run", "hello", "--endpoint", &server.endpoint()]);
    command.stdin(std::process::Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (4, "Let me see. ", "info: count: counting"), "{said}");
    assert!(lines[2].starts_with("tool   count ") && lines[3] == "Three." && said.ends_with('\n'), "{said}");
    // Elsewhere stdout is the text alone.
    let (project, server) = interrupted_text();
    let ended = run(&project, &server, &[]);
    assert_eq!(ended.stdout, "Let me see. Three.\n");
}

#[test]
fn what_a_script_logs_stands_behind_the_text_before_its_call_however_slowly_that_is_read() {
    let project = Project::new();
    project.write("scripts/count.lua", "return function(text, times) log.info('counting') return 3 end\n");
    let word = "word ".repeat(2_000);
    let mut chunks = vec![delta(&word); 40];
    chunks.extend([call(0, "count", r#"{"text": "abc"}"#), finish("tool_calls")]);
    let server = Server::script([Answer::chunks(&chunks), Answer::text("Three.")]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = project.command(&["run", "hello", "--endpoint", &server.endpoint()]);
    command.stdin(std::process::Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    // The script has run when the second request is there, and the pipe holds no more of the text than a part.
    server.wait_for_posts(2);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let text = word.repeat(40);
    let rest = said.strip_prefix(text.as_str()).unwrap_or_else(|| panic!("{:?}", said.find("info:")));
    let lines: Vec<&str> = rest.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (4, "", "info: count: counting"), "{rest}");
    assert!(lines[2].starts_with("tool   count ") && lines[3] == "Three.", "{rest}");
}

/// Nobody reads, so that the text stands in the pipe and its writer hears nothing.
#[test]
fn ctrl_c_ends_what_writes_to_a_reader_that_stands_still() {
    let word = "word ".repeat(2_000);
    for is_logged in [false, true] {
        let project = Project::new();
        let log = "for line = 1, 500 do log.info(string.rep('x', 1000)) end";
        project.write("scripts/count.lua", format!("return function(text, times) {log} return 3 end\n"));
        let said = if is_logged { call(0, "count", r#"{"text": "abc"}"#) } else { delta(&word.repeat(40)) };
        let end = finish(if is_logged { "tool_calls" } else { "stop" });
        let server = Server::script([Answer::chunks(&[said, end]), Answer::text("Three.")]);
        let endpoint = server.endpoint();
        let mut child = project.spawn(&["run", "hello", "--endpoint", &endpoint]);
        server.wait_for_posts(if is_logged { 2 } else { 1 });
        let mut ended = None;
        for _ in 0..60 {
            interrupt(&child);
            std::thread::sleep(Duration::from_millis(500));
            ended = child.try_wait().unwrap();
            if ended.is_some() {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(ended.and_then(|status| status.code()), Some(130), "logged: {is_logged}");
    }
}

#[test]
fn a_script_logs_in_lines_of_its_own_beside_what_moves() {
    let project = waiting_project("for step = 1, 3 do wait_for(step) log.info('step ' .. step) end");
    let first = [delta("Let me see.\n"), call(0, "count", r#"{"text": "abc"}"#), finish("tool_calls")];
    let server = Server::script([Answer::chunks(&first), Answer::text("Three.")]);
    let endpoint = server.endpoint();
    let mut terminal = Terminal::start(&project, &["run", "hello", "--endpoint", &endpoint], Piped::Nothing);
    for step in 1..=3 {
        terminal.wait_for("count is running");
        project.write(&step.to_string(), "");
        // What moved was taken off its line first.
        terminal.wait_for(&format!("\r\u{1b}[2Kinfo: count: step {step}\r\n"));
    }
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// A project whose `count` does this and can wait for files.
fn waiting_project(body: &str) -> Project {
    let project = Project::empty();
    let count = "(deftool :name \"count\" :description \"Count.\" :allow (:read [\".\"]) :args \
                 ((:name \"text\" :type string :description \"The text.\")))\n";
    project.write("specs/tools.eld", count);
    let wait = "local function wait_for(file) repeat task.wait(0.01) until fs.exists(tostring(file)) end";
    project.write("scripts/count.lua", format!("{wait}\nreturn function(text) {body} return 3 end\n"));
    project
}

#[test]
fn a_tool_that_runs_is_shown_on_a_line_of_its_own() {
    for text in ["Let me look.", "Let me look.\n"] {
        let project = waiting_project("wait_for('shown')");
        let first = [delta(text), call(0, "count", r#"{"text": "abc"}"#), finish("tool_calls")];
        let server = Server::script([Answer::chunks(&first), Answer::text("Three.")]);
        let arguments = ["run", "hello", "--endpoint", &server.endpoint()];
        let mut terminal = Terminal::start(&project, &arguments, Piped::Nothing);
        terminal.wait_for("count is running");
        project.write("shown", "");
        let said = terminal.end().stderr;
        let (before, after) = said.split_once("count is running").unwrap_or_else(|| panic!("{said:?}"));
        assert!(before.contains("Let me look.\r\n") && !before.contains("\n\r\n"), "{said:?}");
        assert!(after.contains("tool   count ") && !after.contains("\n\r\n"), "{said:?}");
    }
}

/// Readers that end a line at more characters than a line feed find one event in each line all the same.
#[test]
fn a_line_of_json_is_one_line_to_every_reader() {
    let said = "a\u{2028}b\u{2029}c\u{85}d";
    let server = Server::script([Answer::text(said)]);
    let ended = Project::new().run(&["run", "hello", "--json", "--endpoint", &server.endpoint()]);
    assert!(!ended.stdout.contains(['\u{2028}', '\u{2029}', '\u{85}']), "{ended:?}");
    assert!(ended.stdout.contains(r"a\u2028b\u2029c\u0085d"), "{ended:?}");
    assert_eq!(ended.finished()["text"], said);
}
