//! The reader on 5 MB of ordinary specs: `cargo bench --bench reader`. Goal: 150 MB/s.

use deftool::syntax::parse;
use deftool::text::{SourceFile, Sources};
use divan::counter::BytesCount;

/// The tool that every copy in the file is made of, with a number for a name.
const SPEC: &str = r#"
;; Tool N of the corpus.
(gptel-make-tool
 :name "record_summary_N"
 :description "Record summary of an image using well-structured JSON."
 :function (lambda (callback key_colors)
             (funcall callback (format "%s\n" (length key_colors))))
 :category "images"
 :async t
 :args (list '(:name "key_colors"
               :description "Key colors in the image. Limit to less than four."
               :type array
               :items (:type object
                       :properties
                       (:r (:type number :description "red value [0.0, 1.0]")
                        :name (:type string
                               :description "Human-readable color name, e.g. \"olive_green\""))
                       :required ["r" "name"]))
             '(:name "estimated_year" :type integer :optional t :minimum 1800
               :description "Estimated year that the image was taken. Rough estimates are okay!")))
"#;

fn corpus() -> String {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 5_000_000 {
        text.push_str(&SPEC.replace('N', &number.to_string()));
        number += 1;
    }
    text
}

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 50, sample_size = 1)]
fn read_5_mb(bencher: divan::Bencher<'_, '_>) {
    let text = corpus();
    let source = Sources::new().add(SourceFile::new("corpus.el", ""));
    bencher.counter(BytesCount::of_str(&text)).bench(|| parse(source, divan::black_box(&text)));
}
