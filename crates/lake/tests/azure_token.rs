//! An application that logs in to Azure with a secret: no emulator gives out tokens
//! over plain HTTP, so a stub of a few lines stands for both services.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use tidelake_lake::{AzureLogin, AzureSettings, Storage, azure};
use tidelake_model::{ErrorKind, Secret};

const TOKEN: &str = "a-token-of-an-hour";

/// The requests of a service that gives out a token and shows one blob for it.
fn serve() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(vec![]));
    let seen = Arc::clone(&requests);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let request = read(&mut stream);
            let answer = answer(&request);
            seen.lock().unwrap().push(request);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (address, requests)
}

fn read(stream: &mut TcpStream) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut buffer).unwrap();
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.to_lowercase();
        let length = length.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        if body.len() >= length.map_or(0, |text| text.trim().parse().unwrap()) {
            return text;
        }
    }
}

fn answer(request: &str) -> String {
    let told = |status: &str, headers: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
    };
    if request.starts_with("POST /a-tenant/oauth2/v2.0/token ") {
        let json = "Content-Type: application/json\r\n";
        if request.contains("client_secret=right") && request.contains("client_id=an-application") {
            let body = format!("{{\"access_token\": \"{TOKEN}\", \"expires_in\": 3600}}");
            return told("200 OK", json, &body);
        }
        let body = "{\"error\": \"invalid_client\", \"error_description\": \
                    \"AADSTS7000215: Invalid client secret provided. Trace ID: 1\"}";
        return told("401 Unauthorized", json, body);
    }
    if request.to_lowercase().contains(&format!("\r\nauthorization: bearer {TOKEN}\r\n")) {
        let headers = "ETag: \"1\"\r\nLast-Modified: Mon, 30 Nov 2026 09:15:00 GMT\r\n";
        return told("200 OK", headers, "hello");
    }
    told("403 Forbidden", "", "<Error><Code>AuthenticationFailed</Code></Error>")
}

fn storage(address: &str, secret: &str) -> Arc<dyn Storage> {
    azure(AzureSettings {
        account: "acc".to_owned(),
        container: "lake".to_owned(),
        prefix: "raw".to_owned(),
        suffix: None,
        endpoint: Some(address.to_owned()),
        login: AzureLogin::ServicePrincipal {
            client_id: "an-application".to_owned(),
            tenant_id: "a-tenant".to_owned(),
            client_secret: Secret::new(secret),
            authority: Some(address.to_owned()),
        },
    })
    .unwrap()
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_shown() {
    let (address, requests) = serve();
    let storage = storage(&address, "right");
    for _ in 0..2 {
        let (bytes, _) = storage.get("t/a").await.unwrap().unwrap();
        assert_eq!(bytes, "hello");
    }
    let requests = requests.lock().unwrap();
    let first = |request: &String| request.lines().next().unwrap().to_owned();
    let lines: Vec<_> = requests.iter().map(first).collect();
    let blob = "GET /acc/lake/raw/t/a HTTP/1.1";
    assert_eq!(lines, ["POST /a-tenant/oauth2/v2.0/token HTTP/1.1", blob, blob]);
    assert!(requests[0].contains("scope=https%3A%2F%2Fstorage.azure.com%2F.default"));
}

#[tokio::test]
async fn a_secret_that_is_wrong_is_told_and_not_repeated() {
    let (address, _) = serve();
    let error = storage(&address, "hunter2").get("t/a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(error.message().contains("the login was refused: invalid_client (AADSTS7000215)"));
    assert!(error.hint().unwrap().contains("azure_client_secret"), "{error:?}");
    assert!(!format!("{error:?} {}", error.chain()).contains("hunter2"), "{error:?}");
}
