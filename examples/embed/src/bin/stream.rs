//! Prints the text of a reply as it arrives, and the calls of tools.

use std::io::Write;

use deftool::request::Event;
use deftool::SubmitRequest;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(project), Some(prompt)) = (arguments.next(), arguments.next()) else {
        return Err("usage: stream PROJECT PROMPT; the server is OPENAI_BASE_URL".into());
    };
    let worker = deftool::open(project).start().await?;
    let mut reply = worker.stream(SubmitRequest::prompt(prompt))?;
    while let Some(event) = reply.next().await {
        match &*event {
            Event::Text { text } => {
                print!("{text}");
                std::io::stdout().flush()?;
            }
            Event::ToolCall { name, arguments, .. } => eprintln!("[{name} {arguments}]"),
            Event::Finished(outcome) => eprintln!("[{:?}]", outcome.finish_reason),
            _ => {}
        }
    }
    Ok(())
}
