//! The workers of the user.

use super::*;

/// Submits a prompt to the worker `mine`, and returns the system message that its server received.
fn system_message(client: &mut Client, server: &Server) -> String {
    let request = client.request("submit", json!({"prompt": "Hi.", "worker": "mine"}));
    client.request("result", request);
    server.posts().last().unwrap().body["messages"][0]["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_worker_of_the_project_and_one_of_the_user_with_its_name_are_two() {
    let server = Server::script(["a", "b", "c"].map(Answer::text));
    let (user, project) = (Project::empty(), Project::empty());
    for (folder, origin) in [(&user, "user"), (&project, "project")] {
        folder
            .write("specs/worker.eld", format!("(defworker :name \"mine\" :system \"From the {origin}.\")"));
    }
    let mut command = project.command(&["rpc", "--endpoint", &server.endpoint()]);
    command.env("DEFTOOL_CONFIG_DIR", user.path(""));
    let mut client = Client::of(command);
    assert!(system_message(&mut client, &server).contains("From the project."));
    fs::remove_file(project.path("specs/worker.eld")).unwrap();
    client.notification("reloaded");
    assert!(system_message(&mut client, &server).contains("From the user."));
    project.write("specs/worker.eld", "(defworker :name \"mine\" :system \"Again.\")");
    client.notification("reloaded");
    assert!(system_message(&mut client, &server).contains("From the project."));
    client.shut_down();
}
