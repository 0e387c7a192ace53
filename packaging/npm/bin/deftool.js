#!/usr/bin/env node
// Starts the program of this platform, which npm installed as an optional dependency. Nothing is downloaded.

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;

function program() {
  const name = process.platform === "win32" ? "deftool.exe" : "deftool";
  try {
    return require.resolve(`@deftool/${platform}/${name}`);
  } catch {
    console.error(
      `deftool: the package @deftool/${platform} is not installed. Install deftool without --omit=optional; ` +
        "if npm has no package for this platform, build deftool from source with cargo.",
    );
    process.exit(2);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
// Ctrl-C reaches both processes: the program decides what it means. Other signals are passed on.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`deftool: cannot start ${child.spawnfile}: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // End in the same way, so that the caller sees the signal.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
