// Uses libbinlogz as no program should: handles that are not open, calls after errors, several threads with one handle, damaged logs.
// Exits with 0 if each call answered what the header says; a line on standard error says what was otherwise.
//
// usage: attack misuse LOG DAMAGED | threads LOG CHANGES | read LOG… | bomb LOG MEMORY_MAX

#include <binlogz.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC_SIZE = 4, HEADER_SIZE = 19, TYPE_AT = 4, SIZE_AT = 9, TRANSACTION_PAYLOAD = 40, THREADS = 8 };

#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "line %d: expected %s; the last error is \"%s\"\n", __LINE__, #condition,        \
                    binlogz_last_error());                                                                   \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

static volatile uint64_t seen;

static void look_at(const void *bytes, size_t length) {
    const uint8_t *all = bytes;
    for (size_t at = 0; at < length; at++) seen += all[at];
}

static bool says(const char *text) { return strstr(binlogz_last_error(), text) != NULL; }

static bool is_empty(const binlogz_change *change) {
    return !change->columns && !change->position && !change->gtid && !change->database && !change->table;
}

// A handle that stands for nothing: no call may touch what it points to.
static void refuse_changes(binlogz_changes *changes) {
    binlogz_change change;
    binlogz_column column;
    binlogz_value value;
    memset(&change, 0xff, sizeof change);
    memset(&column, 0xff, sizeof column);
    memset(&value, 0xff, sizeof value);
    EXPECT(binlogz_changes_next(changes, &change) == BINLOGZ_BAD_ARGUMENT && is_empty(&change));
    EXPECT(says(changes ? "changes isn't open" : "changes is NULL"));
    EXPECT(binlogz_changes_column(changes, 0, &column) == BINLOGZ_BAD_ARGUMENT && !column.name);
    EXPECT(binlogz_changes_before(changes, 0, &value) == BINLOGZ_BAD_ARGUMENT);
    EXPECT(value.kind == BINLOGZ_ABSENT && !value.bytes && !value.length);
    EXPECT(binlogz_changes_after(changes, 0, &value) == BINLOGZ_BAD_ARGUMENT);
    binlogz_changes_close(changes);
    binlogz_changes_close(changes);
}

static void refuse_payload(binlogz_payload *payload) {
    const uint8_t *event = (const uint8_t *)1;
    size_t length = 1;
    EXPECT(binlogz_payload_next(payload, &event, &length) == BINLOGZ_BAD_ARGUMENT && !event && !length);
    binlogz_payload_close(payload);
    binlogz_payload_close(payload);
}

