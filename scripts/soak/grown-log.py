#!/usr/bin/env python3
"""Makes a long binary log of a short one: its transactions over and over, each with numbers and a time of its own.

Commit times go on, so the rate stays the same; sequence numbers differ, by which `advise` draws its sample. Positions are those of the short log.

usage: grown-log.py LOG BYTES OUT
"""
import struct
import sys
import zlib

MAGIC, HEADER, CHECKSUM = 4, 19, 4
STOP, ROTATE, FORMAT_DESCRIPTION, GTID, ANONYMOUS_GTID, PREVIOUS_GTIDS = 3, 4, 15, 33, 34, 35
# In a GTID event: last_committed and sequence_number, and the commit time of 7 bytes, whose highest bit says that there is another one.
NUMBERS = HEADER + 1 + 16 + 8 + 1
COMMITTED = NUMBERS + 16
COMMITTED_MAX = (1 << 55) - 1
SECOND = 1_000_000


def events(log):
    """Begin, end and type of each event."""
    at = MAGIC
    while at < len(log):
        size = struct.unpack_from("<I", log, at + 9)[0]
        yield at, at + size, log[at + 4]
        at += size


def committed(log, at):
    return int.from_bytes(log[at + COMMITTED:at + COMMITTED + 7], "little")


def main(path, size, out):
    log = open(path, "rb").read()
    found = list(events(log))
    start = next(begin for begin, _, kind in found if kind not in (FORMAT_DESCRIPTION, PREVIOUS_GTIDS))
    end = max(end for _, end, kind in found if kind not in (STOP, ROTATE))
    gtids = [(begin - start, end - start) for begin, end, kind in found if kind in (GTID, ANONYMOUS_GTID)]
    times = [committed(log, start + begin) & COMMITTED_MAX for begin, _ in gtids]
    step = max(times) - min(times) + SECOND
    with open(out, "wb") as grown:
        grown.write(log[:start])
        for copy in range(-(-(size - start) // (end - start))):
            part = bytearray(log[start:end])
            for begin, after in gtids:
                numbers = struct.unpack_from("<qq", part, begin + NUMBERS)
                struct.pack_into("<qq", part, begin + NUMBERS, *(number + copy * len(gtids) for number in numbers))
                time = committed(part, begin) + copy * step
                part[begin + COMMITTED:begin + COMMITTED + 7] = time.to_bytes(7, "little")
                struct.pack_into("<I", part, after - CHECKSUM, zlib.crc32(part[begin:after - CHECKSUM]))
            grown.write(part)


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
