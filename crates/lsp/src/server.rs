//! The loop of the server: reads messages, answers requests and sends findings.

use std::collections::{HashSet, VecDeque};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use deftool_jsonrpc::{Error, Framing, Id, Message, Reader, Received, code, write};
use deftool_script::ScriptAnalyzer;
use gen_lsp_types as lsp;
use serde_json::{Value, json};

use crate::analysis::{Analysis, Done, Taken};
use crate::locations::uri_of;
use crate::state::State;

/// Maximum number of messages that are read ahead.
const MAX_QUEUE: usize = 256;

/// The end of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client shut the server down.
    Shutdown,
    /// The client ended the connection without a `shutdown` request.
    WithoutShutdown,
}

/// An event for the loop.
enum Event {
    Received(Received),
    /// Files of the project in this folder changed on disk.
    DiskChanged(PathBuf),
    /// The analyzer of scripts finished a job.
    Analysed(Done),
    /// The input ended.
    Closed,
}

/// Serves one client until it exits or the connection ends. `version` is the version of the server, `analyzer` analyses
/// scripts; it, or what is missing.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write,
    version: &str,
    analyzer: Result<Box<dyn ScriptAnalyzer + Send>, String>,
) -> End {
    let (sender, events) = sync_channel(MAX_QUEUE);
    let analysis_sender = sender.clone();
    let on_done = move |done| drop(analysis_sender.send(Event::Analysed(done)));
    let analysis = Analysis::new(analyzer, on_done);
    let disk_sender = sender.clone();
    let on_disk_change = move |root: &Path| drop(disk_sender.send(Event::DiskChanged(root.to_owned())));
    let state = State::new(on_disk_change);
    let reader = std::thread::Builder::new().name(String::from("deftool-lsp-reader"));
    // The thread ends with the input. It is not joined: it may wait for input that never comes.
    if let Err(error) = reader.spawn(move || read(input, &sender)) {
        tracing::error!(%error, "cannot start the reader");
        return End::WithoutShutdown;
    }
    let mut server = Server::new(events, output, state, analysis, version);
    // An error means that the client no longer reads.
    let _ = server.run();
    if server.phase == Phase::Shutdown { End::Shutdown } else { End::WithoutShutdown }
}

fn read(input: impl Read, events: &SyncSender<Event>) {
    let mut reader = Reader::new(BufReader::new(input));
    while let Ok(Some(received)) = reader.receive() {
        if events.send(Event::Received(received)).is_err() {
            return;
        }
    }
    let _ = events.send(Event::Closed);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before `initialize`.
    New,
    Running,
    /// After `shutdown`.
    Shutdown,
}

struct Server<W> {
    events: Receiver<Event>,
    /// Events that were received and not handled.
    queue: VecDeque<Event>,
    /// Requests in `queue` that the client canceled.
    canceled: HashSet<Id>,
    output: W,
    state: State,
    analysis: Analysis,
    phase: Phase,
    version: String,
}

impl<W: Write> Server<W> {
    fn new(events: Receiver<Event>, output: W, state: State, analysis: Analysis, version: &str) -> Self {
        let (queue, canceled) = (VecDeque::new(), HashSet::new());
        let version = version.to_owned();
        Self { events, queue, canceled, output, state, analysis, phase: Phase::New, version }
    }

    /// Handles events until the end.
    ///
    /// # Errors
    /// If the client no longer reads.
    fn run(&mut self) -> std::io::Result<()> {
        loop {
            self.fill_queue();
            let event = match self.queue.pop_front() {
                Some(event) => event,
                None => {
                    // Nothing to do: send the findings of the last changes.
                    if self.phase == Phase::Running {
                        self.publish()?;
                    }
                    match self.events.recv() {
                        Ok(event) => event,
                        Err(_) => return Ok(()),
                    }
                }
            };
            match event {
                Event::Closed => return Ok(()),
                Event::DiskChanged(root) => {
                    self.state.workspace.rescan(&root);
                    self.analysis.note_change();
                }
                Event::Analysed(done) => {
                    if let Some((id, result)) = self.analysis.finish(&mut self.state, done) {
                        self.send(&Message::Response { id: Some(id), result })?;
                    }
                }
                Event::Received(Received::Invalid(response)) => self.send(&response)?,
                Event::Received(Received::Message(Message::Request { id, method, params })) => {
                    let result = match self.analyse(&id, &method, &params) {
                        Taken::Waiting => continue,
                        Taken::Result(result) => Ok(result),
                        Taken::No => self.answer(&id, &method, params),
                    };
                    self.show_messages()?;
                    self.send(&Message::Response { id: Some(id), result })?;
                }
                Event::Received(Received::Message(Message::Notification { method, params })) => {
                    if method == "exit" {
                        return Ok(());
                    }
                    self.notify(&method, params)?;
                }
                // The server sends no requests.
                Event::Received(Received::Message(Message::Response { .. })) => {}
            }
        }
    }

    /// Moves all events that have arrived to the queue.
    fn fill_queue(&mut self) {
        while self.queue.len() < MAX_QUEUE
            && let Ok(event) = self.events.try_recv()
        {
            self.note_cancellation(&event);
            self.queue.push_back(event);
        }
    }

