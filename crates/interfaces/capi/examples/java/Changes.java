// Prints the compressed transactions and the row changes of a binary log, and expands it. Java 22 or later.
//
// usage: java --enable-native-access=ALL-UNNAMED Changes.java LIBRARY LOG OUTPUT

import static java.lang.foreign.ValueLayout.*;

import java.io.PrintStream;
import java.lang.foreign.*;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;

public class Changes {
    static final int MAGIC_SIZE = 4, TYPE_AT = 4, SIZE_AT = 9, HEADER_SIZE = 19, TRANSACTION_PAYLOAD = 40;
    static final int OK = 0, END = 1;
    static final String[] OPERATIONS = {"insert", "update", "delete"};

    // As in binlogz.h.
    static final StructLayout CHANGE = MemoryLayout.structLayout(
        JAVA_INT.withName("operation"), JAVA_INT.withName("timestamp"), JAVA_LONG.withName("columns"),
        ADDRESS.withName("position"), ADDRESS.withName("gtid"), ADDRESS.withName("database"), ADDRESS.withName("table"));
    static final StructLayout COLUMN = MemoryLayout.structLayout(
        ADDRESS.withName("name"), JAVA_BOOLEAN.withName("in_primary_key"), MemoryLayout.paddingLayout(7));
    static final StructLayout VALUE = MemoryLayout.structLayout(
        JAVA_INT.withName("kind"), MemoryLayout.paddingLayout(4), JAVA_LONG.withName("integer"), JAVA_LONG.withName("natural"),
        JAVA_DOUBLE.withName("real"), ADDRESS.withName("bytes"), JAVA_LONG.withName("length"));
    static final StructLayout SUMMARY = MemoryLayout.structLayout(
        JAVA_LONG.withName("transactions"), JAVA_LONG.withName("bytes_read"), JAVA_LONG.withName("bytes_written"));

    final Linker linker = Linker.nativeLinker();
    final SymbolLookup library;
    final Arena arena;
    final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    Changes(Arena arena, String library) {
        this.arena = arena;
        this.library = SymbolLookup.libraryLookup(Path.of(library), arena);
    }

    MethodHandle function(String name, MemoryLayout... arguments) {
        return linker.downcallHandle(library.find(name).orElseThrow(), FunctionDescriptor.of(JAVA_INT, arguments));
    }

    MethodHandle close(String name) {
        return linker.downcallHandle(library.find(name).orElseThrow(), FunctionDescriptor.ofVoid(ADDRESS));
    }

    boolean check(Object status) throws Throwable {
        if ((int) status == OK) return true;
        if ((int) status == END) return false;
        var lastError = linker.downcallHandle(library.find("binlogz_last_error").orElseThrow(), FunctionDescriptor.of(ADDRESS));
        throw new IllegalStateException(text((MemorySegment) lastError.invoke()));
    }

    static String text(MemorySegment string) {
        return string.reinterpret(Long.MAX_VALUE).getString(0);
    }

    static MemorySegment pointer(StructLayout layout, MemorySegment of, String field) {
        return of.get(ADDRESS, layout.byteOffset(MemoryLayout.PathElement.groupElement(field)));
    }

    static long number(StructLayout layout, MemorySegment of, String field) {
        return of.get(JAVA_LONG, layout.byteOffset(MemoryLayout.PathElement.groupElement(field)));
    }

    // A client gets events one by one from its connection; here they come from the file.
    void printPayloads(byte[] log) throws Throwable {
        var open = function("binlogz_payload_open", ADDRESS, JAVA_LONG, JAVA_BOOLEAN, JAVA_LONG, ADDRESS);
        var next = function("binlogz_payload_next", ADDRESS, ADDRESS, ADDRESS);
        var close = close("binlogz_payload_close");
        MemorySegment handle = arena.allocate(ADDRESS), inside = arena.allocate(ADDRESS), length = arena.allocate(JAVA_LONG);
        var bytes = ByteBuffer.wrap(log).order(ByteOrder.LITTLE_ENDIAN);
        for (int at = MAGIC_SIZE; at + HEADER_SIZE <= log.length; at += bytes.getInt(at + SIZE_AT)) {
            int size = bytes.getInt(at + SIZE_AT);
            if (size < HEADER_SIZE || size > log.length - at) throw new IllegalStateException("the event is cut off");
            if (log[at + TYPE_AT] != TRANSACTION_PAYLOAD) continue;
            try (var event = Arena.ofConfined()) {
                var copied = event.allocate(size).copyFrom(MemorySegment.ofArray(log).asSlice(at, size));
                check(open.invoke(copied, (long) size, true, 0L, handle));
            }
            var payload = handle.get(ADDRESS, 0);
            out.printf("payload of %d bytes:", size);
            while (check(next.invoke(payload, inside, length))) {
                var found = inside.get(ADDRESS, 0).reinterpret(length.get(JAVA_LONG, 0));
                out.printf(" %d/%d", found.get(JAVA_BYTE, TYPE_AT) & 0xff, found.byteSize());
            }
            out.print("\n");
            close.invoke(payload);
        }
    }

