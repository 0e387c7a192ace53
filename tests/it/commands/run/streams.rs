//! Order of text, messages, log lines and spinners; and blocked writes.

use super::*;

/// A reply whose text does not end with a line feed before a log line and a tool line.
fn unfinished_line() -> (Project, Server) {
    let project = Project::new();
    project.write("scripts/count.lua", "return function(text, times) log.info('counting') return 3 end\n");
    let first = [delta("Let me see. "), call(0, "count", r#"{"text": "abc"}"#), finish("tool_calls")];
    let server = Server::script([Answer::chunks(&first), Answer::text("Three.")]);
    (project, server)
}

#[test]
fn messages_start_on_a_new_line_if_both_streams_share_a_pipe() {
    let (project, server) = unfinished_line();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = project.command(&["run", "hello", "--endpoint", &server.endpoint()]);
    command.stdin(std::process::Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{output}");
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (4, "Let me see. ", "info: count: counting"), "{output}");
    assert!(
        lines[2].starts_with("tool   count ") && lines[3] == "Three." && output.ends_with('\n'),
        "{output}"
    );
    // A separate stdout contains only the text.
    let (project, server) = unfinished_line();
    let ended = run(&project, &server, &[]);
    assert_eq!(ended.stdout, "Let me see. Three.\n");
}

#[test]
fn log_lines_follow_the_text_before_their_call_even_with_a_slow_reader() {
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
    // At the second request, the script has run, but the pipe contains only a part of the text.
    server.wait_for_posts(2);
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let text = word.repeat(40);
    let rest = output.strip_prefix(text.as_str()).unwrap_or_else(|| panic!("{:?}", output.find("info:")));
    let lines: Vec<&str> = rest.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (4, "", "info: count: counting"), "{rest}");
    assert!(lines[2].starts_with("tool   count ") && lines[3] == "Three.", "{rest}");
}

/// The pipe is full and has no reader, so the write blocks.
#[test]
fn ctrl_c_ends_a_blocked_write() {
    let word = "word ".repeat(2_000);
    for is_logged in [false, true] {
        let project = Project::new();
        let log = "for line = 1, 500 do log.info(string.rep('x', 1000)) end";
        project.write("scripts/count.lua", format!("return function(text, times) {log} return 3 end\n"));
        let output = if is_logged { call(0, "count", r#"{"text": "abc"}"#) } else { delta(&word.repeat(40)) };
        let end = finish(if is_logged { "tool_calls" } else { "stop" });
        let server = Server::script([Answer::chunks(&[output, end]), Answer::text("Three.")]);
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
fn log_lines_are_printed_on_their_own_lines_beside_a_spinner() {
    let project = waiting_project("for step = 1, 3 do wait_for(step) log.info('step ' .. step) end");
    let first = [delta("Let me see.\n"), call(0, "count", r#"{"text": "abc"}"#), finish("tool_calls")];
    let server = Server::script([Answer::chunks(&first), Answer::text("Three.")]);
    let endpoint = server.endpoint();
    let mut terminal = Terminal::start(&project, &["run", "hello", "--endpoint", &endpoint], Piped::Nothing);
    for step in 1..=3 {
        terminal.wait_for("count is running");
        project.write(&step.to_string(), "");
        // The spinner is cleared first.
        terminal.wait_for(&format!("\r\u{1b}[2Kinfo: count: step {step}\r\n"));
    }
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// A project whose tool `count` runs `body` and can wait for files.
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
fn a_running_tool_is_shown_on_its_own_line() {
    for text in ["Let me look.", "Let me look.\n"] {
        let project = waiting_project("wait_for('shown')");
        let first = [delta(text), call(0, "count", r#"{"text": "abc"}"#), finish("tool_calls")];
        let server = Server::script([Answer::chunks(&first), Answer::text("Three.")]);
        let arguments = ["run", "hello", "--endpoint", &server.endpoint()];
        let mut terminal = Terminal::start(&project, &arguments, Piped::Nothing);
        terminal.wait_for("count is running");
        project.write("shown", "");
        let output = terminal.end().stderr;
        let (before, after) = output.split_once("count is running").unwrap_or_else(|| panic!("{output:?}"));
        assert!(before.contains("Let me look.\r\n") && !before.contains("\n\r\n"), "{output:?}");
        assert!(after.contains("tool   count ") && !after.contains("\n\r\n"), "{output:?}");
    }
}

/// The server stops in the middle of the arguments.
#[test]
fn a_call_that_is_being_received_is_shown_with_its_size() {
    for (text, piped) in
        [("Let me look.", Piped::Nothing), ("Let me look.", Piped::Stdout), ("", Piped::Nothing)]
    {
        let arguments = format!(r#"{{"text": "{}"#, "x".repeat((12 << 10) - 10));
        let first = Answer::stream().delta(text).chunk(&call(0, "count", &arguments));
        let project = Project::new();
        let server = Server::script([first.then(Act::Silence)]);
        let endpoint = server.endpoint();
        let mut terminal = Terminal::start(&project, &["run", "hello", "--endpoint", &endpoint], piped);
        terminal.wait_for("count… 12.0 KiB");
        terminal.type_text("\u{3}");
        let ended = terminal.end();
        assert_eq!(ended.code, Some(130), "{ended:?}");
        let before = ended.stderr.split("count… ").next().unwrap();
        let text = if text.is_empty() { String::new() } else { format!("{text}\r\n") };
        let is_on_its_own_line = before.contains(&text) && !before.contains("\n\r\n");
        assert!(is_on_its_own_line || piped == Piped::Stdout, "{ended:?}");
    }
}

/// Readers with other line ends than line feed still find one event per line.
#[test]
fn json_lines_contain_no_unicode_line_separators() {
    let output = "a\u{2028}b\u{2029}c\u{85}d";
    let server = Server::script([Answer::text(output)]);
    let ended = Project::new().run(&["run", "hello", "--json", "--endpoint", &server.endpoint()]);
    assert!(!ended.stdout.contains(['\u{2028}', '\u{2029}', '\u{85}']), "{ended:?}");
    assert!(ended.stdout.contains(r"a\u2028b\u2029c\u0085d"), "{ended:?}");
    assert_eq!(ended.finished()["text"], output);
}

/// Copies of a long argument are returned to the system after use, so the peak does not add up.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn the_memory_for_a_long_argument_is_bounded() {
    use crate::support::process::peak_memory;

    let peak = |length: usize| {
        let project = Project::new();
        let arguments = format!(r#"{{"text": "{}"}}"#, "x".repeat(length));
        let server = Server::script([Answer::calls(&[("count", &arguments)]), Answer::silent()]);
        let endpoint = server.endpoint();
        let child = project.spawn(&["run", "hello", "--endpoint", &endpoint]);
        server.wait_for_posts(2);
        let peak = peak_memory(child.id()) << 10;
        interrupt(&child);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
        peak
    };
    // Longer than what a Lua state may keep for the next call.
    let length = 12 << 20;
    let grown = peak(length) - peak(1);
    assert!(grown < length as u64 * 7 / 2, "{grown} bytes for an argument of {length}");
}
