//! The next step of the driver, and the start of a turn.

use std::sync::Arc;

use deftool_lang::schema::{ToolKind, ToolSet};
use deftool_lang::spec::Fallback;

use super::model::Step;
use super::state::{Phase, Run};
use crate::request::bios::{BiosContext, BiosPart, BiosProvider};
use crate::request::conversation::messages_to_send;
use crate::request::event::Event;
use crate::request::repetition::LineDetector;
use crate::request::text_calls::HoldBack;
use crate::{ChatRequest, Message, Received};

impl Run {
    /// Whether [`Run::next_step`] will begin a turn, which uses the newest tools.
    pub fn begins_turn(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Returns what the driver must do now. Without an input in between, returns the same step again. `tools` and
    /// `bios` are only used when a turn begins; the turn keeps that tool set.
    pub fn next_step(&mut self, tools: &ToolSet, bios: &dyn BiosProvider) -> Step {
        if let Phase::Ready = self.phase {
            let request = Arc::new(self.begin_turn(tools, bios));
            self.phase = Phase::Asked { request };
        }
        match &self.phase {
            Phase::Asked { request } => Step::Stream(Arc::clone(request)),
            Phase::Ready | Phase::Streaming | Phase::Closing { .. } => Step::Wait,
            Phase::Calling(batch) => Step::AnswerCalls(batch.pending()),
            Phase::Finished => Step::Finished,
        }
    }

    /// Sets the start of the current turn and the digest of its tools.
    pub(super) fn start_turn(&mut self, tools: Arc<str>) {
        self.turn_tools = tools;
        self.turn_text_start = self.text.len();
        self.turn_raw_start = self.raw_text.len();
        self.turn_reasoning_start = self.reasoning.len();
        self.received = Received::default();
    }

    fn begin_turn(&mut self, tools: &ToolSet, bios: &dyn BiosProvider) -> ChatRequest {
        let exit_tools_only = self.config.final_turn && self.budget.left() == 0;
        self.turn += 1;
        self.start_turn(Arc::clone(tools.digest()));
        self.call_times.clear();
        self.hold_back = HoldBack::new(match self.config.fallback {
            // Without tools, text about calls is only text.
            Fallback::Auto | Fallback::On if tools.is_empty() => None,
            Fallback::Auto => Some(self.config.forms()),
            Fallback::On => Some(self.config.forms().with_unmarked()),
            Fallback::Off => None,
        });
        self.lines = LineDetector::new(&self.config.repetition);
        self.events.push(Event::TurnStarted {
            turn: self.turn,
            tools: self.turn_tools.as_ref().to_owned(),
            budget_left: self.budget.left(),
        });
        let describes_tools = self.config.fallback == Fallback::On;
        let context = BiosContext {
            part: BiosPart::Whole,
            worker: &self.config.worker,
            local_time: &self.start.local_time,
            zone: &self.start.zone,
            budget_left: self.budget.left(),
            budget_unit: self.budget.unit(),
            call_convention: describes_tools,
            tools,
            exit_tools_only,
        };
        let is_reply = |message: &Arc<Message>| matches!(**message, Message::Assistant { .. });
        let is_paused = self.turn > 1 && self.conversation.last().is_some_and(is_reply);
        let (messages, lines) = messages_to_send(
            &self.config,
            self.start.options.system_prompt.as_deref(),
            (&self.conversation, &mut self.sent),
            bios,
            context,
            is_paused,
        );
        self.received = Received { source: self.config.source(), lines, ..Received::default() };
        ChatRequest {
            model: self.config.model.clone(),
            source: self.config.source(),
            messages,
            // The tools that the prompt describes are not sent a second time.
            tools: tools
                .definitions(|tool| !describes_tools && (!exit_tools_only || tool.kind == ToolKind::Exit)),
            params: self.config.params.clone(),
            describes_tools,
        }
    }
}
