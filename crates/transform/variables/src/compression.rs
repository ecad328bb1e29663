//! The two global variables of compression alone, with the server's rules: for a caller that has no sessions.

use binlogz_payload::CompressionLevel;

use super::{Rights, Variable, VariableError, VariableId, VariableScope, VariableValue, Warning};

/// `binlog_transaction_compression` and `binlog_transaction_compression_level_zstd`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionVariables {
    on: bool,
    level: CompressionLevel,
}

impl CompressionVariables {
    /// On with a level, or off.
    pub fn new(level: Option<CompressionLevel>) -> Self {
        CompressionVariables { on: level.is_some(), level: level.unwrap_or(CompressionLevel::DEFAULT) }
    }

    /// The level to compress at; `None` if compression is off.
    pub fn level(&self) -> Option<CompressionLevel> {
        self.on.then_some(self.level)
    }

    /// Whether this is the name of one of the two, in any case.
    pub fn has(name: &str) -> bool {
        Variable::find(name)
            .is_ok_and(|variable| matches!(variable.id, VariableId::Compression | VariableId::Level))
    }

    /// SET GLOBAL. DEFAULT is OFF, and level 3.
    ///
    /// # Errors
    ///
    /// The server's, in its order: see the crate. Any name but those of the two is unknown.
    pub fn set(
        &mut self,
        name: &str,
        value: VariableValue<'_>,
        rights: Rights,
    ) -> Result<Option<Warning>, VariableError> {
        let variable = Variable::find(name)?;
        let (value, warning) = variable.check_set(VariableScope::Global, value, rights, false)?;
        let value = value.unwrap_or(variable.default);
        match variable.id {
            VariableId::Compression => self.on = value != 0,
            VariableId::Level => {
                // Within its bounds by now.
                self.level = CompressionLevel::clamped(i64::try_from(value).unwrap_or(i64::MAX));
            }
            _ => return Err(super::error(1193, format!("Unknown system variable '{name}'"))),
        }
        Ok(warning)
    }

    /// Names and values as SHOW VARIABLES prints them.
    pub fn shown(&self) -> [(&'static str, String); 2] {
        let switch = if self.on { "ON" } else { "OFF" };
        [
            ("binlog_transaction_compression", switch.to_owned()),
            ("binlog_transaction_compression_level_zstd", self.level.get().to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_rules_hold() {
        let mut variables = CompressionVariables::new(None);
        let switch = "BINLOG_transaction_compression";
        let level = "binlog_transaction_compression_level_zstd";
        assert_eq!(variables.set(switch, VariableValue::Text("on"), Rights::ALL), Ok(None));
        assert_eq!(variables.level().map(CompressionLevel::get), Some(3));
        let warning = variables.set(level, VariableValue::Integer(23), Rights::ALL).unwrap().unwrap();
        assert_eq!((warning.code, variables.level().map(CompressionLevel::get)), (1292, Some(22)));
        for (name, value, rights, code) in [
            (switch, VariableValue::Integer(2), Rights::ALL, 1231),
            (switch, VariableValue::Decimal(1.0), Rights::ALL, 1232),
            (level, VariableValue::Text("5"), Rights::ALL, 1232),
            (level, VariableValue::Integer(5), Rights::NONE, 1227),
            ("sync_binlog", VariableValue::Integer(5), Rights::ALL, 1193),
            ("nothing", VariableValue::Integer(5), Rights::ALL, 1193),
        ] {
            assert_eq!(variables.set(name, value, rights).unwrap_err().code, code, "{name}");
        }
        assert_eq!(variables.shown().map(|(_, value)| value), ["ON", "22"]);
        variables.set(level, VariableValue::Default, Rights::ALL).unwrap();
        variables.set(switch, VariableValue::Default, Rights::ALL).unwrap();
        assert_eq!((variables.level(), variables), (None, CompressionVariables::new(None)));
        assert!(CompressionVariables::has(level) && !CompressionVariables::has("sync_binlog"));
    }
}
