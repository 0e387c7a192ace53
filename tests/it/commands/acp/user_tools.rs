//! The tools and workers of the user in sessions.

use deftool_test_support::server::Texts as _;

use super::*;

/// Returns the names of the tools of each request.
fn offered(server: &Server) -> Vec<Vec<String>> {
    let posts = server.posts();
    let tools = posts.iter().map(|post| post.body["tools"].as_array().cloned().unwrap_or_default());
    let name = |tool: Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.map(|tools| tools.into_iter().map(name).collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_offer_the_tools_of_the_user_outside_of_projects_or_on_request() {
    let server = Server::script(["a", "b", "c"].map(Answer::text));
    let (user, project, outside) = (Project::empty(), Project::empty(), Project::empty());
    for (project, name) in [(&user, "mine"), (&project, "theirs")] {
        let spec = format!("(deftool :name \"{name}\" :description \"d\" :allow (:env [\"A\"]))");
        project.write("specs/tools.eld", spec);
        project.write(&format!("scripts/{name}.lua"), "return function() return 1 end\n");
    }
    for (folder, arguments) in [
        (&outside, vec!["acp"]),
        (&project, vec!["acp", "--trust"]),
        (&project, vec!["acp", "--trust", "--user-tools"]),
    ] {
        let mut command = project.command(&arguments);
        command.args(["--endpoint", &server.endpoint()]);
        command.env("DEFTOOL_CONFIG_DIR", user.path(""));
        connect_to(command, async |connection, seen| {
            let session = new_session(connection, folder.path("")).await?;
            assert!(prompt(connection, seen, &session, "Hi.").await.ends_with("stop: EndTurn\n"));
            Ok(())
        })
        .await;
    }
    assert_eq!(offered(&server), [vec!["mine"], vec!["theirs"], vec!["theirs", "mine"]]);
}

/// A tool with `:base project` works in the folder of the session.
#[tokio::test(flavor = "multi_thread")]
async fn tools_of_the_user_work_in_the_folder_of_the_session() {
    let (user, outside) = (Project::empty(), Project::empty());
    let spec = "(deftool :name \"look\" :description \"d\" :base project :allow (:read [\".\"]))";
    user.write("specs/tools.eld", spec);
    user.write("scripts/look.lua", "return function() return fs.read(\"here.txt\") end\n");
    outside.write("here.txt", "outside");
    let server = Server::script([Answer::calls(&[("look", "{}")]), Answer::text("Done.")]);
    let mut command = user.command(&["acp"]);
    command.args(["--endpoint", &server.endpoint()]).env("DEFTOOL_CONFIG_DIR", user.path(""));
    connect_to(command, async |connection, seen| {
        let session = new_session(connection, outside.path("")).await?;
        assert!(prompt(connection, seen, &session, "Hi.").await.ends_with("stop: EndTurn\n"));
        Ok(())
    })
    .await;
    assert_eq!(server.posts()[1].texts("tool"), ["\"outside\""]);
}
