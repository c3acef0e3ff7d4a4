"""Where faults are tried: a copy of the tree, three builds of it, the tests, and which lines each test runs.

The library is one shared object, so that a fault costs the objects that contain it and one link; the test programs
are built once. The builds: `cov` counts lines, `plain` is fast, `san` has the sanitizers. All are test builds
(WF_HARD), in which rare paths need few rows.
"""
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

FLAVOURS = {
    "cov": ["-O0", "--coverage"],
    "plain": ["-O1"],
    "san": ["-O1", "-fsanitize=address,undefined", "-fno-omit-frame-pointer"],
}
MEMORY = 6 << 30  # a fault must not take the machine's
LEFT_OUT = re.compile(r"src/gpu/(cub/|gpu_cub|gpu_images|cu_check|kernels/prelude)|src/host/(case_map|normal_)|src/defs/pow10")
COMMON = ["-std=c11", "-w", "-fPIC", "-ffp-contract=off", "-DWF_HARD=1"]


class BuildFailed(Exception):
    pass


class Lab:
    def __init__(self, root, folder, say):
        self.root, self.folder, self.say = root, folder, say
        self.tree, self.conf = os.path.join(folder, "tree"), os.path.join(folder, "conf")
        self.mold = ["-fuse-ld=mold"] if shutil.which("mold") else []
        self.tests, self.units, self.depends, self.kernel_text = [], {}, {}, {}

    # ---- the copy ----
    def refresh(self):
        """Makes the copy like the tree; returns whether anything changed."""
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=self.root, check=True,
                               capture_output=True, text=True).stdout.split("\n")
        wanted = {n for n in names if n and os.path.isfile(os.path.join(self.root, n))}
        changed = set()
        for name in wanted:
            with open(os.path.join(self.root, name), "rb") as f:
                data = f.read()
            path = os.path.join(self.tree, name)
            old = None
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    old = f.read()
            if old != data:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as f:
                    f.write(data)
                shutil.copymode(os.path.join(self.root, name), path)
                changed.add(name)
        for folder, _, files in os.walk(self.tree):
            for file in files:
                path = os.path.join(folder, file)
                if os.path.relpath(path, self.tree) not in wanted:
                    os.remove(path)
                    changed.add(os.path.relpath(path, self.tree))
        return changed

    # ---- building ----
    def configure(self):
        for command in (["cmake", "-S", self.tree, "-B", self.conf, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                         "-DWF_AOT=OFF"],
                        ["ninja", "-C", self.conf, "embed", "gen/codes/op.h"]):  # with it the other numbers
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise BuildFailed(done.stdout + done.stderr)
        with open(os.path.join(self.conf, "build.ninja")) as f:  # not through ninja, which would build the library first
            for command in re.findall(r"COMMAND = (.*/embed .*)", f.read()):
                subprocess.run(command, shell=True, check=True)
        with open(os.path.join(self.conf, "compile_commands.json")) as f:
            commands = json.load(f)
        self.units, programs = {}, {}
        for entry in commands:
            target = re.search(r"-o CMakeFiles/([^/]+)\.dir/", entry["command"]).group(1)
            flags = re.findall(r"(?<= )(?:-D\S+|-I\S+|-isystem \S+|-march=\S+)", entry["command"])
            flags = [w for f in flags for w in f.replace('\\"', '"').split()]
            stem = re.sub(r"\W", "_", os.path.relpath(entry["file"], self.folder)) + "_" + target + ".o"
            unit = (entry["file"], flags, stem, target)
            if target == "wf_cu_check":
                continue
            if target == "wf_objects" or target.startswith("wf_vec_"):
                self.units[stem] = unit
            else:
                programs.setdefault(target, []).append(unit)
        self.programs = {t: u for t, u in programs.items()
                         if t in ("runner", "fuzz", "warpfox", "cuda-simt")
                         or t.startswith("test_") and t != "test_simt"}  # that tests the tests

    def compile(self, flavour, unit, out, extra=(), tree=None):
        file, flags, stem, target = unit
        if tree:
            file, flags = file.replace(self.tree, tree), [f.replace(self.tree, tree) for f in flags]
        with_flags = FLAVOURS[flavour]
        if target == "cuda-simt":  # it is not what is tested, and every access of a kernel passes through it
            with_flags = ["-O2"] + (["-fsanitize=address"] if flavour == "san" else [])
        elif flavour == "cov" and not target.startswith("wf_"):
            with_flags = ["-O0"]
        command = ["ccache"] if shutil.which("ccache") and extra else []
        command += ["gcc", *COMMON, *with_flags, *flags, *extra, "-c", file, "-o", os.path.join(out, stem)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        if done.returncode:
            raise BuildFailed(done.stderr)

    def folder_of(self, flavour):
        path = os.path.join(self.folder, flavour)
        os.makedirs(path, exist_ok=True)
        return path

    def link_library(self, flavour, objects, out):
        sanitize = [f for f in FLAVOURS[flavour] if f.startswith(("-fsanitize", "--coverage"))]
        command = ["gcc", "-shared", *self.mold, *sanitize, "-Wl,-Bsymbolic", "-o", out, *objects,
                   *self.libraries(["WF_PG_QUERY", "WF_Z", "WF_ZSTD"]),
                   "-lm", "-ldl", "-pthread"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise BuildFailed(done.stderr)

    def libraries(self, names):
        with open(os.path.join(self.conf, "CMakeCache.txt")) as f:
            cache = f.read()
        return [v for n in names for v in re.findall(rf"^{n}:FILEPATH=(.+)$", cache, re.M) if "NOTFOUND" not in v]

    def build(self, flavour):
        """All of one flavour, as far as it is older than what it is made from."""
        out = self.folder_of(flavour)
        newest, stale = {}, []
        for unit in list(self.units.values()) + [u for units in self.programs.values() for u in units]:
            path, depends = os.path.join(out, unit[2]), os.path.join(out, unit[2] + ".d")
            if not (os.path.exists(path) and os.path.exists(depends) and self.fresh(path, depends, newest)):
                stale.append(unit)
        with ThreadPoolExecutor(2 * os.cpu_count()) as pool:
            list(pool.map(lambda u: self.compile(flavour, u, out, ("-MMD", "-MF", os.path.join(out, u[2] + ".d"))), stale))
        library = os.path.join(out, "libwf.so")
        if stale or not os.path.exists(library):
            self.link_library(flavour, [os.path.join(out, s) for s in self.units], library)
            self.link_programs(flavour, out)
        self.depends = {}
        for stem in self.units:
            with open(os.path.join(out, stem + ".d")) as f:
                for name in f.read().replace("\\\n", " ").split()[1:]:
                    self.depends.setdefault(os.path.normpath(os.path.join(self.folder, name)), set()).add(stem)
        return stale

    def fresh(self, path, depends, newest):
        made = os.path.getmtime(path)
        with open(depends) as f:
            names = f.read().replace("\\\n", " ").split()[1:]
        for name in names:
            if name not in newest:
                full = os.path.join(self.folder, name)
                newest[name] = os.path.getmtime(full) if os.path.exists(full) else float("inf")
            if newest[name] > made:
                return False
        return True

    def link_programs(self, flavour, out):
        sanitize = [f for f in FLAVOURS[flavour] if f.startswith("-fsanitize")]
        for target, units in self.programs.items():
            objects = [os.path.join(out, u[2]) for u in units]
            command = ["gcc", *self.mold, *sanitize, *objects]
            if target == "cuda-simt":
                command += ["-shared", "-fsanitize=address"] if sanitize else ["-shared"]
                command += ["-o", os.path.join(out, "libcuda-simt.so"), "-ldl", "-lm", "-pthread"]
            else:
                command += ["-o", os.path.join(out, target), "-L", out, "-lwf", "-lm", "-ldl", "-pthread"]
                command += ["-lcmocka"] if target.startswith("test_") else []
                command += self.libraries(["WF_EDIT", "WF_TINFO", "WF_BSD", "WF_MD"]) if target == "warpfox" else []
                command += self.libraries(["WF_PQ"]) if target == "fuzz" else []
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise BuildFailed(target + ": " + done.stderr)

    def embedded(self):
        """{name in #include: path} of the kernel text."""
        if not self.kernel_text:
            with open(os.path.join(self.tree, "src/gpu/embed.cmake")) as f:
                self.kernel_text = {n: "src/" + p for n, p in re.findall(r"^\s+(\S+?)=([^\s)]+)", f.read(), re.M)}
        return self.kernel_text

    # ---- tests ----
    def list_tests(self):
        scripts = sorted(glob.glob("tests/sql/*/*.test", root_dir=self.tree))
        gpu = {"GPU": "1"}
        self.tests = [("scripts", ["runner", "--cell", "cpu", *scripts], {}),
                      ("scripts, all CPU cells", ["runner", "--cpu", *scripts], {}),
                      ("scripts, gpu vm", ["runner", "--cell", "gpu vm", *scripts], gpu),
                      ("random queries", ["fuzz", "--count", "300", "--seed", "1", "--no-reduce"], {}),
                      ("tpch answers", ["warpfox", "bench", "tpch", "--sf", "0.01", "--runs", "1"], {}),
                      ("shell", ["SHELL"], {})]
        for name in sorted(self.programs):
            if name.startswith("test_"):
                self.tests.append((name, [name], gpu))

    def kernels_of(self, test):
        """The files of kernel text that a test compiles."""
        names = os.path.join(self.folder, "names")
        open(names, "w").close()
        cache = os.path.join(self.folder, "names-cache")  # what is found there is not compiled
        shutil.rmtree(cache, ignore_errors=True)
        extra = {"SIMT_NAMES": names, "WARPFOX_CACHE": cache}
        Lane(self, 0).run_test("plain", test, self.folder_of("plain"), 900, extra=extra)
        with open(names) as f:
            seen = {os.path.basename(line.strip()) for line in f}
        return [path for name, path in self.embedded().items() if os.path.basename(name) in seen]

    # ---- which lines each test runs ----
    def cover(self, test):
        """{file: {line: run}} of one test."""
        data = os.path.join(self.folder, "counts")
        shutil.rmtree(data, ignore_errors=True)
        os.makedirs(data)
        cov = self.folder_of("cov")
        seconds, passed, _ = Lane(self, 0).run_test("cov", test, cov, 900, coverage=data)
        for note in glob.glob(os.path.join(cov, "*.gcno")):
            os.symlink(note, os.path.join(data, os.path.basename(note)))
        counts = sorted(glob.glob(os.path.join(data, "*.gcda")))
        lines = {}
        done = subprocess.run(["gcov", "-t", "-j", *counts], cwd=data, capture_output=True, text=True)
        for document in done.stdout.splitlines():
            if not document.startswith("{"):
                continue
            for file in json.loads(document)["files"]:
                path = os.path.normpath(os.path.join(self.folder, file["file"]))
                if not path.startswith(self.tree + "/src/"):
                    continue
                seen = lines.setdefault(os.path.relpath(path, self.tree), {})
                for line in file["lines"]:
                    number = line["line_number"]
                    seen[number] = seen.get(number, False) or line["count"] > 0
        return seconds, passed, lines


class Lane:
    """One of several that try faults at the same time: a copy of the copy, and what its tests write."""

    def __init__(self, lab, number):
        self.lab, self.number, self.running = lab, number, None
        self.folder = os.path.join(lab.folder, f"lane{number}")
        self.tree = os.path.join(self.folder, "tree")
        self.tmp = os.path.join(self.folder, "tmp")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.tmp)
        shutil.copytree(lab.tree, self.tree)
        for path in glob.glob(os.path.join(self.tree, "tests/sql/*/*.test")):
            with open(path, "rb") as f:
                data = f.read()
            with open(path, "wb") as f:  # files in /tmp would meet those of another run
                f.write(data.replace(b"/tmp/", self.tmp.encode() + b"/"))

    def build_fault(self, flavour, path, text):
        """The library with `text` as the file `path`; returns its folder."""
        lab, out = self.lab, os.path.join(self.folder, flavour)
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        where = os.path.join(self.tree, path)
        with open(where) as f:
            old = f.read()
        try:
            with open(where, "w") as f:
                f.write(text)
            stems = set(lab.depends.get(os.path.join(lab.tree, path), ()))
            for stem in stems:
                lab.compile(flavour, lab.units[stem], out, tree=self.tree)
            if path in lab.embedded().values():
                stems |= {s for s in lab.units if "embedded_c" in s}
                self.embed(flavour, out)
        finally:
            with open(where, "w") as f:
                f.write(old)
        pristine = lab.folder_of(flavour)
        objects = [os.path.join(out if s in stems else pristine, s) for s in lab.units]
        lab.link_library(flavour, objects, os.path.join(out, "libwf.so"))
        return out

    def embed(self, flavour, out):
        """The kernel text, as the fault leaves it."""
        lab, made = self.lab, os.path.join(out, "embedded.c")
        pairs = [f"{name}={os.path.join(self.tree, path)}" for name, path in lab.embedded().items()]
        subprocess.run([os.path.join(lab.conf, "embed"), made, *pairs], check=True)
        for _, flags, stem, target in lab.units.values():
            if "embedded_c" in stem:
                lab.compile(flavour, (made, flags, stem, target), out)

    def run_test(self, flavour, test, library, limit, coverage=None, extra=None):
        """(seconds, passed, how it ended)."""
        name, argv, needs = test
        out = self.lab.folder_of(flavour)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("WARPFOX", "SIMT"))}
        env.update(LD_LIBRARY_PATH=library, HOME=self.tmp, TMPDIR=self.tmp, FUZZ_SECONDS="2", SIMT_FILL="4M", START_UP_US="900000",
                   SIMT_CXX="0", SIMT_CACHE=os.path.join(self.lab.folder, "simt-cache"),
                   WARPFOX_CACHE=os.path.join(self.folder, "kernel-cache"),
                   ASAN_OPTIONS="detect_stack_use_after_return=0",
                   UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=0")
        if "GPU" in needs:
            env["WARPFOX_CUDA"] = os.path.join(out, "libcuda-simt.so")
        unbuffered = glob.glob("/usr/libexec/coreutils/libstdbuf.so")
        if unbuffered and flavour == "plain":
            env.update(LD_PRELOAD=unbuffered[0], _STDBUF_O="L")
        env.update(extra or {})
        for folder in (env["SIMT_CACHE"], env["WARPFOX_CACHE"]):
            os.makedirs(folder, exist_ok=True)
        if coverage:
            env.update(GCOV_PREFIX=coverage, GCOV_PREFIX_STRIP="99")
        if argv[0] == "SHELL":
            command = [os.path.join(self.tree, "tests/shell/run.sh"), os.path.join(out, "warpfox")]
        else:
            command = [os.path.join(out, argv[0]), *argv[1:]]

        def limits():
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 30, 2 << 30))

        log = os.path.join(self.folder, "test.log")
        start = time.monotonic()
        with open(log, "wb") as sink:
            process = subprocess.Popen(command, cwd=self.tree, env=env, stdin=subprocess.DEVNULL, stdout=sink,
                                       stderr=subprocess.STDOUT, preexec_fn=limits)
            self.running, how = process, None
            while how is None:
                try:
                    code = process.wait(timeout=0.1)
                    how = "failed" if code > 0 else "crashed" if code < 0 else ""
                except subprocess.TimeoutExpired:
                    how = "hung" if time.monotonic() - start > limit else self.trouble(process.pid, log)
            self.stop()
            process.wait()
        return time.monotonic() - start, not how, how

    def stop(self):
        """Ends the test under way with all that it started."""
        if self.running:
            try:
                os.killpg(self.running.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.running = None

    def trouble(self, pid, log):
        """A process that need not go on: a script has failed, or it takes too much memory."""
        with open(log, "rb") as f:
            if f.read(5) == b"FAIL ":
                return "failed"
        try:
            with open(f"/proc/{pid}/statm") as f:
                return "took too much memory" if int(f.read().split()[1]) * 4096 > MEMORY else None
        except (OSError, IndexError):
            return None
