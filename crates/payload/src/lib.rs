//! Compresses and expands the transactions of a MySQL binary log.
