# fake-gcs-server: Google Cloud Storage's JSON interface in memory. tidelake does
# not speak it; the stub of the XML interface is compared with it.
# shellcheck shell=bash

fakegcs_start() {
    local folder=$1 server port attempt
    need curl curl
    server=$(fakegcs_binary)
    for attempt in 1 2 3; do
        port=$(free_port)
        setsid "$server" -scheme http -host 127.0.0.1 -port "$port" -backend memory \
            -public-host "127.0.0.1:$port" </dev/null >"$folder/log" 2>&1 9>&- &
        echo $! >"$folder/pid"
        if wait_until 30 fakegcs_answers_or_died "$folder" "$port" && fakegcs_alive "$folder"; then
            export_line TIDELAKE_TEST_GCS_JSON_ENDPOINT "http://127.0.0.1:$port" >"$folder/env.new"
            echo "http://127.0.0.1:$port, log in $folder/log" >"$folder/summary"
            mv "$folder/env.new" "$folder/env"
            return 0
        fi
        say "attempt $attempt to start fakegcs failed"
    done
    tail -n 30 "$folder/log" >&2
    fail "fakegcs did not start"
}

# The package brings the server's binary, and forgets that it is one.
fakegcs_binary() {
    local binary
    binary=$(find "$(venv fakegcs)" -name 'fake-gcs-server-linux-amd64' -type f)
    [ -x "$binary" ] || chmod +x "$binary"
    echo "$binary"
}

fakegcs_alive() {
    local pid
    pid=$(cat "$1/pid" 2>/dev/null) && process_runs "$pid" fake-gcs-server
}

fakegcs_gone() {
    ! fakegcs_alive "$1"
}

fakegcs_stop() {
    if fakegcs_alive "$1"; then
        kill "$(cat "$1/pid")"
        wait_until 5 fakegcs_gone "$1" || kill -KILL "$(cat "$1/pid")"
    fi
    mkdir -p "$state/logs"
    cp "$1/log" "$state/logs/fakegcs.log" 2>/dev/null || true
}

fakegcs_answers_or_died() {
    fakegcs_gone "$1" || curl --silent --fail --noproxy '*' --output /dev/null \
        "http://127.0.0.1:$2/storage/v1/b?project=tidelake"
}
