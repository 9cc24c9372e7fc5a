//! The stub of Google's XML interface against fake-gcs-server, which others wrote
//! and which has the JSON interface: both must answer the same sequence of
//! conditions, ranges and listings alike.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Read, Write};
use std::net::TcpStream;

/// What a server said.
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// One request over HTTP/1.0, whose answer ends with the connection.
fn send(endpoint: &str, method: &str, target: &str, headers: &str, body: &[u8]) -> Answer {
    let host = endpoint.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {target} HTTP/1.0\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = vec![];
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let fields = lines.filter_map(|line| line.split_once(':'));
    let headers =
        fields.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect();
    Answer { status, headers, body: answer[end + 4..].to_vec() }
}

/// What both can be asked.
trait Server {
    /// Status, and the generation where it was written.
    fn put(&self, key: &str, content: &str, generation: Option<i64>) -> (u16, Option<i64>);
    fn get(&self, key: &str, range: &str) -> (u16, String);
    fn delete(&self, key: &str, generation: Option<i64>) -> u16;
    fn list(&self, prefix: &str) -> Vec<String>;
}

struct Xml {
    endpoint: String,
    bucket: String,
    token: String,
}

impl Xml {
    fn ask(&self, method: &str, target: &str, headers: &str, body: &[u8]) -> Answer {
        let headers = format!("Authorization: Bearer {}\r\n{headers}", self.token);
        let target = format!("/{}{target}", self.bucket);
        send(&self.endpoint, method, &target, &headers, body)
    }
}

fn condition(generation: Option<i64>) -> String {
    generation.map_or(String::new(), |number| format!("x-goog-if-generation-match: {number}\r\n"))
}

impl Server for Xml {
    fn put(&self, key: &str, content: &str, generation: Option<i64>) -> (u16, Option<i64>) {
        let target = format!("/{key}");
        let answer = self.ask("PUT", &target, &condition(generation), content.as_bytes());
        let written = answer.headers.get("x-goog-generation").map(|text| text.parse().unwrap());
        (answer.status, written)
    }

    fn get(&self, key: &str, range: &str) -> (u16, String) {
        let answer = self.ask("GET", &format!("/{key}"), range, b"");
        // What is told of an error is each interface's own.
        let body = if answer.status < 300 { answer.body } else { vec![] };
        (answer.status, String::from_utf8(body).unwrap())
    }

    fn delete(&self, key: &str, generation: Option<i64>) -> u16 {
        self.ask("DELETE", &format!("/{key}"), &condition(generation), b"").status
    }

    fn list(&self, prefix: &str) -> Vec<String> {
        let answer = self.ask("GET", &format!("?list-type=2&prefix={prefix}"), "", b"");
        let text = String::from_utf8(answer.body).unwrap();
        let keys = text.split("<Key>").skip(1);
        keys.map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
    }
}

struct Json {
    endpoint: String,
    bucket: String,
}

fn parameter(generation: Option<i64>) -> String {
    generation.map_or(String::new(), |number| format!("&ifGenerationMatch={number}"))
}

impl Server for Json {
    fn put(&self, key: &str, content: &str, generation: Option<i64>) -> (u16, Option<i64>) {
        // Of its ways to write, this one keeps conditions.
        let condition = parameter(generation);
        let target =
            format!("/upload/storage/v1/b/{}/o?uploadType=multipart{condition}", self.bucket);
        let kind = "Content-Type: multipart/related; boundary=cut\r\n";
        let body = format!(
            "--cut\r\nContent-Type: application/json\r\n\r\n{{\"name\": \"{key}\"}}\r\n\
             --cut\r\nContent-Type: application/octet-stream\r\n\r\n{content}\r\n--cut--\r\n"
        );
        let answer = send(&self.endpoint, "POST", &target, kind, body.as_bytes());
        let told: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let written = told["generation"].as_str().map(|text| text.parse().unwrap());
        (answer.status, written)
    }

    fn get(&self, key: &str, range: &str) -> (u16, String) {
        let key = key.replace('/', "%2F");
        let target = format!("/storage/v1/b/{}/o/{key}?alt=media", self.bucket);
        let answer = send(&self.endpoint, "GET", &target, range, b"");
        let body = if answer.status < 300 { answer.body } else { vec![] };
        (answer.status, String::from_utf8(body).unwrap())
    }

