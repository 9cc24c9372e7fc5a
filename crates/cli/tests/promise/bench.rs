//! A workbench: a desk with the program, a database to read, a lake to look into.

use std::collections::BTreeMap;
use std::process::Output;

use serde_json::{Value, json};

use crate::database::{Database, Row, quoted};
use crate::reader::{self, Reader, Rows};
use crate::terminal::{Answer, Desk, file, server};

/// Ids of the credentials: `state`, `source`, `bucket`.
pub(crate) struct Bench {
    pub(crate) desk: Desk,
    pub(crate) database: Database,
    pub(crate) reader: Reader,
    /// Where the reader looks.
    pub(crate) lake: Value,
    pub(crate) credentials: Value,
    /// Prefix of its own in the bucket.
    pub(crate) prefix: String,
}

/// What a run said of itself.
pub(crate) struct Report {
    pub(crate) code: i32,
    pub(crate) json: Value,
    pub(crate) stderr: String,
}

pub(crate) const GLOBAL: &str = "-a credentials.json --lxdb-auth-id state";

impl Bench {
    /// With tables made by the statements; `None` where there are no servers.
    pub(crate) fn new(sql: &str) -> Option<Self> {
        Self::of(Database::make()?, sql)
    }

    /// The same over a database that is there.
    pub(crate) fn of(database: Database, sql: &str) -> Option<Self> {
        let reader = Reader::start()?;
        database.run(sql);
        let mut desk = Desk::new();
        let password = server("TIDELAKE_TEST_PG_PASSWORD")?;
        desk.hide(&password);
        let credentials = json!({
            "state": file(&desk.path("state.db")),
            "source": database.credential(),
        });
        desk.credentials(&credentials);
        let lake = reader::folder(&desk.path("lake"));
        let prefix = format!("promise-{}", ulid::Ulid::new());
        Some(Self { desk, database, reader, lake, credentials, prefix })
    }

    /// Adds a credential, or replaces one.
    pub(crate) fn credential(&mut self, id: &str, credential: Value) {
        self.credentials[id] = credential;
        self.desk.credentials(&self.credentials);
    }

    /// The lake is a bucket from now on; its credential has that id.
    pub(crate) fn use_bucket(&mut self, id: &str) -> Option<()> {
        let setting = |name: &str| server(&format!("TIDELAKE_TEST_S3_{name}"));
        let directory = format!("s3://{}/{}", setting("BUCKET")?, self.prefix);
        self.lake = reader::bucket(&self.prefix)?;
        self.credential(
            id,
            json!({"ds_type": "s3", "auth_mode": "keys", "info": {
                "directory": directory, "endpoint_url": setting("ENDPOINT")?,
                "access_key_id": setting("ACCESS_KEY")?,
                "secret_access_key": setting("SECRET_KEY")?, "region": setting("REGION")?,
            }}),
        );
        Some(())
    }

    /// `config create` into the folder `lake`, with the sync's id `s`.
    pub(crate) fn create(&self, options: &str) {
        let answer = self.try_create(options);
        assert_eq!(answer.code, 0, "{}", answer.transcript());
    }

    pub(crate) fn try_create(&self, options: &str) -> Answer {
        let is_told =
            ["--target-storage-id", "--output-dir"].iter().any(|name| options.contains(name));
        let target = if is_told { "" } else { "--output-dir lake" };
        let id = if options.contains("--sync-id") { "" } else { "--sync-id s" };
        self.desk.run(&format!(
            "config create {GLOBAL} --source-db-auth-id source {target} {id} {options}"
        ))
    }

    /// A sync that must succeed.
    pub(crate) fn sync(&self) -> Report {
        self.sync_as("")
    }

    pub(crate) fn sync_as(&self, options: &str) -> Report {
        let report = self.try_sync(options);
        assert_eq!(report.code, 0, "{report:?}");
        report
    }

    /// A sync that may fail.
    pub(crate) fn try_sync(&self, options: &str) -> Report {
        let id = if options.contains("--sync-id") { "" } else { "--sync-id s" };
        let answer = self.desk.run(&format!("sync {GLOBAL} {id} --output json {options}"));
        Report::of(answer.code, &answer.stdout, answer.stderr)
    }

    /// `watermarks get` and its like, with the sync's id `s`.
    pub(crate) fn watermark(&self, verb: &str, options: &str) -> Answer {
        self.desk.run(&format!("watermarks {verb} {GLOBAL} --sync-id s --output json {options}"))
    }

    /// The stored watermark of a table in `public`.
    pub(crate) fn progress(&self, table: &str) -> Value {
        let answer = self.watermark("get", &format!("--table public.{table}"));
        assert_eq!(answer.code, 0, "{}", answer.transcript());
        serde_json::from_str(&answer.stdout).unwrap()
    }

