use super::*;

/// Describes the uses: `load`, `load!` if it may fail, `tool.key`, `?load`, `?tool`.
fn described(source: &str) -> String {
    let uses = test_uses(source);
    let mark = |may_fail: bool| if may_fail { "!" } else { "" };
    let mut found: Vec<(Span, String)> = Vec::new();
    for load in &uses.loads {
        assert_eq!(load.span.of(source), load.name);
        found.push((load.span, format!("{}{}", load.name, mark(load.may_fail))));
    }
    for key in &uses.keys {
        assert_eq!(key.span.of(source), key.name);
        found.push((key.span, format!("{}.{}{}", key.tool, key.name, mark(key.may_fail))));
    }
    found.extend(uses.computed_loads.iter().map(|span| (*span, String::from("?load"))));
    found.extend(uses.computed_calls.iter().map(|(tool, span)| (*span, format!("?{tool}"))));
    found.sort_by_key(|(span, _)| span.start);
    found.into_iter().map(|(_, shown)| shown).collect::<Vec<_>>().join(" ")
}

#[test]
fn tools_are_followed_through_variables_and_functions() {
    for (source, expected) in [
        ("local a = tool.load('a') a({ x = 1, ['y z'] = 2, 3 }) a { w = { v = 1 } }", "a a.x a.y z a.w"),
        ("tool.load(\"a\", { root = temp_dir() })({ x = 1 })", "a a.x"),
        ("tool.load 'a' { x = 1 } tool.load [[\nb]]({})", "a a.x b"),
        ("local function f(n, t) return tool.load('a')(t) end f({ x = 1 }, { y = 1 })", "a a.y"),
        ("local f = function(t) local a = tool.load('a') return a(t) end f({ x = 1 })", "a a.x"),
        ("function f(t) return tool.load('a')(t) end\nfunction g(t) return f(t) end g({ x = 1 })", "a a.x"),
        ("local function f(r) return tool.load('a', { fs = r }) end f({ read = 1 })({ x = 1 })", "a a.x"),
        ("local function f() local a = tool.load('a') return a end local b = f() b({ x = 1 })", "a a.x"),
        ("local a, n = tool.load('a'), 0 a({ x = 1 })", "a a.x"),
        ("local a: any = tool.load('a') :: any a({ x = 1 })", "?a a"),
        ("local a: (t: any) -> any = tool.load('a') a({ x = 1 })", "a a.x"),
        ("print(`a {tool.load('a')({ x = 1 })} {{ b }}`) tool.load('b')()", "a a.x b"),
        ("tool.failure('a') t.tool.load('a') local tool = t tool.load('a')", ""),
    ] {
        assert_eq!(described(source), expected, "{source}");
    }
}

#[test]
fn scopes_end_with_their_blocks() {
    let load = "local a = tool.load('a') ";
    for (source, expected) in [
        ("do local a = 1 a({ x = 1 }) end a({ y = 1 })", "a a.y"),
        ("if b then local a = 1 elseif c then a({ x = 1 }) else local a = 2 end a({ y = 1 })", "a a.x a.y"),
        ("for a, b in c do a({ x = 1 }) end repeat local a = 1 until true a({ y = 1 })", "a a.y"),
        ("local b = if c then function(a) a({ x = 1 }) end else d a({ y = 1 })", "a a.y"),
        ("local a = a({ x = 1 }) a({ y = 1 })", "a a.x"),
        ("a = b a({ x = 1 })", "a"),
        ("local b = { a = 1, a({ x = 1 }) }", "a a.x"),
        ("while if b then c else d do local a = 1 end a({ y = 1 })", "a a.y"),
    ] {
        assert_eq!(described(&(load.to_owned() + source)), expected, "{source}");
    }
}

#[test]
fn what_is_not_certain_is_computed() {
    for (source, expected) in [
        ("tool.load(name) local load = tool.load local t = tool", "?load ?load ?load"),
        ("tool.load('a' .. 'b')({ x = 1 }) tool.load('\\97')", "?load ?load"),
        ("local a = tool.load('a') a(t) a({ [k] = 1 }) b(a) t.a = a", "a ?a ?a ?a ?a"),
        ("local t = { f = function(t) return tool.load('a')(t) end } t.f({ x = 1 })", "a ?a"),
        ("local function f(t) tool.load('a')(t) end map(list, f)", "a ?a"),
        ("local a = tool.load('a') or b a({ x = 1 })", "?a a"),
        ("function t.f(t) return tool.load('a')(t) end", "a ?a"),
        ("local t = { f = function() return tool.load('a') end } t.f()({ x = 1 })", "?a a"),
        ("f({ x = 1 }) function f(t) tool.load('a')(t) end", "a ?a"),
    ] {
        assert_eq!(described(source), expected, "{source}");
    }
}

#[test]
fn calls_that_may_fail_are_marked() {
    for (source, expected) in [
        ("expect(function() tool.load('a')({ x = 1 }) end).fails('x') tool.load('b')", "a! a.x! ?b b"),
        ("expect(tool.load('a')({ x = 1 })).equals(1)", "a a.x"),
        ("expect(function() tool.load('a')({ x = 1 }) end):fails()", "a! a.x!"),
        ("expect(function() tool.load('a')({ x = 1 }) end).never.fails()", "a a.x"),
        ("pcall(function() tool.load('a')({}) end)", "a!"),
        ("local function f(t) expect(function() tool.load('a')(t) end).fails() end f({ x = 1 })", "a! a.x!"),
    ] {
        assert_eq!(described(source), expected, "{source}");
    }
}

#[test]
fn mentions_are_strings_and_keys() {
    let source =
        "x = { old = 1, b = old, ['old'] = 2 } t.old = 1 t.old() -- old\nprint(\"old\", `old`, 'an old')";
    let starts = find_mentions(source, "old").into_iter().map(|span| span.start).collect::<Vec<_>>();
    assert_eq!(starts, [6, 26, 40, 70]);
}
