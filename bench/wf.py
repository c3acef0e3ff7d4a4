"""A thin ctypes view of libwarpfox for comparisons: append NumPy columns, run a query, fetch it as Arrow."""
import ctypes as C
import os

import numpy as np
import pyarrow as pa

HERE = os.path.dirname(os.path.abspath(__file__))


class Option(C.Structure):
    _fields_ = [("name", C.c_char_p), ("value", C.c_char_p)]


class Error(C.Structure):
    _fields_ = [("status", C.c_int), ("sqlstate", C.c_char * 6), ("message", C.c_char * 600),
                ("hint", C.c_char * 300), ("position", C.c_int64), ("line", C.c_int64), ("column", C.c_int64)]


class Input(C.Structure):
    _fields_ = [("values", C.c_void_p), ("nulls", C.c_void_p)]


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
    lib.wf_query.argtypes = [C.c_void_p, C.c_char_p, C.POINTER(C.c_void_p)]
    lib.wf_append.argtypes = [C.c_void_p, C.c_char_p, C.c_int64, C.c_int32, C.POINTER(Input)]
    lib.wf_result_arrow_stream.argtypes = [C.c_void_p, C.c_void_p]
    return lib


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