    /// Remembers the request that a `$/cancelRequest` cancels, if it is in the queue.
    fn note_cancellation(&mut self, event: &Event) {
        if let Event::Received(Received::Message(Message::Notification { method, params })) = event
            && method == "$/cancelRequest"
            && let Ok(canceled) = serde_json::from_value::<Id>(params["id"].clone())
        {
            let is_queued = self.queue.iter().any(|event| {
                matches!(event, Event::Received(Received::Message(Message::Request { id, .. })) if *id == canceled)
            });
            if is_queued {
                self.canceled.insert(canceled);
            }
        }
    }

    /// Sends a request about a script to the analyzer.
    fn analyse(&mut self, id: &Id, method: &str, params: &Value) -> Taken {
        if self.phase == Phase::Running && !self.canceled.contains(id) {
            self.analysis.take(&mut self.state, id, method, params)
        } else {
            Taken::No
        }
    }

    fn answer(&mut self, id: &Id, method: &str, params: Value) -> Result<Value, Error> {
        if self.canceled.remove(id) {
            return Err(Error::new(code::CANCELED, "canceled by the client"));
        }
        match (self.phase, method) {
            (Phase::New, "initialize") => {
                let result = self.state.initialize(params, &self.version)?;
                self.phase = Phase::Running;
                Ok(result)
            }
            (Phase::New, _) => Err(Error::new(code::NOT_INITIALIZED, "expected `initialize` first")),
            (Phase::Running, "initialize") => {
                Err(Error::new(code::INVALID_REQUEST, "the server is already initialized"))
            }
            (Phase::Running, "shutdown") => {
                self.phase = Phase::Shutdown;
                Ok(Value::Null)
            }
            (Phase::Running, _) => self.state.answer(method, params),
            (Phase::Shutdown, _) => Err(Error::new(code::INVALID_REQUEST, "the server is shut down")),
        }
    }

    fn notify(&mut self, method: &str, params: Value) -> std::io::Result<()> {
        if self.phase != Phase::Running {
            return Ok(());
        }
        self.analysis.note_change();
        match self.state.notify(method, params) {
            Ok(Some(cleared)) => match uri_of(&cleared) {
                Some(uri) => self
                    .notification("textDocument/publishDiagnostics", json!({"uri": uri, "diagnostics": []})),
                None => Ok(()),
            },
            Ok(None) => Ok(()),
            Err(error) => self.show(lsp::MessageType::Error, &format!("{method}: {}", error.message)),
        }
    }

    fn publish(&mut self) -> std::io::Result<()> {
        for params in self.state.publish() {
            self.notification("textDocument/publishDiagnostics", params)?;
        }
        self.analysis.check_changed(&mut self.state);
        self.show_messages()
    }

    fn show_messages(&mut self) -> std::io::Result<()> {
        let messages = std::mem::take(&mut self.state.settings.messages);
        messages.iter().try_for_each(|(kind, message)| self.show(*kind, message))
    }

    /// Shows a message to the user.
    fn show(&mut self, kind: lsp::MessageType, message: &str) -> std::io::Result<()> {
        let message = format!("deftool: {message}");
        self.notification("window/showMessage", json!(lsp::ShowMessageParams { kind, message }))
    }

    fn notification(&mut self, method: &str, params: Value) -> std::io::Result<()> {
        self.send(&Message::Notification { method: method.to_owned(), params })
    }

    fn send(&mut self, message: &Message) -> std::io::Result<()> {
        write(&mut self.output, Framing::Headers, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that is canceled while it waits is not computed. Others are not affected.
    #[test]
    fn canceled_requests_are_not_computed() {
        let request = |id: i64, method: &str, params| {
            let method = method.to_owned();
            Event::Received(Received::Message(Message::Request { id: Id::Number(id), method, params }))
        };
        let cancel = |id: i64| {
            let (method, params) = (String::from("$/cancelRequest"), json!({"id": id}));
            Event::Received(Received::Message(Message::Notification { method, params }))
        };
        let (sender, events) = sync_channel(MAX_QUEUE);
        for event in [
            request(1, "initialize", json!({"processId": null, "rootUri": null, "capabilities": {}})),
            request(2, "workspace/symbol", json!({"query": ""})),
            request(3, "workspace/symbol", json!({"query": ""})),
            cancel(2),
            cancel(99),
            request(2, "shutdown", Value::Null),
            Event::Closed,
        ] {
            sender.send(event).unwrap();
        }
        let mut output = Vec::new();
        let analysis = Analysis::new(Err(String::new()), |_| ());
        Server::new(events, &mut output, State::new(|_| ()), analysis, "0").run().unwrap();
        let mut responses = Vec::new();
        let mut reader = Reader::new(&output[..]);
        while let Some(Received::Message(Message::Response { id: Some(id), result })) =
            reader.receive().unwrap()
        {
            responses.push((id, result.map_err(|error| error.code).map(|_| ())));
        }
        let expected = [(1, Ok(())), (2, Err(code::CANCELED)), (3, Ok(())), (2, Ok(()))];
        assert_eq!(responses, expected.map(|(id, result)| (Id::Number(id), result)));
    }
}
