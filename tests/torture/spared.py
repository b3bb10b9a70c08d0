"""Mutants that no test needs to kill, each with its reason: what mutants.py sets aside, and survivors it expects.

A place is a module, a function, and a line: as it is, as a mutant has it, or how it begins and "*".
"""

ASIDE = {
    "asks for memory ahead of time: speed only": [
        ("engine/lines", "_dense_ahead", "*"),
        ("engine/lines", "_sparse_ahead", "*"),
        ("engine/lines", "ahead", "*"),
        ("engine/lines", "", "AHEAD = 8"),
        ("engine/lines", "", "CACHE_LINE = 64"),
        ("engine/lines", "descend", "ahead(lines, picks, t, sq)"),
        ("engine/lines", "descend", "fetch(diag, picks[min(t + AHEAD, end)], 0)"),
        ("engine/lines", "descend", "if q == 0:"),
        ("engine/lines", "descend", "end = picks.size - 1"),
    ],
    "writes machine code, and is no Python: its twins are held to it by test_intrinsics_equal_their_twins": [
        ("engine/lines", "_prefetch.generate", "*"),
        ("engine/lines", "_row.generate", "*"),
        ("engine/lines", "_span.generate", "*"),
        ("engine/lines", "_line_of", "*"),
        ("engine/lines", "_address", "*"),
        ("engine/lines", "_borrow", "*"),
        ("engine/tiles", "_bits.generate", "*"),
    ],
    "tells the compiler, which plain Python does without: compiled tests would not even start": [
        ("engine/lines", "", "overload(*"),
        ("engine/tiles", "", "overload(*"),
        ("engine/alias", "", 'JIT = {"cache": True, "nogil": True}'),
        ("engine/lines", "", 'JIT = {"cache": True, "nogil": True, "fastmath": FAST}'),
        ("engine/tiles", "", 'JIT = {"cache": True, "nogil": True, "fastmath": FAST}'),
    ],
}
SURVIVE: dict[str, list[tuple[str, str, str]]] = {}
