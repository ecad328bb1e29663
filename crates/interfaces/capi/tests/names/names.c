// Prints the columns of each change after it, by name, with a schema: names LOG SCHEMA

#include <binlogz.h>
#include <inttypes.h>
#include <stdio.h>

static int failed(void) {
    fprintf(stderr, "%s\n", binlogz_last_error());
    return 1;
}

int main(int count, char **arguments) {
    binlogz_changes *changes;
    binlogz_change change;
    binlogz_status status;
    if (count != 3 || binlogz_changes_open(arguments[1], NULL, &changes) != BINLOGZ_OK) return failed();
    if (binlogz_changes_schema(changes, arguments[2]) != BINLOGZ_OK) return failed();
    while ((status = binlogz_changes_next(changes, &change)) == BINLOGZ_OK) {
        printf("%s:", change.table);
        for (size_t at = 0; at < change.columns; at++) {
            binlogz_column column;
            binlogz_value value;
            if (binlogz_changes_column(changes, at, &column) == BINLOGZ_OK)
                printf(" %s=", column.name ? column.name : "?");
            else
                printf(" (%s)=", binlogz_last_error());
            if (binlogz_changes_after(changes, at, &value) != BINLOGZ_OK) return failed();
            if (value.kind == BINLOGZ_TEXT) printf("%.*s", (int)value.length, (const char *)value.bytes);
            else printf("%" PRId64, value.kind == BINLOGZ_NATURAL ? (int64_t)value.natural : value.integer);
        }
        printf("\n");
    }
    binlogz_changes_close(changes);
    return status == BINLOGZ_END ? 0 : failed();
}
