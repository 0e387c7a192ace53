//! An operation of a request that has ended.

use deftool_lang::tool::TraceContext;
use deftool_record::Redaction;
use opentelemetry::{Array, KeyValue, StringValue, Value};

use crate::attribute::cut;
use crate::convention::ERROR_TYPE;

/// Maximum length of a text attribute, in bytes. Content has its own limits.
const MAX_TEXT: usize = 512;

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationKind {
    /// A request: `invoke_agent`.
    Agent,
    /// An exchange with the model: `chat`.
    Chat,
    /// A call of a tool: `execute_tool`.
    Tool,
}

impl OperationKind {
    /// Returns the name in the conventions.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "invoke_agent",
            Self::Chat => "chat",
            Self::Tool => "execute_tool",
        }
    }
}

/// The spans of an operation. Without them, the operation is only measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spans {
    pub(crate) own: TraceContext,
    /// The id of the parent, and whether it belongs to another process.
    pub(crate) parent: Option<(u64, bool)>,
}

/// An operation of a request that has ended.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) kind: OperationKind,
    /// The name of the worker, model or tool; follows the kind in the span name.
    pub(crate) subject: String,
    pub(crate) spans: Option<Spans>,
    /// Unix times in milliseconds.
    pub(crate) start_ms: u64,
    pub(crate) end_ms: u64,
    pub(crate) attributes: Vec<KeyValue>,
    /// The class of the error.
    pub(crate) error: Option<String>,
    /// The times between the chunks of a reply, in milliseconds.
    pub(crate) gaps_ms: Vec<u32>,
    /// Attributes with messages, arguments and results, without secrets.
    pub(crate) content: Vec<KeyValue>,
}

impl Operation {
    /// Returns the name of the span.
    pub(crate) fn name(&self) -> String {
        let (kind, subject) = (self.kind.as_str(), &self.subject);
        if subject.is_empty() { kind.to_owned() } else { format!("{kind} {subject}") }
    }

    /// Adds an attribute.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.attributes.push(KeyValue::new(name, value));
    }

    /// Returns an attribute.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|known| known.key.as_str() == name).map(|known| &known.value)
    }

    /// Returns the duration in seconds.
    #[allow(clippy::cast_precision_loss)] // milliseconds
    pub(crate) fn seconds(&self) -> f64 {
        self.end_ms.saturating_sub(self.start_ms) as f64 / 1e3
    }

    /// Removes secrets from all texts and adds the content.
    pub(crate) fn finish(&mut self, redaction: &Redaction) {
        if let Some(error) = self.error.clone() {
            self.set(ERROR_TYPE, error);
        }
        let redacted = |text: &str| cut(redaction.text(text), MAX_TEXT);
        for attribute in &mut self.attributes {
            let texts = match &mut attribute.value {
                Value::String(text) => std::slice::from_mut(text),
                Value::Array(Array::String(texts)) => texts.as_mut_slice(),
                _ => continue,
            };
            for text in texts {
                *text = StringValue::from(redacted(text.as_str()));
            }
        }
        self.subject = redacted(&self.subject);
        self.attributes.append(&mut self.content);
    }
}
