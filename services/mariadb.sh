# MariaDB from Debian's package, over TCP with TLS offered and over a Unix socket.
# shellcheck shell=bash

# Every character in it has a meaning in a URL, a key-value string or a shell.
mariadb_password='p@ss/w:o?r#d% 42'

mariadb_start() {
    local folder=$1 home port attempt
    need openssl openssl
    need python3 python3
    mariadb_install
    # A socket's path may have 107 bytes only, which is not sure inside a checkout.
    home=$(mktemp -d /tmp/tidelake-mariadb.XXXXXX)
    echo "$home" >"$folder/home"
    chmod 755 "$home"
    mariadb_data "$home"
    mariadb_certificates "$folder" "$home"
    mariadb_settings "$home" >"$home/settings"
    mysql_accounts "DELETE FROM mysql.global_priv WHERE user IN ('', 'root'); FLUSH PRIVILEGES;" \
        "$mariadb_password" >"$home/accounts.sql"
    mariadb_owns "$home"

    for attempt in 1 2 3; do
        port=$(free_port)
        setsid "$mariadb_server" --defaults-file="$home/settings" --user="$(mariadb_user)" --port="$port" \
            </dev/null >"$home/log" 2>&1 9>&- &
        if wait_until 60 mariadb_answers_or_died "$1" "$home" "$port" && mariadb_alive "$folder"; then
            mariadb_describe "$folder" "$port"
            return 0
        fi
        say "attempt $attempt to start mariadb failed"
    done
    tail -n 30 "$home/log" >&2
    fail "mariadb did not start"
}

mariadb_alive() {
    local home pid
    home=$(cat "$1/home") || return 1
    pid=$(cat "$home/pid" 2>/dev/null) || return 1
    process_runs "$pid" "$home/settings"
}

mariadb_gone() {
    ! mariadb_alive "$1"
}

mariadb_stop() {
    mariadb_stop_as mariadb "$1"
}

mariadb_stop_as() {
    local home
    [ -e "$2/home" ] || return 0
    home=$(cat "$2/home")
    # The data is thrown away, so nothing is lost by not shutting down tidily.
    if mariadb_alive "$2"; then
        kill -KILL "$(cat "$home/pid")"
        wait_until 20 mariadb_gone "$2" || true
    fi
    mkdir -p "$state/logs"
    cp "$home/log" "$state/logs/$1.log" 2>/dev/null || true
    rm -rf "$home"
}

# The server writes its number only once it is ready for connections.
mariadb_answers_or_died() {
    [ -s "$2/pid" ] && [ -S "$2/socket" ] && (exec 3<>"/dev/tcp/127.0.0.1/$3") 2>/dev/null && return
    ! kill -0 $! 2>/dev/null
}

mariadb_describe() {
    local home
    home=$(cat "$1/home")
    mysql_env MARIADB "$2" "$mariadb_password" "$1/ca.crt" "$home/socket" >"$1/env.new"
    echo "127.0.0.1:$2, log in $home/log" >"$1/summary"
    mv "$1/env.new" "$1/env"
}

# mysql_env NAME PORT PASSWORD AUTHORITY SOCKET: what tests are told.
mysql_env() {
    export_line "TIDELAKE_TEST_$1_HOST" 127.0.0.1
    export_line "TIDELAKE_TEST_$1_PORT" "$2"
    export_line "TIDELAKE_TEST_$1_USER" tide
    export_line "TIDELAKE_TEST_$1_PASSWORD" "$3"
    export_line "TIDELAKE_TEST_$1_CA" "$4"
    export_line "TIDELAKE_TEST_$1_SOCKET" "$5"
}

# mysql_accounts STATEMENTS PASSWORD: one account that may do everything, after
# statements that remove those that have no password.
mysql_accounts() {
    cat <<SQL
${1//; /;$'\n'}
CREATE USER tide@'%' IDENTIFIED BY '$2';
GRANT ALL PRIVILEGES ON *.* TO tide@'%' WITH GRANT OPTION;
SQL
}

mariadb_is_root() {
    [ "$(id -u)" = 0 ]
}

# The server refuses to run as root.
mariadb_user() {
    if mariadb_is_root; then
        echo mysql
    else
        id -un
    fi
}

mariadb_owns() {
    ! mariadb_is_root || chown -R mysql: "$1"
}

# Sets `mariadb_server`: Debian keeps it off the PATH of normal users.
mariadb_install() {
    mariadb_find && return
    # The package would start a server of its own on the usual port.
    if mariadb_is_root && [ ! -e /usr/sbin/policy-rc.d ]; then
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
        chmod +x /usr/sbin/policy-rc.d
        install_packages mariadb-server mariadb-client
        rm -f /usr/sbin/policy-rc.d
    else
        install_packages mariadb-server mariadb-client
    fi
    mariadb_find || fail "mariadbd is missing although mariadb-server was installed"
}

mariadb_find() {
    mariadb_server=$(command -v mariadbd || echo /usr/sbin/mariadbd)
    [ -x "$mariadb_server" ] && command -v mariadb-install-db >/dev/null
}

# Making the system tables takes seconds, unpacking them a tenth of one.
mariadb_data() {
    local version template
    version=$("$mariadb_server" --no-defaults --version | tr -c 'A-Za-z0-9.\n' '-')
    template=$state/templates/mariadb-$(sha256sum <<<"$version $(cat "$here/mariadb.sh")" | cut -c1-12).tar
    locked template-mariadb mariadb_template "$1" "$template"
    mkdir "$1/data"
    tar -C "$1/data" -xf "$template"
}

mariadb_template() {
    [ ! -e "$2" ] || return 0
    mkdir -p "$state/templates" "$1/template"
    mariadb_owns "$1"
    mariadb-install-db --no-defaults --user="$(mariadb_user)" --datadir="$1/template" --skip-test-db \
        --auth-root-authentication-method=normal >"$1/install.log" 2>&1 || {
        tail -n 30 "$1/install.log" >&2
        fail "mariadb-install-db failed"
    }
    tar -C "$1/template" --sparse -cf "$2.new" .
    rm -rf "$1/template"
    mv "$2.new" "$2"
}

mariadb_settings() {
    cat <<SETTINGS
[mariadbd]
datadir = $1/data
socket = $1/socket
pid-file = $1/pid
init-file = $1/accounts.sql
bind-address = 127.0.0.1
skip-name-resolve
$(mysql_settings)
ssl-ca = $1/tls/ca.crt
ssl-cert = $1/tls/server.crt
ssl-key = $1/tls/server.key
plugin-load-add = auth_ed25519
SETTINGS
}

# What both servers are told. A time zone far from UTC and not of whole hours
# makes code fail at once that forgets to set its own.
mysql_settings() {
    cat <<'SETTINGS'
default-time-zone = +05:30
character-set-server = utf8mb4
max-connections = 300
max-allowed-packet = 256M
innodb-buffer-pool-size = 512M
local-infile = ON
# Safe to lose, so never waited for.
innodb-flush-method = nosync
innodb-flush-log-at-trx-commit = 0
innodb-doublewrite = 0
sync-binlog = 0
SETTINGS
}

mariadb_certificates() {
    local folder=$1 home=$2 work
    work=$(mktemp -d)
    certificates "$work"
    cp "$work/ca.crt" "$folder/ca.crt"
    chmod 644 "$folder/ca.crt"
    mkdir "$home/tls"
    cp "$work/ca.crt" "$work/server.crt" "$work/server.key" "$home/tls/"
    rm -rf "$work"
}
