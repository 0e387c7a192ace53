//! The script of an exchange: a head, frames with pauses, an end.

use std::time::Duration;

use deftool_chat::Api;
use deftool_lang::schema::ToolKind;
use serde_json::{Value, json};

use super::dice::Dice;
use super::refusals::RefusedFeature;
use super::reply::{Reply, written};
use super::tools::Generation;

/// The prompt tokens in every token count.
pub(super) const PROMPT_TOKENS: u64 = 11;

/// The request, as the scripted server sees it.
pub(super) struct ExchangeContext<'a> {
    pub(super) generation: &'a Generation,
    /// The body as text, from which calls may be copied.
    pub(super) body: &'a str,
    pub(super) streams: bool,
    pub(super) attempt: u32,
    pub(super) stall: Duration,
    /// Few errors occur in this run.
    pub(super) calm: bool,
    pub(super) api: Api,
}

/// The script of an exchange.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// Its coverage names.
    pub(super) features: Vec<String>,
    /// The delay of the head. `None`: the head is never sent.
    pub(super) head_after: Option<Duration>,
    pub(super) head: Head,
    /// The request feature that the answer refuses.
    pub(super) refused: Option<RefusedFeature>,
    pub(super) frames: Vec<Frame>,
    pub(super) tail: Tail,
    pub(super) content: ReplyContent,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Head {
    Ok,
    Status {
        status: u16,
        retry_after: Option<Duration>,
    },
    Refused,
    Unreachable,
    /// The connection breaks before the end of the head.
    Broken,
    /// The transport panics.
    Panics,
}

/// The end of the body after the last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    End,
    Break,
    Silence,
}

/// A unit of the body, such as an event.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools)] // independent facts, not a state machine
pub(super) struct Frame {
    /// The pause before the frame.
    pub(super) before: Duration,
    pub(super) bytes: Vec<u8>,
    /// The size of the reply's text in the frame, in bytes.
    pub(super) text: usize,
    pub(super) is_token: bool,
    pub(super) is_progress: bool,
    pub(super) is_usage: bool,
    pub(super) is_finish: bool,
    /// `[DONE]` or an error. Nothing after it is read.
    pub(super) is_last: bool,
}

/// The content of a reply.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplyContent {
    pub(super) parts: Vec<Part>,
    pub(super) calls: Vec<ScriptedCall>,
    /// The end, if nothing interrupts the reply.
    pub(super) end: ReplyEnd,
    /// The resulting text is unpredictable.
    pub(super) is_noise: bool,
    pub(super) loops: bool,
}

impl ReplyContent {
    pub(super) fn text(&self) -> String {
        self.parts.iter().map(Part::text).collect()
    }
}

/// The end of a reply, which determines its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ReplyEnd {
    #[default]
    Whole,
    Incomplete,
    /// Truncated inside the last call's arguments.
    Truncated,
    ServerError,
    /// An error before any content, which may be temporary.
    Unavailable,
    Overflow,
    Empty,
}

#[derive(Debug, Clone)]
pub(super) enum Part {
    Plain(String),
    Written(Written),
}

impl Part {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Written(written) => &written.text,
        }
    }
}

/// A call written as text.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) text: String,
    pub(super) name: String,
    pub(super) arguments: Value,
    pub(super) form: Form,
    /// Whether it is copied from an earlier message.
    pub(super) is_quoted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `<tool_call>`: recognized unless the fallback is off.
    Tag,
    /// A tag with invalid JSON.
    BrokenTag,
    /// Recognized only with the fallback `on`.
    Line,
    Fence,
    /// In a code block of another language: never a call.
    InCode,
    /// In a think block: never a call.
    InThought,
}

#[derive(Debug, Clone)]
pub(super) struct ScriptedCall {
    pub(super) name: String,
    /// `None` if they are not valid JSON.
    pub(super) arguments: Option<Value>,
    pub(super) text: String,
    pub(super) id: Option<String>,
}

