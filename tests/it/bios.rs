//! `:bios`: a file of the user's is the first system message, and what is wrong with it is told before anything is sent.

use crate::support::project::Project;
use crate::support::server::{Answer, Server};

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
    assert_eq!(messages[2], system("Left: 3. {unknown}"), "what changes is sent last");
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
fn a_bios_that_cannot_be_had_stops_the_run_and_is_a_finding() {
    for (name, told) in
        [("none.txt", "No such file"), ("../out.txt", "inside of the project"), ("specs", "no regular file")]
    {
        let project = project(name);
        let ended = project.run(&["run", "hello"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("has errors"), "{ended:?}");
        let ended = project.run(&["check", "--format", "concise"]);
        assert!(ended.stdout.contains("error[DT320]") && ended.stdout.contains(told), "{name}: {ended:?}");
    }
}

#[test]
fn words_in_braces_that_are_no_placeholders_are_told_and_code_is_not() {
    let project = project("bios.txt");
    let code = "{\"tool\": \"x\", \"arguments\": {}} {\"a\":{\"b\":1}} ${HOME} \\emph{it} f{x} {1} {a b} {é} {{city}} {budget}\n";
    project.write("bios.txt", format!("{code}Left: {{bugdet}}.\nIn {{city}}, {{city}} and ${{tyme}}.\n"));
    let ended = project.run(&["check", "--format", "concise"]);
    assert_eq!(
        ended.stdout,
        "specs/worker.eld:1:28: warning[DT321]: bios.txt:2: `{bugdet}` is no placeholder and is sent as it is\n\
         specs/worker.eld:1:28: warning[DT321]: bios.txt:3: `{city}` is no placeholder and is sent as it is\n\
         specs/worker.eld:1:28: warning[DT321]: bios.txt:3: `{tyme}` is no placeholder and is sent as it is\n"
    );
    let ended = project.run(&["check"]);
    assert!(ended.stdout.contains("did you mean `{budget}`?"), "{}", ended.stdout);
    assert!(ended.stdout.contains("to send `{city}`, write `{{city}}`"), "{}", ended.stdout);
    // A file that is full of them is told of in moderation.
    project.write("bios.txt", (0..1000).map(|number| format!("{{x{number}}}")).collect::<Vec<_>>().join(" "));
    assert_eq!(project.run(&["check", "--format", "concise"]).stdout.lines().count(), 20);
}

#[cfg(unix)]
#[test]
fn a_bios_that_leads_out_of_the_project_is_told_with_what_helps() {
    let (project, elsewhere) = (project("bios.txt"), Project::empty());
    elsewhere.write("secret", "s");
    std::os::unix::fs::symlink(elsewhere.path("secret"), project.path("bios.txt")).unwrap();
    let ended = project.run(&["check", "--format", "concise"]);
    assert!(ended.stdout.ends_with("/secret; put a copy into the project\n"), "{ended:?}");
}
