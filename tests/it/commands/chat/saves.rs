//! File changes during a chat.

use super::*;

#[test]
fn a_reload_is_reported() {
    let home = Home::new();
    let server = Server::script([Answer::text("One.")]);
    let mut child = home.command(&server, &[]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    stdin.write_all(b"/reload\n").unwrap();
    assert!(errors.next().unwrap().unwrap().starts_with("no changes; generation 1"));
    let beside = home.project.path("new.eld");
    fs::write(&beside, "(deftool :name \"fresh\" :description \"Do it.\")\n").unwrap();
    home.project.write("scripts/fresh.lua", "return function() return 1 end\n");
    fs::rename(beside, home.project.path("specs/fresh.eld")).unwrap();
    stdin.write_all(b"/reload\n").unwrap();
    let line = errors.next().unwrap().unwrap();
    assert!(line.starts_with("generation ") && line.contains("fresh"), "{line}");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A chat whose stderr is read line by line.
struct Piped {
    child: std::process::Child,
    stdin: std::process::ChildStdin,
    stderr: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Piped {
    fn start(home: &Home, server: &Server) -> Self {
        let mut child = home.command(server, &["--model", "demo"]).spawn().unwrap();
        let (stdin, stderr) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
        Self { child, stdin, stderr: BufReader::new(stderr).lines() }
    }

    /// Sends a line and returns the output on stderr. A `/model` command marks its end.
    fn send(&mut self, line: &str) -> String {
        self.stdin.write_all(format!("{line}\n/model\n").as_bytes()).unwrap();
        let lines = self.stderr.by_ref().map(Result::unwrap).take_while(|line| line != "demo");
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns the output on stderr up to `part`.
    fn wait_for(&mut self, part: &str) -> String {
        let started = std::time::Instant::now();
        let mut output = String::new();
        while !output.contains(part) {
            assert!(started.elapsed() < deftool_test_support::HANG_LIMIT, "{part} is not in {output}");
            output.push_str(&self.send(""));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        output
    }
}

/// A change is reported once, by `/reload` or by the watcher.
#[test]
fn changes_are_reported_once() {
    let home = Home::new();
    let server = Server::script([Answer::text("x")]);
    let mut chat = Piped::start(&home, &server);
    assert_eq!(chat.send("/reload"), "no changes; generation 1");

    let script = fs::read_to_string(home.project.path("scripts/count.lua")).unwrap();
    home.project.write("scripts/count.lua", "return function(text, times) broken\n");
    let output = chat.wait_for("broken, last good version kept: count");
    assert_eq!(output.matches("DT402").count(), 1, "{output}");
    let output = chat.send("/reload");
    assert!(output.starts_with("no changes; generation "), "{output}");
    assert!(output.contains("scripts/count.lua:") && output.contains("DT402"), "{output}");
    let output = chat.send("/tools");
    assert!(output.contains("count (broken now, last good version kept): Count"), "{output}");
    assert!(output.contains("DT402"), "{output}");
    home.project.write("scripts/count.lua", script);
    chat.wait_for("works again: count");

    fs::remove_file(home.project.path("scripts/count.lua")).unwrap();
    let specs = fs::read_to_string(home.project.path("specs/tools.eld")).unwrap();
    let start = specs.find("(deftool :name \"broken\"").unwrap();
    home.project.write("specs/tools.eld", &specs[start..]);
    chat.wait_for("removed count");
    assert!(!chat.send("/tools").contains("count"));

    let specs = specs[start..].replace(":args ()", ":args () :tiemout 3");
    home.project.write("specs/tools.eld", specs);
    let output = chat.wait_for("unknown key `:tiemout`");
    assert!(output.contains("no tool changed"), "{output}");

    fs::rename(home.project.path("specs"), home.project.path("elsewhere")).unwrap();
    chat.wait_for("; the tools are unchanged");
    assert!(chat.send("/reload").contains("; the tools are unchanged"));
    fs::rename(home.project.path("elsewhere"), home.project.path("specs")).unwrap();
    chat.wait_for("generation ");
    drop(chat.stdin);
    assert_eq!(chat.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_tool_that_is_broken_at_start_is_reported_as_omitted() {
    let home = Home::new();
    home.project.write("scripts/count.lua", "return function(text, times) broken\n");
    let server = Server::script([Answer::text("x")]);
    let mut chat = Piped::start(&home, &server);
    chat.send("");
    for line in ["/tools", "/reload"] {
        let output = chat.send(line);
        assert!(output.contains("tool `count` is omitted\n"), "{line}: {output}");
        assert_eq!(output.matches("DT402").count(), 1, "{line}: {output}");
    }
    drop(chat.stdin);
    chat.child.wait().unwrap();
}
