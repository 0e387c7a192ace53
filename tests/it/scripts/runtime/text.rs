//! `text`: characters, patterns and diffs.

use super::*;

fn eval(expression: &str) -> Result<Value, ToolError> {
    run_source(&format!("return function() return {expression} end"))
}

#[test]
fn functions_return_the_expected_values() {
    for (expression, expected) in [
        ("text.length('naïve 漢')", json!(7)),
        ("text.sub('naïve', 3, 4)", json!("ïv")),
        ("text.sub('naïve', -3)", json!("ïve")),
        ("{ text.valid('é'), text.valid('\\255') }", json!([true, false])),
        ("text.lines('a\\r\\nb\\n\\nc\\n')", json!(["a", "b", "", "c"])),
        ("text.lines('')", json!([])),
        ("text.trim(' \\u{a0}a b\\n')", json!("a b")),
        ("{ text.lower('ÀÉΣ'), text.upper('straße') }", json!(["àéς", "STRASSE"])),
        ("{ text.starts_with('abc', 'ab'), text.ends_with('abc', 'ab') }", json!([true, false])),
        ("text.count('a.b.c', '.')", json!(2)),
        ("{ text.replace('a.b.c', '.', '%1') }", json!(["a%1b%1c", 2])),
        ("{ text.replace('a.b.c', '.', '', 1) }", json!(["ab.c", 1])),
        ("text.wrap('one two three', 7)", json!("one two\nthree")),
        ("text.truncate('naïve', 3)", json!("na…")),
        ("text.truncate('naïve', 3, { bytes = true, mark = '' })", json!("na")),
        (
            "text.diff('a\\nb\\nc\\n', 'a\\nB\\nc\\n')",
            json!("--- old\n+++ new\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
        ),
        (
            "text.diff('a\\nb\\nc', 'a\\nb\\nd', { context = 0, old_name = 'x', new_name = 'y' })",
            json!(
                "--- x\n+++ y\n@@ -3 +3 @@\n-c\n\\ No newline at end of file\n+d\n\\ No newline at end of file\n"
            ),
        ),
        ("text.diff('a', 'a')", json!("")),
        ("text.matches('TODO: x', [[(?i)\\btodo\\b]])", json!(true)),
        (
            "text.find('key = value', [[(?<key>\\w+)\\s*=\\s*(?<value>\\w+)(;)?]])",
            json!({"text": "key = value", "first": 1, "last": 11, "groups": ["key", "value", ""],
                   "named": {"key": "key", "value": "value"}}),
        ),
        ("text.find('aXbX', 'X', 3).first", json!(4)),
        ("text.find('abc', 'x') == nil", json!(true)),
        ("text.find('abc', 'c', 99) == nil", json!(true)),
        ("text.find_all('abc', 'x')", json!([])),
        ("#text.find_all('a1b22', [[\\d+]], { limit = 1 })", json!(1)),
        ("text.find_all('a1b22', [[\\d+]])[2].text", json!("22")),
        ("{ text.replace_matches('3/4', [[(\\d)/(?<b>\\d)]], '${b}-$1 $$') }", json!(["4-3 $", 1])),
        ("{ text.replace_matches('aaa', 'a', 'b', 2) }", json!(["bba", 2])),
        ("text.escape('a.b')", json!("a\\.b")),
        ("text.find('\\255x\\254', 'x').first", json!(2)),
        // In a callback, where functions cannot wait.
        (
            "(string.gsub('a1', '%w', function(c) return if text.matches(c, '[0-9]') then 'n' else 'l' end))",
            json!("ln"),
        ),
        // Too long for a search on the script's thread.
        ("text.find(string.rep('-', 100000) .. 'é!', 'é(.)').groups[1]", json!("!")),
        ("#text.find_all(string.rep('ab', 20000), 'b')", json!(10_000)),
        ("select(2, text.replace_matches(string.rep('ab', 20000), 'b', ''))", json!(20_000)),
        ("#text.diff(string.rep('a\\n', 9000), string.rep('a\\n', 9001)) > 10", json!(true)),
    ] {
        assert_eq!(eval(expression), Ok(expected), "{expression}");
    }
}

#[test]
fn invalid_arguments_are_errors() {
    for (expression, expected) in [
        ("text.length('\\255')", "text.length: the text is not UTF-8"),
        ("text.length(5)", "expected a string, got"),
        ("text.sub('a', 1.5)", "expected a whole number"),
        ("text.wrap('a', 0)", "the width must be from 1 to 10000"),
        ("text.wrap('a', 0/0)", "expected a width in characters"),
        ("text.replace('a', '', 'b')", "expected a non-empty string"),
        ("text.count('a', '')", "expected a non-empty string"),
        (
            "text.replace(string.rep('a', 10000), 'a', string.rep('b', 10000))",
            "the text would be longer than 8 MiB",
        ),
        (
            "text.replace_matches(string.rep('a', 4000), 'a', string.rep('$0$0$0$0', 2000))",
            "the text would be longer than 8 MiB",
        ),
        ("text.matches('a', '(')", "invalid pattern: unclosed group"),
        ("text.matches('a', [[(a)\\1]])", "backreferences are not supported"),
        ("text.matches('a', '(?=a)')", "look-around, including look-ahead and look-behind, is not supported"),
        ("text.matches('a', '(a{1000}){1000}')", "the pattern is too big"),
        ("text.matches('a', string.rep('()', 100))", "more than 99 groups"),
        ("text.matches('a', '(?i)[' .. string.rep('\\\\PL', 3000) .. ']')", "longer than 2000 bytes"),
        ("text.matches('a', string.rep('(', 2000))", "invalid pattern"),
        (
            "text.find_all('a', 'a', { limit = 0 })",
            "expected limit to be a whole number from 1 to 10000, got 0",
        ),
        ("text.diff('a', '\\255')", "text.diff: the text is not UTF-8"),
        ("text.diff(string.rep('\\n', 200001), '')", "more than 200000 lines"),
        ("text.lower(string.rep('a', 9000000))", "the text is longer than 8 MiB"),
    ] {
        let error = eval(expression).expect_err(expression);
        assert!(error.message.contains(expected), "{expression}: {error}");
        assert_eq!(error.kind, ToolErrorKind::Script, "{expression}: {error}");
    }
}

/// Short texts are searched on the script's thread, so that this also works while the script loads.
#[test]
fn short_texts_can_be_searched_while_the_script_loads() {
    let source = "local found = text.matches('abc', 'b') return function() return found end";
    assert_eq!(run_source(source), Ok(json!(true)));
    let error = run_source("local found = text.matches(string.rep('b', 10000), 'c') return function() end")
        .unwrap_err();
    assert!(error.message.contains("text.matches is not available while the script loads"), "{error}");
}
