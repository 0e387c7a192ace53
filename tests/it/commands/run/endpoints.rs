//! The model server: where its URL comes from, and what is reported if it is not one.

use super::*;

/// A web server and a TLS error.
#[test]
fn an_endpoint_that_is_not_a_model_server_is_explained() {
    let project = Project::new();
    let page = "<!DOCTYPE HTML>\n<html><head><title>Error response</title></head></html>";
    let web = Server::answering(move |_, _| Answer::whole(501, &[("content-type", "text/html")], page));
    let json = Server::answering(|_, _| Answer::error(501, &[], "not made yet"));
    for (endpoint, expected) in [
        (
            web.endpoint(),
            "HTTP 501: Error response; a model server does not answer with a web page: check the endpoint, which usually ends \
             in `/v1`\n",
        ),
        (json.endpoint(), "HTTP 501: not made yet; check the server's log\n"),
    ] {
        let ended = project.run(&["run", "hello", "--model", "m", "--endpoint", &endpoint]);
        assert!(ended.code == Some(1) && ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
    // A TLS handshake is an invalid request to a plain HTTP server.
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let secure = format!("https://{}/v1", plain.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in plain.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let ended = project.run(&["run", "hello", "--model", "m", "--endpoint", &secure]);
    // Without CA certificates, TLS is not available.
    let expected = [
        "; use http:// if the server has no TLS; otherwise ",
        "; are the system's CA certificates installed?",
    ];
    assert!(expected.iter().any(|expected| ended.stderr.contains(expected)), "{ended:?}");
}

/// Skipped if a port that is searched for servers is in use.
#[test]
fn a_missing_endpoint_exits_with_2_and_explains_the_options() {
    let is_free = |port: u16| std::net::TcpStream::connect(("127.0.0.1", port)).is_err();
    if !is_free(8080) || !is_free(11434) {
        return;
    }
    let project = Project::new();
    let mut command = project.command(&["run", "hello"]);
    let ended = Ended::of(command.env("OPENAI_BASE_URL", "").output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    for way in ["--endpoint", "OPENAI_BASE_URL", ":endpoint", "8080", "11434"] {
        assert!(ended.stderr.contains(way), "{way}: {}", ended.stderr);
    }
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn the_endpoint_comes_from_the_option_then_the_spec_then_the_environment() {
    let [first, second, third] = ["one", "two", "three"].map(|text| Server::script([Answer::text(text)]));
    let worker = format!(r#"(defworker :name "w" :endpoint "{}" :model "named")"#, second.endpoint());
    let (with, without) = (Project::with_worker(&worker), Project::new());
    let ask = |project: &Project, arguments: &[&str]| {
        let mut command = project.command(&[&["run", "hi"], arguments].concat());
        Ended::of(command.env("OPENAI_BASE_URL", third.endpoint()).output().unwrap()).stdout
    };
    assert_eq!(ask(&with, &["--endpoint", &first.endpoint(), "--model", "mine"]), "one\n");
    assert_eq!(ask(&with, &[]), "two\n");
    assert_eq!(ask(&without, &[]), "three\n");
    let models = [&first, &second, &third].map(|server| server.posts()[0].body["model"].clone());
    assert_eq!(models, ["mine", "named", "scripted"]);
}

#[test]
fn the_key_is_read_from_the_configured_variable_and_never_printed() {
    let key = "sk-0123456789abcdef";
    let project = Project::with_worker(r#"(defworker :name "w" :api-key-env "MY_KEY")"#);
    let server = Server::script([Answer::error(401, &[], &format!("bad key {key}")).byte_by_byte()]);
    for json in [&["--json"][..], &[]] {
        let endpoint = server.endpoint();
        let mut command =
            project.command(&[&["run", "hello", "--trust", "--endpoint", &endpoint], json].concat());
        command.env("MY_KEY", key).env("OPENAI_API_KEY", "sk-another-that-is-not-sent");
        let ended = Ended::of(command.output().unwrap());
        assert_eq!(ended.code, Some(1));
        assert!(!format!("{ended:?}").contains("0123456789"), "{ended:?}");
        assert!(format!("{ended:?}").contains("bad key [redacted]"), "{ended:?}");
    }
    let bearer = format!("Bearer {key}");
    assert!(server.posts().iter().all(|post| post.header("authorization") == Some(&bearer)));
}
