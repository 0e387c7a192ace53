//! Written constants read back the same, with the reader and, where possible, with `lexpr`.

use deftool_lang::spec::{FileKind, format_generated};
use deftool_lang::syntax::lexpr::{from_lexpr, print};
use deftool_lang::syntax::{Datum, DatumKind, Folder, Number, parse, write};
use deftool_lang::text::{SourceFile, Sources, Span};
use deftool_test_support::step;
use proptest::prelude::*;

fn datum(kind: DatumKind) -> Datum {
    Datum { span: Span::default(), kind }
}

/// Removes spans and converts rounded numbers to floats.
fn bare(datum: &Datum) -> Datum {
    let all = |items: &[Datum]| items.iter().map(bare).collect();
    self::datum(match &datum.kind {
        DatumKind::List(items) => DatumKind::List(all(items)),
        DatumKind::Vector(items) => DatumKind::Vector(all(items)),
        DatumKind::Dotted(items, tail) => DatumKind::Dotted(all(items), Box::new(bare(tail))),
        DatumKind::Quoted(inner) => DatumKind::Quoted(Box::new(bare(inner))),
        DatumKind::Number(Number::Rounded(value)) => DatumKind::Number(Number::Float(*value)),
        kind => kind.clone(),
    })
}

fn read(text: &str) -> Datum {
    let source = Sources::new().add(SourceFile::new("t.eld", ""));
    let text = format!("'{text}");
    let (tree, findings) = parse(source, &text);
    assert!(findings.is_empty(), "{text}: {findings:?}");
    let roots: Vec<_> = tree.roots().collect();
    assert_eq!(roots.len(), 1, "{text}");
    let mut folder = Folder::new(source, &text, &tree);
    let read = folder.fold(roots[0]);
    assert!(folder.findings.is_empty(), "{text}: {:?}", folder.findings);
    bare(&read)
}

/// Text with special characters at any position.
fn text() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(
        "\n\n\n \t\r\"\\()[]';,`#?.:-+0e\u{0}\u{1b}\u{7f}\u{80}\u{a0}\u{feff}\u{202e}\u{2028}aé😀"
            .chars()
            .collect::<Vec<_>>(),
    );
    let character = prop_oneof![3 => odd, 1 => any::<char>()];
    prop::collection::vec(character, 0..12).prop_map(|characters| characters.into_iter().collect())
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::Integer),
        (i64::MAX as u64 + 1..=u64::MAX).prop_map(Number::Unsigned),
        any::<f64>().prop_filter("JSON has no other", |value| value.is_finite()).prop_map(Number::Float),
        prop::sample::select(vec![0.0, -0.0, 1.0, 1e16, 1e-7, 5e-324, f64::MAX]).prop_map(Number::Float),
        prop::sample::select(vec![1e19, -1e300]).prop_map(Number::Rounded),
    ]
}

fn constant() -> impl Strategy<Value = Datum> {
    let symbol = text().prop_filter("nil and keywords are no symbols", |name| {
        !name.is_empty() && name != "nil" && !name.starts_with(':')
    });
    let numeral = prop::sample::select(vec!["1", "-1.5", "1e3", "+1.", ".5", "1+", "..", "-"]);
    let atom = prop_oneof![
        symbol.prop_map(DatumKind::Symbol),
        numeral.prop_map(|name| DatumKind::Symbol(name.to_owned())),
        text().prop_map(|name| DatumKind::Keyword(format!(":{name}"))),
        text().prop_map(DatumKind::String),
        "[a-z ,.]{0,150}".prop_map(DatumKind::String),
        number().prop_map(DatumKind::Number),
    ];
    atom.prop_map(datum).prop_recursive(5, 60, 6, |inner| {
        let items = || prop::collection::vec(inner.clone(), 0..6);
        let tail = inner.clone().prop_filter("a list is no tail", |tail| {
            !matches!(tail.kind, DatumKind::List(_) | DatumKind::Dotted(..))
        });
        let dotted = (prop::collection::vec(inner.clone(), 1..4), tail);
        let entries = prop::collection::vec((text(), inner.clone()), 0..5);
        prop_oneof![
            items().prop_map(DatumKind::List),
            items().prop_map(DatumKind::Vector),
            entries.prop_map(|entries| DatumKind::List(
                entries
                    .into_iter()
                    .flat_map(|(key, value)| [datum(DatumKind::Keyword(format!(":{key}"))), value])
                    .collect()
            )),
            dotted.prop_map(|(items, tail)| DatumKind::Dotted(items, Box::new(tail))),
            inner.prop_map(|inner| DatumKind::Quoted(Box::new(inner))),
        ]
        .prop_map(datum)
    })
}

/// Constants that `lexpr` reads like Emacs.
fn plain_constant() -> impl Strategy<Value = Datum> {
    let name = "[a-z][a-z-]{0,5}".prop_filter("a constant of its own", |name| name != "nil" && name != "t");
    let atom = prop_oneof![
        name.clone().prop_map(DatumKind::Symbol),
        name.prop_map(|name| DatumKind::Keyword(format!(":{name}"))),
        r#"[a-zé" \\(]{0,60}"#.prop_map(DatumKind::String),
        any::<i64>().prop_map(|value| DatumKind::Number(Number::Integer(value))),
        // `lexpr` reads only simple floats exactly.
        (-4000_i32..4000).prop_map(|value| DatumKind::Number(Number::Float(f64::from(value) / 8.0))),
    ];
    atom.prop_map(datum).prop_recursive(4, 40, 5, |inner| {
        let items = || prop::collection::vec(inner.clone(), 0..6);
        prop_oneof![items().prop_map(DatumKind::List), items().prop_map(DatumKind::Vector)].prop_map(datum)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000 / step(4) as u32) })]

    #[test]
    fn constants_read_back(constant in constant()) {
        let text = write(&constant);
        prop_assert_eq!(read(&text), bare(&constant), "{}", text);
    }

    #[test]
    fn lexpr_reads_the_same(constant in plain_constant()) {
        let text = write(&constant);
        let value = lexpr::from_str_custom(&text, lexpr::parse::Options::elisp()).unwrap();
        prop_assert_eq!(from_lexpr(&value).unwrap(), constant.clone(), "{}", text);
        prop_assert_eq!(read(&print(&constant)), constant);
    }
}

#[test]
fn the_formatter_gives_a_form_its_layout() {
    let source = "(deftool :name \"a\" :description \"One line.\nAnother (one).\n(And)\" :args ((:name \"x\" :type string :enum [\"a\" \"b\"]) (:name \"y\" :type object :properties (:first (:type string :description \"It is long enough to go on a line of its own.\") :second (:type number)))))";
    let expected = "(deftool
 :name \"a\"
 :description \"One line.
Another (one).
\\(And)\"
 :args ((:name \"x\" :type string :enum [\"a\" \"b\"])
        (:name \"y\"
         :type object
         :properties
         (:first (:type string :description \"It is long enough to go on a line of its own.\")
          :second (:type number)))))\n";
    assert_eq!(format_generated(write(&read(source)) + "\n", FileKind::Specs), expected);
}
