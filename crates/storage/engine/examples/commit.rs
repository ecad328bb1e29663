//! Writes one's own transactions into a binary log that mysqld's tools read: compressed, durable, in ten lines.
//!
//! usage: cargo run --package binlogz-engine --example commit -- DIR

use std::sync::Arc;

use binlogz_engine::{Engine, EngineOptions, VariableValue};
use binlogz_store::FileStorage;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: commit DIR")?;
    let server_uuid = "1410447f-e54d-11f1-848d-02fc00000001".parse()?;
    let storage = Arc::new(FileStorage::open(directory.as_ref())?);
    let (engine, recovered) = Engine::open(storage, EngineOptions::new(server_uuid, 1))?;
    engine.set_global("binlog_transaction_compression", VariableValue::Text("ON"))?;
    let mut session = engine.session();
    session.begin()?;
    session.statement("shop", "INSERT INTO item VALUES (1, 'one')")?;
    session.statement("shop", "INSERT INTO item VALUES (2, 'two')")?;
    let committed = session.commit()?;
    println!("{recovered}; committed {committed:?}");
    Ok(engine.close()?)
}