impl Script {
    pub(super) fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|own| own == feature)
    }

    pub(super) fn write(dice: &mut Dice, context: &ExchangeContext<'_>) -> Self {
        if !context.streams {
            return Self::explanation(dice);
        }
        let (mut script, feature) = Self::head(dice, context);
        script.features.push(feature.to_owned());
        match script.head {
            Head::Ok => Reply { dice, context, script }.write(),
            Head::Status { .. } => {
                script.pace_error(dice);
                script
            }
            Head::Refused | Head::Unreachable | Head::Broken | Head::Panics => script,
        }
    }

    fn empty(head: Head) -> Self {
        Self {
            features: Vec::new(),
            head_after: Some(Duration::ZERO),
            head,
            refused: None,
            frames: Vec::new(),
            tail: Tail::End,
            content: ReplyContent::default(),
        }
    }

    fn status(status: u16, body: &Value) -> Self {
        let mut script = Self::empty(Head::Status { status, retry_after: None });
        script.frames.push(Frame { bytes: body.to_string().into_bytes(), ..Frame::default() });
        script
    }

    fn head(dice: &mut Dice, context: &ExchangeContext<'_>) -> (Self, &'static str) {
        let error = |message: &str| json!({"error": {"message": message}});
        // Later attempts usually succeed.
        let ok = match (context.calm, context.attempt > 1 && dice.chance(50)) {
            (true, _) => 1_600,
            (false, true) => 400,
            (false, false) => 160,
        };
        let which = dice.weighted(&[
            (ok, 0),
            (6, 1),
            (4, 2),
            (3, 3),
            (4, 4),
            (1, 5),
            (1, 6),
            (2, 7),
            (2, 8),
            (2, 9),
            (2, 10),
            (if context.calm { 80 } else { 16 }, 11),
            (2, 13),
            (1, 14),
        ]);
        let (mut script, feature) = match which {
            0 => (Self::empty(Head::Ok), "head: 200"),
            1 => {
                let mut script = Self::status(429, &error("slow down"));
                let ms = *dice.pick(&[None, Some(0), Some(200), Some(5_000), Some(60_000), Some(61_000)]);
                let retry_after = ms.map(Duration::from_millis);
                script.head = Head::Status { status: 429, retry_after };
                (script, "head: 429")
            }
            2 => (Self::status(*dice.pick(&[408, 409, 503]), &error("busy")), "head: 408, 409, 503"),
            3 => (Self::status(503, &error("Loading model")), "head: loading"),
            4 => (Self::empty(Head::Refused), "head: refused"),
            5 => (Self::empty(Head::Unreachable), "head: unreachable"),
            6 => (Self::empty(Head::Broken), "head: broken"),
            7 => {
                let mut script = Self::empty(Head::Ok);
                script.head_after = None;
                (script, "head: never")
            }
            8 => {
                let body = error("the request exceeds the available context size, try increasing it");
                (Self::status(400, &body), "head: context overflow")
            }
            9 => (Self::status(*dice.pick(&[401, 404, 500, 502]), &error("no")), "head: 4xx, 5xx"),
            10 => (Self::status(302, &json!({})), "head: redirect"),
            11 => {
                let (refused, status, body, feature) = RefusedFeature::draw(dice, context.body);
                let mut script = Self::status(status, &body);
                script.refused = Some(refused);
                (script, feature)
            }
            13 => return (Self::failed_generation(dice, context), "head: failed generation"),
            _ => (Self::empty(Head::Panics), "head: transport panics"),
        };
        if dice.chance(25) && script.head_after.is_some() {
            script.head_after = Some(dice.ms(0..3_000));
        }
        (script, feature)
    }

    /// Returns an error with the text of a call that the server could not parse.
    fn failed_generation(dice: &mut Dice, context: &ExchangeContext<'_>) -> Self {
        let mut content = ReplyContent { end: ReplyEnd::ServerError, ..ReplyContent::default() };
        let normal = context.generation.names(ToolKind::Normal);
        content.parts.push(if dice.chance(50) && !normal.is_empty() {
            let name = *dice.pick(&normal);
            Part::Written(written(dice, context.generation, name, Form::Tag))
        } else {
            Part::Plain(String::from("no call at all"))
        });
        let body = json!({"error": {"message": "it does not parse", "failed_generation": content.text()}});
        let mut script = Self::status(400, &body);
        script.content = content;
        script
    }

    /// Returns the answer to the request without streaming that follows an empty stream.
    fn explanation(dice: &mut Dice) -> Self {
        let mut script = match dice.below(0..4) {
            0 => Self::status(400, &json!({"error": {"message": "the template fails"}})),
            1 => Self::empty(Head::Refused),
            2 => {
                let mut script = Self::empty(Head::Ok);
                script.head_after = None;
                script
            }
            _ => Self::empty(Head::Ok),
        };
        script.features.push(String::from("an empty stream is probed"));
        script.content.end = ReplyEnd::Empty;
        script
    }

    fn pace_error(&mut self, dice: &mut Dice) {
        match dice.below(0..12) {
            0 => self.tail = Tail::Silence,
            1 => self.tail = Tail::Break,
            2 => {
                for frame in &mut self.frames {
                    frame.before = dice.ms(0..20_000);
                }
            }
            _ => {}
        }
    }
}
