//! The names of the semantic conventions. See the documentation of the crate for their version.

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const AGENT: &str = "gen_ai.agent.name";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const STREAM: &str = "gen_ai.request.stream";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const SERVER_ADDRESS: &str = "server.address";
pub(crate) const SERVER_PORT: &str = "server.port";
pub(crate) const RESEND_COUNT: &str = "http.request.resend_count";
/// Not in the conventions.
pub(crate) const REQUEST_ID: &str = "deftool.request.id";
pub(crate) const JOB_NAME: &str = "deftool.job.name";

/// The members of a request body that are attributes of a `chat` span.
pub(crate) const PARAMETERS: [(&str, &str); 9] = [
    ("frequency_penalty", "gen_ai.request.frequency_penalty"),
    ("max_completion_tokens", "gen_ai.request.max_tokens"),
    ("max_output_tokens", "gen_ai.request.max_tokens"),
    ("max_tokens", "gen_ai.request.max_tokens"),
    ("presence_penalty", "gen_ai.request.presence_penalty"),
    ("seed", "gen_ai.request.seed"),
    ("temperature", "gen_ai.request.temperature"),
    ("top_k", "gen_ai.request.top_k"),
    ("top_p", "gen_ai.request.top_p"),
];

/// The parameters whose type is an integer. The others are floating-point numbers.
pub(crate) const INTEGERS: [&str; 2] = ["gen_ai.request.max_tokens", "gen_ai.request.seed"];

pub(crate) const TOKEN_USAGE: &str = "gen_ai.client.token.usage";
pub(crate) const CHAT_DURATION: &str = "gen_ai.client.operation.duration";
pub(crate) const FIRST_CHUNK: &str = "gen_ai.client.operation.time_to_first_chunk";
pub(crate) const OUTPUT_CHUNK: &str = "gen_ai.client.operation.time_per_output_chunk";
pub(crate) const TOOL_DURATION: &str = "gen_ai.execute_tool.duration";
pub(crate) const AGENT_DURATION: &str = "gen_ai.invoke_agent.duration";

/// Bucket boundaries of durations, in seconds.
pub(crate) const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Bucket boundaries of the durations of agents, in seconds.
pub(crate) const AGENT_SECONDS: [f64; 13] =
    [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
/// Bucket boundaries of numbers of tokens.
pub(crate) const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
