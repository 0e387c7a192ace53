//! The formatter on typical specs of 0.5 MB and 5 MB: `cargo bench --bench fmt`. Equal rates show that time is linear.

use deftool_lang::spec::{FileKind, ToolForms, format};
use deftool_lang::text::{SourceFile, Sources};
use divan::counter::BytesCount;

/// The template of every tool in the file. The name gets a number. The layout is typical of unformatted files.
const SPEC: &str = r#"
;; Tool N of the corpus.
(gptel-make-tool :name "book_table_N"
    :description "Book a table in a restaurant, and say when it is."
    :function (lambda (callback name guests)
         (funcall callback (format "%s for %d\n" name guests)))
    :category "evening" :async t   ; answers later
    :args (list '(:name "wishes" :description "What the guests ask for, in order. At most eight."
                  :type array :items (:type object :properties (:course (:type integer :minimum 1 :maximum 7)
                      :dish (:type string :description "Name as on the menu, e.g. \"Kaiserschmarrn\"")) :required ["dish"]))
                '(:name "hour" :type integer :optional t :minimum 17 :maximum 23 :description "Hour of the day.")))
"#;

fn corpus(bytes: usize) -> String {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < bytes {
        text.push_str(&SPEC.replace('N', &number.to_string()));
        number += 1;
    }
    text
}

fn main() {
    divan::main();
}

#[divan::bench(args = [500_000, 5_000_000], sample_count = 20, sample_size = 1)]
fn lay_out(bencher: divan::Bencher<'_, '_>, bytes: usize) {
    let text = corpus(bytes);
    let source = Sources::new().add(SourceFile::new("corpus.eld", ""));
    bencher.counter(BytesCount::of_str(&text)).bench(|| {
        format(source, divan::black_box(&text), FileKind::Specs, &ToolForms::default()).map_err(drop)
    });
}
