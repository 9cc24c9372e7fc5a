//! What a doctor is told of a server: rights, what is in flight, and where the
//! values of a cursor come from.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod common;

use common::Database;
use serde_json::json;
use tidelake_connector::{Connector, DiagnosedTable, Finding, Source, TableFilter, Verdict};
use tidelake_model::CursorRead;
use tidelake_postgres::Postgres;
use tidelake_watermark::{Cursor, Kind};

async fn diagnose(source: &dyn Source, cursor: &str, kind: Kind) -> Vec<Finding> {
    let tables = source.tables(&TableFilter::default()).await.unwrap();
    let diagnosed = tables.into_iter().filter(|table| table.name.table == "sales").map(|table| {
        let cursor = CursorRead { cursor: Cursor::Single(cursor.to_owned()), kinds: vec![kind] };
        DiagnosedTable { table, cursor: Some(cursor) }
    });
    source.diagnose(&diagnosed.collect::<Vec<_>>()).await.unwrap()
}

/// The finding on a topic.
fn on<'a>(findings: &'a [Finding], topic: &str) -> &'a Finding {
    findings
        .iter()
        .find(|finding| finding.topic == topic)
        .unwrap_or_else(|| panic!("nothing on {topic}: {findings:?}"))
}

const SALES: &str = "
    CREATE TABLE sales (
        id bigint GENERATED ALWAYS AS IDENTITY (CACHE 20) PRIMARY KEY,
        at timestamptz NOT NULL DEFAULT now(),
        seen timestamptz DEFAULT clock_timestamp(),
        secret text);
    CREATE INDEX ON sales (at);
    CREATE INDEX ON sales (seen);
    INSERT INTO sales (at, seen) SELECT now() - make_interval(days => n), NULL
    FROM generate_series(1, 500) n;
    ANALYZE sales";

#[tokio::test]
async fn where_values_come_from() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(SALES).await.unwrap();
    let source = database.source().await;

    let at = diagnose(&*source, "at", Kind::Timestamp).await;
    assert!(at.iter().all(|finding| finding.verdict != Verdict::Failure), "{at:?}");
    assert_eq!(on(&at, "index").verdict, Verdict::Fine);
    assert!(on(&at, "origin").message.contains("at is now() in a new row"), "{at:?}");
    // The oldest row came last.
    assert_eq!(on(&at, "order").verdict, Verdict::Warning, "{at:?}");
    assert_eq!(on(&at, "fence").verdict, Verdict::Fine);
    assert_eq!(on(&at, "rights").verdict, Verdict::Fine);
    assert!(at.iter().all(|finding| finding.topic != "NULLs"), "{at:?}");

    let seen = diagnose(&*source, "seen", Kind::Timestamp).await;
    assert!(on(&seen, "NULLs").message.contains("500 row(s)"), "{seen:?}");
    assert!(on(&seen, "late rows").message.contains("while its transaction runs"), "{seen:?}");

    let id = diagnose(&*source, "id", Kind::Integer).await;
    assert!(on(&id, "late rows").message.contains("cache"), "{id:?}");
    assert_eq!(on(&id, "order").verdict, Verdict::Fine, "{id:?}");

    client
        .batch_execute(
            "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN NEW.at := now(); RETURN NEW; END $$;
             CREATE TRIGGER touch BEFORE UPDATE ON sales FOR EACH ROW EXECUTE FUNCTION touch()",
        )
        .await
        .unwrap();
    let at = diagnose(&*source, "at", Kind::Timestamp).await;
    assert!(on(&at, "origin").message.contains("triggers touch"), "{at:?}");
    database.drop_now().await;
}

#[tokio::test]
async fn rights_that_are_missing() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(SALES).await.unwrap();
    let user = format!("doctor_{}", std::process::id());
    client
        .batch_execute(&format!(
            "CREATE ROLE {user} LOGIN PASSWORD 'examined' CONNECTION LIMIT 3;
             GRANT SELECT (id, at) ON sales TO {user}"
        ))
        .await
        .unwrap();
    let info = database.info_with(json!({"username": user, "password": "examined"}));
    let source = Postgres.source(&info).await.unwrap();

    let some = diagnose(&*source, "at", Kind::Timestamp).await;
    let rights = on(&some, "rights");
    assert_eq!(rights.verdict, Verdict::Failure, "{some:?}");
    assert!(rights.message.contains("seen, secret"), "{rights:?}");
    assert_eq!(on(&some, "fence").verdict, Verdict::Warning, "{some:?}");
    assert!(on(&some, "fence").hint.as_ref().unwrap().contains("pg_monitor"), "{some:?}");
    assert_eq!(on(&some, "connections").verdict, Verdict::Warning, "{some:?}");

    client
        .batch_execute(&format!(
            "GRANT SELECT ON sales TO {user}; GRANT pg_monitor TO {user};
             ALTER TABLE sales ENABLE ROW LEVEL SECURITY;
             CREATE POLICY few ON sales USING (id < 10)"
        ))
        .await
        .unwrap();
    let policy = diagnose(&*source, "at", Kind::Timestamp).await;
    assert_eq!(on(&policy, "rights").verdict, Verdict::Fine, "{policy:?}");
    assert_eq!(on(&policy, "fence").verdict, Verdict::Fine, "{policy:?}");
    assert_eq!(on(&policy, "row security").verdict, Verdict::Failure, "{policy:?}");
    drop(source);
    database.drop_now().await;
    let admin = Database::make().await.unwrap();
    admin.client().await.batch_execute(&format!("DROP ROLE {user}")).await.unwrap();
    admin.drop_now().await;
}

#[tokio::test]
async fn what_is_in_flight_and_what_is_gone() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(SALES).await.unwrap();
    let source = database.source().await;
    let quiet = diagnose(&*source, "at", Kind::Timestamp).await;
    assert_eq!(on(&quiet, "transactions").verdict, Verdict::Fine, "{quiet:?}");
    let can_prepare: String =
        client.query_one("SHOW max_prepared_transactions", &[]).await.unwrap().get(0);
    if can_prepare != "0" {
        client
            .batch_execute(
                "BEGIN; INSERT INTO sales (secret) VALUES ('x'); PREPARE TRANSACTION 'left'",
            )
            .await
            .unwrap();
        let held = diagnose(&*source, "at", Kind::Timestamp).await;
        let finding = on(&held, "transactions");
        assert_eq!(finding.verdict, Verdict::Warning, "{held:?}");
        assert!(finding.message.contains("\"left\""), "{finding:?}");
        client.batch_execute("ROLLBACK PREPARED 'left'").await.unwrap();
    }
    let gone = diagnose(&*source, "when_it_was", Kind::Timestamp).await;
    assert_eq!(on(&gone, "cursor").verdict, Verdict::Failure, "{gone:?}");
    database.drop_now().await;
}