    /// Returns when no day ends within the next minute, in any of the zones and
    /// lags that the tests use.
    pub(crate) fn wait_for_a_quiet_day(&self) {
        let near =
            "SELECT now()::time > time '23:59' OR (now() - interval '1 h')::time > time '23:59'";
        while self.database.value(near) == "t" {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    }

    /// What counts in a table's folder, `schema/table`.
    pub(crate) fn look(&self, folder: &str) -> Rows {
        self.reader.rows(&self.lake, folder).unwrap_or_else(|error| panic!("{folder}: {error}"))
    }

    /// The files of the newest manifest, as it describes them.
    pub(crate) fn look_at_files(&self, folder: &str) -> Vec<Value> {
        let latest = self.reader.document(&self.lake, folder, "_tidelake/latest.json");
        let newest = latest["manifests"].as_array().unwrap().last().unwrap()["key"].clone();
        let manifest = self.reader.document(&self.lake, folder, newest.as_str().unwrap());
        manifest["files"].as_array().unwrap().clone()
    }

    /// The lake holds exactly the rows of the source that the condition picks,
    /// each once, all columns alike.
    pub(crate) fn same(&self, table: &str, condition: &str) {
        self.same_in(&format!("public/{table}"), "public", table, condition);
    }

    /// The same for another schema and folder.
    pub(crate) fn same_in(&self, folder: &str, schema: &str, table: &str, condition: &str) {
        let (columns, wanted) = self.wanted(schema, table, condition);
        let found = self.look(folder);
        assert!(found.head.is_some(), "nothing was committed in {folder}");
        if !wanted.is_empty() {
            assert_eq!(found.columns, columns);
        }
        assert_same(folder, found.rows, wanted);
    }

    /// Rows of the source as the reader would print them.
    fn wanted(&self, schema: &str, table: &str, condition: &str) -> (Vec<String>, Vec<Row>) {
        let relation = format!("{}.{}", quoted(schema), quoted(table));
        let columns = self.database.rows(&format!(
            "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
             WHERE attrelid = {}::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            literal(&relation)
        ));
        let text = |column: &Row| {
            printed(&quoted(column[0].as_ref().unwrap()), column[1].as_ref().unwrap())
        };
        let list: Vec<_> = columns.iter().map(text).collect();
        let rows = self
            .database
            .rows(&format!("SELECT {} FROM {relation} WHERE {condition}", list.join(", ")));
        (columns.into_iter().map(|column| column[0].clone().unwrap()).collect(), rows)
    }
}

/// Fails with what is missing, what is foreign and what is there twice.
pub(crate) fn assert_same(place: &str, found: Vec<Row>, wanted: Vec<Row>) {
    let mut counts: BTreeMap<Row, i64> = BTreeMap::new();
    for row in found {
        *counts.entry(row).or_default() += 1;
    }
    for row in wanted {
        *counts.entry(row).or_default() -= 1;
    }
    counts.retain(|_, count| *count != 0);
    let shown: Vec<_> = counts.iter().take(10).collect();
    assert!(
        counts.is_empty(),
        "{place}: {} rows differ, + too often, - too seldom: {shown:?}",
        counts.len()
    );
}

/// A value as the reader prints it.
fn printed(name: &str, kind: &str) -> String {
    let fraction = |time: &str| {
        format!(
            "CASE WHEN extract(microseconds FROM {time})::bigint % 1000000 = 0 THEN '' \
             ELSE to_char({time}, '.US') END"
        )
    };
    match kind {
        "timestamp without time zone" => {
            format!("to_char({name}, 'YYYY-MM-DD\"T\"HH24:MI:SS') || {}", fraction(name))
        }
        "timestamp with time zone" => {
            let time = format!("({name} AT TIME ZONE 'UTC')");
            format!("to_char({time}, 'YYYY-MM-DD\"T\"HH24:MI:SS') || {} || 'Z'", fraction(&time))
        }
        "bytea" => format!("'0x' || encode({name}, 'hex')"),
        // Padding belongs to the value, a cast to text takes it away.
        "character" => format!("rpad({name}::text, octet_length({name}))"),
        _ => format!("{name}::text"),
    }
}

/// A text as the server's SQL has it.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Report {
    pub(crate) fn of(code: i32, stdout: &str, stderr: String) -> Self {
        Self { code, json: serde_json::from_str(stdout).unwrap_or(Value::Null), stderr }
    }

    pub(crate) fn of_output(output: &Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let stdout = String::from_utf8_lossy(&output.stdout);
        Self::of(output.status.code().unwrap_or(-1), &stdout, stderr)
    }

    /// The report of the one table of that name.
    pub(crate) fn table(&self, name: &str) -> &Value {
        let tables = self.json["tables"].as_array().unwrap_or_else(|| panic!("{self:?}"));
        let found = tables.iter().find(|table| table["table"]["table"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    pub(crate) fn rows(&self, name: &str) -> u64 {
        self.table(name)["rows"].as_u64().unwrap()
    }

    /// Codes and messages of a table's notices.
    pub(crate) fn notices(&self, name: &str) -> String {
        let notices = self.table(name)["notices"].as_array().unwrap().iter();
        let text = notices.map(|notice| {
            format!(
                "{}: {}\n",
                notice["code"].as_str().unwrap(),
                notice["message"].as_str().unwrap()
            )
        });
        text.collect()
    }

    pub(crate) fn watermark(&self, name: &str) -> &str {
        self.table(name)["watermark_after"].as_str().unwrap_or("")
    }

    pub(crate) fn counter(&self, name: &str, counter: &str) -> Option<u64> {
        self.table(name)["counters"][counter].as_u64()
    }
}

impl std::fmt::Debug for Report {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "exit {}\n{:#}\n{}", self.code, self.json, self.stderr)
    }
}
