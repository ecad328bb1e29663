//! A worker's answers as packets; `worker` has their table.

use binlogz_query_server::{Blame, StatementRefusal};
use binlogz_wire::session::ReplicaSession;
use bytes::{Buf, Bytes};

/// Messages, each after its size of 4 bytes. They come from a process of our own: what isn't whole is left out.
pub(super) fn messages(bytes: &Bytes) -> impl Iterator<Item = &[u8]> {
    let mut rest: &[u8] = bytes;
    std::iter::from_fn(move || {
        let (size, after) = rest.split_first_chunk()?;
        let (message, after) = after.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        rest = after;
        Some(message)
    })
}

/// A list.
pub(super) struct ListingAnswer {
    columns: usize,
    messages: Bytes,
}

impl ListingAnswer {
    /// `None`: the statement asks for something else.
    pub(super) fn of(plan: &Bytes) -> Option<Self> {
        let mut plan = plan.clone();
        if plan.try_get_u8().ok()? != 1 {
            return None;
        }
        let columns = plan.try_get_u32_le().ok()? as usize;
        Some(ListingAnswer { columns, messages: plan })
    }

    pub(super) fn send(&self, session: &mut ReplicaSession) {
        for (place, message) in messages(&self.messages).enumerate() {
            session.pass_on(message);
            // After the number of columns and their definitions.
            if place == self.columns {
                session.end_of_rows();
            }
        }
        session.end_of_rows();
    }
}

/// The answer to a client that prepares a statement.
pub(super) struct PreparedAnswer {
    pub(super) parameters: u16,
    pub(super) columns: u16,
    messages: Bytes,
}

impl PreparedAnswer {
    pub(super) fn of(mut plan: Bytes) -> Result<Self, StatementRefusal> {
        let counts = plan.try_get_u16_le().and_then(|parameters| Ok((parameters, plan.try_get_u16_le()?)));
        let (parameters, columns) =
            counts.map_err(|_| StatementRefusal::new(Blame::Program, "a worker's answer ends early"))?;
        Ok(PreparedAnswer { parameters, columns, messages: plan })
    }

    /// Sends the definitions of parameters and of columns, with an end after each.
    pub(super) fn send(&self, session: &mut ReplicaSession) {
        let parameters = usize::from(self.parameters);
        for (place, message) in messages(&self.messages).enumerate() {
            session.pass_on(message);
            if place + 1 == parameters {
                session.end_of_rows();
            }
        }
        if self.columns > 0 {
            session.end_of_rows();
        }
    }
}

#[cfg(test)]
mod tests {
    use binlogz_query_server::sized;

    use super::*;
    use crate::session::put_message;

    #[test]
    fn messages_come_back_and_a_cut_one_is_left_out() {
        let mut bytes = Vec::new();
        for message in [b"one".as_slice(), b"", b"three"] {
            put_message(&mut bytes, |out| out.extend_from_slice(message));
        }
        let whole = Bytes::from(bytes);
        assert_eq!(messages(&whole).collect::<Vec<_>>(), [b"one".as_slice(), b"", b"three"]);
        assert_eq!(messages(&whole.slice(..whole.len() - 1)).count(), 2);
        let mut sizes = whole;
        assert_eq!(sized(&mut sizes).unwrap().as_ref(), b"one");
    }
}
