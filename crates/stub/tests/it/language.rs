//! Scenario files: the findings for invalid files, and the answers of valid ones.

use std::net::SocketAddr;

use deftool_stub::{Received, Scenario, Stub, read};
use deftool_test_support::cpu::CpuClock;
use serde_json::{Value, json};

use deftool_test_support::client::{Client, ask, exchange, get, hello, post};

fn parse(text: &str) -> Result<Vec<Scenario>, Vec<String>> {
    let open = |name: &str| match name {
        "answer.sse" => Ok(b"data: {\"one\":1}\n\ndata: [DONE]\n\n".to_vec()),
        "answer.json" => Ok(b"{\"whole\":true}".to_vec()),
        _ => Err(String::from("no such file")),
    };
    read("s.eld", text, &open).map_err(|error| error.findings)
}

fn stub(steps: &str) -> Stub {
    let mut scenarios =
        parse(&format!("(defscenario :name \"s\" {steps})")).unwrap_or_else(|f| panic!("{f:#?}"));
    Stub::start(scenarios.remove(0)).unwrap()
}

/// `mistakes.txt` contains invalid files, each with its findings below, separated by empty lines.
#[test]
fn every_mistake_is_reported_with_location_and_suggestion() {
    let is_finding = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    for case in include_str!("../mistakes.txt").trim_end().split("\n\n") {
        let (expected, text): (Vec<&str>, Vec<&str>) = case.lines().partition(is_finding);
        let findings = parse(&text.join("\n")).err().unwrap_or_default();
        let findings: Vec<&str> = findings.iter().map(|line| line.strip_prefix("s.eld:").unwrap()).collect();
        assert_eq!(findings, expected, "{}", text.join("\n"));
    }
}

/// No file makes the reader panic, run for a long time or report too many findings.
#[test]
fn damaged_files_are_reported_without_panic() {
    let whole = "(defscenario :name \"a\" :key \"k\" :models [\"m\"] :server llama-cpp\n \
                 (expect :last-role user :body (:temperature 0.5))\n \
                 (page \"/props\" (:n_ctx 4096))\n \
                 (reply :text \"x\" (call \"f\" (:a [1 (:b t)])) (wait \"5ms\") :usage (:prompt 3 :completion 2)\n  \
                  :when (:turn 2) :repeat 3)\n (error 503 :retry-after 1)\n (raw \"x\" 255)\n (play \"answer.sse\")\n \
                 (misbehave crlf :every \"2ms\")\n (default (reply \"y\")))\n";
    assert_eq!(parse(whole).map(|scenarios| scenarios.len()), Ok(1));
    for cut in (0..whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
        let _ = parse(&whole[..cut]);
        let _ = parse(&whole[cut..]);
        let without = format!("{}{}", &whole[..cut], &whole[whole.len().min(cut + 1)..]);
        let _ = parse(&without);
    }
    let clock = CpuClock::start();
    let many = format!("(defscenario :name \"a\" {})", "(reply :txt 1 (cal 2)) ".repeat(20_000));
    assert_eq!(parse(&many).unwrap_err().len(), 100, "the number of findings is limited");
    let _ = parse(&"(".repeat(500_000));
    let _ = parse(&format!("(defscenario :name \"a\" (reply (call \"f\" {})))", "(:a ".repeat(100_000)));
    assert!(clock.elapsed().as_secs() < 30, "{:?}", clock.elapsed());
}

