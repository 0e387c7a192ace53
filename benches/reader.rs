//! The reader on 5 MB of typical specs: `cargo bench --bench reader`. Goal: 150 MB/s.

use deftool_lang::syntax::parse;
use deftool_lang::text::{SourceFile, Sources};
use divan::counter::BytesCount;

/// The template of every tool in the file. The name gets a number. It contains the elements of real specs: ignored code,
/// quoted plists, nested schemas, escapes, comments.
const SPEC: &str = r#"
;; Tool N of the corpus.
(gptel-make-tool
 :name "plan_route_N"
 :description "Plan a route between two stations and list the trains to take."
 :function (lambda (callback from to)
             (funcall callback (format "%s -> %s\n" from to)))
 :category "travel"
 :async t
 :args (list '(:name "stops"
               :description "Stations on the way, in order. At most eight."
               :type array
               :items (:type object
                       :properties
                       (:minutes (:type number :description "Shortest stay there, in minutes.")
                        :station (:type string
                                  :description "Name as on the sign, e.g. \"Gare du Nord\""))
                       :required ["minutes" "station"]))
             '(:name "earliest" :type integer :optional t :minimum 0
               :description "Hour of the day before which no train is taken, from 0 to 23.")))
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
