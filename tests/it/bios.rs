//! `:bios`: a file of the user's is the first system message, and what is wrong with it is told before anything is sent.

use crate::support::project::Project;
use crate::support::server::{Answer, Server};

fn project(bios: &str) -> Project {
    Project::with_worker(&format!(r#"(defworker :name "w" :bios "{bios}" :tool-budget 3)"#))
}

#[test]
fn a_bios_file_is_the_first_system_message_with_its_placeholders_filled() {
    let project = project("bios.txt");
    project.write("bios.txt", "I am {worker}.\nLeft: {budget}. {unknown}\n");
    let server = Server::script([Answer::text("hi")]);
    let endpoint = server.endpoint();
    let ended = project.run(&["run", "hello", "--endpoint", &endpoint]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let first = server.posts()[0].body["messages"][0].clone();
    assert_eq!(first["role"], "system");
    assert_eq!(first["content"], "I am w.\nLeft: 3. {unknown}");
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
