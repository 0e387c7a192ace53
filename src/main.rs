//! The `deftool` command: arguments → [`deftool::cli`] → exit code.

fn main() -> std::process::ExitCode {
    deftool::cli::main()
}
