//! Scenario files: what is wrong in them, and what is answered by those that are right.

use std::net::SocketAddr;
use std::time::Instant;

use deftool::serve::stub::{Received, Scenario, Stub, read};
use serde_json::{Value, json};

use super::client::{Client, ask, exchange, get, hello, post};

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

/// A file, and what is told of it.
const MISTAKES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "1:1: error: there is no scenario; write `(defscenario :name \"weather\" (reply :text \"Hello\"))`",
        ],
    ),
    ("(defscenari :name \"a\")", &["1:2: error: unknown form `defscenari`; did you mean `defscenario`?"]),
    (
        "(deftool :name \"a\")",
        &[
            "1:2: error: `deftool` is a spec, which `deftool check` reads and the agent is given; a file for the stub \
             holds scenarios: write `(defscenario :name \"weather\" (reply :text \"Hello\"))`",
        ],
    ),
    (
        "these are words\n(defscenario :name \"a\")",
        &["1:1: error: expected a scenario such as `(defscenario :name \"weather\" …)`, found a symbol"],
    ),
    ("(defscenario (reply))", &["1:1: error: a scenario has no :name"]),
    (
        "(defscenario :name \"a\")\n(defscenario :name \"a\")",
        &["2:1: error: there is a scenario `a` already"],
    ),
    (
        "(defscenario :name \"a\" :modles [\"x\"])",
        &["1:24: error: unknown key of a scenario `:modles`; did you mean `:models`?"],
    ),
    (
        "(defscenario :name \"a\"\n (replay :text \"x\"))",
        &["2:3: error: unknown form of a scenario `replay`; did you mean `reply`?"],
    ),
    (
        "(defscenario :name \"a\" (reply :txt \"x\"))",
        &["1:31: error: unknown key of a reply `:txt`; did you mean `:text`?"],
    ),
    ("(defscenario :name \"a\" (reply :text 5))", &["1:37: error: :text takes a string, found an integer"]),
    (
        "(defscenario :name \"a\" (reply :then rset))",
        &["1:37: error: unknown word for :then `rset`; did you mean `reset`?"],
    ),
    (
        "(defscenario :name \"a\" (reply :every 20))",
        &["1:38: error: :every takes a duration such as \"50ms\", found an integer"],
    ),
    ("(defscenario :name \"a\" (reply :text))", &["1:31: error: `:text` has no value"]),
    ("(defscenario :name \"a\" (reply :chunk 2 :chunk 3))", &["1:40: error: `:chunk` is there twice"]),
    (
        "(defscenario :name \"a\" (reply (call)))",
        &["1:32: error: a call has no name; write `(call \"look\" (:at \"sea\"))`"],
    ),
    (
        "(defscenario :name \"a\" (reply (call \"f\" (at \"sea\"))))",
        &["1:41: error: a call takes arguments such as `(:at \"sea\")`, or their text"],
    ),
    (
        "(defscenario :name \"a\" (misbehave index-mising))",
        &["1:35: error: unknown misbehaviour `index-mising`; did you mean `index-missing`?"],
    ),
    (
        "(defscenario :name \"a\" (misbehave gzip redirect))",
        &["1:40: error: `redirect` takes the whole answer, as another before it does"],
    ),
    (
        "(defscenario :name \"a\" (reply :when (:last-roll tool)))",
        &["1:38: error: unknown condition `:last-roll`; did you mean `:last-role`?"],
    ),
    (
        "(defscenario :name \"a\" (reply :when (:last-role tol)))",
        &["1:49: error: unknown word for :last-role `tol`; did you mean `tool`?"],
    ),
    (
        "(defscenario :name \"a\" (error :message \"x\"))",
        &["1:25: error: an error has no status; write `(error 503 :message \"Loading model\")`"],
    ),
    ("(defscenario :name \"a\" (error 5))", &["1:31: error: an error takes a status such as 503"]),
    (
        "(defscenario :name \"a\" (play \"gone.sse\"))",
        &["1:30: error: gone.sse cannot be read: no such file"],
    ),
    (
        "(defscenario :name \"a\" (raw \"x\" 256))",
        &["1:33: error: raw takes strings, and bytes as numbers from 0 to 255"],
    ),
    (
        "(defscenario :name \"a\" (reply :headers (:x-a \"b\r\nc\")))",
        &["1:41: error: `:x-a` and its value are no header"],
    ),
    (
        "(defscenario :name \"a\" (default :text \"x\"))",
        &["1:33: error: expected a step such as `(reply :text \"Hello\")`, found `:text`"],
    ),
    ("(defscenario :name \"a\" (reply \"x\")", &["1:1: error: `(` is never closed"]),
    (
        "(defscenario :name \"a\" (reply :whn (:turn 1)) (reply :repeta 3 :text \"x\") (error 503 :whn (:turn 1)))",
        &[
            "1:31: error: unknown key of a reply `:whn`; did you mean `:when`?",
            "1:54: error: unknown key of a reply `:repeta`; did you mean `:repeat`?",
            "1:86: error: unknown key of an error `:whn`; did you mean `:when`?",
        ],
    ),
    (
        "(defscenario :name \"a\" (reply :zzzzzz 1) (play \"answer.sse\" :zzzzzz 1) (raw :zzzzzz 1))",
        &[
            "1:31: error: unknown key of a reply `:zzzzzz`; there are :text, :reasoning, :tokens, :finish, :usage, \
             :chunk, :every, :delay, :then, :misbehave, :headers, :when, :repeat",
            "1:61: error: unknown key of play `:zzzzzz`; there are :status, :type, :every, :then, :when, :repeat",
            "1:77: error: unknown key of raw `:zzzzzz`; there are :then, :when, :repeat",
        ],
    ),
    (
        "(defscenario :name \"a\" (reply :text ,x))",
        &["1:37: error: a backquote or comma has no constant meaning here"],
    ),
];

