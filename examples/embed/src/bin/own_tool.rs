//! A tool that the program implements, beside the tools of the project. Each call of it asks first.

use deftool::request::{Approval, Event};
use deftool::tool::{ToolError, ToolErrorKind};
use deftool::worker::Approvals;
use deftool::{OwnTool, SubmitRequest};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(project), Some(prompt)) = (arguments.next(), arguments.next()) else {
        return Err("usage: own_tool PROJECT PROMPT; the server is OPENAI_BASE_URL".into());
    };
    let stock = OwnTool::new(
        r#"(deftool
            :name "stock"
            :description "Return the stock of an article."
            :args ((:name "article" :type string :description "Its number."))
            :confirm t)"#,
        |arguments| async move {
            match arguments["article"].as_str() {
                Some("A-1") => Ok(json!({"stock": 12})),
                _ => Err(ToolError::new(ToolErrorKind::Failure, "unknown article")),
            }
        },
    )?;
    let worker = deftool::open(project).tool(stock).approvals(Approvals::Ask).start().await?;
    let id = worker.submit(SubmitRequest::prompt(prompt))?;
    let mut events = worker.events(&id, 0).ok_or("the request is unknown")?;
    while let Some(event) = events.next().await {
        match &*event {
            Event::Approval { id: call, name, arguments, answer: None } => {
                println!("{name} {}: allowed", arguments.clone().unwrap_or_default());
                worker.approve(&id, call, Approval::Allowed);
            }
            Event::ToolFinished { name, result, .. } => {
                println!("{name}: {}", result.clone().unwrap_or_default());
            }
            Event::Finished(outcome) => println!("{}", outcome.text),
            _ => {}
        }
    }
    Ok(())
}
