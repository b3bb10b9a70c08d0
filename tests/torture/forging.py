"""Forged files: bytes, zips, trees and arrays that are wrong in one place or in several, with checksums that are right.

Everything is drawn from a `random.Random`, so that a seed and a number tell which file it was.
"""

import ast
import json
import math
import struct
import zlib
from typing import NamedTuple

import numpy as np

# fmt: off
EVIL = "</script><img src=x onerror=alert(1)>\x1b[31m\x00'\"\u2028{{x}}"
NUMBERS = [0, 1, -1, 2, 64, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, -(2**63), 10**12, 10**30, -(10**18)]
FLOATS = [0.0, -0.0, 0.5, -1.0, 5e-324, 1e308, -1e308, math.nan, math.inf, -math.inf]
TEXTS = [
    "", EVIL, "9" * 400, "é" * 300, "x", "rbf", "os.system", "__class__", "../../evil", "/etc/passwd", "0", "None",
]
NAMES = [
    "", "\x00.npy", "0.npy\x00.py", "a" * 3000, "x/", ".", "a\\b", "../evil.npy", "/tmp/evil.npy", "0.npy", "99.npy",
    "model.json", "checkpoint.json", "C:evil", "é.npy", "-1.npy", "00.npy", "0.NPY", "__init__.py", "con",
]
TAGS = [
    "$array", "$scalar", "$float", "$tuple", "$dict", "$objects", "$masked", "$sparse", "$status", "$is",
    "$function", "$labels", "$unpack", "$", "$_is",
]
KINDS = [
    "RBF", "Sum", "Result", "Certificate", "History", "Plan", "Calibration", "Popen", "Function", "Precomputed",
    "Matern",
]
DTYPES = [
    "<f8", ">f8", "<f4", "<f2", "<i8", "<i4", "|i1", "<u8", "|b1", "<c16", "<U1", "<U0", "|S8", "|O", "|V0", "|V8",
    "<M8[ns]", "<m8", "<U999999999", "<f16", "f8", "=f8", "float64", "<x9", "", "<f8,<f8", "O", "<f-8", "<U-1",
]
# fmt: on


class Part(NamedTuple):
    """A member of a zip, with whatever its headers are to say that is not so."""

    name: bytes
    content: bytes
    flags: int = 0
    method: int = 0
    lies: tuple = ()  # pairs (field, value): crc, packed, size, offset, mode, extra, needs


def zipped(parts, *, count=None, where=None, length=None, comment=b"", before=b"", disk=0, large=False):
    """A zip of these parts; without lies it is one that zipfile reads."""
    body, table = bytearray(before), bytearray()
    for part in parts:
        lies = dict(part.lies)
        content = part.content
        if part.method == 8 and "raw" not in lies:
            squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
            content = squeeze.compress(content) + squeeze.flush()
        told = [lies.get("crc", zlib.crc32(part.content)), lies.get("packed", len(content))]
        told = [one & 0xFFFFFFFF for one in (*told, lies.get("size", len(part.content)))]
        name, extra, at = part.name[:60_000], lies.get("extra", b"")[:5000], lies.get("offset", len(body)) & 0xFFFFFFFF
        fixed = struct.pack("<HHHHHIII", lies.get("needs", 20), part.flags, part.method, 0, 33, *told)
        inner = lies.get("inner", name)  # what the local header calls it
        body += b"PK\x03\x04" + fixed + struct.pack("<HH", len(inner), len(extra)) + inner + extra + content
        table += b"PK\x01\x02" + struct.pack("<H", 0x0314) + fixed
        table += struct.pack("<HHHHHII", len(name), len(extra), 0, 0, 0, lies.get("mode", 0) & 0xFFFFFFFF, at)
        table += name + extra
    found = [min(len(parts), 0xFFFF) if count is None else count & 0xFFFF] * 2
    end = struct.pack("<HHHH", disk, disk, *found)
    end += struct.pack(
        "<II", len(table) if length is None else length & 0xFFFFFFFF, len(body) if where is None else where
    )
    if large:  # 64-bit sizes, that say something else
        bogus = struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 2**40, 2**40, 2**50, 2**60)
        table += b"PK\x06\x06" + bogus + b"PK\x06\x07" + struct.pack("<IQI", 0, len(body) + len(table), 1)
    return bytes(body + table) + b"PK\x05\x06" + end + struct.pack("<H", len(comment)) + comment


