//! What the fuzzer and the benchmarks look at; no part of the crate's interface.

use std::sync::Arc;

use tidelake_connector::BatchStream;
use tidelake_model::Result;

use crate::config::MysqlConfig;
use crate::failure::ServerError;
use crate::wire::{End, Greeting, PacketBuffer, Prepared, RowConnection, Switch, column, text_row};

pub use crate::decode::{DecodePlan, RowDecoder, Wire};

/// Cuts bytes that arrive in pieces into packets, and takes each for everything
/// that a server may send; returns how many there were.
pub fn packets<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> usize {
    let mut buffer = PacketBuffer::new();
    let mut count = 0;
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            let space = buffer.space();
            let (head, after) = rest.split_at(rest.len().min(space.len()));
            space.iter_mut().zip(head).for_each(|(to, from)| *to = *from);
            buffer.filled(head.len());
            rest = after;
            while let Ok(Some(packet)) = buffer.next() {
                count += 1;
                answers(buffer.body(packet));
            }
        }
    }
    count
}

fn answers(body: &[u8]) {
    let _ = (Greeting::parse(body), Switch::parse(body), Prepared::parse(body));
    let _ = (column(body), text_row(body), ServerError::parse(body));
    for is_ok in [false, true] {
        if End::is_one(body, is_ok) {
            let _ = End::parse(body, is_ok);
        }
    }
}

/// The rows of a statement, on a connection of its own.
pub async fn read(
    config: MysqlConfig,
    statement: &str,
    before: &[&str],
    plan: DecodePlan,
) -> Result<BatchStream> {
    let mut connection = RowConnection::connect(&Arc::new(config)).await?;
    for statement in before {
        connection.run(statement).await?;
    }
    connection.read(statement, plan, Box::new(drop)).await
}
