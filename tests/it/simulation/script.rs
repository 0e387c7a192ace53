//! What the server does with one request: a head, frames with pauses between them, an end.

use std::time::Duration;

use deftool::chat::Api;
use deftool::schema::ToolKind;
use serde_json::{Value, json};

use super::dice::Dice;
use super::reply::{Reply, written};
use super::swaps::Refused;
use super::tools::Generation;

/// What every reply says that its prompt has, if it says so.
pub(super) const PROMPT_TOKENS: u64 = 11;

/// What a server knows of a request that it answers.
pub(super) struct Asked<'a> {
    pub(super) generation: &'a Generation,
    /// The body as text, for what may be copied out of it.
    pub(super) body: &'a str,
    pub(super) streams: bool,
    pub(super) attempt: u32,
    pub(super) stall: Duration,
    /// Little goes wrong in this world.
    pub(super) calm: bool,
    pub(super) api: Api,
}

/// One exchange.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// What it is counted as.
    pub(super) features: Vec<&'static str>,
    /// When the head comes; `None`: never.
    pub(super) head_after: Option<Duration>,
    pub(super) head: Head,
    /// What of the request is refused by name.
    pub(super) refused: Option<Refused>,
    pub(super) frames: Vec<Frame>,
    pub(super) tail: Tail,
    pub(super) said: Said,
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
    /// The connection breaks before the head is whole.
    Broken,
    /// A bug of the transport's.
    Panics,
}

/// What follows the last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    End,
    Break,
    Silence,
}

/// Bytes that mean something together.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools)] // independent facts, not a state machine
pub(super) struct Frame {
    /// The pause before it.
    pub(super) before: Duration,
    pub(super) bytes: Vec<u8>,
    /// Bytes of the reply's text in it.
    pub(super) text: usize,
    pub(super) is_token: bool,
    pub(super) is_progress: bool,
    pub(super) is_usage: bool,
    pub(super) is_finish: bool,
    /// `[DONE]` or an error: nothing that follows is read.
    pub(super) is_last: bool,
}

/// What the reply means.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    pub(super) parts: Vec<Part>,
    pub(super) calls: Vec<SaidCall>,
    /// How it ends, should nothing interfere.
    pub(super) fate: Fate,
    /// What exactly the text is cannot be told from here.
    pub(super) is_noise: bool,
    pub(super) loops: bool,
}

impl Said {
    pub(super) fn text(&self) -> String {
        self.parts.iter().map(Part::text).collect()
    }
}

/// How a reply is to be judged by its end alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Fate {
    #[default]
    Whole,
    Incomplete,
    /// Cut inside the last call's arguments.
    Truncated,
    ServerError,
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
    /// It stands in an earlier message.
    pub(super) is_quoted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `<tool_call>`: read unless the fallback is off.
    Tag,
    /// A tag without its JSON.
    BrokenTag,
    /// Read only under `on`.
    Line,
    Fence,
    /// In a code block of another language: never a call.
    InCode,
    /// In a think block: never a call.
    InThought,
}

#[derive(Debug, Clone)]
pub(super) struct SaidCall {
    pub(super) name: String,
    /// `None`: they are not JSON.
    pub(super) arguments: Option<Value>,
    pub(super) text: String,
    pub(super) id: Option<String>,
}

impl Script {
    pub(super) fn write(dice: &mut Dice, asked: &Asked<'_>) -> Self {
        if !asked.streams {
            return Self::explanation(dice);
        }
        let (mut script, feature) = Self::head(dice, asked);
        script.features.push(feature);
        match script.head {
            Head::Ok => Reply { dice, asked, script }.write(),
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
            said: Said::default(),
        }
    }

    fn status(status: u16, body: &Value) -> Self {
        let mut script = Self::empty(Head::Status { status, retry_after: None });
        script.frames.push(Frame { bytes: body.to_string().into_bytes(), ..Frame::default() });
        script
    }

    fn head(dice: &mut Dice, asked: &Asked<'_>) -> (Self, &'static str) {
        let error = |message: &str| json!({"error": {"message": message}});
        // Later tries fare better, as a rule.
        let ok = match (asked.calm, asked.attempt > 1 && dice.chance(50)) {
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
            (if asked.calm { 80 } else { 16 }, 11),
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
                let (refused, status, body, feature) = Refused::draw(dice, asked.body);
                let mut script = Self::status(status, &body);
                script.refused = Some(refused);
                (script, feature)
            }
            13 => return (Self::failed_generation(dice, asked), "head: failed generation"),
            _ => (Self::empty(Head::Panics), "head: transport panics"),
        };
        if dice.chance(25) && script.head_after.is_some() {
            script.head_after = Some(dice.ms(0..3_000));
        }
        (script, feature)
    }

    /// A call that the server could not parse, sent back as text.
    fn failed_generation(dice: &mut Dice, asked: &Asked<'_>) -> Self {
        let mut said = Said { fate: Fate::ServerError, ..Said::default() };
        let normal = asked.generation.names(ToolKind::Normal);
        said.parts.push(if dice.chance(50) && !normal.is_empty() {
            let name = *dice.pick(&normal);
            Part::Written(written(dice, asked.generation, name, Form::Tag))
        } else {
            Part::Plain(String::from("no call at all"))
        });
        let body = json!({"error": {"message": "it does not parse", "failed_generation": said.text()}});
        let mut script = Self::status(400, &body);
        script.said = said;
        script
    }

    /// The answer to the question why a stream was empty.
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
        script.features.push("an empty stream is asked about");
        script.said.fate = Fate::Empty;
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
