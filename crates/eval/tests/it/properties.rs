//! Properties of the judge with generated arguments.

use deftool_eval::judge::{Verdict, judge};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::notation;

/// JSON values up to a depth of three. No member name is that of a pattern.
fn values() -> impl Strategy<Value = Value> {
    let scalars = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9_f64..1e9).prop_map(Value::from),
        "[ a-c\"\\\\é]{0,4}".prop_map(Value::from),
    ];
    scalars.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-d]", inner), 0..4)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    prop::collection::vec(("[a-d]", values()), 0..4)
        .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>()))
}

fn calls() -> impl Strategy<Value = Vec<Value>> {
    let tool = prop::sample::select(vec!["one", "two"]);
    let call =
        (tool, arguments()).prop_map(|(tool, arguments)| json!({"tool": tool, "arguments": arguments}));
    prop::collection::vec(call, 1..5)
}

/// Judges with two tools that take any arguments.
fn verdict(expected: &[Value], is_ordered: bool, reply: &[Value]) -> Verdict {
    let tool = |name: &str| json!({"function": {"name": name, "parameters": {"type": "object"}}});
    let tools = notation::tools(&json!([tool("one"), tool("two")]));
    let ask = notation::ask(&json!({"calls": expected, "ordered": is_ordered}));
    judge(&ask, &notation::calls(&json!(reply), &tools), &tools)
}

proptest! {
    #[test]
    fn a_copy_passes(calls in calls(), is_ordered: bool) {
        let verdict = verdict(&calls, is_ordered, &calls);
        prop_assert!(verdict.passes(), "{verdict:?}");
    }

    #[test]
    fn the_order_of_calls_does_not_matter_without_ordered(
        (expected, (reply, shuffled)) in (calls(), calls().prop_flat_map(|reply| {
            (Just(reply.clone()), Just(reply).prop_shuffle())
        })),
    ) {
        let scores = |reply: &[Value]| {
            let verdict = verdict(&expected, false, reply);
            (verdict.choice, verdict.validity, verdict.arguments)
        };
        prop_assert_eq!(scores(&reply), scores(&shuffled));
        let mut copy = expected.clone();
        copy.reverse();
        prop_assert!(verdict(&expected, false, &copy).passes());
    }

    #[test]
    fn an_extra_argument_fails(calls in calls(), at: prop::sample::Index, value in values()) {
        let mut reply = calls.clone();
        let at = at.index(reply.len());
        reply[at]["arguments"]["unstated"] = value;
        let verdict = verdict(&calls, false, &reply);
        prop_assert!(verdict.choice && !verdict.arguments, "{verdict:?}");
        prop_assert!(verdict.problems[0].to_string().starts_with("extra argument `.unstated`: "));
    }

    #[test]
    fn a_missing_argument_fails(arguments in arguments(), value in values()) {
        let call = |arguments: &Value| json!({"tool": "one", "arguments": arguments});
        let mut expected = arguments.clone();
        expected["stated"] = value;
        let verdict = verdict(&[call(&expected)], false, &[call(&arguments)]);
        prop_assert!(verdict.choice && !verdict.arguments, "{verdict:?}");
    }
}