static void misuse_changes(const char *log, const char *damaged) {
    binlogz_changes *changes = (binlogz_changes *)0x10;
    EXPECT(binlogz_changes_open("/nowhere/at/all", NULL, &changes) == BINLOGZ_IO && !changes);
    refuse_changes(changes);
    changes = (binlogz_changes *)0x10;
    EXPECT(binlogz_changes_open(NULL, NULL, &changes) == BINLOGZ_BAD_ARGUMENT && !changes);
    changes = (binlogz_changes *)0x10;
    EXPECT(binlogz_changes_open(log, "no position", &changes) == BINLOGZ_BAD_ARGUMENT && !changes);
    changes = (binlogz_changes *)0x10;
    EXPECT(binlogz_changes_open("\xff\xfe", NULL, &changes) == BINLOGZ_BAD_ARGUMENT && !changes);
    EXPECT(binlogz_changes_open(log, NULL, NULL) == BINLOGZ_BAD_ARGUMENT);

    binlogz_change change;
    binlogz_column column;
    binlogz_value value, again;
    EXPECT(binlogz_changes_open(log, NULL, &changes) == BINLOGZ_OK && changes);
    // Before the first change.
    EXPECT(binlogz_changes_column(changes, 0, &column) == BINLOGZ_BAD_ARGUMENT && says("no current change"));
    EXPECT(binlogz_changes_before(changes, 0, &value) == BINLOGZ_BAD_ARGUMENT);
    EXPECT(binlogz_changes_next(changes, NULL) == BINLOGZ_BAD_ARGUMENT);
    EXPECT(binlogz_changes_next(changes, &change) == BINLOGZ_OK && change.columns > 0);
    size_t columns = change.columns;
    EXPECT(binlogz_changes_column(changes, columns, &column) == BINLOGZ_BAD_ARGUMENT && !column.name);
    EXPECT(binlogz_changes_column(changes, SIZE_MAX, &column) == BINLOGZ_BAD_ARGUMENT);
    EXPECT(binlogz_changes_column(changes, 0, NULL) == BINLOGZ_BAD_ARGUMENT);
    EXPECT(binlogz_changes_after(changes, SIZE_MAX, &value) == BINLOGZ_BAD_ARGUMENT);
    EXPECT(value.kind == BINLOGZ_ABSENT);
    EXPECT(binlogz_changes_after(changes, 0, NULL) == BINLOGZ_BAD_ARGUMENT);
    // A value that is asked for again is the same one: nothing grows.
    for (size_t place = 0; place < columns; place++) {
        EXPECT(binlogz_changes_after(changes, place, &value) == BINLOGZ_OK);
        for (int times = 0; times < 1000; times++) {
            EXPECT(binlogz_changes_after(changes, place, &again) == BINLOGZ_OK);
            EXPECT(again.kind == value.kind && again.bytes == value.bytes && again.length == value.length);
        }
        const char *name = NULL;
        for (int times = 0; times < 1000; times++) {
            EXPECT(binlogz_changes_column(changes, place, &column) == BINLOGZ_OK);
            EXPECT(!times || column.name == name);
            name = column.name;
        }
    }
    binlogz_status status;
    while ((status = binlogz_changes_next(changes, &change)) == BINLOGZ_OK) look_at(change.table, strlen(change.table));
    EXPECT(status == BINLOGZ_END && is_empty(&change));
    // After the end.
    EXPECT(binlogz_changes_next(changes, &change) == BINLOGZ_END && is_empty(&change));
    EXPECT(binlogz_changes_before(changes, 0, &value) == BINLOGZ_BAD_ARGUMENT);
    // A payload is no list of changes.
    refuse_payload((binlogz_payload *)changes);
    binlogz_changes_close(changes);
    refuse_changes(changes);
    int nothing = 0;
    refuse_changes((binlogz_changes *)&nothing);
    refuse_changes((binlogz_changes *)1);
    refuse_changes(NULL);

    // After an error there is the same error, and never the end.
    EXPECT(binlogz_changes_open(damaged, NULL, &changes) == BINLOGZ_OK);
    while ((status = binlogz_changes_next(changes, &change)) == BINLOGZ_OK) {}
    EXPECT(status == BINLOGZ_BAD_INPUT && is_empty(&change));
    char message[1024];
    snprintf(message, sizeof message, "%s", binlogz_last_error());
    for (int times = 0; times < 3; times++) {
        EXPECT(binlogz_changes_next(changes, &change) == BINLOGZ_BAD_INPUT && is_empty(&change));
        EXPECT(!strcmp(message, binlogz_last_error()));
    }
    binlogz_changes_close(changes);
    // Closed in mid-log, by the hundred: threads end, and descriptors don't run out.
    for (int times = 0; times < 300; times++) {
        EXPECT(binlogz_changes_open(log, NULL, &changes) == BINLOGZ_OK);
        if (times % 2) EXPECT(binlogz_changes_next(changes, &change) == BINLOGZ_OK);
        binlogz_changes_close(changes);
    }
}

