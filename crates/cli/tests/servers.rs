//! The same commands against real servers: a database as source, state store and
//! publish target, a bucket as lake.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod terminal;

use serde_json::{Value, json};
use terminal::{Desk, server};
use tokio_postgres::{Client, Config, NoTls};

/// A database of its own on the test server, and a credential for it.
struct Database {
    name: String,
    admin: Config,
    credential: Value,
}

impl Database {
    async fn make() -> Option<Self> {
        let host = server("TIDELAKE_TEST_PG_HOST")?;
        let port = server("TIDELAKE_TEST_PG_PORT")?;
        let user = server("TIDELAKE_TEST_PG_USER")?;
        let password = server("TIDELAKE_TEST_PG_PASSWORD")?;
        let mut admin = Config::new();
        admin.host(&host).port(port.parse().unwrap()).user(&user).password(&password);
        admin.dbname(server("TIDELAKE_TEST_PG_DATABASE")?);
        let name = format!("cli_{}", ulid::Ulid::new().to_string().to_lowercase());
        let credential = json!({"ds_type": "postgres", "auth_mode": "classic", "info": {
            "server": host, "port": port, "username": user, "password": "$env{DESK_PASSWORD}",
            "database": name, "schema": "own_state", "application_name": "desk",
        }});
        let database = Self { name, admin, credential };
        let admin = connect(&database.admin).await;
        admin.batch_execute(&format!("CREATE DATABASE {}", database.name)).await.unwrap();
        Some(database)
    }

    async fn client(&self) -> Client {
        connect(self.admin.clone().dbname(&self.name)).await
    }

    async fn remove(self) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        connect(&self.admin).await.batch_execute(&drop).await.unwrap();
    }
}

async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

const TABLES: &str = "
    CREATE SCHEMA sales;
    CREATE TABLE sales.orders (
        id bigint PRIMARY KEY,
        updated_at timestamptz NOT NULL DEFAULT now() - interval '1 minute',
        price numeric(10, 2)
    );
    CREATE INDEX ON sales.orders (updated_at);
    INSERT INTO sales.orders (id, price) SELECT i, i * 1.01 FROM generate_series(1, 500) AS i;
    CREATE TABLE sales.units (name text PRIMARY KEY);
    INSERT INTO sales.units VALUES ('kg'), ('m');
";

fn report(desk: &Desk, line: &str) -> Value {
    serde_json::from_str(&desk.must(&format!("{line} --output json"))).unwrap()
}

fn rows(report: &Value) -> Vec<u64> {
    let tables = report["tables"].as_array().unwrap();
    tables.iter().map(|table| table["rows"].as_u64().unwrap()).collect()
}

/// Creates, plans and runs a sync of the sales; nothing else but the target
/// differs.
async fn sync_the_sales(desk: &Desk, database: &Database, target: &str) {
    let client = database.client().await;
    client.batch_execute(TABLES).await.unwrap();
    let global = "-a credentials.json --lxdb-auth-id shop";
    desk.must(&format!(
        "config create {global} --source-db-auth-id shop --source-schema-name sales \
         --sync-id nightly {target} --incremental-table sales.orders:updated_at:timestamp \
         --inflight-fence off"
    ));
    let plan = report(desk, &format!("plan {global} --sync-id nightly"));
    assert!(plan["tables"][0]["sql"][0].as_str().unwrap().contains("updated_at"), "{plan}");

    let sync = format!("sync {global} --sync-id nightly");
    assert_eq!(rows(&report(desk, &sync)), [500, 2]);
    assert_eq!(rows(&report(desk, &sync)), [0, 2]);
    let insert = "INSERT INTO sales.orders VALUES (501, now() - interval '1 second', NULL)";
    client.batch_execute(insert).await.unwrap();
    // The window ends below the server's own clock: the row must be under it.
    let third = report(desk, &sync);
    assert_eq!(rows(&third), [1, 2], "{third}");
    let runs = report(desk, &format!("status {global}"));
    assert_eq!(runs.as_array().unwrap().len(), 3);
    let store = desk.must(&format!("lxdb init {global}"));
    assert!(store.contains("own_state"), "{store}");
}

fn desk_for(database: &Database, mut others: Value) -> Desk {
    let mut desk = Desk::new();
    desk.set("DESK_PASSWORD", &server("TIDELAKE_TEST_PG_PASSWORD").unwrap());
    others["shop"] = database.credential.clone();
    desk.credentials(&others);
    desk
}

#[tokio::test]
async fn one_credential_is_source_and_state_store() {
    let Some(database) = Database::make().await else { return };
    let desk = desk_for(&database, json!({}));
    sync_the_sales(&desk, &database, "--output-dir lake").await;
    assert!(!desk.lake_files().is_empty());
    database.remove().await;
}

