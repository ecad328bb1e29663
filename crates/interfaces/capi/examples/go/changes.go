// Prints the compressed transactions and the row changes of a binary log, and expands it.
//
// usage: changes LOG OUTPUT
//
//	CGO_CFLAGS=-I…/include CGO_LDFLAGS="-L…/target/release -lbinlogz" go build changes.go
package main

/*
#include <binlogz.h>
#include <stdlib.h>
*/
import "C"

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

const (
	magicSize          = 4
	typeAt             = 4
	sizeAt             = 9
	headerSize         = 19
	transactionPayload = 40
)

// The message belongs to the thread that called: each function that calls C stays on its thread.
func problem(status C.binlogz_status) error {
	if status == C.BINLOGZ_OK || status == C.BINLOGZ_END {
		return nil
	}
	return errors.New(C.GoString(C.binlogz_last_error()))
}

// A client gets events one by one from its connection; here they come from the file.
func printPayloads(out *bufio.Writer, log []byte) error {
	for log = log[magicSize:]; len(log) >= headerSize; {
		size := binary.LittleEndian.Uint32(log[sizeAt:])
		if size < headerSize || int(size) > len(log) {
			return errors.New("the event is cut off")
		}
		event := log[:size]
		log = log[size:]
		if event[typeAt] != transactionPayload {
			continue
		}
		var payload *C.binlogz_payload
		if err := problem(C.binlogz_payload_open((*C.uint8_t)(&event[0]), C.size_t(size), true, 0, &payload)); err != nil {
			return err
		}
		fmt.Fprintf(out, "payload of %d bytes:", size)
		var inside *C.uint8_t
		var length C.size_t
		for C.binlogz_payload_next(payload, &inside, &length) == C.BINLOGZ_OK {
			fmt.Fprintf(out, " %d/%d", unsafe.Slice((*byte)(inside), length)[typeAt], length)
		}
		fmt.Fprintln(out)
		C.binlogz_payload_close(payload)
	}
	return nil
}

func shown(value *C.binlogz_value) string {
	switch value.kind {
	case C.BINLOGZ_ABSENT:
		return "-"
	case C.BINLOGZ_INTEGER:
		return fmt.Sprint(int64(value.integer))
	case C.BINLOGZ_TIMESTAMP:
		return fmt.Sprintf("@%d", int64(value.integer))
	case C.BINLOGZ_NATURAL:
		return fmt.Sprint(uint64(value.natural))
	case C.BINLOGZ_REAL:
		return fmt.Sprintf("%.6e", float64(value.real))
	case C.BINLOGZ_TEXT:
		return fmt.Sprintf("'%s'", C.GoBytes(unsafe.Pointer(value.bytes), C.int(value.length)))
	case C.BINLOGZ_BYTES:
		return fmt.Sprintf("0x%x", C.GoBytes(unsafe.Pointer(value.bytes), C.int(value.length)))
	}
	return "NULL"
}

func printChanges(out *bufio.Writer, path *C.char) error {
	var changes *C.binlogz_changes
	if err := problem(C.binlogz_changes_open(path, nil, &changes)); err != nil {
		return err
	}
	defer C.binlogz_changes_close(changes)
	for {
		var change C.binlogz_change
		status := C.binlogz_changes_next(changes, &change)
		if status != C.BINLOGZ_OK {
			return problem(status)
		}
		gtid := "anonymous"
		if change.gtid != nil {
			gtid = C.GoString(change.gtid)
		}
		operation := []string{"insert", "update", "delete"}[change.operation]
		fmt.Fprintf(out, "%s %s %s %s.%s\n", C.GoString(change.position), gtid, operation,
			C.GoString(change.database), C.GoString(change.table))
		for place := C.size_t(0); place < change.columns; place++ {
			var column C.binlogz_column
			var before, after C.binlogz_value
			for _, status := range []C.binlogz_status{
				C.binlogz_changes_column(changes, place, &column),
				C.binlogz_changes_before(changes, place, &before),
				C.binlogz_changes_after(changes, place, &after),
			} {
				if err := problem(status); err != nil {
					return err
				}
			}
			name, key := "?", ""
			if column.name != nil {
				name = C.GoString(column.name)
			}
			if column.in_primary_key {
				key = "*"
			}
			fmt.Fprintf(out, "  %s%s %s %s\n", name, key, shown(&before), shown(&after))
		}
	}
}

func run(path, output string) error {
	runtime.LockOSThread()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	log, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := printPayloads(out, log); err != nil {
		return err
	}
	input, to := C.CString(path), C.CString(output)
	defer C.free(unsafe.Pointer(input))
	defer C.free(unsafe.Pointer(to))
	if err := printChanges(out, input); err != nil {
		return err
	}
	var summary C.binlogz_summary
	if err := problem(C.binlogz_expand(input, to, false, &summary)); err != nil {
		return err
	}
	fmt.Fprintf(out, "expanded %d transactions, %d bytes are %d\n", summary.transactions, summary.bytes_read, summary.bytes_written)
	return nil
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintf(os.Stderr, "usage: %s LOG OUTPUT\n", os.Args[0])
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