static uint32_t number(const uint8_t *bytes) {
    return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

// The first payload event of a log.
static uint8_t *payload_of(const char *path, size_t *length) {
    FILE *log = fopen(path, "rb");
    EXPECT(log && !fseek(log, MAGIC_SIZE, SEEK_SET));
    uint8_t header[HEADER_SIZE];
    while (fread(header, 1, HEADER_SIZE, log) == HEADER_SIZE) {
        *length = number(header + SIZE_AT);
        uint8_t *event = *length < HEADER_SIZE ? NULL : malloc(*length);
        EXPECT(event && fread(event + HEADER_SIZE, 1, *length - HEADER_SIZE, log) == *length - HEADER_SIZE);
        memcpy(event, header, HEADER_SIZE);
        if (header[TYPE_AT] == TRANSACTION_PAYLOAD) {
            fclose(log);
            return event;
        }
        free(event);
    }
    EXPECT(!"a payload in the log");
    return NULL;
}

static void misuse_payload(const char *log) {
    size_t length, size;
    uint8_t *event = payload_of(log, &length);
    const uint8_t *inside;
    binlogz_payload *payload = (binlogz_payload *)0x10;
    EXPECT(binlogz_payload_open(NULL, 100, true, 0, &payload) == BINLOGZ_BAD_ARGUMENT && !payload);
    refuse_payload(payload);
    EXPECT(binlogz_payload_open(event, length, true, 0, NULL) == BINLOGZ_BAD_ARGUMENT);
    EXPECT(binlogz_payload_open(event, SIZE_MAX, true, 0, &payload) == BINLOGZ_BAD_ARGUMENT && !payload);
    // Cut anywhere, too long by one, with any byte changed, and with no room for what is in it.
    for (size_t cut = 0; cut < length; cut++) {
        // As long as it is said to be, so that a byte read beyond its end is noticed.
        uint8_t *part = malloc(cut ? cut : 1);
        memcpy(part, event, cut);
        payload = (binlogz_payload *)0x10;
        EXPECT(binlogz_payload_open(part, cut, true, 0, &payload) == BINLOGZ_BAD_INPUT && !payload);
        free(part);
        event[cut] ^= 1;
        EXPECT(binlogz_payload_open(event, length, true, 0, &payload) == BINLOGZ_BAD_INPUT && !payload);
        event[cut] ^= 1;
    }
    EXPECT(binlogz_payload_open(event, length, true, 1, &payload) == BINLOGZ_BAD_INPUT && !payload);
    EXPECT(binlogz_payload_open(event, length, true, SIZE_MAX, &payload) == BINLOGZ_OK && payload);
    EXPECT(binlogz_payload_next(payload, NULL, &size) == BINLOGZ_BAD_ARGUMENT);
    EXPECT(binlogz_payload_next(payload, &inside, NULL) == BINLOGZ_BAD_ARGUMENT);
    // The events are the payload's own.
    memset(event, 0, length);
    free(event);
    binlogz_status status;
    int events = 0;
    while ((status = binlogz_payload_next(payload, &inside, &size)) == BINLOGZ_OK) {
        look_at(inside, size);
        events++;
    }
    EXPECT(status == BINLOGZ_END && events > 1 && !inside && !size);
    EXPECT(binlogz_payload_next(payload, &inside, &size) == BINLOGZ_END);
    refuse_changes((binlogz_changes *)payload);
    binlogz_payload_close(payload);
    refuse_payload(payload);
    refuse_payload(NULL);
}

static void misuse_files(const char *log) {
    binlogz_summary summary;
    EXPECT(binlogz_compress(log, "/nowhere/at/all", 3, false, &summary) == BINLOGZ_IO);
    EXPECT(binlogz_compress(log, "out", 99, false, &summary) == BINLOGZ_BAD_ARGUMENT);
    EXPECT(binlogz_compress(NULL, "out", 3, false, NULL) == BINLOGZ_BAD_ARGUMENT);
    EXPECT(binlogz_expand(log, NULL, false, NULL) == BINLOGZ_BAD_ARGUMENT);
    EXPECT(binlogz_expand("/nowhere/at/all", "out", false, NULL) == BINLOGZ_IO);
}

static binlogz_changes *shared;
static size_t found;
static pthread_mutex_t count = PTHREAD_MUTEX_INITIALIZER;

// Each change goes to one thread; a call beside another one is refused.
static void *take(void *unused) {
    (void)unused;
    size_t mine = 0;
    binlogz_change change;
    binlogz_status status;
    do {
        status = binlogz_changes_next(shared, &change);
        if (status == BINLOGZ_OK) mine++;
        if (status == BINLOGZ_BAD_ARGUMENT) EXPECT(says("is in use by another thread"));
    } while (status == BINLOGZ_OK || status == BINLOGZ_BAD_ARGUMENT);
    EXPECT(status == BINLOGZ_END);
    pthread_mutex_lock(&count);
    found += mine;
    pthread_mutex_unlock(&count);
    return NULL;
}

// Until another thread closes it.
static void *use(void *unused) {
    (void)unused;
    binlogz_change change;
    binlogz_value value;
    while (!(binlogz_changes_next(shared, &change) == BINLOGZ_BAD_ARGUMENT && says("isn't open")))
        binlogz_changes_after(shared, 0, &value);
    return NULL;
}

static void run(void *(*work)(void *), bool closes) {
    pthread_t threads[THREADS];
    for (int at = 0; at < THREADS; at++) EXPECT(!pthread_create(&threads[at], NULL, work, NULL));
    if (closes) binlogz_changes_close(shared);
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
}

static void threads(const char *log, size_t expected) {
    for (int times = 0; times < 20; times++) {
        found = 0;
        EXPECT(binlogz_changes_open(log, NULL, &shared) == BINLOGZ_OK);
        run(take, false);
        EXPECT(found == expected);
        binlogz_changes_close(shared);
        EXPECT(binlogz_changes_open(log, NULL, &shared) == BINLOGZ_OK);
        run(use, true);
    }
}

// Reads all that can be read of a log that may be anything. Only a bug is an error.
static void read_any(const char *log) {
    binlogz_changes *changes;
    binlogz_change change;
    binlogz_status status = binlogz_changes_open(log, NULL, &changes);
    EXPECT(status == BINLOGZ_OK || status == BINLOGZ_IO);
    size_t rows = 0;
    while (status == BINLOGZ_OK && (status = binlogz_changes_next(changes, &change)) == BINLOGZ_OK) {
        rows++;
        look_at(change.position, strlen(change.position));
        look_at(change.database, strlen(change.database));
        for (size_t place = 0; place < change.columns; place++) {
            binlogz_column column;
            binlogz_value values[2];
            EXPECT(binlogz_changes_column(changes, place, &column) == BINLOGZ_OK);
            if (column.name) look_at(column.name, strlen(column.name));
            binlogz_status before = binlogz_changes_before(changes, place, &values[0]);
            binlogz_status after = binlogz_changes_after(changes, place, &values[1]);
            EXPECT(before != BINLOGZ_BUG && after != BINLOGZ_BUG);
            for (int side = 0; side < 2; side++) look_at(values[side].bytes, values[side].length);
        }
    }
    EXPECT(status != BINLOGZ_BUG && status != BINLOGZ_BAD_ARGUMENT);
    binlogz_changes_close(changes);
    printf("%s: %zu changes, %s\n", log, rows, status == BINLOGZ_END ? "whole" : binlogz_last_error());
}

static void bomb(const char *log, size_t memory_max) {
    size_t length;
    uint8_t *event = payload_of(log, &length);
    binlogz_payload *payload;
    binlogz_status status = binlogz_payload_open(event, length, true, memory_max, &payload);
    EXPECT(status == BINLOGZ_BAD_INPUT && !payload && says("memory_max"));
    free(event);
}

int main(int arguments, char **argument) {
    EXPECT(arguments > 2);
    const char *what = argument[1];
    if (!strcmp(what, "misuse")) {
        misuse_changes(argument[2], argument[3]);
        misuse_payload(argument[2]);
        misuse_files(argument[2]);
    } else if (!strcmp(what, "threads")) {
        threads(argument[2], strtoul(argument[3], NULL, 10));
    } else if (!strcmp(what, "read")) {
        for (int at = 2; at < arguments; at++) read_any(argument[at]);
    } else {
        bomb(argument[2], strtoul(argument[3], NULL, 10));
    }
    return 0;
}