/// Sends a request without `stream`. Returns the text of the answer.
fn text_of(address: SocketAddr, body: &Value) -> String {
    let (status, answer) = ask(address, body);
    assert_eq!(status, 200, "{answer}");
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

fn request(messages: &[(&str, &str)]) -> Value {
    let messages: Vec<Value> =
        messages.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    json!({"model": "m", "messages": messages})
}

#[test]
fn steps_are_taken_in_order_and_conditional_steps_when_they_match() {
    let stub = stub(
        "(reply \"one\") (reply \"two\" :repeat 2) (reply \"tool\" :when (:last-role tool)) \
         (reply \"sea\" :when (:contains \"sea\") :repeat 1) (default (reply \"rest\"))",
    );
    let (user, tool) = (request(&[("user", "hello")]), request(&[("user", "hello"), ("tool", "{}")]));
    let sea = request(&[("user", "the sea")]);
    let order =
        [(&user, "one"), (&tool, "tool"), (&sea, "sea"), (&sea, "two"), (&tool, "tool"), (&user, "two")];
    for (body, expected) in order {
        assert_eq!(text_of(stub.address(), body), expected);
    }
    for body in [&user, &sea, &user] {
        assert_eq!(text_of(stub.address(), body), "rest");
    }
    assert_eq!(stub.failures(), Vec::<String>::new());
    assert_eq!(stub.requests().len(), 9);
}

#[test]
fn a_request_without_a_step_is_answered_with_an_error_and_is_a_failure() {
    let stub = stub("(reply \"one\")");
    assert_eq!(text_of(stub.address(), &hello(false)), "one");
    let (status, answer) = ask(stub.address(), &hello(false));
    let expected = "scenario `s` has no step left for this request (1 step used); add `(default (reply …))` or \
                    `:repeat`";
    assert_eq!(
        (status, answer["error"]["message"].as_str()),
        (500, Some(format!("stub: {expected}").as_str()))
    );
    assert_eq!(stub.failures(), [expected]);
}

#[test]
fn unmet_expectations_are_reported() {
    let stub = stub(
        "(expect :model \"m\") (reply (expect :last-role tool :body (:temperature 0 :max-tokens 5)) \"fine\")",
    );
    let (status, answer) = ask(stub.address(), &hello(false));
    let expected = "scenario `s`, step 1: expected the last message to have the role `tool`, found `user`; expected \
                    temperature to be `0`, found nothing; expected max_tokens to be `5`, found nothing";
    assert_eq!(
        (status, answer["error"]["message"].as_str()),
        (400, Some(format!("stub: {expected}").as_str()))
    );
    assert_eq!(stub.failures(), [expected]);
}

#[test]
fn the_parts_of_a_reply_keep_their_order() {
    let stub = stub(
        "(reply :reasoning \"Hm.\" \"Let me \" :text \"look.\" (call \"look\" (:at \"sea\" :deep t :n [1 2.5 :null])) \
          (call \"raw\" \"{at: \" :id \"x1\") :finish length :usage (:prompt 3 :completion 2) :repeat t)",
    );
    let (_, answer) = ask(stub.address(), &hello(false));
    let choice = &answer["choices"][0];
    let expected = json!({
        "role": "assistant", "content": "Let me look.", "reasoning_content": "Hm.",
        "tool_calls": [
            {"id": "call00000", "type": "function",
             "function": {"name": "look", "arguments": "{\"at\":\"sea\",\"deep\":true,\"n\":[1,2.5,null]}"}},
            {"id": "x1", "type": "function", "function": {"name": "raw", "arguments": "{at: "}},
        ],
    });
    assert_eq!((&choice["message"], &choice["finish_reason"]), (&expected, &json!("length")));
    assert_eq!(answer["usage"], json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}));

    let (_, stream) = ask(stub.address(), &hello(true));
    let stream = stream.as_str().unwrap();
    let mut last = 0;
    for part in ["\"Hm.\"", "\"Let \"", "\"look.\"", "call00000", "x1", "length", "\"usage\"", "data: [DONE]"]
    {
        let at = stream.find(part).unwrap_or_else(|| panic!("no {part} in {stream}"));
        assert!(at > last, "{part} is too early in {stream}");
        last = at;
    }
}

