"""The package used wrongly, and over logs that are hostile: nothing crashes the interpreter, hangs it, or ends a log that goes on.

usage: attack.py LOGS    LOGS has log, deep, shared, bad_row, bomb, tables and mutants/NUMBER; python.rs makes them
"""

import contextlib
import gc
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import binlogz
from binlogz import _native

LOGS = pathlib.Path(sys.argv.pop())
LOG = str(LOGS / "log")
#: What a log that can't be read is; anything else is a bug.
REFUSED = (ValueError, OSError)
PATIENCE = 30


def rows(path):
    return [change.after or change.before for change in binlogz.open(path).changes()]


def in_child(script, *arguments, timeout=PATIENCE, memory=None):
    """What a program said that runs in an interpreter of its own."""

    def limit():
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    ran = subprocess.run(
        [sys.executable, "-c", "import binlogz, sys, os, time, signal, threading\n" + script, *map(str, arguments)],
        capture_output=True, text=True, timeout=timeout, preexec_fn=limit, cwd=LOGS,
    )  # fmt: skip
    return ran.returncode, ran.stdout.strip(), ran.stderr.strip()


@contextlib.contextmanager
def soon():
    """What goes on for ever ends the program, and says where it was."""
    import faulthandler

    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


class Lifetimes(unittest.TestCase):
    def test_objects_outlive_what_they_came_from(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "log")
            path.write_bytes(pathlib.Path(LOG).read_bytes())
            log = binlogz.open(str(path))
            transactions = [transaction for transaction in log]
            log.close()
            del log
        gc.collect()
        # The file is gone, the stream is closed: rows are made of what the objects hold.
        found = [change for transaction in transactions for change in transaction.changes]
        self.assertEqual([change.after or change.before for change in found], rows(LOG))
        tables = [change.table for change in found]
        del transactions, found
        gc.collect()
        self.assertTrue(all(table.columns and table.definitions and repr(table) for table in tables))

    def test_what_is_closed_has_ended(self):
        log = binlogz.open(LOG)
        log.close()
        log.close()
        self.assertEqual(list(log), [])
        self.assertEqual(list(log.changes()), [])
        with self.assertRaisesRegex(ValueError, "closed, or read before"):
            log.arrow("a.b")
        log = binlogz.open(LOG)
        changes = log.changes()
        next(changes)
        log.close()
        # What was read before may still come; then it ends.
        rest = len(list(changes))
        self.assertLess(rest, len(rows(LOG)))
        self.assertEqual(list(log.changes()), [])

    def test_iterators_are_dropped_amid_the_log(self):
        def threads():
            return len(os.listdir("/proc/self/task"))

        before = threads()
        for number in range(300):
            stream = iter(binlogz.open(LOG).changes())
            if number % 3:
                next(stream)
            del stream
        deadline = time.monotonic() + PATIENCE
        while threads() > before and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertLessEqual(threads(), before)

    def test_classes_are_not_made_by_hand(self):
        for name in ("Stream", "Rows", "Change", "Table", "ArrowRows"):
            with self.assertRaises(TypeError):
                getattr(_native, name)()
            with self.assertRaises((TypeError, AttributeError)):
                getattr(_native, name).__new__(getattr(_native, name)).table
        for paths in ([b"\xff"], [1], None, ["\0"], [""], ["/nowhere/at/all"]):
            with self.assertRaises((TypeError,) + REFUSED):
                list(_native.open_logs(paths))

    def test_a_forked_process_says_that_it_has_no_log(self):
        log = binlogz.open(LOG)
        changes = log.changes()
        next(changes)
        child = os.fork()
        if not child:
            code = 9
            try:
                for _ in log._stream:
                    pass
                code = 8
            except OSError as error:
                code = 0 if "another process" in str(error) else 7
            finally:
                os._exit(code)
        with soon():
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(1 + len(list(changes)), len(rows(LOG)))


