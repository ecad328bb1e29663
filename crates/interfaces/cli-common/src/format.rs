//! `--format`, by one rule for all commands: `text` and `table` are the same, for people; `json` is for machines and stable.

use binlogz_figures::TableLayout;
use clap::ValueEnum;

/// A report for people or for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people
    #[value(alias = "table")]
    Text,
    /// One JSON document; its fields are stable
    Json,
}

/// A report that is also watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WatchedFormat {
    /// For people
    #[value(alias = "table")]
    Text,
    /// One JSON document; its fields are stable
    Json,
    /// Metrics, as Prometheus reads them
    Prometheus,
}

/// Tables, for spreadsheets too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For people
    #[value(alias = "text")]
    Table,
    /// One JSON document; its fields are stable
    Json,
    /// Comma-separated values
    Csv,
}

impl TableFormat {
    /// The writer of it; people get this layout.
    pub fn writer(self, layout: TableLayout) -> binlogz_figures::FigureFormat {
        match self {
            TableFormat::Table => binlogz_figures::FigureFormat::Table(layout),
            TableFormat::Json => binlogz_figures::FigureFormat::Json,
            TableFormat::Csv => binlogz_figures::FigureFormat::Csv,
        }
    }
}
