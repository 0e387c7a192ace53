//! The rules for reading and constant folding.
//!
//! Each file contains one rule: its documentation, with a failing and a repaired example, and its findings.

use crate::diagnostic::rules;

rules! {
    unclosed: UNCLOSED,
    stray_closer: STRAY_CLOSER,
    prefix_without_form: PREFIX_WITHOUT_FORM,
    bad_dot: BAD_DOT,
    bad_escape: BAD_ESCAPE,
    bad_character: BAD_CHARACTER,
    unknown_hash: UNKNOWN_HASH,
    raw_byte: RAW_BYTE,
    odd_blank: ODD_BLANK,
    smart_quote: SMART_QUOTE,
    comma_between: COMMA_BETWEEN,
    merge_conflict: MERGE_CONFLICT,
    not_a_constant: NOT_A_CONSTANT,
    too_deep: TOO_DEEP,
    not_json: NOT_JSON,
}

pub use not_a_constant::NOT_A_CONSTANT;
pub use stray_closer::STRAY_CLOSER;
pub use unclosed::UNCLOSED;
