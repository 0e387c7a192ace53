//! What is saved while a chat runs.

use super::*;

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
        assert!(told.contains("count is left out\n"), "{line}: {told}");
        assert_eq!(told.matches("DT402").count(), 1, "{line}: {told}");
    }
    drop(chat.stdin);
    chat.child.wait().unwrap();
}
