//! Tables of steps that several families share.

/// The steps of calls as JSON objects between marks, one by one or in an array: opening marks, the meaning of a
/// mismatch after the objects, and the tokens after them. These tokens may lead to the steps `CLOSE` (after another
/// object) and `NEXT_CALLS` (after another opening mark).
macro_rules! json_calls {
    ($($open:literal)|+, $on_mismatch:ident $after:tt) => {
        crate::fallback::grammar::steps! {
            OPEN       None Prose        [$($open)|+ => CALLS]
            CALLS      Any  Prose        [Object(Object) => CLOSE, "[" => ITEM]
            CLOSE      Any  $on_mismatch $after
            ITEM       Any  Malformed    [Object(Object) => COMMA, "]" => CLOSE]
            COMMA      Any  Malformed    ["," => ITEM, "]" => CLOSE]
            // After an opening mark in place of the closing mark.
            NEXT_CALLS Any  Unclosed     [Object(Object) => CLOSE, "[" => ITEM]
        }
    };
}

/// The steps of calls as tags with a `name` attribute and a tag for each argument: the opening and closing tags around
/// the calls, of a call and of an argument. The tags around the calls may be missing.
macro_rules! tag_calls {
    (
        [$($open:literal)*] until [$($close:literal)*],
        $invoke:literal until $invoke_close:literal,
        $parameter:literal until $parameter_close:literal
    ) => {
        crate::fallback::grammar::steps! {
            OPEN            None Prose     [$($open => INVOKE,)* $invoke => NAME]
            INVOKE          Any  Prose     [$invoke => NAME]
            NAME            None Prose     [Word(Name) => NAME_QUOTE]
            NAME_QUOTE      None Prose     ["\"" => NAME_END]
            NAME_END        Line Prose     [">" => FIRST_PARAMETER]
            FIRST_PARAMETER Any  Malformed [$parameter => KEY, $invoke_close => CLOSE]
            KEY             None Malformed [Word(Key) => KEY_QUOTE]
            KEY_QUOTE       None Malformed ["\"" => KEY_END]
            KEY_END         Line Malformed [">" => VALUE]
            VALUE           None Malformed [Element(
                $parameter until $parameter_close
                inside [$invoke]
                or ["\n" $parameter] => KEY, $invoke_close => CLOSE, $($close => DONE),*
            ) => PARAMETER]
            PARAMETER       Any  Malformed [$parameter => KEY, $invoke_close => CLOSE, $($close => DONE),*]
            CLOSE           Any  Complete  [$($close => DONE,)* $invoke => NAME]
        }
    };
}

pub(super) use {json_calls, tag_calls};
