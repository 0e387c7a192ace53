#!/bin/sh
# Runs each line of prompts.txt as a request, and stores the requests in a journal.
while IFS= read -r prompt; do
  deftool run "$prompt" --no-stdin --journal queue.journal || echo "failed: $prompt" >&2
done < prompts.txt
