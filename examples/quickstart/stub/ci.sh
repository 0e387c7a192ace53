#!/bin/sh
# The agent against servers that misbehave: whatever they do, it ends, and says why.
set -eu
for way in index-missing http-503-loading rst-mid-stream html-200 line-repeated; do
  if said=$(deftool stub --quiet --misbehave "$way" -- deftool run "What is the weather in Paris?" 2>&1); then
    echo "ok      $way"
  else
    echo "failed  $way: $(echo "$said" | grep -o 'error\[[a-z_]*\]')"
  fi
done
