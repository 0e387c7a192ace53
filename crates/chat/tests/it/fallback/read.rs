//! Reads the corpus, and runs one reply through the request machine.

use std::sync::Arc;

use deftool_chat::request::{BiosV1, Event, Fallback, FinalState, Run, RunConfig, RunStart};
use deftool_chat::{ChatEvent, Dialect, Message, MessageToolCall, Reply, ReplyStatus};
use deftool_lang::schema::{ToolEntry, ToolKind, ToolSet};
use serde_json::{Value, json};

/// One family's file.
#[derive(Debug, Clone)]
pub(super) struct Family {
    pub(super) name: String,
    /// The model marks the form as a call, so it is read under `auto`.
    pub(super) marked: bool,
    /// The form needs lines of its own.
    pub(super) line: bool,
    /// The form must begin a message.
    pub(super) message: bool,
    pub(super) specimens: Vec<Specimen>,
}

/// A complete reply and its expected result.
#[derive(Debug, Clone)]
pub(super) struct Specimen {
    pub(super) title: String,
    pub(super) expected: Expected,
    /// The messages before the reply.
    pub(super) earlier: Vec<Message>,
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expected {
    /// These calls and signals, and the remaining text.
    Calls { calls: Vec<(String, Value)>, signals: Vec<(String, Value)>, left: String },
    /// The request fails with this kind. The text stays.
    Fails(String),
    /// No call. The text stays.
    Text,
}

impl Specimen {
    /// Returns the number of expected calls and signals.
    pub(super) fn calls(&self) -> usize {
        match &self.expected {
            Expected::Calls { calls, signals, .. } => calls.len() + signals.len(),
            Expected::Fails(_) | Expected::Text => 0,
        }
    }

    /// Whether the reply consists of calls only.
    pub(super) fn is_all_calls(&self) -> bool {
        matches!(&self.expected, Expected::Calls { left, .. } if left.is_empty())
    }

    /// Whether the closing mark is missing.
    pub(super) fn is_open(&self) -> bool {
        ["not closed", "without its ", "finished, "].iter().any(|word| self.title.contains(word))
    }
}

impl Family {
    /// Whether the reply begins with a control token, which may follow prose.
    pub(super) fn begins_with_token(&self, specimen: &Specimen) -> bool {
        ["<|", "<｜", "<‖", "]<]", "[TOOL_CALLS]"].iter().any(|token| specimen.text.starts_with(token))
            && !self.line
    }

    /// Returns the fallback setting under which the form is read.
    pub(super) fn mode(&self) -> Fallback {
        if self.marked { Fallback::Auto } else { Fallback::On }
    }

