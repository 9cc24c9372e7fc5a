//! A TCP proxy between the program and a server, which misbehaves on purpose.
//!
//! It decides for each connection ([`Proxy::connections`]), whatever is spoken on
//! it, or for each request ([`Proxy::requests`]), where that is HTTP. What it does
//! may be changed at any time, and it counts what it did.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

/// What becomes of a connection, or of a request.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Nothing is done to it.
    Pass,
    /// It is closed before a byte went through.
    Refuse,
    /// It is cut when so many bytes went that way. `Cut(ToClient, 0)` loses the
    /// answer to something that the server has done.
    Cut(Way, u64),
    /// So many bytes go that way, and then none, on a connection that stays open.
    Stall(Way, u64),
    /// So many bytes a second go that way.
    Slow(Way, u64),
    /// The proxy answers itself, and the server hears nothing of it. For requests.
    Answer(Answer),
    /// Heads of requests and answers go through as the function makes them. For
    /// requests.
    Edit(fn(Way, &str) -> String),
}

/// An answer of the proxy's own.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whole lines, such as `Retry-After: 1`.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

impl Answer {
    /// An answer without a body.
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: vec![], body: String::new() }
    }

    /// An error as S3 and its kin tell them.
    pub(crate) fn error(status: u16, code: &str, message: &str) -> Self {
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
             <Error><Code>{code}</Code><Message>{message}</Message></Error>"
        );
        Self { status, headers: vec!["Content-Type: application/xml".to_owned()], body }
    }

    /// The same with one more header.
    pub(crate) fn with(mut self, header: &str) -> Self {
        self.headers.push(header.to_owned());
        self
    }
}

/// What a request policy goes by.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Its number since the policy was set, from 1.
    pub(crate) number: u64,
    pub(crate) method: String,
    /// Path and query, as sent.
    pub(crate) target: String,
    /// Bytes of its body.
    pub(crate) length: u64,
}

/// What the proxy has done since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    pub(crate) cut: u64,
    pub(crate) stalled: u64,
    pub(crate) slowed: u64,
    pub(crate) answered: u64,
    pub(crate) to_server: u64,
    pub(crate) to_client: u64,
}

type OnConnection = Arc<dyn Fn(u64) -> Action + Send + Sync>;
type OnRequest = Arc<dyn Fn(&Request) -> Action + Send + Sync>;

#[derive(Clone)]
enum Policy {
    Connections(OnConnection),
    Requests(OnRequest),
}

struct Shared {
    server: SocketAddr,
    policy: Mutex<(Policy, u64)>,
    counts: Mutex<Counts>,
    /// Both ends of every open connection, by the port towards the server.
    open: Mutex<BTreeMap<u64, [TcpStream; 2]>>,
    closing: AtomicBool,
}

