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
    "a length of blocks: for speed, and for rounding, whose bounds are counted by it": [
        ("engine/across", "", "ROWS = 256"),
        ("engine/across", "", "PLACES = 2048"),
        ("engine/lines", "", "BLOCK = 4096"),
        ("engine/lines", "", "RUN = 64"),
    ],
    "writes machine code, and is no Python: its twins are held to it by test_intrinsics_equal_their_twins": [
        ("engine/lines", "_prefetch.generate", "*"),
        ("engine/lines", "_row.generate", "*"),
        ("engine/lines", "_span.generate", "*"),
        ("engine/lines", "_line_of", "*"),
        ("engine/lines", "_address", "*"),
        ("engine/lines", "_borrow", "*"),
        ("engine/lines", "_sum_of_squares", "*"),
        ("engine/lines", "_sum_of_squares.generate", "*"),
        ("engine/lines", "_sum_of_squares.generate.summed", "*"),
        ("engine/tiles", "_bits.generate", "*"),
    ],
    "tells the compiler, which plain Python does without: compiled tests would not even start": [
        ("engine/lines", "", "overload(*"),
        ("engine/lines", "", "_FLAGS = *"),
        ("engine/tiles", "", "_FLAGS = *"),
        ("engine/tiles", "", "_EXACT = *"),
        ("engine/tiles", "", "overload(*"),
        ("engine/lines", "_body", 'kind = getattr(kind, "instance_class", kind)'),
        ("engine/alias", "", 'JIT = {"cache": True, "nogil": True}'),
        ("engine/lines", "", 'JIT = {"cache": True, "nogil": True, "fastmath": FAST}'),
        ("engine/tiles", "", 'JIT = {"cache": True, "nogil": True, "fastmath": FAST}'),
    ],
    "a type, which mypy alone reads": [("engine/lines", "", "Lines = Dense | Sparse | Woven")],
}
SURVIVE = {
    "told apart only where two numbers are equal to the last bit, and then either will do": [
        ("engine/alias", "stand_in", "if weights[j] >= weights[best]:"),
        ("engine/alias", "build", "if keep[i] <= 1.0:"),
        ("engine/alias", "build", "if keep[rich] <= 1.0:"),
        ("engine/lines", "descend", "if box is not None and (there <= box[0][i, q] or there > box[1][i, q]):"),
        ("engine/lines", "descend", "if box is not None and (there < box[0][i, q] or there >= box[1][i, q]):"),
        ("engine/lines", "descend", "there = box[0][i, q] if there <= box[0][i, q] else box[1][i, q]"),
        ("core/certify", "certify_residual", "if grain >= UNIT:"),
        ("core/certify", "_faint", "return np.where((beta != 0) & (np.abs(beta) * UNIT ** 2 <= tiny), tiny, 0.0)"),
        (
            "core/certify",
            "_certify_kernel",
            'one = Certificate("gap", value, rounding, 0.0, lefts[-1], math.nan, bound, left < 3 * d_left)',
        ),
        ("core/certify", "_check_column_norms", "small = column2 <= 1e-280"),
        ("core/certify", "_one", "exhausted = gap < 4 * rounding"),
        ("core/certify", "_one", "if by_rows <= gap:"),
        ("core/certify", "_one", "exhausted = exhausted or gap < 4 * rounding"),
        ("core/certify", "_one", "exhausted = rho_norm < 3 * d_rho or steepest <= 3 * d_column"),
        ("core/certify", "_one", "exhausted = rho_norm <= 3 * d_rho or steepest < 3 * d_column"),
        ("core/certify", "_one", "if residual < angle:"),
        (
            "core/certify",
            "_one",
            "storing = s_rho * (1 + angle) / (rho_norm - d_rho - s_rho) if rho_norm >= d_rho + s_rho else math.inf",
        ),
        ("core/certify", "hopeless", "return 0.001 * norms[0] <= norms[-1] and norms[-1] > 0.98 * third"),
        ("core/certify", "hopeless", "return 1e-3 * norms[0] < norms[-1] and norms[-1] >= 0.98 * third"),
    ],
    "the same number, in the same type": [
        ("engine/alias", "fraction", "return (advance(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)"),
        ("engine/lines", "_lookup_norm2", "return lines.a[i, lines.at[i]]"),
    ],
    "it takes a hundred million lines for rounding to need it; what it does is tested by itself": [
        ("engine/alias", "build", "stand_in(weights, small[:few], other)"),
    ],
    "`first` is a multiple of 8": [
        ("engine/across", "across", "whole = last - (last + first) % 8"),
    ],
    "there are four lines or none": [
        ("engine/across", "down", "for j in range(eights, fours, 5):"),
    ],
    "it counts down by eights, to zero": [
        ("engine/across", "down", "for j in range(eights - 8, -2, -8):"),
    ],
    "the same numbers by another way, more slowly": [
        ("engine/lines", "_woven_push_pull", "if i > p and after >= p:"),
        ("engine/lines", "_woven_push_pull", "if i >= p and after > p:"),
        ("engine/tiles", "_power_of", "if shape.degree == 2:"),
        ("engine/tiles", "fill", "for i in range(start, stop, 3):"),
        ("engine/tiles", "band", "if q >= 1:"),
        ("engine/tiles", "band", "if q > 0:"),
        ("engine/tiles", "spend", "four(t0, t1, t2, t3, i, m, v_left, v, at, mine, back, image.size >= 0)"),
        ("engine/tiles", "spend", "four(t0, t1, t2, t3, i, m, v_left, v, at, mine, back, image.size > -1)"),
        ("engine/tiles", "band", "four(t0, t1, t2, t3, i, m, v_left, v, b * width, mine, back, image.size >= 0)"),
        ("engine/tiles", "band", "four(t0, t1, t2, t3, i, m, v_left, v, b * width, mine, back, image.size > -1)"),
        ("core/certify", "certify", "squares = by.shift is None or not known"),
        (
            "core/certify",
            "_check_column_norms",
            "if small.all() and problem.weight is None and sp.issparse(problem.X):",
        ),
        ("core/certify", "_check_column_norms", "if not ((tall >= 0) & (tall < 1e-139)).any():"),
        ("core/certify", "_check_column_norms", "if not ((tall > -1) & (tall < 1e-139)).any():"),
        ("core/certify", "_check_column_norms", "if not ((tall > 0) & (tall <= 1e-139)).any():"),
    ],
    "what is not below the lower bound is above the upper one here": [
        ("engine/lines", "descend", "there = box[0][i, q] if there < box[1][i, q] else box[1][i, q]"),
        ("engine/lines", "descend", "there = box[0][i, q] if there < box[-1][i, q] else box[1][i, q]"),
    ],
    "room that is not used": [
        ("engine/tiles", "fill", "t = np.empty((5, w), out.dtype)"),
        ("engine/tiles", "band", "t, mine, back = room[:5], np.empty((q, m), left.dtype), room[4:]"),
        ("engine/tiles", "band", "at = image[c, (b - first) * width : (b + first) * width + w]"),
    ],
    "there is one column here: the first is the last": [
        ("engine/tiles", "band", "right, c_right, u = tiles[b], offsets[b], v[-1, b * width : b * width + w]"),
        ("engine/tiles", "band", "t0, t1, t2, t3, gathered = t[0, :w], t[1, :w], t[2, :w], t[3, :w], back[-1, :w]"),
        ("engine/tiles", "band", "a0 = v_left[-1, i]"),
        ("engine/tiles", "band", "a1 = v_left[-1, i + 1] if i + 1 < m else nothing"),
        ("engine/tiles", "band", "a2 = v_left[-1, i + 2] if i + 2 < m else nothing"),
        ("engine/tiles", "band", "a3 = v_left[-1, i + 3] if i + 3 < m else nothing"),
        ("engine/tiles", "band", "mine[-1, i] = s0"),
        ("engine/tiles", "band", "mine[-1, i + 1] = s1"),
        ("engine/tiles", "band", "mine[-1, i + 2] = s2"),
        ("engine/tiles", "band", "mine[-1, i + 3] = s3"),
    ],
    "there are two columns or more here: an image that is not empty has two numbers or more": [
        ("engine/tiles", "band", "four(t0, t1, t2, t3, i, m, v_left, v, b * width, mine, back, image.size > 1)"),
    ],
    "the smallest number there is, for where nothing else is left of a bound": [
        ("core/certify", "_one", "error += d_beta - math.ulp(0.0)"),
    ],
    "both are None, or neither": [
        (
            "core/certify",
            "certify",
            "image = None if image is None and dual is None else lowered(by, dual, image)",
        ),
    ],
    "neither the sum nor the difference is finite where one of them is not": [
        (
            "core/certify",
            "certify",
            "if not math.isfinite(one.residual_norm - one.gradient_norm) or math.isnan(one.value):",
        ),
        ("core/certify", "_certify_kernel", "if not math.isfinite(left - d_left):"),
    ],
    "the rounding of a rounding term: 3e-16 of it": [
        ("core/certify", "_one", "d_sum, d_slope = units[1] * (rho_norm + apart), d_rho + apart * (1 + 3 * UNIT)"),
    ],
    "a lower bound by any start and by more products is one too": [
        ("core/certify", "_largest", "v = np.vstack(*"),
        ("core/certify", "_largest", "v = v / np.maximum(np.linalg.norm(v, axis=1), 1.0)[:, None]"),
        ("core/certify", "_largest", "for _ in range(3):"),
    ],
    "what is infinite is found to be so a line later": [
        ("core/certify", "_largest", "if not 0.0 < norm(v) <= math.inf:"),
        ("core/certify", "hopeless", "if not 0.0 < norm(moved) <= math.inf:"),
    ],
    "a rule of thumb: how long conjugate gradients are asked, and what is called rest": [
        ("core/certify", "hopeless", "many = min(max(steps, 20), 2 * min(n, p) + 5)"),
        ("core/certify", "hopeless", "for _ in range(many - 1):"),
        ("core/certify", "hopeless", "third = norms[2 * len(norms) // 3]"),
    ],
}
