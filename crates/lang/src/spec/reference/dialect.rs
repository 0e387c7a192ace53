//! The keys of `defdialect`.

use super::key::{Key, KeyValue, Plist, key_of};

const SOURCE: Key = key_of("source", KeyValue::Text, "Where this is documented or was seen, with the date.");

pub(super) const DIALECT: [Key; 19] = [
    key_of("name", KeyValue::Text, "The name, which `:dialect` of a worker selects."),
    key_of("title", KeyValue::Text, "The name in messages. Default: the name."),
    key_of("like", KeyValue::Dialect, "The dialect whose rows follow these. Default: `openai`."),
    key_of("hosts", KeyValue::List, "The hosts of the vendor. `\".example.com\"`: every host of the domain."),
    key_of(
        "model-names",
        KeyValue::List,
        "Beginnings of words in the names of the vendor's models, for servers whose dialect is unknown.",
    ),
    key_of("probes", KeyValue::Plists(Plist::Probe), "What only this server program answers."),
    key_of(
        "details",
        KeyValue::Words(&["llama-cpp", "ollama", "lm-studio"]),
        "The server program whose pages describe a model.",
    ),
    key_of("local", KeyValue::Flag, "`t`: a program on the user's machine, whose errors are permanent."),
    key_of(
        "native-calls",
        KeyValue::Flag,
        "`t`: the server returns all calls itself, so that none is read from text.",
    ),
    key_of(
        "api",
        KeyValue::Words(&["chat-completions", "responses", "messages"]),
        "The API of a worker without `:api`.",
    ),
    key_of("provider", KeyValue::Text, "The name of the provider in telemetry."),
    key_of(
        "reasoning",
        KeyValue::Words(&REASONING),
        "How long the server reads the reasoning of earlier replies.",
    ),
    key_of("image-limits", KeyValue::Plist(Plist::ImageLimits), "The images of one request."),
    key_of("features", KeyValue::Plists(Plist::Feature), "Features in which servers differ."),
    key_of(
        "errors",
        KeyValue::Plists(Plist::ErrorRow),
        "What errors mean, and the changes that a request needs after them. The first row that matches counts.",
    ),
    key_of("finish", KeyValue::Plists(Plist::Finish), "What finish reasons mean."),
    key_of("delays", KeyValue::Plists(Plist::Delay), "Where an error names a delay."),
    key_of("models", KeyValue::Plists(Plist::Model), "What is known of models, on any server."),
    SOURCE,
];

pub(super) const PROBE: [Key; 4] = [
    key_of("header", KeyValue::Text, "The `Server` header of the list of models."),
    key_of("owner", KeyValue::Text, "`owned_by` of the first model."),
    key_of("page", KeyValue::Text, "A page beside the API."),
    key_of("has", KeyValue::Text, "The JSON pointer to a member of the page."),
];

pub(super) const FEATURE: [Key; 4] = [
    key_of("feature", KeyValue::Words(&FEATURES), "The feature."),
    key_of(
        "support",
        KeyValue::Words(&["supported", "ignored", "rejected"]),
        "What the server does with it.",
    ),
    key_of("detail", KeyValue::Text, "The exact behaviour, as a clause."),
    SOURCE,
];

pub(super) const ERROR: [Key; 9] = [
    key_of("says", KeyValue::List, "Texts that all occur in the message, in any case."),
    key_of("any", KeyValue::List, "Texts of which one occurs in the message."),
    key_of(
        "unknown-member",
        KeyValue::List,
        "Parts of names: the message reports a member with one of them as unknown.",
    ),
    key_of("status", KeyValue::Statuses, "The HTTP status: one of these."),
    key_of("code", KeyValue::List, "The `code`, `type` or `status` in the body: one of these."),
    key_of("means", KeyValue::Words(&MEANINGS), "What the error means."),
    key_of(
        "send",
        KeyValue::WordList(&CHANGES),
        "The changes to the request, of which the first one that changes it is sent.",
    ),
    SOURCE,
    key_of("example", KeyValue::Plist(Plist::Example), "What the server sends."),
];

pub(super) const EXAMPLE: [Key; 6] = [
    key_of("status", KeyValue::Status, "The HTTP status. Default: 400."),
    key_of("message", KeyValue::Text, "The message, in the form of OpenAI's errors."),
    key_of("code", KeyValue::Text, "The `code` beside the message."),
    key_of("type", KeyValue::Text, "The `type` beside the message."),
    key_of("body", KeyValue::Any, "The whole body."),
    key_of("wait", KeyValue::Quantity, "The delay that the body names."),
];