    /// Returns the specimens with calls.
    pub(super) fn hits(&self) -> impl Iterator<Item = &Specimen> {
        self.specimens.iter().filter(|specimen| matches!(specimen.expected, Expected::Calls { .. }))
    }
}

pub(super) fn families() -> Vec<Family> {
    files_in("families")
}

/// Reads the files in one folder of `tests/fallback`, in the format of its README.
pub(super) fn files_in(folder: &str) -> Vec<Family> {
    let folder = format!("{}/tests/fallback/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|path| family(path)).collect()
}

fn family(path: &std::path::Path) -> Family {
    let text = std::fs::read_to_string(path).unwrap();
    let mut parts = text.split("\n=== ");
    let head = parts.next().unwrap();
    let has = |key: &str| head.lines().any(|line| line == format!("{key}: yes"));
    let specimens = parts
        .map(|part| {
            let (head, body) = part.split_once("\n-----\n").unwrap();
            let (title, expected) = head.split_once('\n').unwrap();
            let text = body.to_owned();
            let (earlier, expected) = expectation(expected);
            Specimen { title: title.to_owned(), expected, earlier, text }
        })
        .collect::<Vec<_>>();
    let mut family = Family {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        marked: has("marked"),
        line: has("line"),
        message: has("message"),
        specimens,
    };
    // The final newline belongs to the file, not to the reply.
    if let Some(last) = family.specimens.last_mut() {
        last.text.pop();
    }
    family
}

fn expectation(text: &str) -> (Vec<Message>, Expected) {
    let (mut calls, mut signals, mut left) = (Vec::new(), Vec::new(), String::new());
    let mut earlier = Vec::new();
    for line in text.lines() {
        let line = line.strip_prefix("= ").unwrap();
        if let Some((role @ ("user" | "tool" | "system" | "assistant"), content)) = line.split_once(' ') {
            earlier.extend(message(role, serde_json::from_str(content).unwrap()));
            continue;
        }
        if let Some(text) = line.strip_prefix("leaves ") {
            text.clone_into(&mut left);
            continue;
        }
        let mut words = line.splitn(3, ' ');
        match (words.next().unwrap(), words.next(), words.next()) {
            ("text", None, None) => return (earlier, Expected::Text),
            ("fails", Some(kind), None) => return (earlier, Expected::Fails(kind.to_owned())),
            (what, Some(name), Some(arguments)) => {
                let call = (name.to_owned(), serde_json::from_str(arguments).unwrap());
                if what == "signal" { signals.push(call) } else { calls.push(call) }
            }
            other => panic!("{other:?}"),
        }
    }
    (earlier, Expected::Calls { calls, signals, left })
}

/// Returns a message of `role`. A tool result is preceded by its call.
fn message(role: &str, content: String) -> Vec<Message> {
    let id = || String::from("abcdefghi");
    match role {
        "user" => vec![Message::user(content)],
        "system" => vec![Message::System { content }],
        "assistant" => vec![Message::Assistant { content, tool_calls: Vec::new(), received: None }],
        _ => {
            let call = MessageToolCall::new(id(), String::from("book"), String::from("{}"));
            vec![
                Message::Assistant { content: String::new(), tool_calls: vec![call], received: None },
                Message::tool(id(), content),
            ]
        }
    }
}

pub(super) fn entry(kind: ToolKind, name: &str, parameters: Value) -> Arc<ToolEntry> {
    let function = json!({"name": name, "description": name, "parameters": parameters});
    let definition = json!({"type": "function", "function": function});
    Arc::new(ToolEntry::new(kind, definition, None).unwrap())
}

pub(super) fn tools() -> ToolSet {
    ToolSet::new([
        entry(
            ToolKind::Normal,
            "get_weather",
            json!({
                "type": "object",
                "properties": {
                    "location": {"type": "string"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}
                },
                "required": ["location"],
                "additionalProperties": false
            }),
        ),
        entry(
            ToolKind::Normal,
            "book",
            json!({
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "pages": {"$ref": "#/$defs/count"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "fiction": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
                    "note": {"type": ["string", "null"]}
                },
                "required": ["title"],
                "additionalProperties": false,
                "$defs": {"count": {"type": "integer"}}
            }),
        ),
        entry(ToolKind::Normal, "look", json!({"type": "object"})),
        entry(ToolKind::Exit, "finish", json!({"type": "object"})),
    ])
}

/// The settings for reading a reply.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    pub(super) mode: Fallback,
    /// The URL of the API and the model's name, which decide the forms that are read.
    pub(super) dialect: Dialect,
    pub(super) model: String,
    pub(super) conversation: Vec<Message>,
    /// Number of characters in each piece.
    pub(super) cut: usize,
    /// Serialise and restore the machine after each piece.
    pub(super) restore: bool,
    /// Detect repeated lines.
    pub(super) loops: bool,
    /// The finish reason of the reply.
    pub(super) finish: Option<&'static str>,
}

/// The result of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub(super) calls: Vec<(String, Value)>,
    pub(super) signals: Vec<(String, Value)>,
    pub(super) failed: Option<String>,
    /// The shown text.
    pub(super) text: String,
    /// The number of warnings.
    pub(super) warnings: usize,
}

impl Outcome {
    /// Whether there is no call, signal or failure, and all text is shown.
    pub(super) fn is_text(&self, text: &str) -> bool {
        self.calls.is_empty() && self.signals.is_empty() && self.failed.is_none() && self.text == text
    }
}

