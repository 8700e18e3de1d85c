//! Counts requests between a client and a registry.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Listens until the process ends.
pub struct Counter {
    /// `127.0.0.1:<port>`.
    pub address: String,
    requests: Arc<AtomicUsize>,
}

impl Counter {
    /// Hands everything on to the registry at `address`.
    pub fn before(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let counter = Self { address: listener.local_addr().unwrap().to_string(), requests: Arc::default() };
        let (to, requests) = (address.to_owned(), Arc::clone(&counter.requests));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&to).unwrap());
                let (back, forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let requests = Arc::clone(&requests);
                thread::spawn(move || {
                    pipe(forth, server, |end| {
                        requests.fetch_add(end, Ordering::SeqCst);
                    })
                });
                thread::spawn(move || pipe(back, client, |_| ()));
            }
        });
        counter
    }

    /// How many requests came in while this ran, and what it gave.
    pub fn during<T>(&self, ask: impl FnOnce() -> T) -> (usize, T) {
        let before = self.requests.load(Ordering::SeqCst);
        let answer = ask();
        (self.requests.load(Ordering::SeqCst) - before, answer)
    }
}

/// Copies, and tells of ends of heads. Readers send no bodies, so each head is a request.
fn pipe(mut from: TcpStream, mut to: TcpStream, heads: impl Fn(usize)) {
    const END: [u8; 4] = *b"\r\n\r\n";
    let (mut buffer, mut matched) = ([0; 16 << 10], 0);
    // A connection that breaks is the peer's to notice.
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let mut ends = 0;
        for byte in &buffer[..n] {
            matched = if *byte == END[matched] { matched + 1 } else { usize::from(*byte == END[0]) };
            if matched == END.len() {
                (matched, ends) = (0, ends + 1);
            }
        }
        heads(ends);
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
