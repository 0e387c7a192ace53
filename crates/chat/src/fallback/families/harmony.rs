//! `<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}<|call|>`: gpt-oss, in OpenAI's harmony
//! format. The recipient may also precede the channel.
//!
//! The `analysis` channel is the model's reasoning (`tags`), so it contains no calls, regardless of the recipient.
//! Commentary without a recipient is text.
//!
//! A server that removes the special tokens leaves `assistantcommentary to=functions.name json{…}`, after the analysis
//! or at the start of the reply. If the start of the message was in the prompt, the reply may begin with the recipient.
//! `channels` then finds the reasoning. Source: openai/harmony, docs/format.md; replies of gpt-oss through `OpenRouter`
//! and MLX, November 2026.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static HARMONY: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|call|>"],
    steps: steps! {
        OPEN                 None Prose     [
            "<|start|>assistant" => CHANNEL_OR_RECIPIENT, "<|channel|>commentary" => RECIPIENT
        ]
        CHANNEL_OR_RECIPIENT Line Prose     [
            "<|channel|>commentary" => RECIPIENT, "to=" => NAME_BEFORE_CHANNEL
        ]
        NAME_BEFORE_CHANNEL  None Prose     [Word(Name) => CHANNEL]
        CHANNEL              Line Prose     ["<|channel|>commentary" => TYPE]
        RECIPIENT            Line Prose     ["to=" => NAME]
        NAME                 None Prose     [Word(Name) => TYPE]
        // The type of the arguments is ignored: they are always JSON.
        TYPE                 Line Prose     [
            "<|constrain|>" => TYPE_NAME, "<|message|>" => ARGUMENTS, Word(Nothing) => MESSAGE
        ]
        TYPE_NAME            Line Prose     [Word(Nothing) => MESSAGE]
        MESSAGE              Line Prose     ["<|message|>" => ARGUMENTS]
        ARGUMENTS            Any  Malformed [Object(Arguments) => CLOSE]
        CLOSE                Any  Complete  ["<|call|>" => DONE]
    },
};

pub(super) static STRIPPED: Form = Form {
    marked: true,
    start: StartPosition::Channel,
    closes: &[],
    steps: steps! {
        OPEN             None Prose     [
            "assistant" => CHANNEL, "commentary" => RECIPIENT, "to=functions." => NAME_AND_CHANNEL
        ]
        CHANNEL          Line Prose     ["commentary" => RECIPIENT, "to=functions." => NAME_AND_CHANNEL]
        RECIPIENT        Line Prose     ["to=functions." => NAME]
        NAME             None Prose     [Word(Name) => TYPE]
        NAME_AND_CHANNEL None Prose     [Word(Recipient) => TYPE]
        // The remains of the channel, the type and the start of the message.
        TYPE             Line Prose     [
            "<|channel|>commentary" => TYPE, "<|constrain|>" => TYPE_NAME, "<|message|>" => ARGUMENTS,
            Word(Nothing) => MESSAGE, Object(Arguments) => CLOSE
        ]
        TYPE_NAME        None Prose     [Word(Nothing) => MESSAGE]
        MESSAGE          Any  Prose     [
            "<|message|>" | "=" => ARGUMENTS, Object(Arguments) => CLOSE, Word(Nothing) => ARGUMENTS
        ]
        ARGUMENTS        Any  Prose     [Object(Arguments) => CLOSE]
        CLOSE            Any  Complete  [
            "<|call|>" => DONE, "assistantcommentary to=functions." => NAME,
            "assistant to=functions." => NAME_AND_CHANNEL
        ]
    },
};
