"""A thin ctypes view of libwarpfox for comparisons: append NumPy columns, run a query, fetch it as Arrow."""
import ctypes as C
import os

try:
    import numpy as np
    import pyarrow as pa
except ImportError: # run and row need neither
    np = pa = None

HERE = os.path.dirname(os.path.abspath(__file__))


class Option(C.Structure):
    _fields_ = [("name", C.c_char_p), ("value", C.c_char_p)]


class Error(C.Structure):
    _fields_ = [("status", C.c_int), ("sqlstate", C.c_char * 6), ("message", C.c_char * 600),
                ("hint", C.c_char * 300), ("position", C.c_int64), ("line", C.c_int64), ("column", C.c_int64)]


class Input(C.Structure):
    _fields_ = [("values", C.c_void_p), ("nulls", C.c_void_p)]


class Array(C.Structure):
    """wf_array; type 3 is u64."""
    _fields_ = [("type", C.c_int), ("data", C.c_void_p), ("count", C.c_int64), ("bytes", C.c_void_p), ("byte_count", C.c_int64)]


class JoinSide(C.Structure):
    _fields_ = [("keys", Array), ("columns", C.POINTER(Array)), ("column_count", C.c_int)]


class JoinSpec(C.Structure):
    _fields_ = [("algorithm", C.c_int), ("kind", C.c_int), ("band", C.c_int), ("width", C.c_uint64), ("sequential", C.c_int),
                ("want_rows", C.c_int), ("memory_limit", C.c_int64), ("r", JoinSide), ("s", JoinSide)]


class JoinOut(C.Structure):
    _fields_ = [("keys", Array), ("r_columns", C.POINTER(Array)), ("s_columns", C.POINTER(Array)), ("r_rows", Array),
                ("s_rows", Array)]


class ArrowArrayStream(C.Structure):
    _fields_ = [("f", C.c_void_p * 5)]


def load(path=None):
    lib = C.CDLL(path or os.path.join(HERE, "..", "build", "libwarpfox.so"))
    lib.wf_connection_error.restype = C.POINTER(Error)
    lib.wf_result_time_ns.restype = C.c_int64
    lib.wf_result_row_count.restype = C.c_int64
    lib.wf_result_devices.restype = C.c_char_p
    for name in ("wf_connection_error", "wf_disconnect", "wf_close", "wf_result_close", "wf_result_time_ns",
                 "wf_result_row_count", "wf_result_devices"):
        getattr(lib, name).argtypes = [C.c_void_p]
    lib.wf_value_text.restype = C.c_size_t
    lib.wf_query.argtypes = [C.c_void_p, C.c_char_p, C.POINTER(C.c_void_p)]
    lib.wf_append.argtypes = [C.c_void_p, C.c_char_p, C.c_int64, C.c_int32, C.POINTER(Input)]
    lib.wf_result_arrow_stream.argtypes = [C.c_void_p, C.c_void_p]
    return lib


def u64_array(values):
    return Array(3, values.ctypes.data, len(values), None, 0)


class Joiner:
    """wf_prim_join of u64 arrays on the CPU: keys and one column a side; the outputs stay."""

    def __init__(self, connection, rows):
        self.lib, self.prim = connection.lib, C.c_void_p()
        self.lib.wf_prim_close.argtypes = [C.c_void_p]
        self.lib.wf_prim_join.argtypes = [C.c_void_p, C.c_int, C.POINTER(JoinSpec), C.POINTER(JoinOut), C.POINTER(C.c_int64)]
        self.out = [np.zeros(rows, dtype=np.uint64) for _ in range(3)]
        if self.lib.wf_prim_open(connection.db, C.byref(self.prim)):
            raise RuntimeError("wf_prim_open")

    def join(self, algorithm, r, s):
        """Sides are (keys, column); the number of rows."""
        columns = [u64_array(side[1]) for side in (r, s)]
        sides = [JoinSide(u64_array(side[0]), C.pointer(c), 1) for side, c in zip((r, s), columns)]
        spec = JoinSpec(algorithm, 0, 0, 0, 0, 0, 0, *sides)
        keys, a, b = (u64_array(o) for o in self.out)
        none, count = Array(3, None, 0, None, 0), C.c_int64()
        out = JoinOut(keys, C.pointer(a), C.pointer(b), none, none)
        if self.lib.wf_prim_join(self.prim, 0, C.byref(spec), C.byref(out), C.byref(count)):
            raise RuntimeError("wf_prim_join")
        return count.value

    def close(self):
        self.lib.wf_prim_close(self.prim)


class Connection:
    """One in-memory database with one connection."""

    def __init__(self, lib=None, **options):
        self.lib = lib or load()
        items = [Option(k.encode(), str(v).encode()) for k, v in options.items()] + [Option(None, None)]
        array = (Option * len(items))(*items)
        self.db, self.conn, error = C.c_void_p(), C.c_void_p(), Error()
        if self.lib.wf_open(None, array, C.byref(self.db), C.byref(error)):
            raise RuntimeError(error.message.decode())
        self.lib.wf_connect(self.db, C.byref(self.conn))

    def check(self, status):
        if status:
            error = self.lib.wf_connection_error(self.conn).contents
            raise RuntimeError(f"{error.sqlstate.decode()}: {error.message.decode()}")

    def run(self, sql):
        self.check(self.lib.wf_query(self.conn, sql.encode(), None))

    def row(self, sql):
        """The one row of an answer, as texts."""
        result, batch, text = C.c_void_p(), C.c_void_p(), C.create_string_buffer(1000)
        self.check(self.lib.wf_query(self.conn, sql.encode(), C.byref(result)))
        try:
            self.check(self.lib.wf_result_next_batch(result, C.byref(batch)))
            row = []
            for column in range(self.lib.wf_result_column_count(result)):
                self.lib.wf_value_text(batch, column, C.c_int64(0), text, C.c_size_t(len(text)))
                row.append(text.value.decode())
            return row
        finally:
            self.lib.wf_result_close(result)

    def arrow_reader(self, sql):
        """The rows as a stream of batches."""
        result = C.c_void_p()
        self.check(self.lib.wf_query(self.conn, sql.encode(), C.byref(result)))
        stream = ArrowArrayStream()
        try:
            self.check(self.lib.wf_result_arrow_stream(result, C.addressof(stream)))
            return pa.RecordBatchReader._import_from_c(C.addressof(stream))
        finally:
            self.lib.wf_result_close(result)

    def arrow(self, sql):
        return self.arrow_reader(sql).read_all()

    def append(self, table, columns):
        arrays = [np.ascontiguousarray(c) for c in columns]
        inputs = (Input * len(arrays))(*[Input(a.ctypes.data, None) for a in arrays])
        self.check(self.lib.wf_append(self.conn, table.encode(), len(arrays[0]), len(arrays), inputs))

    def close(self):
        self.lib.wf_disconnect(self.conn)
        self.lib.wf_close(self.db)