    fn delete(&self, key: &str, generation: Option<i64>) -> u16 {
        let key = key.replace('/', "%2F");
        let query = parameter(generation).replacen('&', "?", 1);
        let target = format!("/storage/v1/b/{}/o/{key}{query}", self.bucket);
        let status = send(&self.endpoint, "DELETE", &target, "", b"").status;
        // The one says so with 204, the other with 200; both are documented.
        if status == 200 { 204 } else { status }
    }

    fn list(&self, prefix: &str) -> Vec<String> {
        let target = format!("/storage/v1/b/{}/o?prefix={prefix}", self.bucket);
        let answer = send(&self.endpoint, "GET", &target, "", b"");
        let told: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        let items = told["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// Everything that a server answers to the sequence.
fn answers(server: &dyn Server, base: &str) -> Vec<String> {
    let mut said = vec![];
    let key = |name: &str| format!("{base}/{name}");
    let mut tell =
        |what: &str, answer: &dyn std::fmt::Debug| said.push(format!("{what}: {answer:?}"));
    let latest = key("latest.json");
    tell("get what is not there", &server.get(&latest, ""));
    tell("replace what is not there", &server.put(&latest, "0", Some(17)).0);
    let (created, first) = server.put(&latest, "one", Some(0));
    tell("create", &(created, first.is_some()));
    tell("create again", &server.put(&latest, "two", Some(0)).0);
    tell("it is", &server.get(&latest, ""));
    let (replaced, second) = server.put(&latest, "two!", first);
    tell("replace", &(replaced, second > first));
    tell("replace the replaced", &server.put(&latest, "three", first).0);
    tell("it is", &server.get(&latest, ""));
    tell("overwrite", &server.put(&latest, "0123456789", None).0);
    tell("replace the overwritten", &server.put(&latest, "four", second).0);
    for range in ["2-4", "0-0", "7-", "-3", "5-100", "10-12"] {
        tell(range, &server.get(&latest, &format!("Range: bytes={range}\r\n")));
    }
    for name in ["a", "b/c", "b2"] {
        tell(name, &server.put(&key(name), name, Some(0)).0);
    }
    let names = |prefix: &str| -> Vec<String> {
        let found = server.list(prefix).into_iter();
        found.map(|name| name.trim_start_matches(base).to_owned()).collect()
    };
    tell("list all", &names(&key("")));
    tell("list a folder", &names(&key("b/")));
    tell("list nothing", &names(&key("z")));
    tell("delete", &server.delete(&latest, None));
    tell("delete again", &server.delete(&latest, None));
    tell("create after a delete", &server.put(&latest, "new", Some(0)).0);
    tell("it is", &server.get(&latest, ""));
    said
}

#[test]
fn the_stub_answers_as_another_server_does() {
    let variable = |name: &str| {
        let name = format!("TIDELAKE_TEST_GCS_{name}");
        let value = env::var(&name).ok();
        let required = env::var("TIDELAKE_TEST_REQUIRE_SERVERS").as_deref() == Ok("1");
        assert!(value.is_some() || !required, "{name} is not set");
        if value.is_none() {
            println!("not run: {name} is not set");
        }
        value
    };
    let (Some(endpoint), Some(json)) = (variable("ENDPOINT"), variable("JSON_ENDPOINT")) else {
        return;
    };
    let bucket = variable("BUCKET").unwrap();
    let base = format!("cross-{:x}", RandomState::new().build_hasher().finish());
    let made = send(
        &json,
        "POST",
        "/storage/v1/b?project=test",
        "Content-Type: application/json\r\n",
        format!("{{\"name\": \"{base}\"}}").as_bytes(),
    );
    assert_eq!(made.status, 200);
    let stub = Xml { endpoint, bucket, token: variable("TOKEN").unwrap() };
    let other = Json { endpoint: json, bucket: base.clone() };
    let (ours, theirs) = (answers(&stub, &base), answers(&other, &base));
    assert!(ours.len() > 20, "{ours:?}");
    assert_eq!(ours, theirs);
}
