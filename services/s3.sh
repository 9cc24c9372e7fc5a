# S3 as moto emulates it: in memory, any credentials, real preconditions.
# shellcheck shell=bash

s3_region=us-east-1
s3_bucket=tidelake
s3_access_key=tidelake-access
s3_secret_key=tidelake-secret

s3_start() {
    local folder=$1 python port attempt
    need curl curl
    python=$(venv s3)/bin/python
    for attempt in 1 2 3; do
        port=$(free_port)
        setsid "$python" -m moto.server -H 127.0.0.1 -p "$port" </dev/null >"$folder/log" 2>&1 9>&- &
        echo $! >"$folder/pid"
        if wait_until 30 s3_answers_or_died "$folder" "$port" && s3_alive "$folder"; then
            s3_make_bucket "$port"
            s3_describe "$folder" "$port"
            return 0
        fi
        say "attempt $attempt to start s3 failed"
    done
    tail -n 30 "$folder/log" >&2
    fail "s3 did not start"
}

s3_alive() {
    local pid
    pid=$(cat "$1/pid" 2>/dev/null) && process_runs "$pid" moto.server
}

s3_gone() {
    ! s3_alive "$1"
}

s3_stop() {
    if s3_alive "$1"; then
        kill "$(cat "$1/pid")"
        wait_until 5 s3_gone "$1" || kill -KILL "$(cat "$1/pid")"
    fi
    mkdir -p "$state/logs"
    cp "$1/log" "$state/logs/s3.log" 2>/dev/null || true
}

s3_answers_or_died() {
    s3_gone "$1" || curl --silent --fail --noproxy '*' --output /dev/null "http://127.0.0.1:$2/moto-api/"
}

# Signed, since the emulator lets only a bucket's owner overwrite objects.
s3_make_bucket() {
    curl --silent --show-error --fail --noproxy '*' --output /dev/null --request PUT \
        --aws-sigv4 "aws:amz:$s3_region:s3" --user "$s3_access_key:$s3_secret_key" \
        "http://127.0.0.1:$1/$s3_bucket"
}

s3_describe() {
    {
        export_line TIDELAKE_TEST_S3_ENDPOINT "http://127.0.0.1:$2"
        export_line TIDELAKE_TEST_S3_BUCKET "$s3_bucket"
        export_line TIDELAKE_TEST_S3_ACCESS_KEY "$s3_access_key"
        export_line TIDELAKE_TEST_S3_SECRET_KEY "$s3_secret_key"
        export_line TIDELAKE_TEST_S3_REGION "$s3_region"
    } >"$1/env.new"
    echo "http://127.0.0.1:$2, log in $1/log" >"$1/summary"
    mv "$1/env.new" "$1/env"
}
