"""Image bytes, Pillow images and arrays as upright 8-bit RGB, checked before they are decoded."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.images.completeness import check_jpeg_rows, check_png_length, check_png_rows
from evergrow.vision.images.sources import ReadLimits, import_extra

if TYPE_CHECKING:
    from PIL.Image import Image

RGB = npt.NDArray[np.uint8]

# The Pillow module and the MIME type of each supported format. No other decoder is loaded: each one
# is an attack surface. Photographs in MPO format (several JPEGs in one file) are opened by the JPEG
# module; Pillow distinguishes them, their MIME type does not.
_FORMATS = {
    "JPEG": ("PIL.JpegImagePlugin", "image/jpeg"),
    "PNG": ("PIL.PngImagePlugin", "image/png"),
    "WEBP": ("PIL.WebPImagePlugin", "image/webp"),
    "BMP": ("PIL.BmpImagePlugin", "image/bmp"),
    "GIF": ("PIL.GifImagePlugin", "image/gif"),
    "TIFF": ("PIL.TiffImagePlugin", "image/tiff"),
    "PPM": ("PIL.PpmImagePlugin", "image/x-portable-anymap"),
    "AVIF": ("PIL.AvifImagePlugin", "image/avif"),
    "HEIF": ("pillow_heif", "image/heif"),
}
_MEDIA_TYPES = {name: media_type for name, (_, media_type) in _FORMATS.items()}
_MEDIA_TYPES["MPO"] = _MEDIA_TYPES["JPEG"]
# MIME types of all images that can be decoded.
MEDIA_TYPES = tuple(dict.fromkeys(_MEDIA_TYPES.values()))
# A file name extension for each of them.
SUFFIX_OF_TYPE = {
    media_type: f".{ending}"
    for media_type, ending in zip(
        MEDIA_TYPES,
        ("jpg", "png", "webp", "bmp", "gif", "tif", "pnm", "avif", "heif"),
        strict=True,
    )
}
# What Pillow imports while it decodes some images: photographs with several frames or EXIF data,
# palettes, colours in Lab.
_LATE_MODULES = ("MpoImagePlugin", "TiffImagePlugin", "ImagePalette", "ImageCms")

# File name extensions of these formats.
SUFFIXES = frozenset(
    f".{ending}"
    for endings in (
        ("jpg", "jpeg", "jpe", "jfif", "mpo"),
        ("png", "webp", "bmp", "gif", "tif", "tiff"),
        ("ppm", "pgm", "pbm", "pnm"),
        ("avif", "heic", "heif", "hif"),
    )
    for ending in endings
)
# Extensions of images that cannot be read: other formats, raw data of cameras, drawings.
FOREIGN_SUFFIXES = frozenset(
    f".{ending}"
    for endings in (
        ("jp2", "j2k", "jpf", "jpx", "jxl", "tga", "ico", "pcx", "exr", "hdr", "dds", "psd", "xcf"),
        ("dng", "cr2", "cr3", "nef", "arw", "orf", "raf", "rw2", "pef", "srw", "raw"),
        ("svg", "svgz", "eps", "ai"),
    )
    for ending in endings
)

# What Pillow's openers raise for bytes of another format.
_WRONG_FORMAT_ERRORS = (SyntaxError, IndexError, TypeError, KeyError, EOFError, struct.error)
# The openers recognise their format by this many bytes.
_PREFIX_BYTES = 16
_ORIENTATION_TAG = 0x0112
# Files of these two formats begin with a list of the formats that they comply with. AVIF complies
# with the more general brands of HEIF, too, so it is looked for first.
_BRANDS = {
    "AVIF": {b"avif", b"avis"},
    "HEIF": {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1", b"heif"},
}
_MAX_BRANDS = 64
# Orientations that swap width and height.
_SIDEWAYS = (5, 6, 7, 8)
_WHITE = 255


class UnknownFormatError(ValueError):
    """The bytes do not start like an image of a supported format."""


@dataclass(frozen=True)
class ImageHeader:
    """Format and size of an encoded image, known before it is decoded."""

    format: str
    # As stored in the file, before the orientation is applied.
    width: int
    height: int

    @property
    def media_type(self) -> str:
        """The MIME type."""
        return _MEDIA_TYPES[self.format]


@dataclass(frozen=True, eq=False)
class DecodedImage:
    """The upright pixels of an encoded image, its MIME type, and its full size."""

    pixels: RGB
    media_type: str
    # Of the upright image at full size, even if it was decoded at a smaller one.
    width: int
    height: int


def read_header(content: bytes) -> ImageHeader:
    """Read format and size of an encoded image; a ``ValueError`` says why that is impossible."""
    try:
        with _open(content) as image:
            return ImageHeader(image.format, *image.size)
    except UnknownFormatError:
        raise
    except Exception as error:
        raise InvalidInputError(_reason(error)) from error


def read_upright_size(content: bytes, limits: ReadLimits) -> tuple[int, int]:
    """Width and height of the upright image; a ``ValueError`` says why that is impossible."""
    try:
        with _open(content) as image:
            width, height = image.size
            # Checked first: the orientation of a PNG may come after its pixels.
            limits.check_size(width, height)
            return (height, width) if _orientation(image) in _SIDEWAYS else (width, height)
    except Exception as error:
        raise InvalidInputError(_reason(error)) from error


def decode_image(content: bytes, limits: ReadLimits, max_side: int | None) -> DecodedImage:
    """Decode the first frame, upright; a ``ValueError`` says why that is impossible.

    With ``max_side``, a JPEG may be decoded at a size that is smaller by a power of two. Neither
    side becomes shorter than ``max_side`` unless it already was.
    """
    try:
        with _open(content) as image:
            width, height = image.size
            limits.check_size(width, height)
            media_type = _MEDIA_TYPES[image.format]
            _load_all_rows(image, content, max_side)
            pixels = _upright_rgb(image)
            if _orientation(image) in _SIDEWAYS:
                width, height = height, width
            return DecodedImage(pixels, media_type, width, height)
    # Hostile bytes make decoders raise almost anything.
    except Exception as error:
        raise InvalidInputError(_reason(error)) from error


def pillow_to_rgb(image: Any, limits: ReadLimits) -> RGB:
    """Convert a Pillow image; a ``ValueError`` says why that is impossible."""
    try:
        limits.check_size(*image.size)
        return _upright_rgb(image)
    except Exception as error:
        raise InvalidInputError(_reason(error)) from error


def array_to_rgb(array: npt.NDArray[Any]) -> RGB:
    """Convert an array of grey, RGB or RGBA pixels; a ``ValueError`` for any other array.

    >>> array_to_rgb(np.array([[0.0, 1.0]])).tolist()
    [[[0, 0, 0], [255, 255, 255]]]
    """
    shape = array.shape
    if array.ndim not in (2, 3) or (array.ndim == 3 and shape[2] not in (1, 3, 4)):
        raise InvalidInputError(
            "an array must have the shape (height, width), or (height, width, channels) with "
            f"1, 3 or 4 channels, got {shape}"
        )
    pixels = _to_uint8(array.reshape(*shape[:2], -1))
    if pixels.shape[2] == 4:
        return _blend_with_white(pixels[..., :3], pixels[..., 3:])
    # Always a copy: the result never shares memory with the caller's array.
    return np.array(np.broadcast_to(pixels, (*shape[:2], 3)), order="C")


def _reason(error: BaseException) -> str:
    text = str(error)
    return text[:1].lower() + text[1:] if text else type(error).__name__


def _open(content: bytes) -> Any:
    """Open an image and read its header without decoding it.

    ``Image.open`` does the same, but warns about many pixels by a limit and warning filters that
    the whole process shares. Here each call has its own limit, and exceeding it is an error.
    """
    _import_openers()
    openers = {**import_extra("PIL.Image").OPEN, **_box_openers(content)}
    prefix = content[:_PREFIX_BYTES]
    for name in _FORMATS:
        opener, accepts = openers[name]
        accepted = accepts(prefix) if accepts else True
        if isinstance(accepted, str):
            # Pillow was built without support for this format; the text says so.
            raise InvalidInputError(accepted)
        if not accepted:
            continue
        try:
            return opener(io.BytesIO(content), "")
        except _WRONG_FORMAT_ERRORS as error:
            reason = str(error) or type(error).__name__
            raise InvalidInputError(f"the {name} file is damaged: {reason}") from error
    raise UnknownFormatError(f"it is not an image of a known format: {', '.join(_FORMATS)}")


def _load_all_rows(image: Any, content: bytes, max_side: int | None) -> None:
    """Decode an image; an ``InvalidInputError`` if rows are missing, which Pillow may accept."""
    if image.format == "PNG":
        check_png_length(content)
        image.load()
        check_png_rows(content, image)
    elif image.format in ("JPEG", "MPO"):
        load = partial(_load_jpeg, max_side=max_side)
        check_jpeg_rows(content, load(image), lambda longer: load(_open(longer)))
    else:
        image.load()


def _load_jpeg(image: Any, max_side: int | None) -> Any:
    if max_side is not None:
        image.draft(None, (max_side, max_side))
    image.load()
    return image


def load_formats() -> None:
    """Import all modules that decoding may need, for processes that then give up reading files.

    They decode one image at a time in one thread: there is one such process per processor.
    """
    _import_openers()
    for module in _LATE_MODULES:
        import_extra(f"PIL.{module}")
    import_extra("PIL.AvifImagePlugin").DEFAULT_MAX_THREADS = 1
    import_extra("pillow_heif").options.DECODE_THREADS = 1


def _import_openers() -> None:
    for module, _ in _FORMATS.values():
        import_extra(module)


def _box_openers(content: bytes) -> dict[str, tuple[Any, Any]]:
    """Return how AVIF and HEIF files are opened and recognised, which Pillow does by less."""
    avif = import_extra("PIL.AvifImagePlugin")
    heif = import_extra("pillow_heif").HeifImageFile
    found = _box_format(content)
    missing = "Pillow was built without AVIF"
    return {
        "AVIF": (avif.AvifImageFile, lambda _: found == "AVIF" and (avif.SUPPORTED or missing)),
        "HEIF": (heif, lambda _: found == "HEIF"),
    }


def _box_format(content: bytes) -> str | None:
    """AVIF or HEIF by the brands in the first box of a file; None for other files."""
    if content[4:8] != b"ftyp":
        return None
    end = min(int.from_bytes(content[:4], "big"), 4 * _MAX_BRANDS)
    brands = {content[8:12], *(content[place : place + 4] for place in range(16, end, 4))}
    return next((name for name, own in _BRANDS.items() if brands & own), None)


def _upright_rgb(image: Image) -> RGB:
    image.load()
    pixels = _pillow_pixels(image)
    return np.ascontiguousarray(_rotate_upright(pixels, _orientation(image)))


def _pillow_pixels(image: Image) -> RGB:
    # More than 8 bits: Pillow's own conversion would clip values at 255.
    if image.mode.startswith(("I", "F")):
        return _deep_grey_pixels(image)
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        # Premultiplied modes convert to RGBA only.
        layers = np.asarray(image.convert("RGBA"))
        return _blend_with_white(layers[..., :3], layers[..., 3:])
    return np.array(image.convert("RGB"))


def _deep_grey_pixels(image: Image) -> RGB:
    grey = np.asarray(image)
    if grey.dtype.kind in "iu":
        # Pillow returns 16-bit grey as 32 bits for some formats. For true 32-bit values it is
        # unknown which value is white.
        if grey.min() < 0 or grey.max() > np.iinfo(np.uint16).max:
            raise InvalidInputError("its grey values need more than 16 bits")
        grey = grey.astype(np.uint16)
    pixels = array_to_rgb(grey)
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        pixels[grey == transparent] = _WHITE
    return pixels


def _orientation(image: Image) -> int:
    try:
        found = image.getexif().get(_ORIENTATION_TAG, 1)
    # Damaged metadata is not a reason to reject the pixels.
    except Exception:  # noqa: BLE001
        return 1
    return found if isinstance(found, int) else 1


def _rotate_upright(pixels: RGB, orientation: int) -> RGB:
    """Undo the EXIF orientation."""
    turned = pixels.swapaxes(0, 1)
    views = {
        2: pixels[:, ::-1],
        3: pixels[::-1, ::-1],
        4: pixels[::-1],
        5: turned,
        6: turned[:, ::-1],
        7: turned[::-1, ::-1],
        8: turned[::-1],
    }
    return views.get(orientation, pixels)


def _blend_with_white(colours: RGB, opacity: RGB) -> RGB:
    """Blend partly transparent pixels with a white background, rounding to nearest."""
    share = opacity.astype(np.uint16)
    mixed = (colours * share + _WHITE * (_WHITE - share) + _WHITE // 2) // _WHITE
    return mixed.astype(np.uint8)


def _to_uint8(array: npt.NDArray[Any]) -> RGB:
    if array.dtype == np.uint8:
        return array
    if array.dtype == bool:
        return array.astype(np.uint8) * np.uint8(_WHITE)
    if array.dtype == np.uint16:
        # 65535 / 257 = 255: the whole range is used and nothing is clipped.
        return ((array.astype(np.uint32) + 128) // 257).astype(np.uint8)
    if array.dtype.kind == "f":
        return _float_to_uint8(array)
    raise InvalidInputError(
        f"an array must be of type uint8, uint16, bool or float in [0, 1], got {array.dtype}"
    )


def _float_to_uint8(array: npt.NDArray[Any]) -> RGB:
    low, high = (array.min(), array.max()) if array.size else (0.0, 0.0)
    # Also false for NaN.
    if not (low >= 0 and high <= 1):
        raise InvalidInputError(
            "an array of floats must lie in [0, 1], got values from "
            f"{low:g} to {high:g}: use uint8 for 0 to 255"
        )
    return np.rint(array.astype(np.float32) * _WHITE).astype(np.uint8)
