//! Judges the first reply of a model to an ask, and compares the results of many runs.
//!
//! ```
//! use deftool_eval::judge::{ObservedCall, judge};
//! use deftool_eval::statistics::{Tally, pass_rate};
//! use deftool_lang::schema::ToolSet;
//! use deftool_lang::spec::{Ask, ExpectedReply};
//! use deftool_lang::text::{SourceFile, Sources, Span, Spanned};
//! use serde_json::json;
//!
//! let ask = Ask {
//!     source: Sources::new().add(SourceFile::new("asks.eld", "")),
//!     span: Span::default(),
//!     prompt: Spanned::new(String::from("Thanks, that is all."), Span::default()),
//!     history: Vec::new(),
//!     expected: ExpectedReply::NoCall,
//! };
//! let call = ObservedCall { tool: String::from("search"), arguments: json!({}), ..ObservedCall::default() };
//! let verdicts = [judge(&ask, &[], &ToolSet::default()), judge(&ask, &[call], &ToolSet::default())];
//! assert!(verdicts[0].passes());
//! assert_eq!(verdicts[1].problems[0].to_string(), "extra call of `search`");
//!
//! let passes = verdicts.iter().filter(|verdict| verdict.passes()).count() as u32;
//! let measured = pass_rate(&[Tally { passes, runs: 2 }]).unwrap();
//! assert_eq!(measured.rate, 0.5);
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`judge`] | the calls of a reply compared with those that an ask expects, and the tools that models confuse |
//! | [`statistics`] | pass rates with intervals, pass^k, and the comparison of two versions |
//!
//! Every function is pure: no IO, no clock, no threads, and the same result for the same input.

pub mod judge;
pub mod statistics;
