//! Entry point of the `deftool` command; see [`deftool::cli`].

fn main() -> std::process::ExitCode {
    deftool::cli::main()
}