#[tokio::test]
async fn no_secret_is_ever_told() {
    let Some(database) = Database::make().await else { return };
    let mut desk = desk_for(&database, json!({}));
    sync_the_sales(&desk, &database, "--output-dir lake").await;
    let password = server("TIDELAKE_TEST_PG_PASSWORD").unwrap();
    let mut told = String::new();
    for right in [true, false] {
        let word = if right { password.clone() } else { format!("not-{password}") };
        desk.set("DESK_PASSWORD", &word);
        for form in ["table", "json"] {
            let answer = desk.run(&format!(
                "sync -a credentials.json --lxdb-auth-id shop --sync-id nightly \
                 --log-level DEBUG --log-dir logs --output {form}"
            ));
            assert_eq!(answer.code == 0, right, "{}", answer.transcript());
            told.push_str(answer.transcript());
        }
    }
    for file in std::fs::read_dir(desk.path("logs")).unwrap() {
        told.push_str(&std::fs::read_to_string(file.unwrap().path()).unwrap());
    }
    assert!(told.contains("COPY"), "the statements are told: {told}");
    assert!(!told.contains(&password), "{told}");
    database.remove().await;
}

#[tokio::test]
async fn a_bucket_is_the_lake() {
    let Some(endpoint) = server("TIDELAKE_TEST_S3_ENDPOINT") else { return };
    let Some(database) = Database::make().await else { return };
    let setting = |name: &str| server(&format!("TIDELAKE_TEST_S3_{name}")).unwrap();
    let directory = format!("s3://{}/{}", setting("BUCKET"), database.name);
    let bucket = json!({"ds_type": "s3", "auth_mode": "profile", "info": {
        "directory": directory, "profile": "desk", "endpoint_url": endpoint,
    }});
    let desk = desk_for(&database, json!({ "bucket": bucket }));
    std::fs::create_dir(desk.path(".aws")).unwrap();
    desk.write(
        ".aws/credentials",
        &format!(
            "[desk]\naws_access_key_id = {}\naws_secret_access_key = {}\n",
            setting("ACCESS_KEY"),
            setting("SECRET_KEY")
        ),
    );
    desk.write(".aws/config", &format!("[profile desk]\nregion = {}\n", setting("REGION")));
    sync_the_sales(&desk, &database, "--target-storage-id bucket --sub-path raw/shop").await;
    database.remove().await;
}

#[tokio::test]
async fn rows_are_published_into_tables() {
    let Some(database) = Database::make().await else { return };
    let desk = desk_for(&database, json!({}));
    let target = "--output-dir lake --publish-target shop --publish-method internal \
                  --publish-schema-pattern pub_{schema} --pk-constraints";
    sync_the_sales(&desk, &database, target).await;
    let client = database.client().await;
    let row = client.query_one("SELECT count(*) FROM pub_sales.orders", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 501);
    database.remove().await;
}

#[tokio::test]
async fn two_tables_never_share_a_place_in_the_target() {
    let Some(database) = Database::make().await else { return };
    let desk = desk_for(&database, json!({}));
    let client = database.client().await;
    let tables =
        "CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (id int); CREATE TABLE b.t (id int)";
    client.batch_execute(tables).await.unwrap();
    let create = "config create -a credentials.json --source-db-auth-id shop --source-schema-name a,b --sync-id one \
                  --output-dir lake --publish-target shop --publish-method internal \
                  --publish-schema-pattern all";
    let refused = desk.run(create);
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    assert!(
        refused.stderr.contains("a.t and b.t would both be published to all.t"),
        "{}",
        refused.transcript()
    );
    let created = desk.run(&format!("{create} --publish-table-pattern {{schema}}_{{table}}"));
    assert_eq!(created.code, 0, "{}", created.transcript());
    database.remove().await;
}

#[tokio::test]
async fn what_is_published_is_never_read_as_a_source() {
    let Some(database) = Database::make().await else { return };
    let desk = desk_for(&database, json!({}));
    let client = database.client().await;
    client.batch_execute("CREATE SCHEMA sales; CREATE TABLE sales.t (id int)").await.unwrap();
    let create = |more: &str| {
        desk.run(&format!(
            "config create -a credentials.json --source-db-auth-id shop --output-dir lake \
             --publish-target shop --publish-method internal {more}"
        ))
    };
    for (more, told) in [
        ("", "sales.t would be published into itself"),
        ("--publish-schema-pattern wh_{schema}", "sales.t would be published as wh_sales.t, which"),
        ("--publish-schema-pattern sales --publish-table-pattern {table}_2", "as sales.t_2, which"),
    ] {
        let refused = create(more);
        assert_eq!(refused.code, 2, "{}", refused.transcript());
        assert!(refused.stderr.contains(told), "{}", refused.transcript());
        assert!(refused.stderr.contains("hint: "), "{}", refused.transcript());
    }
    let made = create("--source-schema-name sales --publish-schema-pattern wh_{schema}");
    assert_eq!(made.code, 0, "{}", made.transcript());
    database.remove().await;
}
