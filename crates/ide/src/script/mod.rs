//! Features of scripts that need an analysis: what to ask a [`ScriptAnalyzer`](deftool_script::ScriptAnalyzer), and what
//! an editor shows of its answers.
//!
//! | module | contents |
//! |---|---|
//! | `unit` | the unit of a file, and the types of the project |
//! | `strings` | completion in strings whose values the project knows |
//! | `answers` | completions, hover and signatures from answers |
//! | `names` | references, renames and symbols from answers |

mod answers;
mod names;
mod strings;
mod unit;

pub use answers::{CallSignature, CallSignatures, call_signatures, description, suggestions};
pub use names::{ProjectUses, other_units, script_symbols, script_tokens};
pub use strings::string_completions;
pub use unit::{ScriptTypes, script_unit};
