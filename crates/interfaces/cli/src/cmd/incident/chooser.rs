//! Choosing a change of the list with the arrow keys, where a person sits at the terminal.
//!
//! The keys are read by `console`, which draws the progress bars.

use std::env;
use std::io::{self, IsTerminal};

use console::{Key, Term};

/// Lines that are shown at once, at most.
const LINES_MAX: usize = 10;
/// The marks before a line: of the chosen one, and of the others.
const MARKS: [&str; 2] = ["> ", "  "];
/// The width of that.
pub(super) const MARK_WIDTH: usize = 2;
const PROMPT: &str = "Show one? ↑ ↓ and Enter; Esc or q: no";
/// Ctrl-D, as a terminal sends it.
const END_OF_INPUT: char = '\u{4}';

/// Whether a person is there to choose: all streams are terminals, and no CI runs this.
pub(super) fn has_person() -> bool {
    let are_terminals = io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
    are_terminals && env::var_os("CI").is_none() && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Lets the person choose; `None`: none, or the terminal is gone.
pub(super) fn choose(lines: &[String]) -> Option<usize> {
    let term = Term::stderr();
    let height = usize::from(term.size().0).saturating_sub(2).clamp(1, LINES_MAX);
    let mut menu = LineMenu { lines, height, chosen: 0, first: 0 };
    loop {
        menu.draw(&term).ok()?;
        let key = term.read_key();
        term.clear_last_lines(menu.drawn() + 1).ok()?;
        match menu.take(&key.ok()?) {
            MenuAnswer::Open => {}
            MenuAnswer::Chosen(place) => return Some(place),
            MenuAnswer::Nothing => return None,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum MenuAnswer {
    /// The next key decides.
    Open,
    Chosen(usize),
    Nothing,
}

/// The lines, one of which is chosen, and those of them that are shown.
struct LineMenu<'l> {
    lines: &'l [String],
    height: usize,
    chosen: usize,
    first: usize,
}

impl LineMenu<'_> {
    fn drawn(&self) -> usize {
        self.height.min(self.lines.len())
    }

    fn draw(&self, term: &Term) -> io::Result<()> {
        term.write_line(PROMPT)?;
        for (place, line) in self.lines.iter().enumerate().skip(self.first).take(self.height) {
            let [of_chosen, of_other] = MARKS;
            let mark = if place == self.chosen { of_chosen } else { of_other };
            term.write_line(&format!("{mark}{line}"))?;
        }
        Ok(())
    }

    fn take(&mut self, key: &Key) -> MenuAnswer {
        let last = self.lines.len().saturating_sub(1);
        self.chosen = match key {
            Key::ArrowUp | Key::Char('k') => self.chosen.saturating_sub(1),
            Key::ArrowDown | Key::Char('j') => (self.chosen + 1).min(last),
            Key::PageUp => self.chosen.saturating_sub(self.height),
            Key::PageDown => (self.chosen + self.height).min(last),
            Key::Home => 0,
            Key::End => last,
            Key::Enter => return MenuAnswer::Chosen(self.chosen),
            Key::Escape | Key::CtrlC | Key::Char('q' | END_OF_INPUT) => return MenuAnswer::Nothing,
            // What else a terminal sends.
            _ => self.chosen,
        };
        let lowest_first = (self.chosen + 1).saturating_sub(self.height);
        self.first = self.first.clamp(lowest_first, self.chosen.max(lowest_first));
        MenuAnswer::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_move_through_the_lines() {
        let lines: Vec<String> = (0..25).map(|number| number.to_string()).collect();
        let mut menu = LineMenu { lines: &lines, height: 10, chosen: 0, first: 0 };
        for (key, chosen, first) in [
            (Key::ArrowUp, 0, 0),
            (Key::ArrowDown, 1, 0),
            (Key::PageDown, 11, 2),
            (Key::End, 24, 15),
            (Key::ArrowDown, 24, 15),
            (Key::PageUp, 14, 14),
            (Key::Char('x'), 14, 14),
            (Key::Home, 0, 0),
            (Key::Char('j'), 1, 0),
        ] {
            assert_eq!(menu.take(&key), MenuAnswer::Open);
            assert_eq!((menu.chosen, menu.first), (chosen, first), "{key:?}");
        }
        assert_eq!(menu.take(&Key::Enter), MenuAnswer::Chosen(1));
        for key in [Key::Escape, Key::Char('q'), Key::Char(END_OF_INPUT)] {
            assert_eq!(menu.take(&key), MenuAnswer::Nothing, "{key:?}");
        }
    }
}
