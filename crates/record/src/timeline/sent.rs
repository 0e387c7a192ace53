//! The body of a chat request, and what is new in it since the previous one.

use deftool_chat::Api;
use deftool_chat::request::budget_in_bios;
use serde_json::Value;

use super::model::{BudgetLeft, TurnEntry};
use crate::recording::{api_of, conversation_member, text_in, text_of};

/// The parts of a body that are compared with the previous one.
#[derive(Debug, Default)]
pub(super) struct SentBody {
    pub(super) api: Api,
    messages: Vec<Value>,
    tools: Vec<Value>,
    /// The other members.
    settings: Value,
}

impl SentBody {
    pub(super) fn of(session: Api, mut body: Value) -> Self {
        let api = api_of(session, &body);
        let mut take = |member: &str| match body.as_object_mut().and_then(|body| body.remove(member)) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let messages = take(conversation_member(api));
        let tools = take("tools");
        Self { api, messages, tools, settings: body }
    }

    /// Returns the names of the offered tools.
    pub(super) fn tool_names(&self) -> Vec<String> {
        let name =
            |tool: &Value| Some(tool.get("function").unwrap_or(tool).get("name")?.as_str()?.to_owned());
        self.tools.iter().filter_map(name).collect()
    }

    /// Returns the entry of the chat request.
    pub(super) fn turn(&self, previous: &Self, attempt: u32, generation: Option<u64>) -> TurnEntry {
        let pairs = self.messages.iter().zip(&previous.messages);
        let common = pairs.take_while(|(now, before)| is_same(now, before)).count();
        TurnEntry {
            attempt,
            generation,
            budget: self.budget(),
            messages: self.messages.get(common..).unwrap_or_default().to_vec(),
            settings: (self.settings != previous.settings).then(|| self.settings.clone()),
            tools: (self.tools != previous.tools).then(|| Value::from(self.tools.clone())),
            tool_count: self.tools.len(),
            ..TurnEntry::default()
        }
    }

    /// Returns the budget that the BIOS reports to the model, in the newest message that contains it. A BIOS from the
    /// user's text may not contain it.
    fn budget(&self) -> Option<BudgetLeft> {
        let of_model = |message: &&Value| message.get("role").and_then(Value::as_str) == Some("assistant");
        let texts = self.messages.iter().rev().filter(|message| !of_model(message)).map(text_of);
        let outside = ["instructions", "system"].into_iter().filter_map(|name| self.settings.get(name));
        let (left, unit) = texts.chain(outside.map(text_in)).find_map(|text| budget_in_bios(&text))?;
        Some(BudgetLeft { left, unit: Some(unit) })
    }
}

/// Whether a message is that of the previous request, where it may have had the variable lines of the BIOS.
fn is_same(now: &Value, before: &Value) -> bool {
    let (text, longer) = (text_of(now), text_of(before));
    let is_part = longer.starts_with(&text) || longer.ends_with(&text);
    now == before || (now.get("role") == before.get("role") && !text.is_empty() && is_part)
}
