//! Scripted replies with status 200: text, reasoning, calls of every kind, and the end.

use deftool_lang::schema::ToolKind;
use serde_json::json;

use super::dice::Dice;
use super::script::{ExchangeContext, Form, Frame, Part, ReplyEnd, Script, ScriptedCall, Tail, Written};
use super::tools::{Generation, copied_payload};

/// A reply being written.
pub(super) struct Reply<'a, 'b> {
    pub(super) dice: &'a mut Dice,
    pub(super) context: &'a ExchangeContext<'b>,
    pub(super) script: Script,
}

const WORDS: [&str; 14] = [
    "the ", "tool ", "said ", "é", "naïve ", "Grüße ", "日本", "🦀 ", "so ", "far\n", "and\n\n", "on ",
    "12 ", "x. ",
];

const NOISE: [&str; 16] = [
    "<tool_call>",
    "</tool_call>",
    "{\"name\": \"look\"",
    "}",
    "`",
    "```\n",
    "\"",
    "“",
    "<think>",
    "</think>",
    "> ",
    "    ",
    "{\"tool\":",
    "\n",
    "<",
    "word ",
];

impl Reply<'_, '_> {
    pub(super) fn write(mut self) -> Script {
        let kind = self.dice.weighted(&[
            (if self.context.calm { 1_000 } else { 100 }, "reply: whole"),
            (5, "reply: breaks"),
            (4, "reply: error in the stream"),
            (3, "reply: falls silent"),
            (3, "reply: comments only"),
            (3, "reply: no finish reason"),
            (3, "reply: call cut off"),
            (3, "reply: empty"),
            (2, "reply: garbage"),
            (3, "reply: repeated line"),
            (4, "reply: JSON, not a stream"),
            (3, "reply: noise"),
        ]);
        self.count(kind);
        match kind {
            "reply: empty" => self.write_empty(),
            "reply: garbage" => self.write_garbage(),
            "reply: JSON, not a stream" => {
                self.add_content(true);
                self.write_json();
            }
            "reply: comments only" => self.write_comments(),
            _ => {
                self.add_content(!matches!(kind, "reply: repeated line" | "reply: noise"));
                match kind {
                    "reply: repeated line" => self.add_loop(),
                    "reply: noise" => self.add_noise(),
                    "reply: call cut off" => self.cut_call(),
                    _ => {}
                }
                self.write_stream(kind);
            }
        }
        self.pace();
        self.script
    }

    pub(super) fn count(&mut self, feature: &str) {
        self.script.features.push(feature.to_owned());
    }

    pub(super) fn words(&mut self) -> String {
        (0..self.dice.below(1..12)).map(|_| *self.dice.pick(&WORDS)).collect()
    }

    /// Adds text and calls.
    fn add_content(&mut self, may_write_calls: bool) {
        let generation = self.context.generation;
        if self.dice.chance(75) {
            let words = self.words();
            self.script.content.parts.push(Part::Plain(words));
        }
        if may_write_calls && self.dice.chance(30) {
            for _ in 0..self.dice.below(1..3) {
                self.add_written_call();
            }
        }
        // In a calm run, text and structured calls are rarely combined.
        let is_written = self.script.content.parts.iter().any(|part| matches!(part, Part::Written(_)));
        let no_calls = if self.context.calm && is_written { 600 } else { 35 };
        let calls = self.dice.weighted(&[(no_calls, 0), (45, 1), (20, 2), (10, 3), (2, 6)]);
        for _ in 0..calls {
            self.add_call(generation);
        }
        if calls > 1 {
            self.count("calls: several");
        }
    }

