//! The reader, constant folding and `lexpr` conversion.

use deftool_lang::spec::{FileKind, lower};
use deftool_lang::syntax::{
    Datum, DatumKind, Folder, Kind, NodeId, Number, SyntaxError, Tree, lexpr::from_lexpr, parse,
};
use deftool_lang::text::{SourceFile, SourceId, Sources};
use deftool_test_support::cpu::CpuClock;
use deftool_test_support::step;
use proptest::prelude::*;

pub(crate) fn source() -> SourceId {
    Sources::new().add(SourceFile::new("t.eld", ""))
}

fn read(text: &str) -> (Tree, Vec<String>) {
    let (tree, findings) = parse(source(), text);
    let messages =
        findings.iter().map(|f| format!("{}@{}: {}", f.rule.code, f.primary.span.start, f.message)).collect();
    (tree, messages)
}

/// Returns the tree as text, using the source only for the tokens.
fn outline(text: &str) -> String {
    let (tree, _) = parse(source(), text);
    tree.roots().map(|root| outline_node(&tree, text, root)).collect::<Vec<_>>().join("\n")
}

fn outline_node(tree: &Tree, text: &str, id: NodeId) -> String {
    let inner: Vec<String> = tree.children(id).map(|child| outline_node(tree, text, child)).collect();
    let inner = inner.join(" ");
    match tree.kind(id) {
        Kind::List => format!("({inner})"),
        Kind::Vector => format!("[{inner}]"),
        Kind::Opaque => format!("{{{inner}}}"),
        kind if kind.is_prefix() => format!("{kind:?}<{inner}>"),
        kind => format!("{kind:?}:{}", tree.text(id, text)),
    }
}

