//! Answers commands: done, refused, a line, or rows.

use binlogz_binlog::put::PutFields;

use super::{COLLATION, ReplicaSession};
use crate::error::ServerError;
use crate::packet::PACKET_HEADER_SIZE;
use crate::response::{EofPacket, ErrPacket, OkPacket};
use crate::result_set::{ResultColumn, ResultKind, ResultRow, encode_row};

/// Collation of numbers: binary.
const COLLATION_BINARY: u16 = 63;

/// A column of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyColumn<'a> {
    /// The column's name.
    pub name: &'a str,
    /// The kind of its values.
    pub kind: ResultKind,
}

impl ReplicaSession {
    /// Answers "done".
    pub fn ok(&mut self) {
        self.out.message(|out| OkPacket { status: self.status, ..OkPacket::default() }.encode(out));
    }

    /// Answers "done", with warnings that the client may ask for.
    pub fn ok_with_warnings(&mut self, warnings: u16) {
        self.out.message(|out| OkPacket { status: self.status, warnings, ..OkPacket::default() }.encode(out));
    }

    /// Answers "done" where the protocol has the end of rows for it: [`Request::SetOption`](super::ReplicaRequest::SetOption).
    pub fn end_of_rows(&mut self) {
        self.end_of_rows_with_warnings(0);
    }

    /// Ends rows, with warnings that the client may ask for.
    pub fn end_of_rows_with_warnings(&mut self, warnings: u16) {
        let eof = EofPacket { warnings, status: self.status };
        self.out.message(|out| eof.encode(out));
    }

    /// Answers with an error.
    pub fn refuse(&mut self, error: &ServerError) {
        let packet =
            ErrPacket { code: error.code, sqlstate: error.sqlstate, message: error.message.as_bytes() };
        self.out.message(|out| packet.encode(out));
    }

    /// Answers a login with an error, in the place of its pending answer, so that nothing tells whether the proof was right.
    pub fn refuse_login(&mut self, error: &ServerError) {
        // Right and wrong proofs have answers of different numbers of packets: this one has the number of the first.
        let sequence = self.out.pending().get(PACKET_HEADER_SIZE - 1).copied();
        self.out.sent(self.out.pending().len());
        if let Some(sequence) = sequence {
            self.out.set_sequence(sequence);
        }
        self.refuse(error);
    }

    /// Answers [`Request::Statistics`](super::ReplicaRequest::Statistics) with a single line.
    pub fn line(&mut self, text: &str) {
        self.out.message(|out| out.put(text.as_bytes()));
    }

    /// Sends a message that the caller has encoded: a part of an answer that is sent as it comes.
    pub fn pass_on(&mut self, message: &[u8]) {
        self.out.message(|out| out.put(message));
    }

    /// Answers a query with rows.
    pub fn rows(&mut self, columns: &[ReplyColumn<'_>], rows: &[ResultRow]) {
        self.out.message(|out| out.put_lei(columns.len() as u64));
        for column in columns {
            let ResultKind { column_type, flags, decimals } = column.kind;
            let (collation, length) = match column.kind.is_text() {
                true => (u16::from(COLLATION), 4096),
                false => (COLLATION_BINARY, 21),
            };
            let definition = ResultColumn {
                name: column.name.as_bytes(),
                collation,
                length,
                column_type,
                flags,
                decimals,
                ..ResultColumn::default()
            };
            self.out.message(|out| definition.encode(out));
        }
        let eof = EofPacket { warnings: 0, status: self.status };
        self.out.message(|out| eof.encode(out));
        for row in rows {
            self.out.message(|out| encode_row(row, out));
        }
        self.out.message(|out| eof.encode(out));
    }
}
