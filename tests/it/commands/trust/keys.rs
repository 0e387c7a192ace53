//! API keys: a spec cannot send the user's key to an arbitrary server without trust.

use super::*;

/// For a URL with user and password no key is sent, so no trust is required.
#[test]
fn a_key_that_is_not_sent_requires_no_trust() {
    let home = Home::of(&[]);
    let server = Server::answering(|_, _| Answer::text("hi"));
    let endpoint = server.endpoint().replace("//", "//user:hunter2@");
    let worker = format!(
        "(defworker :name \"w\" :endpoint \"{endpoint}\" :api-key-env \"SOME_TOKEN\" :model \"m\")\n"
    );
    home.project.write("specs/w.eld", worker);
    let ended = Ended::of(home.command(&["run", "hello"]).env("SOME_TOKEN", "s3cret").output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "hi\n"), "{ended:?}");
    assert_eq!(server.posts()[0].header("authorization"), Some("Basic dXNlcjpodW50ZXIy"));
}

/// A spec that names the server or the key variable decides where the user's key is sent, so it requires trust.
#[test]
fn a_key_is_sent_to_a_server_in_a_spec_only_with_trust() {
    let home = Home::of(&[]);
    let server = Server::answering_all(|_, request| {
        let models = r#"{"object": "list", "data": [{"id": "m"}]}"#;
        let is_asked = request.line.starts_with("GET");
        if is_asked { Answer::whole(200, &[], models) } else { Answer::text("hi") }
    });
    let endpoint = server.endpoint();
    let host = endpoint.trim_start_matches("http://").trim_end_matches("/v1");
    let worker = format!(
        "(defworker :name \"w\" :endpoint \"{endpoint}\" :api-key-env \"SOME_TOKEN\" :model \"m\")\n"
    );
    home.project.write("specs/w.eld", worker);
    let with_key = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        Ended::of(command.env("SOME_TOKEN", "s3cret").env("OPENAI_API_KEY", "0ther").output().unwrap())
    };
    let sent = || {
        server
            .posts()
            .iter()
            .filter_map(|request| request.header("authorization").map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let request = format!("worker `w` requires :net [\"{host}\"] :env [\"SOME_TOKEN\"] (specs/w.eld:1:");
    let ended = with_key(&["run", "hello"]);
    assert_eq!((ended.code, ended.stderr.contains(&request)), (Some(2), true), "{ended:?}");
    assert!(server.posts().is_empty());
    let ended = with_key(&["doctor"]);
    assert!(ended.stdout.contains("SOME_TOKEN is set but was not sent"), "{ended:?}");
    assert!(ended.stdout.contains(&format!("not granted: {request}")), "{ended:?}");
    // Another server still requires trust for a variable named by the spec. The default variable does not.
    assert_eq!(with_key(&["run", "hello", "--endpoint", &endpoint]).code, Some(2));
    assert_eq!(home.run(&["run", "hello"]).code, Some(0), "without a key no trust is required");
    assert_eq!(sent(), [""; 0]);
    home.project.write("specs/w.eld", "(defworker :name \"w\" :model \"m\")\n");
    assert_eq!(with_key(&["run", "hello", "--endpoint", &endpoint]).code, Some(0));
    assert_eq!(sent().last().map(String::as_str), Some("Bearer 0ther"));
    home.project
        .write("specs/w.eld", format!("(defworker :name \"w\" :endpoint \"{endpoint}\" :model \"m\")\n"));
    assert_eq!(
        (with_key(&["run", "hello"]).code, with_key(&["run", "hello", "--trust"]).code),
        (Some(2), Some(0))
    );
    let granted = home.run(&["trust", "grant"]);
    assert!(granted.stdout.contains(":env [\"OPENAI_API_KEY\"]"), "{granted:?}");
    assert_eq!(with_key(&["run", "hello"]).code, Some(0));
    let ended = with_key(&["doctor"]);
    assert!(
        ended.stdout.contains("OPENAI_API_KEY is set\n") && ended.stdout.contains("1 worker may send a key"),
        "{ended:?}"
    );
}
