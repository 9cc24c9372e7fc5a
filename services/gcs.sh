# Google Cloud Storage's XML interface, as far as tidelake speaks it: a stub of our
# own, since no emulator has that interface. It checks conditions by generation and
# the service account's signature.
# shellcheck shell=bash

gcs_bucket=tidelake

gcs_start() {
    local folder=$1 port attempt
    need python3 python3
    need curl curl
    need openssl openssl
    openssl genrsa -out "$folder/key.pem" 2048 2>/dev/null
    for attempt in 1 2 3; do
        port=$(free_port)
        setsid python3 "$here/gcs/stub.py" "$port" "$gcs_bucket" "$folder/key.pem" \
            </dev/null >"$folder/log" 2>&1 9>&- &
        echo $! >"$folder/pid"
        if wait_until 30 gcs_answers_or_died "$folder" "$port" && gcs_alive "$folder"; then
            gcs_describe "$folder" "$port"
            return 0
        fi
        say "attempt $attempt to start gcs failed"
    done
    tail -n 30 "$folder/log" >&2
    fail "gcs did not start"
}

gcs_alive() {
    local pid
    pid=$(cat "$1/pid" 2>/dev/null) && process_runs "$pid" gcs/stub.py
}

gcs_gone() {
    ! gcs_alive "$1"
}

gcs_stop() {
    if gcs_alive "$1"; then
        kill "$(cat "$1/pid")"
        wait_until 5 gcs_gone "$1" || kill -KILL "$(cat "$1/pid")"
    fi
    mkdir -p "$state/logs"
    cp "$1/log" "$state/logs/gcs.log" 2>/dev/null || true
}

gcs_answers_or_died() {
    gcs_gone "$1" || curl --silent --noproxy '*' --output /dev/null "http://127.0.0.1:$2/"
}

gcs_describe() {
    python3 - "$1/key.pem" "$1/account.json" <<'PYTHON'
import json, os, sys
key = open(sys.argv[1]).read()
account = {
    "type": "service_account",
    "project_id": "tidelake",
    "private_key_id": "test",
    "private_key": key,
    "client_email": "tidelake@tidelake.iam.example",
    "client_id": "1",
}
with open(os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
    json.dump(account, file)
PYTHON
    {
        export_line TIDELAKE_TEST_GCS_ENDPOINT "http://127.0.0.1:$2"
        export_line TIDELAKE_TEST_GCS_BUCKET "$gcs_bucket"
        export_line TIDELAKE_TEST_GCS_SERVICE_ACCOUNT "$1/account.json"
        export_line TIDELAKE_TEST_GCS_TOKEN tidelake-reader
    } >"$1/env.new"
    echo "http://127.0.0.1:$2, log in $1/log" >"$1/summary"
    mv "$1/env.new" "$1/env"
}
