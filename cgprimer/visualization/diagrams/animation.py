"""Figures as the frames of a GIF."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

_DPI = 96.0  # 1280 times 720 pixels
_LAST_FRAME = 3  # times as long as the others


def encode_gif(
    figures: Iterable[Figure], palette: Image | None = None, *, speed: float = 1.0
) -> bytes:
    """All frames, so many a second, as one GIF of 1280 times 720 pixels.

    One palette for all frames, so that no colour changes from frame to frame: the given one, or
    that of the last frame.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL.Image import Dither, frombytes

    images = []
    for figure in figures:
        # The same pixels as those of a PNG file, without the way through one.
        figure.set_dpi(_DPI)
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = frombytes("RGBA", canvas.get_width_height(), canvas.buffer_rgba()).convert("RGB")
        images.append(
            pixels if palette is None else pixels.quantize(palette=palette, dither=Dither.NONE)
        )
    if palette is None:
        shades = images[-1].quantize(256)
        images = [image.quantize(palette=shades, dither=Dither.NONE) for image in images]
    length = round(1000 / speed)
    lengths = [length] * (len(images) - 1) + [_LAST_FRAME * length]
    found = io.BytesIO()
    images[0].save(found, "gif", save_all=True, append_images=images[1:], duration=lengths, loop=0)
    return found.getvalue()