#[test]
fn error_play_and_raw_answers_are_sent_unchanged() {
    let stub = stub(
        "(error 503 :message \"Loading model\" :code \"loading\" :type \"unavailable\" :retry-after 1.5 :headers (:x-a \"b\")) \
         (play \"answer.sse\") (play \"answer.json\" :status 202) (raw \"HTTP/1.1 200 OK\\r\\n\\r\\n\" 104 105)",
    );
    let mut client = Client::connect(stub.address());
    client.send(post(&hello(true)));
    let (text, _) = client.read_to_end();
    assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{text}");
    assert!(text.contains("\r\nretry-after: 1.5\r\n") && text.contains("\r\nx-a: b\r\n"), "{text}");
    let error = json!({"error": {"code": "loading", "type": "unavailable", "message": "Loading model"}});
    assert!(text.contains(&error.to_string()), "{text}");

    let (status, body) = ask(stub.address(), &hello(true));
    assert_eq!((status, body), (200, json!("data: {\"one\":1}\n\ndata: [DONE]\n\n")));
    assert_eq!(ask(stub.address(), &hello(true)), (202, json!({"whole": true})));
    let mut client = Client::connect(stub.address());
    client.send(post(&hello(true)));
    assert_eq!(client.read_to_end().0, "HTTP/1.1 200 OK\r\n\r\nhi");
}

#[test]
fn pages_models_and_health_are_served_with_a_key() {
    let stub = stub(
        ":key \"secret\" :models [\"one\" \"two\"] :server llama-cpp (page \"/v1/thing\" (:a 1)) (page \"/word\" \"hello\" :status 202)",
    );
    let with_key = |path: &str| {
        let head =
            format!("GET {path} HTTP/1.1\r\nauthorization: Bearer secret\r\nconnection: close\r\n\r\n");
        exchange(stub.address(), &head)
    };
    assert_eq!(get(stub.address(), "/health"), (200, json!({"status": "ok"})), "needs no key");
    assert_eq!(get(stub.address(), "/v1/models").0, 401);
    assert_eq!(ask(stub.address(), &hello(false)).0, 401);
    let (status, models) = with_key("/v1/models?x=y");
    assert_eq!((status, &models["data"][1]["id"]), (200, &json!("two")));
    assert_eq!(with_key("/v1/thing"), (200, json!({"a": 1})));
    assert_eq!(with_key("/word"), (202, json!("hello")));
    assert_eq!(with_key("/props").1["total_slots"], 1);
    assert_eq!(with_key("/slots").1[0]["is_processing"], false);
    let (status, error) = with_key("/nowhere");
    assert_eq!((status, error["error"]["code"].as_u64()), (404, Some(404)));
    assert_eq!(stub.failures(), Vec::<String>::new(), "unknown paths are not failures");
}

#[test]
fn without_a_scenario_the_model_name_selects_the_fault() {
    let stub = Stub::start(Scenario::without_steps()).unwrap();
    let answer = |model: &str| {
        ask(stub.address(), &json!({"model": model, "messages": [{"role": "user", "content": "hello"}]}))
    };
    assert_eq!(answer("any").0, 200);
    assert_eq!(answer("http-502-html").0, 502);
    assert_eq!(answer("retry-after-ms").0, 429);
    let (_, models) = get(stub.address(), "/v1/models");
    assert_eq!(models["data"][0]["id"], "stub", "the first model has no fault");
    assert!(models["data"].as_array().unwrap().iter().any(|model| model["id"] == "gzip"));
}

#[test]
fn several_faults_can_be_added_to_a_scripted_reply() {
    let stub = stub("(reply \"Hi. \" (call \"f\" (:a 1)) :misbehave [index-missing crlf])");
    let (_, stream) = ask(stub.address(), &hello(true));
    let stream = stream.as_str().unwrap();
    assert!(stream.contains("\"Hi. \"") && stream.contains("\"tool_calls\""), "{stream}");
    assert!(
        !stream.contains("\"tool_calls\":[{\"index\"") && stream.ends_with("data: [DONE]\r\n\r\n"),
        "{stream}"
    );
}

#[test]
fn received_requests_are_recorded() {
    let stub = stub("(reply \"x\")");
    ask(stub.address(), &hello(false));
    let requests: Vec<Received> = stub.requests();
    let [request] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!((request.method(), request.path()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("host"), Some("localhost"));
    assert_eq!(request.contents("user"), ["hello"]);
}
