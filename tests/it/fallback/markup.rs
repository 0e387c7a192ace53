//! What real models wrote (`tests/fallback/*.txt`), streamed by a real server.

use deftool::request::Fallback;
use serde_json::{Value, json};

use super::corpus::CUTS;
use super::read::reader;

#[test]
fn what_models_wrote_is_read() {
    let weather = || json!({"location": "Paris, France", "unit": "celsius"});
    let paris = || json!({"location": "Paris, France"});
    let hits: [(&str, Value, &str, bool); 20] = [
        ("hermes", weather(), "", true),
        ("mistral_v3", weather(), "", true),
        ("llama31_json", weather(), "", false),
        ("llama3_python_tag_call", weather(), "", true),
        ("functionary_v32", weather(), "", true),
        ("qwen3_coder_no_open_tag", paris(), "", true),
        ("deepseek_r1", weather(), "", true),
        ("deepseek_v32_dsml", paris(), "", true),
        ("seed_json_object", weather(), "", false),
        ("seed_json_fenced", weather(), "I will call the tool.", false),
        ("seed_json_line_in_prose", weather(), "Checking the weather now.\nDone.", false),
        ("command_r7b", weather(), "", true),
        ("gemma_tool_code", weather(), "", true),
        ("granite", weather(), "", true),
        ("anthropic_xml", paris(), "", true),
        ("nemotron", weather(), "", true),
        ("pythonic_llama4", weather(), "", false),
        ("xlam_array", weather(), "", false),
        ("think_then_call", weather(), "<think>\nThe user wants weather.\n</think>", true),
        ("exit_tool_and_text", json!({"status": "done"}), "The answer is 42.", false),
    ];
    for (name, arguments, text, marked) in hits {
        let script = script(name);
        for cut in CUTS {
            let read = reader(Fallback::On).cut(cut).read(&script);
            let called: Vec<&Value> =
                read.calls.iter().chain(&read.signals).map(|(_, value)| value).collect();
            assert_eq!(called, [&arguments], "{name}: {read:?}");
            assert_eq!(read.text.trim_end(), text, "{name}");
            let auto = reader(Fallback::Auto).cut(cut).read(&script);
            assert_eq!(auto.is_text(&script), !marked, "{name}: {auto:?}");
        }
    }
    let refused = script("false_positive_docs");
    let cut_off = script("truncated_call");
    for cut in CUTS {
        assert!(reader(Fallback::On).cut(cut).read(&refused).is_text(&refused));
        let read = reader(Fallback::Auto).cut(cut).read(&cut_off);
        assert_eq!((read.failed.as_deref(), read.text.as_str()), (Some("malformed_call"), cut_off.as_str()));
    }
}

fn script(name: &str) -> String {
    let path = format!("{}/tests/fallback/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}
