//! Tool calls that differ from the API specification.

use serde_json::{Map, Value, json};

use super::edit::{
    as_function_call, cut_call, each_entry, entry_arguments, entry_name, finish_of, glue_calls, has_entries,
    interleave, is_start, join_call_deltas, set, set_finish, set_function, split_name, whole_calls,
};
use crate::completions::delta_chunk;
use crate::fault::{Fault, Needs, chunks};
use crate::model::Chunk;

pub(super) static TABLE: &[Fault] = &[
    chunks(
        "index-missing",
        "calls have no `index`",
        "Ollama before 0.4.7, Gemini's compatible API",
        Needs::TwoCalls,
        |chunks| {
            each_entry(chunks, |entry, _| {
                entry.remove("index");
            })
        },
    ),
    chunks("index-always-zero", "every call has the index 0", "Ollama, Gemini", Needs::TwoCalls, |chunks| {
        each_entry(chunks, |entry, _| set(entry, "index", 0))
    }),
    chunks(
        "index-reused-without-ids",
        "every call has the index 0 and no id",
        "user interfaces that forward calls",
        Needs::TwoCalls,
        |chunks| {
            each_entry(chunks, |entry, _| {
                set(entry, "index", 0);
                entry.remove("id");
            })
        },
    ),
    chunks(
        "index-twice-in-chunk",
        "two deltas of one call are in one chunk",
        "vLLM with speculative decoding",
        Needs::Call,
        |chunks| join_call_deltas(chunks, 2),
    )
    .chat_only(),
    chunks("id-missing", "calls have no id", "NVIDIA NIM, StepFun, Ollama", Needs::TwoCalls, |chunks| {
        each_entry(chunks, |entry, _| {
            entry.remove("id");
        })
    }),
    chunks(
        "id-empty-later",
        "later deltas of a call have the id \"\"",
        "DashScope",
        Needs::TwoCalls,
        |chunks| {
            each_entry(chunks, |entry, is_first| {
                if !is_first {
                    set(entry, "id", "");
                }
            })
        },
    )
    .openai_only(),
    chunks(
        "id-changes",
        "every delta of a call has a different id and an empty name",
        "LM Studio with Gemma",
        Needs::Call,
        |chunks| {
            let mut count = 0;
            each_entry(chunks, |entry, is_first| {
                count += 1;
                set(entry, "id", format!("call_{count}"));
                if !is_first {
                    set_function(entry, "name", json!(""));
                }
            })
        },
    )
    .openai_only(),
    chunks(
        "id-late",
        "the id of a call is sent with its second delta",
        "several gateways",
        Needs::Call,
        |chunks| {
            let mut late = None;
            each_entry(chunks, |entry, is_first| {
                if is_first {
                    late = entry.remove("id");
                } else if let Some(id) = late.take() {
                    set(entry, "id", id);
                }
            })
        },
    )
    .openai_only(),
    chunks("id-number", "ids are numbers", "deepin's gateway", Needs::TwoCalls, |chunks| {
        let mut count = 0;
        each_entry(chunks, |entry, is_first| {
            if is_first {
                count += 1;
                set(entry, "id", count);
            }
        })
    }),
    chunks("id-duplicate", "two calls have the same id", "Kimi, MiMo, relays", Needs::TwoCalls, |chunks| {
        each_entry(chunks, |entry, is_first| {
            if is_first {
                set(entry, "id", "call_0");
            }
        })
    }),
    chunks(
        "name-repeated",
        "id, type and name are repeated in every delta",
        "llama.cpp before 2025-05, llama-cpp-python",
        Needs::Call,
        |chunks| {
            let mut first = Map::new();
            each_entry(chunks, |entry, is_first| {
                if is_first {
                    first.clone_from(entry);
                } else {
                    for member in ["id", "type"] {
                        set(entry, member, first.get(member).cloned());
                    }
                    let name = first.get("function").and_then(|function| function.get("name")).cloned();
                    set_function(entry, "name", name.into());
                }
            })
        },
    )
    .chat_only(),
    chunks("name-split", "the name is split over two deltas", "allowed by the API", Needs::Call, |chunks| {
        let mut split = Vec::new();
        for mut chunk in chunks {
            let rest = split_name(&mut chunk);
            split.push(chunk);
            split.extend(rest);
        }
        split
    })
    .chat_only(),
    chunks(
        "name-empty-later",
        "later deltas of a call have the name \"\"",
        "LM Studio",
        Needs::Call,
        |chunks| {
            each_entry(chunks, |entry, is_first| {
                if !is_first {
                    set_function(entry, "name", json!(""));
                }
            })
        },
    )
    .chat_only(),
    chunks(
        "arguments-object",
        "arguments are an object instead of a string (over messages: in the start of the block)",
        "TGI, Ollama behind LiteLLM",
        Needs::Call,
        |chunks| {
            whole_calls(chunks, |arguments| {
                serde_json::from_str(&arguments).unwrap_or(Value::String(arguments))
            })
        },
    ),
    chunks(
        "arguments-null",
        "empty arguments are sent as null",
        "Claude on Bedrock",
        Needs::EmptyCall,
        |chunks| whole_calls(chunks, |_| Value::Null),
    ),
    chunks("arguments-missing", "empty arguments are omitted", "TensorRT-LLM", Needs::EmptyCall, |chunks| {
        each_entry(whole_calls(chunks, |_| Value::Null), |entry, _| {
            if let Some(Value::Object(function)) = entry.get_mut("function") {
                function.remove("arguments");
            }
        })
    }),
    chunks("arguments-empty", "empty arguments are sent as \"\"", "vLLM", Needs::EmptyCall, |chunks| {
        whole_calls(chunks, |_| json!(""))
    }),
    chunks(
        "arguments-encoded-twice",
        "arguments are JSON-encoded twice",
        "clients and servers that encode JSON twice",
        Needs::Call,
        |chunks| whole_calls(chunks, |arguments| json!(json!(arguments).to_string())),
    ),
    chunks(
        "arguments-sent-twice",
        "the whole arguments are sent again after the last delta",
        "vLLM's parser for xLAM",
        Needs::Call,
        |chunks| {
            let mut twice = Vec::new();
            for chunk in whole_calls(chunks, Value::String) {
                let again = each_entry(vec![chunk.clone()], |entry, _| {
                    entry.remove("id");
                    if let Some(Value::Object(function)) = entry.get_mut("function") {
                        function.remove("name");
                    }
                });
                let is_call = has_entries(&chunk);
                twice.push(chunk);
                if is_call {
                    twice.extend(again);
                }
            }
            twice
        },
    )
    .chat_only(),
    chunks(
        "call-sent-twice",
        "a whole call is sent twice: at two indices, with the same id",
        "relays that merge a stream with its final message",
        Needs::Call,
        |chunks| {
            let mut twice = Vec::new();
            for chunk in whole_calls(chunks, Value::String) {
                let again = each_entry(vec![chunk.clone()], |entry, _| set(entry, "index", 1));
                let is_call = has_entries(&chunk);
                twice.push(chunk);
                if is_call {
                    twice.extend(again);
                }
            }
            twice
        },
    )
    .chat_only(),
    chunks(
        "calls-glued",
        "the arguments of two calls are concatenated in one call",
        "Gemini's compatible API",
        Needs::TwoCalls,
        glue_calls,
    ),
    chunks(
        "call-in-one-chunk",
        "a whole call and the finish reason are in one chunk",
        "Ollama",
        Needs::Call,
        |chunks| {
            let mut chunks = whole_calls(chunks, Value::String);
            let finish = chunks.iter().position(|chunk| finish_of(&chunk.json).is_some());
            let reason = finish.map(|at| chunks.remove(at)).and_then(|chunk| finish_of(&chunk.json).cloned());
            if let (Some(reason), Some(last)) = (reason, chunks.iter_mut().rfind(|chunk| has_entries(chunk)))
            {
                set_finish(last, reason);
            }
            chunks
        },
    )
    .chat_only(),
    chunks(
        "calls-interleaved",
        "the deltas of two calls alternate",
        "OpenAI, gateways",
        Needs::TwoCalls,
        interleave,
    ),
    chunks(
        "arguments-begin-at-once",
        "the first delta of a call contains arguments",
        "llama.cpp",
        Needs::Call,
        |chunks| {
            // Joins the first two deltas of a call.
            let mut joined: Vec<Chunk> = Vec::new();
            let mut begun = false;
            for chunk in chunks {
                let piece = entry_arguments(&chunk).filter(|_| begun);
                begun = is_start(&chunk);
                match (piece, joined.last_mut()) {
                    (Some(piece), Some(last)) => {
                        *last = each_entry(vec![last.clone()], |entry, _| {
                            set_function(entry, "arguments", json!(piece));
                        })
                        .pop()
                        .unwrap_or_else(|| last.clone());
                    }
                    _ => joined.push(chunk),
                }
            }
            joined
        },
    )
    .chat_only(),
    chunks(
        "calls-as-object",
        "`tool_calls` is one call instead of a list",
        "TGI",
        Needs::Call,
        |mut chunks| {
            for chunk in &mut chunks {
                if let Some(calls) = chunk.json.pointer_mut("/choices/0/delta/tool_calls")
                    && let Some(only) = calls.get(0).cloned()
                {
                    *calls = only;
                }
            }
            chunks
        },
    )
    .chat_only(),
    chunks(
        "calls-null",
        "chunks without a call have a `tool_calls` that is null or an empty list",
        "SGLang, llama-cpp-python",
        Needs::Call,
        |mut chunks| {
            for (number, chunk) in chunks.iter_mut().filter(|chunk| !has_entries(chunk)).enumerate() {
                if let Some(Value::Object(delta)) = chunk.json.pointer_mut("/choices/0/delta") {
                    let nothing = if number % 2 == 0 { Value::Null } else { json!([]) };
                    delta.insert(String::from("tool_calls"), nothing);
                    delta.insert(String::from("function_call"), Value::Null);
                }
            }
            chunks
        },
    )
    .chat_only(),
    chunks(
        "function-call",
        "the call is sent in the deprecated `function_call` instead of `tool_calls`",
        "llama-cpp-python",
        Needs::Call,
        |chunks| as_function_call(chunks, false),
    )
    .chat_only(),
    chunks(
        "function-call-beside",
        "the call is sent in `function_call` and in `tool_calls`",
        "llama-cpp-python",
        Needs::Call,
        |chunks| as_function_call(chunks, true),
    )
    .chat_only(),
    chunks(
        "arguments-dropped",
        "arguments are replaced by `{}`",
        "vLLM's parsers for step3, internlm2, jamba",
        Needs::Call,
        |chunks| whole_calls(chunks, |_| json!("{}")),
    ),
    chunks("arguments-not-json", "arguments are invalid JSON", "small models", Needs::Call, |chunks| {
        whole_calls(chunks, |_| json!("{at: sea}"))
    }),
    chunks(
        "arguments-list",
        "arguments are a list instead of an object",
        "small models",
        Needs::Call,
        |chunks| whole_calls(chunks, |_| json!("[1]")),
    ),
    chunks(
        "arguments-bomb",
        "arguments are nested 100,000 levels deep",
        "a model that does not stop, an attack",
        Needs::Call,
        |chunks| whole_calls(chunks, |_| json!(format!("{{\"at\":{}", "[".repeat(100_000)))),
    ),
    chunks(
        "tool-unknown",
        "the call names a tool that the request does not offer",
        "small models",
        Needs::Call,
        |chunks| {
            each_entry(chunks, |entry, is_first| {
                if is_first {
                    set_function(entry, "name", json!("no_such_tool"));
                }
            })
        },
    ),
    chunks(
        "call-cut-by-length",
        "the reply ends inside the arguments, with the finish reason `length`",
        "every server at its token limit",
        Needs::Call,
        |chunks| cut_call(chunks, "length"),
    ),
    chunks(
        "call-cut-unsaid",
        "the reply ends inside the arguments, with the finish reason `tool_calls`",
        "llama-cpp-python at its token limit",
        Needs::Call,
        |chunks| cut_call(chunks, "tool_calls"),
    ),
    chunks(
        "call-in-reasoning",
        "the call is sent as text in the reasoning",
        "vLLM, llama.cpp",
        Needs::Call,
        |chunks| {
            let mut written = String::new();
            let mut changed: Vec<Chunk> = Vec::new();
            for chunk in chunks {
                match (entry_name(&chunk), entry_arguments(&chunk)) {
                    (Some(name), _) => {
                        written = format!("<tool_call>{{\"name\": \"{name}\", \"arguments\": ");
                    }
                    (None, Some(piece)) => written.push_str(&piece),
                    (None, None) if finish_of(&chunk.json).is_some() && !written.is_empty() => {
                        let thought = format!("{}}}</tool_call>", std::mem::take(&mut written));
                        changed.push(delta_chunk(json!({"reasoning_content": thought})));
                        let mut last = chunk;
                        set_finish(&mut last, json!("stop"));
                        changed.push(last);
                    }
                    (None, None) => changed.push(chunk),
                }
            }
            changed
        },
    ),
    chunks(
        "calls-too-many",
        "one reply contains 1,500 calls",
        "a model that does not stop",
        Needs::Call,
        |chunks| {
            let mut many = Vec::new();
            for chunk in whole_calls(chunks, Value::String) {
                if !has_entries(&chunk) {
                    many.push(chunk);
                    continue;
                }
                for number in 0..1_500 {
                    many.extend(each_entry(vec![chunk.clone()], |entry, _| {
                        set(entry, "index", number);
                        set(entry, "id", format!("call_{number}"));
                    }));
                }
            }
            many
        },
    ),
];
