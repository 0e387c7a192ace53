//! The host tables hold what is told of them.

use std::collections::BTreeSet;

use deftool::script::host_tables;

use super::*;

#[test]
fn every_field_of_a_host_table_is_documented() {
    for doc in host_tables() {
        let source = format!(
            "return function() local names = {{}} for name in {} do table.insert(names, name) end return json.array(names) end",
            doc.name
        );
        let fields = run_source(&source).unwrap();
        let found: BTreeSet<&str> = fields.as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let told = doc.functions.iter().map(|function| function.name);
        let values = doc.values.iter().map(|value| value.name);
        // Values that are computed when they are read are no fields.
        let told: BTreeSet<&str> = told.chain(values.filter(|name| found.contains(name))).collect();
        assert_eq!(found, told, "{}", doc.name);
    }
}
