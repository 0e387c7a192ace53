//! Specs as `lexpr` values: written with `sexp!`, read from other sources, and printed.

use deftool_lang::schema::{Target, emit};
use deftool_lang::spec::{Effect, Tool, ToolKind, ToolValueError};
use lexpr::{Value, sexp};

fn compiled(tool: &Tool) -> String {
    emit(Target::OpenAi, [tool]).to_string()
}

#[test]
fn a_tool_is_written_with_sexp() {
    let value = sexp!((deftool
        #:name "search"
        #:description "Search the notes."
        #:args ((#:name "query" #:type string #:description "What to look for.")
                (#:name "limit" #:type integer #:optional #t #:default 10 #:maximum 1e3 #:description "How many.")
                (#:name "in" #:type array #:items (#:type string #:enum #("notes" "mail")) #:description "Where.")
                (#:name "at" #:type object #:properties (#:type (#:type string)) #:description "Odd names."))
        #:timeout "5s"
        #:memory "64MiB"
        #:"max-result" "64KiB"
        #:allow (#:read #("notes/"))
        #:effect pure));
    let tool = Tool::try_from(&value).unwrap();
    assert_eq!((tool.kind, tool.name.value.as_str(), tool.arguments.len()), (ToolKind::Normal, "search", 4));
    assert!(tool.arguments[1].optional && tool.effect == Effect::Pure);
    assert_eq!(tool.permissions.read, ["notes/"]);
    assert_eq!(
        tool.arguments[1].keyword("maximum").unwrap().to_value().to_string(),
        "1000.0",
        "numbers keep their kind"
    );

    let again = Tool::try_from(&Value::from(&tool)).unwrap();
    assert_eq!(compiled(&again), compiled(&tool));
    assert_eq!((again.timeout, again.memory, again.effect), (tool.timeout, tool.memory, tool.effect));
    assert_eq!((again.max_result, tool.max_result), (Some(65_536), Some(65_536)));
    assert_eq!(again.permissions, tool.permissions);
}

#[test]
fn values_from_other_sources_are_tools() {
    for (text, kind) in [
        ("(:name \"a\" :description \"d\")", ToolKind::Normal),
        ("(defexit :name \"a\" :description \"d\" :args nil)", ToolKind::Exit),
        (
            "(gptel-make-tool :name \"a\" :description \"d\" :function ignore :args '((:name \"x\" :type string)))",
            ToolKind::Normal,
        ),
        (
            "(deftool :name \"a\" :description \"d\" :async t :script \"a.lua\" :effect keyed)",
            ToolKind::Normal,
        ),
        (
            "(deftool :name \"a\" :description \"d\" :command [\"cat\" \"{{{x}\"] :stdin \"{x}\" :dash t :cwd \"sub\" :ok-codes [0 1] :allow (:run [\"b\"])
              :args ((:name \"x\" :type string :description \"d\")))",
            ToolKind::Normal,
        ),
    ] {
        let value = lexpr::from_str_custom(text, lexpr::parse::Options::elisp()).unwrap();
        let tool = Tool::try_from(&value).unwrap();
        assert_eq!(tool.kind, kind, "{text}");
        let again = Tool::try_from(&Value::from(&tool)).unwrap();
        let command = |tool: &Tool| tool.command.as_ref().map(ToString::to_string);
        assert_eq!((command(&again), &again.permissions), (command(&tool), &tool.permissions));
        assert_eq!(compiled(&again), compiled(&tool));
        assert_eq!((again.is_async, again.effect), (tool.is_async, tool.effect));
    }
}

#[test]
fn an_invalid_tool_value_has_an_error_message() {
    for (value, message) in [
        (sexp!(1), "not a valid tool: expected a tool spec as a list"),
        (sexp!((foo #:name "x")), "not a valid tool: unknown tool form `foo`"),
        (sexp!((deftool #:description "d")), "not a valid tool: missing `:name` for a tool"),
        (
            sexp!((deftool #:name "a b" #:description "d" #:args ((#:name "x" #:type strin)))),
            "not a valid tool: invalid character ` ` in a name; APIs accept A-Z a-z 0-9 _ -; unknown type `strin`",
        ),
        (
            Value::from(vec![1_u8]),
            "a spec cannot contain bytes; use symbols, keywords, strings, numbers, lists and vectors",
        ),
    ] {
        assert_eq!(Tool::try_from(&value).unwrap_err().to_string(), message);
    }
    let error = Tool::try_from(&sexp!((deftool #:name "a b"))).unwrap_err();
    let ToolValueError::Invalid(findings) = error else { panic!("{error}") };
    assert_eq!(findings.len(), 2, "{findings:?}");
}

/// The printed value reads back as the same tool.
#[test]
fn a_printed_tool_is_a_spec() {
    let tool = Tool::try_from(&sexp!((deftool #:name "a" #:description "say \"é\"\n\\"
        #:args ((#:name "x" #:type number #:minimum 0.5 #:description "tab\there")))))
    .unwrap();
    let value = Value::from(&tool);
    let text = lexpr::to_string_custom(&value, lexpr::print::Options::elisp()).unwrap();
    let source = deftool_lang::text::Sources::new().add(deftool_lang::text::SourceFile::new("t.eld", ""));
    let (tree, findings) = deftool_lang::syntax::parse(source, &text);
    assert!(findings.is_empty(), "{text}");
    let (definitions, findings) =
        deftool_lang::spec::lower(source, &text, &tree, deftool_lang::spec::FileKind::Specs);
    assert!(findings.is_empty(), "{text}: {findings:?}");
    assert_eq!(compiled(&definitions.tools[0]), compiled(&tool), "{text}");
}

/// Keys that are not sent are kept too.
#[test]
fn a_printed_tool_keeps_what_is_not_sent() {
    let source = deftool_lang::text::Sources::new().add(deftool_lang::text::SourceFile::new("t.eld", ""));
    let lowered = |text: &str| {
        let (tree, _) = deftool_lang::syntax::parse(source, text);
        let (definitions, findings) =
            deftool_lang::spec::lower(source, text, &tree, deftool_lang::spec::FileKind::Specs);
        assert!(findings.is_empty(), "{text}: {findings:?}");
        definitions.tools.into_iter().next().unwrap()
    };
    let text = "(deftool :name \"a\" :description \"Do it.\" :category \"misc\" :confirm (:when (:x [1 :null]) (:x 5)) :include t
      :args ((:name \"x\" :type integer :description \"It.\"))
      :accepts [(:x 1) (:args (:x 2) :returns 3)] :rejects [nil (:x [:null :json-false t 1.5 \"s\" (:y nil)])]
      :asks [(\"One?\" :call (:x (any 1 (optional 2) (schema :type integer :enum [3]))) :ignore (x))
             (\"Two?\" :call t :history [(b :call (:y [t]) :result \"r\") (c :result nil)]) (\"Three?\" :call nil)]
      :targets (:gemini (:description \"Other.\")))";
    let tool = lowered(text);
    assert_eq!((tool.accepts.len(), tool.rejects.len(), tool.overrides.len()), (2, 2, 1));
    let printed = lexpr::to_string_custom(&Value::from(&tool), lexpr::print::Options::elisp()).unwrap();
    let again = lowered(&printed);
    let values = |examples: &[deftool_lang::spec::Json]| {
        examples.iter().map(deftool_lang::spec::Json::to_value).collect::<Vec<_>>()
    };
    assert_eq!(
        values(again.confirm.conditions()),
        [serde_json::json!({"x": [1, null]}), serde_json::json!({"x": 5})],
        "{printed}"
    );
    assert_eq!(again.include, Some(deftool_lang::spec::Include::Everything), "{printed}");
    assert_eq!(
        again.category.as_ref().map(|name| name.value.clone()),
        Some(String::from("misc")),
        "{printed}"
    );
    let samples = |tool: &deftool_lang::spec::Tool| {
        let value = |json: &deftool_lang::spec::Json| json.to_value();
        let of = |sample: &deftool_lang::spec::SampleCall| {
            (value(&sample.arguments), sample.returns.as_ref().map(value))
        };
        tool.accepts.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(samples(&again), samples(&tool), "{printed}");
    assert_eq!(values(&again.rejects), values(&tool.rejects), "{printed}");
    // The text has the asks without their spans.
    let asks = |tool: &deftool_lang::spec::Tool| {
        let text = lexpr::to_string_custom(&Value::from(tool), lexpr::print::Options::elisp()).unwrap();
        text.split_once(":asks").unwrap().1.to_owned()
    };
    assert_eq!(again.asks.len(), 3, "{printed}");
    assert_eq!(asks(&again), asks(&tool), "{printed}");
    for part in
        ["(any 1 (optional 2) (schema :type integer :enum [3]))", "(\"Three?\" :call ())", ":call (:y [t])"]
    {
        assert!(asks(&tool).contains(part), "{part}: {printed}");
    }
    assert_eq!(again.overrides[0].description.as_ref().unwrap().value, "Other.", "{printed}");
}