    fn add_written_call(&mut self) {
        let generation = self.context.generation;
        let names: Vec<&str> = generation.set.iter().map(|tool| tool.name.as_str()).collect();
        let name = match names.as_slice() {
            [] => "nothing",
            _ if self.dice.chance(6) => "nothing",
            names => *self.dice.pick(names),
        };
        let (form, feature) = self.dice.weighted(&[
            (6, (Form::Tag, "written: tag")),
            (4, (Form::Line, "written: line")),
            (3, (Form::Fence, "written: fence")),
            (1, (Form::BrokenTag, "written: broken tag")),
            (2, (Form::InCode, "written: in code")),
            (2, (Form::InThought, "written: in reasoning tags")),
        ]);
        self.count(feature);
        let mut call = written(self.dice, generation, name, form);
        if form == Form::Tag
            && let Some((name, nonce)) = self.copied()
        {
            let payload = copied_payload(name, nonce);
            // A string in a result in a body is escaped twice.
            call.is_quoted = self.context.body.contains(&escaped(&escaped(&payload)));
            if call.is_quoted {
                self.count("written: copied from a result");
            }
            name.clone_into(&mut call.name);
            call.arguments = json!({"at": format!("copied{nonce}")});
            call.text = format!("<tool_call>{payload}</tool_call>");
        }
        let parts = &mut self.script.content.parts;
        parts.push(Part::Plain(String::from("\n\n")));
        parts.push(Part::Written(call));
        parts.push(Part::Plain(String::from("\n")));
    }

    /// Returns a call that a tool result quotes, or could have quoted.
    fn copied(&mut self) -> Option<(&'static str, u64)> {
        let all: Vec<(&str, u64)> = ["look", "send", "done"]
            .into_iter()
            .flat_map(|name| (0..4).map(move |nonce| (name, nonce)))
            .collect();
        let is_quoted = |(name, nonce): &&(&str, u64)| {
            self.context.body.contains(&escaped(&escaped(&copied_payload(name, *nonce))))
        };
        let quoted: Vec<(&str, u64)> = all.iter().filter(is_quoted).copied().collect();
        match self.dice.below(0..100) {
            0..60 if !quoted.is_empty() => Some(*self.dice.pick(&quoted)),
            60..70 => Some(*self.dice.pick(&all)),
            _ => None,
        }
    }

    fn add_call(&mut self, generation: &Generation) {
        let nonce = self.dice.number() % 1_000_000;
        let normal = generation.names(ToolKind::Normal);
        let exit = generation.names(ToolKind::Exit);
        let normal_calls = if self.context.calm { 400 } else { 70 };
        let kind = self.dice.weighted(&[(normal_calls, 0), (14, 1), (5, 2), (6, 3), (4, 4), (1, 5)]);
        let (name, arguments, feature) = match kind {
            1 if !exit.is_empty() => {
                let name = *self.dice.pick(&exit);
                (name, Some(generation.arguments(name, nonce)), "call: exit")
            }
            2 => ("nothing", Some(json!({})), "call: unknown"),
            3 if !normal.is_empty() => {
                (*self.dice.pick(&normal), Some(json!({"at": true})), "call: breaks its schema")
            }
            4 if !normal.is_empty() => (*self.dice.pick(&normal), None, "call: malformed"),
            5 if !exit.is_empty() => (*self.dice.pick(&exit), None, "call: malformed exit"),
            _ if !normal.is_empty() => {
                let name = *self.dice.pick(&normal);
                (name, Some(generation.arguments(name, nonce)), "call: normal")
            }
            _ => ("nothing", Some(json!({"n": nonce})), "call: unknown"),
        };
        self.count(feature);
        let (id, feature) = match self.dice.below(0..6) {
            0 => (None, "id: none"),
            1 => (Some(String::from("samesame1")), "id: repeated"),
            2 => (Some(format!("call_{nonce}")), "id: other format"),
            _ => (Some(format!("c{:08}", nonce % 100_000_000)), "id: good"),
        };
        self.count(feature);
        let text = match &arguments {
            Some(arguments) => arguments.to_string(),
            None => String::from("{\"at\": oops}"),
        };
        self.script.content.calls.push(ScriptedCall { name: name.to_owned(), arguments, text, id });
    }

    fn add_loop(&mut self) {
        self.script.content.loops = true;
        let line = "this line is as long as it must be and comes again\n";
        self.script.content.parts.push(Part::Plain(format!("\n{}", line.repeat(20))));
    }

    fn add_noise(&mut self) {
        self.script.content.is_noise = true;
        let noise: String = (0..self.dice.below(1..20)).map(|_| *self.dice.pick(&NOISE)).collect();
        self.script.content.parts.push(Part::Plain(noise));
    }

