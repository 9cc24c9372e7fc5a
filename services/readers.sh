# Readers of Parquet other than the one that wrote it: a Python with duckdb and
# pyarrow. Nothing runs; "up" means that the environment is made.
# shellcheck shell=bash

readers_start() {
    local python
    python=$(venv readers)/bin/python
    "$python" -c 'import duckdb, pyarrow.parquet'
    export_line TIDELAKE_TEST_PYTHON "$python" >"$1/env.new"
    echo "$python" >"$1/summary"
    mv "$1/env.new" "$1/env"
}

readers_alive() {
    [ -x "$(cat "$1/summary")" ]
}

readers_stop() {
    :
}