def headed(told, data=b"", version=b"\x01\x00", length=None):
    """An .npy: a header, whatever it says, and the data."""
    text = told.encode("latin1", "replace")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    size = len(text) if length is None else length
    wide = version != b"\x01\x00"
    return (
        b"\x93NUMPY"
        + version
        + (size & (2 ** (32 if wide else 16) - 1)).to_bytes(4 if wide else 2, "little")
        + text
        + data
    )


def array_file(a, fortran=False):
    """An array as .npy, also one that no loader should take."""
    told = {"descr": a.dtype.str, "fortran_order": fortran, "shape": a.shape}
    return headed(repr(told), a.tobytes("F" if fortran else "C"))


# --- bytes -----------------------------------------------------------------------------------------------------------


def bent(raw, rng, other=b""):
    """Bytes that were flipped, cut, doubled, left out, overwritten or mixed with those of another file."""
    raw = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at, size = rng.randrange(len(raw) + 1), rng.choice((1, 2, 4, 8, 64, 512))
        match rng.randrange(8):
            case 0 if raw:
                raw[at % len(raw)] ^= 1 << rng.randrange(8)
            case 1 if raw:
                raw[at % len(raw)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            case 2:
                del raw[at:]
            case 3:
                del raw[at : at + size]
            case 4:
                raw[at:at] = raw[at : at + size]
            case 5:
                raw[at : at + size] = rng.randbytes(size)
            case 6:
                wide = rng.choice((2, 4, 8))
                raw[at : at + wide] = (rng.choice(NUMBERS) % 256**wide).to_bytes(wide, "little")
            case _:
                place = rng.randrange(len(other) + 1)
                raw[at : at + size] = other[place : place + size]
    return bytes(raw)


# --- zips ------------------------------------------------------------------------------------------------------------


def misbuilt(members, rng):
    """The right contents in a zip whose own headers lie."""
    parts = [Part(name.encode(), content) for name, content in members.items()]
    more = {}
    for _ in range(rng.choice((1, 1, 2, 3))):
        k = rng.randrange(len(parts))
        one, number = parts[k], rng.choice(NUMBERS)
        match rng.randrange(16):
            case 0 | 1 | 2:
                field = rng.choice(("crc", "packed", "size", "offset", "needs"))
                near = rng.choice((number, len(one.content) + rng.randrange(-3, 4)))
                parts[k] = one._replace(lies=(*one.lies, (field, near % 2**16 if field == "needs" else near)))
            case 3:
                parts[k] = one._replace(name=rng.choice(NAMES).encode())
            case 4:
                parts.append(one._replace(name=rng.choice([*NAMES, one.name.decode(errors="replace")]).encode()))
            case 5:
                parts[k] = one._replace(flags=rng.choice((1, 8, 0x20, 0x40, 0x800, 0x2000, 0xFFFF)))
            case 6:
                parts[k] = one._replace(method=rng.choice((8, 9, 12, 14, 93, 99)))
            case 7:  # a bomb: much of nothing, in little
                parts[k] = one._replace(content=bytes(10**5), method=8)
            case 8:  # a link, in the words of a zip
                parts[k] = one._replace(content=b"/etc/passwd", lies=(*one.lies, ("mode", 0o120777 << 16)))
            case 9:
                parts += [Part(f"{j}.npy".encode(), b"") for j in range(rng.choice((5, 40)))]
            case 10:
                del parts[k : k + 1]
                parts = parts or [one]
            case 11:
                rng.shuffle(parts)
            case 12:
                extra = struct.pack("<HHQQ", 1, rng.choice((16, 8, 0, 200)), number % 2**64, 2**50)
                parts[k] = one._replace(
                    lies=(*one.lies, ("extra", extra), ("size", 0xFFFFFFFF), ("packed", 0xFFFFFFFF))
                )
            case 13:
                parts[k] = one._replace(lies=(*one.lies, ("inner", rng.choice(NAMES).encode()[:900])))
            case 14:
                more |= {rng.choice(("count", "length", "where")): number % 2**32}
            case _:
                more |= rng.choice(
                    ({"comment": b"PK\x05\x06" * 9}, {"before": b"#!/bin/sh\n"}, {"disk": 7}, {"large": True})
                )
    return zipped(parts, **more)


# --- trees -----------------------------------------------------------------------------------------------------------


def places(tree):
    """Every (holder, key) of a tree of JSON."""
    waiting, found = [tree], []
    while waiting:
        at = waiting.pop()
        for key, value in at.items() if isinstance(at, dict) else enumerate(at):
            found.append((at, key))
            if isinstance(value, (dict, list)):
                waiting.append(value)
    return found


def anything(rng, arrays, deep=2):
    """A value of JSON, of a kind that a loader may trip over."""
    match rng.randrange(12):
        case 0 | 1:
            return rng.choice([None, True, False, [], {}, *NUMBERS])
        case 2:
            return rng.choice(FLOATS)
        case 3:
            return rng.choice(TEXTS)
        case 4 | 5:
            return {rng.choice(("$array", "$scalar")): rng.choice([*range(arrays + 1), -1, 0.5, None, "0", 10**9])}
        case 6:
            return {
                "$is": rng.choice(KINDS),
                "fields": rng.choice([{}, [], None, {"gamma": 1.0, "length_scale": None}]),
            }
        case 7 if deep:
            return [anything(rng, arrays, deep - 1) for _ in range(rng.randrange(5))]
        case 8 if deep:
            return {rng.choice([*TEXTS, *TAGS]): anything(rng, arrays, deep - 1) for _ in range(rng.randrange(4))}
        case 9:
            held = [{"$array": rng.randrange(arrays + 1)} for _ in range(3)]
            shape = rng.choice([[3, 3], [10**12, 3], [3, 10**15], [0, 0], [-1, 4], 7])
            sparse = dict(zip(("data", "indices", "indptr"), held))
            return {"$sparse": rng.choice(("csr", "csc", "bsr")), "shape": shape, **sparse}
        case 10:
            return {"$objects": [1, "a", None], "shape": rng.choice([[3], [1, 3], [10**9], -1, [3, 10**6, 0], "3"])}
        case _ if deep:
            return {rng.choice(TAGS): anything(rng, arrays, deep - 1)}
        case _:
            return 0


def regrown(text, rng, arrays, other):
    """The text of a tree in which values were replaced, swapped, dropped, renamed or taken from another tree."""
    tree = json.loads(text)
    found = places(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        holder, key = rng.choice(found)
        if (isinstance(holder, list) and key >= len(holder)) or (isinstance(holder, dict) and key not in holder):
            continue  # it has gone
        match rng.randrange(8):
            case 0 | 1 | 2:
                holder[key] = anything(rng, arrays)
            case 3:
                del holder[key]
            case 4 if isinstance(holder, dict):
                holder[rng.choice([*TEXTS, *TAGS, "fields", "gamma", "shape"])] = holder.pop(key)
            case 5:
                again, place = rng.choice(found)
                if (isinstance(again, list) and place < len(again)) or (isinstance(again, dict) and place in again):
                    holder[key] = json.loads(json.dumps(again[place]))  # a copy, lest it holds itself
            case 6:
                again, place = rng.choice(places(json.loads(other)))
                holder[key] = again[place]
            case _ if isinstance(holder[key], (int, float)):
                holder[key] = rng.choice([holder[key] + 1, -holder[key], *NUMBERS, *FLOATS])
            case _:
                holder[key] = {rng.choice(TAGS): holder[key]}
    return json.dumps(tree)


def respelt(text, rng):
    """JSON that is none, or that no one should write."""
    at = rng.randrange(len(text))
    match rng.randrange(8):
        case 0:
            deep = rng.choice((100, 990, 100_000))
            return rng.choice(("[" * deep + "]" * deep, '{"a":' * deep + "1" + "}" * deep, "[" * deep))
        case 1:
            return text.replace("null", rng.choice(("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "-0")), 1)
        case 2:  # a key that is there twice
            return text.replace('"format"', '"format": 1, "learned": 0, "format"', 1)
        case 3:
            return text[:at] + rng.choice(("\x00", "\ud800", "\\u0000", '"', "\\", "\x1b[2J")) + text[at:]
        case 4:
            return text.replace(": 1", ": " + rng.choice(("1.0", "true", '"1"', "1e0", "[1]", "10" * 3000)), 3)
        case 5:
            return text[:at]
        case 6:
            return rng.choice(("", "[]", "0", '"x"', "null", "{}", '{"format":1}', "\ufeff{}", '{"$array":0}'))
        case _:
            return text[:at] + text[rng.randrange(len(text)) :]


# --- arrays ----------------------------------------------------------------------------------------------------------


def misread(raw, rng):
    """An .npy of another shape, type, order or version, or with other numbers, of the right size or not."""
    start = 10 + int.from_bytes(raw[8:10], "little")
    told, data = ast.literal_eval(raw[10:start].decode("latin1")), raw[start:]
    match rng.randrange(10):
        case 0:
            told["shape"] = rng.choice(
                [(10**12,), (2**62, 2), (-1,), (-2, -2), (0,), (1, 1, 1, 1), (True,), 3, (1.5,), ("a",)]
            )
        case 1:
            told["descr"] = rng.choice([*DTYPES, [("a", "<f8")], ("<f8", (2,)), None, 8])
        case 2:
            told["fortran_order"] = rng.choice([True, 1, None, "no"])
        case 3:
            version = rng.choice((b"\x02\x00", b"\x03\x00", b"\x00\x00", b"\xff\xff"))
            return headed(repr(told), data, version, rng.choice((None, 0, 2**31, 2**32 - 1, 60_000)))
        case 4:
            return headed(
                bent(repr(told).encode(), rng).decode("latin1"), data, length=rng.choice((None, None, 0, 65535))
            )
        case 5:
            deep = rng.choice(("-" * 9000 + "1", "(" * 3000, "[" * 60 + "]" * 60, "1+" * 4000 + "1", "~" * 9000 + "0"))
            return headed(repr(told).replace("(", "(" + deep, 1), data)
        case 6:
            return raw + bytes(rng.choice((1, 8, 4096))) if rng.random() < 0.5 else raw[: -rng.choice((1, 8))]
        case _:
            return array_file(
                reshaped(np.frombuffer(data, told["descr"]).reshape(told["shape"]), rng), rng.random() < 0.1
            )
    return headed(repr(told), data)


def reshaped(a, rng):
    """Another array, all in order with its own header, that may not go with the others."""
    match rng.randrange(9):
        case 0:
            return np.concatenate([a.reshape(-1), a.reshape(-1)])
        case 1:
            return a.reshape(-1)[: a.size // 2]
        case 2:
            return a.T if a.ndim > 1 else a[None]
        case 3:
            return a.reshape(-1)[:1].reshape(())[()] if a.size else a[None]
        case 4 if a.dtype.kind in "biuf":
            return np.nan_to_num(a, posinf=0, neginf=0).astype(
                rng.choice(("f4", "i8", "i4", "c16", "b1", "u8", "f2", ">f8"))
            )
        case 5 if a.dtype.kind == "f":
            out = a.copy().reshape(-1)
            out[rng.randrange(out.size) if out.size else slice(0)] = rng.choice(FLOATS)
            return out.reshape(a.shape)
        case 6 if a.dtype.kind in "iu" and a.size:
            out = a.copy().reshape(-1)
            most = np.iinfo(a.dtype)
            out[rng.randrange(out.size)] = rng.choice((most.max, most.min, 10**6, out.size, 0))
            return out.reshape(a.shape)
        case 7:
            return a[::-1] if a.ndim else a
        case _:
            return np.zeros(rng.choice(((0,), (0, 4), (3, 0), (1,), (4, 4), (90, 4))))


# --- all of it -------------------------------------------------------------------------------------------------------


def forged(members, rng, other):
    """A file made of another, `members` by name, in one of all these ways: its kind, and the bytes."""
    tree = next(iter(members))
    arrays = len(members) - 1
    match rng.randrange(20):
        case 0 | 1:
            return "bytes", bent(
                zipped([Part(k.encode(), v) for k, v in members.items()]), rng, b"".join(other.values())
            )
        case 2 | 3 | 4:
            return "zip", misbuilt(members, rng)
        case 5 | 6:
            text = respelt(members[tree].decode(), rng).encode(errors="surrogatepass")
            return "json", zipped([Part(k.encode(), v) for k, v in (members | {tree: text}).items()])
        case 7 | 8 | 9 | 10 | 11 | 12 | 13:
            kind, own = "tree", regrown(members[tree], rng, arrays, next(iter(other.values())))
            changed = members | {tree: own.encode()}
        case _:
            kind, changed = "array", dict(members)
            for _ in range(rng.choice((1, 1, 2))):
                name = f"{rng.randrange(arrays)}.npy"
                changed[name] = misread(members[name], rng)
    return kind, zipped([Part(k.encode(), v) for k, v in changed.items()])
