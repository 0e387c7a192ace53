//! Tools at another place in their file, with their asks.
//!
//! Each type lists all of its fields, so that a new one with spans is not forgotten.

use super::ask::{Ask, ExpectedCall, ExpectedReply, PastCall, Pattern, PatternKind};
use super::command::{CommandInput, ToolCommand};
use super::confirm::Confirm;
use super::json::{Json, JsonKind, Member};
use super::tool::{Argument, SampleCall, TargetOverride, Tool};
use crate::text::MoveSpans;

impl MoveSpans for Tool {
    fn move_spans(&mut self, by: i32) {
        let Self {
            source: _,
            span,
            origin: _,
            kind: _,
            name,
            description,
            arguments,
            is_async: _,
            script,
            command,
            function,
            timeout: _,
            memory: _,
            max_result: _,
            permissions: _,
            base: _,
            effect: _,
            category,
            confirm,
            confirm_function,
            include: _,
            returns,
            accepts,
            rejects,
            asks,
            overrides,
            valid: _,
        } = self;
        span.move_spans(by);
        name.move_spans(by);
        description.move_spans(by);
        arguments.move_spans(by);
        script.move_spans(by);
        command.move_spans(by);
        function.move_spans(by);
        category.move_spans(by);
        match confirm {
            Confirm::Never | Confirm::Always => {}
            Confirm::When(conditions) => conditions.move_spans(by),
        }
        confirm_function.move_spans(by);
        returns.move_spans(by);
        accepts.move_spans(by);
        rejects.move_spans(by);
        asks.move_spans(by);
        overrides.move_spans(by);
    }
}

impl MoveSpans for Argument {
    fn move_spans(&mut self, by: i32) {
        let Self { name, optional: _, schema, span } = self;
        name.move_spans(by);
        schema.move_spans(by);
        span.move_spans(by);
    }
}

impl MoveSpans for ToolCommand {
    fn move_spans(&mut self, by: i32) {
        let Self { span, words, stdin, allows_dash: _, prints_json: _, cwd: _, ok_codes: _ } = self;
        span.move_spans(by);
        words.move_spans(by);
        match stdin {
            None | Some(CommandInput::Json) => {}
            Some(CommandInput::Text(template)) => template.move_spans(by),
        }
    }
}

impl MoveSpans for SampleCall {
    fn move_spans(&mut self, by: i32) {
        let Self { arguments, returns } = self;
        arguments.move_spans(by);
        returns.move_spans(by);
    }
}

impl MoveSpans for Ask {
    fn move_spans(&mut self, by: i32) {
        let Self { source: _, span, prompt, history, expected } = self;
        span.move_spans(by);
        prompt.move_spans(by);
        history.move_spans(by);
        match expected {
            ExpectedReply::NoCall | ExpectedReply::NoCallOf(_) => {}
            ExpectedReply::Calls { calls, is_ordered: _ } => calls.move_spans(by),
        }
    }
}

impl MoveSpans for PastCall {
    fn move_spans(&mut self, by: i32) {
        let Self { tool, arguments, result } = self;
        tool.move_spans(by);
        arguments.move_spans(by);
        result.move_spans(by);
    }
}

impl MoveSpans for ExpectedCall {
    fn move_spans(&mut self, by: i32) {
        let Self { tool, arguments, ignored } = self;
        tool.move_spans(by);
        arguments.move_spans(by);
        ignored.move_spans(by);
    }
}

impl MoveSpans for Pattern {
    fn move_spans(&mut self, by: i32) {
        self.span.move_spans(by);
        match &mut self.kind {
            PatternKind::Scalar(json) | PatternKind::Schema(json) => json.move_spans(by),
            PatternKind::Array(patterns) | PatternKind::Any(patterns) => patterns.move_spans(by),
            PatternKind::Object(members) => {
                for (key, pattern) in members {
                    key.move_spans(by);
                    pattern.move_spans(by);
                }
            }
            PatternKind::Optional(pattern) => pattern.move_spans(by),
        }
    }
}

impl MoveSpans for TargetOverride {
    fn move_spans(&mut self, by: i32) {
        let Self { target, description } = self;
        target.move_spans(by);
        description.move_spans(by);
    }
}

impl MoveSpans for Member {
    fn move_spans(&mut self, by: i32) {
        let Self { key: _, key_span, value } = self;
        key_span.move_spans(by);
        value.move_spans(by);
    }
}

impl MoveSpans for Json {
    fn move_spans(&mut self, by: i32) {
        self.span.move_spans(by);
        match &mut self.kind {
            JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => {}
            JsonKind::Array(items) => items.move_spans(by),
            JsonKind::Object(members) => members.move_spans(by),
        }
    }
}
