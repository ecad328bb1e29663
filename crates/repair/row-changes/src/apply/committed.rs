//! Finds the transactions that a session committed after a place in the server's binary log. The log tells it exactly: a
//! transaction is committed if and only if it stands there.

use std::io::{self, Read};

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_flow::Input;
use binlogz_flow::events::RunSummary;
use binlogz_source::ConnectOptions;

use super::server_logs::ServerLogs;
use super::session::ServerPosition;
use super::{ApplyError, NOTHING_YET};
use crate::choose::{Range, RowSelection};
use crate::pass::{
    ChoiceListener, FollowedTransaction, Follower, NoRows, Search, TransactionEnding, read_log,
};

/// The GTIDs of the transactions that this session committed, in order; `None` for those without.
pub(crate) fn committed(
    connect: &ConnectOptions,
    place: &ServerPosition,
) -> Result<Vec<Option<String>>, ApplyError> {
    let trouble = |error| ApplyError::server("asking for the binary log", error, NOTHING_YET);
    let logs = ServerLogs::open(connect, &place.log, place.position).map_err(trouble)?;
    let selection = RowSelection { thread_ids: vec![place.thread], ..RowSelection::default() };
    let search = Search::new(&selection, &NoRows, 1);
    let mut follower = Follower::new(FoundTexts(Vec::new()));
    let mut is_first = true;
    while let Some((_, mut reader)) = logs.next_log().map_err(trouble)? {
        let mut front = Vec::new();
        Read::by_ref(&mut reader).take(FRONT_SIZE as u64).read_to_end(&mut front)?;
        // The numbers of sessions begin anew with the server.
        if !std::mem::take(&mut is_first) && began_with_server(&front) {
            break;
        }
        let input = Input::Stream(Box::new(io::Cursor::new(front).chain(reader)));
        let whole = Range::WHOLE;
        // It asks for transactions, not for their changes.
        let (RunSummary { read: _, unread: _ }, _) =
            read_log(input, (&place.log, whole), &search, &mut follower, &mut |_| {})?;
    }
    Ok(follower.listener.0)
}

/// Magic, header, binlog version, server version.
const CREATED_OFFSET: usize = 4 + HEADER_SIZE + 2 + 50;
/// Bytes from the start of the log up to and including the time of the server's start.
const FRONT_SIZE: usize = CREATED_OFFSET + 4;

fn began_with_server(front: &[u8]) -> bool {
    front.get(CREATED_OFFSET..FRONT_SIZE).is_some_and(|created| created.iter().any(|byte| *byte != 0))
}

struct FoundTexts(Vec<Option<String>>);

impl ChoiceListener for FoundTexts {
    fn end(&mut self, transaction: &FollowedTransaction, ending: TransactionEnding) -> io::Result<()> {
        if ending == TransactionEnding::Whole {
            self.0.push(transaction.gtid.clone());
        }
        Ok(())
    }
}