#[test]
fn every_reader_construct() {
    for (text, expected) in [
        ("(a :b \"c\" 1 2.5 ?x)", "(Symbol:a Keyword::b String:\"c\" Integer:1 Float:2.5 Character:?x)"),
        (
            "'a #'b `(c ,d ,@e)",
            "Quote<Symbol:a>\nFunction<Symbol:b>\nBackquote<(Symbol:c Unquote<Symbol:d> Splice<Symbol:e>)>",
        ),
        ("(a . b)", "(Symbol:a Dot:. Symbol:b)"),
        ("[1 [2]]", "[Integer:1 [Integer:2]]"),
        (
            "(1+ -1 - + .5 1. 1.e3 ...)",
            "(Symbol:1+ Integer:-1 Symbol:- Symbol:+ Float:.5 Integer:1. Float:1.e3 Symbol:...)",
        ),
        (
            r"(?\( ?\) ?\; ?\C-x ?\M-\C-a ?é ?\N{SNOWMAN} ?\s)",
            r"(Character:?\( Character:?\) Character:?\; Character:?\C-x Character:?\M-\C-a Character:?é Character:?\N{SNOWMAN} Character:?\s)",
        ),
        ("(?a?b foo? a?b)", "(Character:?a Character:?b Symbol:foo? Symbol:a?b)"),
        (
            "#s(hash-table size 1) #[1 2] #(\"x\" 0 1 (f t))",
            "{Symbol:hash-table Symbol:size Integer:1}\n{Integer:1 Integer:2}\n{String:\"x\" Integer:0 Integer:1 (Symbol:f Symbol:t)}",
        ),
        ("#:sym ## #1=(a . #1#) #$", "{}\n{}\n(Symbol:a Dot:. {})\n{}"),
        ("#x1F #o17 #b11 #24r1k #&5\"x\"", "Integer:#x1F\nInteger:#o17\nInteger:#b11\nInteger:#24r1k\n{}"),
        ("a;c\nb ; \"( \n", "Symbol:a\nSymbol:b"),
        ("#!/usr/bin/emacs --script (\n(a)\n#! and (\n(b)", "(Symbol:a)\n(Symbol:b)"),
        (
            "(a .\"x\") (a .(b)) (a .?b) (a .'b) (a .5 .b)",
            "(Symbol:a Dot:. String:\"x\")\n(Symbol:a Dot:. (Symbol:b))\n(Symbol:a Dot:. Character:?b)\n(Symbol:a Dot:. Quote<Symbol:b>)\n(Symbol:a Float:.5 Symbol:.b)",
        ),
        (r#"("\M-"" "\M-\"" "\^\\" a)"#, r#"(String:"\M-"" String:"\M-\"" String:"\^\\" Symbol:a)"#),
        ("(?a.b ? x)", "(Character:?a Symbol:.b Character:?  Symbol:x)"),
        ("#x1F:a #24r1k.5", "Integer:#x1F\nKeyword::a\nInteger:#24r1k\nFloat:.5"),
        ("\"\\xff\\ud800\\M-a\" ?\\xff", "String:\"\\xff\\ud800\\M-a\"\nCharacter:?\\xff"),
        ("\u{FEFF}(a)\r\n(b)\r\n", "(Symbol:a)\n(Symbol:b)"),
        (r"a\ b a\(b \?", "Symbol:a\\ b\nSymbol:a\\(b\nSymbol:\\?"),
        ("a\u{A0}b", "Symbol:a\nSymbol:b"),
        // A no-break space separates tokens, but a dot before it is not a dotted pair.
        ("(a .\u{A0}b)", "(Symbol:a Symbol:. Symbol:b)"),
        ("(\"a;b\" \"\\\"(\" \"é日\")", "(String:\"a;b\" String:\"\\\"(\" String:\"é日\")"),
        ("#@3abc(x)", "(Symbol:x)"),
        ("'(a 'b)", "Quote<(Symbol:a Quote<Symbol:b>)>"),
        ("(:json-false :a:)", "(Keyword::json-false Keyword::a:)"),
    ] {
        let (_, messages) = read(text);
        assert_eq!(messages, Vec::<String>::new(), "{text}");
        assert_eq!(outline(text), expected, "{text}");
    }
}

#[test]
fn syntax_errors_are_reported_and_reading_continues() {
    for (text, expected) in [
        ("(a (b", vec!["DT001@0: unclosed `(`"]),
        ("(a [b)", vec!["DT001@3: unclosed `[`"]),
        ("a) b]", vec!["DT002@1: unmatched closing `)`", "DT002@4: unmatched closing `]`"]),
        ("(a ')", vec!["DT003@3: missing form after `'`"]),
        ("'", vec!["DT003@0: missing form after `'`"]),
        ("\"abc", vec!["DT001@0: unclosed `\"`"]),
        ("(a\n(b)\n(c)", vec!["DT001@0: unclosed `(`"]),
        ("(a)\n(b \"x\" (c)\n(d)\n(e", vec!["DT001@4: unclosed `(`", "DT001@19: unclosed `(`"]),
        ("(\"a", vec!["DT001@1: unclosed `\"`"]),
        ("(a . b c)", vec!["DT004@3: a dot is only allowed before the last element of a list"]),
        ("(a . . b)", vec!["DT004@3: a dot is only allowed before the last element of a list"]),
        ("(. a)", vec!["DT004@1: a dot is only allowed before the last element of a list"]),
        ("[a . b]", vec!["DT004@3: a dot is only allowed before the last element of a list"]),
        ("(a . )", vec!["DT004@3: a dot is only allowed before the last element of a list"]),
        ("'. a", vec!["DT004@1: a dot is only allowed before the last element of a list"]),
        (". a", vec!["DT004@0: a dot is only allowed before the last element of a list"]),
        ("a\\", vec!["DT005@1: missing character after the backslash"]),
        ("a\\\\", vec![]),
        ("#1#", vec!["DT007@0: `#1#` is not Emacs Lisp syntax"]),
        ("?\\Ma", vec!["DT006@0: `\\M` is a modifier and needs a dash, as in `\\M-x`"]),
        ("?\\\n", vec!["DT006@0: an escaped newline is not a character"]),
        (r#""\C""#, vec![r"DT005@1: `\C` is a modifier and needs a dash, as in `\C-x`"]),
        ("?ab", vec!["DT006@0: `?` must be followed by a single character"]),
        ("#q", vec!["DT007@0: `#q` is not Emacs Lisp syntax"]),
        (r#""a\u12""#, vec!["DT005@2: `\\u` needs 4 hexadecimal digits"]),
        (
            "#b12 #1",
            vec!["DT007@0: `#b12` is not Emacs Lisp syntax", "DT007@5: `#1` is not Emacs Lisp syntax"],
        ),
    ] {
        assert_eq!(read(text).1, expected, "{text}");
    }
    // One missing parenthesis affects one form only.
    assert_eq!(outline("(a\n(b)\n(c)"), "(Symbol:a)\n(Symbol:b)\n(Symbol:c)");
}

#[test]
fn deep_and_large_input_neither_overflows_nor_hangs() {
    let clock = CpuClock::start();
    let million = 1_000_000 / step(8);
    let texts = [
        "(".repeat(million),
        "[".repeat(million),
        ")".repeat(million),
        "'".repeat(million),
        "`,@".repeat(million / 2),
        "#s(".repeat(million / 2),
        format!("{}{}", "(".repeat(million), ")".repeat(million)),
        format!("({})", "\"x\" ".repeat(million)),
        "(]".repeat(million / 2),
        "([)]".repeat(million / 4),
        "\n(".repeat(million),
        "\\".repeat(million),
        "?\\C-".repeat(million / 4),
        "#".repeat(million),
        format!("\"{}", "\\x".repeat(million / 2)),
    ];
    for text in &texts {
        let (tree, findings) = parse(source(), text);
        assert!(findings.len() <= 1_000);
        assert!(tree.roots().count() <= text.len());
        // Folding has its own depth limit.
        if let Some(root) = tree.roots().next() {
            let mut folder = Folder::new(source(), text, &tree);
            let _ = folder.fold(root);
        }
    }
    // Fifteen texts of about a megabyte, or an eighth: quadratic time would take hours, and one stack frame per opener
    // would overflow the stack.
    assert!(clock.elapsed().as_secs() < 60);
}

#[test]
fn broken_files_are_read_in_linear_time() {
    let many = 60_000 / step(2);
    let clock = CpuClock::start();
    for text in [
        // More stray closers than the finding limit, then as many forms whose syntax errors are looked up.
        format!("(a)\nb {}{}", ")".repeat(many), "(x)".repeat(many)),
        // Prefixes without a form, one per line, in an unclosed form.
        format!("(a\n ({}", "\n  '".repeat(many)),
        format!("(a{}\n (b{}", "\n '".repeat(many), "\n  (c".repeat(many)),
        // Strings that run to the end of the file, each read from its start.
        format!("{}\"x\n(b)", "(\\C-\"\n".repeat(many)),
        format!("{}\n(b", "(\\C-\"\n".repeat(many)),
    ] {
        let (tree, findings) = parse(source(), &text);
        assert!(findings.len() <= 1_000);
        let with_errors = tree.roots().filter(|root| tree.syntax_error(*root).is_some()).count();
        assert!(with_errors > 0, "{findings:?}");
        println!("{:?} {with_errors}", clock.elapsed());
    }
    assert!(clock.elapsed().as_secs() < 20, "{:?}", clock.elapsed());
}

#[test]
fn each_form_has_its_most_severe_syntax_error() {
    let text = "(good)\n(bad ?ab)\n(good)\n(stray))\n(good)\n(again ?ab)";
    let (tree, _) = parse(source(), text);
    let errors: Vec<_> = tree.roots().map(|root| tree.syntax_error(root)).collect();
    assert_eq!(
        errors,
        [None, Some(SyntaxError::InvalidAtom), None, None, None, Some(SyntaxError::InvalidAtom)]
    );
    let text = format!("(ok)\n{}\n(after)", ")".repeat(2_000));
    let (tree, _) = parse(source(), &text);
    let errors: Vec<_> = tree.roots().map(|root| tree.syntax_error(root)).collect();
    assert_eq!(errors, [None, Some(SyntaxError::Misnested)], "forms after too many errors are unreliable");
}

#[allow(clippy::too_many_lines)] // a table
/// All Emacs syntax is skipped under `:function`, with or without a lambda, and the surrounding tools compile.
#[test]
fn every_reader_construct_is_skipped_in_code() {
    for construct in [
        r"?\(",
        r"?\)",
        r"?(",
        r"?)",
        r"?;",
        r#"?""#,
        r#"?\""#,
        r"?\[",
        r"?[",
        r"?\\",
        r"?a",
        r"?é",
        r"?\C-x",
        r"?\^I",
        r"?\M-x",
        r"?\C-\M-x",
        r"?\S-a",
        r"?\s-a",
        r"?\H-a",
        r"?\A-a",
        r"?\s",
        r"? ",
        r"?\N{SNOWMAN}",
        r"?\N{U+2603}",
        r"?\x41",
        r"?\101",
        r"?\u00e9",
        r"?\U0001F600",
        r"?\C-%",
        r"?\d",
        "?\u{201C}",
        "?\u{200B}",
        "#s(hash-table test equal data (a 1))",
        "#s(point 1 2)",
        r#"#[(x) "\300\207" [x] 1]"#,
        "#[257 \"\\300\" [] 2]",
        r#"#("text" 0 4 (face bold))"#,
        "#&5\"\\37\"",
        "#^[nil nil]",
        "#:symbol",
        "#:",
        "##",
        "#_a",
        "#1=(a . #1#)",
        "#1=a",
        "#'car",
        "#'(lambda (y) y)",
        "#x1F",
        "#x-1f",
        "#o17",
        "#b101",
        "#24r1k",
        "#@4abc)",
        "#$",
        "#!skipped ( to the end\n",
        "'a",
        "'(a . b)",
        "'(a .b)",
        "'(a . (b))",
        "`(a ,b ,@c [,d])",
        "``(a ,,b)",
        "[a [b] (c)]",
        "'[]",
        "()",
        "nil",
        r#""a ( ; \" \\ [""#,
        "\"(in the\n(first column\"",
        r#""\C-\M-a\^@\x41\ \101\N{SNOWMAN}\u00e9""#,
        "\"join\\\ned\"",
        "; a comment ( \" [\n",
        ";;; deftool\n",
        "foo? 1+ -1+ - + ... a.b a\\ b \\, \\; \\( \\\"",
        "1. +1 -1. .5 -.5 1e3 1.e3 1.0e+INF 0.0e+NaN",
        "1_000 0x10 1e 1.5.2 +a -a",
        "99999999999999999999",
        ":key ::a a: :",
        "\u{A0}x\u{A0}",
        "\t\u{c}\0x",
        "λ 日本 𝄞",
        "foo’s",
        "(defun f () \"Doc\n(with a parenthesis)\" (f))",
        "(cl-loop for x across \"a\" collect `(,x . ?\\())",
    ] {
        for code in [
            format!("(lambda (&rest x) {construct} x)"),
            format!("(progn {construct}\n)"),
            format!("#'(lambda () {construct})"),
        ] {
            let first =
                format!("(gptel-make-tool :name \"first\" :function {code} :description \"Do one.\")");
            let text = format!("{first}\n(gptel-make-tool :name \"second\" :description \"Do two.\")\n");
            let (tree, mut findings) = parse(source(), &text);
            let (definitions, more) = lower(source(), &text, &tree, FileKind::EmacsLisp);
            findings.extend(more);
            let messages: Vec<_> = findings.iter().map(|finding| &finding.message).collect();
            let names: Vec<_> =
                definitions.tools.iter().filter(|tool| tool.valid).map(|tool| &*tool.name.value).collect();
            assert_eq!((names, messages), (vec!["first", "second"], vec![]), "{code}");
        }
    }
}

/// Files saved by editors on other systems have the same meaning.
#[test]
fn line_ends_byte_order_mark_and_whitespace_do_not_matter() {
    let plain = "(deftool :name \"a\" :description \"One\ntwo \\\nthree\" ; comment\n :timeout \"5s\")\n";
    let lowered = |text: &str| {
        let (tree, findings) = parse(source(), text);
        let (definitions, more) = lower(source(), text, &tree, FileKind::Specs);
        assert_eq!((findings.len(), more.len()), (0, 0), "{text:?}");
        let tool = definitions.tools.into_iter().next().unwrap();
        (tool.name.value, tool.description.value, tool.timeout)
    };
    let expected =
        (String::from("a"), String::from("One\ntwo three"), Some(std::time::Duration::from_secs(5)));
    for text in [
        plain.to_owned(),
        plain.replace('\n', "\r\n"),
        format!("\u{FEFF}{plain}"),
        format!("\u{FEFF}{}", plain.replace('\n', "\r\n")),
        plain.replace(" :", "\t:"),
        plain.replace(" :", "\0:"),
        plain.replace(" :", "\u{A0}:"),
        plain.replace(" :", "\u{c}\u{b}:"),
        format!("#!/usr/bin/deftool (\n{plain}"),
        plain.trim_end().to_owned(),
    ] {
        assert_eq!(lowered(&text), expected, "{text:?}");
    }
}

fn folded(text: &str) -> (DatumKind, Vec<String>) {
    let (tree, _) = parse(source(), text);
    let mut folder = Folder::new(source(), text, &tree);
    let datum = folder.fold(tree.roots().next().unwrap());
    (datum.kind, folder.findings.iter().map(|f| f.message.clone()).collect())
}

/// Formats a constant without its spans.
pub(crate) fn show(datum: &Datum) -> String {
    show_kind(&datum.kind)
}

fn show_kind(kind: &DatumKind) -> String {
    let join = |items: &[Datum]| items.iter().map(show).collect::<Vec<_>>().join(" ");
    match kind {
        DatumKind::Symbol(name) | DatumKind::Keyword(name) | DatumKind::NotFinite(name) => name.clone(),
        DatumKind::String(text) => format!("{text:?}"),
        DatumKind::Number(Number::Integer(value)) => value.to_string(),
        DatumKind::Number(Number::Unsigned(value)) => value.to_string(),
        DatumKind::Number(Number::Float(value) | Number::Rounded(value)) => format!("{value:?}"),
        DatumKind::List(items) => format!("({})", join(items)),
        DatumKind::Dotted(items, tail) => format!("({} . {})", join(items), show(tail)),
        DatumKind::Vector(items) => format!("[{}]", join(items)),
        DatumKind::Quoted(inner) => format!("'{}", show(inner)),
        DatumKind::Invalid => String::from("!"),
    }
}

#[test]
fn constants_are_folded() {
    for (text, expected) in [
        ("(list 1 \"a\" '(b c) :k)", "(1 \"a\" (b c) :k)"),
        ("(list '(:name \"x\") (list :name \"y\"))", "((:name \"x\") (:name \"y\"))"),
        ("(vector 1 (concat \"a\" \"b\"))", "[1 \"ab\"]"),
        ("(quote (a 'b))", "(a 'b)"),
        ("`(a ,(concat \"x\" \"y\") ,@(list 1 2) [,(list 3)])", "(a \"xy\" 1 2 [(3)])"),
        ("(cons 'a '(b))", "(a b)"),
        ("(cons 1 2)", "(1 . 2)"),
        ("'(a . (b . (c)))", "(a b c)"),
        ("(append '(1) (list 2) [3] nil)", "(1 2 3)"),
        ("(format \"%s is %d%%\" 'x 5)", "\"x is 5%\""),
        ("(format \"%s %S %c\" nil \"a\\\"b\" ?é)", "\"nil \\\"a\\\\\\\"b\\\" é\""),
        ("(append '(1) [2])", "(1 . [2])"),
        ("(append \"ab\" '(1))", "(97 98 1)"),
        ("(append)", "()"),
        ("(concat \"a\" '(98 99) [100] nil)", "\"abcd\""),
        ("(concat)", "\"\""),
        ("(append [1] '(2 . 3))", "(1 2 . 3)"),
        ("(append [1])", "[1]"),
        ("(append nil 3)", "3"),
        ("`(a ,@[1 2] ,@'(3 . 4))", "(a 1 2 3 . 4)"),
        ("`(,@5)", "5"),
        ("`[,@[1] 2]", "[1 2]"),
        ("(cons 1 '(2 . 3))", "(1 2 . 3)"),
        ("'(a #'b)", "(a 'b)"),
        ("#'identity", "identity"),
        ("(function car)", "car"),
        ("nil", "()"),
        ("\\nil", "()"),
        ("\\:key", ":key"),
        ("1.e3", "1000.0"),
        ("\"a\r\nb\\\r\nc\"", "\"a\\nbc\""),
        ("?a", "97"),
        ("(:a (:b (list 1)))", "(:a (:b (1)))"),
        ("((a . 1) (b . (list 2)))", "((a . 1) (b list 2))"),
        ("((:a 1) (:b 2))", "((:a 1) (:b 2))"),
        ("18446744073709551615", "18446744073709551615"),
        ("99999999999999999999", "1e20"),
        ("1.0", "1.0"),
        ("1.0e+INF", "1.0e+INF"),
    ] {
        let (kind, messages) = folded(text);
        assert_eq!((show_kind(&kind).as_str(), messages), (expected, vec![]), "{text}");
    }
    for (text, message) in [
        ("(foo 1)", "not a constant: `(foo 1)`"),
        ("(list (getenv \"X\"))", "not a constant: `(getenv \"X\")`"),
        ("(list . (1))", "not a constant: `(list . (1))`"),
        ("(append 1 nil)", "not a constant: `append` takes lists, found an integer"),
        ("(append x nil)", "not a constant: the variable `x`"),
        ("`(a ,@5 b)", "`,@` requires a list, found an integer"),
        ("(lambda (x) x)", "not a constant: `(lambda (x) x)`"),
        ("(concat \"a\" 'b)", "not a constant: `concat` takes strings, found a symbol"),
        ("(concat \"a\" 1)", "not a constant: `concat` takes strings, found an integer"),
        ("(concat \"a\" my-var)", "not a constant: the variable `my-var`"),
        ("(concat \"a\" (f x))", "not a constant: `(f x)`"),
        ("(concat '(x))", "not a constant: `concat` takes strings and characters, found a symbol"),
        ("`(a ,x)", "not a constant: the variable `x`"),
        ("`(a ,@xs)", "not a constant: the variable `xs`"),
        ("(format \"%s %d\" \"only\")", "not a constant: `format` has more directives than arguments"),
        ("(format \"%q\" 1)", "not a constant: unknown `format` directive `%q`"),
        ("(format \"%5%|\")", "not a constant: unknown `format` directive `%5%`"),
        (
            "(format \"%5s\" \"é\")",
            "not a constant: the width of non-ASCII text in 5 columns depends on the display",
        ),
        ("(format \"%d\" \"a\")", "not a constant: `%d` takes a number"),
        ("(format \"%#010x\" 255)", "not a constant: the flag `#` with a width or precision is not folded"),
        ("(format \"%.0c\" ?a)", "not a constant: `%c` with a precision is not folded"),
        (
            "(format \"%9s\" \"a\\tb\")",
            "not a constant: the width of tabs and control characters depends on the display",
        ),
        ("(format \"%99999d\" 1)", "not a constant: a `format` field is wider than 1000"),
        ("(format 5)", "not a constant: `format` takes a string first, found an integer"),
        ("(format \"a%\")", "not a constant: the template of `format` ends inside a directive"),
        ("#s(x)", "not a constant: `#s(x)`"),
        (",x", "a backquote or comma is not a constant here"),
        (r#""\xe9""#, "this escape is the raw byte 0xe9, which JSON cannot represent"),
        (r#""\ud800""#, "the character 0xd800 is not in Unicode and has no JSON form"),
    ] {
        assert_eq!(folded(text).1, vec![message], "{text}");
    }
}

/// The expected values are results of Emacs 28.2.
#[test]
fn format_is_folded_as_emacs_formats() {
    for (call, expected) in [
        (r#""%05s|%-5s|%5s" "a" "b" "c""#, "    a|b    |    c"),
        (r#""%5d|%-5d|%05d|%+d|% d|%+05d" 42 42 42 42 42 42"#, "   42|42   |00042|+42| 42|+0042"),
        (r#""%x %X %o %#x %#o %#X" 255 255 8 255 8 255"#, "ff FF 10 0xff 010 0XFF"),
        (r#""%x %x" -255 255.9"#, "-ff ff"),
        (r#""%c|%3c|%-3c|%c|%05c" ?a ?b ?c 8364 ?a"#, "a|  b|c  |€|    a"),
        (
            r#""%s %s %s %s %s %s" 1.0 100000.0 1e15 1e14 1e-5 0.1"#,
            "1.0 100000.0 1e+15 100000000000000.0 1e-05 0.1",
        ),
        (
            r#""%s %s %s %s" 5e-324 1.5e300 -0.0 0.1234567890123456789"#,
            "5e-324 1.5e+300 -0.0 0.12345678901234568",
        ),
        (r#""%s" 2.2250738585072014e-308"#, "2.2250738585072014e-308"),
        (r#""%.2s|%5.2s" "abc" "abc""#, "ab|   ab"),
        (r#""%d %d %d" 3.7 -3.7 ?a"#, "3 -3 97"),
        (r#""%.3d|%5.3d|%05.3d|%.0d" 5 5 5 0"#, "005|  005|  005|"),
        (r#""%2$s %1$s %s" "a" "b""#, "b a b"),
        (
            r#""%f %.2f %e %.1e %g %g %g" 1.5 2 1500.0 0.00123 0.0001 1e10 100000"#,
            "1.500000 2.00 1.500000e+03 1.2e-03 0.0001 1e+10 100000",
        ),
        (r#""%05.1f|%+.1f|% .1f|%-8.2f|" 2.55 2.55 2.55 2.55"#, "002.5|+2.5| 2.5|2.55    |"),
        (r#""%S %s" "a b\"c\\" :key"#, r#""a b\"c\\" :key"#),
        (r#""%05d|%-05d|% 5d|%+x" -42 42 3 255"#, "-0042|42   |    3|+ff"),
        (r#""%#o %#x %s %5S" 0 0 nil "a""#, "0 0 nil   \"a\""),
        (r#""%s" "a" "b""#, "a"),
    ] {
        let (kind, messages) = folded(&format!("(format {call})"));
        assert_eq!((kind, messages), (DatumKind::String(expected.to_owned()), vec![]), "{call}");
    }
}

/// Compares with `lexpr` for the subset that it reads correctly.
#[test]
fn lexpr_reads_the_same_constants() {
    for text in [
        "(:name \"get_weather\" :args ((:name \"location\" :type string) (:name \"unit\" :enum [\"a\" \"b\"])))",
        "(1 -2 2.5 \"a\\nb\" sym [x y] (a . b))",
        "[]",
        "(deftool :name \"x\" :timeout \"5s\" :allow (:read [\"notes/\"]))",
    ] {
        let theirs = lexpr::from_str_custom(text, lexpr::parse::Options::elisp()).unwrap();
        let ours = folded(&format!("'{text}")).0;
        assert_eq!(show(&from_lexpr(&theirs).unwrap()), show_kind(&ours), "{text}");
    }
}

fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "(", ")", "[", "]", "'", "`", ",", ",@", "\"", "\\", "?", "#", "#'", "#s(", "#1=", "#@9", ";", "\n",
        "\r", " ", ".", ":a", "a:", "é", "\u{A0}", "𝄞", "1e9", "\\N{", "}", "\\C-", "\\x", "0", "deftool",
        "list", "format", "%s", "#&3", "\0", "\u{FEFF}", "“", "”", "‘", "«", "\u{2003}", "\u{200B}",
    ]);
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// For any text, spans are nested, ordered and on character boundaries.
    #[test]
    fn any_text_has_a_well_formed_tree(text in hostile_text()) {
        let (tree, findings) = parse(source(), &text);
        for id in tree.iter() {
            let span = tree.span(id);
            prop_assert!(span.start <= span.end && span.end as usize <= text.len());
            prop_assert!(text.get(span.range()).is_some());
            let mut at = span.start;
            for child in tree.children(id) {
                prop_assert!(tree.span(child).start >= at && tree.span(child).end <= span.end);
                at = tree.span(child).end;
            }
        }
        for finding in &findings {
            prop_assert!(text.get(finding.primary.span.range()).is_some(), "{}", finding.message);
        }
        let mut folder = Folder::new(source(), &text, &tree);
        for root in tree.roots() {
            folder.fold(root);
        }
    }
}