pub(super) const FINISH: [Key; 3] = [
    key_of("reasons", KeyValue::List, "The values, in any case."),
    key_of(
        "means",
        KeyValue::Words(&["finished", "called", "paused", "cut-short", "filtered", "failed"]),
        "What they mean.",
    ),
    SOURCE,
];

pub(super) const DELAY: [Key; 4] = [
    key_of("says", KeyValue::Text, "The text before the delay, such as `\"try again in\"`."),
    key_of("member", KeyValue::Text, "The member of the body that holds the delay."),
    SOURCE,
    key_of("example", KeyValue::Plist(Plist::Example), "What the server sends."),
];

pub(super) const MODEL: [Key; 6] = [
    key_of("names", KeyValue::List, "Beginnings of words in the names of the models."),
    key_of("forms", KeyValue::WordList(&FORMS), "The forms in which the models write calls as text."),
    key_of("call-ids", KeyValue::Words(&CALL_IDS), "The ids of calls that the model's servers take."),
    key_of(
        "reasoning",
        KeyValue::Words(&REASONING),
        "How long the model reads the reasoning of earlier replies.",
    ),
    key_of("max-output", KeyValue::Number, "The most tokens of one reply."),
    SOURCE,
];

pub(super) const IMAGE_LIMITS: [Key; 6] = [
    key_of("size", KeyValue::Number, "The largest image, in bytes of base64."),
    key_of("side", KeyValue::Number, "The largest width or height, in pixels."),
    key_of("count", KeyValue::Number, "The most images."),
    key_of("many", KeyValue::Number, "The number of images above which `:many-side` holds."),
    key_of("many-side", KeyValue::Number, "The largest width or height of many images, in pixels."),
    key_of("total", KeyValue::Number, "The size of all images, in bytes of base64."),
];

/// Features in which servers differ.
const FEATURES: [&str; 10] = [
    "named-tool",
    "stream-usage",
    "parallel-tool-calls",
    "prompt-progress",
    "tools-for-any-model",
    "early-arguments",
    "overflow-refusal",
    "free-on-disconnect",
    "images",
    "audio",
];

/// The meanings of errors.
const MEANINGS: [&str; 9] = [
    "overflow",
    "quota",
    "busy",
    "temporary",
    "loading",
    "unauthorized",
    "rejected",
    "unparsed-call",
    "no-tools",
];

const REASONING: [&str; 2] = ["always", "until-next-prompt"];

const CALL_IDS: [&str; 3] = ["forty-bytes", "name", "nine-letters"];

/// The changes to a request.
const CHANGES: [&str; 23] = [
    "use-max-completion-tokens",
    "use-max-tokens",
    "tool-alone",
    "no-tool-choice",
    "call-pairs",
    "system-first",
    "system-as-user",
    "plain-roles",
    "empty-content",
    "use-responses",
    "empty-reasoning",
    "no-signature-check",
    "no-state",
    "no-earlier-state",
    "no-encrypted-reasoning",
    "no-item-ids",
    "portable-ids",
    "text-or-calls",
    "no-result-images",
    "no-images",
    "no-new-images",
    "no-earlier-images",
    "typed-schemas",
];

/// The forms of calls that are written as text.
const FORMS: [&str; 52] = [
    "hermes",
    "qwen3-coder",
    "glm",
    "long-cat",
    "hunyuan3",
    "k2-horizon",
    "functionary31",
    "functionary32",
    "mistral",
    "python-tag",
    "deep-seek",
    "deep-seek-dsml",
    "deep-seek-dsml41",
    "step3",
    "kimi",
    "kimi-k3",
    "solar",
    "command-r",
    "command-r7b",
    "gemma-tool-code",
    "function-gemma",
    "gemma4",
    "granite",
    "lm-studio",
    "mini-max-m1",
    "mini-max-m2",
    "mini-max-m3",
    "mini-max-m3-plain",
    "mini-max-arrows",
    "anthropic",
    "anthropic-namespace",
    "anthropic-tags",
    "muse",
    "dots",
    "grok",
    "mini-cpm5",
    "olmo3",
    "apertus",
    "intern-lm2",
    "giga-chat3",
    "harmony",
    "harmony-stripped",
    "nemotron",
    "lfm2",
    "fire-function",
    "json-line",
    "json-fence",
    "python-code",
    "xlam",
    "pythonic-list",
    "hermes-other",
    "named",
];