#[test]
fn every_mistake_is_told_with_its_place_and_what_was_meant() {
    let mut wrong = Vec::new();
    for (text, expected) in MISTAKES {
        let findings = parse(text).err().unwrap_or_default();
        let expected: Vec<String> = expected.iter().map(|finding| format!("s.eld:{finding}")).collect();
        if findings != expected {
            wrong.push(format!("{text}\n  expected {expected:#?}\n  found    {findings:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Nothing that a file holds makes reading it panic, slow or long-winded.
#[test]
fn damaged_files_are_told_and_nothing_more() {
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
    let started = Instant::now();
    let many = format!("(defscenario :name \"a\" {})", "(reply :txt 1 (cal 2)) ".repeat(20_000));
    assert_eq!(parse(&many).unwrap_err().len(), 100, "as many as anyone reads");
    let _ = parse(&"(".repeat(500_000));
    let _ = parse(&format!("(defscenario :name \"a\" (reply (call \"f\" {})))", "(:a ".repeat(100_000)));
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

/// The text of an answer without `stream`.
fn said(address: SocketAddr, body: &Value) -> String {
    let (status, answer) = ask(address, body);
    assert_eq!(status, 200, "{answer}");
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

fn asked(messages: &[(&str, &str)]) -> Value {
    let messages: Vec<Value> =
        messages.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    json!({"model": "m", "messages": messages})
}

#[test]
fn steps_are_taken_in_order_and_those_with_a_condition_when_it_holds() {
    let stub = stub(
        "(reply \"one\") (reply \"two\" :repeat 2) (reply \"tool\" :when (:last-role tool)) \
         (reply \"sea\" :when (:contains \"sea\") :repeat 1) (default (reply \"rest\"))",
    );
    let (user, tool) = (asked(&[("user", "hello")]), asked(&[("user", "hello"), ("tool", "{}")]));
    let sea = asked(&[("user", "the sea")]);
    let order =
        [(&user, "one"), (&tool, "tool"), (&sea, "sea"), (&sea, "two"), (&tool, "tool"), (&user, "two")];
    for (body, expected) in order {
        assert_eq!(said(stub.address(), body), expected);
    }
    for body in [&user, &sea, &user] {
        assert_eq!(said(stub.address(), body), "rest");
    }
    assert_eq!(stub.failures(), Vec::<String>::new());
    assert_eq!(stub.requests().len(), 9);
}

#[test]
fn a_request_without_a_step_is_an_error_that_says_so_and_is_remembered() {
    let stub = stub("(reply \"one\")");
    assert_eq!(said(stub.address(), &hello(false)), "one");
    let (status, answer) = ask(stub.address(), &hello(false));
    let expected =
        "scenario `s` has no step for this request: 1 were all there are; say (default (reply …)) or :repeat";
    assert_eq!(
        (status, answer["error"]["message"].as_str()),
        (500, Some(format!("stub: {expected}").as_str()))
    );
    assert_eq!(stub.failures(), [expected]);
}

#[test]
fn what_is_expected_is_held_against_the_request() {
    let stub = stub(
        "(expect :model \"m\") (reply (expect :last-role tool :body (:temperature 0 :max-tokens 5)) \"fine\")",
    );
    let (status, answer) = ask(stub.address(), &hello(false));
    let expected = "scenario `s`, step 1: expected the last message to be of the role `tool`, found `user`; expected \
                    temperature to be `0`, found nothing; expected max_tokens to be `5`, found nothing";
    assert_eq!(
        (status, answer["error"]["message"].as_str()),
        (400, Some(format!("stub: {expected}").as_str()))
    );
    assert_eq!(stub.failures(), [expected]);
}

#[test]
fn a_reply_says_what_is_written_in_the_order_it_is_written() {
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
        assert!(at > last, "{part} comes too soon in {stream}");
        last = at;
    }
}

#[test]
fn errors_files_and_bytes_are_answered_as_they_are_written() {
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
fn pages_models_health_and_a_key() {
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
    let (status, lost) = with_key("/nowhere");
    assert_eq!((status, lost["error"]["code"].as_u64()), (404, Some(404)));
    assert_eq!(stub.failures(), Vec::<String>::new(), "who looks around does no wrong");
}

#[test]
fn a_stub_without_a_scenario_misbehaves_as_the_model_is_called() {
    let stub = Stub::start(Scenario::polite()).unwrap();
    let answer = |model: &str| {
        ask(stub.address(), &json!({"model": model, "messages": [{"role": "user", "content": "hello"}]}))
    };
    assert_eq!(answer("any").0, 200);
    assert_eq!(answer("http-502-html").0, 502);
    assert_eq!(answer("retry-after-ms").0, 429);
    let (_, models) = get(stub.address(), "/v1/models");
    assert_eq!(models["data"][0]["id"], "stub", "the first is the well-behaved one");
    assert!(models["data"].as_array().unwrap().iter().any(|model| model["id"] == "gzip"));
}

/// A reply of a user's own, bent in two ways at once.
#[test]
fn misbehaviours_can_be_combined_with_any_reply() {
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
fn a_request_tells_what_it_was() {
    let stub = stub("(reply \"x\")");
    ask(stub.address(), &hello(false));
    let requests: Vec<Received> = stub.requests();
    let [request] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!((request.method(), request.path()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("host"), Some("stub"));
    assert_eq!(request.contents("user"), ["hello"]);
}
