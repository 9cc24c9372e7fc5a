//! Side B's command lines with targets in other clouds, word for word but for the
//! program's name, and the ways to log in to them.

use serde_json::json;

use crate::bench::{Bench, Report};
use crate::corner::Cloud;
use crate::proxy::{Action, Answer};
use crate::terminal::{Desk, file, server};

const EVENTS: &str = "
    CREATE TABLE page_views (view_id bigserial PRIMARY KEY, event_time timestamp NOT NULL, url text);
    CREATE TABLE clicks (click_id bigserial PRIMARY KEY, event_time timestamptz NOT NULL, target text);
    CREATE TABLE regions (name text PRIMARY KEY);
    INSERT INTO page_views (event_time, url)
        SELECT now() - i * interval '1 min', '/p/' || i FROM generate_series(60, 400) AS i;
    INSERT INTO clicks (event_time, target)
        SELECT now() - i * interval '1 min', 'button ' || i FROM generate_series(60, 300) AS i;
    INSERT INTO regions VALUES ('north'), ('south');
    ANALYZE;
";

/// The example with that id as its target.
fn event_streams(cloud: Cloud, id: &str) {
    let Some(mut bench) = Bench::new(EVENTS) else { return };
    bench.credential("lxdb_sqlite", file(&bench.desk.path("lxdb.db")));
    bench.credential("source_postgres", bench.database.credential());
    let Some((credential, lake)) = cloud.lake(&bench.prefix, None) else { return };
    bench.credential(id, credential);
    bench.lake = lake;
    let created = bench.desk.must(&format!(
        "config create -a credentials.json --lxdb_auth_id lxdb_sqlite \
         --source_db_auth_id source_postgres --source_schema_name public \
         --fastbcp_dir_path ./FastBCP_linux-x64/latest/ \
         --target_storage_id {id} --sub_path production/events \
         --incremental_table public.page_views:event_time:datetime \
         --incremental_table public.clicks:event_time:datetime \
         --incremental_safety_lag 300 --generate_metadata --n_jobs 8 --fastbcp_p 4",
    ));
    let line = format!(
        "sync -a credentials.json --lxdb_auth_id lxdb_sqlite --sync_id {} --output json",
        created.trim()
    );
    let sync = || {
        let answer = bench.desk.run(&line);
        let report = Report::of(answer.code, &answer.stdout, answer.stderr);
        assert_eq!(report.code, 0, "{report:?}");
        for table in ["page_views", "clicks"] {
            let condition = "event_time <= now() - interval '5 min'";
            bench.same_in(&format!("production/events/public/{table}"), "public", table, condition);
        }
        bench.same_in("production/events/public/regions", "public", "regions", "true");
        report
    };
    let first = sync();
    assert_eq!([first.rows("page_views"), first.rows("clicks")], [341, 241]);
    let second = sync();
    assert_eq!([second.rows("page_views"), second.rows("clicks")], [0, 0]);
    bench.database.run(
        "INSERT INTO page_views (event_time, url) VALUES (now() - interval '6 min', 'late');
         INSERT INTO clicks (event_time, target) VALUES (now(), 'too new');
         DELETE FROM regions WHERE name = 'north'",
    );
    let third = sync();
    assert_eq!([third.rows("page_views"), third.rows("clicks")], [1, 0], "{third:?}");
    let manifest =
        bench.reader.document(&bench.lake, "production/events/public", "manifest.cdm.json");
    assert_eq!(manifest["entities"].as_array().unwrap().len(), 3, "{manifest}");
}

#[test]
fn side_b_to_azure_01() {
    event_streams(Cloud::Azure, "azure_01");
}

#[test]
fn side_b_to_gcs_01() {
    event_streams(Cloud::Gcs, "gcs_01");
}

/// Each way to log in to Azure that an emulator knows.
#[test]
fn azure_takes_keys_signatures_and_connection_strings() {
    let Some(endpoint) = server("TIDELAKE_TEST_AZURE_ENDPOINT") else { return };
    let setting = |name: &str| server(&format!("TIDELAKE_TEST_AZURE_{name}")).unwrap();
    let (account, container, key) = (setting("ACCOUNT"), setting("CONTAINER"), setting("KEY"));
    let desk = Desk::new();
    let logins = [
        ("account_key", json!({"account": account, "account_key": key, "endpoint_url": endpoint})),
        ("sas", json!({"account": account, "sas": setting("SAS"), "endpoint_url": endpoint})),
        (
            "sas",
            json!({"account": account, "sas": format!("?{}", setting("SAS")),
                   "endpoint_url": endpoint}),
        ),
        (
            "connection_string",
            json!({"connection_string": format!(
                "DefaultEndpointsProtocol=http;AccountName={account};AccountKey={key};\
                 BlobEndpoint={endpoint};"
            )}),
        ),
        (
            "connection_string",
            json!({"connection_string": format!(
                "BlobEndpoint={endpoint};SharedAccessSignature={}", setting("SAS")
            )}),
        ),
    ];
    for (number, (mode, mut info)) in logins.into_iter().enumerate() {
        info["directory"] = format!("abs://{container}/login-{}", ulid::Ulid::new()).into();
        desk.credentials(&json!({
            "shop": file(&desk.path("shop.db")),
            "lake": {"ds_type": "azure", "auth_mode": mode, "info": info},
        }));
        desk.must(&format!(
            "config create -a credentials.json --source-db-auth-id shop --target-storage-id lake \
             --sync-id login-{number}"
        ));
        let said =
            desk.must(&format!("sync -a credentials.json --sync-id login-{number} --output json"));
        assert!(said.contains("\"completed\""), "{mode}: {said}");
    }
}

/// Whatever goes wrong, and however much is told of it: no key, no signature.
#[test]
fn no_secret_of_a_store_is_ever_told() {
    let sas = "sv=2020-12-06&sr=c&sp=racwdl&sig=aHVudGVyMg%3D%3D";
    let secrets = ["aHVudGVyMg", "hunter2"];
    // Nobody listens there; a server that answers with what it was asked; and one
    // that hangs up.
    let echoing = crate::proxy::Proxy::before("127.0.0.1:1");
    echoing.requests(|request| {
        let answer = Answer::error(403, "AuthenticationFailed", &request.target);
        Action::Answer(answer)
    });
    let breaking = crate::proxy::Proxy::before("127.0.0.1:1");
    breaking.connections(|_| Action::Refuse);
    for endpoint in ["http://127.0.0.1:1".to_owned(), echoing.url(), breaking.url()] {
        for (mode, key, value) in
            [("sas", "sas", sas), ("account_key", "account_key", "aHVudGVyMg==")]
        {
            let desk = Desk::new();
            let mut info = json!({"directory": "abs://lake/raw", "account": "acc",
                                  "endpoint_url": endpoint});
            info[key] = value.into();
            desk.credentials(&json!({
                "shop": file(&desk.path("shop.db")),
                "lake": {"ds_type": "azure", "auth_mode": mode, "info": info},
            }));
            let answer = desk.run(
                "config create -a credentials.json --source-db-auth-id shop \
                 --target-storage-id lake --log-level DEBUG --log-dir logs",
            );
            assert_eq!(answer.code, 1, "{}", answer.transcript());
            assert!(answer.stderr.contains("hint: "), "{}", answer.transcript());
            let mut told = answer.transcript().to_owned();
            for log in std::fs::read_dir(desk.path("logs")).unwrap() {
                told.push_str(&std::fs::read_to_string(log.unwrap().path()).unwrap());
            }
            for secret in secrets {
                assert!(!told.contains(secret), "{endpoint} {mode}: {told}");
            }
        }
    }
}