pub(super) fn reader(mode: Fallback) -> Reader {
    let conversation = vec![Message::user("Do it.")];
    let (dialect, model) = (Dialect::default(), String::new());
    Reader {
        mode,
        dialect,
        model,
        conversation,
        cut: usize::MAX,
        restore: false,
        loops: false,
        finish: Some("stop"),
    }
}

impl Reader {
    pub(super) fn cut(mut self, cut: usize) -> Self {
        self.cut = cut;
        self
    }

    pub(super) fn read(&self, text: &str) -> Outcome {
        let chars: Vec<char> = text.chars().collect();
        let pieces = chars.chunks(self.cut.max(1)).map(|piece| piece.iter().collect());
        self.read_events(pieces.map(|text| ChatEvent::Text { text }))
    }

    pub(super) fn read_events(&self, events: impl Iterator<Item = ChatEvent>) -> Outcome {
        thread_local!(static TOOLS: ToolSet = tools());
        TOOLS.with(|tools| self.play(tools, events))
    }

    /// Returns a request that waits for its reply.
    pub(super) fn begin(&self, tools: &ToolSet) -> Run {
        let (dialect, model) = (self.dialect, self.model.clone());
        let mut config = RunConfig { fallback: self.mode, dialect, model, ..RunConfig::default() };
        if !self.loops {
            config.repetition.clear();
        }
        let start = RunStart {
            request_id: String::from("r1"),
            job_name: String::new(),
            conversation: self.conversation.clone(),
            submitted_at_ms: 0,
            zone: String::from("UTC"),
            local_time: String::from("2026-11-20T00:00:00"),
            id_seed: 1,
            ..RunStart::default()
        };
        let mut run = Run::new(config, start);
        run.next_step(tools, &BiosV1);
        run
    }

    pub(super) fn play(&self, tools: &ToolSet, pieces: impl Iterator<Item = ChatEvent>) -> Outcome {
        let mut run = self.begin(tools);
        for piece in pieces {
            run.on_event(piece, tools, 1);
            if self.restore {
                run = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
            }
        }
        let reply = Reply {
            status: ReplyStatus::Complete,
            calls: Vec::new(),
            lost_frames: 0,
            finish_reason: self.finish.map(String::from),
            finish_detail: None,
            usage: None,
            model: None,
            opaque: Box::default(),
        };
        run.on_event(ChatEvent::Ended { reply }, tools, 2);
        Outcome::of(&mut run)
    }
}

impl Outcome {
    /// Returns the result of a reply that has ended.
    pub(super) fn of(run: &mut Run) -> Self {
        let (mut calls, mut shown, mut warnings) = (Vec::new(), String::new(), 0);
        for event in run.take_events() {
            match event {
                Event::ToolCall { name, arguments, .. } => calls.push((name, Value::clone(&arguments))),
                Event::Text { text } => shown.push_str(&text),
                Event::Warning { .. } => warnings += 1,
                _ => {}
            }
        }
        assert_eq!(shown, run.text(), "the text events, joined, are the text");
        let signals =
            run.signals().iter().map(|signal| (signal.tool_name.clone(), signal.arguments.clone())).collect();
        let failed = run
            .outcome()
            .filter(|outcome| outcome.state == FinalState::Failed)
            .map(|outcome| outcome.kind.clone().unwrap_or_default());
        assert!(calls.is_empty() || run.outcome().is_none(), "a request with calls goes on");
        Self { calls, signals, failed, text: shown, warnings }
    }
}

/// Returns the expected result of a specimen between `before` and `after`.
pub(super) fn outcome_of(specimen: &Specimen, before: &str, after: &str) -> Outcome {
    let whole = format!("{before}{}{after}", specimen.text);
    let text = Outcome { calls: Vec::new(), signals: Vec::new(), failed: None, text: whole, warnings: 0 };
    match &specimen.expected {
        Expected::Text => text,
        Expected::Fails(kind) => Outcome { failed: Some(kind.clone()), ..text },
        Expected::Calls { calls, signals, left } => {
            let text = format!("{before}{left}{after}");
            Outcome { calls: calls.clone(), signals: signals.clone(), text, failed: None, warnings: 0 }
        }
    }
}
