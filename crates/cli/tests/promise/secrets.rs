//! No secret is ever told: not by a log, an error, a plan, a manifest or a row of
//! the state store, in no spelling.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::database::Database;
use crate::terminal::server;

/// Everything that is read in its own way by some URL, shell or file format.
const PASSWORD: &str = "pw/a@b:c?d#e%f g\"h'i\\j&k=l+m$n{o}é";
const KEY: &str = "sk/A@B:C?D#E%F G&H=I+J{K}";

/// The secret as text, inside JSON, in URLs, in base64 and hexadecimal.
fn spellings(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let percent = |keep: &[u8], hex: fn(u8) -> String| -> String {
        let one = |byte: &u8| match byte {
            byte if byte.is_ascii_alphanumeric() || keep.contains(byte) => {
                char::from(*byte).to_string()
            }
            byte => hex(*byte),
        };
        bytes.iter().map(one).collect()
    };
    let (upper, lower) = (|byte| format!("%{byte:02X}"), |byte| format!("%{byte:02x}"));
    let quoted = json!(secret).to_string();
    let mut all = vec![
        secret.to_owned(),
        quoted.trim_matches('"').to_owned(),
        json!(quoted).to_string().trim_matches('"').to_owned(),
        format!("{secret:?}").trim_matches('"').to_owned(),
        secret.replace('\'', "\\'").replace('\\', "\\\\"),
        secret.replace('\'', "''"),
        percent(b"", upper),
        percent(b"", lower),
        percent(b"-._~", upper),
        percent(b"-._~/", upper),
        percent(b"-._~!*'()", upper),
        percent(b"-._~", upper).replace("%20", "+"),
        bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
    ];
    // Wherever it begins among groups of three bytes.
    for before in 0..3 {
        let mut padded = vec![b'x'; before];
        padded.extend(bytes);
        for alphabet in [b"+/", b"-_"] {
            let text = base64(&padded, alphabet);
            let inner = &text[if before == 0 { 0 } else { 4 }..text.len() - 4];
            all.push(inner.to_owned());
        }
    }
    // The first half alone gives enough away.
    all.push(secret.chars().take(12).collect());
    all
}

fn base64(bytes: &[u8], last: &[u8; 2]) -> String {
    let mut alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".to_vec();
    alphabet.extend(last);
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number = group.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for at in 0..4 {
            let place = (number >> (18 - 6 * at)) & 63;
            let is_there = at <= group.len();
            text.push(if is_there { char::from(alphabet[place as usize]) } else { '=' });
        }
    }
    text
}

