//! The tool language: spec files are read, checked and compiled to JSON Schema.
//!
//! ```
//! use deftool_lang::schema::{Target, compile_tool, emit};
//! use deftool_lang::spec::{FileKind, lower};
//! use deftool_lang::syntax::parse;
//! use deftool_lang::text::{SourceFile, Sources};
//! use serde_json::json;
//!
//! let text = r#"(deftool :name "count" :description "Count the characters of a text."
//!                 :args ((:name "text" :type string :description "The text.")))"#;
//! let id = Sources::new().add(SourceFile::new("count.eld", text));
//! let (tree, syntax_findings) = parse(id, text);
//! let (definitions, findings) = lower(id, text, &tree, FileKind::of_name("count.eld"));
//! assert!(syntax_findings.is_empty() && findings.is_empty());
//!
//! let sent = emit(Target::OpenAi, &definitions.tools);
//! assert_eq!(sent[0]["function"]["name"], "count");
//!
//! let tool = compile_tool(&definitions.tools[0]);
//! assert!(tool.accept(json!({"text": "abc"}).try_into().unwrap()).is_ok());
//! assert!(tool.accept(json!({"text": 3}).try_into().unwrap()).is_err());
//! ```
//!
//! The modules are layers. Each module imports only from those above it in this table:
//!
//! | module | contents |
//! |---|---|
//! | [`text`] | source files, byte spans, line and column |
//! | [`diagnostic`] | findings, rules, rendering |
//! | [`syntax`] | the Emacs Lisp reader, its syntax tree, constant folding, conversion to `lexpr` |
//! | [`spec`] | tools, exit tools and workers, lowered from syntax trees |
//! | [`schema`] | JSON Schema of a tool for each API, compiled validators, the tool set of a request |
//! | [`tool`] | tool calls, their errors, the [`tool::ToolRunner`] trait |
//!
//! Every function is pure: no IO, no clock, no threads. Invalid source is data, not an error: functions return the best
//! possible result together with findings. `deftool-project` reads the files and finds the scripts.

pub mod text;

pub mod diagnostic;

pub mod syntax;

pub mod spec;

pub mod schema;

pub mod tool;
