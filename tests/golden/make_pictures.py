#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small pictures of every format and kind, and what PIL's convert("RGB") makes of each, before and after exif_transpose. The C side
is tests/data/pictures.c. Needs torch, numpy and PIL (Debian: python3-torch python3-pil). What PIL does not write is written here
by hand; what it does not read as one would have it (16 bits of grey become 8 of them, the upper ones) is said by hand, too."""
import io
import pathlib
import struct

import numpy
import torch
from PIL import Image, ImageOps

from golden import save

here = pathlib.Path(__file__).parent
folder = here / "pictures"
folder.mkdir(exist_ok=True)
generator = numpy.random.default_rng(44)
W, H = 13, 9
tensors = {}


def picture(channels=3, width=W, height=H):
    small = generator.integers(0, 256, (3, 4, channels), dtype=numpy.uint8)
    planes = [numpy.asarray(Image.fromarray(small[..., c]).resize((width, height), Image.BICUBIC)) for c in range(channels)]
    return numpy.stack(planes, -1)


def keep(name, expected=None):
    """What is in the file, by PIL or by hand."""
    image = Image.open(folder / name)
    if expected is None:
        expected = numpy.asarray(image.convert("RGB"))
    tensors[name] = torch.from_numpy(numpy.array(expected))
    orientation = image.getexif().get(0x112)
    if orientation is None:
        return
    methods = {2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM, 5: Image.TRANSPOSE, 6: Image.ROTATE_270,
               7: Image.TRANSVERSE, 8: Image.ROTATE_90}
    upright = Image.fromarray(expected)
    upright = numpy.array(upright.transpose(methods[orientation]) if orientation in methods else upright)
    if not name.endswith(".tif"):  # newer PILs turn these when they are loaded
        assert numpy.array_equal(numpy.asarray(ImageOps.exif_transpose(image).convert("RGB")), upright), name
    tensors["turned " + name] = torch.from_numpy(upright)


def rgb():
    return Image.fromarray(picture())


def exif(orientation):
    data = Image.Exif()
    data[0x112] = orientation
    return data


# ---- BMP ----------------------------------------------------------------------------------------------------------------
def bmp(name, bits, rows, palette=b"", packing=0, header=40, width=W, height=H, masks=b"", colors=0, expected=None):
    if header == 12:
        head = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        head = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, packing, len(rows), 0, 0, colors, 0)
        head += masks
        head += b"\0" * (header - len(head) if header > 40 else 0)
    start = 14 + len(head) + len(palette)
    (folder / name).write_bytes(b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + head + palette + rows)
    keep(name, expected)


def packed(indices, bits):
    """Rows of indices from the lowest up, each padded to four bytes."""
    rows = b""
    for row in indices[::-1]:
        text = "".join(format(int(i), f"0{bits}b") for i in row)
        text += "0" * (-len(text) % 32)
        rows += int(text, 2).to_bytes(len(text) // 8, "big")
    return rows


rgb().save(folder / "color.bmp")
keep("color.bmp")
rgb().convert("L").save(folder / "grey.bmp")
keep("grey.bmp")
Image.fromarray(picture(1)[..., 0]).convert("1").save(folder / "line.bmp")
keep("line.bmp")
Image.fromarray(picture(4), "RGBA").save(folder / "alpha.bmp")
keep("alpha.bmp")
colors = generator.integers(0, 256, (16, 3), dtype=numpy.uint8)
index = generator.integers(0, 16, (H, W))
entries = b"".join(bytes(c[::-1]) + b"\0" for c in colors)
bmp("four.bmp", 4, packed(index, 4), entries)
bmp("few.bmp", 4, packed(index % 5, 4), entries[:20], colors=5)
bmp("two.bmp", 1, packed(index & 1, 1), entries[:8])
bmp("core.bmp", 24, b"".join(row[:, ::-1].tobytes() + b"\0" * (-3 * W % 4) for row in picture()[::-1]), header=12)
bmp("core_palette.bmp", 4, packed(index, 4), b"".join(bytes(c[::-1]) for c in colors), header=12)
bmp("down.bmp", 24, b"".join(row[:, ::-1].tobytes() + b"\0" * (-3 * W % 4) for row in picture()), height=-H)
words = generator.integers(0, 1 << 16, (H, W + 1), dtype=numpy.uint16).astype("<u2")
bmp("fifteen.bmp", 16, (words & 0x7fff).tobytes())
bmp("sixteen.bmp", 16, words.tobytes(), packing=3, masks=struct.pack("<III", 0xf800, 0x7e0, 0x1f))
bmp("newer.bmp", 32, generator.integers(0, 1 << 32, (H, W), dtype=numpy.uint32).astype("<u4").tobytes(), packing=3, header=124,
    masks=struct.pack("<IIII", 0xff0000, 0xff00, 0xff, 0xff000000))
# Runs: three of a colour, four as they are, to the end of the row; a step aside; pixels that are left out.
runs = b"\x03\x05" + b"\x00\x04\x01\x02\x03\x04" + b"\x06\x07" + b"\x00\x00" + b"\x00\x02\x02\x01" + b"\x05\x09" + b"\x00\x03\x08\x07\x06\x00" + b"\x00\x01"
want = numpy.zeros((H, W), int)
want[H - 1] = [5] * 3 + [1, 2, 3, 4] + [7] * 6
want[H - 3, 2:10] = [9] * 5 + [8, 7, 6]
bmp("runs8.bmp", 8, runs, entries, packing=1, colors=16, expected=colors[want])
runs = b"\x05\x12" + b"\x00\x03\x34\x50" + b"\x05\x66" + b"\x00\x00" + b"\x0d\x78" + b"\x00\x01"
want = numpy.zeros((H, W), int)
want[H - 1] = [1, 2, 1, 2, 1, 3, 4, 5] + [6] * 5
want[H - 2] = [7, 8] * 6 + [7]
bmp("runs4.bmp", 4, runs, entries, packing=2, expected=colors[want])

# ---- GIF ----------------------------------------------------------------------------------------------------------------
rgb().quantize(16).save(folder / "palette.gif")
keep("palette.gif")
rgb().convert("L").save(folder / "grey.gif")
keep("grey.gif")
rgb().quantize(8).save(folder / "woven.gif", interlace=1)
keep("woven.gif")
rgb().quantize(8).save(folder / "through.gif", transparency=2, interlace=0)
keep("through.gif")
rgb().quantize(16).save(folder / "moving.gif", save_all=True, append_images=[rgb().quantize(16) for _ in range(2)])
keep("moving.gif")
data = bytearray((folder / "through.gif").read_bytes())
data[6:10] = struct.pack("<HH", W + 5, H + 4)  # a larger ground
at = data.index(b"\x2c\0\0\0\0" + struct.pack("<HH", W, H))
data[at + 1:at + 5] = struct.pack("<HH", 3, 2)
(folder / "ground.gif").write_bytes(data)
keep("ground.gif")
data[6:10] = struct.pack("<HH", 4, 4)  # and one that is smaller than the picture
(folder / "beyond.gif").write_bytes(data)
keep("beyond.gif")

# ---- WebP ---------------------------------------------------------------------------------------------------------------
rgb().save(folder / "lossy.webp", quality=80)
keep("lossy.webp")
rgb().save(folder / "whole.webp", lossless=True)
keep("whole.webp")
Image.fromarray(picture(4), "RGBA").save(folder / "alpha.webp", lossless=True, exact=True)
keep("alpha.webp")
Image.fromarray(picture(4), "RGBA").save(folder / "lossy_alpha.webp", quality=70, exact=True)
keep("lossy_alpha.webp")
rgb().save(folder / "moving.webp", save_all=True, append_images=[rgb()], lossless=True)
keep("moving.webp")
rgb().save(folder / "turned.webp", lossless=True, exif=exif(6))
keep("turned.webp")


# ---- TIFF ---------------------------------------------------------------------------------------------------------------
def tiff(name, values, photometric, big=False, planar=1, tile=None, more=(), bits=None, rows=None, expected=None):
    """Values [H, W, samples], uncompressed, written by hand."""
    e = ">" if big else "<"
    height, width, samples = values.shape
    bits = bits or values.dtype.itemsize * 8
    values = values.astype(values.dtype.newbyteorder(e))
    blocks = []
    for plane in ([values] if planar == 1 else [values[..., c:c + 1] for c in range(samples)]):
        if tile:
            for y in range(0, height, tile):
                for x in range(0, width, tile):
                    block = numpy.zeros((tile, tile, plane.shape[2]), plane.dtype)
                    part = plane[y:y + tile, x:x + tile]
                    block[:part.shape[0], :part.shape[1]] = part
                    blocks.append(block.tobytes())
        else:
            blocks += [plane[y:y + 4].tobytes() for y in range(0, height, 4)]
    if rows is not None:
        blocks = [rows]
    body, offsets = b"", []
    for block in blocks:
        offsets.append(8 + len(body))
        body += block + b"\0" * (len(block) % 2)
    fields = [(256, 3, [width]), (257, 3, [height]), (258, 3, [bits] * samples), (259, 3, [1]), (262, 3, [photometric]),
              (277, 3, [samples]), (284, 3, [planar])] + list(more)
    if tile:
        fields += [(322, 3, [tile]), (323, 3, [tile]), (324, 4, offsets), (325, 4, [len(b) for b in blocks])]
    else:
        fields += [(273, 4, offsets), (278, 3, [4 if rows is None else height]), (279, 4, [len(b) for b in blocks])]
    fields.sort()
    at = 8 + len(body)
    behind = at + 2 + 12 * len(fields) + 4
    entries, extra = b"", b""
    for tag, kind, numbers in fields:
        raw = b"".join(struct.pack(e + ("H" if kind == 3 else "I"), n) for n in numbers)
        if len(raw) > 4:
            entries += struct.pack(e + "HHII", tag, kind, len(numbers), behind + len(extra))
            extra += raw + b"\0" * (len(raw) % 2)
        else:
            entries += struct.pack(e + "HHI", tag, kind, len(numbers)) + raw.ljust(4, b"\0")
    (folder / name).write_bytes((b"MM\0*" if big else b"II*\0") + struct.pack(e + "I", at) + body + struct.pack(e + "H", len(fields)) +
                                entries + b"\0\0\0\0" + extra)
    keep(name, expected)


for packing in "raw", "tiff_lzw", "tiff_adobe_deflate", "packbits":
    rgb().save(folder / f"{packing}.tif", compression=packing)
    keep(f"{packing}.tif")
rgb().save(folder / "jpeg.tif", compression="jpeg")
keep("jpeg.tif")
rgb().convert("L").save(folder / "grey.tiff")
keep("grey.tiff")
Image.fromarray(picture(1)[..., 0]).convert("1").save(folder / "fax.tif", compression="group4")
keep("fax.tif")
rgb().quantize(16).save(folder / "palette.tif")
keep("palette.tif")
Image.fromarray(picture(4), "RGBA").save(folder / "alpha.tif")
keep("alpha.tif")
Image.fromarray(picture(4), "CMYK").save(folder / "ink.tif")
keep("ink.tif")
turned = picture()
Image.fromarray(turned).save(folder / "turned.tif", tiffinfo={274: 5})
keep("turned.tif", turned)
deep = generator.integers(0, 1 << 16, (H, W, 3), dtype=numpy.uint16)
tiff("deep.tif", deep, 2, expected=(deep >> 8).astype(numpy.uint8))
tiff("deep_big.tif", deep, 2, big=True, expected=(deep >> 8).astype(numpy.uint8))
tiff("deep_grey.tif", deep[..., :1], 1, expected=numpy.repeat(deep[..., :1] >> 8, 3, -1).astype(numpy.uint8))
tiff("white.tif", picture(1), 0)
plain = picture()
tiff("planes.tif", plain, 2, planar=2, expected=plain)
tiff("tiles.tif", picture(), 2, tile=16)
large = picture(3, 37, 21)
tiff("more_tiles.tif", large, 2, tile=16)
tiff("planes_tiles.tif", large, 2, tile=16, planar=2, expected=large)
multiplied = picture(4)
tiff("associated.tif", multiplied, 2, more=[(338, 3, [1])])
tiff("four_bits.tif", numpy.zeros((H, W, 1), numpy.uint8), 1, bits=4,
     rows=b"".join(bytes(int(row[2 * i]) << 4 | (int(row[2 * i + 1]) if 2 * i + 1 < W else 0) for i in range((W + 1) // 2)) for row in index),
     expected=numpy.repeat((index * 17)[..., None], 3, -1).astype(numpy.uint8))

# ---- JPEG and PNG: turned, and what used to be refused ------------------------------------------------------------------
upright = rgb()
for orientation in range(1, 9):
    upright.save(folder / f"turned{orientation}.jpg", quality=90, exif=exif(orientation))
    keep(f"turned{orientation}.jpg")
rgb().save(folder / "turned.png", exif=exif(8))
keep("turned.png")
data = (folder / "turned3.jpg").read_bytes()
at = data.index(b"\xff\xdb")
(folder / "between.jpg").write_bytes(data[:at] + b"stray bytes" + data[at:])
image = Image.open(io.BytesIO(data))
tensors["between.jpg"] = torch.from_numpy(numpy.array(image.convert("RGB")))
data = (folder / "turned.png").read_bytes()
(folder / "endless.png").write_bytes(data[:data.rindex(b"IEND") - 4])
tensors["endless.png"] = tensors["turned.png"]
save(here / "pictures.safetensors", tensors)
print(len(tensors), "pictures")
