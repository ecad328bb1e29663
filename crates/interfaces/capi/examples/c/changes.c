// Prints the compressed transactions and the row changes of a binary log, and expands it.
//
// usage: changes LOG OUTPUT
//
//   cc changes.c -I../../include -L../../../../../target/release -lbinlogz -o changes

#include <binlogz.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC_SIZE = 4, HEADER_SIZE = 19, TYPE_AT = 4, SIZE_AT = 9, TRANSACTION_PAYLOAD = 40 };

static void check(binlogz_status status) {
    if (status == BINLOGZ_OK || status == BINLOGZ_END) return;
    fprintf(stderr, "%s\n", binlogz_last_error());
    exit(1);
}

static uint32_t number(const uint8_t *bytes) {
    return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

// A client gets events one by one from its connection; here they come from the file.
static void print_payloads(const char *path) {
    FILE *log = fopen(path, "rb");
    if (!log || fseek(log, MAGIC_SIZE, SEEK_SET)) {
        perror(path);
        exit(1);
    }
    uint8_t header[HEADER_SIZE];
    while (fread(header, 1, HEADER_SIZE, log) == HEADER_SIZE) {
        uint32_t size = number(header + SIZE_AT);
        uint8_t *event = size < HEADER_SIZE ? NULL : malloc(size);
        if (!event || fread(event + HEADER_SIZE, 1, size - HEADER_SIZE, log) != size - HEADER_SIZE) {
            fprintf(stderr, "%s: the event is cut off\n", path);
            exit(1);
        }
        memcpy(event, header, HEADER_SIZE);
        if (header[TYPE_AT] == TRANSACTION_PAYLOAD) {
            binlogz_payload *payload;
            check(binlogz_payload_open(event, size, true, 0, &payload));
            printf("payload of %" PRIu32 " bytes:", size);
            const uint8_t *inside;
            size_t length;
            binlogz_status status;
            while ((status = binlogz_payload_next(payload, &inside, &length)) == BINLOGZ_OK)
                printf(" %d/%zu", inside[TYPE_AT], length);
            check(status);
            printf("\n");
            binlogz_payload_close(payload);
        }
        free(event);
    }
    fclose(log);
}

static void print_value(const binlogz_value *value) {
    switch (value->kind) {
    case BINLOGZ_ABSENT: printf("-"); break;
    case BINLOGZ_NULL: printf("NULL"); break;
    case BINLOGZ_INTEGER: printf("%" PRId64, value->integer); break;
    case BINLOGZ_TIMESTAMP: printf("@%" PRId64, value->integer); break;
    case BINLOGZ_NATURAL: printf("%" PRIu64, value->natural); break;
    case BINLOGZ_REAL: printf("%.6e", value->real); break;
    case BINLOGZ_TEXT:
        putchar('\'');
        fwrite(value->bytes, 1, value->length, stdout);
        putchar('\'');
        break;
    case BINLOGZ_BYTES:
        printf("0x");
        for (size_t at = 0; at < value->length; at++) printf("%02x", value->bytes[at]);
    }
}

static void print_changes(const char *path) {
    static const char *const operations[] = {"insert", "update", "delete"};
    binlogz_changes *changes;
    check(binlogz_changes_open(path, NULL, &changes));
    binlogz_change change;
    binlogz_status status;
    while ((status = binlogz_changes_next(changes, &change)) == BINLOGZ_OK) {
        printf("%s %s %s %s.%s\n", change.position, change.gtid ? change.gtid : "anonymous",
               operations[change.operation], change.database, change.table);
        for (size_t place = 0; place < change.columns; place++) {
            binlogz_column column;
            binlogz_value before, after;
            check(binlogz_changes_column(changes, place, &column));
            check(binlogz_changes_before(changes, place, &before));
            check(binlogz_changes_after(changes, place, &after));
            printf("  %s%s ", column.name ? column.name : "?", column.in_primary_key ? "*" : "");
            print_value(&before);
            printf(" ");
            print_value(&after);
            printf("\n");
        }
    }
    check(status);
    binlogz_changes_close(changes);
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: %s LOG OUTPUT\n", arguments[0]);
        return 2;
    }
    print_payloads(arguments[1]);
    print_changes(arguments[1]);
    binlogz_summary summary;
    check(binlogz_expand(arguments[1], arguments[2], false, &summary));
    printf("expanded %" PRIu64 " transactions, %" PRIu64 " bytes are %" PRIu64 "\n", summary.transactions,
           summary.bytes_read, summary.bytes_written);
}