    fn cut_call(&mut self) {
        let name =
            self.context.generation.names(ToolKind::Normal).first().copied().unwrap_or("look").to_owned();
        let text = String::from("{\"at\": \"n1");
        let id = Some(String::from("cutcutcut"));
        self.script.content.calls.push(ScriptedCall { name, arguments: None, text, id });
        self.script.content.end = ReplyEnd::Truncated;
    }

    pub(super) fn push(&mut self, data: &str, frame: Frame) {
        let (prefix, end) = *self.dice.pick(&[
            ("data: ", "\n\n"),
            ("data: ", "\n\n"),
            ("data:", "\n\n"),
            ("data: ", "\r\n\r\n"),
            (": a comment\n\ndata: ", "\n\n"),
            ("event: message\nid: 3\ndata: ", "\n\n"),
        ]);
        self.script.frames.push(Frame { bytes: format!("{prefix}{data}{end}").into_bytes(), ..frame });
    }

    fn write_empty(&mut self) {
        self.script.content.end = ReplyEnd::Empty;
        let bytes: &[u8] = self.dice.pick::<&[u8]>(&[b"", b"data: [DONE]\n\n", b": ping\n\n", b"\n\n"]);
        let is_last = bytes.starts_with(b"data");
        self.script.frames.push(Frame { bytes: bytes.to_vec(), is_last, ..Frame::default() });
    }

    fn write_garbage(&mut self) {
        self.script.content.end = ReplyEnd::Empty;
        let random: Vec<u8> = (0..200).map(|_| self.dice.number() as u8).collect();
        let garbage: [&[u8]; 4] =
            [b"<html><title>Hello</title></html>", b"data: {oops\n\ndata: ]\n\n", b"it works!", &random];
        let bytes = self.dice.pick(&garbage).to_vec();
        self.script.content.is_noise = true;
        self.script.frames.push(Frame { bytes, ..Frame::default() });
    }

    /// Writes comments only, like a server that is alive but sends no tokens.
    fn write_comments(&mut self) {
        self.script.content.end = ReplyEnd::Incomplete;
        if self.dice.chance(50) {
            self.script.content.parts.push(Part::Plain(String::from("so far")));
            self.write_text("so far");
        }
        let before = self.context.stall.mul_f64(0.7);
        let ping = Frame { before, bytes: b": ping\n\n".to_vec(), ..Frame::default() };
        self.script.frames.extend(std::iter::repeat_n(ping, 40));
        self.script.tail = Tail::Silence;
    }

    /// Adds pauses between the frames.
    fn pace(&mut self) {
        if self.script.frames.iter().any(|frame| !frame.before.is_zero()) {
            return;
        }
        let most = *self.dice.pick(&[0, 0, 20, 200, 3_000, 40_000]);
        for frame in &mut self.script.frames {
            if most > 0 && self.dice.chance(30) {
                frame.before = self.dice.ms(0..most);
            }
        }
    }
}

/// Returns a call of `name` written as text.
pub(super) fn written(dice: &mut Dice, generation: &Generation, name: &str, form: Form) -> Written {
    let nonce = dice.number() % 1_000_000;
    let arguments = if dice.chance(85) { generation.arguments(name, nonce) } else { json!({"at": [nonce]}) };
    let named = json!({"name": name, "arguments": arguments});
    let line = json!({"tool": name, "arguments": arguments});
    let text = match form {
        Form::Tag => format!("<tool_call>{named}</tool_call>"),
        Form::BrokenTag => format!("<tool_call>{{\"name\" oops {nonce}}}</tool_call>"),
        Form::Line => format!("{line}\n"),
        Form::Fence => format!("```json\n{line}\n```\n"),
        Form::InCode => format!("```html\n<tool_call>{named}</tool_call>\n```\n"),
        Form::InThought => format!("<think><tool_call>{named}</tool_call></think>\n"),
    };
    Written { text, name: name.to_owned(), arguments, form, is_quoted: false }
}

/// Splits `text` into pieces.
pub(super) fn pieces(dice: &mut Dice, text: &str) -> Vec<String> {
    let size = *dice.pick(&[1, 3, 10, 60, 1000]);
    // Tiny pieces of a long text only take time.
    let size = size.max(text.chars().count() / 30);
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(size.max(1)).map(|chunk| chunk.iter().collect()).collect()
}

/// Escapes `text` for a JSON string.
fn escaped(text: &str) -> String {
    let quoted = json!(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
