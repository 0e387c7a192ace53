//! The host tables match their documentation.

use std::collections::BTreeSet;

use deftool_script::{host_tables, is_known_global, known_globals};

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
        let documented = doc.functions.iter().map(|function| function.name);
        let values = doc.values.iter().map(|value| value.name);
        // Values that are computed on access are not fields.
        let documented: BTreeSet<&str> =
            documented.chain(values.filter(|name| found.contains(name))).collect();
        assert_eq!(found, documented, "{}", doc.name);
    }
}

/// Without grants, a function fails with the permission that it is documented to require. With that grant, it does not
/// fail with a permission error.
#[test]
fn every_function_requires_its_documented_permission() {
    for doc in host_tables() {
        let documented: BTreeSet<&str> =
            doc.functions.iter().flat_map(|function| function.permissions).copied().collect();
        assert_eq!(documented, doc.permissions.iter().copied().collect(), "{}", doc.name);
        for function in doc.functions {
            let name = format!("{}.{}", doc.name, function.name);
            let denials: Vec<String> =
                ["'http://127.0.0.1:9/'", "'x', 'x'", "{ 'git' }", "{ url = 'http://127.0.0.1:9/' }"]
                    .into_iter()
                    .filter_map(|given| run_source(&format!("return function() {name}({given}) end")).err())
                    .filter(|error| error.kind == ToolErrorKind::Permission)
                    .map(|error| error.message)
                    .collect();
            match function.permissions.first() {
                None => assert_eq!(denials, Vec::<String>::new(), "{name}"),
                Some(key) => {
                    let fragment = format!(":allow (:{key} ");
                    assert!(denials.iter().any(|message| message.contains(&fragment)), "{name}: {denials:?}");
                }
            }
            for key in function.permissions {
                let mut script = script(&format!("return function() {name}('x', 'x') end"));
                let folder = PathGrant::new(".", env!("CARGO_MANIFEST_DIR"));
                match *key {
                    "read" => script.permissions.read.push(folder),
                    "write" if function.permissions.len() > 1 => script.permissions.write.push(folder),
                    _ => continue,
                }
                let is_denied =
                    run(script, json!({})).is_err_and(|error| error.kind == ToolErrorKind::Permission);
                assert!(!is_denied, "{name} is not permitted with :{key}");
            }
        }
    }
}

/// Also compares the list of known library names with the globals of a script.
#[test]
fn every_global_of_a_script_is_known() {
    let source = "return function()
        local names = json.array({})
        for name, value in _G do
            table.insert(names, name)
            if type(value) == 'table' and name ~= '_G' then
                for field in value do table.insert(names, name .. '.' .. field) end
            end
        end
        return names
    end";
    let names = run_source(source).unwrap();
    let found: Vec<Vec<&str>> = names
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .map(|name| name.split('.').collect())
        .collect();
    for path in &found {
        assert!(is_known_global(path), "unknown global {}", path.join("."));
    }
    for wrong in [&["io"][..], &["os", "execute"], &["string", "trim"], &["json", "parse"], &["loadstring"]] {
        assert!(!is_known_global(wrong), "{wrong:?}");
    }
    // A name that does not exist would hide mistakes.
    for name in known_globals().into_iter().filter(|name| !name.starts_with("tool.")) {
        assert!(found.iter().any(|path| path.join(".") == name), "{name} does not exist");
    }
}
