//! `deftool view`: the page of a run, the difference of two runs, and input that is not a run.

mod browser;
mod follow;
mod invalid;

use std::fs;

use deftool_test_support::server::{Answer, Server, call, delta, event, finish, usage};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project};

const WORKER: &str = "(defworker :name \"w\" :tool-budget 3 :on-invalid-arguments report)\n";

/// Records a run of the prompt `count` against these answers.
fn record(project: &Project, file: &str, answers: impl IntoIterator<Item = Answer>) -> Ended {
    let server = Server::script(answers);
    project.run(&["run", "count", "--endpoint", &server.endpoint(), "--record", file])
}

fn project() -> Project {
    Project::with_worker(WORKER)
}

/// Returns the data of a page: the content of its script element for data.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split("</script").next().unwrap()).unwrap()
}

/// Writes the page of some files and returns its data.
fn view(project: &Project, files: &[&str]) -> Value {
    let ended = project.run(&[&["view", "-o", "-"], files].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    data(&ended.stdout)
}

/// Returns the kinds of all entries of the first request, with names.
fn kinds(data: &Value) -> Vec<String> {
    let entries = data["files"][0]["requests"][0]["entries"].as_array().unwrap();
    let kind = |entry: &Value| {
        let name = entry["name"].as_str().map(|name| format!(" {name}")).unwrap_or_default();
        entry["kind"].as_str().unwrap().to_owned() + &name
    };
    entries.iter().map(kind).collect()
}

/// Returns the first entry of a kind.
fn entry<'d>(data: &'d Value, kind: &str) -> &'d Value {
    let entries = data["files"][0]["requests"][0]["entries"].as_array().unwrap();
    entries.iter().find(|entry| entry["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {data}"))
}

