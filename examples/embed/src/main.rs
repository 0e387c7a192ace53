//! The main job in ten lines: the tools of a project, a model's server, one question.


#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(project), Some(prompt)) = (arguments.next(), arguments.next()) else {
        return Err("usage: embed PROJECT PROMPT; the server is OPENAI_BASE_URL".into());
    };
    let worker = deftool::open(project).start().await?;
    let outcome = worker.ask(prompt).await?;
    println!("{}", outcome.text);
    Ok(())
}
