//! What is in flight, beyond what the suite asks.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

mod common;

use std::time::Duration;

use common::{Database, servers, unique};
use mysql_async::prelude::Queryable;
use tidelake_connector::{ClockRequest, Connector, FencePurpose, LogPosition};
use tidelake_model::{ErrorKind, FenceMode, NoticeCode};
use tidelake_watermark::Fence;

fn request(database: &Database, purpose: FencePurpose, mode: FenceMode) -> ClockRequest {
    ClockRequest {
        table: database.table_name("t"),
        purpose,
        mode,
        wait: Duration::ZERO,
        ignore_users: vec![],
        log: LogPosition::Unasked,
    }
}

const BOTH: [FencePurpose; 2] = [FencePurpose::Time, FencePurpose::Identifier];

/// XA transactions survive their connection, and hold rows that nobody sees.
#[tokio::test]
async fn a_prepared_transaction_closes_the_fence() {
    for server in servers() {
        let database = Database::make(server).await;
        database.run(&["CREATE TABLE t (id bigint AUTO_INCREMENT PRIMARY KEY, at datetime)"]).await;
        let source = database.source().await;
        let name = unique("xa").replace(' ', "-");
        let mut client = database.client().await;
        for statement in [
            format!("XA START '{name}'"),
            "INSERT INTO t (at) VALUES (now())".to_owned(),
            format!("XA END '{name}'"),
            format!("XA PREPARE '{name}'"),
        ] {
            client.query_drop(statement).await.unwrap();
        }
        client.disconnect().await.unwrap();
        let mut held = vec![];
        for purpose in BOTH {
            held.push(source.clock(&request(&database, purpose.clone(), FenceMode::Auto)).await);
            held.push(source.clock(&request(&database, purpose, FenceMode::Require)).await);
        }
        // Before anything is looked at: nobody else may be left with it.
        let mut client = database.client().await;
        client.query_drop(format!("XA ROLLBACK '{name}'")).await.unwrap();
        for pair in held.chunks(2) {
            let reading = pair[0].as_ref().unwrap();
            assert_eq!(reading.fence, Fence::Closed, "{server:?}");
            let notice = reading.notices.iter().find(|it| it.code == NoticeCode::FenceClosed);
            assert!(notice.unwrap().message.contains("prepared"), "{notice:?}");
            assert_eq!(pair[1].as_ref().err().unwrap().kind(), ErrorKind::Unavailable);
        }
        for purpose in BOTH {
            let reading = source.clock(&request(&database, purpose, FenceMode::Auto)).await;
            assert_ne!(reading.unwrap().fence, Fence::Closed, "{server:?}");
        }
        database.drop_now().await;
    }
}

#[tokio::test]
async fn a_user_without_the_privilege_is_told_once_and_refused_where_it_must_hold() {
    for server in servers() {
        let database = Database::make(server).await;
        database.run(&["CREATE TABLE t (id bigint PRIMARY KEY, at datetime)"]).await;
        let user = unique("t").replace(' ', "_").chars().take(30).collect::<String>();
        let mut admin = server.client(None).await;
        for statement in [
            format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'Secret-42'"),
            format!("GRANT SELECT ON `{}`.* TO '{user}'@'%'", database.name),
        ] {
            admin.query_drop(statement).await.unwrap();
        }
        let info = serde_json::json!({"username": user, "password": "Secret-42"});
        let source = server.0.source(&database.info_with(info)).await.unwrap();
        for purpose in BOTH {
            let auto = request(&database, purpose.clone(), FenceMode::Auto);
            let reading = source.clock(&auto).await.unwrap();
            let codes: Vec<_> = reading.notices.iter().map(|notice| notice.code).collect();
            assert_eq!((reading.fence, codes), (Fence::Open, vec![NoticeCode::FenceUnavailable]));
            let require = request(&database, purpose, FenceMode::Require);
            let error = source.clock(&require).await.err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(error.hint().unwrap().contains("PROCESS"), "{error:?}");
        }
        admin.query_drop(format!("DROP USER '{user}'@'%'")).await.unwrap();
        database.drop_now().await;
    }
}

/// A statement takes its stamp before its transaction is known.
#[tokio::test]
async fn a_running_statement_lowers_the_fence_and_a_reader_does_not() {
    for server in servers() {
        let database = Database::make(server).await;
        database.run(&["CREATE TABLE t (id bigint PRIMARY KEY, at datetime)"]).await;
        let source = database.source().await;
        let clock = || async {
            let request = request(&database, FencePurpose::Time, FenceMode::Auto);
            source.clock(&request).await.unwrap()
        };
        let started = clock().await.now;
        let mut client = database.client().await;
        let slow = tokio::spawn(async move {
            client.query_drop("INSERT INTO t SELECT 1, now() FROM (SELECT SLEEP(1.5)) AS s").await
        });
        tokio::time::sleep(Duration::from_millis(700)).await;
        let reading = clock().await;
        let Fence::Before(instant) = reading.fence else { panic!("{server:?}: {reading:?}") };
        assert!(instant < reading.now && instant > started - 60_000_000_000, "{reading:?}");
        let ends = started + 400_000_000;
        assert!(instant <= ends, "{server:?}: the fence lies after the statement's start");
        slow.await.unwrap().unwrap();
        database.drop_now().await;
    }
}

#[tokio::test]
async fn a_credential_of_the_other_family_is_told() {
    for server in servers() {
        let database = Database::make(server).await;
        let other = match server.0 {
            tidelake_mysql::Mysql::MySql => tidelake_mysql::Mysql::MariaDb,
            tidelake_mysql::Mysql::MariaDb => tidelake_mysql::Mysql::MySql,
        };
        let info = tidelake_model::CredentialInfo::new(database.info());
        let error = other.source(&info).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.hint().unwrap().contains("ds_type"), "{error:?}");
        database.drop_now().await;
    }
}
