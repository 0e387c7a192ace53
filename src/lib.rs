//! deftool: a toolchain and runtime for tools that language models call.
//!
//! A tool spec is a plist s-expression. deftool checks it and compiles it to the JSON Schema of each API. A worker loop
//! connects to an OpenAI-compatible server, validates the model's arguments against the schema and runs the tool as a
//! sandboxed Luau script.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let worker = deftool::Worker::open("path/to/project").start().await?;
//! let outcome = worker.ask("What is the weather in Paris?").await?;
//! println!("{}", outcome.text);
//! # Ok(())
//! # }
//! ```
//!
//! Implement [`ToolRunner`] for custom tools, [`Transport`] for a custom model backend, and [`BiosProvider`] for a
//! custom first system message. `default-features = false` excludes the command line.
//!
//! This crate contains the `deftool` command and re-exports the library, which consists of these crates, from the
//! lowest layer to the highest:
//!
//! | module | crate | contents |
//! |---|---|---|
//! | [`text`], [`diagnostic`], [`syntax`], [`spec`], [`schema`], [`tool`] | `deftool-lang` | spec files, findings, JSON Schema |
//! | [`chat`], [`request`] | `deftool-chat` | the protocols of models, the request machine |
//! | [`script`] | `deftool-script` | the Luau runtime |
//! | [`project`] | `deftool-project` | loading and watching of projects |
//! | [`worker`] | `deftool-worker` | the loop: transport, tools, timers, managed servers, recording and replay |
//! | [`stub`] | `deftool-stub` | a model server for tests |

pub use deftool_chat as chat;
pub use deftool_chat::request;
pub use deftool_lang::{diagnostic, schema, spec, syntax, text, tool};
pub use deftool_stub as stub;

/// Loading and watching of projects.
pub mod project {
    pub use deftool_project::{
        Changes, Generation, GenerationRunner, Input, Listener, LiveProject, Load, LoadOptions, LoadedTool,
        MAX_MEMORY, MAX_TIMEOUT, OutsideLink, Overlay, PermissionRequest, PermissionSet, ProjectError,
        ScriptState, TestScript, Trust, find_root, find_tests, is_test_script, keep_loading, load,
        load_specs, load_with, permission_requests, read_bios, resolve_inputs, unknown_tool,
    };
}

/// The sandboxed Luau runtime.
pub mod script {
    pub use deftool_script::{
        Contract, DEFAULT_MEMORY, DEFAULT_TIMEOUT, FunctionDoc, Isolation, LoadError, LocalVm, LogLevel,
        MAX_SOURCE, Module, Parameter, PathGrant, ProcessOptions, Returned, RunnerOptions, Script,
        ScriptEvent, ScriptPermissions, ScriptRunner, ScriptSink, TOP_LEVEL_LIMIT, TableDoc, TestFailure,
        TestFile, TestLimits, TestName, TestOutcome, TestSubject, TestTools, ValueDoc, check_in_processes,
        check_script, definitions, guard_programs, host_tables, kill_programs, list_tests, run_test,
        serve_isolated,
    };
}

/// The worker loop.
pub mod worker {
    pub use deftool_worker::{
        Approvals, AskError, Change, ChooseError, Credentials, Detected, Difference, Endpoint, EndpointError,
        EndpointOptions, EventStream, Evidence, Examination, ExamineOptions, GuardProgram, HttpTransport,
        Incoming, InvalidSpec, Model, NotReady, OpenError, OpenWorker, Origin, Outgoing, OwnTool, Page,
        PageResponse, ProbeError, ProjectTools, RecordedRequest, RecordedToolCall, Recorder, Recording,
        RecordingError, ReplayDifference, ReplayOptions, ReplayTransport, RestartLimits, ResultError,
        Secrets, ServerLimits, ServerOptions, Session, SubmitError, SubmitRequest, ToolSource, Toolbox,
        Transport, TransportError, TrustSource, Worker, WorkerConfig, WorkerState, WorkerStatus,
        choose_worker, endpoint_permission_request, endpoint_permission_requests, examine_endpoint,
        find_endpoint, guard_server, is_remote, server_permission_request, server_permission_requests,
    };
}

pub use deftool_chat::request::{BiosProvider, Outcome};
pub use deftool_lang::tool::ToolRunner;
pub use deftool_worker::{OwnTool, SubmitRequest, Transport, Worker};

#[cfg(feature = "cli")]
pub mod cli;
