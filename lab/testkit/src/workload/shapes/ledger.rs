//! Double-entry book-keeping, whose balances a trigger keeps. It draws from a seed of its own, [`super::SEED`] plus its number.

use std::io::{self, Write};

use super::words::{sentence, skewed};
use crate::random::Random;

const ACCOUNTS: usize = 2000;

/// Bookings of two to four entries that add up to nothing, a transaction each; a trigger changes the balance of each entry's account.
pub(super) fn ledger(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE ledger; USE ledger; \
         CREATE TABLE account(id INT PRIMARY KEY, code CHAR(8) NOT NULL, balance DECIMAL(18,2) NOT NULL DEFAULT 0, \
         entries INT NOT NULL DEFAULT 0, changed TIMESTAMP(3) NULL); \
         CREATE TABLE booking(id BIGINT PRIMARY KEY, booked TIMESTAMP(3) NOT NULL, reason VARCHAR(200) NOT NULL); \
         CREATE TABLE entry(booking BIGINT, line TINYINT, account INT NOT NULL, amount DECIMAL(14,2) NOT NULL, \
         PRIMARY KEY (booking, line), FOREIGN KEY (booking) REFERENCES booking (id), FOREIGN KEY (account) REFERENCES account (id)); \
         CREATE TRIGGER balance AFTER INSERT ON entry FOR EACH ROW UPDATE account SET balance = balance + NEW.amount, \
         entries = entries + 1, changed = (SELECT booked FROM booking WHERE id = NEW.booking) WHERE id = NEW.account;"
    )?;
    let accounts: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id},'{:08}')", id * 7919)).collect();
    writeln!(out, "INSERT INTO account (id, code) VALUES {};", accounts.join(","))?;
    let mut milliseconds = 0u64;
    for id in 1..=count {
        milliseconds += random.below(20_000) as u64;
        let words = 2 + random.below(5);
        let reason = sentence(random, words);
        writeln!(
            out,
            "BEGIN; INSERT INTO booking VALUES ({id},'2026-05-{:02} {:02}:{:02}:{:02}.{:03}','{reason}');",
            1 + milliseconds / 86_400_000 % 28,
            milliseconds / 3_600_000 % 24,
            milliseconds / 60_000 % 60,
            milliseconds / 1000 % 60,
            milliseconds % 1000
        )?;
        write!(out, "INSERT INTO entry VALUES ")?;
        let mut left = 0i64;
        let lines = 2 + skewed(random, 3);
        for line in 0..lines {
            let cents = if line + 1 == lines { -left } else { random.below(500_000) as i64 - 100_000 };
            left += cents;
            let comma = if line == 0 { "" } else { "," };
            let account = skewed(random, ACCOUNTS);
            let sign = if cents < 0 { "-" } else { "" };
            let cents = cents.unsigned_abs();
            write!(out, "{comma}({id},{line},{account},{sign}{}.{:02})", cents / 100, cents % 100)?;
        }
        writeln!(out, "; COMMIT;")?;
    }
    Ok(())
}