class Threads(unittest.TestCase):
    def test_threads_share_a_stream(self):
        expected = sum(len(batch) for batch in binlogz.open(LOG)._stream)
        for _ in range(20):
            stream = binlogz.open(LOG)._stream
            counts = []

            def take():
                counts.append(sum(len(batch) for batch in stream))

            threads = [threading.Thread(target=take) for _ in range(8)]
            with soon():
                [thread.start() for thread in threads]
                [thread.join() for thread in threads]
            self.assertEqual(sum(counts), expected)

    def test_threads_share_rows_and_tables(self):
        transactions = list(binlogz.open(LOG))
        expected = [len(list(transaction.changes)) for transaction in transactions]
        failures = []

        def read():
            for _ in range(5):
                if [len(list(transaction.changes)) for transaction in transactions] != expected:
                    failures.append("rows")

        threads = [threading.Thread(target=read) for _ in range(8)]
        with soon():
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        self.assertEqual(failures, [])

    def test_close_ends_a_thread_that_waits(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo = os.path.join(folder, "log")
            os.mkfifo(fifo)
            log = binlogz.open(fifo)
            done = threading.Event()

            def read():
                list(log.changes())
                done.set()

            thread = threading.Thread(target=read, daemon=True)
            thread.start()
            time.sleep(0.2)
            self.assertFalse(done.is_set())
            log.close()
            self.assertTrue(done.wait(PATIENCE))
            # The thread that opens the pipe ends, too.
            with open(fifo, "wb"):
                pass

    def test_others_run_while_a_thread_waits_or_works(self):
        """A thread that waits, compresses or counts doesn't hold the interpreter's lock."""
        with tempfile.TemporaryDirectory() as folder:
            fifo = os.path.join(folder, "log")
            os.mkfifo(fifo)
            works = [
                lambda: list(binlogz.open(fifo).changes()),
                lambda: binlogz.stats(fifo),
                lambda: binlogz.compress(fifo, os.path.join(folder, "out")),
            ]
            for work in works:
                thread = threading.Thread(target=self.quiet, args=(work,))
                thread.start()
                turns = 0
                with soon():
                    while turns < 1000:
                        turns += 1
                        time.sleep(0)
                    self.assertTrue(thread.is_alive())
                    with open(fifo, "wb") as pipe:
                        pipe.write(pathlib.Path(LOG).read_bytes())
                    thread.join()

    @staticmethod
    def quiet(work):
        with contextlib.suppress(*REFUSED):
            work()

    def test_collecting_garbage_amid_a_batch_reads_the_same_stream(self):
        """A finalizer that runs while tables are made, and takes the same stream's next batch."""
        stream = binlogz.open(str(LOGS / "tables"))._stream

        class Trap:
            def __del__(self):
                next(stream, None)

        gc.set_threshold(1)
        try:
            with soon():
                for _ in range(50):
                    trap = Trap()
                    trap.itself = trap
                    del trap
                    if next(stream, None) is None:
                        break
        finally:
            gc.set_threshold(700, 10, 10)


class Interrupts(unittest.TestCase):
    def test_ctrl_c_ends_each_call_that_takes_long(self):
        calls = {
            "changes": "list(binlogz.open(sys.argv[1]).changes())",
            "stats": "binlogz.stats(sys.argv[1])",
            "compress": "binlogz.compress(sys.argv[1], sys.argv[2])",
            "expand": "binlogz.expand(sys.argv[1], sys.argv[2])",
            "arrow": "binlogz.open(sys.argv[1]).arrow('a.b')",
            "server": "list(binlogz.open('mysql://nobody@127.0.0.1:' + sys.argv[3]).changes())",
        }
        import socket

        # A server that takes the connection and says nothing.
        with socket.create_server(("127.0.0.1", 0)) as silent, tempfile.TemporaryDirectory() as folder:
            fifo, out = os.path.join(folder, "log"), os.path.join(folder, "out")
            os.mkfifo(fifo)
            for name, call in calls.items():
                script = f"""
# A program that a script starts in the background begins with SIGINT ignored, and Python leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    {call}
    print("done", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
os._exit(0)
"""
                code, said, told = in_child(script, fifo, out, silent.getsockname()[1])
                self.assertEqual((code, said), (0, "interrupted"), f"{name}: {told}")
            self.assertEqual(os.listdir(folder), ["log"], "nothing is left of what was interrupted")

    def test_an_interpreter_ends_while_threads_read(self):
        script = """
log = binlogz.open(sys.argv[1])
threading.Thread(target=lambda: list(log.changes()), daemon=True).start()
time.sleep(0.2)
"""
        with tempfile.TemporaryDirectory() as folder:
            fifo = os.path.join(folder, "log")
            os.mkfifo(fifo)
            code, _, told = in_child(script, fifo)
            self.assertEqual(code, 0, told)


class Hostile(unittest.TestCase):
    def test_documents_nested_without_end_are_refused(self):
        for name, expected in (("deep", "nesting"), ("shared", "shared by several values")):
            script = """
try:
    list(binlogz.open(sys.argv[1]).changes())
    print("read")
except ValueError as error:
    print(error)
"""
            code, said, told = in_child(script, LOGS / name, memory=2 << 30)
            self.assertEqual(code, 0, f"{name}: {told}")
            self.assertIn(expected, said, name)
            compat = script.replace(
                "list(binlogz.open(sys.argv[1]).changes())",
                "[event[10].compat() for batch in binlogz.open(sys.argv[1])._stream for event in batch"
                " if isinstance(event[10], binlogz._native.Rows)]",
            )
            code, said, told = in_child(compat, LOGS / name, memory=2 << 30)
            self.assertEqual(code, 0, f"{name}: {told}")
            self.assertIn(expected, said, name)

    def test_a_bomb_takes_what_its_row_takes(self):
        """22 KB that are a row of 512 MiB: some copies of it, and none of them kept."""
        script = """
import resource
sizes = [len(change.after["@1"]) for change in binlogz.open(sys.argv[1]).changes()]
print(*sizes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""
        code, said, told = in_child(script, LOGS / "bomb", timeout=120)
        self.assertEqual(code, 0, told)
        before, bomb, behind, peak = map(int, said.split())
        self.assertEqual((before, bomb, behind), (6, 512 << 20, 6))
        self.assertLess(peak, 3 * 512 + 200, "MiB")

    def test_rows_before_a_bad_one_come_and_the_error_tells_where(self):
        log = binlogz.open(str(LOGS / "bad_row"))
        found = []
        with self.assertRaisesRegex(ValueError, "row"):
            for change in log.changes():
                found.append(change.after["id"])
        self.assertEqual(found, [1])
        try:
            import pyarrow
        except ImportError:
            return
        reader = pyarrow.RecordBatchReader.from_stream(binlogz.open(str(LOGS / "bad_row")).arrow("shop.item"))
        found = []
        with self.assertRaisesRegex(Exception, "bad_row at .*row"):
            for batch in reader:
                found += [after["id"] for after in batch.column("after").to_pylist()]
        self.assertEqual(found, [1])

    def test_mutants(self):
        """Each damaged log: rows, or an error that is no bug; read to its end."""
        try:
            import pyarrow
        except ImportError:
            pyarrow = None
        folder = LOGS / "mutants"
        for name in sorted(os.listdir(folder), key=int):
            (LOGS / "now").write_text(name)
            path = str(folder / name)
            with soon():
                tables = set()
                with contextlib.suppress(*REFUSED):
                    for change in binlogz.open(path).changes():
                        repr(change)
                        tables.add(f"{change.schema}.{change.table_name}")
                with contextlib.suppress(*REFUSED):
                    for batch in binlogz.open(path)._stream:
                        for event in batch:
                            if isinstance(event[10], _native.Rows):
                                with contextlib.suppress(*REFUSED):
                                    event[10].compat()
                                    event[10].head
                with contextlib.suppress(*REFUSED):
                    binlogz.stats(path)
                for table in tables if pyarrow else ():
                    with contextlib.suppress(pyarrow.ArrowException, *REFUSED):
                        binlogz.open(path).to_arrow(table)


if __name__ == "__main__":
    unittest.main(verbosity=0)