/// A proxy on a port of its own; everything is cut when it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    /// A proxy before `host:port`, or before the host of a URL, that passes all.
    pub(crate) fn before(server: &str) -> Self {
        let host = server.split_once("://").map_or(server, |(_, rest)| rest);
        let host = host.split('/').next().unwrap_or(host);
        let mut addresses = std::net::ToSocketAddrs::to_socket_addrs(host).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shared = Arc::new(Shared {
            server: addresses.next().unwrap(),
            policy: Mutex::new((Policy::Connections(Arc::new(|_| Action::Pass)), 0)),
            counts: Mutex::default(),
            open: Mutex::default(),
            closing: AtomicBool::new(false),
        });
        let proxy = Self { address: listener.local_addr().unwrap(), shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.closing.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.serve(client));
            }
        });
        proxy
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its address with `http://`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Decides for each connection from now on; they are numbered from 1.
    pub(crate) fn connections(&self, policy: impl Fn(u64) -> Action + Send + Sync + 'static) {
        *self.shared.policy.lock().unwrap() = (Policy::Connections(Arc::new(policy)), 0);
    }

    /// Decides for each HTTP request from now on, one to a connection.
    pub(crate) fn requests(&self, policy: impl Fn(&Request) -> Action + Send + Sync + 'static) {
        *self.shared.policy.lock().unwrap() = (Policy::Requests(Arc::new(policy)), 0);
    }

    /// Passes everything from now on.
    pub(crate) fn pass(&self) {
        self.connections(|_| Action::Pass);
    }

    /// Cuts every connection that is open, and says how many there were.
    pub(crate) fn cut_all(&self) -> u64 {
        let open = std::mem::take(&mut *self.shared.open.lock().unwrap());
        for stream in open.values().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let cut = u64::try_from(open.len()).unwrap();
        self.shared.count(|counts| counts.cut += cut);
        cut
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.shared.counts.lock().unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.cut_all();
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap());
    }

    fn serve(self: &Arc<Self>, client: TcpStream) {
        self.count(|counts| counts.connections += 1);
        let _ = client.set_nodelay(true);
        let (policy, number) = {
            let mut policy = self.policy.lock().unwrap();
            if matches!(policy.0, Policy::Connections(_)) {
                policy.1 += 1;
            }
            policy.clone()
        };
        match policy {
            Policy::Connections(decide) => self.act(client, decide(number), vec![]),
            Policy::Requests(_) => {
                let _ = self.serve_request(client);
            }
        }
    }

    /// Reads the head of one request; policy and number are those of its time, since
    /// a client opens connections before it needs them.
    fn serve_request(self: &Arc<Self>, mut client: TcpStream) -> io::Result<()> {
        let mut head = read_head(&mut client)?;
        let end = position(&head).unwrap_or(head.len());
        let text = String::from_utf8_lossy(&head[..end]).into_owned();
        let mut words = text.split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let length = header(&text, "content-length").and_then(|text| text.parse().ok());
        let length: u64 = length.unwrap_or(0);
        self.count(|counts| counts.requests += 1);
        let action = {
            let mut policy = self.policy.lock().unwrap();
            policy.1 += 1;
            let request = Request { number: policy.1, method: method.clone(), target, length };
            let decide = match &policy.0 {
                Policy::Requests(decide) => Arc::clone(decide),
                Policy::Connections(_) => Arc::new(|_: &Request| Action::Pass) as OnRequest,
            };
            drop(policy);
            decide(&request)
        };
        if let Action::Answer(answer) = action {
            self.count(|counts| counts.answered += 1);
            let body = u64::try_from(head.len() - end).unwrap();
            let rest = length.saturating_sub(body);
            io::copy(&mut (&mut client).take(rest), &mut io::sink())?;
            let Answer { status, headers, body } = answer;
            let more: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
            let length = body.len();
            let body = if method == "HEAD" { "" } else { &body };
            let text = format!(
                "HTTP/1.1 {status} Told\r\n{more}Content-Length: {length}\r\n\
                 Connection: close\r\n\r\n{body}"
            );
            client.write_all(text.as_bytes())?;
            return client.shutdown(Shutdown::Write);
        }
        // One request to a connection: the server closes it after its answer.
        let first = head.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        head.splice(first..first, *b"Connection: close\r\n");
        let own = find(&head, b"\nconnection: keep-alive\r\n");
        if let Some(at) = own {
            head.drain(at + 1..at + b"\nconnection: keep-alive\r\n".len());
        }
        if let Action::Edit(edit) = &action {
            let end = position(&head).unwrap_or(head.len());
            let edited = edit(Way::ToServer, &String::from_utf8_lossy(&head[..end]));
            head.splice(..end, edited.into_bytes());
        }
        self.act(client, action, head);
        Ok(())
    }

    /// Connects to the server, sends what was read already, and moves bytes.
    fn act(self: &Arc<Self>, client: TcpStream, action: Action, read: Vec<u8>) {
        match action {
            Action::Refuse | Action::Answer(_) => {
                self.count(|counts| counts.refused += 1);
                return;
            }
            Action::Slow(..) => self.count(|counts| counts.slowed += 1),
            _ => {}
        }
        let Ok(server) = TcpStream::connect(self.server) else { return };
        let _ = server.set_nodelay(true);
        let clone = |stream: &TcpStream| stream.try_clone().unwrap();
        let id = server.local_addr().map_or(0, |address| u64::from(address.port()));
        self.open.lock().unwrap().insert(id, [clone(&client), clone(&server)]);
        let (shared, there) = (Arc::clone(self), action.clone());
        let ends = [clone(&client), clone(&server)];
        let forth = thread::spawn(move || shared.pump(id, ends, Way::ToServer, &there, read));
        let mut first = vec![];
        if let Action::Edit(edit) = &action
            && let Ok(head) = read_head(&mut clone(&server))
        {
            let end = position(&head).unwrap_or(head.len());
            first = edit(Way::ToClient, &String::from_utf8_lossy(&head[..end])).into_bytes();
            first.extend_from_slice(&head[end..]);
        }
        self.pump(id, [server, client], Way::ToClient, &action, first);
        let _ = forth.join();
        self.open.lock().unwrap().remove(&id);
    }

    /// Moves the bytes of one way until an end, or until the action ends it.
    fn pump(&self, id: u64, [from, to]: [TcpStream; 2], way: Way, action: &Action, first: Vec<u8>) {
        let moved = self.move_bytes(id, [&from, &to], way, action, first);
        if matches!(moved, Ok(true)) {
            // The other way may still have an answer to bring.
            let _ = to.shutdown(Shutdown::Write);
            if way == Way::ToServer {
                return;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    /// Whether all went through.
    fn move_bytes(
        &self,
        id: u64,
        [mut from, mut to]: [&TcpStream; 2],
        way: Way,
        action: &Action,
        first: Vec<u8>,
    ) -> io::Result<bool> {
        let limit = match action {
            Action::Cut(of, after) | Action::Stall(of, after) if *of == way => Some(*after),
            _ => None,
        };
        let rate = match action {
            Action::Slow(of, rate) if *of == way => Some((*rate).max(10)),
            _ => None,
        };
        let (mut buffer, mut sent) = (vec![0; 64 << 10], 0u64);
        let mut pending = first;
        loop {
            if pending.is_empty() {
                match from.read(&mut buffer)? {
                    0 => return Ok(true),
                    read => pending.extend_from_slice(&buffer[..read]),
                }
            }
            let mut piece = u64::try_from(pending.len()).unwrap();
            if let Some(rate) = rate {
                piece = piece.min((rate / 10).max(1));
            }
            let last = limit.is_some_and(|limit| sent + piece >= limit);
            if let Some(limit) = limit {
                piece = piece.min(limit - sent);
            }
            let rest = pending.split_off(usize::try_from(piece).unwrap());
            to.write_all(&pending)?;
            pending = rest;
            sent += piece;
            self.count(|counts| match way {
                Way::ToServer => counts.to_server += piece,
                Way::ToClient => counts.to_client += piece,
            });
            if last {
                return self.end(id, from, action);
            }
            if rate.is_some() {
                thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// What comes when the bytes of an action are used up.
    fn end(&self, id: u64, mut from: &TcpStream, action: &Action) -> io::Result<bool> {
        if matches!(action, Action::Stall(..)) {
            self.count(|counts| counts.stalled += 1);
            // Swallows what comes, and stays open until `cut_all` or the end.
            io::copy(&mut from, &mut io::sink())?;
            while self.open.lock().unwrap().contains_key(&id) {
                thread::sleep(Duration::from_millis(20));
            }
        } else {
            self.count(|counts| counts.cut += 1);
        }
        Ok(false)
    }
}

/// The head of a request, and what came with it.
fn read_head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let (mut head, mut buffer) = (vec![], [0; 16 << 10]);
    while position(&head).is_none() {
        match client.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(head)
}

/// Where the body begins.
fn position(head: &[u8]) -> Option<usize> {
    find(head, b"\r\n\r\n").map(|at| at + 4)
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window.eq_ignore_ascii_case(part))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.split("\r\n").skip(1);
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
