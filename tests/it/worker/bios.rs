//! `:bios`: the user's BIOS file is the first system message, and errors in it are reported before anything is sent.

use deftool_test_support::server::{Answer, Server};

use crate::support::project::Project;

fn project(bios: &str) -> Project {
    Project::with_worker(&format!(r#"(defworker :name "w" :bios "{bios}" :tool-budget 3)"#))
}

#[test]
fn a_bios_file_is_the_first_system_message_with_its_placeholders_filled() {
    let project = project("bios.txt");
    project.write("bios.txt", "I am {worker}, in braces {{worker}}.\nLeft: {budget}. {unknown}\n");
    let server = Server::script([Answer::text("hi")]);
    let endpoint = server.endpoint();
    let ended = project.run(&["run", "hello", "--endpoint", &endpoint]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let messages = server.posts()[0].body["messages"].clone();
    let system = |content: &str| serde_json::json!({"role": "system", "content": content});
    assert_eq!(messages[0], system("I am w, in braces {worker}."));
    assert_eq!(messages[1]["content"], "Left: 3. {unknown}\n\nhello", "the changing part is sent last");
}

#[test]
fn a_bios_that_is_off_sends_no_system_message() {
    let project = Project::with_worker(r#"(defworker :name "w" :bios nil)"#);
    let server = Server::script([Answer::text("hi")]);
    let ended = project.run(&["run", "hello", "--endpoint", &server.endpoint()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let messages = server.posts()[0].body["messages"].clone();
    assert_eq!(messages, serde_json::json!([{"role": "user", "content": "hello"}]));
}

#[test]
fn an_unusable_bios_is_a_finding_and_prevents_the_run() {
    for (name, expected) in [("none.txt", "No such file"), ("specs", "not a regular file")] {
        let project = project(name);
        let ended = project.run(&["run", "hello"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("has errors"), "{ended:?}");
        let ended = project.run(&["check", "--format", "concise"]);
        assert!(
            ended.stdout.contains("error[DT320]") && ended.stdout.contains(expected),
            "{name}: {ended:?}"
        );
    }
}

#[test]
fn unknown_placeholders_are_reported_except_in_code() {
    let project = project("bios.txt");
    let code = "{\"tool\": \"x\", \"arguments\": {}} {\"a\":{\"b\":1}} ${HOME} \\emph{it} f{x} {1} {a b} {é} {{city}} {budget}\n";
    project.write("bios.txt", format!("{code}Left: {{bugdet}}.\nIn {{city}}, {{city}} and ${{tyme}}.\n"));
    let ended = project.run(&["check", "--format", "concise"]);
    assert_eq!(
        ended.stdout,
        "specs/worker.eld:1:28: warning[DT321]: bios.txt:2: unknown placeholder `{bugdet}` is sent unchanged\n\
         specs/worker.eld:1:28: warning[DT321]: bios.txt:3: unknown placeholder `{city}` is sent unchanged\n\
         specs/worker.eld:1:28: warning[DT321]: bios.txt:3: unknown placeholder `{tyme}` is sent unchanged\n"
    );
    let ended = project.run(&["check"]);
    assert!(ended.stdout.contains("did you mean `{budget}`?"), "{}", ended.stdout);
    assert!(ended.stdout.contains("to send `{city}`, write `{{city}}`"), "{}", ended.stdout);
    // The number of findings per file is limited.
    project.write("bios.txt", (0..1000).map(|number| format!("{{x{number}}}")).collect::<Vec<_>>().join(" "));
    assert_eq!(project.run(&["check", "--format", "concise"]).stdout.lines().count(), 20);
}

#[cfg(unix)]
#[test]
fn a_bios_link_out_of_the_project_is_reported_with_a_suggestion() {
    let (project, elsewhere) = (project("bios.txt"), Project::empty());
    elsewhere.write("secret", "s");
    std::os::unix::fs::symlink(elsewhere.path("secret"), project.path("bios.txt")).unwrap();
    let ended = project.run(&["check", "--format", "concise"]);
    assert!(ended.stdout.ends_with("/secret; copy the file into the project\n"), "{ended:?}");
}
