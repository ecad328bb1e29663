//! Which family of servers wrote a log: where MySQL and MariaDB write the same bytes and mean different things, the format
//! description tells which of both is meant.

use super::FormatDescription;

/// The family of the server that wrote a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerFamily {
    /// MySQL, and what calls itself by a version without MariaDB's name.
    Mysql,
    /// MariaDB.
    Mariadb,
    /// Events without their format description: what they mean can only be deduced from themselves.
    #[default]
    Unknown,
}

impl From<&FormatDescription> for ServerFamily {
    fn from(description: &FormatDescription) -> Self {
        if description.is_mariadb() { ServerFamily::Mariadb } else { ServerFamily::Mysql }
    }
}
