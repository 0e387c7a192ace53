//! deftool: a toolchain and runtime for tools that language models call.
//!
//! A tool spec is a plist s-expression. deftool checks it and compiles it to the JSON Schema of each API. A worker loop
//! connects to an OpenAI-compatible server, validates the model's arguments against the schema and runs the tool as a
//! sandboxed Luau script.
//!
//! The modules are layers, listed from the bottom up: each imports only from those above it in this table.
//!
//! | module | contents |
//! |---|---|
//! | [`text`] | source files, byte spans, line and column |
//! | [`diagnostic`] | findings, rules, rendering |
//! | [`syntax`] | the Emacs Lisp reader, its syntax tree, constant folding, conversion to `lexpr` |
//! | [`spec`] | tools, exit tools and workers, lowered from syntax trees |
//! | [`schema`] | JSON Schema of a tool for each API, compiled validators, the tool set of a request |
//! | [`tool`] | tool calls, their errors, the [`tool::ToolRunner`] trait |
//! | [`script`] | the Luau runtime |
//! | [`project`] | loading of project files into consistent generations |
//! | [`chat`] | the chat completions and responses protocols: bodies, SSE, chunks, reply assembly, calls written as text |
//! | [`request`] | the request state machine: every decision of the loop, without IO and clock |
//! | [`worker`] | the tokio driver: slots, timers, transport, recording and replay, managed servers |
//! | [`serve`] | the stub model server for tests, with scenarios and fault injection |
//! | `cli` | the `deftool` command (feature `cli`) |
//!
//! # Example
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
//! Implement [`ToolRunner`] for custom tools, [`Transport`] for a custom model backend, and [`BiosProvider`] for a custom
//! first system message. `default-features = false` excludes the command line.

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
