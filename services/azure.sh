# Azure Blob Storage as Microsoft's own emulator, azurite, has it: in memory, with
# the account's key, signatures and conditions checked.
# shellcheck shell=bash

azure_account=tidelake
azure_container=lake

azure_start() {
    local folder=$1 modules port attempt key
    need node nodejs
    need npm npm
    modules=$(azure_modules)
    key=$(head -c 64 /dev/urandom | base64 -w 0)
    for attempt in 1 2 3; do
        port=$(free_port)
        AZURITE_ACCOUNTS="$azure_account:$key" setsid node "$modules/azurite/dist/src/blob/main.js" \
            --disableTelemetry --skipApiVersionCheck --inMemoryPersistence --silent \
            --blobHost 127.0.0.1 --blobPort "$port" \
            </dev/null >"$folder/log" 2>&1 9>&- &
        echo $! >"$folder/pid"
        if wait_until 60 azure_answers_or_died "$folder" "$port" && azure_alive "$folder"; then
            azure_describe "$folder" "http://127.0.0.1:$port/$azure_account" "$key"
            return 0
        fi
        say "attempt $attempt to start azure failed"
    done
    tail -n 30 "$folder/log" >&2
    fail "azure did not start"
}

# Prints the folder of the emulator's packages, made anew when the list changes.
azure_modules() {
    local folder
    folder=$state/npm/azure-$({ node --version; cat "$here/azure/package-lock.json"; } | sha256sum | cut -c1-12)
    locked npm-azure azure_install "$folder"
    echo "$folder/node_modules"
}

azure_install() {
    [ ! -e "$1/ready" ] || return 0
    say "installing azurite"
    rm -rf "$1"
    mkdir -p "$1"
    cp "$here/azure/package.json" "$here/azure/package-lock.json" "$1/"
    (
        cd "$1"
        npm ci --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error >&2
    )
    touch "$1/ready"
}

azure_alive() {
    local pid
    pid=$(cat "$1/pid" 2>/dev/null) && process_runs "$pid" azurite
}

azure_gone() {
    ! azure_alive "$1"
}

azure_stop() {
    if azure_alive "$1"; then
        kill "$(cat "$1/pid")"
        wait_until 5 azure_gone "$1" || kill -KILL "$(cat "$1/pid")"
    fi
    mkdir -p "$state/logs"
    cp "$1/log" "$state/logs/azure.log" 2>/dev/null || true
}

# Any answer will do: who asks without a key is refused.
azure_answers_or_died() {
    azure_gone "$1" || curl --silent --noproxy '*' --output /dev/null "http://127.0.0.1:$2/"
}

azure_describe() {
    local sas
    sas=$(python3 "$here/azure/container.py" "$2" "$azure_account" "$3" "$azure_container")
    {
        export_line TIDELAKE_TEST_AZURE_ENDPOINT "$2"
        export_line TIDELAKE_TEST_AZURE_ACCOUNT "$azure_account"
        export_line TIDELAKE_TEST_AZURE_KEY "$3"
        export_line TIDELAKE_TEST_AZURE_CONTAINER "$azure_container"
        export_line TIDELAKE_TEST_AZURE_SAS "$sas"
    } >"$1/env.new"
    echo "$2, log in $1/log" >"$1/summary"
    mv "$1/env.new" "$1/env"
}
