"""Datasets: made from graphs, drawn in classes, read from files and frames, whole or in blocks."""

from cgprimer.training.data.blocks import Blocks as Blocks
from cgprimer.training.data.blocks import require_in_memory as require_in_memory
from cgprimer.training.data.blocks import resolve_dataset as resolve_dataset
from cgprimer.training.data.data_generation import make_dataset as make_dataset
from cgprimer.training.data.dataset import Dataset as Dataset
from cgprimer.training.data.normalization import compute_scales as compute_scales
from cgprimer.training.data.normalization import denormalize_outputs as denormalize_outputs
from cgprimer.training.data.normalization import normalize_data as normalize_data
