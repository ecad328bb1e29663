//! How a relay may have to connect to its source: TLS alone, client certificates, plugins for passwords, compressed connections.

use std::time::Instant;

use binlogz_testkit::{MysqlSandbox, Result, Tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, is_kept};
use crate::patience;
use crate::table::{Table, Verdict};
use crate::{BEGINNING, Rows};

/// A demand of the source, and the keys with which the relay meets it.
struct Link {
    name: &'static str,
    option: Option<(&'static str, &'static str)>,
    /// How connections may be compressed from then on, which its own client may not like.
    compression: Option<&'static str>,
    /// The plugin and what follows the password in CREATE USER.
    account: (&'static str, &'static str),
    /// Keys of `[source]`; DATA stands for the server's directory.
    keys: &'static str,
}

const USUAL: (&str, &str) = ("caching_sha2_password", "");
const CERTIFICATE: &str = "ssl_mode = \"verify_ca\"\nssl_ca = \"DATA/ca.pem\"\nssl_cert = \"DATA/client-cert.pem\"\nssl_key = \"DATA/client-key.pem\"";
const LINKS: [Link; 9] = [
    Link {
        name: "`require_secure_transport=ON`",
        option: Some(("require-secure-transport", "ON")),
        compression: None,
        account: USUAL,
        keys: "",
    },
    Link {
        name: "`REQUIRE X509`, a client certificate",
        option: None,
        compression: None,
        account: (USUAL.0, "REQUIRE X509"),
        keys: CERTIFICATE,
    },
    Link {
        name: "`REQUIRE X509`, none",
        option: None,
        compression: None,
        account: (USUAL.0, "REQUIRE X509"),
        keys: "",
    },
    Link {
        name: "caching_sha2_password without TLS, the server's key from a file",
        option: None,
        compression: None,
        account: USUAL,
        keys: "ssl_mode = \"disabled\"\nserver_public_key = \"DATA/public_key.pem\"",
    },
    Link {
        name: "sha256_password",
        option: None,
        compression: None,
        account: ("sha256_password", ""),
        keys: "",
    },
    Link {
        name: "sha256_password without TLS, the server's key from a file",
        option: None,
        compression: None,
        account: ("sha256_password", ""),
        keys: "ssl_mode = \"disabled\"\nserver_public_key = \"DATA/public_key.pem\"",
    },
    Link {
        name: "mysql_native_password",
        option: None,
        compression: None,
        account: ("mysql_native_password", ""),
        keys: "",
    },
    Link {
        name: "compressed by zlib alone",
        option: None,
        compression: Some("zlib"),
        account: USUAL,
        keys: "compression_algorithms = \"zlib,zstd\"",
    },
    Link {
        name: "compressed by zstd alone",
        option: None,
        compression: Some("zstd"),
        account: USUAL,
        keys: "compression_algorithms = \"zlib,zstd\"",
    },
];

impl Link {
    fn source(&self, tool: Tool) -> Result<MysqlSandbox> {
        let builder = tool.find()?.sandbox().compression(3);
        let source = match self.option {
            Some((name, value)) => builder.option(name, value),
            None => builder,
        };
        let source = source.start()?;
        let (plugin, requires) = self.account;
        source.sql(&format!(
            "CREATE USER linked@'127.0.0.1' IDENTIFIED WITH {plugin} BY 'repl' {requires};
             GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO linked@'127.0.0.1';"
        ))?;
        source.sql(BEGINNING)?;
        Rows::write(&source);
        Ok(source)
    }

    /// From here on the server's own client may not connect.
    fn restrict(&self, source: &MysqlSandbox) -> Result<()> {
        let Some(algorithm) = self.compression else { return Ok(()) };
        source.sql(&format!("SET GLOBAL protocol_compression_algorithms = '{algorithm}'")).map(drop)
    }

    /// Whether the relay stores the source's log byte for byte.
    fn verdict(&self, tool: Tool) -> Result<Verdict> {
        let source = self.source(tool)?;
        let folder = Folder::new();
        let keys = self.keys.replace("DATA", &source.datadir().display().to_string());
        let url = format!("mysql://linked@127.0.0.1:{}", source.port());
        let last = source.position()?;
        self.restrict(&source)?;
        let relay = Configuration::of([url]).source(keys).account("reader", "").launch(&folder);
        let until = Instant::now() + patience();
        loop {
            std::thread::sleep(std::time::Duration::from_millis(100));
            let size = |path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
            if size(folder.path(&format!("kept/{}", last.0))) >= last.1 {
                is_kept(&source, &folder.path("kept"));
                return Ok(Verdict::Works);
            }
            let said = relay.said();
            let trouble = said.lines().position(|line| !line.contains("\"level\":\"info\""));
            match trouble.and_then(|place| relay.messages().into_iter().nth(place)) {
                Some(trouble) => return Ok(Verdict::Stops(trouble)),
                None if Instant::now() < until => {}
                None => return Ok(Verdict::Differs("the relay neither follows it nor says why".into())),
            }
        }
    }
}

pub(crate) fn table() -> Table {
    const SOURCES: [Tool; 2] = [Tool::Mysql, Tool::Mysql80];
    let version = |tool: Tool| {
        tool.find().map_or_else(|_| tool.name().to_owned(), |found| format!("MySQL {}", found.version()))
    };
    let mut table = Table::new(
        "The way to the source",
        "The relay's own connection; it has the source's log byte for byte, or says why not.",
        SOURCES.map(version).into(),
    )
    .strict();
    for link in &LINKS {
        let fared = |tool| link.verdict(tool).unwrap_or_else(|error| Verdict::NotTried(error.to_string()));
        table.row(link.name, SOURCES.map(fared).into());
    }
    table
}
