# MySQL from Debian's unstable distribution, the only one that has it. Nothing is
# installed into the system: apt resolves and fetches the server and the libraries
# that it needs into a folder of its own, from where the server is run with the
# loader that came with it. That distribution moves, so nothing of it is pinned;
# where it cannot be had or does not start, the service is absent, and says why.
# shellcheck shell=bash

# Every character in it has a meaning in a URL, a key-value string or a shell.
mysql_password='p@ss/w:o?r#d% 42'

mysql_start() {
    local folder=$1 home port attempt
    need openssl openssl
    need python3 python3
    locked mysql-packages mysql_install "$folder" || return 0
    home=$(mktemp -d /tmp/tidelake-mysql.XXXXXX)
    echo "$home" >"$folder/home"
    mysql_data "$folder" "$home" || return 0
    mariadb_certificates "$folder" "$home"
    mysql_own_settings "$home" >"$home/settings"
    mysql_accounts "DROP USER root@localhost;" "$mysql_password" >"$home/accounts.sql"

    for attempt in 1 2 3; do
        port=$(free_port)
        mysql_server setsid --defaults-file="$home/settings" --port="$port" \
            </dev/null >"$home/log" 2>&1 9>&- &
        if wait_until 90 mariadb_answers_or_died "$folder" "$home" "$port" && mariadb_alive "$folder"; then
            mysql_describe "$folder" "$port"
            return 0
        fi
        say "attempt $attempt to start mysql failed"
    done
    tail -n 30 "$home/log" >&2
    absent "$folder" "the server of Debian unstable does not start" || return 0
}

mysql_alive() {
    mariadb_alive "$1"
}

mysql_stop() {
    mariadb_stop_as mysql "$1"
}

mysql_describe() {
    local home
    home=$(cat "$1/home")
    mysql_env MYSQL "$2" "$mysql_password" "$1/ca.crt" "$home/socket" >"$1/env.new"
    echo "127.0.0.1:$2, $(cat "$(mysql_root)/version"), log in $home/log" >"$1/summary"
    mv "$1/env.new" "$1/env"
}

mysql_root() {
    echo "$state/mysql/root"
}

# mysql_server [PREFIX] OPTION...: runs the server with its own loader and libraries.
mysql_server() {
    local root loader prefix=()
    root=$(mysql_root)
    loader=$(printf '%s\n' "$root"/usr/lib/*/ld-linux-*.so.* | head -n 1)
    [ "$1" != setsid ] || { prefix=(setsid); shift; }
    # It refuses to run as root unless told so by name.
    exec "${prefix[@]}" "$loader" --library-path "${loader%/*}" "$root/usr/sbin/mysqld" "$@" \
        --user="$(id -un)" --basedir="$root/usr" --plugin-dir="$root/usr/lib/mysql/plugin" \
        --lc-messages-dir="$root/usr/share/mysql" --character-sets-dir="$root/usr/share/mysql/charsets"
}

# Fetches the server once; deleting services/run.d/mysql fetches it anew.
mysql_install() {
    local folder=$1 root work mirror package
    root=$(mysql_root)
    [ ! -e "$root/version" ] || return 0
    work=$(dirname "$root")
    rm -rf "$work"
    mkdir -p "$work"/{lists/partial,cache/archives/partial,none,log,root}
    : >"$work/status"
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
        absent "$folder" "this system has no apt-get" || return 1
    [ -r "$mysql_keys" ] || absent "$folder" "$mysql_keys is missing" || return 1
    mirror=${TIDELAKE_DEBIAN_MIRROR:-$(mysql_mirror)}
    [ -n "$mirror" ] || absent "$folder" "no mirror of Debian is known: set TIDELAKE_DEBIAN_MIRROR" || return 1
    say "fetching MySQL from Debian unstable"
    echo "deb [signed-by=$mysql_keys] $mirror sid main" >"$work/sources.list"
    mysql_apt_settings "$work" >"$work/apt.conf"
    {
        APT_CONFIG=$work/apt.conf timeout 300 apt-get update -qq &&
            APT_CONFIG=$work/apt.conf timeout 300 apt-get install -qq -y --no-install-recommends --download-only mysql-server-core
    } >"$work/log/apt" 2>&1 || {
        tail -n 5 "$work/log/apt" >&2
        absent "$folder" "Debian unstable could not be read from $mirror" || return 1
    }
    for package in "$work"/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --no-same-owner
    done
    (mysql_server --no-defaults --version) >"$work/version" 2>"$work/log/version" || {
        tail -n 5 "$work/log/version" >&2
        absent "$folder" "the server of Debian unstable does not run here" || return 1
    }
    rm -rf "$work/lists" "$work/cache"
    sed -n 's/.*Ver \([^ ]*\).*/MySQL \1/p' "$work/version" >"$root/version.new"
    mv "$root/version.new" "$root/version"
}

mysql_keys=/usr/share/keyrings/debian-archive-keyring.gpg

# The mirror that this system itself takes its packages from.
mysql_mirror() {
    apt-get indextargets --format '$(SITE) $(ORIGIN) $(LABEL)' 'Created-By: Packages' 2>/dev/null |
        awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }'
}

# The system's own settings hold too, so a proxy stays a proxy.
mysql_apt_settings() {
    cat <<SETTINGS
Dir::State "$1";
Dir::State::lists "$1/lists";
Dir::State::status "$1/status";
Dir::Cache "$1/cache";
Dir::Log "$1/log";
Dir::Etc::sourcelist "$1/sources.list";
Dir::Etc::sourceparts "$1/none";
Dir::Etc::preferencesparts "$1/none";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
SETTINGS
}

# Making the system tables takes seconds, unpacking them a tenth of one.
mysql_data() {
    local folder=$1 home=$2 template
    template=$state/templates/mysql-$(sha256sum <<<"$(cat "$(mysql_root)/version" "$here/mysql.sh")" | cut -c1-12).tar
    locked template-mysql mysql_template "$home" "$template" ||
        absent "$folder" "the server of Debian unstable does not make its tables" || return 1
    mkdir -m 700 "$home/data"
    tar -C "$home/data" -xf "$template"
}

mysql_template() {
    [ ! -e "$2" ] || return 0
    mkdir -p "$state/templates" "$1/template"
    (mysql_server --no-defaults --initialize-insecure --datadir="$1/template") >"$1/log" 2>&1 || {
        tail -n 30 "$1/log" >&2
        return 1
    }
    tar -C "$1/template" --sparse -cf "$2.new" .
    rm -rf "$1/template"
    mv "$2.new" "$2"
}

mysql_own_settings() {
    cat <<SETTINGS
[mysqld]
datadir = $1/data
socket = $1/socket
pid-file = $1/pid
init-file = $1/accounts.sql
bind-address = 127.0.0.1
skip-name-resolve
mysqlx = OFF
# The folder of the package is not there.
secure-file-priv = ""
$(mysql_settings)
ssl-ca = $1/tls/ca.crt
ssl-cert = $1/tls/server.crt
ssl-key = $1/tls/server.key
SETTINGS
}
