"""Row changes of logs and archives as tables of Apache Iceberg, through pyiceberg.

    from pyiceberg.catalog import load_catalog
    from binlogz.iceberg import append

    catalog = load_catalog("lake", type="sql", uri="sqlite:////lake/catalog.db", warehouse="file:///lake")
    append("/backup/archive", catalog)      # again: appends what is new
    compact(catalog)                        # joins the small files of many runs

Each table gets a change log, `shop.orders_changes`, and one with a key its rows as the last changes left them, `shop.orders`. The
transactions are in `binlogz.transactions`. See docs/reference/python-spark.md.

    append      a run: what is new is surveyed, each table gets its rows, the ledger comes last
    ledger      the table of transactions: which GTIDs all tables have, and which names
    names       the names of tables in the catalog
    columns     types, and how they may change
    statements  statements that change rows without a row event
    rows        rows of a table as its Iceberg schema has them
    changes     the change log of a table
    current     the rows of a table after its last changes
    compact     small data files are joined
    files       data files and commits: all that isn't pyiceberg's public interface
"""

from __future__ import annotations

from .append import Appended, LakeWarning, append
from .compact import compact

__all__ = ["Appended", "LakeWarning", "append", "compact"]
