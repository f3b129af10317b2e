"""Figures encoded as an animated GIF."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

_DPI = 96.0  # 1280 times 720 pixels
_LAST_FRAME = 3  # duration of the last frame, in frames


def encode_gif(
    figures: Iterable[Figure], palette: Image | None = None, *, speed: float = 1.0
) -> bytes:
    """Encode figures as an animated GIF of 1280 by 720 pixels, with ``speed`` frames per second.

    All frames have the same palette, so colors do not change between frames: the given palette, or
    the palette of the last frame.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL.Image import Dither, frombytes

    images = []
    for figure in figures:
        # The same pixels as in a PNG file, without encoding it.
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
    content = io.BytesIO()
    images[0].save(
        content, "gif", save_all=True, append_images=images[1:], duration=lengths, loop=0
    )
    return content.getvalue()
