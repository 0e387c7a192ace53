//! Quoted calls and real calls (`tests/fallback/text-calls.json`), for the model that writes their form, for a model of
//! another family and for a host with native calls.
//!
//! No rule separates them completely, so the counts are compared with limits.
//! `cargo test --test it -- fallback::text_calls --nocapture` prints them.

use deftool_chat::Dialect;
use deftool_chat::request::Fallback;
use deftool_chat::{ChatEvent, Message, MessageToolCall};
use deftool_lang::schema::{ToolKind, ToolSet};
use deftool_test_support::step;
use serde_json::{Value, json};

use super::corpus::cuts;
use super::read::{Outcome, Reader, entry, reader};

struct Data {
    tools: ToolSet,
    all: Value,
}

fn data() -> Data {
    let text = include_str!("../../fallback/text-calls.json");
    let string = || json!({"type": "string"});
    let tool = |name: &str, properties: Value, required: Value| {
        let kind = if name == "finish" { ToolKind::Exit } else { ToolKind::Normal };
        entry(kind, name, json!({"type": "object", "properties": properties, "required": required}))
    };
    let tools = ToolSet::new([
        tool("get_weather", json!({"location": string(), "unit": string()}), json!(["location"])),
        tool("now", json!({}), json!([])),
        tool(
            "write_file",
            json!({
                "path": string(),
                "content": string(),
                "mode": {"type": "integer"},
                "force": {"type": "boolean"},
                "tags": {"type": "array", "items": string()},
            }),
            json!(["path", "content"]),
        ),
        tool("echo", json!({}), json!([])),
        tool("finish", json!({"status": string()}), json!(["status"])),
    ]);
    Data { tools, all: serde_json::from_str(text).unwrap() }
}

impl Data {
    fn cases(&self, name: &str) -> &[Value] {
        self.all[name].as_array().unwrap()
    }

    /// Returns a reader for a case, with the earlier messages.
    fn reader(&self, case: &Value, dialect: Dialect, model: &str) -> Reader {
        let mode = if case["mode"] == "on" { Fallback::On } else { Fallback::Auto };
        let mut conversation = vec![Message::user(case["prompt"].as_str().unwrap())];
        if let Some(first) = case["first"].as_str() {
            let id = || String::from("abcdefghi");
            let call = MessageToolCall::new(id(), first.to_owned(), String::from("{}"));
            conversation.push(Message::Assistant {
                content: String::new(),
                tool_calls: vec![call],
                received: None,
            });
            conversation.push(Message::tool(id(), self.all["echo"].as_str().unwrap().to_owned()));
        }
        Reader { dialect, model: model.to_owned(), conversation, ..reader(mode) }
    }

    fn read(&self, reader: &Reader, case: &Value) -> Outcome {
        let chars: Vec<char> = case["text"].as_str().unwrap().chars().collect();
        let pieces = chars.chunks(reader.cut).map(|piece| ChatEvent::Text { text: piece.iter().collect() });
        reader.play(&self.tools, pieces)
    }

    /// Returns the names of the cases whose result is wrong.
    fn wrong<'d>(
        &'d self,
        name: &str,
        dialect: Dialect,
        model: Option<&str>,
        is_right: impl Fn(&Value, &Outcome) -> bool,
    ) -> Vec<&'d str> {
        let mut wrong = Vec::new();
        for case in self.cases(name) {
            let model = model.unwrap_or(case["family"].as_str().unwrap());
            let mut reads = cuts().map(|cut| self.read(&self.reader(case, dialect, model).cut(cut), case));
            if reads.any(|read| !is_right(case, &read)) {
                wrong.push(case["name"].as_str().unwrap());
            }
        }
        println!("{name}, {dialect:?} {model:?}: {} of {} {wrong:#?}", wrong.len(), self.cases(name).len());
        wrong
    }
}

fn stays_text(case: &Value, read: &Outcome) -> bool {
    read.is_text(case["text"].as_str().unwrap())
}

#[test]
fn quoted_calls_stay_text() {
    let data = data();
    let own = data.wrong("quoted", Dialect::default(), None, stays_text);
    assert!(own.len() * 4 <= data.cases("quoted").len());
    for (dialect, model) in [
        ("", "gpt-oss-20b"),
        ("openai-com", "gpt-6"),
        // The server decides, not the name of the model.
        ("gemini", "qwen3"),
    ] {
        let is_unmarked = |name: &&str| {
            data.cases("quoted").iter().any(|case| case["name"] == **name && case["mode"] == "on")
        };
        let wrong = data.wrong("quoted", Dialect::named(dialect), Some(model), stays_text);
        assert!(wrong.iter().all(is_unmarked), "{wrong:?}");
    }
}

#[test]
fn real_calls_are_made() {
    let data = data();
    let is_made = |case: &Value, read: &Outcome| {
        let calls: Vec<Value> = read.calls.iter().map(|(name, arguments)| json!([name, arguments])).collect();
        case["calls"] == json!(calls) && case["signals"] == json!(read.signals.len())
    };
    for model in [None, Some("default")] {
        let lost = data.wrong("positive", Dialect::default(), model, is_made);
        assert!(lost.len() * 20 <= data.cases("positive").len());
    }
}

/// A stream may be split, and the machine stored, between any two characters.
#[test]
fn every_split_gives_the_same_decision() {
    let data = data();
    for case in ["quoted", "positive"].into_iter().flat_map(|name| data.cases(name)) {
        let reader = data.reader(case, Dialect::default(), case["family"].as_str().unwrap());
        let whole = data.read(&reader, case);
        let stored = Reader { restore: true, ..reader.clone().cut(step(23)) };
        assert_eq!(data.read(&stored, case), whole, "{}", case["name"]);
        let text = case["text"].as_str().unwrap();
        for (at, _) in text.char_indices().skip(1).step_by(step(997)) {
            let (one, other) = text.split_at(at);
            let pieces = [one, other].map(|text| ChatEvent::Text { text: text.to_owned() });
            assert_eq!(reader.play(&data.tools, pieces.into_iter()), whole, "{} at {at}", case["name"]);
        }
    }
}
