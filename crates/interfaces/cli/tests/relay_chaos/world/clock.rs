//! This machine's clock jumps, and back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use binlogz_testkit::random::Random;

use super::{LIMIT, World, stored};

/// Longer than [`MAX_AGE`], and than anything that the relay waits for.
const JUMP_SECONDS: i64 = 3 * 24 * 3600;
/// How long the relay keeps files.
pub(crate) const MAX_AGE: &str = "max_age = \"2d\"";
/// `relay.ages` is written at least this often, and whenever a file is closed.
const WRITTEN_SECONDS: u64 = 120;

impl World<'_> {
    /// Forth or back by days.
    pub(super) fn jump(&mut self, random: &mut Random) {
        let sign = if random.below(2) == 0 { 1 } else { -1 };
        println!("{}: by {} s", self.now, sign * JUMP_SECONDS);
        self.faults.set_clock(sign * JUMP_SECONDS).unwrap();
    }

    /// Health tells of the jump, and no file goes. Once the clock is right again, that is told too, for an hour: the relay is
    /// started again.
    pub(super) fn jump_is_red(&mut self, random: &mut Random) {
        let before = stored::files(&self.kept());
        self.is_red_with("a clock has jumped", LIMIT);
        self.source.sql("FLUSH BINARY LOGS").unwrap();
        // Some rounds of retention.
        std::thread::sleep(Duration::from_secs(12));
        let after = stored::files(&self.kept());
        if let Some(gone) = before.iter().find(|file| !after.contains(file)) {
            self.wrong(&format!("a jump of the clock has purged {}", gone.display()));
        }
        self.faults.set_clock(0).unwrap();
        self.source.sql("FLUSH BINARY LOGS").unwrap();
        let ages = self.kept().join("relay.ages");
        let has_come_back = |_: &Self| {
            let text = std::fs::read_to_string(&ages).unwrap_or_default();
            let wall = text.lines().find_map(|line| line.strip_prefix("wall ")?.parse().ok());
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
            wall.is_some_and(|wall: u64| wall.abs_diff(now) < WRITTEN_SECONDS)
        };
        if !self.wait_until(has_come_back) {
            self.wrong("the relay has not seen the clock come back");
        }
        self.start_again(random);
    }
}
