//! A publish target that only appends.

use serde_json::json;

use crate::terminal::{Desk, server};

/// Rows that were published before would be doubled, or would have to be taken
/// back: refused. Where none were, a backfill publishes what it reads.
#[test]
fn what_was_published_is_not_read_again() {
    let (Some(host), Some(port)) =
        (server("TIDELAKE_TEST_PG_HOST"), server("TIDELAKE_TEST_PG_PORT"))
    else {
        return;
    };
    let variable = |name: &str| std::env::var(name).unwrap();
    let target = format!("backfill_{}", ulid::Ulid::new().to_string().to_lowercase());
    let desk = Desk::new();
    desk.credentials(&json!({
        "shop": crate::terminal::file(&desk.path("shop.db")),
        "warehouse": {"ds_type": "postgres", "auth_mode": "classic", "info": {
            "username": variable("TIDELAKE_TEST_PG_USER"),
            "password": variable("TIDELAKE_TEST_PG_PASSWORD"),
            "server": host, "port": port.parse::<u16>().unwrap(),
            "database": variable("TIDELAKE_TEST_PG_DATABASE"),
        }},
    }));
    let common = "-a credentials.json --sync-id s";
    desk.must(&format!(
        "config create --source-db-auth-id shop --output-dir lake --include orders \
         --incremental-table main.orders:updated_at:datetime@2024-01-02 \
         --publish-target warehouse --publish-method internal \
         --publish-schema-pattern {target} {common}"
    ));
    desk.must(&format!("sync {common}"));
    let line = |from: &str, to: &str| {
        format!("backfill --table main.orders --from {from} --to {to} --output json {common}")
    };
    // Below the first bound nothing was exported.
    let done = desk.must(&line("2024-01-01", "2024-01-02"));
    let done: serde_json::Value = serde_json::from_str(&done).unwrap();
    assert_eq!(done["rows"], 1, "{done}");
    let refused = desk.run(&line("2024-01-01", "2024-01-03"));
    assert_eq!(refused.code, 5, "{}", refused.transcript());
    assert!(refused.stderr.contains("were published before"), "{}", refused.transcript());
    // The same again went well before, and reads nothing.
    let again = desk.must(&line("2024-01-01", "2024-01-02"));
    assert!(again.contains("\"rows\": 0"), "{again}");
    // Merged files are published by nobody again.
    desk.must(&format!("compact {common}"));
    desk.shop("INSERT INTO orders VALUES (3, '2024-01-03 00:00:00', 1, NULL)");
    desk.must(&format!("sync {common}"));
    let published = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut config = tokio_postgres::Config::new();
        config
            .host(variable("TIDELAKE_TEST_PG_HOST"))
            .port(variable("TIDELAKE_TEST_PG_PORT").parse().unwrap())
            .user(variable("TIDELAKE_TEST_PG_USER"))
            .password(variable("TIDELAKE_TEST_PG_PASSWORD"))
            .dbname(variable("TIDELAKE_TEST_PG_DATABASE"));
        let connected = config.connect(tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        let query = format!("SELECT string_agg(id::text, ',' ORDER BY id) FROM {target}.orders");
        let ids: String = client.query_one(&query, &[]).await.unwrap().get(0);
        client.batch_execute(&format!("DROP SCHEMA {target} CASCADE")).await.unwrap();
        ids
    });
    assert_eq!(published, "1,2,3");
}
