//! The proxy does to a connection what it is told, and nothing else.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::proxy::{Action, Answer, Proxy, Way};

/// A server that sends back what it gets, in capital letters, to the end.
fn shouting() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut text = String::new();
                let _ = stream.read_to_string(&mut text);
                let _ = stream.write_all(text.to_uppercase().as_bytes());
            });
        }
    });
    address
}

/// Sends a text and reads the answer to its end; `None` where it does not come.
fn ask(proxy: &Proxy, text: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    stream.write_all(text.as_bytes()).ok()?;
    stream.shutdown(std::net::Shutdown::Write).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn a_connection_is_passed_cut_stalled_slowed_or_refused() {
    let proxy = Proxy::before(&shouting());
    assert_eq!(ask(&proxy, "seaside").as_deref(), Some("SEASIDE"));
    proxy.connections(|number| match number {
        1 => Action::Cut(Way::ToServer, 2),
        2 => Action::Cut(Way::ToClient, 3),
        3 => Action::Cut(Way::ToClient, 0),
        4 => Action::Stall(Way::ToClient, 1),
        5 => Action::Slow(Way::ToClient, 10),
        6 => Action::Refuse,
        _ => Action::Pass,
    });
    assert_eq!(ask(&proxy, "seaside").unwrap_or_default(), "");
    assert_eq!(ask(&proxy, "seaside").as_deref(), Some("SEA"));
    assert_eq!(ask(&proxy, "seaside").as_deref(), Some(""));
    assert_eq!(ask(&proxy, "seaside"), None, "it is open and silent");
    let started = Instant::now();
    assert_eq!(ask(&proxy, "seaside").as_deref(), Some("SEASIDE"));
    assert!(started.elapsed() > Duration::from_millis(400));
    assert_eq!(ask(&proxy, "seaside").unwrap_or_default(), "");
    assert_eq!(ask(&proxy, "again").as_deref(), Some("AGAIN"));
    let counts = proxy.counts();
    assert_eq!((counts.connections, counts.cut, counts.stalled), (8, 3, 1));
    assert_eq!((counts.slowed, counts.refused, counts.answered), (1, 1, 0));
}

#[test]
fn a_connection_that_is_open_is_cut_when_asked() {
    let proxy = Proxy::before(&shouting());
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.write_all(b"sea").unwrap();
    while proxy.counts().to_server < 3 {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(proxy.cut_all(), 1);
    let mut answer = String::new();
    assert_eq!(stream.read_to_string(&mut answer).unwrap_or(0), 0);
    assert_eq!(proxy.cut_all(), 0);
}

#[test]
fn a_request_is_answered_by_the_proxy_or_by_the_server() {
    let proxy = Proxy::before(&shouting());
    proxy.requests(|request| match (request.number, request.method.as_str()) {
        (1, "PUT") => {
            assert_eq!((request.target.as_str(), request.length), ("/a?b=c", 4));
            Action::Answer(Answer::error(503, "SlowDown", "slow down").with("Retry-After: 1"))
        }
        _ => Action::Pass,
    });
    let request = "PUT /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody";
    let answer = ask(&proxy, request).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("Retry-After: 1\r\n") && answer.contains("SlowDown"), "{answer}");
    let answer = ask(&proxy, request).unwrap();
    assert!(answer.starts_with("PUT /A?B=C HTTP/1.1\r\nCONNECTION: CLOSE\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nBODY"), "{answer}");
    let counts = proxy.counts();
    assert_eq!((counts.requests, counts.answered), (2, 1));
}
