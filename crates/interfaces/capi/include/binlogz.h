/* libbinlogz: MySQL's binary logs for C, and for languages that call C.
 *
 * Written from the sources by a test (UPDATE_DOCS=1 cargo test -p binlogz-capi): not to be edited.
 *
 * A handle may be used by one thread at a time, and handed on to another. Strings are UTF-8.
 */

#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The outcome of a call. After any but BINLOGZ_OK and BINLOGZ_END, binlogz_last_error() has a message.
typedef enum {
    // Done.
    BINLOGZ_OK = 0,
    // There are no more events or changes.
    BINLOGZ_END = 1,
    // An argument that can't be: a null pointer, a handle that isn't open or that another thread uses, a level that zstd doesn't have.
    BINLOGZ_BAD_ARGUMENT = 2,
    // Bytes that can't be right: damaged, cut off, no binary log. The message has the offset, what was found and what was expected.
    BINLOGZ_BAD_INPUT = 3,
    // The system refused: a file that isn't there, a full disk.
    BINLOGZ_IO = 4,
    // A bug in binlogz. The handle can't be used again; close it.
    BINLOGZ_BUG = 5,
    // After the last change: the log was read to its end, but it may hold changes that could not be read, or says that some
    // are lost. The message names the first.
    BINLOGZ_UNREAD = 6,
} binlogz_status;

// The kind of change to a row.
typedef enum {
    // There is an after-image.
    BINLOGZ_INSERT = 0,
    // There are both images.
    BINLOGZ_UPDATE = 1,
    // There is a before-image.
    BINLOGZ_DELETE = 2,
} binlogz_operation;

// The kind of a value.
typedef enum {
    // The image doesn't have the column: binlog_row_image isn't FULL, or there is no such image.
    BINLOGZ_ABSENT = 0,
    // NULL.
    BINLOGZ_NULL = 1,
    // A signed integer: integer. Before 8.0.1 logs don't say which integers are unsigned.
    BINLOGZ_INTEGER = 2,
    // An unsigned integer, BIT, YEAR, or an ENUM or SET whose members neither the log nor a schema names: natural.
    BINLOGZ_NATURAL = 3,
    // FLOAT or DOUBLE: real.
    BINLOGZ_REAL = 4,
    // TIMESTAMP: integer, microseconds since 1970-01-01 00:00:00 UTC; 0 is the zero date.
    BINLOGZ_TIMESTAMP = 5,
    // bytes and length, in UTF-8, without a NUL at the end: character strings, DECIMAL, DATE, TIME, DATETIME, ENUM, SET, JSON.
    BINLOGZ_TEXT = 6,
    // bytes and length: BINARY, BLOB, GEOMETRY (SRID and WKB), VECTOR (little-endian floats), and strings that aren't valid in
    // their character set.
    BINLOGZ_BYTES = 7,
} binlogz_kind;

// The row changes of a log, decoded on all cores, in order. Closed with binlogz_changes_close().
typedef struct binlogz_changes binlogz_changes;

// The events of a compressed transaction. Closed with binlogz_payload_close().
typedef struct binlogz_payload binlogz_payload;

// A row change. Its texts end with NUL and hold until the next change.
typedef struct {
    // The kind of change.
    binlogz_operation operation;
    // Seconds since 1970 at which the statement began.
    uint32_t timestamp;
    // How many columns the table has.
    size_t columns;
    // The row's place in the log, for binlogz_changes_open(): the same whenever this log is read.
    const char *position;
    // The GTID of its transaction; NULL if it is anonymous.
    const char *gtid;
    // Name of the row's database.
    const char *database;
    // Name of the row's table.
    const char *table;
} binlogz_change;

// A column of a table.
typedef struct {
    // Name of the column; NULL if neither the log (binlog_row_metadata=MINIMAL) nor a schema has one. It holds until the next
    // change.
    const char *name;
    // Whether it is part of the primary key, as far as the log says.
    bool in_primary_key;
} binlogz_column;

// A value. kind says which of the others it has; they are 0 and NULL otherwise.
typedef struct {
    // The kind of the value.
    binlogz_kind kind;
    // The value of BINLOGZ_INTEGER and BINLOGZ_TIMESTAMP.
    int64_t integer;
    // The value of BINLOGZ_NATURAL.
    uint64_t natural;
    // The value of BINLOGZ_REAL.
    double real;
    // The value of BINLOGZ_TEXT and BINLOGZ_BYTES; it holds until the next change.
    const uint8_t *bytes;
    // How many bytes.
    size_t length;
} binlogz_value;

