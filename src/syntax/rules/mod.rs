//! The rules of reading and folding.
//!
//! One file each: what it means, with an example that breaks it and the repair, and what it says.

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
