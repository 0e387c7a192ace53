//! deftool: the toolchain and engine for the tools that language models call.
//!
//! A tool is written as a plist s-expression, compiled to each API's JSON schema, checked, validated against
//! the model's arguments and run as a sandboxed Luau script inside a worker loop that talks to an
//! OpenAI-compatible server.
//!
//! The modules below stand in order, from the ground up: each imports only from those above it.
//!
//! | module | holds |
//! |---|---|
//! | [`text`] | source files, byte spans, line and column |
//! | [`diagnostic`] | findings, the table of rules, rendering |
//! | [`syntax`] | the Emacs-Lisp reader, its tree, constant folding, `lexpr` at the edge |
//! | [`spec`] | tools, exit tools and workers lowered from trees |
//! | [`schema`] | JSON Schema of a tool for each API, compiled validators, the set a request may call |
//! | [`tool`] | what a tool call is: call, outcome, error, the [`tool::ToolRunner`] trait |
//! | [`script`] | the Luau runtime |
//! | [`project`] | files on disk as one consistent generation |
//! | [`chat`] | the wire of chat completions and of responses: bodies, SSE, chunks, assembly, calls written as text |
//! | [`request`] | the request machine: every decision of the loop, no IO and no clock |
//! | [`worker`] | the tokio driver: slots, timers, transport, record and replay, servers of its own |
//! | [`serve`] | the stub: a model's server for tests, by scenario or misbehaving |
//! | `cli` | the `deftool` command, with the feature `cli` |
//!
//! # The main job, embedded
//!
//! ```no_run
//! # async fn main_job() -> Result<(), Box<dyn std::error::Error>> {
//! let worker = deftool::Worker::open("path/to/project").start().await?;
//! let outcome = worker.ask("What is the weather in Paris?").await?;
//! println!("{}", outcome.text);
//! # Ok(())
//! # }
//! ```
//!
//! Own tools implement [`ToolRunner`], an own model side [`Transport`], an own first system message [`BiosProvider`].
//! `default-features = false` leaves the command line out.

pub mod text;

pub mod diagnostic;

pub mod syntax;

pub mod spec;

pub mod schema;

pub mod tool;

pub mod script;

pub mod project;

pub mod chat;

pub mod request;

pub mod worker;

pub mod serve;

#[cfg(feature = "cli")]
pub mod cli;

pub use request::{BiosProvider, Outcome};
pub use tool::ToolRunner;
pub use worker::{SubmitRequest, Transport, Worker};
