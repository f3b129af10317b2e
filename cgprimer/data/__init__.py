"""Datasets: made from graphs, drawn in classes, read from files and frames, whole or in blocks."""

from cgprimer.data.blocks import Blocks as Blocks
from cgprimer.data.blocks import dataset_of as dataset_of
from cgprimer.data.dataset import Dataset as Dataset
from cgprimer.data.making import make_dataset as make_dataset