/// Everything below a folder but the credentials.
fn contents(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents(&path, found);
        } else if path.file_name().is_some_and(|name| name != "credentials.json") {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

/// What was said and written.
struct Traces(Vec<(String, Vec<u8>)>);

impl Traces {
    fn hear(&mut self, name: &str, text: impl Into<Vec<u8>>) {
        self.0.push((name.to_owned(), text.into()));
    }

    fn check(&self) {
        let found = self.find();
        assert!(found.is_none(), "{found:?}");
    }

    /// A spelling of a secret, and where it stands.
    fn find(&self) -> Option<(String, &str)> {
        for spelling in [PASSWORD, KEY].into_iter().flat_map(spellings) {
            let needle = spelling.as_bytes();
            let stands = |text: &[u8]| text.windows(needle.len()).any(|window| window == needle);
            if let Some((name, _)) = self.0.iter().find(|(_, text)| stands(text)) {
                return Some((spelling, name));
            }
        }
        None
    }
}

const TABLES: &str = "
    CREATE TABLE orders (id integer PRIMARY KEY, at timestamptz NOT NULL, note text);
    CREATE INDEX ON orders (at);
    INSERT INTO orders SELECT i, now() - i * interval '1 s', 'x' FROM generate_series(1, 20) AS i;
";

/// A bench whose source, state store, warehouse and bucket are all reached with
/// the secrets.
fn guarded() -> Option<(Bench, Database, String)> {
    let mut bench = Bench::new(TABLES)?;
    let warehouse = Database::make()?;
    let user = format!("user_{}", bench.database.name);
    bench.database.run(&format!(
        "CREATE ROLE {user} LOGIN PASSWORD {};
         GRANT pg_read_all_stats TO {user};
         GRANT ALL ON ALL TABLES IN SCHEMA public TO {user};
         GRANT ALL ON DATABASE {} TO {user}; GRANT ALL ON SCHEMA public TO {user}",
        crate::bench::literal(PASSWORD),
        bench.database.name
    ));
    warehouse.run(&format!("GRANT ALL ON DATABASE {} TO {user}", warehouse.name));
    bench.use_bucket("bucket")?;
    let mut bucket = bench.credentials["bucket"].clone();
    bucket["info"]["secret_access_key"] = json!(KEY);
    bench.credential("bucket", bucket);
    bench.credential("source", bench.database.credential_of(&user, PASSWORD));
    bench.credential("warehouse", warehouse.credential_of(&user, PASSWORD));
    let mut state = bench.database.credential_of(&user, PASSWORD);
    state["info"]["schema"] = json!("own_state");
    bench.credential("server_state", state);
    Some((bench, warehouse, user))
}

/// Every row of every table of the state store on the server.
fn dump(database: &Database) -> String {
    let tables = database.rows(
        "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'own_state'",
    );
    assert!(!tables.is_empty());
    let mut text = String::new();
    for table in tables {
        let name = table[0].as_ref().unwrap();
        for row in database.rows(&format!("SELECT to_jsonb(t) FROM {name} AS t")) {
            text.push_str(row[0].as_ref().unwrap());
        }
    }
    text
}

/// A credential with another value.
fn with(credential: &Value, key: &str, value: Value) -> Value {
    let mut credential = credential.clone();
    credential["info"][key] = value;
    credential
}

#[test]
fn no_secret_in_anything_that_was_said_or_written() {
    let Some((mut bench, warehouse, user)) = guarded() else { return };
    let mut traces = Traces(vec![]);
    let mut run = |bench: &Bench, what: &str, line: &str| {
        let [code, _] = ["table", "json"].map(|form| {
            let answer = bench.desk.run(&format!(
                "{line} -a credentials.json --log-level DEBUG --log-dir logs --output {form}"
            ));
            traces.hear(what, answer.transcript());
            answer.code
        });
        code
    };
    let published =
        "--publish-target warehouse --publish-method internal --publish-schema-pattern pub";
    let by_time = "--incremental-table public.orders:at:datetime";
    for state in ["state", "server_state"] {
        let lxdb = format!("--lxdb-auth-id {state}");
        for (id, target) in [("file", "--output-dir lake"), ("s3", "--target-storage-id bucket")] {
            let create = format!(
                "config create {lxdb} --source-db-auth-id source --include orders --sub-path {state} \
                 {target} {by_time} --sync-id"
            );
            let publish = if id == "s3" { "" } else { published };
            let publish = if state == "state" { publish } else { "" };
            // The second form of the result finds the sync there already.
            let done = [
                // The second form of the result finds the sync there already.
                run(&bench, "create", &format!("{create} {id} {publish}")),
                run(&bench, "plan", &format!("plan {lxdb} --sync-id {id}")),
                run(&bench, "sync", &format!("sync {lxdb} --sync-id {id}")),
                run(&bench, "show", &format!("config show {lxdb} --sync-id {id}")),
                run(&bench, "status", &format!("status {lxdb} --verbose")),
                run(&bench, "watermarks", &format!("watermarks history {lxdb} --sync-id {id}")),
                run(&bench, "lxdb", &format!("lxdb init {lxdb}")),
            ];
            assert_eq!(done, [0; 7], "{state} {id}");
            let of = format!("{lxdb} --sync-id {id}");
            let done = [
                run(&bench, "verify", &format!("verify {of} --files")),
                run(&bench, "explain", &format!("explain {of} --table public.orders --key id=1")),
                run(
                    &bench,
                    "backfill",
                    &format!("backfill {of} --table public.orders --to 2020-01-01"),
                ),
                run(&bench, "compact", &format!("compact {of}")),
                run(&bench, "cleanup", &format!("cleanup {of} --older-than 0")),
                run(&bench, "doctor", &format!("doctor {of} --verbose")),
            ];
            assert_eq!(done, [0; 6], "{state} {id}");
        }
    }
    failures(&mut bench, &user, &mut run);

    let mut files = vec![];
    contents(&bench.desk.path(""), &mut files);
    let names: Vec<_> = files.iter().map(|(name, _)| name.clone()).collect();
    for part in ["state.db", ".jsonl", "latest.json", "runs/", ".parquet"] {
        assert!(names.iter().any(|name| name.contains(part)), "{part} in {names:?}");
    }
    traces.0.extend(files);
    traces.hear("the state store's rows", dump(&bench.database));
    let manifest = bench.look("server_state/public/orders").head.unwrap();
    traces.hear("a manifest in the bucket", manifest.to_string());
    let statements =
        traces.0.iter().any(|(_, text)| String::from_utf8_lossy(text).contains("COPY (SELECT"));
    assert!(statements, "statements are told at DEBUG");
    traces.check();
    warehouse.run(&format!("DROP OWNED BY {user} CASCADE"));
    bench.database.run(&format!("DROP OWNED BY {user} CASCADE; DROP ROLE {user}"));
}

/// All kinds of failures, each of which must be one.
fn failures(bench: &mut Bench, user: &str, run: &mut impl FnMut(&Bench, &str, &str) -> i32) {
    let mut fails = |bench: &Bench, what: &str, line: &str| {
        assert_ne!(run(bench, what, line), 0, "{what}: {line}");
    };
    let (source, bucket) =
        (bench.credentials["source"].clone(), bench.credentials["bucket"].clone());
    let lxdb = "--lxdb-auth-id state";
    let wrong_sources = [
        ("wrong password", with(&source, "password", json!(format!("{PASSWORD}!")))),
        ("no such database", with(&source, "database", json!("no_such_database"))),
        ("no such user", with(&source, "username", json!("nobody/x@y"))),
        ("refused port", with(&source, "port", json!(1))),
        ("no such host", with(&source, "server", json!("no-such-host.invalid"))),
        ("unverified", with(&source, "sslmode", json!("verify-full"))),
        ("unknown key", with(&source, "passwort", json!(PASSWORD))),
        ("a url as host", with(&source, "server", json!(format!("tide:{user}@127.0.0.1/x")))),
        ("a password of the wrong type", with(&source, "password", json!([PASSWORD]))),
        ("a port that is none", with(&source, "port", json!(PASSWORD))),
    ];
    for (what, credential) in wrong_sources {
        bench.credential("source", credential);
        let create = "config create --source-db-auth-id source --output-dir other --sync-id other";
        fails(bench, what, &format!("{create} {lxdb}"));
        fails(bench, what, &format!("sync {lxdb} --sync-id file"));
        fails(bench, what, &format!("plan {lxdb} --sync-id file"));
        fails(bench, what, &format!("verify {lxdb} --sync-id file"));
        fails(bench, what, &format!("doctor {lxdb} --sync-id file"));
    }
    bench.credential("source", source);
    let wrong_buckets = [
        ("refused endpoint", with(&bucket, "endpoint_url", json!("http://127.0.0.1:1"))),
        ("no such bucket", with(&bucket, "directory", json!("s3://no-such-bucket-at-all/x"))),
        ("no endpoint", with(&bucket, "endpoint_url", json!("not a url"))),
        ("half a key", with(&bucket, "access_key_id", Value::Null)),
    ];
    for (what, credential) in wrong_buckets {
        bench.credential("bucket", credential);
        let create =
            "config create --source-db-auth-id source --target-storage-id bucket --sync-id other";
        fails(bench, what, &format!("{create} {lxdb}"));
        fails(bench, what, &format!("sync {lxdb} --sync-id s3"));
    }
    bench.credential("bucket", bucket);
    // Something that fails while it reads, while it publishes, and that dies.
    bench.database.run("INSERT INTO orders VALUES (100, now() - interval '1 s', 'new')");
    let mut command = bench.desk.command();
    command.args([
        "sync",
        "-a",
        "credentials.json",
        "--lxdb-auth-id",
        "state",
        "--sync-id",
        "file",
    ]);
    command.args(["--log-dir", "logs", "--log-level", "DEBUG"]);
    let output = command.env("TIDELAKE_FAULT", "completed").output().unwrap();
    assert!(!output.status.success());
    let after = bench.desk.run("sync -a credentials.json --lxdb-auth-id state --sync-id file");
    assert_eq!(after.code, 0, "{}", after.transcript());
    bench.database.run("ALTER TABLE orders DROP COLUMN note");
    fails(bench, "another schema", &format!("sync {lxdb} --sync-id file"));
    bench.database.run("ALTER TABLE orders DROP COLUMN at");
    fails(bench, "a cursor that is gone", &format!("sync {lxdb} --sync-id file"));
    bench.database.run("DROP TABLE orders");
    fails(bench, "a table that is gone", &format!("sync {lxdb} --sync-id file"));
    bench.database.run("CREATE TABLE orders (id integer); INSERT INTO orders VALUES (1)");
    fails(bench, "no privilege", &format!("sync {lxdb} --sync-id file"));
}

#[test]
fn a_missing_variable_is_named_and_its_neighbours_are_not() {
    let Some(mut bench) = Bench::new(TABLES) else { return };
    let source = bench.credentials["source"].clone();
    let both = with(&source, "password", json!(format!("$env{{NOT_SET_HERE}}{PASSWORD}")));
    bench.credential("source", both);
    let refused = bench.try_create("");
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    assert!(refused.stderr.contains("NOT_SET_HERE"), "{}", refused.transcript());
    let mut traces = Traces(vec![]);
    traces.hear("an error", refused.transcript());
    traces.check();
    // Set, it opens the door.
    let password = server("TIDELAKE_TEST_PG_PASSWORD").unwrap();
    bench.desk.set("SET_HERE", &password);
    bench.credential("source", with(&source, "password", json!("$env{SET_HERE}")));
    bench.create("--incremental-table public.orders:at:datetime");
    bench.sync();
    bench.same("orders", "true");
}

#[test]
fn a_secret_that_is_told_would_be_found() {
    let told = [
        format!("connecting as user:{KEY}@host"),
        // As encodeURIComponent, a form and Python's base64 have it.
        "postgres://u:pw%2Fa%40b%3Ac%3Fd%23e%25f%20g%22h'i%5Cj%26k%3Dl%2Bm%24n%7Bo%7D%C3%A9@host"
            .to_owned(),
        "key=sk%2FA%40B%3AC%3FD%23E%25F+G%26H%3DI%2BJ%7BK%7D".to_owned(),
        "Basic dXNlcjpzay9BQEI6Qz9EI0UlRiBHJkg9SStKe0t9".to_owned(),
        "AWS c2svQUBCOkM_RCNFJUYgRyZIPUkrSntLfQ==".to_owned(),
        json!({"message": format!("password {PASSWORD} refused")}).to_string(),
    ];
    for text in told {
        let mut traces = Traces(vec![]);
        traces.hear("a log", format!("before {text} after"));
        assert!(traces.find().is_some(), "{text}");
    }
    let mut traces = Traces(vec![]);
    traces.hear("a log", "nothing of interest, pw and sk aside");
    assert_eq!(traces.find(), None);
}
