#!/bin/sh
# Runs the agent against faulty servers. It always ends, and reports the failure.
set -eu
for fault in index-missing http-503-loading rst-mid-stream html-200 line-repeated; do
  if output=$(deftool stub --quiet --fault "$fault" -- deftool run "What is the weather in Paris?" 2>&1); then
    echo "ok      $fault"
  else
    echo "failed  $fault: $(echo "$output" | grep -o 'error\[[a-z_]*\]')"
  fi
done