// How much was compressed or expanded.
typedef struct {
    // Transactions that were compressed, or expanded.
    uint64_t transactions;
    // Bytes of the log that was read.
    uint64_t bytes_read;
    // Bytes of the log that was written.
    uint64_t bytes_written;
} binlogz_summary;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The message of the last call of this thread that failed; empty if none has. It stays until another call of this thread
// fails.
const char *binlogz_last_error(void);

// The version of this library, as in "0.2.0".
const char *binlogz_version(void);

// Opens a Transaction_payload event: event_length bytes from its header on. With checksum, its last four bytes are a CRC-32,
// which is compared (binlog_checksum; the format description event of the log says whether). The events in it may take
// memory_max bytes; 0 means 1 GiB.
//
// BINLOGZ_BAD_INPUT: it is another event, its checksum is wrong, what it holds isn't whole events, or is larger than memory_max.
// After any failure the handle is NULL.
//
// # Safety
//
// event points to event_length bytes, payload to where the handle goes.
binlogz_status binlogz_payload_open(const uint8_t *event,
                                    size_t event_length,
                                    bool checksum,
                                    size_t memory_max,
                                    binlogz_payload **payload);

// The next event of the transaction, its header first: event and event_length, which hold until the payload is closed.
// BINLOGZ_END after the last one. Without an event they are NULL and 0.
//
// # Safety
//
// event and event_length point to where the answer goes.
binlogz_status binlogz_payload_next(binlogz_payload *payload,
                                    const uint8_t **event,
                                    size_t *event_length);

// Closes a payload; its events are gone. NULL, or one that was closed before, is nothing.
void binlogz_payload_close(binlogz_payload *payload);

// Opens a binary or relay log. With after, the position of a change, those up to it are left out; NULL begins at the
// beginning. A log in use ends with its last whole event. After any failure the handle is NULL.
//
// # Safety
//
// path is a string, after a string or NULL, changes points to where the handle goes.
binlogz_status binlogz_changes_open(const char *path,
                                    const char *after,
                                    binlogz_changes **changes);

// Names columns, and members of ENUM and SET, that the log doesn't name (binlog_row_metadata=MINIMAL), from the next change on. schema is the
// path of a file of CREATE TABLE statements, as mysqldump --no-data writes them: the tables as they are after the last statement of the
// log. The log, a file, is read once more for the statements that changed tables: each row has the columns of its place.
//
// # Safety
//
// schema is a string.
binlogz_status binlogz_changes_schema(binlogz_changes *changes,
                                      const char *schema);

// The next change. BINLOGZ_END after the last one; after a failure, the same failure again. BINLOGZ_UNREAD comes in place of BINLOGZ_END if
// the log may hold changes that could not be read. Without a change all fields are 0 and NULL.
//
// # Safety
//
// change points to where the answer goes.
binlogz_status binlogz_changes_next(binlogz_changes *changes,
                                    binlogz_change *change);

// A column of the change's table, counted from 0. Without one the answer is NULL and false. With a schema, a table whose columns at this
// place aren't known is BINLOGZ_BAD_INPUT: the message says why. Its ENUMs and SETs are BINLOGZ_NATURAL.
//
// # Safety
//
// answer points to where the answer goes.
binlogz_status binlogz_changes_column(binlogz_changes *changes,
                                      size_t column,
                                      binlogz_column *answer);

// The value of a column, counted from 0, before the change. After a failure it is BINLOGZ_ABSENT.
//
// # Safety
//
// value points to where the answer goes.
binlogz_status binlogz_changes_before(binlogz_changes *changes, size_t column, binlogz_value *value);

// The value of a column, counted from 0, after the change. After a failure it is BINLOGZ_ABSENT.
//
// # Safety
//
// value points to where the answer goes.
binlogz_status binlogz_changes_after(binlogz_changes *changes, size_t column, binlogz_value *value);

// Closes it; the last change is gone. NULL, or one that was closed before, is nothing.
void binlogz_changes_close(binlogz_changes *changes);

// Compresses each transaction of the log input as MySQL 9.7 would, at zstd's level 1 to 22, and writes the log to output, which
// appears whole or not at all. What is there already is replaced only with replace. summary may be NULL.
//
// # Safety
//
// input and output are strings; summary points to where the answer goes, or is NULL.
binlogz_status binlogz_compress(const char *input,
                                const char *output,
                                int level,
                                bool replace,
                                binlogz_summary *summary);

// Takes the transactions of the log input out of their payloads, and writes the log to output as binlogz_compress() does.
//
// # Safety
//
// input and output are strings; summary points to where the answer goes, or is NULL.
binlogz_status binlogz_expand(const char *input,
                              const char *output,
                              bool replace,
                              binlogz_summary *summary);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus
