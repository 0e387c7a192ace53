//! The reader: right, total, linear.

use deftool::spec::{FileKind, lower};
use deftool::syntax::{
    Datum, DatumKind, Fault, Folder, Kind, NodeId, Number, Tree, lexpr::from_lexpr, parse,
};
use deftool::text::{SourceFile, SourceId, Sources};
use proptest::prelude::*;

use crate::support::cpu::CpuClock;

fn source() -> SourceId {
    Sources::new().add(SourceFile::new("t.eld", ""))
}

fn read(text: &str) -> (Tree, Vec<String>) {
    let (tree, findings) = parse(source(), text);
    let told =
        findings.iter().map(|f| format!("{}@{}: {}", f.rule.code, f.primary.span.start, f.message)).collect();
    (tree, told)
}

/// The tree as text, without looking at the source again for structure.
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
        // A no-break space separates, and makes no dot of a dot.
        ("(a .\u{A0}b)", "(Symbol:a Symbol:. Symbol:b)"),
        ("(\"a;b\" \"\\\"(\" \"é日\")", "(String:\"a;b\" String:\"\\\"(\" String:\"é日\")"),
        ("#@3abc(x)", "(Symbol:x)"),
        ("'(a 'b)", "Quote<(Symbol:a Quote<Symbol:b>)>"),
        ("(:json-false :a:)", "(Keyword::json-false Keyword::a:)"),
    ] {
        let (_, told) = read(text);
        assert_eq!(told, Vec::<String>::new(), "{text}");
        assert_eq!(outline(text), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_named_and_reading_goes_on() {
    for (text, expected) in [
        ("(a (b", vec!["DT001@0: `(` is never closed"]),
        ("(a [b)", vec!["DT001@3: `[` is never closed"]),
        ("a) b]", vec!["DT002@1: `)` closes nothing", "DT002@4: `]` closes nothing"]),
        ("(a ')", vec!["DT003@3: `'` is followed by no form"]),
        ("'", vec!["DT003@0: `'` is followed by no form"]),
        ("\"abc", vec!["DT001@0: `\"` is never closed"]),
        ("(a\n(b)\n(c)", vec!["DT001@0: `(` is never closed"]),
        ("(a)\n(b \"x\" (c)\n(d)\n(e", vec!["DT001@4: `(` is never closed", "DT001@19: `(` is never closed"]),
        ("(\"a", vec!["DT001@1: `\"` is never closed"]),
        ("(a . b c)", vec!["DT004@3: a dot belongs before the last element of a list"]),
        ("(a . . b)", vec!["DT004@3: a dot belongs before the last element of a list"]),
        ("(. a)", vec!["DT004@1: a dot belongs before the last element of a list"]),
        ("[a . b]", vec!["DT004@3: a dot belongs before the last element of a list"]),
        ("(a . )", vec!["DT004@3: a dot belongs before the last element of a list"]),
        ("'. a", vec!["DT004@1: a dot belongs before the last element of a list"]),
        (". a", vec!["DT004@0: a dot belongs before the last element of a list"]),
        ("a\\", vec!["DT005@1: a character is missing after the backslash"]),
        ("a\\\\", vec![]),
        ("#1#", vec!["DT007@0: `#1#` is no reader syntax of Emacs Lisp"]),
        ("?\\Ma", vec!["DT006@0: `\\M` is a modifier and needs a dash: `\\M-x`"]),
        ("?\\\n", vec!["DT006@0: an escaped newline is no character"]),
        (r#""\C""#, vec![r"DT005@1: `\C` is a modifier and needs a dash: `\C-x`"]),
        ("?ab", vec!["DT006@0: `?` takes one character, and more follows"]),
        ("#q", vec!["DT007@0: `#q` is no reader syntax of Emacs Lisp"]),
        (r#""a\u12""#, vec!["DT005@2: `\\u` needs 4 hexadecimal digits"]),
        (
            "#b12 #1",
            vec![
                "DT007@0: `#b12` is no reader syntax of Emacs Lisp",
                "DT007@5: `#1` is no reader syntax of Emacs Lisp",
            ],
        ),
    ] {
        assert_eq!(read(text).1, expected, "{text}");
    }
    // One missing parenthesis costs one form.
    assert_eq!(outline("(a\n(b)\n(c)"), "(Symbol:a)\n(Symbol:b)\n(Symbol:c)");
}

#[test]
fn hostile_depth_and_size_neither_overflow_nor_hang() {
    let clock = CpuClock::start();
    let million = 1_000_000;
    let texts = [
        "(".repeat(million),
        "[".repeat(million),
        ")".repeat(million),
        "'".repeat(million),
        "`,@".repeat(million / 2),
        "#s(".repeat(million / 2),
        format!("{}{}", "(".repeat(million), ")".repeat(million)),
        format!("({})", "\"x\" ".repeat(1_300_000)),
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
        // Folding has a depth of its own.
        if let Some(root) = tree.roots().next() {
            let mut folder = Folder::new(source(), text, &tree);
            let _ = folder.fold(root);
        }
    }
    // Fifteen texts of about a megabyte: quadratic behaviour would take hours, and a frame on the stack for each opener more
    // than a thread has.
    assert!(clock.elapsed().as_secs() < 60);
}

#[test]
fn broken_files_cost_linear_time() {
    let many = 60_000;
    let clock = CpuClock::start();
    for text in [
        // Stray closers beyond all that is told, then as many forms that are asked for their faults.
        format!("(a)\nb {}{}", ")".repeat(many), "(x)".repeat(many)),
        // Prefixes that wait for a form, one a line, in a form that is never closed.
        format!("(a\n ({}", "\n  '".repeat(many)),
        format!("(a{}\n (b{}", "\n '".repeat(many), "\n  (c".repeat(many)),
        // Strings that run to the end of the file, each of them read from its start.
        format!("{}\"x\n(b)", "(\\C-\"\n".repeat(many)),
        format!("{}\n(b", "(\\C-\"\n".repeat(many)),
    ] {
        let (tree, findings) = parse(source(), &text);
        assert!(findings.len() <= 1_000);
        let faulty = tree.roots().filter(|root| tree.fault(*root).is_some()).count();
        assert!(faulty > 0, "{findings:?}");
        println!("{:?} {faulty}", clock.elapsed());
    }
    assert!(clock.elapsed().as_secs() < 20, "{:?}", clock.elapsed());
}

#[test]
fn a_form_knows_its_worst_fault_among_many() {
    let text = "(good)\n(bad ?ab)\n(good)\n(stray))\n(good)\n(again ?ab)";
    let (tree, _) = parse(source(), text);
    let faults: Vec<_> = tree.roots().map(|root| tree.fault(root)).collect();
    assert_eq!(faults, [None, Some(Fault::Misread), None, None, None, Some(Fault::Misread)]);
    let text = format!("(ok)\n{}\n(after)", ")".repeat(2_000));
    let (tree, _) = parse(source(), &text);
    let faults: Vec<_> = tree.roots().map(|root| tree.fault(root)).collect();
    assert_eq!(faults, [None, Some(Fault::Misnested)], "what follows too many faults is not believed");
}

#[allow(clippy::too_many_lines)] // a table
/// Whatever Emacs reads is skipped under `:function`, in a lambda and as such, and the tools around it compile.
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
            let told: Vec<_> = findings.iter().map(|finding| &finding.message).collect();
            let names: Vec<_> =
                definitions.tools.iter().filter(|tool| tool.valid).map(|tool| &*tool.name.value).collect();
            assert_eq!((names, told), (vec!["first", "second"], vec![]), "{code}");
        }
    }
}

/// A file as editors of other systems save it means the same.
#[test]
fn line_ends_marks_and_blanks_change_nothing() {
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

/// A constant without its places.
fn show(datum: &Datum) -> String {
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
        let (kind, told) = folded(text);
        assert_eq!((show_kind(&kind).as_str(), told), (expected, vec![]), "{text}");
    }
    for (text, message) in [
        ("(foo 1)", "not a constant: `(foo 1)`"),
        ("(list (getenv \"X\"))", "not a constant: `(getenv \"X\")`"),
        ("(list . (1))", "not a constant: `(list . (1))`"),
        ("(append 1 nil)", "not a constant: `append` takes lists, found an integer"),
        ("(append x nil)", "not a constant: the variable `x`"),
        ("`(a ,@5 b)", "`,@` splices a list, and this is an integer"),
        ("(lambda (x) x)", "not a constant: `(lambda (x) x)`"),
        ("(concat \"a\" 'b)", "not a constant: `concat` takes strings, found a symbol"),
        ("(concat \"a\" 1)", "not a constant: `concat` takes strings, found an integer"),
        ("(concat \"a\" my-var)", "not a constant: the variable `my-var`"),
        ("(concat \"a\" (f x))", "not a constant: `(f x)`"),
        ("(concat '(x))", "not a constant: `concat` takes strings and characters, found a symbol"),
        ("`(a ,x)", "not a constant: the variable `x`"),
        ("`(a ,@xs)", "not a constant: the variable `xs`"),
        ("(format \"%s %d\" \"only\")", "not a constant: `format` has more directives than arguments"),
        ("(format \"%q\" 1)", "not a constant: `format` has no directive `%q`"),
        ("(format \"%5%|\")", "not a constant: `format` has no directive `%5%`"),
        (
            "(format \"%5s\" \"é\")",
            "not a constant: how 5 columns of text beyond ASCII look depends on the display",
        ),
        ("(format \"%s\" '(a))", "not a constant: how Emacs writes a list or vector is not folded"),
        ("(format \"%d\" \"a\")", "not a constant: `%d` takes a number"),
        ("(format \"%#010x\" 255)", "not a constant: the flag `#` with a width or precision is not folded"),
        ("(format \"%.0c\" ?a)", "not a constant: `%c` with a precision is not folded"),
        (
            "(format \"%9s\" \"a\\tb\")",
            "not a constant: how wide tabs and control characters are depends on the display",
        ),
        ("(format \"%99999d\" 1)", "not a constant: a field of `format` is wider than 1000"),
        ("(format 5)", "not a constant: `format` takes a string first, found an integer"),
        ("(format \"a%\")", "not a constant: the template of `format` ends inside a directive"),
        ("#s(x)", "not a constant: `#s(x)`"),
        (",x", "a backquote or comma has no constant meaning here"),
        (r#""\xe9""#, "the escape is the raw byte 0xe9 in Emacs, which JSON cannot carry"),
        (r#""\ud800""#, "the character 0xd800 is not Unicode and has no JSON form"),
    ] {
        assert_eq!(folded(text).1, vec![message], "{text}");
    }
}

/// What Emacs 28.2 answers.
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
        let (kind, told) = folded(&format!("(format {call})"));
        assert_eq!((kind, told), (DatumKind::String(expected.to_owned()), vec![]), "{call}");
    }
}

/// `lexpr` as oracle for the subset that it reads right.
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

    /// Spans nest, stand in order and lie on character boundaries, whatever the text is.
    #[test]
    fn any_text_reads_to_a_well_formed_tree(text in hostile_text()) {
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
