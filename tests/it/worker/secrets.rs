//! Redaction of the API key in responses, for any position and any chunks.

use std::sync::Arc;

use deftool_record::{Recorder, Recording, Redaction};
use deftool_test_support::server::{Act, Answer, Server, call, delta, event, finish};
use deftool_worker::{ReplayTransport, SubmitRequest, Worker};
use serde_json::json;

use super::harness::*;

const KEY: &str = "sk-proj-0123456789abcdef";

/// Runs a request and returns all its output: events, outcome, recording, and the debug output of the worker.
async fn everything(answers: impl IntoIterator<Item = Answer>) -> String {
    let server = Server::script(answers);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let recorder = Arc::new(Recorder::create(&path, Redaction::default()).unwrap());
    let worker = Worker::start(config(), echo(), http(&server.endpoint(), Some(KEY)));
    let request = SubmitRequest { recorder: Some(Arc::clone(&recorder)), ..SubmitRequest::prompt("hello") };
    let id = worker.submit(request).unwrap();
    let ended = super::harness::finish(&worker, &id).await;
    recorder.close().unwrap();
    assert_eq!(server.posts()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let events: Vec<String> = ended.events.iter().map(|event| json!(event).to_string()).collect();
    let lines = std::fs::read_to_string(&path).unwrap();
    let recording = Recording::read(&path).unwrap();
    let read = format!("{recording:?}");
    // A replay has no key, and ends like the request.
    let replay = Worker::replay(config(), echo(), Arc::new(ReplayTransport::new(recording, false)));
    let id = replay.submit(SubmitRequest::default()).unwrap();
    let again = super::harness::finish(&replay, &id).await;
    let replayed: Vec<String> = again.events.iter().map(|event| json!(event).to_string()).collect();
    assert_eq!(replayed, events);
    format!("{}\n{lines}\n{read}\n{worker:?}\n{:?}", events.join("\n"), ended.outcome)
}

#[tokio::test]
async fn an_echoed_key_is_redacted() {
    let sentence = format!("Incorrect API key provided: {KEY}. ");
    let echoed = delta(&sentence);
    let frame = event(&echoed);
    let (head, tail) = frame.split_at(frame.find(KEY).unwrap() + 10);
    let arguments = json!({"at": KEY}).to_string();
    let cases = vec![
        ("401", vec![Answer::error(401, &[], &sentence)]),
        ("401, cut", vec![Answer::error(401, &[], &sentence).byte_by_byte()]),
        ("retried 429", vec![Answer::error(429, &[("retry-after", "0")], &sentence)]),
        ("redirect", vec![Answer::whole(302, &[("location", &format!("http://other/v1?key={KEY}"))], "")]),
        ("text", vec![Answer::chunks(&[echoed.clone(), finish("stop")])]),
        ("text, cut between reads", vec![Answer::stream().piece(head).wait_ms(30).piece(tail).done().end()]),
        ("text, byte by byte", vec![Answer::chunks(&[echoed.clone(), finish("stop")]).byte_by_byte()]),
        ("text, then a reset", vec![Answer::stream().chunk(&echoed).then(Act::Reset)]),
        ("an error in the stream", vec![Answer::stream().chunk(&json!({"error": sentence})).end()]),
        ("HTML", vec![Answer::whole(200, &[], &format!("<title>{sentence}</title>"))]),
        ("an empty stream's reason", vec![Answer::stream().end(), Answer::error(400, &[], &sentence)]),
        (
            "a call",
            vec![Answer::chunks(&[call(0, "look", &arguments), finish("stop")]), Answer::text("fine")],
        ),
        ("an exit call", vec![Answer::chunks(&[call(0, "done", &arguments), finish("stop")])]),
        ("an unknown name", vec![Answer::chunks(&[call(0, KEY, "{}"), finish("stop")])]),
    ];
    let checks = cases.into_iter().map(|(name, answers)| async move {
        let left = everything(answers).await;
        assert!(left.contains("[redacted]"), "{name}: the server's words are gone: {left}");
        assert!(!left.contains(KEY), "{name}: {left}");
        assert!(!left.contains(&KEY[4..]), "{name}, in part: {left}");
    });
    futures_util::future::join_all(checks).await;
}

/// Forms of the key in logs and error pages: base64 of the key or of `user:key`, and percent-encoding.
#[tokio::test]
async fn an_encoded_key_is_redacted() {
    let percent = KEY.replace('-', "%2D").replace('a', "%61");
    let lower = KEY.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat();
    let checks = [
        ("base64", "c2stcHJvai0wMTIzNDU2Nzg5YWJjZGVm", "MDEyMzQ1Njc4"),
        ("base64 behind a byte", "OnNrLXByb2otMDEyMzQ1Njc4OWFiY2RlZg==", "AxMjM0NTY3ODk"),
        ("base64 behind two", "dTpzay1wcm9qLTAxMjM0NTY3ODlhYmNkZWY", "wMTIzNDU2Nzg5"),
        ("percent", &percent, "0123456789"),
        ("percent, all of it", &lower, "%30%31%32"),
    ]
    .map(|(name, written, part)| async move {
        let sentence = format!("The header was {written} here.");
        for answer in [
            Answer::error(401, &[], &sentence),
            Answer::error(401, &[], &sentence).byte_by_byte(),
            Answer::chunks(&[delta(&sentence), finish("stop")]).byte_by_byte(),
            Answer::stream().chunk(&json!({"error": sentence})).end(),
        ] {
            let left = everything([answer]).await;
            assert!(left.contains("[redacted]"), "{name}: {left}");
            assert!(!left.contains(part), "{name}: {left}");
        }
    });
    futures_util::future::join_all(checks).await;
}

/// If the connection is lost within the key, no part of it is in events, outcome or recording.
#[tokio::test]
async fn an_interrupted_reply_keeps_no_part_of_the_key() {
    let first = &KEY[..10];
    let frame = event(&delta(KEY));
    let cut = &frame[..frame.find(KEY).unwrap() + 14];
    let so_far = || Answer::stream().delta("so far ");
    let cases = [("in a delta", so_far().piece(cut).then(Act::Reset))];
    let checks = cases.map(|(name, answer)| async move {
        let left = everything([answer]).await;
        assert!(left.contains("so far "), "{name}: the text is lost: {left}");
        assert!(!left.contains("sk-p") && !left.contains("c2stcH"), "{name}: {left}");
    });
    futures_util::future::join_all(checks).await;
    // Text that only starts like the key is kept.
    let left = everything([so_far().delta("a sk").delta("etch").done().end()]).await;
    assert!(left.contains("\"so far a sketch\""), "{left}");
    // A complete reply may end like a prefix of the key.
    let left = everything([so_far().delta(first).chunk(&finish("stop")).done().then(Act::Silence)]).await;
    assert!(left.contains(&format!("\"so far {first}\"")), "{left}");
}

/// A compressed response is decoded even though the request does not allow compression, and then redacted.
#[tokio::test]
async fn a_compressed_body_is_decoded_before_the_key_is_redacted() {
    use std::io::Write;
    let gzip = |body: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(body.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let zlib = |body: &str| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(body.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let stream =
        format!("{}{}data: [DONE]\n\n", event(&delta(&format!("the key {KEY}."))), event(&finish("stop")));
    let whole =
        json!({"choices": [{"message": {"content": format!("the key {KEY}.")}, "finish_reason": "stop"}]});
    let error = json!({"error": {"message": format!("the key {KEY}.")}}).to_string();
    let head = |status, encoding: &str| Answer::head(status, &[("content-encoding", encoding)]);
    let cut = &gzip(&stream)[..60];
    let cases = [
        ("a stream", head(200, "gzip").piece(gzip(&stream)).end()),
        ("a stream, byte by byte", head(200, "gzip").piece(gzip(&stream)).end().byte_by_byte()),
        ("deflate", head(200, "deflate").piece(zlib(&stream)).end().byte_by_byte()),
        ("a whole body", head(200, "gzip").piece(gzip(&whole.to_string())).end()),
        ("an error", head(401, "gzip").piece(gzip(&error)).end()),
        ("a broken stream", head(200, "gzip").piece(cut).end()),
        ("another encoding", head(200, "br").piece("\u{b}\u{2}").end()),
    ];
    let checks = cases.map(|(name, answer)| async move {
        let left = everything([answer]).await;
        let expected = match name {
            "a broken stream" => "connection lost: ",
            "another encoding" => "the body is encoded with `br`",
            _ => "the key [redacted].",
        };
        assert!(left.contains(expected), "{name}: {left}");
        assert!(!left.contains("sk-proj"), "{name}: {left}");
    });
    futures_util::future::join_all(checks).await;
}

/// Escape sequences hide the key in the bytes. The decoded key must not be in events, messages or recordings.
#[tokio::test]
async fn an_escaped_key_in_an_error_is_not_reported() {
    let spell = |text: &str| {
        text.chars().map(|char| format!("\\u{:04x}", u32::from(char))).collect::<Vec<_>>().concat()
    };
    let escaped = spell(KEY);
    let error = |members: &str| format!(r#"{{"error":{{"message":"Incorrect key {members}}}}}"#);
    let said = error(&format!(r#"{escaped}""#));
    let nested = json!({"error": {"message": "upstream", "metadata": {"raw": said}}}).to_string();
    let unparsed = error(&format!(r#"","failed_generation":"{escaped}""#));
    let whole = |status, headers: &'static [_]| Answer::whole(status, headers, &said);
    let frame = |data: &str| format!("data: {data}\n\n");
    let foreign = format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{escaped}"}}}}]}}"#);
    let cases = vec![
        ("400", vec![whole(400, &[])]),
        ("400, byte by byte", vec![whole(400, &[]).byte_by_byte()]),
        ("a provider's", vec![Answer::whole(400, &[], &nested)]),
        ("a call that was not parsed", vec![Answer::whole(400, &[], &unparsed)]),
        ("one that would be retried", vec![whole(429, &[("retry-after", "0")])]),
        (
            "one that would be retried with another variant",
            vec![Answer::whole(400, &[], &said.replace("Incorrect", "stream_options"))],
        ),
        ("in the stream", vec![Answer::stream().piece(frame(&said)).done().end()]),
        ("after text", vec![Answer::stream().delta("so far").piece(frame(&said)).done().end()]),
        ("a call in the stream", vec![Answer::stream().piece(frame(&unparsed)).done().end()]),
        ("JSON at 200", vec![whole(200, &[])]),
        ("a whole reply", vec![Answer::whole(200, &[], &foreign.replace("delta", "message"))]),
        ("an empty stream's reason", vec![Answer::stream().end(), whole(400, &[])]),
    ];
    let checks = cases.into_iter().map(|(name, answers)| async move {
        let left = everything(answers).await;
        assert!(!left.contains(KEY), "{name}: {left}");
        assert!(left.contains("[redacted]"), "{name}: {left}");
    });
    futures_util::future::join_all(checks).await;
}

/// An error body with the escaped key is not recorded: decoding it would reveal the key.
#[tokio::test]
async fn an_error_with_the_escaped_key_is_not_recorded() {
    let escaped = KEY.replace('-', "\\u002d");
    let said = format!(r#"{{"error":{{"message":"Incorrect key {escaped}"}}}}"#);
    let unreported = format!(r#"{{"error":{{"message":"no"}},"debug":[{{"{escaped}":1}}]}}"#);
    for answer in [
        Answer::whole(400, &[], &said),
        Answer::whole(400, &[], &unreported),
        Answer::stream().piece(format!("data: {said}\n\n")).done().end(),
    ] {
        let left = everything([answer]).await;
        assert!(!left.contains("u002d"), "{left}");
    }
}

/// The target of a redirect is normalized before it is shown, which may decode the key.
#[tokio::test]
async fn a_redirect_is_shown_as_an_absolute_url_without_the_key() {
    let hidden = KEY.replace('-', "%2D");
    let broken = KEY.replace("0123", "01\t23");
    for (location, expected) in [
        (String::from("/openai/v1/chat/completions"), "/openai/v1 as the endpoint"),
        (String::from("//u:p@elsewhere.example/v1/chat/completions"), "http://elsewhere.example/v1 as"),
        (format!("https://{hidden}/v1/chat/completions"), "https://[redacted]/v1 as the endpoint"),
        (format!("/{broken}/v1/chat/completions"), "/[redacted]/v1 as the endpoint"),
    ] {
        let server = Server::script([Answer::whole(307, &[("location", location.as_str())], "")]);
        let endpoint = server.endpoint();
        let ended = ask(&Worker::start(config(), echo(), http(&endpoint, Some(KEY)))).await;
        let (.., detail, _) = ended.failed();
        let expected =
            if expected.starts_with('/') { endpoint.replace("/v1", expected) } else { expected.to_owned() };
        assert!(detail.contains(&format!("use {expected}")) && !detail.contains(KEY), "{location}: {detail}");
    }
}

/// The URL has precedence: most servers reject two `Authorization` headers.
#[tokio::test]
async fn a_user_in_the_endpoint_is_sent_instead_of_the_key() {
    for (user, key, expected) in [
        ("user:hunter2@", Some(KEY), "Basic dXNlcjpodW50ZXIy"),
        ("user:hunter2@", None, "Basic dXNlcjpodW50ZXIy"),
        ("user@", Some(KEY), "Basic dXNlcjo="),
        // A key that is not sent is not validated.
        ("user:hunter2@", Some("two words"), "Basic dXNlcjpodW50ZXIy"),
        ("", Some(KEY), "Bearer sk-proj-0123456789abcdef"),
    ] {
        let server = Server::answering_all(|_, request| {
            let is_asked = request.line.starts_with("GET");
            if is_asked { Answer::whole(401, &[], "{}") } else { Answer::text("fine") }
        });
        let endpoint = server.endpoint().replace("http://", &format!("http://{user}"));
        let options = deftool_worker::EndpointOptions {
            endpoint: Some(endpoint),
            key: key.map(str::to_owned),
            ..deftool_worker::EndpointOptions::default()
        };
        let worker = Worker::connect(config(), echo(), options).await.unwrap();
        assert_eq!(ask(&worker).await.text(), "fine");
        let posts = server.posts();
        assert!(posts.iter().any(|post| post.line.starts_with("GET")), "the server was probed");
        for post in posts {
            let sent = post.headers.iter().filter(|(name, _)| name == "authorization");
            let sent: Vec<&str> = sent.map(|(_, value)| value.as_str()).collect();
            assert_eq!(sent, [expected], "{user}: {}", post.line);
        }
    }
}

#[tokio::test]
async fn a_password_in_the_endpoint_is_not_shown() {
    let server = Server::script([Answer::error(404, &[], "nothing here")]);
    let endpoint = server.endpoint().replace("http://", "http://user:hunter2hunter2@");
    let worker = Worker::start(config(), echo(), http(&endpoint, None));
    let ended = ask(&worker).await;
    let (.., detail, _) = ended.failed();
    assert!(detail.contains(&server.endpoint()[7..]) && !detail.contains("hunter2"), "{detail}");
}

#[tokio::test]
async fn a_key_that_is_not_a_valid_header_is_an_error() {
    use deftool_worker::HttpTransport;
    for key in ["two words", "line\nend", "schlüssel"] {
        let made = HttpTransport::new("http://127.0.0.1:1/v1", Some(key.to_owned()), config().timers.connect);
        let error = made.unwrap_err();
        assert!(error.contains("the API key contains") && !error.contains(key), "{error}");
    }
}

#[test]
fn debug_output_does_not_contain_the_key() {
    use deftool_worker::{EndpointOptions, HttpTransport};
    let key = || Some(KEY.to_owned());
    let transport = HttpTransport::new("http://127.0.0.1:1/v1", key(), config().timers.connect).unwrap();
    let options = EndpointOptions { key: key(), ..EndpointOptions::default() };
    let printed = format!("{transport:?} {options:?}");
    assert!(printed.contains("127.0.0.1") && !printed.contains(KEY), "{printed}");
}
