//! SHOW VARIABLES.
//!
//! ```text
//! SHOW [GLOBAL | SESSION | LOCAL] VARIABLES [LIKE text | WHERE test [OR test …]]
//! test: Variable_name = text | Variable_name LIKE text | Variable_name IN (text, …)
//! ```

use super::token::Token;
use super::{Parser, Scope, is_like};

/// The variables that SHOW VARIABLES is to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownVariables {
    /// Which of their values.
    pub scope: Scope,
    /// Patterns for the names of the variables to show; empty: all variables.
    pub patterns: Vec<NamePattern>,
}

/// A test of a variable's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamePattern {
    /// The variable has this name, in any case.
    Is(String),
    /// The variable's name matches this pattern of LIKE.
    Like(String),
}

impl ShownVariables {
    /// Whether a variable of this name is to be shown.
    pub fn includes(&self, name: &str) -> bool {
        let matches = |pattern: &NamePattern| match pattern {
            NamePattern::Is(wanted) => wanted.eq_ignore_ascii_case(name),
            NamePattern::Like(pattern) => is_like(name, pattern),
        };
        self.patterns.is_empty() || self.patterns.iter().any(matches)
    }
}

impl Parser<'_> {
    /// Parses the words after SHOW VARIABLES.
    pub(super) fn shown_variables(&mut self, scope: Scope) -> Option<ShownVariables> {
        let mut shown = ShownVariables { scope, patterns: Vec::new() };
        if self.is_keyword("LIKE") {
            shown.patterns.push(NamePattern::Like(self.literal()?));
        } else if self.is_keyword("WHERE") {
            loop {
                self.name_test(&mut shown.patterns)?;
                if !self.is_keyword("OR") {
                    break;
                }
            }
        }
        Some(shown)
    }

    fn name_test(&mut self, patterns: &mut Vec<NamePattern>) -> Option<()> {
        let (first, rest) = self.tokens.split_first()?;
        // The column's name may be in backticks.
        let Token::Word(column, _) = &first.token else { return None };
        column.eq_ignore_ascii_case("variable_name").then_some(())?;
        self.tokens = rest;
        if self.symbol('=') {
            patterns.push(NamePattern::Is(self.literal()?));
        } else if self.is_keyword("LIKE") {
            patterns.push(NamePattern::Like(self.literal()?));
        } else {
            (self.is_keyword("IN") && self.symbol('(')).then_some(())?;
            loop {
                patterns.push(NamePattern::Is(self.literal()?));
                if self.symbol(')') {
                    break;
                }
                self.symbol(',').then_some(())?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Statement;

    #[test]
    fn variables_are_chosen_by_their_names() {
        let is = |name: &str| NamePattern::Is(name.into());
        let like = |pattern: &str| NamePattern::Like(pattern.into());
        for (text, scope, patterns) in [
            ("SHOW VARIABLES", Scope::Any, vec![]),
            ("show session variables like 'sql\\_mode'", Scope::Session, vec![like("sql_mode")]),
            ("SHOW GLOBAL VARIABLES WHERE Variable_name='server_id'", Scope::Global, vec![is("server_id")]),
            (
                "SHOW VARIABLES WHERE `variable_name` IN ('a', \"b\") OR Variable_name LIKE 'c%'",
                Scope::Any,
                vec![is("a"), is("b"), like("c%")],
            ),
        ] {
            let shown = ShownVariables { scope, patterns };
            assert_eq!(Statement::parse(text), Some(Statement::ShowVariables(shown)), "{text}");
        }
        for text in [
            "SHOW VARIABLES WHERE Value = 'ON'",
            "SHOW VARIABLES WHERE Variable_name IN ()",
            "SHOW VARIABLES WHERE Variable_name IN ('a'",
            "SHOW VARIABLES WHERE Variable_name = 'a' OR",
            "SHOW VARIABLES LIKE",
        ] {
            assert_eq!(Statement::parse(text), None, "{text}");
        }
        let shown = ShownVariables { scope: Scope::Any, patterns: vec![is("A_b"), like("c%")] };
        let included = ["a_b", "axb", "cd", "d"].map(|name| shown.includes(name));
        assert_eq!(included, [true, false, true, false]);
        assert!(ShownVariables::default().includes("anything"));
    }
}