fn counted(text: &str, last: &str) -> Vec<Answer> {
    let reasoning = json!({"choices": [{"index": 0, "delta": {"reasoning_content": "I must count."}}]});
    vec![
        Answer::error(503, &[("retry-after-ms", "20")], "Loading model"),
        Answer::stream()
            .chunk(&reasoning)
            .delta("Coun")
            .wait_ms(60)
            .delta("ting.")
            .chunk(&call(0, "count", &json!({ "text": text }).to_string()))
            .chunk(&finish("tool_calls"))
            .chunk(&usage(12, 5))
            .done()
            .end(),
        Answer::chunks(&[
            delta(last),
            call(0, "count", "{\"text\": 7}"),
            call(1, "done", r#"{"summary": "counted"}"#),
            finish("tool_calls"),
        ]),
        Answer::text("The end."),
    ]
}

#[test]
fn a_call_contains_the_log_lines_of_its_script() {
    for isolate in ["threads", "process"] {
        let project = project();
        project.write(
            "scripts/count.lua",
            "return function(text, _) log.info('looking at', text) log.debug('no') log.warn('careful') return 1 end",
        );
        let server = Server::script([
            Answer::chunks(&[
                call(0, "count", r#"{"text":"a"}"#),
                call(1, "count", r#"{"text":"b"}"#),
                finish("tool_calls"),
            ]),
            Answer::text("Done."),
        ]);
        let endpoint = server.endpoint();
        let arguments = [
            "run",
            "count",
            "--endpoint",
            &endpoint,
            "--record",
            "run.jsonl",
            "--journal",
            "j",
            "--isolate",
            isolate,
        ];
        let ended = project.run(&arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for file in ["run.jsonl", "j"] {
            let data = view(&project, &[file]);
            let entries = data["files"][0]["requests"][0]["entries"].as_array().unwrap();
            let logs: Vec<&Value> =
                entries.iter().filter(|entry| entry["kind"] == "call").map(|entry| &entry["logs"]).collect();
            let of = |text: &str| json!([format!("info: looking at\t{text}"), "warn: careful"]);
            assert_eq!(logs, [&of("a"), &of("b")], "{isolate}, {file}");
        }
        let replayed = project.run(&["run", "--replay", "run.jsonl"]);
        assert_eq!((replayed.code, replayed.stdout), (Some(0), ended.stdout), "{}", replayed.stderr);
    }
}

#[test]
fn a_recording_becomes_a_page() {
    let project = project();
    assert_eq!(record(&project, "a.jsonl", counted("héllo", "Again.")).code, Some(0));
    let ended = project.run(&["view", "a.jsonl"]);
    let wrote = "wrote a.html (1 request, 3 turns, 2 calls)\n";
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "", wrote));
    let page = fs::read_to_string(project.path("a.html")).unwrap();
    let data = data(&page);
    let expected = [
        "turn",
        "fault http_503",
        "retry",
        "turn",
        "reasoning",
        "text",
        "call count",
        "turn",
        "text",
        "call count",
        "signal done",
        "turn",
        "text",
        "finished",
    ];
    assert_eq!(kinds(&data), expected);
    let request = &data["files"][0]["requests"][0];
    assert_eq!((&request["worker"], &request["model"]), (&json!("w"), &json!("scripted")));
    assert_eq!(request["outcome"]["state"], "completed");
    assert_eq!(request["outcome"].get("text"), None, "texts are entries");

    assert_eq!(entry(&data, "fault")["detail"], "Loading model");
    let retry = entry(&data, "retry");
    assert_eq!((&retry["attempt"], &retry["detail"]), (&json!(2), &json!("HTTP 503: Loading model")));
    let text = entry(&data, "text");
    assert_eq!(text["text"], "Counting.");
    let deltas = text["deltas"].as_array().unwrap();
    assert_eq!(deltas.iter().map(|delta| delta[1].as_u64().unwrap()).collect::<Vec<_>>(), [4, 5]);
    let pause = deltas[1][0].as_u64().unwrap() - deltas[0][0].as_u64().unwrap();
    assert!((40..5_000).contains(&pause), "{text}");

    let entries = request["entries"].as_array().unwrap();
    let turns: Vec<&Value> = entries.iter().filter(|entry| entry["kind"] == "turn").collect();
    assert_eq!(turns.iter().map(|turn| turn["turn"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 1, 2, 3]);
    assert_eq!(turns[0]["budget"], json!({"left": 3, "unit": "iteration"}));
    assert_eq!(turns[2]["budget"]["left"], 2);
    assert_eq!(turns[1]["usage"], json!({"prompt_tokens": 12, "completion_tokens": 5}));
    assert!(turns[0]["messages"].to_string().contains("bios-v1"));
    assert!(turns[0]["tools"].as_str().unwrap().contains("Count the characters"));
    // A turn has what is new in it. A repeated attempt belongs to its turn.
    assert_eq!(turns[0]["messages"], turns[1]["messages"]);
    let roles: Vec<Value> = turns[2]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| serde_json::from_str(message.as_str().unwrap()).unwrap())
        .map(|message: Value| message["role"].clone())
        .collect();
    assert_eq!((json!(roles), turns[2].get("tools")), (json!(["assistant", "tool"]), None));

    let calls: Vec<&Value> = entries.iter().filter(|entry| entry["kind"] == "call").collect();
    assert_eq!(calls[0]["arguments"], "{\"text\": \"héllo\"}");
    assert_eq!((&calls[0]["state"], &calls[0]["result"]), (&json!("ok"), &json!("{\"length\": 6}")));
    assert!(calls[0]["started_ms"].as_u64() >= calls[0]["written_ms"][1].as_u64());
    assert_eq!((&calls[1]["state"], &calls[1]["arguments"]), (&json!("not_run"), &json!("{\"text\": 7}")));
    let times: Vec<u64> = entries.iter().map(|entry| entry["at_ms"].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");

    // An older page is overwritten, another file is not.
    assert_eq!(project.run(&["view", "a.jsonl"]).code, Some(0));
    project.write("a.html", "<!DOCTYPE html>\n<p>Mine.</p>\n");
    let refused = project.run(&["view", "a.jsonl"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.starts_with("error: cannot write a.html: the existing file is not a page of"),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(project.path("a.html")).unwrap(), "<!DOCTYPE html>\n<p>Mine.</p>\n");
    assert_eq!(project.run(&["view", "a.jsonl", "--force"]).code, Some(0));
    assert_eq!(fs::read_to_string(project.path("a.html")).unwrap(), page);
    let elsewhere = project.run(&["view", "a.jsonl", "-o", "none/b.html"]);
    assert!(elsewhere.code == Some(2) && elsewhere.stderr.contains("none/b.html"), "{elsewhere:?}");
    // A recording is never overwritten by its page.
    let itself = project.run(&["view", "a.jsonl", "-o", "./a.jsonl", "--force"]);
    assert_eq!(
        (itself.code, itself.stderr.as_str()),
        (Some(2), "error: the output `./a.jsonl` is an input\n")
    );
}

#[test]
fn refused_failed_and_text_calls_are_shown() {
    let project = project();
    project.write(
        "specs/more.eld",
        "(deftool :name \"risky\" :description \"Take a risk.\" :confirm t)\n\
         (defworker :name \"v\" :on-tool-error report)",
    );
    project.write("scripts/risky.lua", "return function() return 1 end\n");
    let server = Server::script([
        Answer::calls(&[("risky", "{}"), ("broken", "{}")]),
        Answer::text("<tool_call>\n{\"name\": \"count\", \"arguments\": {\"text\": \"ab\"}}\n</tool_call>"),
        Answer::text("The end."),
    ]);
    let endpoint = server.endpoint();
    let arguments = ["run", "go", "--worker", "v", "--endpoint", &endpoint, "--record", "a.jsonl"];
    let ended = project.run(&arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let data = view(&project, &["a.jsonl"]);
    let entries = data["files"][0]["requests"][0]["entries"].as_array().unwrap();
    let state = |name: &str| {
        let call = entries.iter().find(|entry| entry["kind"] == "call" && entry["name"] == name);
        call.unwrap_or_else(|| panic!("no {name}: {data}"))
    };
    assert_eq!(state("risky")["state"], "refused");
    assert_eq!(entry(&data, "approval")["answer"]["answer"], "refused");
    assert_eq!(state("broken")["state"], "failed");
    assert!(state("broken")["error"]["message"].as_str().unwrap().contains("no luck"));
    assert_eq!((&state("count")["state"], &state("count")["as_text"]), (&json!("ok"), &json!(true)));
}

/// The decoded streams, calls and faults are those of the run, whatever the server does.
#[test]
fn streams_calls_and_faults_match_the_recorded_outcome() {
    let project = project();
    project.write("specs/responses.eld", "(defworker :name \"r\" :api responses)");
    let binary = env!("CARGO_BIN_EXE_deftool");
    for (fault, worker, faults) in [
        ("index-missing", "w", &[][..]),
        ("arguments-object", "r", &[]),
        ("http-503-loading", "w", &["http_503"]),
        ("http-503-loading", "r", &["http_503"]),
        ("failed-generation", "w", &["http_400"]),
        ("rst-mid-stream", "w", &["incomplete_reply"]),
        ("rst-mid-stream", "r", &["incomplete_reply"]),
        ("html-200", "w", &["empty_stream"]),
        ("line-repeated", "w", &["repeated_line_loop"]),
    ] {
        let stub = ["stub", "--quiet", "--fault", fault, "--", binary];
        let run = ["run", "Count.", "--no-stdin", "--worker", worker, "--record", "a.jsonl"];
        project.run(&[&stub[..], &run].concat());
        let recorded = fs::read_to_string(project.path("a.jsonl")).unwrap();
        let last: Value = serde_json::from_str(recorded.lines().last().unwrap()).unwrap();
        let outcome = &last["event"];
        let data = view(&project, &["a.jsonl"]);
        let entries = data["files"][0]["requests"][0]["entries"].as_array().unwrap();
        let of_kind = |kind: &'static str| entries.iter().filter(move |entry| entry["kind"] == kind);
        let text: String = of_kind("text").map(|entry| entry["text"].as_str().unwrap()).collect();
        let raw_text = outcome.get("raw_text").unwrap_or(&outcome["text"]);
        assert_eq!(text.trim(), raw_text.as_str().unwrap().trim(), "{fault}");
        assert_eq!(of_kind("signal").count(), outcome["signals"].as_array().unwrap().len(), "{fault}");
        let found: Vec<&str> = of_kind("fault").map(|entry| entry["name"].as_str().unwrap()).collect();
        assert_eq!(found, faults, "{fault}: {data}");
    }
}

/// The text of a call that the server could not parse is in an error.
#[test]
fn the_failure_of_a_call_is_shown_beside_the_fault_of_its_reply() {
    let project = project();
    let text = "<tool_call>{\"name\": \"broken\", \"arguments\": {}}</tool_call>";
    let error = json!({"error": {"message": "no", "code": "tool_use_failed", "failed_generation": text}});
    record(&project, "a.jsonl", [Answer::whole(400, &[], &error.to_string())]);
    let data = view(&project, &["a.jsonl"]);
    assert_eq!(kinds(&data), ["turn", "text", "fault http_400", "call broken", "fault script", "finished"]);
}

/// A retry lasts until its attempt, and a signal is emitted when its call is complete.
#[test]
fn entries_of_a_recording_have_the_times_of_their_causes() {
    let project = project();
    record(&project, "a.jsonl", [Answer::text("Hello.")]);
    let recorded = fs::read_to_string(project.path("a.jsonl")).unwrap();
    let session = recorded.lines().next().unwrap();
    let done = json!({"type": "signal", "tool_name": "done", "arguments": {}, "emitted_at_ms": 5_020});
    let retried = |retried_at: u64| {
        let event = |at_ms: u64, event: Value| json!({"record": "event", "at_ms": at_ms, "event": event});
        let request = |at_ms: u64, attempt: u32| json!({"record": "request", "at_ms": at_ms, "turn": 1, "attempt": attempt, "body": {}});
        let data =
            |at_ms: u64, chunk: &Value| json!({"record": "data", "at_ms": at_ms, "text": self::event(chunk)});
        let lines = [
            request(10, 1),
            json!({"record": "no_connection", "at_ms": 20, "message": "refused", "refused": true}),
            event(retried_at, json!({"type": "retry", "attempt": 2, "delay_ms": 100, "detail": "refused"})),
            request(5_000, 2),
            json!({"record": "response", "at_ms": 5_010, "status": 200}),
            data(5_020, &call(0, "done", "{}")),
            data(5_030, &call(1, "count", "{}")),
            data(5_100, &finish("tool_calls")),
            json!({"record": "end", "at_ms": 5_100}),
            event(5_100, done.clone()),
            event(5_100, json!({"type": "tool_call", "id": "c", "name": "count", "arguments": {}})),
            event(5_100, json!({"type": "tool_started", "id": "c", "name": "count"})),
            event(6_000, json!({"type": "budget", "left": 1, "unit": "iteration"})),
        ];
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        project.write("cut.jsonl", format!("{session}\n{}\n", lines.join("\n")));
        view(&project, &["cut.jsonl"])
    };
    let data = retried(20);
    assert_eq!(
        kinds(&data),
        ["turn", "fault connect_failed", "retry", "turn", "signal done", "call count", "fault recording_cut"]
    );
    assert_eq!(entry(&data, "retry")["end_ms"], 5_000);
    assert_eq!(entry(&data, "signal")["at_ms"], 5_020);
    // A damaged time.
    assert_eq!(entry(&retried(u64::MAX), "retry")["at_ms"], u64::MAX);
}

/// Later requests of a recording have a number. Requests may overlap.
#[test]
fn all_requests_of_a_recording_are_shown() {
    let project = project();
    record(&project, "a.jsonl", counted("ab", "Again."));
    let first = fs::read_to_string(project.path("a.jsonl")).unwrap();
    let second = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line["request"] = json!(2);
        if line["record"] == "session" {
            line["request_id"] = json!("req_2");
        }
        line.to_string()
    };
    let both: Vec<String> = first.lines().flat_map(|line| [line.to_owned(), second(line)]).collect();
    project.write("both.jsonl", both.join("\n"));
    let data = view(&project, &["both.jsonl"]);
    let requests = data["files"][0]["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1]["id"], "req_2");
    let without_lines = |request: &Value| {
        let mut entries = request["entries"].clone();
        entries.as_array_mut().unwrap().iter_mut().for_each(|entry| entry["line"] = json!(0));
        entries
    };
    assert_eq!(without_lines(&requests[0]), without_lines(&requests[1]));
}

#[test]
fn two_recordings_are_aligned_and_compared() {
    let project = project();
    let before = counted("héllo", "Now I count again.");
    let mut after = counted("hi", "Then I count twice.");
    after.remove(0);
    record(&project, "before.jsonl", before);
    record(&project, "after.jsonl", after);
    let ended = project.run(&["view", "before.jsonl", "after.jsonl"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.starts_with("wrote before-after.html (") && ended.stderr.contains(" entries differ)"),
        "{ended:?}"
    );
    let data = data(&fs::read_to_string(project.path("before-after.html")).unwrap());
    let rows = data["rows"].as_array().unwrap();
    let shown = |row: &Value| {
        let index = row["left"].as_u64().map_or_else(|| (1, &row["right"]), |_| (0, &row["left"]));
        let entry = &data["files"][index.0]["requests"][0]["entries"][index.1.as_u64().unwrap() as usize];
        let sides = match (row.get("left"), row.get("right")) {
            (Some(_), Some(_)) if row.get("fields").is_none() && row.get("words").is_none() => "=",
            (Some(_), Some(_)) => "~",
            (Some(_), None) => "<",
            _ => ">",
        };
        format!("{sides}{}", entry["kind"].as_str().unwrap())
    };
    let rows_shown: Vec<String> = rows.iter().map(shown).collect();
    // The failed attempt and its retry are on the left only.
    assert!(["<fault", "<retry"].iter().all(|row| rows_shown.contains(&(*row).to_owned())), "{rows_shown:?}");
    assert!(rows_shown.contains(&String::from("=reasoning")), "{rows_shown:?}");
    let call = rows.iter().find(|row| shown(row) == "~call").unwrap();
    assert_eq!(
        call["fields"],
        json!([
            {"path": "arguments.text", "left": "\"héllo\"", "right": "\"hi\""},
            {"path": "result.length", "left": "6", "right": "2"},
        ])
    );
    let text = rows.iter().find(|row| shown(row) == "~text").unwrap();
    let side = |side: &str| {
        let words = text["words"].as_array().unwrap().iter();
        words
            .filter(|word| word[0] == "both" || word[0] == side)
            .map(|word| word[1].as_str().unwrap())
            .collect::<String>()
    };
    assert_eq!(
        (side("left").as_str(), side("right").as_str()),
        ("Now I count again.", "Then I count twice.")
    );
    // A run equals itself.
    let same = project.run(&["view", "after.jsonl", "after.jsonl", "-o", "same.html"]);
    assert_eq!(same.stderr, "wrote same.html (no differences)\n");
}

#[test]
fn the_events_of_a_run_become_a_page_without_times() {
    let project = project();
    let server = Server::script(counted("héllo", "Again."));
    let ended = project.run(&["run", "count", "--endpoint", &server.endpoint(), "--json"]);
    project.write("events.jsonl", &ended.stdout);
    let data = view(&project, &["events.jsonl"]);
    assert_eq!(data["files"][0]["source"], "events");
    let expected = [
        "turn",
        "retry",
        "reasoning",
        "text",
        "call count",
        "turn",
        "text",
        "signal done",
        "call count",
        "turn",
        "text",
        "finished",
    ];
    assert_eq!(kinds(&data), expected);
    assert_eq!(entry(&data, "text")["text"], "Counting.");
    assert_eq!(entry(&data, "call")["state"], "ok");
    // An incomplete last line is ignored.
    project.write("events.jsonl", &ended.stdout[..ended.stdout.len() - 20]);
    let data = view(&project, &["events.jsonl"]);
    assert_eq!(data["files"][0]["requests"][0]["outcome"], json!({}));
}

/// A recording with many calls and one reply with many deltas, as `run --record` writes it.
fn large_recording(project: &Project, calls: usize, deltas: usize) {
    record(project, "a.jsonl", [Answer::text("Hello.")]);
    let recorded = fs::read_to_string(project.path("a.jsonl")).unwrap();
    let mut lines: Vec<String> = recorded.lines().map(str::to_owned).collect();
    let finished = lines.pop().unwrap();
    let first = lines.iter().position(|line| line.contains("Hello.")).unwrap();
    let last = lines.split_off(first);
    lines.extend((0..deltas).map(|index| {
        let text = event(&delta(&format!("word {index} ")));
        json!({"record": "data", "at_ms": 100 + index, "text": text}).to_string()
    }));
    lines.extend(last);
    for index in 0..calls {
        let (at, id, text) = (20_000 + 3 * index, format!("call{index}"), format!("text {index}"));
        let events = [
            (at, json!({"type": "tool_call", "arguments": {"text": text}})),
            (at, json!({"type": "tool_started"})),
            (at + 2, json!({"type": "tool_finished", "ok": true, "result": index, "elapsed_ms": 2})),
        ];
        lines.extend(events.into_iter().map(|(at, mut event)| {
            (event["id"], event["name"]) = (json!(id), json!("count"));
            json!({"record": "event", "at_ms": at, "event": event}).to_string()
        }));
    }
    lines.push(finished);
    project.write("large.jsonl", lines.join("\n") + "\n");
}

#[test]
fn a_recording_with_10_000_deltas_and_calls_has_one_stream() {
    let project = project();
    large_recording(&project, 10_000, 10_000);
    let data = view(&project, &["large.jsonl"]);
    let kinds = kinds(&data);
    assert_eq!(kinds.len(), 10_003, "{:?}", &kinds[..5]);
    assert!(entry(&data, "text")["deltas"].as_array().unwrap().len() > 10_000);
    let ended = project.run(&["view", "large.jsonl", "large.jsonl", "-o", "difference.html"]);
    assert_eq!(ended.stderr, "wrote difference.html (no differences)\n");
}

/// The colours of the page have a contrast of at least 4.5:1 (WCAG 2.2, 1.4.3) in both schemes.
#[test]
fn colours_of_texts_have_enough_contrast() {
    let style = include_str!("../../../src/cli/commands/view/page/style.css");
    let schemes: Vec<&str> =
        style.split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
    assert_eq!(schemes.len(), 2);
    for scheme in schemes {
        let luminance = |name: &str| {
            let (_, rest) = scheme.split_once(&format!("--{name}: #")).unwrap_or_else(|| panic!("no {name}"));
            let channel = |at: usize| {
                let value = f64::from(u8::from_str_radix(&rest[at..at + 2], 16).unwrap()) / 255.0;
                if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
        };
        for (text, back) in [
            ("text", "back"),
            ("text", "raised"),
            ("text", "mark"),
            ("text", "removed"),
            ("text", "added"),
            ("muted", "back"),
            ("muted", "raised"),
            ("bad", "back"),
            ("bad", "raised"),
            ("bad", "removed"),
            ("good", "back"),
            ("good", "added"),
            ("warn", "back"),
            ("warn", "raised"),
            ("focus", "back"),
        ] {
            let (one, other) = (luminance(text), luminance(back));
            let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
            assert!(contrast >= 4.5, "{text} on {back}: {contrast:.2}");
        }
    }
}
