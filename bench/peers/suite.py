"""The library that times device work (bench/gpu/c_api.h), for Python.

Kiln and its peers are measured by it in one process, on one stream, in the same rounds.
"""
import ctypes
import json

_CALL = ctypes.CFUNCTYPE(ctypes.c_int)


class SuiteError(RuntimeError):
    """What the library said."""


class Call:
    """A workload that is ready to be called by Kiln."""
    name = "kiln"

    def __init__(self, suite, index):
        self.suite = suite
        self.handle = suite.ask("kb_prepare", index)["handle"]

    def bind(self, stream, inputs, outputs):
        """Device addresses in the signature's order, None for what is not passed."""
        def addresses(values):
            return (ctypes.c_void_p * len(values))(*values)
        self.suite.ask("kb_bind", self.handle, ctypes.c_void_p(stream), addresses(inputs), len(inputs),
                       addresses(outputs), len(outputs))

    def run(self):
        self.suite.ask("kb_run", self.handle)

    def served_by(self):
        return self.suite.ask("kb_served_by", self.handle)["served_by"]

    def release(self):
        self.suite.ask("kb_release", self.handle)


class Product(Call):
    """A matrix product that is ready to be called by cuBLASLt; `d` is the tensor that it writes."""
    name = "cublaslt"

    def __init__(self, suite, stream, a, b, d):  # pylint: disable=super-init-not-called
        problem = {"m": a.shape[0], "n": b.shape[0], "k": a.shape[1], "dtype": str(d.dtype).removeprefix("torch.")}
        made = suite.ask("kb_cublaslt", json.dumps(problem).encode(), ctypes.c_void_p(stream),
                         *[ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, d)])
        self.suite, self.handle, self.d, self.kept = suite, made["handle"], d, (a, b)
        self.note = {"version": made["version"], "algorithms_tried": made["tried"]}


class Suite:
    def __init__(self, library, **options):
        self.lib = ctypes.CDLL(library)
        self.lib.kb_open.restype = ctypes.c_void_p
        self.lib.kb_result.restype = ctypes.c_char_p
        self.suite = ctypes.c_void_p(self.lib.kb_open(json.dumps(options).encode()))
        self._checked(0)

    def _checked(self, returned):
        result = json.loads(self.lib.kb_result(self.suite).decode())
        if isinstance(result, dict) and "error" in result:
            raise SuiteError(result["error"])
        assert returned == 0, result
        return result

    def ask(self, function, *arguments):
        """Calls a function of c_api.h; its result, or SuiteError."""
        return self._checked(getattr(self.lib, function)(self.suite, *arguments))

    def workloads(self, family):
        return self.ask("kb_workloads", family.encode())

    def machine(self, options):
        return self.ask("kb_machine", json.dumps(options).encode())

    def floor(self, options):
        return self.ask("kb_floor", json.dumps(options).encode())

    def device_state(self):
        return self.ask("kb_device_state")

    def prepare(self, index):
        return Call(self, index)

    def cublaslt(self, stream, a, b, d):
        return Product(self, stream, a, b, d)

    def host_us(self, stream, handle, calls, rounds):
        """Microseconds of the calling thread for one call, a figure a round; handle -1: the driver's launch alone."""
        return self.ask("kb_host_time", handle, ctypes.c_void_p(stream), calls, rounds)["us"]

    def measure(self, stream, size, contenders, options):
        """Timings of a copy that moves `size` bytes and of `contenders`: [(name, Call or function)].

        A function that raises costs its own figures; the exception's text is in its "error".
        """
        raised = {}

        def guarded(name, function):
            def call():
                try:
                    function()
                    return 0
                except Exception as e:  # pylint: disable=broad-except
                    raised.setdefault(name, f"{type(e).__name__}: {e}".split("\n")[0][:300])
                    return 1
            return _CALL(call)

        names, calls = [], []
        for name, what in contenders:
            is_ours = isinstance(what, Call)
            names.append(f"{what.name}:{what.handle}" if is_ours else name)
            calls.append(_CALL() if is_ours else guarded(name, what))
        timings = self.ask("kb_measure", ctypes.c_void_p(stream), ctypes.c_double(size), len(names),
                           (ctypes.c_char_p * len(names))(*[n.encode() for n in names]),
                           (_CALL * len(calls))(*calls), json.dumps(options).encode())
        for timing in timings:
            if timing["name"] in raised and "error" in timing:
                timing["error"] = raised[timing["name"]]
            elif timing["name"] in raised:
                timing["graph_error"] = raised[timing["name"]]
        return timings
