//! A web site's sessions in a table: made, touched by each request, swept. They are drawn from a seed of their own, [`super::SEED`] plus
//! its number.

use std::collections::VecDeque;
use std::io::{self, Write};

use super::words::skewed;
use crate::random::Random;

/// Sessions that live at once.
const LIVING: usize = 1500;
const AGENTS: [&str; 4] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/146.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.2 Mobile/15E148",
    "Mozilla/5.0 (X11; Linux x86_64; rv:148.0) Gecko/20100101 Firefox/148.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.1 Safari/605.1.15",
];

/// What a session has in its `data`.
struct Session {
    id: String,
    user: usize,
    cart: Vec<usize>,
    requests: usize,
}

/// Requests: each makes a session or touches one; the oldest ones are deleted, each by its key.
pub(super) fn sessions(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE web; CREATE TABLE web.session(id CHAR(32) CHARACTER SET ascii PRIMARY KEY, user INT, address VARBINARY(16), \
         agent VARCHAR(200), made TIMESTAMP NOT NULL, seen TIMESTAMP(6) NOT NULL, data BLOB, KEY (seen));"
    )?;
    let mut living: VecDeque<Session> = VecDeque::new();
    let mut microseconds = 0u64;
    for _ in 0..count {
        microseconds += random.below(900_000) as u64;
        let seconds = microseconds / 1_000_000;
        let now = format!(
            "2026-07-{:02} {:02}:{:02}:{:02}",
            1 + seconds / 86_400 % 28,
            seconds / 3600 % 24,
            seconds / 60 % 60,
            seconds % 60
        );
        let fraction = microseconds % 1_000_000;
        if living.is_empty() || random.below(5) == 0 {
            let id = format!("{:016x}{:016x}", random.bits(), random.bits());
            let session = Session { id, user: 0, cart: Vec::new(), requests: 1 };
            writeln!(
                out,
                "INSERT INTO web.session VALUES ('{}',NULL,0x{:08x},'{}','{now}','{now}.{fraction:06}','{}');",
                session.id,
                0x0a00_0000 + random.below(1 << 18),
                AGENTS[random.below(AGENTS.len())],
                session.data()
            )?;
            living.push_back(session);
        } else {
            let newest = living.len() - 1 - skewed(random, living.len());
            let session = &mut living[newest];
            session.requests += 1;
            match random.below(6) {
                0 if session.user == 0 => session.user = 1 + random.below(100_000),
                1 => session.cart.push(random.below(9000)),
                _ => {}
            }
            let user = if session.user == 0 { "NULL".to_owned() } else { session.user.to_string() };
            writeln!(
                out,
                "UPDATE web.session SET user={user}, seen='{now}.{fraction:06}', data='{}' WHERE id='{}';",
                session.data(),
                session.id
            )?;
        }
        if let Some(oldest) = (living.len() > LIVING).then(|| living.pop_front()).flatten() {
            writeln!(out, "DELETE FROM web.session WHERE id='{}';", oldest.id)?;
        }
    }
    Ok(())
}

impl Session {
    /// As PHP writes it.
    fn data(&self) -> String {
        let cart: String =
            self.cart.iter().enumerate().map(|(place, item)| format!("i:{place};i:{item};")).collect();
        format!(
            "user|i:{};csrf|s:16:\"{}\";requests|i:{};cart|a:{}:{{{cart}}}",
            self.user,
            &self.id[..16],
            self.requests,
            self.cart.len()
        )
    }
}