    static String shown(MemorySegment value) {
        byte[] bytes = pointer(VALUE, value, "bytes").reinterpret(number(VALUE, value, "length")).toArray(JAVA_BYTE);
        return switch (value.get(JAVA_INT, 0)) {
            case 0 -> "-";
            case 1 -> "NULL";
            case 2 -> Long.toString(number(VALUE, value, "integer"));
            case 3 -> Long.toUnsignedString(number(VALUE, value, "natural"));
            case 4 -> String.format("%.6e", Double.longBitsToDouble(number(VALUE, value, "real")));
            case 5 -> "@" + number(VALUE, value, "integer");
            case 6 -> "'" + new String(bytes, StandardCharsets.UTF_8) + "'";
            default -> "0x" + HexFormat.of().formatHex(bytes);
        };
    }

    void printChanges(MemorySegment path) throws Throwable {
        var next = function("binlogz_changes_next", ADDRESS, ADDRESS);
        var nameOf = function("binlogz_changes_column", ADDRESS, JAVA_LONG, ADDRESS);
        var valueBefore = function("binlogz_changes_before", ADDRESS, JAVA_LONG, ADDRESS);
        var valueAfter = function("binlogz_changes_after", ADDRESS, JAVA_LONG, ADDRESS);
        MemorySegment handle = arena.allocate(ADDRESS), change = arena.allocate(CHANGE), column = arena.allocate(COLUMN);
        MemorySegment before = arena.allocate(VALUE), after = arena.allocate(VALUE);
        check(function("binlogz_changes_open", ADDRESS, ADDRESS, ADDRESS).invoke(path, MemorySegment.NULL, handle));
        var changes = handle.get(ADDRESS, 0);
        while (check(next.invoke(changes, change))) {
            var gtid = pointer(CHANGE, change, "gtid");
            out.printf("%s %s %s %s.%s\n", text(pointer(CHANGE, change, "position")),
                gtid.equals(MemorySegment.NULL) ? "anonymous" : text(gtid), OPERATIONS[change.get(JAVA_INT, 0)],
                text(pointer(CHANGE, change, "database")), text(pointer(CHANGE, change, "table")));
            for (long place = 0; place < number(CHANGE, change, "columns"); place++) {
                check(nameOf.invoke(changes, place, column));
                check(valueBefore.invoke(changes, place, before));
                check(valueAfter.invoke(changes, place, after));
                var name = pointer(COLUMN, column, "name");
                out.printf("  %s%s %s %s\n", name.equals(MemorySegment.NULL) ? "?" : text(name),
                    column.get(JAVA_BOOLEAN, ADDRESS.byteSize()) ? "*" : "", shown(before), shown(after));
            }
        }
        close("binlogz_changes_close").invoke(changes);
    }

    void expand(MemorySegment path, MemorySegment output) throws Throwable {
        var summary = arena.allocate(SUMMARY);
        check(function("binlogz_expand", ADDRESS, ADDRESS, JAVA_BOOLEAN, ADDRESS).invoke(path, output, false, summary));
        out.printf("expanded %d transactions, %d bytes are %d\n", number(SUMMARY, summary, "transactions"),
            number(SUMMARY, summary, "bytes_read"), number(SUMMARY, summary, "bytes_written"));
    }

    public static void main(String[] arguments) throws Throwable {
        if (arguments.length != 3) {
            System.err.println("usage: Changes LIBRARY LOG OUTPUT");
            System.exit(2);
        }
        try (var arena = Arena.ofConfined()) {
            var example = new Changes(arena, arguments[0]);
            var path = arena.allocateFrom(arguments[1]);
            example.printPayloads(Files.readAllBytes(Path.of(arguments[1])));
            example.printChanges(path);
            example.expand(path, arena.allocateFrom(arguments[2]));
            example.out.flush();
        } catch (IllegalStateException error) {
            System.err.println(error.getMessage());
            System.exit(1);
        }
    }
}
